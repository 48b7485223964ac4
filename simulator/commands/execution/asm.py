"""The execution of `castsim asm`."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from castsim.commands.assembly_files import encoded_target, read_assembly, write_out
from castsim.commands.outcome import Outcome
from castsim.isa.errors import ReadError
from castsim.isa.tpc import canonical_text, parse, target_named_in
from castsim.isa.tpc.encoding import assemble, disassemble
from castsim.reports.listing import assembled_document, assembled_text, plain_text

if TYPE_CHECKING:
    pass


def execute(options: Namespace) -> Outcome:
    """Assemble, or rewrite as canonical text.

    Raises:
        ReadError, IllegalError: what was typed; the text; something in it that has no encoding.
        TargetDataError: a bad target description.
    """
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
