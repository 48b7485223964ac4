"""Instruction table: MOV in all slots, moves of index registers, and control flow.

Source: docs/reference/tpc.md section 7.1, tables of moves and of control. The spelling of LFSR moves is this project's;
the encoding is an ordinary MOV.
"""

from __future__ import annotations

from castsim.isa.tpc.dialect import Feature
from castsim.isa.tpc.forms import (
    TYPES,
    Form,
    MemoryOperation,
    OperandSpec,
    Predication,
    Show,
    Style,
    Switch,
    flag,
    operand,
)

_LOAD, _SPU, _VPU, _STORE = 0, 1, 2, 3
_ELEMENTS = TYPES[:-1]
_VECTOR = Predication.VECTOR
_HARDWARE = "M0 M1 M2 M3 LD_TNSR_ID_REG ST_TNSR_ID_REG ST_RMW_REG LD_PARTIAL_REG ST_PARTIAL_REG"
_SQUEEZE_COUNTERS = " ".join(f"SQZ_CNTR{number}_{half}" for number in range(8) for half in ("LO", "HI"))


def _vector(dest: str, source: str, *needs: Feature, typed: bool = False, section: bool = False) -> Form:
    """One row of a move to or from V, D or VP, in the LOAD and VPU slots."""
    head: tuple[OperandSpec, ...] = (operand("section", "imm", limit=7),) if section else ()
    return Form(
        "mov",
        (_LOAD, _VPU),
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
_BOTH = (_LOAD, _SPU)
# The register operands of these moves say that they are pairs; the switch may be left away and is printed.
_PAIR = Switch("x2", Style.FLAG, 1, Show.ALWAYS, numbers=(1,))

_MOV = (
    _vector("V", "V"),
    _vector("V", "S imm", typed=True),
    Form(
        "mov",
        (_VPU,),
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
    _scalar((_SPU,), "SP", "SP"),
    _scalar(_BOTH, "I", "I S imm", mask="mask"),
    _scalar((_SPU,), "I", "I S imm", _REGISTER_MOVES, mask="M0 M1 M2 M3"),
    _scalar(_BOTH, "AD", "AD", Feature.ADDRESS_MOVES),
    _scalar((_SPU,), "AD", "Z", Feature.ADDRESS_MOVES),
    _scalar((_SPU,), "Z", "AD", Feature.ADDRESS_MOVES),
    _scalar(_BOTH, _HARDWARE, "S", _REGISTER_MOVES),
    _scalar(_BOTH, "S", _HARDWARE, _REGISTER_MOVES),
    _scalar((_SPU,), "DIV_STEP", "S", _REGISTER_MOVES),
    _scalar((_SPU,), "S", "DIV_STEP", _REGISTER_MOVES),
    _scalar(_BOTH, _SQUEEZE_COUNTERS, "S", Feature.SQUEEZED_STORE),
    _scalar(_BOTH, "S", _SQUEEZE_COUNTERS, Feature.SQUEEZED_STORE),
    _scalar(_BOTH, "S_CARRY", "SP", _REGISTER_MOVES),
    _scalar(_BOTH, "SP", "S_CARRY", _REGISTER_MOVES),
)

_INDEX = (
    Form(
        "set_indx",
        (_LOAD, _SPU, _STORE),
        (operand("dest", "I"), operand("mask", "mask"), operand("src_a", "S imm")),
        (flag("high", Feature.SQUEEZED_STORE),),
    ),
    Form("prmt_indx", (_LOAD, _STORE), (operand("dest", "I"), operand("src_a", "I"), operand("src_b", "S"))),
    Form(
        "mov_irf_dim",
        (_SPU,),
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
    Form("halt", (_SPU, _VPU), (), predication=Predication.NONE),
    Form("loop", (_SPU,), _LOOP_HEAD),
    Form("loop", (_SPU,), (*_LOOP_HEAD, operand("once", "imm", limit=1, decimal=True))),
    Form("jmpr", (_SPU,), (operand("src_a", "label S imm"),)),
    Form("jmpa", (_SPU,), (operand("src_a", "label S imm"),)),
    Form("cache_flush", (_STORE,), (), memory=MemoryOperation.CACHE),
    Form("cache_invalidate", (_STORE,), (), _INVALIDATED, memory=MemoryOperation.CACHE),
)

FORMS: tuple[Form, ...] = (*_MOV, *_INDEX, *_CONTROL)
"""All rows of this module."""
