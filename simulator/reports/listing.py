"""Assembled and disassembled programs: JSON documents, and listings in the manner of objdump."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from castsim.isa.tpc.encoding import AssembledBinary, Disassembly, Line
from castsim.reports.documents import Document, document, json_of


def assembled_document(file: str, target: str, assembled: AssembledBinary, output: Path | None) -> Document:
    """Return the JSON of an assembled program."""
    return {
        "file": file,
        "target": target,
        "bundles": assembled.bundles,
        "size_bytes": len(assembled.code),
        **document(assembled, "code", "assumed", assumed="facts_assumed"),
        "output": json_of(output),
    }


def assembled_text(assembled: AssembledBinary, listing: Disassembly, target: str, output: Path | None) -> Text:
    """Return the listing of an assembled program, or where it was written; and which positions are assumed."""
    if output is None:
        lines = [*_listing(listing)]
    else:
        lines = [f"{output}: {assembled.bundles} bundles for {target}, {len(assembled.code)} bytes"]
    if assembled.assumed:
        lines += ["", "positions that no source states:", *(f"  {item}" for item in assembled.assumed)]
    return plain_text("\n".join(lines))


def disassembled_document(found: Disassembly, file: str, target: str, output: Path | None) -> Document:
    """Return the JSON of a disassembled program."""
    return {
        "file": file,
        "target": target,
        "size_bytes": sum(len(line.code) for line in found.lines),
        "unknown_bundles": sum(not line.known for line in found.lines),
        "lines": [
            document(line, "address", "code", "text", "labels", "directives", "known", "remark") for line in found.lines
        ],
        **document(found, "end_labels"),
        "output": json_of(output),
    }


def disassembled_text(found: Disassembly, file: str, target: str, output: Path | None) -> Text:
    """Return the listing of a binary, or where its text was written; and how much of it is unknown."""
    lines = [f"{file}: {target}", *_listing(found)] if output is None else [f"{output}: assembly for {target}"]
    unknown = sum(not line.known for line in found.lines)
    if unknown:
        lines += ["", f"unknown: {unknown} of {len(found.lines)} lines are not bundles of {target}"]
    return plain_text("\n".join(lines))


def source_text(found: Disassembly, target: str) -> str:
    """Return text that assembles to the same bytes and names its target."""
    return f"// castsim: target {target}\n{found.text()}"


def plain_text(text: str) -> Text:
    """Return text that is shown as it is, however wide."""
    return Text(text.removesuffix("\n"), no_wrap=True)


def _listing(found: Disassembly) -> Iterator[str]:
    """Yield a line per bundle: address, bytes, text; labels and directives on lines of their own."""
    width = max((2 * len(line.code) for line in found.lines), default=0)
    for line in found.lines:
        yield from (f"\n{line.address:08x} <{label}>:" for label in line.labels)
        yield from (f"{'':10}{directive}" for directive in line.directives)
        yield f"{line.address:8x}: {_words(line):{width + width // 16}} {_text(line)}"
    end = sum(len(line.code) for line in found.lines)
    yield from (f"\n{end:08x} <{label}>:" for label in found.end_labels)


def _words(line: Line) -> str:
    """Return the bytes in their order, in groups of eight."""
    digits = line.code.hex()
    return " ".join(digits[start : start + 16] for start in range(0, len(digits), 16))


def _text(line: Line) -> str:
    text = line.text if line.known else "(unknown)"
    return text if line.remark is None else f"{text}  // {line.remark}"
