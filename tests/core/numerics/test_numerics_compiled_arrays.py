"""Compiled casts of every kind of array, in bounded memory, and without numba or a place for its cache."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from kit.paths import ROOT

from castsim import cast
from castsim.isa.errors import ReadError
from castsim.isa.formats import FORMATS, Overflow, Rounding
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import cast_codes
from castsim.numerics.policy import Policy, abstract_policy
from castsim.numerics.tiers import Tier, cast_array, convert_codes

F32, E4M3, F16, I16 = (FORMATS[name] for name in ("f32", "e4m3fn", "f16", "i16"))
needs_numba = pytest.mark.skipif(
    subprocess.run([sys.executable, "-c", "import numba"], capture_output=True, check=False).returncode != 0,
    reason="needs numba",
)
TIERS = [Tier.REFERENCE, Tier.TABLE, *(pytest.param(tier, marks=needs_numba) for tier in (Tier.COMPILED, Tier.GENERIC))]


def some_codes(count: int) -> np.ndarray:
    return np.random.default_rng(2).integers(0, 1 << 32, count, dtype=np.uint32)


@pytest.mark.parametrize("tier", TIERS)
def test_layouts(tier: Tier) -> None:
    policy = abstract_policy(F32, E4M3)
    codes = some_codes(40_000).reshape(-1, 4)
    want = cast_codes(codes, F32, E4M3, policy)

    def got(array: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        return convert_codes(array, F32, E4M3, policy, tier=tier, out=out)

    read_only = codes.copy()
    read_only.flags.writeable = False
    unaligned = np.frombuffer(b"\0" + codes.tobytes(), np.uint8)[1:].view(np.uint32).reshape(codes.shape)
    for array in (codes, read_only, unaligned, codes.astype(">u4"), codes[::-1][::-1], np.asfortranarray(codes)):
        assert np.array_equal(got(array), want)
    assert np.array_equal(got(codes[::-3, ::2]), want[::-3, ::2])
    assert got(codes[:0]).shape == (0, 4)
    assert got(np.array(codes[0, 0])).shape == ()
    assert got(np.array(codes[0, 0])) == want[0, 0]
    for out in (np.zeros((4, len(codes)), np.uint8).T, np.zeros((2 * len(codes), 8), np.uint8)[::-2, ::2]):
        assert got(codes, out) is out
        assert np.array_equal(out, want)


@needs_numba
def test_a_loaded_loop_checks_its_arrays() -> None:
    """A loop that is loaded runs without `check_out` if the arrays need no preparation."""
    policy = abstract_policy(F16, E4M3)
    memory = np.arange(1 << 12, dtype=np.uint16)
    wanted, codes = memory.copy(), memory[:1000]
    results = convert_codes(codes, F16, E4M3, policy, tier=Tier.COMPILED)
    octets = memory.view(np.uint8)
    for out in (np.zeros(999, np.uint8), octets[:1000], octets[1999:2999], np.zeros(2000, np.uint8)[::2][:999]):
        with pytest.raises(ReadError, match=r"overlaps|shape"):
            convert_codes(codes, F16, E4M3, policy, out=out)
    assert np.array_equal(memory, wanted)
    assert np.array_equal(convert_codes(codes, F16, E4M3, policy, out=octets[2000:3000]), results)


@pytest.mark.parametrize("tier", TIERS)
def test_out_may_be_the_input_and_nothing_else_of_it(tier: Tier) -> None:
    policy = Policy(Rounding.RINT, Overflow.SPECIAL)
    bf16 = FORMATS["bf16"]
    memory = np.arange(1 << 15, dtype=np.uint16)
    codes = memory[:20_000]
    want = cast_codes(codes.copy(), F16, bf16, policy)
    for out in (memory[1:20_001], codes[::-1], memory.view(np.uint8)[1:40_001].view(np.uint16)):
        with pytest.raises(ReadError, match="overlaps"):
            convert_codes(codes, F16, bf16, policy, tier=tier, out=out)
    with pytest.raises(ReadError, match="overlaps"):
        convert_codes(codes, F16, E4M3, policy, tier=tier, out=memory.view(np.uint8)[:20_000])
    assert np.array_equal(memory, np.arange(1 << 15))
    interleaved = np.repeat(codes, 2)
    convert_codes(interleaved[::2], F16, bf16, policy, tier=tier, out=interleaved[1::2])
    assert np.array_equal(interleaved[1::2], want)
    convert_codes(codes, F16, bf16, policy, tier=tier, out=codes)
    assert np.array_equal(codes, want)


@pytest.mark.parametrize("tier", TIERS)
def test_wrong_arrays_are_refused(tier: Tier) -> None:
    policy = abstract_policy(F32, E4M3)
    good, frozen = np.zeros(3, np.uint32), np.zeros(3, np.uint8)
    frozen.flags.writeable = False
    for out in (
        np.zeros(4, np.uint8),
        np.zeros((1, 3), np.uint8),
        np.zeros(3, np.uint16),
        np.zeros(3, np.int8),
        frozen,
        [0, 0, 0],
    ):
        with pytest.raises(ReadError, match="out"):
            convert_codes(good, F32, E4M3, policy, tier=tier, out=out)
    with pytest.raises(ReadError, match="uint32"):
        convert_codes(np.zeros(3, np.float32), F32, E4M3, policy, tier=tier)
    i4 = FORMATS["i4"]
    with pytest.raises(ReadError, match="not a code of i4"):
        convert_codes(np.full(3, 16, np.uint8), i4, F32, abstract_policy(i4, F32), tier=tier)
    i48 = FORMATS["i48"]
    if tier is not Tier.TABLE:
        with pytest.raises(ReadError, match="not a value of i48"):
            convert_codes(np.full(3, 1 << 50, np.uint64), i48, F32, abstract_policy(i48, F32), tier=tier, out=good)


@needs_numba
def test_a_code_outside_its_format_is_refused_also_once_the_loop_is_there() -> None:
    i4 = FORMATS["i4"]
    policy, out = abstract_policy(i4, F32), np.zeros(3, np.uint32)
    convert_codes(np.zeros(3, np.uint8), i4, F32, policy, tier=Tier.COMPILED, out=out)
    with pytest.raises(ReadError, match="not a code of i4"):
        convert_codes(np.full(3, 16, np.uint8), i4, F32, policy, tier=Tier.COMPILED, out=out)


@pytest.mark.parametrize("tier", TIERS)
def test_a_mapped_file_is_cast_in_bounded_memory(tier: Tier, tmp_path: Path) -> None:
    """64 MiB beyond input and output is the limit for any size; strided sources go block by block."""
    count = (1 << 27) if tier is Tier.COMPILED else 1 << 22
    source = np.memmap(tmp_path / "in", np.uint32, "w+", shape=(count,))  # sparse: 512 MiB of holes
    result = np.memmap(tmp_path / "out", np.uint8, "w+", shape=(count,))
    source[-3:] = np.array([1.0, -2.0, 448.0], np.float32).view(np.uint32)
    policy = abstract_policy(F32, E4M3)
    tracemalloc.start()
    convert_codes(source, F32, E4M3, policy, tier=tier, out=result)
    convert_codes(source[::-2], F32, E4M3, policy, tier=tier, out=result[::2])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20
    assert result[0] == 0x7E and result[2] == 0x38  # 448 and 1 (docs/reference/formats.md section 1)


def test_values_below_a_byte_are_cast_without_a_copy_of_them_all() -> None:
    values = np.resize(np.arange(-8, 8, dtype=np.int8), 1 << 23)
    out = np.empty(values.size, np.int8)
    policy = abstract_policy(FORMATS["i4"], FORMATS["i2"], None, Overflow.SATURATE)
    tracemalloc.start()
    assert cast_array(values, FORMATS["i4"], FORMATS["i2"], policy, out=out) is out
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20
    assert out[:16].tolist() == [-2] * 7 + [-1, 0, 1] + [1] * 6
    with pytest.raises(ReadError, match="9 is not a value of i4"):
        cast_array(np.full(1 << 17, 9, np.int8), FORMATS["i4"], FORMATS["i2"], policy)


def test_cast_takes_a_tier_and_refuses_unknown_ones() -> None:
    values = np.array([0.3, -2.5], np.float32)
    for tier in ("reference", "table", "compiled", None):
        assert cast(values, "f32", "i8", tier=tier).tolist() == [0, -2]
    with pytest.raises(ReadError, match="unknown tier 'fast'"):
        cast(values, "f32", "i8", tier="fast")
    with pytest.raises(ReadError, match="cannot be combined with target"):
        cast(values, "f32", "f16", target="a2a3", tier="table")


def test_a_chip_casts_large_arrays_in_blocks_like_small_ones() -> None:
    values = np.linspace(-70_000, 70_000, 300_000, dtype=np.float32)
    out = np.empty(values.size, np.float16)
    assert cast(values, "f32", "f16", target="a2a3", rounding="rint", out=out) is out
    pieces = [cast(part, "f32", "f16", target="a2a3", rounding="rint") for part in np.array_split(values, 7)]
    assert np.array_equal(out, np.concatenate(pieces))
    with pytest.raises(ReadError, match="shape"):
        cast(values, "f32", "f16", target="a2a3", out=np.empty(3, np.float16))


def run_python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", program],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
        check=True,
    )


CASTS = """
import numpy as np
from castsim.isa.formats import FORMATS
from castsim.numerics.cast import cast_codes
from castsim.numerics.policy import abstract_policy
from castsim.numerics.tiers import Tier, convert_codes
codes = np.random.default_rng(1).integers(0, 1 << 32, 1000, dtype=np.uint32)
for dst in ("e4m3fn", "i32", "e4m3fn"):
    args = codes, FORMATS["f32"], FORMATS[dst], abstract_policy(FORMATS["f32"], FORMATS[dst])
    assert np.array_equal(convert_codes(*args, tier=Tier.COMPILED), cast_codes(*args))
"""


def test_without_numba_the_results_are_the_same_and_a_hint_comes_once() -> None:
    run = run_python("import sys; sys.modules['numba'] = None\n" + CASTS)
    assert run.stderr.count("RuntimeWarning: castsim: numba cannot be imported") == 1
    assert "pip install numba" in run.stderr


def test_without_numba_the_generic_tier_says_so() -> None:
    program = CASTS.split("for dst", maxsplit=1)[0] + (
        "import sys; sys.modules['numba'] = None\n"
        "args = codes, FORMATS['f32'], FORMATS['f16'], abstract_policy(FORMATS['f32'], FORMATS['f16'])\n"
        "try:\n    convert_codes(*args, tier=Tier.GENERIC)\nexcept ValueError as error:\n    print(error)\n"
    )
    assert "tier 'generic' is not available: numba cannot be imported" in run_python(program).stdout


@needs_numba
def test_without_a_place_for_the_cache_the_results_are_the_same_and_a_hint_comes_once(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    run = run_python(CASTS, NUMBA_CACHE_DIR=str(blocked / "below"))  # no folder can be made below a file
    assert run.stderr.count("RuntimeWarning: castsim: compiled casts cannot be kept on disk") == 1


@needs_numba
def test_a_damaged_cache_is_not_fatal(tmp_path: Path) -> None:
    few = CASTS.replace('"e4m3fn", "i32", "e4m3fn"', '"f16",')
    run_python(few, NUMBA_CACHE_DIR=str(tmp_path))
    for path in tmp_path.rglob("*.nb?"):
        path.write_bytes(path.read_bytes()[:10])
    run_python(few, NUMBA_CACHE_DIR=str(tmp_path))


def test_small_casts_never_import_numba() -> None:
    program = (
        "import sys, numpy as np\nfrom castsim import cast\n"
        "for _ in range(50):\n    cast(np.ones(64, np.float32), 'f32', 'e4m3fn')\n"
        "assert 'numba' not in sys.modules\n"
    )
    run_python(program)


@needs_numba
def test_much_work_imports_numba_of_its_own_accord() -> None:
    program = (
        "import sys, numpy as np\nfrom castsim import cast\n"
        "cast(np.ones(1 << 23, np.float32), 'f32', 'i32')\n"
        "assert 'numba' in sys.modules\n"
    )
    run_python(program)


def test_numba_that_does_not_compile_counts_as_absent() -> None:
    assert "NUMBA_DISABLE_JIT" in run_python(CASTS, NUMBA_DISABLE_JIT="1").stderr


@needs_numba
def test_the_cache_is_keyed_by_all_sources() -> None:
    """numba looks at the file of the loop alone; the hash of the others is a constant of every loop."""
    compiled = pytest.importorskip("castsim.numerics.compiled")
    stamp = compiled.source_stamp()
    for dst in ("e4m3fn", "hif8"):
        policy = abstract_policy(F32, FORMATS[dst])
        for kind in (compiled.fastest_loop, compiled.generic_loop):
            loop = kind(F32, FORMATS[dst], policy)
            assert any(cell.cell_contents is stamp for cell in loop.code.py_func.__closure__)
    sources = ROOT / "simulator" / "numerics"
    assert {*map(Path, compiled.SOURCES)} == {sources / "rounding.py", *(sources / "compiled").glob("*.py")}


@needs_numba
def test_loops_use_all_lanes() -> None:
    """A shift that widens to 64 bits would halve the lanes: the assembly must work on full registers of 32 bits."""
    numba = pytest.importorskip("numba")
    compiled = pytest.importorskip("castsim.numerics.compiled")
    for dst, mode in ((E4M3, Rounding.RINT), (E4M3, Rounding.ODD), (I16, Rounding.RINT)):
        code = compiled.fastest_loop(F32, dst, abstract_policy(F32, dst, mode)).code
        fresh = numba.njit(code.signatures[0])(code.py_func)  # code from the cache cannot be looked at
        assembly = "".join(fresh.inspect_asm().values())
        if "ymm" not in assembly:
            pytest.skip("no registers of 256 bits")
        assert not re.search(r"vps(?:ll|rl|ra)v?q", assembly)


def test_out_dtype_of_native_arrays() -> None:
    values = np.array([1.5, -0.25], np.float32)
    out = np.empty(2, np.float16)
    assert cast(values, "f32", "f16", out=out) is out
    assert out.tolist() == [1.5, -0.25]
    with pytest.raises(ReadError, match="float64"):
        cast(values, "f32", "f16", out=np.empty(2, np.float64))
    assert code_dtype(F16) == np.uint16
