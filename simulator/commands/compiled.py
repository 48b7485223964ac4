"""SRC is a text of LLVM IR (.ll), of which every cast is shown, calls of llvm.tpc.*.swch among them; or SRC and DST
are vector types of TPC-C (float128, short128, bfloat128, uchar256, ...) or formats (f32, i16); without a number of
elements, a format means one register of the narrower side. A VALUE is a decimal, nan, inf, or 0x followed by the
bits of SRC. The result is what the emitted assembly computes on the machine. --form chooses how the program writes
the cast: as (as_T(x), with --rounding as_T(x, mode); in a kernel in C, as_T(x) without a mode keeps the bits of
equal widths), implicit (an assignment: promotions only), explicit ((T)x), reinterpret (the same bits), ir (an LLVM
IR cast in the compiler's own instructions, with its defined result beside it), convert_to (convert_T_to_U(x, mode):
one instruction, which keeps its order of lanes). Where the vendor's compiler and document differ, both are shown.
--order swizzle leaves the lanes as all_lanes puts them, lane converts one register to one, and scalar converts one
element in scalar registers, where the compiler has shortcuts of its own. --table prints the C-level casts of a
generation.

examples:
  castsim compiled f32 u16 40000 70000 -1.5 --target gaudi
  castsim compiled float128 short128 2.5 --target gaudi --rounding SW_RZ
  castsim compiled f32 i32 0.75 2.5 nan --target gaudi --form ir
  castsim compiled f32 u16 --target greco --form ir --order scalar --emit
  castsim compiled bf16 f32 --target gaudi --emit
  castsim compiled casts.ll 2.5 --target gaudi
  castsim compiled --table --target gaudi
"""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from castsim.commands.cast import read_value
from castsim.commands.option_parsers import refuse_given
from castsim.commands.outcome import CommandOutcome, plain, stacked
from castsim.commands.shared_options import OptionParser
from castsim.isa.errors import ReadError
from castsim.isa.reading import read_text
from castsim.reports.compiled import CompiledHead, compiled_document, compiled_text, table_document, table_text
from castsim.reports.documents import VERSIONS
from castsim.tpc_compiler.c_table import cast_table
from castsim.tpc_compiler.cast_comparison import casts_of_text, compare, source_format
from castsim.tpc_compiler.compiled_casts import compile_cast, tpc_target

if TYPE_CHECKING:
    from castsim.tpc_compiler.compiled_casts import CompiledCast


def declare(parser: OptionParser) -> None:
    """Add the arguments of `compiled`."""
    add = parser.add_argument
    add("src", metavar="SRC", nargs="?", help="vector type or format of the argument, or a file (.ll)")
    add("dst", metavar="DST", nargs="?", help="vector type or format of the result")
    add("values", metavar="VALUE", nargs="*", help="number, nan, inf, -inf, or 0x bits")
    add("--target", metavar="T", required=True, help="name or path of a TPC target")
    add("--form", metavar="F", default="as", help="as (default), implicit, explicit, reinterpret, convert_to, ir")
    what = "mode of as_T(x, mode), if supported: SW_RHNE, SW_RZ, SW_RU, SW_RD, SW_SR, SW_CSR, SW_RHAZ, SW_SR_RNE"
    add("--rounding", metavar="M", help=what)
    what = "source of the chain: compiler (default), document, or scalar with --order scalar"
    add("--reading", metavar="R", default="compiler", help=what)
    add("--order", metavar="O", default="linear", help="order of the result: linear (default), swizzle, lane or scalar")
    add("--emit", action="store_true", help="print the assembly of the cast")
    add("--table", action="store_true", help="print the table of C-level casts of the target as Markdown")


IR_SUFFIX = ".ll"


def execute(options: Namespace) -> CommandOutcome:
    """Compile the cast, and run it on the values.

    Raises:
        ReadError: a type, form, mode or target is unknown, or a value is neither a number nor a code.
        IllegalError: the target or the form lacks the pair, mode, number of elements or order.
    """
    if options.table:
        if options.src is not None:
            raise ReadError("--table lists all casts of a target; leave out SRC and DST")
        return _table(options.target)
    if options.src is not None and options.src.endswith(IR_SUFFIX):
        return _text(options)
    if options.dst is None:
        raise ReadError("SRC and DST are needed (see `castsim compiled --help`)")
    cast = compile_cast(
        options.src,
        options.dst,
        options.target,
        form=options.form,
        rounding=options.rounding,
        reading=options.reading,
        order=options.order,
    )
    if not options.emit:
        return _compared(cast, options.values)
    assembly = cast.kernel.text()  # of one vector
    document = {"schema_version": VERSIONS["compiled-emit"], **CompiledHead.of(cast), "assembly": assembly}
    return CommandOutcome(document, lambda _: plain(assembly.rstrip("\n")))


def _compared(cast: CompiledCast, texts: list[str]) -> CommandOutcome:
    """Show the path, the results for the values, and where the accounts differ."""
    fmt = source_format(cast)
    sources = [read_value(text.strip(), fmt) for text in texts]
    found = compare(cast, [source.code for source in sources])

    document = {"schema_version": VERSIONS["compiled"], **compiled_document(found, sources)}
    return CommandOutcome(document, lambda _: compiled_text(found, sources))


def _text(options: Namespace) -> CommandOutcome:
    """Show the casts of an LLVM IR text; all positional arguments after the file are values."""
    why = "does not apply to LLVM IR text, which determines it"
    refuse_given(options, ("form", "rounding", "reading"), why, usual=("as", "compiler"), legal=("--order",))
    text_read = read_text(options.src, "LLVM IR")
    found = casts_of_text(text_read, options.src, tpc_target(options.target), options.order)
    places = [{"line": each.span.line, "column": each.span.column, "written": each.written} for each in found]
    texts = [options.dst, *options.values] if options.dst is not None else []
    if options.emit:
        parts = [f"// {each.span}: {each.written}\n{each.cast.kernel.text()}" for each in found]
        casts = [{**place, **CompiledHead.of(each.cast), "assembly": part} for place, each, part in
                 zip(places, found, parts, strict=True)]  # fmt: skip
        document = {"schema_version": VERSIONS["compiled-ir"], "casts": casts}
        return CommandOutcome(document, lambda _: plain("".join(parts).rstrip("\n")))
    shown = [_compared(each.cast, texts) for each in found]
    documents = [{key: value for key, value in each.document.items() if key != "schema_version"} for each in shown]
    casts = [{**place, **document} for place, document in zip(places, documents, strict=True)]

    def text(width: int) -> Any:
        pairs = zip(found, shown, strict=True)
        return stacked(
            *(
                part
                for one, two in pairs
                for part in (plain(f"{one.span}: {one.written}", no_wrap=False), two.text(width))
            )
        )

    return CommandOutcome({"schema_version": VERSIONS["compiled-ir"], "casts": casts}, text)


def _table(target: str) -> CommandOutcome:
    """Show the C-level casts of a generation."""
    table = cast_table(tpc_target(target))

    return CommandOutcome(table_document(table), lambda _: table_text(table))
