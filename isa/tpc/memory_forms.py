"""Instruction table: loads and stores of local memory, global memory and tensors.

Source: docs/reference/tpc.md section 7.1, table of memory instructions. In the STORE slot the destination of a load or
an address is still the role `dest`; the encoding puts it into another field there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product

from castsim.isa.tpc.dialect import Feature
from castsim.isa.tpc.forms import (
    TARGET_SPELLINGS,
    Form,
    Half,
    MemoryOperation,
    OperandSpec,
    Predication,
    Show,
    Style,
    Switch,
    Value,
    flag,
    operand,
)
from castsim.isa.tpc.program import TpcInstruction

_LOAD, _STORE = 0, 3
_VECTOR = Predication.VECTOR
_HALVES = (None, Half.LOW, Half.HIGH)
_MMIO = flag("mmio")
_TENSORS = 15  # the field holds five bits; no generation has more than 16 tensors

# ----------------------------------------------------------------------------------------------------- local memory

_ADDRESS = (operand("src_a", "S imm"),)
_TWO_PARTS = (
    (operand("src_a", "S"), operand("src_b", "S imm")),
    (operand("src_a", "imm"), operand("src_b", "S")),
)


def _ending(half: Half | None) -> str:
    """Return the ending of a mnemonic that accesses half a vector."""
    return "" if half is None else f"_{half.value}"


def _local(half: Half | None) -> tuple[Form, ...]:
    """Rows of LD_L_V and ST_L_V: one address, or two parts that are added."""
    one, two = (), (Feature.TWO_PART_ADDRESS,)
    addresses = ((_ADDRESS, one, two), *((parts, two, one) for parts in _TWO_PARTS))
    loads = tuple(
        Form(
            f"ld_l_v{_ending(half)}",
            (_LOAD,),
            (operand("dest", "V VP"), *address),
            predication=_VECTOR,
            needs=needs,
            lacks=lacks,
            memory=MemoryOperation.VECTOR_LOAD,
            half=half,
        )
        for address, needs, lacks in addresses
    )
    stores = tuple(
        Form(
            f"st_l_v{_ending(half)}",
            (_STORE,),
            (*address, operand("src_c", "V VP")),
            vector_predicate=Feature.MASKED_STORE,
            needs=needs,
            lacks=lacks,
            memory=MemoryOperation.VECTOR_STORE,
            half=half,
        )
        for address, needs, lacks in addresses
    )
    return loads + stores


_SCALAR_LOCAL = (
    Form(
        "ld_l",
        (_LOAD,),
        (operand("dest", "S SP"), operand("src_a", "S imm")),
        (_MMIO, flag("lock")),
        memory=MemoryOperation.SCALAR_LOAD,
    ),
    Form(
        "st_l",
        (_STORE,),
        (operand("src_a", "S imm"), operand("src_c", "S SP")),
        (_MMIO, flag("unlock")),
        memory=MemoryOperation.SCALAR_STORE,
    ),
)

# ---------------------------------------------------------------------------------------------------- global memory

_NUMBER = operand("tensor", "imm", limit=_TENSORS)
_COORDINATES = operand("src_a", "I")
_ELEMENT_TYPE = Switch(
    "dt", Style.NAMED, "i8", Show.ALWAYS, words=tuple(TARGET_SPELLINGS.items()), needs=Feature.ADDRESS_ELEMENT_TYPE
)
_OVERRIDE = flag("dt_override", Feature.ADDRESS_ELEMENT_TYPE)


def _gen_addr(slot: int, register_role: str) -> tuple[Form, ...]:
    tensors = (_NUMBER, operand("tensor", f"@{register_role}"))
    return tuple(
        Form(
            "gen_addr",
            (slot,),
            (operand("dest", "AD"), tensor, _COORDINATES),
            (_ELEMENT_TYPE, _OVERRIDE),
            memory=MemoryOperation.ADDRESS,
        )
        for tensor in tensors
    )


_STEPS = tuple(f"inc_{1 << power}" for power in range(9))
_ELEMENT_SWITCHES = (
    Switch("inc", Style.WORD, "none", words=tuple((step, step) for step in _STEPS), needs=Feature.HARDWARE_REGISTERS),
    flag("bv64", Feature.HARDWARE_REGISTERS),
    flag("ev_hint", Feature.HARDWARE_REGISTERS),
)
"""Address register moved on by so many bytes, 64 bits at once, a hint to the cache. Source: the vendor's tests."""

_GLOBAL = (
    *_gen_addr(_LOAD, "load_number"),
    *_gen_addr(_STORE, "store_number"),
    Form(
        "ld_g",
        (_LOAD,),
        (operand("dest", "S SP V"), operand("src_a", "AD")),
        _ELEMENT_SWITCHES,
        predication=_VECTOR,
        memory=MemoryOperation.ELEMENT_LOAD,
    ),
    Form(
        "ld_g",
        (_LOAD,),
        (operand("mask", "mask"), operand("dest", "I"), operand("src_a", "AD")),
        _ELEMENT_SWITCHES,
        needs=(Feature.INDEXED_GLOBAL_LOAD,),
        memory=MemoryOperation.ELEMENT_LOAD,
    ),
    Form(
        "st_g",
        (_STORE,),
        (operand("src_a", "AD"), operand("src_c", "S SP")),
        _ELEMENT_SWITCHES,
        memory=MemoryOperation.ELEMENT_STORE,
    ),
)

# ---------------------------------------------------------------------------------------------------------- tensors


_PACK_WIDTHS, _UNPACK_WIDTHS = "pack_dt", "unpack_dt"
_UNTYPED_PACK = (32, 16)
"""Widths of a packed store on generations without a word for them. Source: docs/reference/tpc.md section 2.6."""


def packed_widths(instruction: TpcInstruction) -> tuple[int, int] | None:
    """Return the bits of the wide and the narrow elements of a packed store or an unpacked load.

    None for plain accesses, also where the text has a word of widths without `pack` or `unpack`.
    """
    for switch, widths in (("pack", _PACK_WIDTHS), ("unpack", _UNPACK_WIDTHS)):
        if instruction.switch(switch):
            word = instruction.switch(widths)
            first, second = _UNTYPED_PACK if word is None else map(int, re.findall(r"\d+", str(word)))
            return max(first, second), min(first, second)
    return None


def _widths(name: str, prefix: str, pairs: tuple[str, ...], needs: Feature) -> Switch:
    """The switch that says from which width to which; it is written before `pack` or `unpack`."""
    words = tuple((f"{prefix}_{pair}", f"{prefix}_{pair}".upper()) for pair in pairs)
    return Switch(name, Style.WORD, words[0][0], words=words, needs=needs)


_DIRECT = flag("direct", Feature.DIRECT_ACCESS)
_LOAD_SWITCHES = (
    _widths(_UNPACK_WIDTHS, "unpck", ("16_to_32", "8_to_16", "8_to_32", "4_to_8"), Feature.UNPACKED_LOAD),
    flag("unpack", Feature.UNPACKED_LOAD),
    flag("l0cs", Feature.UNPACKED_LOAD),
    _DIRECT,
)
_STORE_SWITCHES = (
    _widths(_PACK_WIDTHS, "pck", ("32_to_16", "16_to_8", "32_to_8", "8_to_4"), Feature.TYPED_PACK),
    flag("pack", Feature.PACKED_STORE),
    _DIRECT,
)
_SHOWN = flag("partial")
# The vendor's disassembler leaves the word away on loads whose range is a scalar register.
_HIDDEN = Switch("partial", Style.FLAG, 0, Show.NEVER)
_MERGE = flag("rmw_sel")


@dataclass(frozen=True, slots=True)
class _Variant:
    """The additions of one spelling of a tensor access to the plain one."""

    operands: tuple[OperandSpec, ...]
    implied: tuple[tuple[str, Value], ...]
    switches: tuple[Switch, ...] = ()
    needs: tuple[Feature, ...] = ()
    lacks: tuple[Feature, ...] = ()


def _places(register_role: str) -> tuple[_Variant, ...]:
    """The ways to name what is accessed: tensor by number or register, or an address in two scalars."""
    by_address = (operand("src_a", "S"), operand("src_b", "S"))
    return (
        _Variant((_NUMBER, _COORDINATES), (("direct", 0),)),
        _Variant((operand("tensor", f"@{register_role}"), _COORDINATES), (("direct", 0),)),
        _Variant(by_address, (("direct", 1),), needs=(Feature.DIRECT_ACCESS,)),
    )


def _load_ranges(half: Half | None) -> tuple[_Variant, ...]:
    """Whole or partial loads; the word `partial` is written only where the range is a hardware register."""
    last = (operand("range", "@load_range"),)
    needs = (Feature.PARTIAL_HALF_ACCESS,) if half else ()
    named = Feature.HARDWARE_REGISTERS
    return (
        _Variant((), (("partial", 0),), (_SHOWN,)),
        _Variant(last, (("partial", 1),), (_SHOWN,), (*needs, named)),
        _Variant(last, (("partial", 1),), (_HIDDEN,), needs, (named,)),
    )


def _store_ranges(half: Half | None) -> tuple[_Variant, ...]:
    """Whole, partial and read-modify-write stores; halves cannot be partial."""
    merge, last = operand("rmw", "@store_merge"), operand("range", "@store_range")
    found = []
    for merges, is_partial in product((0, 1), (0,) if half else (0, 1)):
        operands = (merge,) * merges + (last,) * is_partial
        found.append(_Variant(operands, (("partial", is_partial), ("rmw_sel", merges)), (_SHOWN, _MERGE)))
    return tuple(found)


def _ld_tnsr(half: Half | None, slot: int, *needs: Feature) -> tuple[Form, ...]:
    return tuple(
        Form(
            f"ld_tnsr{_ending(half)}",
            (slot,),
            (operand("dest", "V VP"), *place.operands, *part.operands),
            (*part.switches, *_LOAD_SWITCHES),
            vector_predicate=Feature.VECTOR_PREDICATED_LOAD,
            needs=(*needs, *place.needs, *part.needs),
            lacks=part.lacks,
            implied=(*part.implied, *place.implied),
            memory=MemoryOperation.TENSOR_LOAD,
            half=half,
        )
        for place, part in product(_places("load_number"), _load_ranges(half))
    )


def _st_tnsr(half: Half | None) -> tuple[Form, ...]:
    return tuple(
        Form(
            f"st_tnsr{_ending(half)}",
            (_STORE,),
            (*place.operands, operand("src_c", "V VP"), *part.operands),
            (*part.switches, *_STORE_SWITCHES),
            vector_predicate=Feature.MASKED_STORE,
            needs=place.needs,
            implied=(*part.implied, *place.implied),
            memory=MemoryOperation.TENSOR_STORE,
            half=half,
        )
        for place, part in product(_places("store_number"), _store_ranges(half))
    )


FORMS: tuple[Form, ...] = (
    *_SCALAR_LOCAL,
    *(form for half in _HALVES for form in _local(half)),
    *_GLOBAL,
    *(form for half in _HALVES for form in _ld_tnsr(half, _LOAD)),
    *(form for half in _HALVES for form in _ld_tnsr(half, _STORE, Feature.LOAD_IN_STORE_SLOT)),
    *(form for half in _HALVES for form in _st_tnsr(half)),
)
"""All rows of this module."""
