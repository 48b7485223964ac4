"""Instruction table: look-ups, division, and instructions without an effect on values.

Source: docs/reference/tpc.md section 5.5 (look-ups), 5.6 (division, events) and 7.1 (operands). The operands of UDIV in
its forms are taken from the stage tables; of UDIV_4STEP the vendor's tests print the number of the step and the pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from castsim.isa.tpc.dialect import Feature
from castsim.isa.tpc.forms import Form, OperandSpec, Predication, Show, Style, Switch, Value, flag, operand

_LOAD, _SPU, _VPU, _STORE = 0, 1, 2, 3
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
_HALVES = _typed("BV32", "BV16")
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
        (_LOAD,),
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
        before, after = (_WORDS if one else switch for switch in (_HALVES, _BYTES))
        yield _lookup(mnemonic, dest, _FUNCTION, (before, *_OPTIONS), typed, lacks=(pointed,), pointer=0)
        yield _lookup(mnemonic, dest, _FUNCTION, (after, *_OPTIONS), typed, pointed, pointer=0)
        yield _lookup(mnemonic, dest, _POINTER, (after, *_OPTIONS), typed, pointed, pointer=1)


_UNIT = Switch("unit", Style.WORD, None, Show.ALWAYS, words=(("spu", "spu"), ("vpu", "vpu")))
_DIVISION = (operand("dest", "S Z"), operand("src_a", "S"), operand("src_b", "S imm"))
_UNSIGNED = ("u32", "u16", "u8")
_TENSORS = (operand("tensor", "imm", limit=15), operand("tensor", "@store_number"))
_COORDINATES = operand("src_a", "I")
_MERGE = flag("rmw_sel")


def _squeezed() -> Iterator[Form]:
    """Rows of the stores of a scalar and of the lanes under a predicate, whose count goes to a numbered counter."""
    merge = operand("rmw", "@store_merge")
    for tensor, merges in product(_TENSORS, (0, 1)):
        last, implied = (merge,) * merges, (("rmw_sel", merges),)
        yield Form(
            "st_tnsr_sqz",
            (_STORE,),
            (tensor, operand("counter", "imm", limit=7), _COORDINATES, operand("src_c", "V"), *last),
            (_MERGE,),
            vector_predicate=Feature.MASKED_STORE,
            needs=(Feature.SQUEEZED_STORE,),
            implied=implied,
        )
        yield Form(
            "st_tnsr_s",
            (_STORE,),
            (tensor, _COORDINATES, operand("src_c", "S imm"), *last),
            (_MERGE,),
            needs=(Feature.SQUEEZED_STORE,),
            implied=implied,
        )


_SYNCHRONISED = (flag("dec", Feature.PREFETCH), flag("vpu"))

FORMS: tuple[Form, ...] = (
    *_lookups(),
    Form("event", (_LOAD, _STORE), (operand("src_a", "S imm"),), (_UNIT,), needs=(Feature.TRACE_EVENTS,)),
    Form("prefetch", (_LOAD,), (operand("src_a", "AD"),), needs=(Feature.PREFETCH,)),
    Form("aso", (_STORE,), (), _SYNCHRONISED),
    *_squeezed(),
    *(
        Form(mnemonic, (_SPU,), _DIVISION, types=_UNSIGNED, needs=(feature,), accumulator="src_c")
        for mnemonic, feature in (
            ("udiv_step", Feature.DIVISION_STEP),
            ("udiv_4step", Feature.FOUR_DIVISION_STEPS),
        )
    ),
    Form(
        "udiv_4step",
        (_SPU,),
        (operand("steps", "imm", limit=15), operand("dest", "Z"), operand("src_a", "S")),
        types=_UNSIGNED,
        needs=(Feature.FOUR_DIVISION_STEPS,),
        accumulator="src_c",
    ),
    Form(
        "rounded",
        (_VPU,),
        (operand("dest", "V"), *(operand(role, "V") for role in ("src_a", "src_b", "src_c")), _FUNCTION),
        (_COMPUTES,),
        types=("f32",),
        predication=Predication.VECTOR,
    ),
    Form("udiv", (_SPU,), _DIVISION, types=_UNSIGNED, needs=(Feature.WHOLE_DIVISION,)),
)
"""All rows of this module."""
