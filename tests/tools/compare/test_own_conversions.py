"""`castsim compare`: planted errors of hand-written conversions are found, right ones are equal, refusals say why."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from kit.command_output import document_of, err_of, file_of, out_of

import castsim
from castsim.__main__ import main
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import format_named
from castsim.numerics.codec import value_of
from castsim.tools.compare.user_conversions import places

U32, U16, U8 = np.uint32, np.uint16, np.uint8
Conversion = Callable[[np.ndarray], np.ndarray]


def quietly(function: Conversion) -> Conversion:
    """Conversions overflow and meet NaN on purpose."""

    def converted(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return function(x)

    return converted


def to_bf16(x: np.ndarray, bias: int = 0x7FFF, *, odd: bool = True, quiet: bool = True) -> np.ndarray:
    """The usual rounding by adding to the bits; the keywords plant the usual mistakes."""
    bits = x.view(U32).astype(np.uint64)
    found = ((bits + bias + ((bits >> 16) & 1 if odd else 0)) >> 16).astype(U16)
    return np.where(np.isnan(x), U16(0x7FC0), found) if quiet else found


def to_e4m3(x: np.ndarray) -> np.ndarray:
    return x.astype(ml_dtypes.float8_e4m3fn).view(U8)


def to_e5m2(x: np.ndarray) -> np.ndarray:
    return x.astype(ml_dtypes.float8_e5m2).view(U8)


ABOVE_448, BELOW_17 = np.nextafter(np.float32(448), 449), np.nextafter(np.float32(17), 0)


def between(low: float, high: float, wrong: Conversion) -> Conversion:
    """A right conversion to e4m3fn, but for magnitudes from `low` to `high`."""
    return lambda x: np.where((np.abs(x) >= low) & (np.abs(x) < high), wrong(x), to_e4m3(x))


RIGHT: dict[str, tuple[str, str, Conversion, dict[str, str]]] = {
    "bf16 by bits": ("f32", "bf16", to_bf16, {}),
    "bf16 by ml_dtypes": ("f32", "bf16", lambda x: x.astype(ml_dtypes.bfloat16), {}),
    "f16 by NumPy": ("f32", "f16", lambda x: x.astype(np.float16), {}),
    "e4m3fn codes": ("f32", "e4m3fn", to_e4m3, {}),
    "e4m3fn as f32": ("f32", "e4m3fn", lambda x: to_e4m3(x).view(ml_dtypes.float8_e4m3fn).astype(np.float32), {}),
    "f16 to e5m2": ("f16", "e5m2", lambda x: x.astype(ml_dtypes.float8_e5m2), {}),
    "i8 as i64": ("f16", "i8", lambda x: np.clip(np.rint(np.nan_to_num(x)), -128, 127).astype(np.int64),
                  {"rounding": "rint", "overflow": "saturate"}),
    "bf16 to f32": ("bf16", "f32", lambda x: x.astype(np.float32), {}),
}  # fmt: skip

PLANTED: dict[str, tuple[str, str, Conversion, dict[str, str]]] = {
    "truncation": ("f32", "bf16", lambda x: to_bf16(x, 0, odd=False), {}),
    "ties away": ("f32", "bf16", lambda x: to_bf16(x, 0x8000, odd=False), {}),
    "bias one short": ("f32", "bf16", lambda x: to_bf16(x, 0x7FFE), {}),
    "NaN carries over": ("f32", "bf16", lambda x: to_bf16(x, quiet=False), {}),
    "subnormals flushed": ("f32", "bf16", lambda x: to_bf16(np.where(np.abs(x) < 2**-126, x * 0, x)), {}),
    "sign of zero lost": ("f32", "bf16", lambda x: to_bf16(np.where(x == 0, np.float32(0), x)), {}),
    "sources flushed": ("f32", "f16", lambda x: np.where(np.abs(x) < 2**-14, 0, x).astype(np.float16), {}),
    "clamped, not infinite": ("f32", "f16", lambda x: np.clip(x, -65504, 65504).astype(np.float16), {}),
    "twice rounded": ("f32", "e4m3fn", lambda x: to_e4m3(x.astype(np.float16).astype(np.float32)), {}),
    "wrong from 256 to 448": ("f32", "e4m3fn", between(256, 448, lambda x: to_e4m3(x) & 0x7F), {}),
    "wrong in the last binade of subnormals": ("f32", "e4m3fn", between(2**-9, 2**-8, lambda x: to_e4m3(x * 0)), {}),
    "wrong at one number": ("f32", "e4m3fn", between(448, ABOVE_448, lambda x: to_e4m3(x * 0)), {}),
    "wrong below one middle": ("f32", "e4m3fn", between(BELOW_17, 17, lambda x: to_e4m3(x + 1)), {}),
    "half up, not to even": ("f16", "i8", lambda x: np.clip(np.floor(np.nan_to_num(x) + 0.5), -128, 127).astype("i1"),
                             {"rounding": "rint", "overflow": "saturate"}),
    "one code of 65,536": ("f16", "e5m2", lambda x: np.where(x.view(U16) == 0x1234, U8(0), to_e5m2(x)), {}),
    "a number that there is not": ("f32", "e4m3fn", lambda x: np.where(x == 0.3, np.nan, x).astype(np.float32), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_right_conversions_are_equal(name: str) -> None:
    src, dst, function, modes = RIGHT[name]
    found = castsim.compare(None, quietly(function), src, dst, **modes)
    assert found.equal, found.first
    assert (found.largest_ulps, found.binades, found.first) == (0, (), None)
    assert found.all_codes == (format_named(src).bits <= 16)


@pytest.mark.parametrize("name", PLANTED)
def test_planted_errors_are_found(name: str) -> None:
    src, dst, function, modes = PLANTED[name]
    found = castsim.compare(None, quietly(function), src, dst, **modes)
    assert not found.equal
    assert found.first is not None
    # The counterexample is one: the function gives it again for this input alone, and the cast another code.
    source, native = format_named(src), np.dtype(np.float32 if src == "f32" else np.float16)
    one = np.array([found.first.code], f"u{source.bits // 8}").view(native)
    again = np.asarray(quietly(function)(one))
    wanted = castsim.cast(one, src, dst, **modes)
    if found.first.given is not None:
        assert int(again.view(f"u{again.itemsize}")[0]) == found.first.given != found.first.expected
    assert int(np.asarray(wanted).view(f"u{np.asarray(wanted).itemsize}")[0]) == found.first.expected
    assert sum(each.differing for each in found.binades) == found.differing


def test_figures_by_hand() -> None:
    x = np.array([1.0, 1.00390625, 3.0, np.nan, 1e39, -0.0], np.float32)  # 1 + 2^-8 is a middle of bf16
    y = np.array([0x3F80, 0x3F81, 0x4041, 0x7FFF, 0x7F80, 0x0000], U16)
    found = castsim.compare(x, y, "f32", "bf16")
    # The tie goes to even, 0x3f80; 3 is 0x4040; any NaN is NaN; 1e39 is infinite as f32; -0 keeps its sign.
    assert (found.differing, found.largest_ulps) == (3, 1)
    assert found.mean_ulps == pytest.approx(2 / 5)  # both zeros are one number; NaN has no distance
    assert found.first is not None
    assert (found.first.position, found.first.expected, found.first.given) == (1, 0x3F80, 0x3F81)
    assert castsim.compare(x, y, "f32", "bf16", nan="bits").differing == 4
    noise = (2.0**-8) ** 2 + (3.015625 - 3) ** 2
    assert found.signal_to_noise_db == pytest.approx(10 * np.log10((1 + 1.00390625**2 + 9) / noise))
    assert [(each.kind, each.exponent, each.inputs, each.differing) for each in found.binades] == [
        ("number", 0, 2, 1), ("number", 1, 1, 1), ("zero", None, 1, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["e4m3fn", "hif8", "e8m0", "e2m1", "i8", "u8", "e5m2"])
def test_places_are_in_the_order_of_numbers(name: str) -> None:
    fmt = format_named(name)
    codes = np.arange(1 << fmt.bits, dtype=U8)
    exact = {int(code): value_of(int(code), fmt) for code in codes}
    order = sorted(
        {value for value in exact.values() if not math.isnan(value) and abs(value) != float("inf")}, key=Fraction
    )
    numbers = [code for code in codes if exact[int(code)] in order]
    found = places(np.array(numbers, U8), fmt)
    first = order.index(exact[int(numbers[0])])
    assert [int(each - found[0]) for each in found] == [order.index(exact[int(code)]) - first for code in numbers]


def test_a_chip_is_compared_with_its_own_cast() -> None:
    clamps = quietly(lambda x: np.clip(x, -65504, 65504).astype(np.float16))
    assert not castsim.compare(None, clamps, "f32", "f16").equal
    assert castsim.compare(np.float32([1e6, 2.5]), clamps, "f32", "f16", target="a5").equal  # CTRL[60] = 1 clamps


@pytest.mark.parametrize(
    ("arguments", "modes", "kind", "words"),
    [
        ((None, np.zeros(3), "f32", "f16"), {}, ReadError, "need the inputs"),
        (([1.0, 2.0], [1.0], "f32", "f16"), {}, ReadError, "shape"),
        (([1.0], ["a"], "f32", "f16"), {}, ReadError, "cannot hold numbers of f16"),
        (([1.0], [1.0], "f32", "f17"), {}, ReadError, "f17"),
        (([1.0], [1.0], "f32", "f16"), {"rounding": "stochastic"}, IllegalError, "is random"),
        (([1.0], [1.0], "f32", "f16"), {"nan": "some"}, ReadError, "not a way to compare"),
        (([1.0], [1.0], "f32", "i8"), {"target": "a5"}, IllegalError, "no cast"),
        ((None, abs, "f32", "f16"), {"samples": -1}, IllegalError, "-1 samples"),
    ],
)  # fmt: skip
def test_refusals(arguments: tuple, modes: dict, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        castsim.compare(*arguments, **modes)


PACK = """import numpy as np


def cut(x):
    return np.where(np.isnan(x), 0x7FC0, x.view(np.uint32) >> 16).astype(np.uint16)


def fails(x):
    return x / [].pop()
"""


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    path = tmp_path / "pack.py"
    path.write_text(PACK)
    return path


def test_the_command(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "f32", "bf16", f"{pack}:cut"]
    assert out_of(capsys, [*words, "--rounding", "trunc"]).startswith("equal to f32 -> bf16 on ")
    text = out_of(capsys, words, 1)
    assert "inputs differ, " in " ".join(text.split("first: ")[0].split())
    assert "Try `--rounding trunc`." in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100
    document = document_of(capsys, *words, code=1)
    assert document["differing"] > 0
    assert document["first"]["given_bits"] != document["first"]["expected_bits"]


def test_results_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.linspace(-9, 9, 50, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", x.astype(np.float16))
    words = ["compare", "f32", "f16", str(tmp_path / "y.npy")]
    assert main([*words, "--in", str(tmp_path / "x.npy")]) == 0
    assert "--in FILE.npy" in err_of(capsys, words)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("pack.py:nothing", "has no function 'nothing'"),
        ("pack.py:fails", "pack.py:9:1: fails raised IndexError: pop from empty list"),
        ("pack.py", "neither a results file nor a function"),
        ("none.py:cut", "No such file"),
        ("broken.py:cut", "broken.py:2:5: invalid Python: invalid syntax"),
        ("raises.py:cut", "raises.py:1:1: the file raised ValueError: at import"),
    ],
)
def test_files_that_give_no_results(given: str, words: str, pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pack.parent / "broken.py").write_text("x = 1\ny = = 2\n")
    (pack.parent / "raises.py").write_text("raise ValueError('at import')\n")
    assert main(["compare", "f32", "bf16", str(pack.parent / given)]) in (1, 2)
    error = capsys.readouterr().err
    assert words in error
    assert "Traceback" not in error


CLIPPED = """
import ml_dtypes
import numpy as np


def clipped(x):
    return np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn)


def without_nan(x):
    return np.where(np.isnan(x), np.float32(0), x).astype(ml_dtypes.bfloat16)


def halved(x):
    return (x / 2).astype(ml_dtypes.bfloat16)


def wrapped(x):
    return x.astype(np.int64).astype(np.int8)


def same(x):
    return x.astype(ml_dtypes.bfloat16)
"""


@pytest.mark.parametrize(
    ("words", "sentences"),
    [
        # Beyond 464, the middle between 448 and what would follow, e4m3fn has NaN (docs/reference/formats.md).
        (
            "f32 e4m3fn :clipped",
            ("inputs differ, all beyond +-464: yours gives +-448, the cast NaN.", "Try `--overflow saturate`."),
        ),
        ("f16 e4m3fn :clipped", ("of 65,536 inputs differ, all beyond +-464:", "Try `--overflow saturate`.")),
        ("f32 bf16 :without_nan", ("inputs differ, all NaN: yours gives 0, the cast NaN.", "No option of the cast")),
        ("f16 bf16 :halved", ("inputs differ, ", "yours is up to ", "No option of the cast makes them equal.")),
        ("i16 i8 :wrapped --overflow saturate", ("of 65,536 inputs differ, ", "Try `--overflow wrap`.")),
        ("f32 bf16 :same --rounding floor", ("yours is up to 1 ulp from the cast.", "Try `--rounding rint`.")),
    ],
)
def test_the_verdict_comes_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, sentences: tuple[str, ...]
) -> None:
    path = file_of(tmp_path / "own.py", CLIPPED)
    command = ["compare", *words.replace(":", f"{path}:").split()]
    document = document_of(capsys, *command, code=1)
    head = " ".join(out_of(capsys, command, 1).split("compared with")[0].split())
    assert head.startswith(f"{document['verdict']}. ")
    assert head.startswith(f"{document['differing']:,} of ")
    for sentence in sentences:
        assert sentence in head
