"""SRC and DST are vector types of TPC-C (float128, short128, bfloat128, uchar256, ..) or formats (f32, i16); without a
number of elements, one register of the narrower side. A VALUE is a decimal, nan, inf or 0x and the bits of SRC. The
result is what the emitted assembly computes in the machine. --form says what the program says: as (as_T(x), with
--rounding as_T(x, mode)), implicit (an assignment: promotions only), explicit ((T)x), reinterpret (the same bits),
ir (an LLVM IR cast; its defined result stands beside). Where the vendor's compiler and document differ, both are
shown. --order swizzle leaves the lanes as all_lanes puts them, lane converts one register to one, scalar one element in
scalar registers, where the compiler has shortcuts of its own. --table prints the C-level casts of a generation.

examples:
  castsim compiled f32 u16 40000 70000 -1.5 --target gaudi
  castsim compiled float128 short128 2.5 --target gaudi --rounding SW_RZ
  castsim compiled f32 i32 0.75 2.5 nan --target gaudi --form ir
  castsim compiled bf16 f32 --target gaudi --emit
  castsim compiled --table --target gaudi
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.commands.outcome import Outcome
    from simulator.compiled_casts import CompiledCast

SUMMARY = "casts of C and LLVM IR as the TPC compiler makes them: chains, values, assembly"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `compiled`."""
    add = parser.add_argument
    add("src", metavar="SRC", nargs="?", help="vector type or format of the argument")
    add("dst", metavar="DST", nargs="?", help="vector type or format of the result")
    add("values", metavar="VALUE", nargs="*", help="number, nan, inf, -inf, or 0x bits")
    add("--target", metavar="T", required=True, help="a TPC generation, or the path of a description")
    add("--form", metavar="F", default="as", help="as (default), implicit, explicit, reinterpret, ir")
    add(
        "--rounding",
        metavar="M",
        help="mode of as_T(x, mode): SW_RHNE, SW_RZ, SW_RU, SW_RD, SW_SR, SW_CSR, SW_RHAZ, SW_SR_RNE; a path has some",
    )
    add(
        "--reading",
        metavar="R",
        default="compiler",
        help="whose chain to follow: compiler (default), document, or, with --order scalar, scalar",
    )
    add(
        "--order",
        metavar="O",
        default="linear",
        help="of the result: linear (default), swizzle, lane, scalar",
    )
    add("--emit", action="store_true", help="print the assembly of the cast")
    add("--table", action="store_true", help="print the table of C-level casts of the target as Markdown")


def execute(options: Namespace) -> Outcome:
    """Make the cast, run it on the values.

    Raises:
        ReadError: what was typed: unknown type, form, mode or target, no number, no code.
        IllegalError: a pair, mode, number of elements or order that the target or the form does not have.
    """
    from isa.errors import ReadError  # noqa: PLC0415
    from simulator.compiled_casts import compile_cast  # noqa: PLC0415

    if options.table:
        if options.src is not None:
            raise ReadError("--table shows all casts of a target; SRC and DST do not go with it")
        return _table(options.target)
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
    return _emitted(cast) if options.emit else _compared(cast, options.values)


def _compared(cast: CompiledCast, texts: list[str]) -> Outcome:
    """Show the path, the results of the values and where accounts differ."""
    from simulator.commands.cast_values import read_value  # noqa: PLC0415
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.compiled_casts import compare, source_format  # noqa: PLC0415
    from simulator.reports.compiled import compiled_document  # noqa: PLC0415

    fmt = source_format(cast)
    sources = [read_value(text.strip(), fmt) for text in texts]
    found = compare(cast, [source.code for source in sources])

    def text(_: int) -> Any:
        from simulator.reports.compiled_text import compiled_text  # noqa: PLC0415 - rich, only if printed

        return compiled_text(found, sources)

    return Outcome(compiled_document(found, sources), text)


def _emitted(cast: CompiledCast) -> Outcome:
    """Show the assembly of one vector."""
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.reports.compiled import cast_document  # noqa: PLC0415
    from simulator.reports.listing import plain_text  # noqa: PLC0415

    assembly = cast.kernel.text()
    return Outcome({**cast_document(cast), "assembly": assembly}, lambda _: plain_text(assembly.rstrip("\n")))


def _table(target: str) -> Outcome:
    """Show the C-level casts of a generation."""
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.compiled_casts import cast_table, tpc_target  # noqa: PLC0415
    from simulator.reports.compiled import table_document  # noqa: PLC0415

    table = cast_table(tpc_target(target))

    def text(_: int) -> Any:
        from simulator.reports.compiled_text import table_text  # noqa: PLC0415

        return table_text(table)

    return Outcome(table_document(table), text)
