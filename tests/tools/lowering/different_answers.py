"""The table "same cast, different answers" (docs/reference/semantics.md section 5), transcribed row by row.

Numbers are what the table says; `nan`, infinities and -0.0 mean themselves. Cells of chips name the options under
which the documented or scripted answer appears. Cells without a cast of ours are left out: the table has "-" there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, nan

TIE = 1 + 2**-11
STEP = 2**-10


@dataclass(frozen=True)
class Abstract:
    """The cast without a chip (column IEEE/OCP), or, with the modes that give it, what a library observed."""

    expected: float
    rounding: str | None = None
    overflow: str | None = None
    dst: str | None = None


@dataclass(frozen=True)
class Spec:
    """A specification accepts each of `good`, none of `bad`, all if `anything`; `legal`: it has the cast."""

    name: str
    good: tuple[float, ...] = ()
    bad: tuple[float, ...] = ()
    anything: bool = False
    legal: bool = True
    attributes: Mapping[str, str | int] = field(default_factory=dict)
    dst: str | None = None


@dataclass(frozen=True)
class Chip:
    """A target's answer; None: it does not have the pair."""

    target: str
    expected: float | None
    saturation: str | None = None
    rounding: str | None = None
    scratch: bool = False
    options: Mapping[str, str | int] = field(default_factory=dict)
    src: str | None = None


@dataclass(frozen=True)
class Script:
    """The answer of a published script that a correct model must not give, in the vector file; the chip gives `ours`.

    `why` says what the script does.
    """

    key: str
    out: str
    expected: float
    why: str


@dataclass(frozen=True)
class Row:
    """One row: the cast, its input, and the cells."""

    number: str
    src: str
    dst: str
    value: float
    cells: tuple[Abstract | Spec | Chip | Script, ...]


def tosa(*good: float, bad: tuple[float, ...] = ()) -> Spec:
    return Spec("tosa", good, bad)


def onnx(*good: float, bad: tuple[float, ...] = (), **attributes: int | str) -> Spec:
    return Spec("onnx", good, bad, attributes=attributes)


ANY_TOSA, ANY_ONNX = Spec("tosa", anything=True), Spec("onnx", anything=True)
NO_TOSA = Spec("tosa", legal=False)
KEEP = {"ctrl_48_at_start": 1}
"""A5: float results are not clamped."""
KEEP_FP8 = {"ctrl_60_at_start": 0}
"""A5: 8-bit float results are not clamped, as golden vectors of the library have it."""
CLAMPED = {"float_saturation_off_at_start": 0}
"""A2/A3: float results are clamped."""
LOW_BITS = {"multi_step_intermediate": "low_bits", "native_off_intermediate": "exact"}
"""A5: infinity has no extreme."""
C_CAST = {"nan_to_integer": "minimum"}
"""The script's C conversion of NaN."""


ROWS = (
    Row("1", "f32", "f16", 70000, (
        Abstract(inf), tosa(inf, bad=(65504,)), onnx(inf, bad=(65504,)), Chip("a2a3", 65504, options=CLAMPED),
        Chip("a5", 65504),
        Chip("a5", inf, options=KEEP))),
    Row("2", "f32", "f16", inf, (
        Abstract(inf), tosa(inf, bad=(65504,)), onnx(inf, bad=(65504,)), Chip("a2a3", 65504, options=CLAMPED),
        Chip("a5", 65504))),
    Row("3", "f32", "f16", nan, (
        Abstract(nan), tosa(nan, bad=(0,)), onnx(nan, bad=(0,)), Chip("a2a3", nan),
        Chip("a5", nan, options=KEEP), Chip("a5", 0))),
    Row("4", "f32", "e4m3fn", 480, (
        Abstract(nan), Abstract(448, overflow="saturate"), tosa(nan, bad=(448,)), onnx(448, bad=(nan,)),
        onnx(nan, bad=(448,), saturate=0), Chip("a2a3", None), Chip("a5", nan, options=KEEP_FP8), Chip("a5", 448))),
    Row("5", "f32", "e5m2", 1e9, (
        Abstract(inf), tosa(inf, bad=(57344,)), onnx(57344, bad=(inf,)), onnx(inf, bad=(57344,), saturate=0),
        Chip("a2a3", None), Chip("a5", inf, options=KEEP_FP8), Chip("a5", 57344))),
    Row("6", "f32", "e4m3fn", nan, (
        Abstract(nan), tosa(nan, bad=(0,)), onnx(nan, bad=(0,)), Chip("a5", nan, options=KEEP_FP8), Chip("a5", 0))),
    Row("7", "f32", "i32", 2.5, (
        Abstract(2, "rint"), Abstract(3, "round"), tosa(2, bad=(3,)), onnx(2, bad=(3,)),
        *(Chip(chip, 2, rounding="rint") for chip in ("a2a3", "a5")),
        *(Chip(chip, 3, rounding="round") for chip in ("a2a3", "a5")))),
    Row("8", "f32", "i32", 3.7, (
        Abstract(4, "rint"), tosa(4, bad=(3,)), onnx(3, bad=(4,)),
        *(Chip(chip, 4, rounding="rint") for chip in ("a2a3", "a5")),
        *(Chip(chip, 3, rounding="trunc") for chip in ("a2a3", "a5")))),
    Row("9", "f16", "i8", 200, (
        Abstract(127), tosa(127, bad=(-56,)), ANY_ONNX, Abstract(-56, "trunc", "wrap"), Chip("a2a3", -56),
        Chip("a2a3", 127, "on"), Chip("a5", -56))),
    Row("10", "f16", "i8", 127.5, (
        tosa(127, bad=(-128,)), onnx(127, bad=(-128,)), Chip("a2a3", -128), Chip("a2a3", 127, "on"),
        Chip("a5", -128))),
    Row("11", "f32", "i16", inf, (
        tosa(32767, bad=(0, -1)), ANY_ONNX, Abstract(0, "trunc", "wrap"), Chip("a2a3", 0),
        Chip("a2a3", -1, "off", scratch=True), Chip("a5", 0, options=LOW_BITS),
        Chip("a5", 32767, "on"))),
    Row("12", "f32", "i16", nan, (
        ANY_TOSA, Abstract(0), ANY_ONNX, Chip("a2a3", 0), Chip("a5", 0))),
    Row("13", "f32", "i32", nan, (
        ANY_TOSA, ANY_ONNX, Chip("a2a3", -(2**31), options=C_CAST), Chip("a5", -(2**31), options=C_CAST),
        Chip("a5", 0))),
    Row("14", "f32", "i32", 3e9, (
        tosa(2**31 - 1, bad=(-(2**31),)), ANY_ONNX, Chip("a2a3", 2**31 - 1), Chip("a5", 2**31 - 1))),
    Row("15", "i32", "i16", 40000, (
        tosa(-25536, bad=(32767,)), onnx(-25536, bad=(32767,)),
        *(Chip(chip, -25536, "off") for chip in ("a2a3", "a5")),
        *(Chip(chip, 32767, "on") for chip in ("a2a3", "a5")))),
    Row("16", "i16", "u8", 300, (NO_TOSA, onnx(44, bad=(255,)), Chip("a2a3", None), Chip("a5", 255))),
    Row("17", "i16", "u32", -1, (NO_TOSA, onnx(4294967295, bad=(0,)), Chip("a2a3", None), Chip("a5", 0))),
    Row("18", "i32", "f16", 70000, (
        Abstract(inf), tosa(inf, bad=(65504,)), onnx(inf, bad=(65504,)), Chip("a2a3", 65504, options=CLAMPED),
        Chip("a5", None))),
    Row("19", "i32", "bf16", 62783487, (
        Abstract(62652416), tosa(62652416, bad=(62914560,)), onnx(62652416, bad=(62914560,)), Chip("a2a3", None),
        Chip("a5", None))),
    Row("19b", "i64", "f32", 2**60 + 2**36 + 1, (
        Abstract(2**60 + 2**37), NO_TOSA, onnx(2**60 + 2**37, bad=(2**60,)), Chip("a2a3", 2**60 + 2**37),
        Chip("a5", 2**60 + 2**37),
        Script("a2a3__int64__fp32", "RINT__out", 2**60, "passes through float64 and rounds twice"),
        Script("a5__int64__fp32", "RINT__out", 2**60, "passes through float64 and rounds twice"))),
    Row("20", "f32", "f16", TIE, (
        Abstract(1, "rint"), tosa(1, 1 + STEP, bad=(1 + 2 * STEP,)), onnx(1, bad=(1 + STEP,)),
        *(Chip(chip, 1, rounding="rint") for chip in ("a2a3", "a5")), Chip("a5", 1 + STEP, rounding="round"))),
    Row("21", "f32", "f16", 1 + 1.5 * STEP, (
        tosa(1 + STEP), onnx(1 + 2 * STEP, bad=(1 + STEP,)),
        *(Chip(chip, 1 + STEP, rounding="trunc") for chip in ("a2a3", "a5")))),
    Row("22", "f32", "f16", -(1 + 2**-20), (
        tosa(-1, bad=(-1 - STEP,)), onnx(-1, bad=(-1 - STEP,)),
        *(Chip(chip, -1 - STEP, rounding="floor") for chip in ("a2a3", "a5")))),
    Row("23", "f32", "f16", 0.75 * 2**-24, (
        Abstract(2**-24), tosa(2**-24, 0, bad=(2**-23,)), onnx(2**-24, bad=(0,)), Chip("a2a3", 2**-24),
        Chip("a5", 2**-24))),
    Row("24", "f32", "bf16", 1e-40, (
        Abstract(2**-133), tosa(2**-133, 0), onnx(2**-133, bad=(0,)), Chip("a5", 2**-133))),
    Row("25", "f32", "e4m3fn", -0.0, (
        Abstract(-0.0), tosa(-0.0, bad=(0,)), onnx(-0.0, bad=(0,)), Spec("onnx", (0,), dst="e4m3fnuz"),
        Abstract(0, dst="e4m3fnuz"), Spec("tosa", legal=False, dst="e4m3fnuz"), Chip("a5", -0.0))),
    Row("26", "f32", "hif8", -0.0, (Spec("tosa", legal=False), Spec("onnx", legal=False), Chip("a5", 0))),
    Row("27", "f32", "e2m1", -0.0, (
        Abstract(-0.0), NO_TOSA, onnx(-0.0, bad=(0,)), Chip("a5", -0.0, src="bf16"),
        Script("a5__bf16__e2m1", "RINT__out_packed", 0, "maps minus zero to code 0"))),
    Row("28", "f32", "e2m1", nan, (Abstract(0), NO_TOSA, ANY_ONNX, Chip("a5", 0, src="bf16"))),
    Row("29", "f32", "hif8", 40960, (
        Abstract(inf), Abstract(32768, overflow="saturate"), Chip("a5", inf, options=KEEP_FP8), Chip("a5", 32768))),
    Row("30", "f32", "hif8", 16, (Abstract(20, "hybrid"), Abstract(16))),
    Row("31", "f32", "i4", 0.5, (NO_TOSA, onnx(0, bad=(1, 2, -1)), Chip("a2a3", 0, src="f16"))),
    Row("32", "f32", "e8m0", 0, (
        NO_TOSA, onnx(2**-127, bad=(nan,)), onnx(nan, bad=(2**-127,), saturate=0, round_mode="nearest"))),
    Row("33", "f32", "bool", nan, (tosa(1, bad=(0,)), onnx(1, bad=(0,)), Abstract(1))),
    Row("33", "f32", "bool", -0.0, (tosa(0, bad=(1,)), onnx(0, bad=(1,)), Abstract(0))),
)  # fmt: skip
"""All rows but 34, which is RESCALE. Row 33 has two inputs."""
