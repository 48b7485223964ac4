"""The commands `asm` and `disasm`: assemble text to a binary or to canonical text, and the reverse."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.text import Text

from castsim.commands.kernels import KernelOptions, compiled_of
from castsim.commands.option_parsers import machine_number, options_as, refuse
from castsim.commands.outcome import CommandOutcome, plain, write_out
from castsim.isa.errors import IllegalError, ReadError, Span
from castsim.isa.reading import ASSEMBLY_SUFFIXES, BINARY_SUFFIXES, KERNEL_SUFFIX, STDIN, TILE_SUFFIX, read_bytes
from castsim.isa.tpc.parser import canonical_text, parse, target_declared_in
from castsim.machines.vliw import tpc_target
from castsim.reports.documents import CommandDocument, Keys, says
from castsim.reports.schemas.keys import Bundles, Bytes, Hexadecimal
from castsim.running.languages import GRAPHS, C, language_module
from castsim.targets.loader import load_target
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_binary.assembler import (
    AssembledBinary,
    Disassembly,
    ListedLine,
    assemble,
    disassemble,
    program_bytes,
)
from castsim.tools.tpc_binary.encoding_tables import Encoding, encoding_of


class Assembled(CommandDocument, name="asm"):
    """An assembled program."""

    file: str = says("The program.")
    target: str = says("Name of the target.")
    bundles: Bundles = says("Its length.")
    size_bytes: Bytes = says("Size of the code.", lambda assembled: len(assembled.code))
    code: Hexadecimal = says("The code.")
    facts_assumed: list[str] = says(
        "Positions of the encoding that are assumed, because no source states them.", "assumed"
    )
    output: str | None = says("The output file; null if none was written.")


class CanonicalText(CommandDocument, name="asm-text"):
    """With `--text`: the canonical text of a program."""

    file: str = says("The program.")
    target: str = says("Name of the target.")
    text: str = says("The text.")
    output: str | None = says("The output file; null if none was written.")


class DisassembledLine(Keys):
    """A bundle of a binary."""

    address: int = says("Its address in bytes.")
    code: Hexadecimal = says("Its code.")
    text: str = says("Its text.")
    labels: list[str] = says("Labels before it.")
    directives: list[str] = says("Directives before it.")
    known: bool = says("Whether it is a bundle of the target.")
    remark: str | None = says("A remark; null if there is none.")


class Disassembled(CommandDocument, name="disasm"):
    """A disassembled binary."""

    file: str = says("The binary.")
    target: str = says("Name of the target.")
    size_bytes: Bytes = says("Size of the code.", lambda binary: sum(len(line.code) for line in binary.lines))
    unknown_bundles: Bundles = says(
        "Number of lines that are not bundles of the target.",
        lambda binary: sum(not line.known for line in binary.lines),
    )
    lines: list[DisassembledLine] = says("The bundles.")
    end_labels: list[str] = says("Labels after the last bundle.")
    output: str | None = says("The output file of the text; null if none was written.")


# Files of TPC assembly and binaries, as the commands read and write them, and the targets that run them.


def read_assembly(name: str, command: str, tiles: str) -> tuple[str, str]:
    """Return the name of an assembly file for messages, and its text.

    `tiles` is the remark for a tile program, which this command does not accept.

    Raises:
        ReadError: the file is missing, unreadable or not text, or its suffix is that of another language.
    """
    legal = [f"a {suffix} file" for suffix in ASSEMBLY_SUFFIXES]
    if name.endswith(TILE_SUFFIX):
        raise ReadError(f"castsim {command} takes TPC assembly; the tile program '{name}' {tiles}", legal=legal)
    if name.endswith(GRAPHS):
        raise ReadError(f"castsim {command} takes TPC assembly; '{name}' is a graph for `castsim graph`", legal=legal)
    file, data = named_bytes(name)
    try:
        return file, data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ReadError(
            f"program '{file}': byte {error.start} is not UTF-8 text; is it a binary? `castsim disasm` reads those",
            legal=legal,
        ) from None


def named_bytes(name: str) -> tuple[str, bytes]:
    """Return the name of a file for messages, and its bytes; `-` is standard input.

    Raises:
        ReadError: the file is missing, unreadable or too large.
    """
    return "<stdin>" if name == STDIN else name, read_bytes(name, "program")


def encoded_target(name: str, span: Span | None = None) -> tuple[VliwTarget, Encoding]:
    """Return a target that runs TPC programs, and its encoding; `span` is the position that names it in a text.

    Raises:
        ReadError, TargetDataError: see `castsim.targets.loader.load_target`.
        IllegalError: the target does not run TPC programs.
    """
    try:
        loaded = load_target(name)
    except (ReadError, IllegalError) as error:
        raise (error if span is None else error.at(span)) from None
    target = tpc_target(loaded, f"{loaded.name} has no TPC assembly", span)
    return target, encoding_of(target)


def execute(options: Namespace) -> CommandOutcome:
    """Assemble the text, or rewrite it in canonical form.

    Raises:
        ReadError, IllegalError: an option or the text is wrong, or an instruction has no encoding.
        TargetDataError: a bad target description.
    """
    kernel = options_as(KernelOptions, options)
    if options.file.endswith(KERNEL_SUFFIX):
        source, compiled = compiled_of(options.file, options.target, kernel)
        shown_text = language_module(C).kernel_text(compiled, in_order=options.text)
        written = write_out(options.out, shown_text.encode(), options.file)
        return CommandOutcome(
            CanonicalText.of(file=source.file, target=compiled.target, text=shown_text, output=written),
            lambda _: plain(shown_text.rstrip("\n")) if written is None else f"{written}: assembly",
        )
    refuse(kernel.headers, options.file, (KERNEL_SUFFIX,))
    file, text = read_assembly(options.file, "asm", "is text for `castsim run`, and has no binary form")
    target, encoding = _target(options.target, text, file)
    if options.text:
        canonical = canonical_text(text, target.dialect, file)
        written = write_out(options.out, canonical.encode(), options.file)
        return CommandOutcome(
            CanonicalText.of(file=file, target=target, text=canonical, output=written),
            lambda _: plain(canonical) if written is None else f"{written}: canonical text",
        )
    assembled = assemble(parse(text, target.dialect, file), encoding)
    written = write_out(options.out, assembled.code, options.file)
    document = Assembled.of(assembled, file=file, target=target, output=written)

    def shown(_: int) -> Any:
        return assembled_text(assembled, disassemble(assembled.code, encoding, file), target.name, written)

    return CommandOutcome(document, shown)


def _target(given: str | None, text: str, file: str) -> tuple[VliwTarget, Encoding]:
    """Return the requested target, or else the one that the text declares, and its encoding."""
    if given is not None:
        return encoded_target(given)
    declared = target_declared_in(text, file)
    if declared is None:
        raise ReadError(f"program '{file}' declares no target; choose one with --target")
    return encoded_target(declared.name, declared.span)


def execute_disassembly(options: Namespace) -> CommandOutcome:
    """Disassemble the file.

    Raises:
        ReadError: an option is wrong, the file has the wrong size, or the ELF file is damaged or for another machine.
        TargetDataError: a bad target description.
    """
    more = () if options.machine is None else (machine_number(options.machine),)
    target, encoding = encoded_target(options.target)
    if options.file.endswith((*ASSEMBLY_SUFFIXES, TILE_SUFFIX, *GRAPHS)):
        raise ReadError(
            f"castsim disasm takes a TPC binary; '{options.file}' does not have the suffix of one; try `castsim run`",
            legal=("a raw binary", "an ELF file", *(f"*{suffix}" for suffix in BINARY_SUFFIXES)),
        )
    file, data = named_bytes(options.file)
    if not data:
        raise ReadError(f"'{file}' is empty", legal=("a raw binary", "an ELF file"))
    disassembly = disassemble(program_bytes(data, (*encoding.machines, *more), file), encoding, file)
    written = write_out(options.out, source_text(disassembly, target.name).encode(), options.file)

    def shown(_: int) -> Any:
        if options.text and written is None:
            return plain(source_text(disassembly, target.name))
        return disassembled_text(disassembly, file, target.name, written)

    return CommandOutcome(Disassembled.of(disassembly, file=file, target=target, output=written), shown)


# Listings, in the style of objdump.


def assembled_text(assembled: AssembledBinary, listing: Disassembly, target: str, output: Path | None) -> Text:
    """Return the listing of an assembled program, or its output file; also which positions are assumed."""
    if output is None:
        lines = [*_listing(listing)]
    else:
        lines = [f"{output}: {assembled.bundles} bundles for {target}, {len(assembled.code)} bytes"]
    if assembled.assumed:
        lines += ["", "positions that no source states:", *(f"  {item}" for item in assembled.assumed)]
    return Text("\n".join(lines), no_wrap=True)


def disassembled_text(disassembly: Disassembly, file: str, target: str, output: Path | None) -> Text:
    """Return the listing of a binary, or the output file of its text; also how much of it is unknown."""
    lines = [f"{file}: {target}", *_listing(disassembly)] if output is None else [f"{output}: assembly for {target}"]
    unknown = sum(not line.known for line in disassembly.lines)
    if unknown:
        lines += ["", f"unknown: {unknown} of {len(disassembly.lines)} lines are not bundles of {target}"]
    return Text("\n".join(lines), no_wrap=True)


def source_text(disassembly: Disassembly, target: str) -> str:
    """Return text that names its target and assembles to the same bytes."""
    return f"// castsim: target {target}\n{disassembly.text()}"


def _listing(disassembly: Disassembly) -> Iterator[str]:
    """Yield a line per bundle: address, bytes, text; labels and directives are on separate lines."""
    width = max((2 * len(line.code) for line in disassembly.lines), default=0)
    for line in disassembly.lines:
        yield from (f"\n{line.address:08x} <{label}>:" for label in line.labels)
        yield from (f"{'':10}{directive}" for directive in line.directives)
        yield f"{line.address:8x}: {_words(line):{width + width // 16}} {_text(line)}"
    end = sum(len(line.code) for line in disassembly.lines)
    yield from (f"\n{end:08x} <{label}>:" for label in disassembly.end_labels)


def _words(line: ListedLine) -> str:
    """Return the bytes in order, in groups of eight."""
    digits = line.code.hex()
    return " ".join(digits[start : start + 16] for start in range(0, len(digits), 16))


def _text(line: ListedLine) -> str:
    text = line.text if line.known else "(unknown)"
    return text if line.remark is None else f"{text}  // {line.remark}"
