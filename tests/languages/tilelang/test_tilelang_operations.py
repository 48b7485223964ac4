"""Operations of TileLang's register dialect, cores and memory, SIMT functions, compared with NumPy and ml_dtypes."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from languages.tilelang.test_tilelang import REFUSED, module

from castsim.isa.errors import EngineError, IllegalError, ReadError, TileError

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("tilelang") is None, reason="the extra tilelang"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning"),
]

FLOATS, INTEGERS = ("float32", "float16"), ("int32", "uint32", "int16", "uint16", "int8", "uint8")
ALL = (*FLOATS, "bfloat16", *INTEGERS)


def kind_of(word: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, word) if hasattr(ml_dtypes, word) else word)


def lanes_of(word: str) -> int:
    return 256 // kind_of(word).itemsize


def simd(name: str) -> Any:
    return getattr(importlib.import_module("tilelang.ascend.language.simd"), name)


def low(values: Any, lanes: int) -> Any:
    return np.concatenate([values, np.zeros(lanes - len(values), values.dtype)])


def sides(values: Any, part: int, of: int, kind: np.dtype[Any]) -> Any:
    """Return values in every so manieth lane of a register."""
    found = np.zeros(256 // kind.itemsize, kind)
    found[part::of] = values
    return found


class Row(NamedTuple):
    """What an operation makes of two registers and a mask of eight lanes, and NumPy of the same."""

    operation: Callable[..., Any]
    model: Callable[[Any, Any], Any]
    sources: tuple[str, ...]
    result: str = ""
    load: str = "NORM"
    store: str = "NORM_B32"
    tolerance: float = 0
    small: bool = False
    """Whether inputs are small whole numbers, whose sums are exact."""


def plain(name: str, model: Callable[..., Any], sources: tuple[str, ...], **words: Any) -> Row:
    return Row(lambda u, v, m: simd(name)(u, v), model, sources, **words)


def alone(name: str, model: Callable[..., Any], sources: tuple[str, ...], **words: Any) -> Row:
    given = {key: words.pop(key) for key in ("precision",) if key in words}
    return Row(lambda u, v, m: simd(name)(u, **given), lambda a, b: model(a), sources, **words)


def wide(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a: function(np.abs(a.astype(np.float64)))


def of_magnitude(name: str, **words: Any) -> Callable[..., Any]:
    return lambda u, v, m: simd(name)(simd("vabs")(u), **words)


def blocks(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: low(function(a.reshape(8, -1), 1).astype(a.dtype), a.size)


def carried(a: Any, b: Any) -> Any:
    return a.astype(np.uint32).astype(np.uint64) + b.astype(np.uint32).astype(np.uint64) >= 1 << 32


def threes(order: str, model: Callable[..., Any]) -> dict[str, Row]:
    return {
        f"vcmp {order}": Row(lambda u, v, m: simd("vsel")(u, v, simd("vcmp")(u, v, op=order)),
                             lambda a, b: np.where(model(a, b), a, b), ALL),
        f"vcmps {order}": Row(lambda u, v, m: simd("vsel")(u, v, simd("vcmps")(u, 1, op=order)),
                              lambda a, b: np.where(model(a, 1), a, b), ALL),
    }  # fmt: skip


def conversion(source: str, result: str, part: int = 0, **words: Any) -> Row:
    """To the nearest even, saturated; into or out of every second or fourth lane where widths differ."""
    a, b = kind_of(source), kind_of(result)
    of = max(a.itemsize, b.itemsize) // min(a.itemsize, b.itemsize)

    def model(x: Any, y: Any) -> Any:
        values = x[part::of] if a.itemsize < b.itemsize else x
        if b.kind in "iu":
            bounds = np.iinfo(b)
            found = np.clip(np.rint(values.astype(np.float64)), bounds.min, bounds.max).astype(b)
        else:
            most = float(ml_dtypes.finfo(b).max)
            found = np.clip(values.astype(np.float64), -most, most).astype(np.float32).astype(b)
        return found if a.itemsize <= b.itemsize else sides(found, part, of, b)

    return Row(lambda u, v, m: simd("vcvt")(u, result, part=part, **words), model, (source,), result)


ROUNDINGS: dict[str, Callable[..., Any]] = {
    "ROUND_R": np.rint, "ROUND_A": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), "ROUND_F": np.floor,
    "ROUND_C": np.ceil, "ROUND_Z": np.trunc,
}  # fmt: skip


def rounded(source: str, result: str, how: str) -> Row:
    bounds = np.iinfo(result)
    return Row(
        lambda u, v, m: simd("vcvt")(u, result, round=how),
        lambda a, b: np.clip(ROUNDINGS[how](a.astype(np.float64)), bounds.min, bounds.max), (source,), result,
    )  # fmt: skip


NARROWED = {"int16": "int32", "uint16": "uint32", "int8": "int16", "uint8": "uint16"}

ROWS: dict[str, Row] = {
    **{name: plain(name, model, ALL) for name, model in (
        ("vadd", np.add), ("vsub", np.subtract), ("vmax", np.maximum), ("vmin", np.minimum))},
    "vmul": plain("vmul", np.multiply, ALL[:7]),
    "vdiv": plain("vdiv", np.divide, FLOATS),
    **{name: plain(name, model, INTEGERS) for name, model in (
        ("vand", np.bitwise_and), ("vor", np.bitwise_or), ("vxor", np.bitwise_xor))},
    "vabsdif": plain("vabsdif", lambda a, b: np.abs(a - b), FLOATS),
    "vprelu": plain("vprelu", lambda a, b: np.where(a >= 0, a, a * b), FLOATS),
    "vlrelu": Row(lambda u, v, m: simd("vlrelu")(u, 0.25), lambda a, b: np.where(a >= 0, a, a / 4), FLOATS),
    "vexpdif": plain("vexpdif", lambda a, b: np.exp((a - b).astype(np.float64)), FLOATS[:1], tolerance=1e-6),
    "vnot": alone("vnot", np.invert, INTEGERS),
    "vabs": alone("vabs", np.abs, (*FLOATS, "bfloat16", "int32", "int16", "int8")),
    "vneg": alone("vneg", np.negative, (*FLOATS, "bfloat16", "int32", "int16", "int8")),
    "vrelu": alone("vrelu", lambda a: np.maximum(a, 0), (*FLOATS, "int32")),
    "vexp": alone("vexp", lambda a: np.exp(a.astype(np.float64)), FLOATS, tolerance=2e-3),
    "vln": Row(of_magnitude("vln"), lambda a, b: wide(np.log)(a), FLOATS, tolerance=4e-3),
    "vsqrt": Row(of_magnitude("vsqrt"), lambda a, b: wide(np.sqrt)(a), FLOATS, tolerance=1e-3),
    "exact vsqrt": Row(of_magnitude("vsqrt", precision="ftz_false"), lambda a, b: np.sqrt(np.abs(a)), FLOATS[:1]),
    "exact vln": Row(of_magnitude("vln", precision="ftz_false"), lambda a, b: wide(np.log)(a), FLOATS[:1],
                     tolerance=1e-6),
    **{name: Row(lambda u, v, m, name=name: simd(name)(u, 5), lambda a, b, model=model: model(a, a.dtype.type(5)),
                 sources)
       for name, model, sources in (("vadds", np.add, ALL), ("vmuls", np.multiply, ALL[:7]),
                                    ("vmaxs", np.maximum, ALL), ("vmins", np.minimum, ALL))},
    "vshls": Row(lambda u, v, m: simd("vshls")(u, 3), lambda a, b: a << 3, INTEGERS),
    "vshrs": Row(lambda u, v, m: simd("vshrs")(u, 3), lambda a, b: a >> 3, INTEGERS),
    **{key: row for order, model in (
        ("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal), ("gt", np.greater),
        ("ge", np.greater_equal)) for key, row in threes(order, model).items()},
    "vaddc": Row(lambda u, v, m: simd("vaddc")(u, v)[1], np.add, INTEGERS[:2]),
    "carry": Row(lambda u, v, m: simd("vsel")(u, v, simd("vaddc")(u, v)[0]),
                 lambda a, b: np.where(carried(a, b), a, b), INTEGERS[:2]),
    "no borrow": Row(lambda u, v, m: simd("vsel")(u, v, simd("vsubc")(u, v)[0]),
                     lambda a, b: np.where(a.astype(np.uint32) >= b.astype(np.uint32), a, b), INTEGERS[:2]),
    "vaddcs": Row(lambda u, v, m: simd("vaddcs")(u, v, m)[1], lambda a, b: a + b + (np.arange(64) < 8).astype(a.dtype),
                  INTEGERS[:2]),
    "vmull": Row(lambda u, v, m: simd("vmull")(u, v)[1],
                 lambda a, b: a.astype(np.int64) * b.astype(np.int64) >> 32, INTEGERS[:1]),
    "vcadd": Row(lambda u, v, m: simd("vcadd")(u), lambda a, b: low(a.sum(keepdims=True, dtype=a.dtype), a.size),
                 ("float32", "float16", "int32", "uint32"), small=True),
    **{f"vcadd {source}": Row(lambda u, v, m: simd("vcadd")(u),
                              lambda a, b, k=result: low(a.astype(k).sum(keepdims=True), lanes_of(k)),
                              (source,), result) for source, result in list(NARROWED.items())[:2]},
    "vcgadd": Row(lambda u, v, m: simd("vcgadd")(u), blocks(np.sum), ("float32", "float16", "int32"), small=True),
    "vcgmax": Row(lambda u, v, m: simd("vcgmax")(u), blocks(np.max), ALL[:2] + INTEGERS[:4]),
    "vcgmin": Row(lambda u, v, m: simd("vcgmin")(u), blocks(np.min), ALL[:2] + INTEGERS[:4]),
    "vcpadd": alone("vcpadd", lambda a: low(a[::2] + a[1::2], a.size), FLOATS),
    "vintlv": Row(lambda u, v, m: simd("vintlv")(u, v)[1], lambda a, b: np.stack([a, b], 1).reshape(-1)[a.size :], ALL),
    "vdintlv": Row(lambda u, v, m: simd("vdintlv")(u, v)[0], lambda a, b: np.concatenate([a, b])[::2], ALL),
    "vdupv": Row(lambda u, v, m: simd("vdupv")(u, pos="POS_HIGHEST"), lambda a, b: np.full_like(a, a[-1]), ALL),
    "mask": Row(lambda u, v, m: simd("vadd")(v, u, m), lambda a, b: np.where(np.arange(a.size) < 8, a + b, 0), ALL),
    "update_mask": Row(lambda u, v, m: simd("vsub")(u, v, simd("update_mask")(5, 32)),
                       lambda a, b: np.where(np.arange(64) < 5, a - b, 0), ("float32", "int32")),
    "punpack ppack": Row(
        lambda u, v, m: simd("vsel")(u, v, simd("punpack")(simd("ppack")(simd("vcmp")(u, v, op="gt")))),
        lambda a, b: np.where(a > b, a, b), ("float32", "int32")),
    "pintlv": Row(
        lambda u, v, m: simd("vsel")(
            u, v, simd("pintlv")(simd("vcmp")(u, v, op="gt"), simd("vcmp")(u, v, op="le"))[0]),
        lambda a, b: np.where(np.stack([a > b, a <= b], 1).reshape(-1)[:64], a, b), ("float32",)),
    "psel": Row(
        lambda u, v, m: simd("vsel")(u, v, simd("psel")(simd("vcmp")(u, v, op="gt"), simd("vcmps")(v, 0.0), m)),
        lambda a, b: np.where(np.where(np.arange(64) < 8, a > b, b < 0), a, b), ("float32",)),
    "vpack": Row(lambda u, v, m: simd("vpack")(u, 1), lambda a, b: np.concatenate([0 * a, a]).astype(np.uint16),
                 ("int32", "uint32"), "uint16"),
    **{f"vunpack {source}": Row(lambda u, v, m: simd("vunpack")(u, 1), lambda a, b: a[a.size // 2 :], (source,), result)
       for source, result in NARROWED.items()},
    **{f"vusqz {kind}": Row(lambda u, v, m, kind=kind: simd("vusqz")(simd("vcmps")(u, 0, op="gt"), kind),
                            lambda a, b: np.cumsum(a > 0) - (a > 0), (kind,)) for kind in ("int32", "int16", "int8")},
    "vsqz": Row(lambda u, v, m: simd("vsqz")(u, simd("vcmps")(u, 0, op="gt")), lambda a, b: low(a[a > 0], a.size),
                ("int32", "int16", "float32")),
    **{f"vci {kind}": Row(lambda u, v, m, kind=kind: simd("vci")(3, kind), lambda a, b: 3 + np.arange(a.size), (kind,))
       for kind in ("int32", "int16", "float32", "float16")},
    "BRC_B16": Row(lambda u, v, m: u, lambda a, b: np.full_like(a, a[0]), ("bfloat16", "int16"), load="BRC_B16"),
    "US_B8": Row(lambda u, v, m: u, lambda a, b: np.repeat(a[:128], 2), ("uint8",), load="US_B8"),
    "E2B_B32": Row(lambda u, v, m: u, lambda a, b: np.repeat(a[:8], 8), ("float32",), load="E2B_B32"),
    "BLK": Row(lambda u, v, m: u, lambda a, b: np.tile(a[: a.size // 8], 8), ("float32", "uint8"), load="BLK"),
    **{f"{a} {b} {how}": rounded(a, b, how) for a, b in (("float32", "int32"), ("float16", "int16"))
       for how in ROUNDINGS},
    **{f"{a} {b} {part}": conversion(a, b, part) for part in (0, 1) for a, b in (
        ("float32", "float16"), ("float32", "bfloat16"), ("float32", "int16"), ("float16", "int8"),
        ("float16", "uint8"), ("int32", "int16"), ("int32", "uint16"), ("uint32", "uint16"), ("int16", "uint8"),
        ("uint16", "uint8"), ("float16", "float32"), ("bfloat16", "float32"), ("int16", "int32"), ("uint8", "uint16"),
        ("int8", "int16"), ("uint16", "uint32"), ("uint8", "float16"), ("int8", "float16"), ("int16", "float32"),
        ("float32", "int64"), ("int32", "int64"))},
    **{f"{a} {b}": conversion(a, b) for a, b in (("int32", "float32"), ("int16", "float16"), ("bfloat16", "float16"))},
    **{f"{a} {b} {part}": conversion(a, b, part) for part in range(4) for fp8 in ("float8_e4m3fn", "float8_e5m2")
       for a, b in (("float32", fp8), (fp8, "float32"))},
}  # fmt: skip
"""Every operation with the types that it has."""


def numbers(word: str, count: int, seed: int, *, small: bool) -> Any:
    """Return numbers of a type with its extremes, ties and values beyond narrower types among them."""
    kind, rng = kind_of(word), np.random.default_rng(seed)
    if small:
        return rng.integers(0 if kind.kind == "u" else -5, 8, count).astype(kind)
    if kind.kind in "iu":
        found = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, count, dtype=kind, endpoint=True)
        found[:4] = 0, 1, np.iinfo(kind).max, np.iinfo(kind).min
        return found
    found = rng.normal(size=count) * 3
    found[10:30] = np.arange(20) / 2 - 5
    found[30:36] = 127.5, -128.5, 255.5, 448, -300, 0.001
    return found.astype(kind)


@pytest.mark.parametrize(("name", "source"), [(name, source) for name, row in ROWS.items() for source in row.sources])
def test_operations_are_those_of_numpy(name: str, source: str) -> None:
    row = ROWS[name]
    result = row.result or source
    lanes = lanes_of(source), lanes_of(result)
    a, b = (numbers(source, 3 * lanes[0], seed, small=row.small) for seed in (1, 2))
    prim = importlib.import_module("languages.tilelang.tilelang_kernels").applied.get_tir(
        row.operation, source, result, lanes, row.load, row.store
    )
    found = importlib.import_module("castsim.languages.tilelang").run(prim, a=a, b=b).outputs["y"]
    with np.errstate(all="ignore"):
        parts = zip(a.reshape(3, -1), b.reshape(3, -1), strict=True)
        wanted = np.concatenate([np.asarray(row.model(x, y)).astype(kind_of(result))[: lanes[1]] for x, y in parts])
    if row.tolerance:
        assert np.allclose(found.astype(float), wanted.astype(float), rtol=row.tolerance, atol=1e-30)
    else:
        nan = np.isnan(found.astype(float)) & np.isnan(wanted.astype(float))  # which NaN is not compared
        assert np.where(nan, 0, found).tobytes() == np.where(nan, 0, wanted).tobytes()


def ran(name: str, arguments: tuple[Any, ...] = (), **words: Any) -> Any:
    factory = getattr(importlib.import_module("languages.tilelang.tilelang_kernels"), name)
    return importlib.import_module("castsim.languages.tilelang").run(factory.get_tir(*arguments), **words)


@pytest.mark.parametrize("schedule", [True, False])
@pytest.mark.parametrize(("rows", "columns"), [(21, 320), (8, 300), (5, 301), (1, 64)])
def test_tiles_that_are_cut_short(schedule: bool, rows: int, columns: int) -> None:
    x = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
    found = ran("tiles", (columns, 128), core="all", schedule=schedule, x=x, dims={"factor": 1.5})
    assert np.array_equal(found.outputs["y"], x * np.float32(1.5)) and found.races == ()


@pytest.mark.parametrize("schedule", [True, False])
def test_pointers_masks_in_memory_and_gathers(schedule: bool) -> None:
    rng = np.random.default_rng(0)
    x, index = rng.normal(size=512).astype(np.float32), rng.permutation(512)[:64].astype(np.int32)
    blocks = rng.integers(0, 64, 64).astype(np.uint32)
    found = ran("pointers", schedule=schedule, x=x, index=index, blocks=blocks * 32).outputs
    put = np.zeros(512, np.float32)
    put[index] = x[:64]
    assert np.array_equal(found["more"], x + 1) and np.array_equal(found["put"], put)
    assert np.array_equal(found["turned"], x.reshape(8, 8, 8).transpose(1, 0, 2).reshape(-1))
    gathered = x.reshape(64, 8)[blocks[:8]].reshape(-1)
    taken = np.concatenate([x[index], gathered, np.where(x[:64] > 0, x[:64] + 1, 0)])
    assert np.array_equal(found["taken"], taken)


@pytest.mark.parametrize("mode", ["MODE_ZEROING", "MODE_MERGING"])
def test_sums_in_place(mode: str) -> None:
    """d + a b, d a + b and a s + d, as the package's docstrings of vmula, vmadd and vaxpy say."""
    a, b, d = np.random.default_rng(0).integers(-9, 9, (3, 64)).astype(np.float32)
    found = ran("sums_in_place", (mode,), x=np.concatenate([a, b, d])).outputs["y"].reshape(3, 64)
    left = d if mode == "MODE_MERGING" else 0
    wanted = [np.where(np.arange(64) < 8, value, left) for value in (d + a * b, d * a + b, a * 3 + d)]
    assert np.array_equal(found, np.stack(wanted))


@pytest.mark.parametrize("n", [1, 8])
def test_conditions_on_elements(n: int) -> None:
    """In the order of the source: TileLang's schedule sets no flags for elements that the scalar unit loads."""
    rng = np.random.default_rng(n)
    x, which = rng.normal(size=(n, 64)).astype(np.float32), rng.integers(0, 3, n).astype(np.int32)
    found = ran("conditions", schedule=False, x=x, which=which, dims={"limit": 1}).outputs
    kept, rows = np.zeros(64, np.float32), []
    for row, chosen in zip(x, which, strict=True):
        kept = kept + row if chosen == 1 else kept * np.float32(0.5) if chosen > 1 else kept
        rows.append(kept)
    assert np.array_equal(found["y"], np.stack(rows))
    steps = np.where(which > 1, np.floor(x[:, 1]), np.abs(x[:, 0]))
    assert np.array_equal(found["total"][:n], np.cumsum(steps, dtype=np.float32))


def test_arithmetic_of_the_scalar_unit() -> None:
    rng = np.random.default_rng(0)
    i, u = rng.integers(-1000, 1000, 16).astype(np.int32), rng.integers(0, 1 << 32, 16).astype(np.uint32)
    w, f = rng.integers(-(10**12), 10**12, 16), (rng.normal(size=16) * 2).astype(np.float32)
    found = ran("scalars", schedule=False, i=i, u=u, w=w, f=f).outputs
    assert np.array_equal(found["a"], np.clip(np.fmod(i, 7), -3, 2))
    assert np.array_equal(found["b"], np.where(u > 0x80000000, (u >> np.uint32(3)) ^ u, u * np.uint32(2654435761)))
    assert np.array_equal(found["c"], w // 3 + i % 5)
    assert np.array_equal(found["d"], np.clip(f, -1, 1) + i.astype(np.float32))


# ------- kernels of TileLang whose cores wait for each other, tables of pointers, elements that the scalar unit loads


@pytest.mark.parametrize("schedule", [True, False])
@pytest.mark.parametrize("cores", [2, 3])
def test_cores_see_what_the_others_stored_before_the_flag(schedule: bool, cores: int) -> None:
    x = np.random.default_rng(cores).integers(-99, 99, (cores * 4, 64)).astype(np.float32)
    found = ran("sum_of_cores", (cores,), core="all", schedule=schedule, x=x)
    total = x.sum(0)
    assert np.array_equal(found.outputs["whole"], np.broadcast_to(total, (cores, 64)))
    assert np.array_equal(found.outputs["z"], total * 2)
    assert "does not model" in found.untimed


def test_a_core_that_waits_for_others_does_not_run_alone() -> None:
    with pytest.raises(IllegalError, match="core 1 waits for other cores"):
        ran("sum_of_cores", (2,), core=1, x=np.zeros((8, 64), np.float32))


@pytest.mark.parametrize("schedule", [True, False])
def test_a_table_of_pointers(schedule: bool) -> None:
    rng = np.random.default_rng(0)
    tensors = [rng.normal(size=(5, 64)).astype(np.float32) for _ in range(3)]
    which = np.array([2, 0, 0, 1, 3], np.int32)
    table = [*tensors, tensors[0]]
    found = ran("doubled_in_place", schedule=schedule, which=which, table=table)
    assert np.array_equal(found.outputs["y"], np.stack([table[each][row] * 2 for row, each in enumerate(which)]))
    changed = [each.copy() for each in tensors]
    for row, each in enumerate(which):
        changed[each % 3][row] *= 2
    assert all(np.array_equal(got, changed[n % 3]) for n, got in enumerate(found.outputs["table"]))
    assert found.cycles > 0 and found.races == ()


def test_tables_of_addresses_in_host_code() -> None:
    torch, tilelang = importlib.import_module("torch"), importlib.import_module("castsim.languages.tilelang")
    tensors = [torch.full((2, 64), float(n)) for n in (3, 5)]
    y, which = torch.empty(2, 64), torch.tensor([1, 0], dtype=torch.int32)
    kernels = importlib.import_module("languages.tilelang.tilelang_kernels")
    with tilelang.simulated():
        addresses = torch.empty(2, dtype=torch.int64, pin_memory=True)
        for number, each in enumerate(tensors):
            addresses[number] = each.data_ptr()
        kernels.doubled_in_place()(which, addresses, y)
        with pytest.raises(ReadError, match="no tensor at address 0x7b"):
            kernels.doubled_in_place()(which, torch.tensor([123, 0]), y)
    assert y[:, 0].tolist() == [10, 6] and tensors[1][0, 0] == 10 and tensors[1][1, 0] == 5


def test_a_table_wants_arrays() -> None:
    with pytest.raises(ReadError, match="table is a table of pointers"):
        ran("doubled_in_place", which=np.zeros(2, np.int32), table=np.zeros(2, np.int64))


@pytest.mark.parametrize("schedule", [True, False])
@pytest.mark.parametrize("count", [0, 3, 16])
def test_elements_that_address_and_end_loops(schedule: bool, count: int) -> None:
    rng = np.random.default_rng(count)
    x, index = rng.normal(size=(64, 64)).astype(np.float32), rng.integers(0, 64, 16).astype(np.int32)
    index[count : count + 1] = -1
    found = ran("rows_by_index", schedule=schedule, x=x, index=index)
    wanted = np.full((16, 64), 0.5, np.float32)
    wanted[:count] = x[index[:count]] * index[:count, None].astype(np.float32)
    assert np.array_equal(found.outputs["y"], wanted) and (found.outputs["count"] == count).all()
    assert found.cycles > 0


# ----------------------------- SIMT functions of TileLang's kernels: values, and the cycles that are refused in words


@pytest.mark.parametrize("schedule", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("bfloat16", 2**-8)])
@pytest.mark.parametrize("rows", [3, 10])
def test_a_softmax_by_threads(schedule: bool, dtype: str, tolerance: float, rows: int) -> None:
    rng = np.random.default_rng(rows)
    x = rng.normal(size=(rows, 256)).astype(getattr(ml_dtypes, dtype, dtype))
    index = rng.integers(0, 256, 256).astype(np.int32)
    found = ran("softmax_by_threads", (dtype,), core="all", schedule=schedule, x=x, index=index)
    e = np.exp(x.astype(np.float64)[:, index])
    total = e.sum(1, keepdims=True)
    y = np.where(index > 7, e / total, 1 / (1 + np.exp(-x.astype(np.float64))))
    assert np.abs(found.outputs["y"].astype(np.float64) / y - 1).max() <= tolerance
    assert np.abs(found.outputs["total"] / total[:, 0] - 1).max() <= 1e-6


def test_cycles_are_refused_in_words() -> None:
    found = ran("sums_by_reducer", x=np.ones((64, 256), np.float32))
    assert found.untimed == "castsim computes SIMT functions (T.SimtVF) but does not model their cycles"
    assert found.functions == () and (found.outputs["z"] == 256).all()
    with pytest.raises(EngineError, match="does not model"):
        assert found.cycles


@pytest.mark.parametrize("cores", [1, 3])
def test_warps_loops_and_atomic_counts(cores: int) -> None:
    """In the order of the source: TileLang's schedule takes no atomic operation on global memory here."""
    x = np.random.default_rng(0).integers(-1000, 1000, (4, 256)).astype(np.int32)
    start = np.arange(8, dtype=np.int32)
    found = ran("warps", (cores,), core="all", schedule=False, x=x, count=start)
    lanes = x.reshape(4, 8, 32).sum(1)
    tid = np.arange(128).reshape(4, 32)
    added = 1000 * np.minimum(tid % 5, 2)  # a third trip is left before it adds
    assert np.array_equal(found.outputs["y"], lanes.sum(1, keepdims=True) + lanes + added)
    assert np.array_equal(found.outputs["most"], np.broadcast_to(lanes.max(1, keepdims=True), (4, 32)))
    assert np.array_equal(found.outputs["count"], start + 16 * cores * (cores + 1) // 2)


def test_random_words_are_philox() -> None:
    """The first block is of Random123's published vectors: counter and key 0."""
    found = ran("draws", dims={"seed": 0})
    assert found.outputs["word"][:4, 0].tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert len(np.unique(found.outputs["word"])) == 640
    assert found.outputs["u"].min() > 0 and found.outputs["u"].max() < 1 and abs(found.outputs["u"].mean() - 0.5) < 0.1
    assert abs(found.outputs["normal"].std() - 1) < 0.15


@pytest.mark.parametrize(
    ("which", "kind", "message"),
    [
        ("beyond", TileError, r"reaches element 70000"),
        ("simt", IllegalError, r"a call of own_function in SIMT functions is not supported"),
    ],
)
def test_what_threads_cannot_do_is_refused(which: str, kind: type[Exception], message: str, tmp_path: Any) -> None:

    (tmp_path / "refused_threads.py").write_text(REFUSED)
    with pytest.raises(kind, match=message):
        importlib.import_module("castsim.languages.tilelang").run(
            module("refused_threads", tmp_path).factory.get_tir(which), x=np.ones(128, np.float32)
        )


def test_host_code_that_asks_for_an_npu_takes_that_branch() -> None:
    """A kernel is called where the device is an NPU; elsewhere the host computes something else."""
    torch, tilelang = importlib.import_module("torch"), importlib.import_module("castsim.languages.tilelang")
    kernels = importlib.import_module("languages.tilelang.tilelang_kernels")

    def host(x: Any) -> Any:
        if x.device.type != "npu" or not (hasattr(torch, "npu") and torch.npu.is_available()):
            return x * 0
        y = torch.empty(192, dtype=torch.float32, device=torch.device("npu"))
        assert y.device == x.device and os.path.exists("/dev/davinci_manager")  # noqa: PTH110 - as kernels ask
        kernels.sums_in_place("MODE_ZEROING")(x, y)
        torch.npu.synchronize()
        assert importlib.import_module("torch_npu").npu.get_device_properties(0).vector_core_num > 0
        return y.cpu()

    x = torch.arange(192, dtype=torch.float32)
    with tilelang.simulated() as log:
        y = host(x)
        z = host(torch.arange(192, dtype=torch.float32, device="npu:0").npu().to("npu"))
    assert len(log) == 2 and torch.equal(y, z)
    a, b, d = x[:8], x[64:72], x[128:136]
    assert torch.equal(y.view(3, 64)[:, :8], torch.stack([d + a * b, d * a + b, a * 3 + d]))
    assert x.device.type == "cpu" and not hasattr(torch, "npu") and torch.equal(host(x), x * 0)
