"""The command `compiled`: show how the TPC compiler makes casts of C and LLVM IR: chains, values, assembly."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from castsim.commands.cast import read_value
from castsim.commands.option_parsers import given_of, refuse_given
from castsim.commands.outcome import CommandOutcome, plain, stacked
from castsim.isa.errors import ReadError
from castsim.isa.reading import read_text
from castsim.tools.compiled.cast_comparison import CompiledResults, casts_of_text, compare, source_format
from castsim.tools.compiled.compiled_casts import compile_cast, tpc_target
from castsim.tools.compiled.report import (
    CompiledAssembly,
    CompiledHead,
    CompiledText,
    CompiledValues,
    compiled_document,
    compiled_text,
    table_document,
    table_text,
)
from castsim.tools.tpc_compiler.c_table import cast_table

if TYPE_CHECKING:
    from castsim.tools.compiled.compiled_casts import CompiledCast


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
        why = "does not apply to LLVM IR text, which determines it"
        given = given_of(options, "form", "rounding", "reading")
        refuse_given(given, why, usual=("as", "compiler"), legal=("--order",))
        texts = [options.dst, *options.values] if options.dst is not None else []
        return _text(options.src, options.target, options.order, texts, emit=options.emit)
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
        results = _compared(cast, options.values)
        document = {"schema_version": CompiledValues.VERSION, **compiled_document(results)}
        return CommandOutcome(document, lambda _: compiled_text(results))
    assembly = cast.kernel.text()  # of one vector
    document = {"schema_version": CompiledAssembly.VERSION, **CompiledHead.of(cast), "assembly": assembly}
    return CommandOutcome(document, lambda _: plain(assembly.rstrip("\n")))


def _compared(cast: CompiledCast, texts: list[str]) -> CompiledResults:
    """Return the results of a cast for values, and where the accounts differ."""
    fmt = source_format(cast)
    return compare(cast, [read_value(text.strip(), fmt) for text in texts])


def _text(file: str, target: str, order: str, texts: list[str], *, emit: bool) -> CommandOutcome:
    """Show the casts of an LLVM IR text, with the results for values."""
    text_casts = casts_of_text(read_text(file, "LLVM IR"), file, tpc_target(target), order)
    places = [
        {"line": text_cast.span.line, "column": text_cast.span.column, "written": text_cast.written}
        for text_cast in text_casts
    ]
    if emit:
        parts = [
            f"// {text_cast.span}: {text_cast.written}\n{text_cast.cast.kernel.text()}" for text_cast in text_casts
        ]
        casts = [{**location, **CompiledHead.of(text_cast.cast), "assembly": part} for location, text_cast, part in
                 zip(places, text_casts, parts, strict=True)]  # fmt: skip
        document = {"schema_version": CompiledText.VERSION, "casts": casts}
        return CommandOutcome(document, lambda _: plain("".join(parts).rstrip("\n")))
    results = [_compared(text_cast.cast, texts) for text_cast in text_casts]
    casts = [{**location, **compiled_document(result)} for location, result in zip(places, results, strict=True)]

    def text(_: int) -> Any:
        pairs = zip(text_casts, results, strict=True)
        return stacked(
            *(
                part
                for text_cast, result in pairs
                for part in (plain(f"{text_cast.span}: {text_cast.written}", no_wrap=False), compiled_text(result))
            )
        )

    return CommandOutcome({"schema_version": CompiledText.VERSION, "casts": casts}, text)


def _table(target: str) -> CommandOutcome:
    """Show the C-level casts of a generation."""
    table = cast_table(tpc_target(target))

    return CommandOutcome(table_document(table), lambda _: table_text(table))
