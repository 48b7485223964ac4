"""The generated parts of the pages in `docs/`, by the names that the pages use."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance_record import summary
from json_schemas import table

from page_parts import api, assembly, command_line, glossary, measured, micro, targets, tiles

MADE: Mapping[str, Callable[[], str]] = {
    "api": api.names,
    "commands": command_line.commands,
    "shared-options": command_line.shared_options,
    "conformance": summary,
    "documents": table,
    "causes": glossary.causes,
    "columns": glossary.columns,
    "formats": tiles.formats,
    "tile-operations": tiles.operations,
    "tile-casts": tiles.casts,
    "modes": tiles.modes,
    "measured-casts": measured.casts,
    "measured-engines": measured.engines,
    "measured-hostile": measured.hostile,
    "measured-kernels": measured.kernels,
    "micro-operations": micro.operations,
    "micro-conversions": micro.conversions,
    "micro-logical": micro.logical,
    "micro-words": micro.words,
    "tpc-declarations": assembly.declarations,
    "tpc-instructions": assembly.instructions,
    "tpc-generations": assembly.generation_table,
    "target-keys": targets.keys,
    "target-options": targets.options,
    "target-limits": targets.limits,
    "target-statuses": targets.statuses,
}
"""What makes the text of each name."""
