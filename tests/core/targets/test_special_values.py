"""Special values that the vendor publishes, on every tile operation and vector instruction that takes them.

tests/vectors/ascend_special_values.csv: results in Inf/NaN mode and in saturating mode.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache

import numpy as np
import pytest
from kit.paths import VECTORS

from castsim.execution.tree import ResolvedTileOp, Tile
from castsim.execution.vector_operations.effect import TileEffect
from castsim.execution.vector_operations.target_rules import behaviour_of
from castsim.isa.errors import Span
from castsim.isa.formats import Codes, Format, IntFormat, Saturation, format_named
from castsim.isa.pto.micro_words import CONVERSIONS, conversion
from castsim.isa.pto.program import TileType
from castsim.machines.casting import cast_on_target
from castsim.machines.vector_function.lane_operations import ELEMENTS, execute
from castsim.machines.vector_function.vector_registers import (
    Operands,
    PredicateRegister,
    VectorRegister,
    convert,
    every_lane,
    truncate,
)
from castsim.numerics.policy import abstract_policy
from castsim.numerics.tiers import convert_codes
from castsim.targets.description import with_options
from castsim.targets.loader import Target, load_target
from castsim.targets.vector_function import VectorFunctionTarget

Row = Mapping[str, str]
PLAIN, SATURATING = "plain", "saturating"
MODES = {"result": PLAIN, "result_saturating": SATURATING}
OPTIONS: Mapping[tuple[str, str], Mapping[str, int | str]] = {
    ("a2a3", PLAIN): {},
    ("a2a3", SATURATING): {"float_saturation_off_at_start": 0},
    ("a5", PLAIN): {"ctrl_48_at_start": 1},
    ("a5", SATURATING): {"ctrl": "reset", "ctrl_53_at_start": 1},
}
CTRL = {PLAIN: 1 << 60 | 1 << 48, SATURATING: 1 << 60 | 1 << 53}
TILE = {
    "Exp": "texp", "Ln": "tlog", "Abs": "tabs", "Reciprocal": "trecip", "Sqrt": "tsqrt", "Rsqrt": "trsqrt",
    "Axpy": "taxpy", "Arange": "tci", "Relu": "trelu", "Neg": "tneg", "LeakyRelu": "tlrelu", "Prelu": "tprelu",
    "Compare": "tcmp", "Compares": "tcmps",
    **{name: f"t{name.lower()}" for name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Adds", "Muls", "Maxs", "Mins")},
    **{f"Reduce{name}": f"trow{name.lower()}" for name in ("Max", "Min", "Sum")},
    **{f"ReduceRepeat<{name}>": f"trow{name.lower()}" for name in ("MAX", "MIN", "SUM")},
}  # fmt: skip
MICRO = {
    **{name: f"v{name.lower()}" for name in (
        "Exp", "Ln", "Abs", "Sqrt", "Rsqrt", "Relu", "Neg", "Prelu", "Add", "Sub", "Mul", "Div", "Max", "Min", "Adds",
        "Muls", "Maxs", "Mins", "Axpy")},
    "Reciprocal": "vrec", "LeakyRelu": "vlrelu", "MulAddDst": "vmula", "Compare": "vcmp", "Compares": "vcmps",
    "ExpSub": "vexpdif", "Reduce.max": "vcmax", "Reduce.min": "vcmin", "Reduce.sum": "vcadd",
    "ReduceDataBlock.max": "vcgmax", "ReduceDataBlock.min": "vcgmin", "ReduceDataBlock.sum": "vcgadd",
    "AddC": "vaddc", "SubC": "vsubc", "PairReduceElem.sum": "vcpadd", "Arange": "vci", "Mull": "vmull",
}  # fmt: skip
SCALAR = ("Adds", "Muls", "Maxs", "Mins", "LeakyRelu", "Compares", "Axpy", "Arange")


@cache
def rows() -> tuple[Row, ...]:
    with (VECTORS / "ascend_special_values.csv").open(newline="") as file:
        return tuple(csv.DictReader(file))


@cache
def slips() -> tuple[Row, ...]:
    with (VECTORS / "ascend_special_values_slips.csv").open(newline="") as file:
        return tuple(csv.DictReader(file))


def same(written: str, value: str) -> bool:
    return written == "*" or written == value.strip()


def is_slip(row: Row, mode: str) -> bool:
    """Whether the table is known to be wrong there; of equal rows with different results the first counts."""
    for slip in slips():
        types = slip["types"] == row["types"] or (slip["types"] == "f*" and row["types"].startswith("f"))
        inputs = all(same(slip[name] or "*" if name != "in1" else slip[name], row[name]) for name in ("in1", "in2"))
        of_row = (slip["chip"], slip["operation"]) == (row["chip"], row["operation"])
        if of_row and types and inputs and slip["which"] in ("both", mode):
            return True
    return False


def code_of(text: str, fmt: Format) -> int:
    """The code of an input: a number, MAX or MIN of the type, nan, inf."""
    text = text.strip()
    text = {"max": "MAX", "min": "MIN", "any": "1"}.get(text, text)
    if isinstance(fmt, IntFormat):
        value = {"MAX": fmt.maximum, "MIN": fmt.minimum}.get(text)
        return (int(float(text)) if value is None else value) & ((1 << fmt.bits) - 1)
    top = getattr(fmt, "max_finite_code", 0)
    if text in ("MAX", "MIN"):
        return top | (fmt.sign_bit if text == "MIN" else 0)
    wide = np.array([float(text)]).view("<u8")
    double = format_named("f64")
    return int(convert_codes(wide, double, fmt, abstract_policy(double, fmt))[0])


def value_of(code: int, fmt: Format) -> float:
    if isinstance(fmt, IntFormat):
        return code - (1 << fmt.bits) if fmt.signed and code >> (fmt.bits - 1) else code
    double = format_named("f64")
    dtype = np.uint8 if fmt.storage_bits == 8 else f"<u{fmt.storage_bits // 8}"
    return float(convert_codes(np.array([code], dtype), fmt, double, abstract_policy(fmt, double)).view("<f8")[0])


def agrees(code: int, fmt: Format, written: str) -> bool:
    """Whether a code is the written result: short decimals within 0.1 %, the sign of -0 too, of 0 either."""
    if "~" in written or " of " in written:  # a ramp, of which the first lane counts
        written = written.partition(",")[0].rpartition(" of ")[2].partition("~")[0]
    found, wanted = value_of(code, fmt), value_of(code_of(written, fmt), fmt)
    if written.strip() not in ("MAX", "MIN", "nan") and not isinstance(fmt, IntFormat):
        wanted = float(written)
    if math.isnan(wanted) or math.isnan(found):
        return math.isnan(wanted) and math.isnan(found)
    if wanted == 0:
        return found == 0 and (not written.strip().startswith("-") or math.copysign(1, found) < 0)
    last = 10.0 ** -len(written.partition(".")[2]) if "e" not in written.lower() and "." in written else 0.0
    return found == wanted or math.isclose(found, wanted, rel_tol=1e-3, abs_tol=last)


def line(text: str, fmt: Format, operation: str) -> list[int]:
    """The elements of a reduced row as the table describes it."""
    lanes = 2048 // fmt.bits * (2 if fmt.bits == 16 and "Repeat" not in operation else 1)
    if text.startswith("all "):
        return [code_of(text[4:], fmt)] * lanes
    if text.endswith(" alternating"):
        cycle = [code_of(each, fmt) for each in text.removesuffix(" alternating").split(",")]
        return [cycle[k % len(cycle)] for k in range(lanes)]
    first, _, last = text.partition(" and ")
    parts = [first, last] if " of " in first else [*first.split(","), last]
    values = []
    for part in parts:
        count, _, value = part.rpartition(" of ")
        values += [code_of(value, fmt)] * int(count or 1)
    assert len(values) == lanes, text
    return values


def dtype_of(fmt: Format) -> str:
    return f"<u{fmt.storage_bits // 8}"


def tile(name: str, fmt: Format, address: int, cols: int, valid: int) -> Tile:
    return Tile(name, fmt, TileType("vec", fmt.name, 1, cols, 1, valid), address, 1, valid, fmt.storage_bits)


def by_tile(row: Row, mode: str) -> Codes | None:
    """What a tile operation gives; None: there is none of these types."""
    operation, _, comparison = row["operation"].partition(".")
    name = TILE.get(operation)
    target = with_options(load_target(row["chip"]), OPTIONS[row["chip"], mode])
    if operation == "Cast":
        return by_tile_cast(row, mode, target)
    rule = None if name is None else target.tile_operation(name)
    if rule is None or row["types"] not in (*rule.types, *rule.library_types):
        return None
    fmt = format_named(row["types"])
    if name.startswith("trow"):
        inputs = [line(row["in1"], fmt, operation)]
    else:
        inputs = [[code_of(row[each], fmt)] * 128 for each in ("in1", "in2") if row[each]]
    size, scalars = len(inputs[0]), ()
    if operation in SCALAR:
        scalars = ((inputs.pop()[0], fmt),)
    buffer = np.zeros(1 << 14, np.uint8)
    if operation == "Axpy":
        added = np.full(size, code_of(row["in3"], fmt), dtype_of(fmt)).view(np.uint8)
        buffer[8192 : 8192 + added.size] = added
    sources = []
    for place, codes in enumerate(inputs):
        raw = np.array(codes, np.uint64).astype(dtype_of(fmt)).view(np.uint8)
        buffer[place * 4096 : place * 4096 + raw.size] = raw
        sources.append(tile("ab"[place], fmt, place * 4096, size, size))
    compares = operation.startswith("Compare")
    out = format_named("i8") if compares else fmt
    dst = tile("d", out, 8192, size, size if not name.startswith("trow") else 1)
    work = ResolvedTileOp(name, dst, tuple(sources), Span("t", 1, 1), scalars=scalars, mode=comparison or None)
    TileEffect(work, behaviour_of(target, work)).apply(buffer)
    if compares:
        return np.array([buffer[8192] & 1], np.uint8)
    return buffer[8192 : 8192 + out.storage_bits // 8].view(dtype_of(out))


def by_tile_cast(row: Row, mode: str, target: Target) -> Codes | None:
    src, _, dst = row["types"].partition("->")
    pairs = {(rule.src, rule.dst) for rule in target.casts}
    if (src, dst) not in pairs:
        return None
    codes = np.array([code_of(row["in1"], format_named(src))] * 4, dtype_of(format_named(src)))
    # A2/A3: both columns are those of a cast that leaves CTRL[59] alone.
    saturation = Saturation.ON if row["chip"] == "a2a3" or mode == SATURATING else Saturation.OFF
    return cast_on_target(codes, format_named(src), format_named(dst), target, saturation=saturation).codes


def by_instruction(row: Row, mode: str) -> Codes | None:
    """What a vector instruction of the A5 gives; None: there is none of these types."""
    if row["chip"] != "a5":
        return None
    operation, types = row["operation"], row["types"]
    target = load_target("a5")
    assert isinstance(target, VectorFunctionTarget)
    src, _, dst = types.partition("->")
    if operation == "Cast":
        if (src, dst) not in CONVERSIONS:
            return None
        pair, fmt = conversion(src, dst), format_named(src)
        ctrl = 1 << 60 | (1 << 48 | 1 << 59 if mode == PLAIN else 0)
        rounding = ("R" if "R" in pair.roundings else pair.roundings[0]) if pair.roundings else None
        found = convert(
            lanes(row["in1"], fmt), pair, pair.parts[0] if pair.parts else None, every_lane(pair.mask_width), rounding,
            pair.saturations[0] if pair.saturations else None, target=target, ctrl=ctrl,
        )  # fmt: skip
        return found.lanes(format_named(dst).storage_bits)[:1]
    if operation == "Truncate":
        fmt = format_named(src)
        return truncate(lanes(row["in1"], fmt), src, every_lane(fmt.bits), "Z").lanes(fmt.bits)[:1]
    base, _, word = operation.partition(".") if operation.startswith("Compare") else (operation, "", "")
    if src not in ELEMENTS.get(MICRO.get(base, ""), ()):
        return None
    fmt, name = format_named(src), MICRO[base]
    given = [row[each] for each in ("in1", "in2", "in3") if row[each]]
    scalars: tuple[int, ...] = ()
    if base in SCALAR:
        scalars = (code_of(given.pop(1 if len(given) > 1 else 0), fmt),)
    if name == "vmula":
        given = [given[2], *given[:2]]
    result = format_named(dst or src)
    words = {"vexpdif": ("EVEN",), "vcmp": (word,), "vcmps": (word,), "vtrc": ("R",)}.get(name, ())
    full = PredicateRegister(np.ones(256, np.bool_))
    found = execute(
        Operands(name, fmt, result, min(32, fmt.bits), target, tuple(lanes(each, fmt) for each in given), (full,),
                 scalars, words, ctrl=CTRL[mode])
    )  # fmt: skip
    # Of long products the table has the low half in one column, the high half in the other.
    first = found[1 if name == "vmull" and mode == SATURATING else 0]
    if isinstance(first, PredicateRegister):
        return first.lanes(fmt.bits)[:1].astype(np.uint8)
    assert isinstance(first, VectorRegister) and first.defined.all()
    return first.lanes(result.storage_bits)[:1]


def lanes(text: str, fmt: Format) -> VectorRegister:
    if fmt.bits == 4:
        return VectorRegister(np.full(256, code_of(text, fmt) * 0x11, np.uint8))
    return VectorRegister(np.full(2048 // fmt.bits, code_of(text, fmt), dtype_of(fmt)).view(np.uint8).copy())


def _has(row: Row, *operations: str, types: str = "") -> bool:
    return row["operation"] in operations and types in row["types"]


Way = Callable[[Row, str], "Codes | None"]
EXCEPTIONS: Mapping[str, Callable[[Row, str], bool]] = {
    "the divisor is -0 and lost its sign in the document: of two equal rows the second has the other sign": (
        lambda row, _: _has(row, "Div") and row["chip"] == "a5" and row["in2"] == "0"
    ),
    "-0 - -0 is +0 in IEEE 754, on the A2/A3 and in the row for 0 - 0": (
        lambda row, _: _has(row, "Sub") and (row["in1"], row["in2"]) == ("-0", "-0")
    ),
    "f32 knows no saturating mode: the plain column and leaky relu have NaN": (
        lambda row, mode: _has(row, "Prelu", types="f32") and mode == SATURATING and row["in1"] == "-0"
    ),
    "exp of +inf is +inf, as the rows of Exp have it; the f16 rows beside these have inf": (
        lambda row, _: _has(row, "ExpSub") and "inf" in row["in1"] + row["in2"]
    ),
    "four of seven rows with NaN as the scalar; the other three, and all those of the form with two tiles, have 0": (
        lambda row, mode: _has(row, "Compares.ne", types="f16") and row["chip"] == "a2a3" and mode == SATURATING
    ),
    "the vendor's function reduces each repeat by itself, row reductions of the library join repeats lane by lane": (
        lambda row, mode: (
            _has(row, "ReduceMax", "ReduceMin", "ReduceSum", types="f16")
            and mode == SATURATING
            and " and 25" in row["in1"]
        )
    ),
}
"""Results of the table that castsim does not give, by the reason."""


TILE_EXCEPTIONS: Mapping[str, Callable[[Row, str], bool]] = {
    "the 1-D form of the tile cast goes through a wider integer with saturation OFF (docs/reference/a5.md 3)": (
        lambda row, mode: (
            _has(row, "Cast")
            and row["chip"] == "a5"
            and mode == PLAIN
            and row["types"] in ("f32->i16", "f16->i16", "f16->i8")
            and row["in1"] in ("inf", "-inf")
        )
    ),
}


def reason(row: Row, mode: str, way: Way) -> str:
    """Why a result of the table is not what castsim gives; '' where it has to be."""
    known = EXCEPTIONS | (TILE_EXCEPTIONS if way is by_tile else {})
    return next((why for why, holds in known.items() if holds(row, mode)), "")


def differences(way: Way) -> tuple[int, list[tuple[Row, str, str]]]:
    """Return how many results a way reaches outside the slips, and those in which it differs."""
    reached, different = 0, []
    for row in rows():
        fmt = format_named(row["types"].rpartition("->")[2]) if row["types"] else None
        for column, mode in MODES.items():
            if fmt is None or not row[column] or is_slip(row, mode):
                continue
            found = way(row, mode)
            if found is None:
                continue
            reached += 1
            compares = row["operation"].startswith("Compare")
            code = int(found.ravel()[0]) & ((1 << fmt.bits) - 1)
            if not agrees(code, format_named("u8") if compares else fmt, row[column]):
                different.append((row, mode, str(value_of(code, format_named("u8") if compares else fmt))))
    return reached, different


def shown(different: Iterable[tuple[Row, str, str]]) -> list[str]:
    return [f"{mode}: {','.join(row.values())}: castsim {got}" for row, mode, got in different]


@pytest.mark.parametrize("way", [by_tile, by_instruction])
def test_the_table_holds(way: Way) -> None:
    reached, different = differences(way)
    assert reached > (9_600 if way is by_tile else 6_200)
    assert not shown(each for each in different if not reason(each[0], each[1], way))
    assert len(different) <= reached / 100
