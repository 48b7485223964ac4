"""The generated parts of the pages in `docs/`, by the names that the pages use, and the data files beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from makers.page_parts import api, assembly, command_line, glossary, measured, micro, targets, tiles
from project.test_rooms import PICTURE
from tools.lowering.conformance_record import summary

MADE: Mapping[str, Callable[[], str]] = {
    "api": api.names,
    "commands": command_line.commands,
    "conformance": summary,
    "causes": glossary.causes,
    "columns": glossary.columns,
    "formats": tiles.formats,
    "tile-operations": tiles.operations,
    "tile-casts": tiles.casts,
    "modes": tiles.modes,
    "rooms": lambda: f"```text\n{PICTURE.strip()}\n```",
    "measured-advice": measured.advice,
    "measured-casts": measured.casts,
    "measured-engines": measured.engines,
    "measured-vectors": measured.vectors,
    "measured-hostile": measured.hostile,
    "measured-kernels": measured.kernels,
    "micro-logical": micro.logical,
    "micro-words": micro.words,
    "tpc-declarations": assembly.declarations,
    "tpc-instructions": assembly.instructions,
    "target-keys": targets.keys,
    "target-options": targets.options,
    "target-statuses": targets.statuses,
}
"""What makes the text of each name."""

FILES: Mapping[str, Callable[[], str]] = {
    "micro-conversions.csv": micro.conversion_file,
    "micro-logical.csv": micro.logical_file,
    "micro-operations.csv": micro.operation_file,
    "micro-words.csv": micro.word_file,
    "pto-casts.csv": tiles.cast_file,
    "pto-operations.csv": tiles.operation_file,
    "target-keys.csv": targets.key_file,
    "target-limits.csv": targets.limit_file,
    "target-options.csv": targets.option_file,
    "tpc-generations.csv": assembly.generation_file,
    "tpc-instructions.csv": assembly.instruction_file,
}
"""What makes the text of each file in `docs/reference`."""
