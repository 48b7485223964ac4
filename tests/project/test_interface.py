"""The Python interface as somebody at a prompt meets it: short forms, names, dtypes."""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kit.paths import ROOT

import castsim
import castsim.__main__
from castsim import cast, estimate, run
from castsim.isa.errors import ReadError
from castsim.isa.formats import format_named
from castsim.isa.value_expressions import format_spelled, hexadecimal_float
from castsim.targets.loader import load_target
from castsim.tools.lowering.demand import CastRequest
from castsim.tools.lowering.lowering_answers import answer
from castsim.tools.verify import kept
from castsim.tools.verify.running import VerificationRecord, plan

pytestmark = pytest.mark.smoke

X = np.array([1.5, 70000.0, -2.25], np.float32)


def test_results_are_shown_in_a_line() -> None:
    result = run(ROOT / "programs/f32_to_f16.pto", inputs={"src": "random:0"})
    shown = repr(result)
    assert len(shown) < 300
    assert f"{result.cycles:,} cycles" in shown
    assert "dst float16[4, 64]" in shown
    for each in (result.loaded, load_target("a2a3"), load_target("gaudi2")):
        assert len(repr(each)) < 300
    assembled = run(ROOT / "programs/tpc_f32_i16_quantise_greco.tpc", inputs={"x": "zeros"})
    assert len(repr(assembled)) < 300
    assert "greco" in repr(assembled)


def test_names_that_are_imported_on_use_are_listed() -> None:
    assert {name for name in dir(castsim) if not name.startswith("_")} == set(castsim.__all__) - {"__version__"}
    for name in castsim.__all__:
        assert getattr(castsim, name) is not None


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (np.float16, "f16"), (np.dtype("f2"), "f16"), (np.dtype(">f2"), "f16"), (np.int8, "i8"), (np.uint16, "u16"),
        (np.int64, "i64"), (np.bool_, "bool"), (ml_dtypes.bfloat16, "bf16"), (np.dtype(ml_dtypes.float8_e5m2), "e5m2"),
        (ml_dtypes.int4, "i4"),
    ],
)  # fmt: skip
def test_dtypes_name_formats(given: Any, name: str) -> None:
    by_name, by_dtype = cast(X, "f32", name), cast(X, np.float32, given)
    assert by_dtype.dtype == by_name.dtype
    assert by_dtype.tobytes() == by_name.tobytes()
    assert cast(X, X.dtype, given).tobytes() == by_name.tobytes()


def test_dtypes_name_formats_of_targets_too() -> None:
    assert cast(X, np.float32, np.float16, target="a2a3").tolist() == [1.5, np.inf, -2.25]
    assert estimate(np.float32, np.float16, 4, 64, target="a2a3") == estimate("f32", "f16", 4, 64, target="a2a3")


@pytest.mark.parametrize("given", [float, int, bool, 3, np.complex64, np.floating, np.dtype("U4"), b"f16", object])
def test_what_names_no_format(given: Any) -> None:
    with pytest.raises(ReadError, match="does not name a format") as caught:
        cast(X, "f32", given)
    assert "float16" in caught.value.legal


def same(found: Any, expected: Any) -> bool:
    return found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dst", ["f16", "bf16", "i8", "e4m3fn"])
def test_the_format_of_an_array_is_that_of_its_dtype(dst: str) -> None:
    assert same(cast(X, dst), cast(X, "f32", dst))
    assert same(cast(X, dst=dst), cast(X, "f32", dst))
    assert same(cast(X.astype(np.float16), dst), cast(X.astype(np.float16), "f16", dst))
    assert same(cast(np.uint8([1, 200]), dst), cast(np.uint8([1, 200]), "u8", dst))


@pytest.mark.parametrize("src", ["f64", "f32", "f16", "bf16", "e5m2", "i8", "i64", "u16", "i4", "bool"])
@pytest.mark.parametrize("given", [[1, 0, 1], [[1], [0]], 1, True, (0, 1), []])
def test_lists_and_numbers_are_arrays_of_the_source(src: str, given: Any) -> None:
    dtype = {"bf16": ml_dtypes.bfloat16, "e5m2": ml_dtypes.float8_e5m2, "i4": ml_dtypes.int4}.get(src)
    native = np.asarray(
        given, dtype or {"f": "float", "i": "int", "u": "uint"}.get(src[0], "") + src[1:].lstrip("ol") or "bool"
    )
    assert same(cast(given, src, "f32"), cast(native, src, "f32"))


@pytest.mark.parametrize(("src", "largest"), [("f16", 70000.0), ("bf16", 1e39), ("f32", 1e39), ("e5m2", 1e6)])
def test_numbers_beyond_a_format_raise_no_warning(src: str, largest: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert castsim.cast([largest, -largest], src, "f64").tolist() == [np.inf, -np.inf]


def test_lists_without_a_source_are_what_numpy_makes_of_them() -> None:
    assert same(cast([1.5, 2.5], "f16"), np.float16([1.5, 2.5]))
    assert same(cast([300, -1], "i8"), np.int8([44, -1]))
    assert same(cast(1.5, "f16"), np.array(1.5, np.float16))


@pytest.mark.parametrize(
    ("given", "formats", "message"),
    [
        ([1, 300], ("i8", "f32"), "i8 cannot represent all of [1, 300]"), ([-1], ("u8", "f32"), "u8 cannot represent"),
        ([9], ("i4", "f32"), "i4 cannot represent"), ([1.5], ("i8", "f32"), "i8 holds integers, not float64"),
        ([1 << 70], ("i64", "f32"), "i64 holds integers, not object"), (["a"], ("f32", "f16"), "'a' is not a number"),
        (["300"], ("i8", "f32"), "i8 cannot represent '300'"), (["0xp1"], ("f32", "f16"), "not a hexadecimal float"),
        (None, ("f16",), "does not name a format"), ([[1], [1, 2]], ("f16",), "not an array"),
        ([1.5], ("hif8", "f16"), "hif8 has no NumPy type"), ([1.5], (), "the format of the results is missing"),
    ],
)  # fmt: skip
def test_what_cannot_be_converted(given: Any, formats: tuple[str, ...], message: str) -> None:
    with pytest.raises(castsim.ReadError, match=re.escape(message)):
        cast(given, *formats)


class Torch:
    """Stands for a dtype of PyTorch, of which only the representation matters."""

    def __repr__(self) -> str:
        return "torch.bfloat16"


@pytest.mark.parametrize("name", ["torch.bfloat16", Torch(), "bfloat16"])
def test_names_of_dtypes_as_pytorch_writes_them(name: Any) -> None:
    assert same(cast(X, "f32", name), cast(X, "f32", "bf16"))


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        # TOSA's types, ONNX's, those of the kernels in C++, of PyTorch.
        ("fp16_t", "f16"), ("bf16_t", "bf16"), ("fp8e4m3_t", "e4m3fn"), ("fp8e5m2_t", "e5m2"), ("int48_t", "i48"),
        ("bool_t", "bool"), ("float8e4m3fn", "e4m3fn"), ("float8e5m2fnuz", "e5m2fnuz"), ("float8e8m0", "e8m0"),
        ("float4e2m1", "e2m1"), ("uint4", "u4"), ("double", "f64"), ("int4b_t", "i4"), ("half", "f16"),
        ("float4_e1m2x2_t", "e1m2"), ("hifloat8_t", "hif8"), ("ushort", "u16"), ("torch.float8_e5m2", "e5m2"),
    ],
)  # fmt: skip
def test_types_as_other_languages_write_them(spelled: str, name: str) -> None:
    assert format_spelled(spelled) is format_spelled(spelled.upper()) is format_named(name)
    if name not in ("bool", "i48"):
        assert same(cast(X, "fp32_t", spelled), cast(X, "f32", name))


@pytest.mark.parametrize("name", ["f8e4m3", "float9", "int5b_t", "fp8", "f16@3"])
def test_what_no_language_means(name: str) -> None:
    """MLIR's f8E4M3 has infinities: it is not the format without that others call so."""
    with pytest.raises(ReadError, match="format"):
        format_spelled(name)


@pytest.mark.parametrize("seed", range(50))
def test_texts_are_numbers_exactly(seed: int) -> None:
    """`float.hex` and `float.fromhex` of Python are the reference."""
    rng = np.random.default_rng(seed)
    numbers = np.concatenate((rng.normal(size=9) * 2.0 ** rng.integers(-140, 120, 9), [0.0, -0.0, 5e-324]))
    texts = [float(number).hex() for number in numbers]
    assert same(cast(texts, "f64", "f32"), cast(numbers, "f64", "f32"))
    assert [hexadecimal_float(text) for text in texts] == numbers.tolist()
    assert same(cast(["1/3", "-0x.8P-1", "1e-3"], "f64", "f32"), cast([1 / 3, -0.25, 1e-3], "f64", "f32"))


class Tensor:
    """A tensor of another library: only DLPack's two methods."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Narrow(Tensor):
    """A tensor of PyTorch's bfloat16, which NumPy does not read: its bits can be viewed as integers."""

    dtype = Torch()

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("no such dtype")

    def view(self, dtype: type) -> Tensor:
        return Tensor(self.array.view(dtype))


def test_tensors_of_other_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    assert same(cast(Tensor(X), "f16"), cast(X, "f16"))
    assert same(cast(Tensor(X), "f32", "e4m3fn", target="a5"), cast(X, "f32", "e4m3fn", target="a5"))
    bits = cast(X, "bf16")
    monkeypatch.setitem(sys.modules, "tensors", SimpleNamespace(int16=np.int16))  # as torch.int16 is
    monkeypatch.setattr(Narrow, "__module__", "tensors")
    assert same(cast(Narrow(bits.view(np.uint16)), "f32"), cast(bits, "f32"))
    monkeypatch.delattr(Narrow, "view")
    with pytest.raises(ReadError, match="Narrow is not readable as an array"):
        cast(Narrow(bits.view(np.uint16)), "f32")


def test_tensors_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    assert same(cast(torch.from_numpy(X), "f16"), cast(X, "f16"))
    for narrow in (torch.bfloat16, torch.float8_e4m3fn):
        wanted = torch.from_numpy(X).to(narrow).to(torch.float32).numpy()
        assert same(cast(torch.from_numpy(X).to(narrow), "f32"), wanted)


def test_a_generator_draws_the_random_words() -> None:
    near = np.full(20_000, 1 + 2.0**-12, np.float32)  # a quarter of the way from 1 to its neighbour in f16
    drawn = cast(near, "f32", "f16", rounding="stochastic", random=np.random.default_rng(5))
    assert abs(float((drawn > 1).mean()) - 0.25) < 0.02
    words = np.random.default_rng(5).integers(1 << 32, size=near.shape, dtype=np.uint32)
    assert same(drawn, cast(near, "f32", "f16", rounding="stochastic", random=words))


def test_type_checkers_refuse_names_that_there_are_not(tmp_path: Path) -> None:
    """`castsim/__init__.py` alone: what it hands on is of any type, what it does not have is an error."""
    api = pytest.importorskip("mypy.api")
    package = tmp_path / "castsim"
    package.mkdir()
    (package / "__init__.py").write_text(Path(castsim.__file__).read_text())
    (tmp_path / "user.py").write_text("import castsim\n\ncastsim.cast\ncastsim.nope\n")
    said, _, code = api.run(["--strict", "--no-incremental", "--ignore-missing-imports", str(tmp_path / "user.py")])
    assert code == 1
    assert [line.partition("user.py:")[2] for line in said.splitlines() if "user.py" in line] == [
        '4: error: Module has no attribute "nope"  [attr-defined]'
    ]


def test_findings_are_shown_in_a_line() -> None:
    path = ROOT / "programs/tpc_f32_i32_pipelined_stale_goya.tpc"
    result = run(path, inputs={"x": "random:1"})
    assert result.stale_reads
    read = result.stale_reads[0]
    for each in (read, read.reader, result.timing):
        assert len(repr(each)) < 200
        assert "\n" not in repr(each)
    assert f"line {read.reader.span.line} " in repr(read)


def test_lowering_is_a_call() -> None:
    found = castsim.lower(np.float16, "i8", target="a5", spec="tosa@1.1")
    request = CastRequest("f16", "i8", "a5", spec="tosa", version="1.1")
    expected = answer(request)
    assert (found.kind, found.settings, found.text) == (expected.kind, expected.settings, expected.text)
    assert found.text is not None
    assert "tcvt" in found.text
    with pytest.raises(castsim.CastsimError, match="unknown format"):
        castsim.lower("f33", "f16", target="a5")


# ----------------------------------------------------------------------------------------------------- verification


def test_digests_are_made_only_for_who_keeps_them(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    made: list[bool] = []
    monkeypatch.setattr("castsim.tools.verify.running.source_digests", lambda *, oracle: made.append(oracle) or {})
    argv = ["verify", "f32", "e2m1", "--rounding", "rint", "--samples", "100", "--against", "reference"]
    assert castsim.__main__.main(argv) == 0
    assert made == []
    assert castsim.__main__.main([*argv, "--json", "-", "--quiet"]) == 0
    assert made == [False]


def test_a_proof_is_about_no_foreign_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed, the packages stand beside all others: here numpy itself, found where they are."""
    (tmp_path / "castsim").mkdir()
    for entry in (*(ROOT / "simulator").iterdir(), ROOT / "isa", ROOT / "targets"):
        (tmp_path / "castsim" / entry.name).symlink_to(entry)
    (tmp_path / "numpy").symlink_to(Path(np.__file__).parent)
    checkout = set(kept.source_digests(oracle=False))
    folders = {name: tmp_path.joinpath(*name.split(".")) for name in kept.PACKAGES}
    monkeypatch.setattr(kept, "PACKAGES", folders)
    assert set(kept.source_digests(oracle=False)) == checkout


def test_without_the_oracle_the_reference_is_the_opponent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {part.against for part in plan("bf16", "e4m3fn")} == {"oracle"}
    monkeypatch.setattr("castsim.tools.verify.running.oracle_folder", lambda: None)
    assert {part.against for part in plan("bf16", "e4m3fn")} == {"reference"}
    assert VerificationRecord.of(plan("bf16", "e4m3fn")).progress
