"""Scalar casts: the chains and shortcuts of the scalar unit, run one number at a time."""

from __future__ import annotations

import csv

import compiled_cases as cases
import numpy as np
import oracle_compiled as oracle
import pytest

from castsim.__main__ import main
from castsim.isa.errors import IllegalError
from castsim.tpc_compiler.compiled_casts import compile_cast, compiled_cast


def scalar_pairs(generation: str) -> set[tuple[str, str]]:
    """Return the pairs that one instruction of the scalar unit converts."""
    found = set()
    for name in ("tpc_convert_pairs.csv", "tpc_convert_int_pairs.csv"):
        with (oracle.VECTORS / name).open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if (row["gen"], row["unit"]) == (generation, "spu")]
        found |= {(row["src"], row["dst"]) for row in rows if "i4" not in row.values() and "u4" not in row.values()}
    return {pair for pair in found if "i64" not in pair}


@pytest.mark.parametrize("generation", oracle.GENERATIONS)
def test_every_pair_of_the_scalar_unit(generation: str) -> None:
    for src, dst in sorted(scalar_pairs(generation)):
        codes = cases.sample(src, dst, points=6, random=2)[::7]
        cast = compile_cast(src, dst, generation, order="scalar")
        longer = generation in ("gaudi", "gaudib") and (src, dst) == ("i8", "bf16")  # LL test i8_to_bf16
        assert len(cast.path.hops) == 1 + longer
        assert cast.values(codes).tolist() == oracle.step(codes, src, dst, "RHNE").tolist(), (src, dst)
        assert cast.run(codes[:1]).stale_reads == ()


@pytest.mark.parametrize("generation", ["goya", "gaudi", "gaudib", "greco"])
def test_the_shortcut_of_u32_to_f32_loses_the_top_bit(generation: str) -> None:
    codes = np.array([5, 2**31 - 1, 2**31, 3000000000], np.uint32)
    found = compiled_cast(codes, "u32", "f32", target=generation, order="scalar")
    assert found.view(np.float32).tolist() == [np.float32(int(code) & 0x7FFFFFFF) for code in codes]
    vector = compiled_cast(codes, "u32", "f32", target=generation)
    assert vector.view(np.float32).tolist() == codes.astype(np.float32).tolist()


def test_one_element_counts_bundles_of_the_scalar_unit(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compiled", "u32", "f32", "3000000000", "--target", "gaudi", "--order", "scalar", "--form", "ir"]
    assert main(arguments) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("uint -> float on gaudi, LLVM IR uitofp")
    lost = np.array([3000000000 - 2**31], np.float32).view(np.uint32)[0]
    assert f"852516352 (0x{lost:08x}) 3000000000 (0x4f32d05e) differs" in out
    assert "one element in scalar registers" in out


def test_what_scalars_lack_is_refused() -> None:
    with pytest.raises(IllegalError, match="selects no"):
        compile_cast("i1", "u16", "gaudi", order="scalar")
    for reading, order in (("scalar", "linear"), ("document", "scalar")):
        with pytest.raises(IllegalError, match="do not go together"):
            compile_cast("f32", "u16", "gaudi", reading=reading, order=order)
