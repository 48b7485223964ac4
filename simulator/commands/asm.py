"""FILE is TPC assembly; - reads standard input. The target defaults to the one that the text declares
(`// castsim: target NAME`). Without --out the listing is shown: address, bytes, canonical text.

examples:
  castsim asm kernel.tpc --target gaudi2 --out kernel.bin
  castsim asm kernel.tpc --target goya --text
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from isa.tpc.encoding import Encoding
    from simulator.commands.outcome import Outcome
    from targets.vliw import VliwTarget

SUMMARY = "TPC assembly to binary, or to canonical text"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `asm`."""
    add = parser.add_argument
    add("file", metavar="FILE", help="assembly text; - reads standard input")
    add("--target", metavar="T", help="name or path of a target description; default: the one the text declares")
    add("--text", action="store_true", help="print canonical text instead, one line per input line")
    add("--out", metavar="FILE", help="write the binary, or the text, to FILE")


def execute(options: Namespace) -> Outcome:
    """Assemble, or rewrite as canonical text.

    Raises:
        ReadError, IllegalError: what was typed; the text; something in it that has no encoding.
        TargetDataError: a bad target description.
    """
    from isa.errors import ReadError  # noqa: PLC0415
    from isa.tpc import canonical_text, parse, target_named_in  # noqa: PLC0415
    from isa.tpc.encoding import assemble, disassemble  # noqa: PLC0415
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.reports.listing import assembled_document, assembled_text, plain_text  # noqa: PLC0415

    file, text = read_assembly(options.file, "asm", "is text for `castsim run`, and has no binary form")
    name = options.target or target_named_in(text, file)
    if name is None:
        raise ReadError(f"program '{file}' declares no target; name one by --target")
    target, encoding = encoded_target(name)
    if options.text:
        canonical = canonical_text(text, target.dialect, file)
        written = write_out(options.out, canonical.encode(), options.file)
        return Outcome(
            {"file": file, "target": target.name, "text": canonical, "output": written},
            lambda _: plain_text(canonical) if written is None else f"{written}: canonical text",
        )
    assembled = assemble(parse(text, target.dialect, file), encoding)
    written = write_out(options.out, assembled.code, options.file)
    document = assembled_document(file, target.name, assembled, written)

    def shown(_: int) -> Any:
        return assembled_text(assembled, disassemble(assembled.code, encoding, file), target.name, written)

    return Outcome(document, shown)


def read_assembly(name: str, command: str, tiles: str) -> tuple[str, str]:
    """Return what to call a file of assembly in messages, and its text.

    `tiles` says what a tile program is to the command, which does not take one.

    Raises:
        ReadError: it is missing or unreadable, no text, or by its suffix in another language.
    """
    from isa.errors import ReadError  # noqa: PLC0415
    from simulator.commands.run import GRAPHS  # noqa: PLC0415
    from simulator.vliw.source import ASSEMBLY_SUFFIXES, TILE_SUFFIX  # noqa: PLC0415

    legal = [f"a {suffix} file" for suffix in ASSEMBLY_SUFFIXES]
    if name.endswith(TILE_SUFFIX):
        raise ReadError(f"castsim {command} takes TPC assembly; the tile program '{name}' {tiles}", legal=legal)
    if name.endswith(GRAPHS):
        raise ReadError(f"castsim {command} takes TPC assembly; '{name}' is a graph for `castsim graph`", legal=legal)
    file, data = read_bytes(name)
    try:
        return file, data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ReadError(
            f"program '{file}': byte {error.start} is no UTF-8 text; is it a binary? `castsim disasm` reads those",
            legal=legal,
        ) from None


def read_bytes(name: str) -> tuple[str, bytes]:
    """Return what to call a file in messages, and its content; `-` is standard input.

    Raises:
        ReadError: it is missing or unreadable.
    """
    import sys  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    from isa.errors import ReadError  # noqa: PLC0415

    try:
        if name == "-":
            return "<stdin>", sys.stdin.buffer.read()
        return name, Path(name).read_bytes()
    except OSError as error:
        raise ReadError(f"program '{name}': {error.strerror or error}") from None


def encoded_target(name: str) -> tuple[VliwTarget, Encoding]:
    """Return a target that runs TPC programs, and its encoding.

    Raises:
        ReadError, TargetDataError: as `targets.load_target`.
        IllegalError: a target of another kind.
    """
    from isa.errors import IllegalError  # noqa: PLC0415
    from simulator.vliw.source import targets_running  # noqa: PLC0415
    from targets import load_target  # noqa: PLC0415
    from targets.tpc_encoding import encoding_of  # noqa: PLC0415
    from targets.vliw import VliwTarget  # noqa: PLC0415

    target = load_target(name)
    if not isinstance(target, VliwTarget):
        raise IllegalError(f"{target.name} has no TPC assembly", legal=targets_running("tpc"))
    return target, encoding_of(target)


def write_out(name: str | None, data: bytes, source: str | None = None) -> Path | None:
    """Write a file, completely or not at all, and return its path; None if there is none to write.

    Raises:
        ReadError: it cannot be written, or is the one that `source` names.
    """
    from pathlib import Path  # noqa: PLC0415

    from isa.errors import ReadError  # noqa: PLC0415
    from simulator.files import whole_file  # noqa: PLC0415

    if name is None:
        return None
    path = Path(name)
    if source is not None and path.is_file() and path.resolve() == Path(source).resolve():
        raise ReadError(f"--out {name} would replace what was read")
    try:
        with whole_file(path) as file:
            file.write(data)
    except OSError as error:
        raise ReadError(f"--out {name}: {error.strerror or error}") from None
    return path
