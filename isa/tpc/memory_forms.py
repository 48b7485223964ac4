"""Instruction table: loads, stores, look-ups, moves and control flow.

Source: docs/reference/tpc.md section 7.1, table of memory instructions. In the STORE slot the destination of a load or
an address is still the role `dest`; the encoding puts it into another field there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from castsim.isa.tpc.dialect import Feature
from castsim.isa.tpc.forms import (
    TARGET_SPELLINGS,
    TYPES,
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


# Instruction table: look-ups, division, and instructions without an effect on values.
#
# Source: docs/reference/tpc.md section 5.5 (look-ups), 5.6 (division, events) and 7.1 (operands). The operands of UDIV
# in its forms are taken from the stage tables; of UDIV_4STEP the vendor's tests print the number of the step and the
# pair.

_TABLE_LOAD, _TABLE_SPU, _TABLE_VPU, _TABLE_STORE = 0, 1, 2, 3
_FUNCTION, _POINTER = operand("function", "imm", limit=511), operand("src_b", "S")
_GOYA_FUNCTION = operand("function", "imm", limit=63)
_INDICES = operand("src_a", "V")
_ROUNDED = (
    *("acos", "asin", "asinh", "cos", "div", "exp", "pow", "pow2", "reciprocal", "rsqrt", "sin", "sqrt", "tan", "tanh"),
)
_COMPUTES = Switch("computes", Style.WORD, None, Show.ALWAYS, words=tuple((name, name) for name in _ROUNDED))
"""castsim's own `rounded.f32 exp V1, V2, V2, V3, 0x100`: no instruction of the chip, and without an opcode."""


def _typed(*words: str, aliases: tuple[tuple[str, Value], ...] = ()) -> Switch:
    """The leading word: which entries the table has, and which part of them is wanted."""
    spelled = tuple((word.lower(), word) for word in words)
    return Switch("entries", Style.WORD, None, Show.ALWAYS, words=spelled, aliases=aliases)


_WORDS = _typed("BV32")
_TABLE_HALVES = _typed("BV32", "BV16")
_BYTES = _typed("BV32", "BV16", "BV8_0", "BV8_1")
_GOYA_PARTS = ("BV32", "BV16_LOW", "BV16_HIGH", *(f"BV8_{part}" for part in range(4)))
_GOYA_ALIASES: tuple[tuple[str, Value], ...] = (
    *(("f32", "bv32"), ("i32", "bv32"), ("f16_low", "bv16_low"), ("f16_high", "bv16_high")),
    *(("i16_low", "bv16_low"), ("i16_high", "bv16_high")),
    *((f"bv8_element_{part}", f"bv8_{part}") for part in range(4)),
)
_PARTS = _typed(*_GOYA_PARTS, aliases=_GOYA_ALIASES)
_BY_POINTER = flag("lut_ptr", Feature.LOOKUP_POINTER)
_OPTIONS = (flag("upper_half"), _BY_POINTER, flag("x2", Feature.LOOKUP_PAIRS), flag("sbcd", Feature.LOOKUP_PAIRS))


def _lookup(
    mnemonic: str,
    dest: str,
    table: OperandSpec,
    switches: tuple[Switch, ...],
    *needs: Feature,
    lacks: tuple[Feature, ...] = (),
    pointer: int | None = None,
) -> Form:
    return Form(
        mnemonic,
        (_TABLE_LOAD,),
        (replace(operand("dest", dest), by_first=dest == "D" and Feature.TYPED_LOOKUP in lacks), _INDICES, table),
        switches,
        needs=needs,
        lacks=lacks,
        implied=() if pointer is None else (("lut_ptr", pointer),),
    )


def _lookups() -> Iterator[Form]:
    typed, pointed = Feature.TYPED_LOOKUP, Feature.LOOKUP_POINTER
    for mnemonic, dest in (("lookup", "V"), ("lookup_c0", "V"), ("lookup_c1c2", "D")):
        yield _lookup(mnemonic, dest, _GOYA_FUNCTION, (_PARTS,), lacks=(typed,))
    for mnemonic, dest in (("lookup", "V"), ("lookup_1c", "V"), ("lookup_2c", "D")):
        one = mnemonic == "lookup"
        before, after = (_WORDS if one else switch for switch in (_TABLE_HALVES, _BYTES))
        yield _lookup(mnemonic, dest, _FUNCTION, (before, *_OPTIONS), typed, lacks=(pointed,), pointer=0)
        yield _lookup(mnemonic, dest, _FUNCTION, (after, *_OPTIONS), typed, pointed, pointer=0)
        yield _lookup(mnemonic, dest, _POINTER, (after, *_OPTIONS), typed, pointed, pointer=1)


_UNIT = Switch("unit", Style.WORD, None, Show.ALWAYS, words=(("spu", "spu"), ("vpu", "vpu")))
_DIVISION = (operand("dest", "S Z"), operand("src_a", "S"), operand("src_b", "S imm"))
_UNSIGNED = ("u32", "u16", "u8")
_TABLE_TENSORS = (operand("tensor", "imm", limit=15), operand("tensor", "@store_number"))


def _squeezed() -> Iterator[Form]:
    """Rows of the stores of a scalar and of the lanes under a predicate, whose count goes to a numbered counter."""
    merge = operand("rmw", "@store_merge")
    for tensor, merges in product(_TABLE_TENSORS, (0, 1)):
        last, implied = (merge,) * merges, (("rmw_sel", merges),)
        yield Form(
            "st_tnsr_sqz",
            (_TABLE_STORE,),
            (tensor, operand("counter", "imm", limit=7), _COORDINATES, operand("src_c", "V"), *last),
            (_MERGE,),
            vector_predicate=Feature.MASKED_STORE,
            needs=(Feature.SQUEEZED_STORE,),
            implied=implied,
        )
        yield Form(
            "st_tnsr_s",
            (_TABLE_STORE,),
            (tensor, _COORDINATES, operand("src_c", "S imm"), *last),
            (_MERGE,),
            needs=(Feature.SQUEEZED_STORE,),
            implied=implied,
        )


_SYNCHRONISED = (flag("dec", Feature.PREFETCH), flag("vpu"))

TABLE_FORMS: tuple[Form, ...] = (
    *_lookups(),
    Form("event", (_TABLE_LOAD, _TABLE_STORE), (operand("src_a", "S imm"),), (_UNIT,), needs=(Feature.TRACE_EVENTS,)),
    Form("prefetch", (_TABLE_LOAD,), (operand("src_a", "AD"),), needs=(Feature.PREFETCH,)),
    Form("aso", (_TABLE_STORE,), (), _SYNCHRONISED),
    *_squeezed(),
    *(
        Form(mnemonic, (_TABLE_SPU,), _DIVISION, types=_UNSIGNED, needs=(feature,), accumulator="src_c")
        for mnemonic, feature in (
            ("udiv_step", Feature.DIVISION_STEP),
            ("udiv_4step", Feature.FOUR_DIVISION_STEPS),
        )
    ),
    Form(
        "udiv_4step",
        (_TABLE_SPU,),
        (operand("steps", "imm", limit=15), operand("dest", "Z"), operand("src_a", "S")),
        types=_UNSIGNED,
        needs=(Feature.FOUR_DIVISION_STEPS,),
        accumulator="src_c",
    ),
    Form(
        "rounded",
        (_TABLE_VPU,),
        (operand("dest", "V"), *(operand(role, "V") for role in ("src_a", "src_b", "src_c")), _FUNCTION),
        (_COMPUTES,),
        types=("f32",),
        predication=Predication.VECTOR,
    ),
    Form("udiv", (_TABLE_SPU,), _DIVISION, types=_UNSIGNED, needs=(Feature.WHOLE_DIVISION,)),
)
"""All rows of this module."""


# Instruction table: MOV in all slots, moves of index registers, and control flow.
#
# Source: docs/reference/tpc.md section 7.1, tables of moves and of control. The spelling of LFSR moves is this
# project's; the encoding is an ordinary MOV.

_MOVE_LOAD, _MOVE_SPU, _MOVE_VPU, _MOVE_STORE = 0, 1, 2, 3
_ELEMENTS = TYPES[:-1]
_HARDWARE = "M0 M1 M2 M3 LD_TNSR_ID_REG ST_TNSR_ID_REG ST_RMW_REG LD_PARTIAL_REG ST_PARTIAL_REG"
_SQUEEZE_COUNTERS = " ".join(f"SQZ_CNTR{number}_{half}" for number in range(8) for half in ("LO", "HI"))


def _vector(dest: str, source: str, *needs: Feature, typed: bool = False, section: bool = False) -> Form:
    """One row of a move to or from V, D or VP, in the LOAD and VPU slots."""
    head: tuple[OperandSpec, ...] = (operand("section", "imm", limit=7),) if section else ()
    return Form(
        "mov",
        (_MOVE_LOAD, _MOVE_VPU),
        (*head, operand("dest", dest), operand("src_a", source)),
        types=_ELEMENTS if typed else (),
        drops_type=not typed,
        predication=_VECTOR,
        needs=needs,
    )


def _scalar(
    slots: tuple[int, ...], dest: str, source: str, *needs: Feature, typed: bool = False, mask: str = ""
) -> Form:
    """One row of a move between scalar, index, address or predicate registers."""
    head: tuple[OperandSpec, ...] = (operand("mask", mask),) if mask else ()
    return Form(
        "mov",
        slots,
        (*head, operand("dest", dest), operand("src_a", source)),
        types=_ELEMENTS if typed else (),
        drops_type=not typed,
        needs=needs,
    )


_REGISTER_MOVES = Feature.HARDWARE_REGISTERS
_BOTH = (_MOVE_LOAD, _MOVE_SPU)
# The register operands of these moves say that they are pairs; the switch may be left away and is printed.
_PAIR = Switch("x2", Style.FLAG, 1, Show.ALWAYS, numbers=(1,))

_MOV = (
    _vector("V", "V"),
    _vector("V", "S imm", typed=True),
    Form(
        "mov",
        (_MOVE_VPU,),
        (operand("dest", "D"), operand("src_a", "D")),
        (_PAIR,),
        drops_type=True,
        predication=_VECTOR,
        needs=(Feature.PAIR_MOVES,),
    ),
    _vector("VP", "VP SP S imm"),
    _vector("VP", "S imm", section=True),
    _vector("VP", "V", Feature.MASK_MOVES),
    _vector("V", "VP", Feature.MASK_MOVES),
    _vector("V", "LFSR LFSR_NO_CHANGE V_LANE_ID_32 V_LANE_ID_16 V_LANE_ID_8"),
    _vector("LFSR", "V"),
    _vector("V_CARRY", "VP", _REGISTER_MOVES),
    _vector("VP", "V_CARRY", _REGISTER_MOVES),
    _vector("ZP_REG", "V", _REGISTER_MOVES),
    _vector("V", "ZP_REG", _REGISTER_MOVES),
    _scalar(_BOTH, "S", "S imm S_LFSR S_LFSR_NO_CHANGE", typed=True),
    _scalar(_BOTH, "S", "PC", Feature.PROGRAM_COUNTER_MOVE),
    _scalar(_BOTH, "S_LFSR", "S", Feature.SCALAR_RESEED),
    _scalar(_BOTH, "SP", "S imm"),
    _scalar((_MOVE_SPU,), "SP", "SP"),
    _scalar(_BOTH, "I", "I S imm", mask="mask"),
    _scalar((_MOVE_SPU,), "I", "I S imm", _REGISTER_MOVES, mask="M0 M1 M2 M3"),
    _scalar(_BOTH, "AD", "AD", Feature.ADDRESS_MOVES),
    _scalar((_MOVE_SPU,), "AD", "Z", Feature.ADDRESS_MOVES),
    _scalar((_MOVE_SPU,), "Z", "AD", Feature.ADDRESS_MOVES),
    _scalar(_BOTH, _HARDWARE, "S", _REGISTER_MOVES),
    _scalar(_BOTH, "S", _HARDWARE, _REGISTER_MOVES),
    _scalar((_MOVE_SPU,), "DIV_STEP", "S", _REGISTER_MOVES),
    _scalar((_MOVE_SPU,), "S", "DIV_STEP", _REGISTER_MOVES),
    _scalar(_BOTH, _SQUEEZE_COUNTERS, "S", Feature.SQUEEZED_STORE),
    _scalar(_BOTH, "S", _SQUEEZE_COUNTERS, Feature.SQUEEZED_STORE),
    _scalar(_BOTH, "S_CARRY", "SP", _REGISTER_MOVES),
    _scalar(_BOTH, "SP", "S_CARRY", _REGISTER_MOVES),
)

_INDEX = (
    Form(
        "set_indx",
        (_MOVE_LOAD, _MOVE_SPU, _MOVE_STORE),
        (operand("dest", "I"), operand("mask", "mask"), operand("src_a", "S imm")),
        (flag("high", Feature.SQUEEZED_STORE),),
    ),
    Form("prmt_indx", (_MOVE_LOAD, _MOVE_STORE), (operand("dest", "I"), operand("src_a", "I"), operand("src_b", "S"))),
    Form(
        "mov_irf_dim",
        (_MOVE_SPU,),
        (operand("dimension", "imm", limit=4), operand("dest", "S"), operand("src_a", "I")),
    ),
)

_BOUNDS = tuple(operand(role, "S imm", decimal=True) for role in ("start", "bound", "step"))
_LOOP_HEAD = (*_BOUNDS, operand("compare", "compare"), operand("end", "label imm", decimal=True))

_INVALIDATED = (
    flag("sb", Feature.HARDWARE_REGISTERS),
    *(flag(name, Feature.SQUEEZED_STORE) for name in ("d", "lu", "rst_lu", "rst_d_pref")),
)

_CONTROL = (
    Form("halt", (_MOVE_SPU, _MOVE_VPU), (), predication=Predication.NONE),
    Form("loop", (_MOVE_SPU,), _LOOP_HEAD),
    Form("loop", (_MOVE_SPU,), (*_LOOP_HEAD, operand("once", "imm", limit=1, decimal=True))),
    Form("jmpr", (_MOVE_SPU,), (operand("src_a", "label S imm"),)),
    Form("jmpa", (_MOVE_SPU,), (operand("src_a", "label S imm"),)),
    Form("cache_flush", (_MOVE_STORE,), (), memory=MemoryOperation.CACHE),
    Form("cache_invalidate", (_MOVE_STORE,), (), _INVALIDATED, memory=MemoryOperation.CACHE),
)

MOVE_FORMS: tuple[Form, ...] = (*_MOV, *_INDEX, *_CONTROL)
"""All rows of this module."""
