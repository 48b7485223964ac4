"""Construction of a target's binary encoding from its tables."""

from __future__ import annotations

import re
from collections.abc import Mapping

from castsim.isa.errors import TargetDataError
from castsim.isa.tpc.forms import Feature
from castsim.isa.tpc.instructions import opcodes
from castsim.isa.tpc.program import File, Slot
from castsim.targets.description import Status
from castsim.targets.vliw import PlacementRow, VliwTarget
from castsim.tools.tpc_binary.encoding_tables import CompressedLayout, Encoding, FieldBits, ItemPlacement, Layout

_SPLIT = re.compile(r"(\w+)\[(\d+):(\d+)\]")
_REGISTER = re.compile(r"([A-Z]+)(\d+)")


def encoding_of(target: VliwTarget) -> Encoding:
    """Return the tables for the assembler and disassembler of a target.

    Raises:
        TargetDataError: the description names a layout, slot, register file or code table that it lacks.
    """
    codes = target.encoding
    _check_features(target)
    size = codes.bundle_bytes
    tables: dict[str, Mapping[str, int]] = {
        "types": codes.types,
        "comparisons": codes.comparisons,
        "hardware_registers": codes.hardware_registers,
        "rounding": {word: mode.code for word, mode in target.convert_rounding.modes.items()},
        "integer_rounding": {word: mode.code for word, mode in target.integer_rounding.modes.items()},
    }
    return Encoding(
        dialect=target.dialect,
        bundle=_layout(target, codes.bundle, size),
        loop=_layout(target, codes.loop, size),
        halves=tuple(CompressedLayout(half.name, _layout(target, half.layout, size // 2)) for half in codes.halves),
        opcodes=opcodes(),
        placements=tuple(
            _placement(target, row, tables) for row in target.placements if row.variant in (None, *codes.variants)
        ),
        scalar_files=codes.scalar_files,
        vector_files=codes.vector_files,
        specials={name: _numbered(text) for name, text in codes.specials.items()},
        hardware_registers=codes.hardware_registers,
        immediate_code=codes.immediate,
        short=codes.short,
        machines=target.object_files.machines,
    )


def _check_features(target: VliwTarget) -> None:
    """Reject tables that contradict the list of features."""
    codes = target.encoding
    for feature, given in (
        (Feature.COMPRESSED_BUNDLES, bool(codes.halves)),
        (Feature.SHORT_IMMEDIATES, codes.short_immediates is not None),
    ):
        if target.features.has[feature] != given:
            verb = "has" if given else "lacks"
            raise TargetDataError(f"{target.name}: encoding {verb} {feature}, unlike features.has")


def _layout(target: VliwTarget, name: str, size_bytes: int) -> Layout:
    fields: dict[tuple[str, str], tuple[FieldBits, ...]] = {}
    for row in target.encoding_fields:
        if row.layout == name and row.variant in (None, *target.encoding.variants):
            split = _SPLIT.fullmatch(row.field)
            field, low = (split[1], int(split[3])) if split else (row.field, 0)
            part = FieldBits(row.start_bit, low, row.size_bits)
            fields[row.slot, field] = (*fields.get((row.slot, field), ()), part)
    if not fields:
        legal = dict.fromkeys(row.layout for row in target.encoding_fields)
        raise TargetDataError(f"{target.name}: encoding names layout '{name}', which has no fields", legal=legal)
    return Layout(name, size_bytes, fields)


def _slot(target: VliwTarget, word: str) -> Slot:
    try:
        return Slot[word.upper()]
    except KeyError:
        legal = [slot.name.lower() for slot in Slot]
        raise TargetDataError(f"{target.name}: the encoding tables name a slot '{word}'", legal=legal) from None


def _placement(target: VliwTarget, row: PlacementRow, tables: Mapping[str, Mapping[str, int]]) -> ItemPlacement:
    codes = row.codes
    if isinstance(codes, str):
        if codes not in tables:
            raise TargetDataError(f"{target.name}: placements: {row.item} names codes '{codes}'", legal=tables)
        codes = dict(tables[codes])
    return ItemPlacement(
        slots=tuple(_slot(target, word) for word in row.slots),
        mnemonics=row.mnemonics,
        item=row.item,
        field=row.field,
        low=row.low,
        bits=row.bits,
        codes=codes,
        assumed=row.status is Status.ASSUMED,
    )


def _numbered(text: str) -> tuple[File, int]:
    match = _REGISTER.fullmatch(text)
    assert match is not None
    return File(match[1]), int(match[2])
