"""The Python interface as somebody at a prompt meets it: short forms, names, dtypes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import castsim
import castsim.__main__
import castsim.isa.pto
import castsim.tpc_compiler.builtins
from castsim import cast, estimate, run
from castsim.evidence.verification import VerificationRecord, sources
from castsim.evidence.verification.planning import plan
from castsim.isa.errors import ReadError
from castsim.planning import CastRequest
from castsim.planning.lowering_answers import answer
from castsim.targets import load_target

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).parent.parent
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
    assert set(castsim.isa.pto.__all__) <= set(dir(castsim.isa.pto))
    assert set(castsim.tpc_compiler.builtins.__all__) <= set(dir(castsim.tpc_compiler.builtins))
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


def test_lists_without_a_source_are_what_numpy_makes_of_them() -> None:
    assert same(cast([1.5, 2.5], "f16"), np.float16([1.5, 2.5]))
    assert same(cast([300, -1], "i8"), np.int8([44, -1]))
    assert same(cast(1.5, "f16"), np.array(1.5, np.float16))


@pytest.mark.parametrize(
    ("given", "formats", "message"),
    [
        ([1, 300], ("i8", "f32"), "i8 does not hold all of [1, 300]"), ([-1], ("u8", "f32"), "u8 does not hold"),
        ([9], ("i4", "f32"), "i4 does not hold"), ([1.5], ("i8", "f32"), "i8 holds integers, not float64"),
        ([1 << 70], ("i64", "f32"), "i64 holds integers, not object"), (["a"], ("f32", "f16"), "f32 holds numbers"),
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
    monkeypatch.setattr(
        "castsim.evidence.verification.record.source_digests", lambda *, oracle: made.append(oracle) or {}
    )
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
    checkout = set(sources.source_digests(oracle=False))
    folders = {name: tmp_path.joinpath(*name.split(".")) for name in sources.PACKAGES}
    monkeypatch.setattr(sources, "PACKAGES", folders)
    assert set(sources.source_digests(oracle=False)) == checkout


def test_without_the_oracle_the_reference_is_the_opponent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {part.against for part in plan("bf16", "e4m3fn")} == {"oracle"}
    monkeypatch.setattr("castsim.evidence.verification.planning.oracle_folder", lambda: None)
    assert {part.against for part in plan("bf16", "e4m3fn")} == {"reference"}
    assert VerificationRecord.of(plan("bf16", "e4m3fn")).progress
