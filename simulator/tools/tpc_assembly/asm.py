"""The commands `asm` and `disasm`: assemble text to a binary or to canonical text, and the reverse."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from castsim.commands.kernels import KernelOptions, compiled_of
from castsim.commands.option_parsers import machine_number, options_as, refuse
from castsim.commands.outcome import CommandOutcome, plain, write_out
from castsim.isa.errors import IllegalError, ReadError, Span
from castsim.isa.reading import ASSEMBLY_SUFFIXES, BINARY_SUFFIXES, KERNEL_SUFFIX, STDIN, TILE_SUFFIX, read_bytes
from castsim.isa.tpc.parser import canonical_text, parse, target_declared_in
from castsim.machines.vliw import tpc_target
from castsim.reports.documents import json_of
from castsim.running.languages import GRAPHS, C, language_module
from castsim.targets.loader import load_target
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_assembly.listing import Assembled, Disassembled, assembled_text, disassembled_text, source_text
from castsim.tools.tpc_binary.assembler import assemble, disassemble, program_bytes
from castsim.tools.tpc_binary.encoding_tables import Encoding, encoding_of

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
        document = {"file": source.file, "target": compiled.target.name, "text": shown_text, "output": json_of(written)}
        return CommandOutcome(
            document, lambda _: plain(shown_text.rstrip("\n")) if written is None else f"{written}: assembly"
        )
    refuse(kernel.headers, options.file, (KERNEL_SUFFIX,))
    file, text = read_assembly(options.file, "asm", "is text for `castsim run`, and has no binary form")
    target, encoding = _target(options.target, text, file)
    if options.text:
        canonical = canonical_text(text, target.dialect, file)
        written = write_out(options.out, canonical.encode(), options.file)
        return CommandOutcome(
            {"file": file, "target": target.name, "text": canonical, "output": json_of(written)},
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
