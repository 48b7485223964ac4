"""The execution of `castsim compiled`."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from castsim.commands.execution.cast import read_value
from castsim.commands.outcome import Outcome
from castsim.isa.errors import ReadError
from castsim.isa.reading import read_text
from castsim.reports.compiled import cast_document, compiled_document, table_document
from castsim.reports.listing import plain_text
from castsim.tpc_compiler.compiled_casts import cast_table, compare, compile_cast, source_format, tpc_target
from castsim.tpc_compiler.compiled_casts.ir_text import casts_of_text

if TYPE_CHECKING:
    from castsim.tpc_compiler.compiled_casts import CompiledCast

IR_SUFFIX = ".ll"


def execute(options: Namespace) -> Outcome:
    """Make the cast, run it on the values.

    Raises:
        ReadError: what was typed: unknown type, form, mode or target, no number, no code.
        IllegalError: a pair, mode, number of elements or order that the target or the form does not have.
    """
    if options.table:
        if options.src is not None:
            raise ReadError("--table shows all casts of a target; leave out SRC and DST")
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
    return _emitted(cast) if options.emit else _compared(cast, options.values)


def _compared(cast: CompiledCast, texts: list[str]) -> Outcome:
    """Show the path, the results of the values and where accounts differ."""
    fmt = source_format(cast)
    sources = [read_value(text.strip(), fmt) for text in texts]
    found = compare(cast, [source.code for source in sources])

    def text(_: int) -> Any:
        from castsim.reports.compiled import compiled_text  # noqa: PLC0415 - rich, only if printed

        return compiled_text(found, sources)

    return Outcome(compiled_document(found, sources), text)


def _text(options: Namespace) -> Outcome:
    """Show the casts of a text of LLVM IR; all positional arguments behind the file are values."""
    for name, usual in (("form", "as"), ("rounding", None), ("reading", "compiler")):
        if getattr(options, name) != usual:
            raise ReadError(f"--{name} does not go with a text of LLVM IR, which says it itself", legal=("--order",))
    text_read = read_text(options.src, "LLVM IR")
    found = casts_of_text(text_read, options.src, tpc_target(options.target), options.order)
    places = [{"line": each.span.line, "column": each.span.column, "written": each.written} for each in found]
    texts = [options.dst, *options.values] if options.dst is not None else []
    if options.emit:
        parts = [f"// {each.span}: {each.written}\n{each.cast.kernel.text()}" for each in found]
        casts = [{**place, **cast_document(each.cast), "assembly": part} for place, each, part in
                 zip(places, found, parts, strict=True)]  # fmt: skip
        return Outcome({"casts": casts}, lambda _: plain_text("".join(parts).rstrip("\n")))
    shown = [_compared(each.cast, texts) for each in found]
    casts = [{**place, **each.document} for place, each in zip(places, shown, strict=True)]

    def text(width: int) -> Any:
        from rich.console import Group  # noqa: PLC0415 - rich, only if printed
        from rich.text import Text  # noqa: PLC0415

        pairs = zip(found, shown, strict=True)
        return Group(*(part for one, two in pairs for part in (Text(f"{one.span}: {one.written}"), two.text(width))))

    return Outcome({"casts": casts}, text)


def _emitted(cast: CompiledCast) -> Outcome:
    """Show the assembly of one vector."""
    assembly = cast.kernel.text()
    return Outcome({**cast_document(cast), "assembly": assembly}, lambda _: plain_text(assembly.rstrip("\n")))


def _table(target: str) -> Outcome:
    """Show the C-level casts of a generation."""
    table = cast_table(tpc_target(target))

    def text(_: int) -> Any:
        from castsim.reports.compiled import table_text  # noqa: PLC0415 - rich, only if printed

        return table_text(table)

    return Outcome(table_document(table), text)
