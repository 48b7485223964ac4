"""Inputs of a run and of castsim.cast: files, formats, random numbers, and what is refused."""

from __future__ import annotations

import os
import pickle
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import oracle
import pytest
from kit.paths import PROGRAMS

from castsim import cast, run
from castsim.__main__ import main
from castsim.execution.input_data import (
    ArgumentUse,
    from_memory,
    make_inputs,
    random_codes,
    read_array,
    to_memory,
    write_array,
)
from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.isa.formats import format_named
from castsim.numerics.tiers import Tier

# A `.pto` statement stays on one line.
# ruff: noqa: E501


NATIVE = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16,
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16,
    "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64,
}  # fmt: skip
"""Formats that NumPy has itself."""

CODED = ("bf16", "e4m3fn", "e5m2", "hif8", "e2m1", "e1m2", "i4")
"""Formats that come and go as unsigned codes (i4 as int8 values)."""


def use(name: str, *shape: int) -> ArgumentUse:
    """An argument seen through one dense view."""
    found = ArgumentUse(format_named(name))
    strides = tuple(int(np.prod(shape[k + 1 :], dtype=int)) for k in range(len(shape)))
    found.see_view(shape, strides)
    return found


def codes(name: str, *shape: int) -> np.ndarray:
    row = oracle.fmt(name)
    limit = (1 << row.bits) - 1
    drawn = np.random.default_rng(3).integers(0, limit, shape, dtype=np.uint64, endpoint=True)
    return drawn.astype(oracle.storage(name))


def packed(array: np.ndarray, name: str) -> bytes:
    """Little-endian bytes, two 4-bit elements in one, the first in the low nibble."""
    flat = array.reshape(-1)
    if oracle.fmt(name).bits == 4:
        even = np.append(flat, np.zeros(flat.size % 2, flat.dtype))
        return bytes((even[0::2] | even[1::2] << 4).astype(np.uint8).tolist())
    return b"".join(int(code).to_bytes(array.dtype.itemsize, "little") for code in flat)


# ---------------------------------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("name", [*NATIVE, *CODED])
def test_file_to_memory_and_back(name: str, tmp_path: Path) -> None:
    wanted = codes(name, 3, 6)
    array = wanted.view(NATIVE[name]) if name in NATIVE else wanted
    if name == "i4":  # an integer format: values, not codes
        array = ((wanted.astype(np.int8) ^ 8) - 8).astype(np.int8)
    np.save(tmp_path / "x.npy", array)
    argument = use(name, 3, 6)
    memory = to_memory(read_array(tmp_path / "x.npy", "x"), "x", argument)
    assert memory.tobytes() == packed(wanted, name)
    back = from_memory(memory, argument)
    assert back.shape == (3, 6)
    write_array(tmp_path / "y.npy", back)
    again = np.load(tmp_path / "y.npy", allow_pickle=False)
    assert again.dtype.isbuiltin == 1  # readable without any further package
    assert to_memory(again, "x", argument).tobytes() == memory.tobytes()


@pytest.mark.parametrize("name", ["f32", "f16", "i16", "i32", "i64"])
def test_byte_order_and_layout_of_the_file_do_not_matter(name: str, tmp_path: Path) -> None:
    array = codes(name, 4, 5).view(NATIVE[name])
    argument, wanted = use(name, 4, 5), None
    for variant in (
        array,
        array.astype(array.dtype.newbyteorder(">")),
        np.asfortranarray(array),
        np.repeat(np.repeat(array, 2, 0), 3, 1)[::2, ::3],
        array[::-1, ::-1].copy()[::-1, ::-1],
        array.reshape(-1),
        array.reshape(1, 4, 5),
    ):
        np.save(tmp_path / "x.npy", variant)
        for given in (variant, read_array(tmp_path / "x.npy", "x")):
            memory = to_memory(given, "x", argument)
            wanted = memory if wanted is None else wanted
            assert np.array_equal(memory, wanted)
    assert wanted is not None
    assert wanted.tobytes() == packed(array.view(oracle.storage(name)), name)


def test_odd_number_of_4_bit_elements() -> None:
    argument = use("e2m1", 5)
    memory = to_memory(np.array([1, 2, 3, 4, 5], np.uint8), "x", argument)
    assert memory.tolist() == [0x21, 0x43, 0x05]
    assert from_memory(memory, argument).view(np.uint8).tolist() == [1, 2, 3, 4, 5]


def test_rows_with_gaps_may_be_given_whole() -> None:
    # 2 rows of 3 at stride 4: 7 elements reach the last one, 8 fill the rows.
    argument = ArgumentUse(format_named("i32"))
    argument.see_view((2, 3), (4, 1))
    for size in (7, 8):
        assert to_memory(np.arange(size, dtype=np.int32), "x", argument).size == 4 * size
    for size in (6, 9):
        with pytest.raises(ReadError, match=f"{size} elements.*2x3.*7 or 8"):
            to_memory(np.zeros(size, np.int32), "x", argument)


# --------------------------------------------------------------------------------------------------------------- random


@pytest.mark.parametrize("name", ["i8", "u8", "i16", "i32", "i64", "u64", "i4"])
def test_random_integers_cover_their_range(name: str) -> None:
    row = oracle.fmt(name)
    drawn = random_codes(np.random.default_rng(7), format_named(name), (4000,))
    dtype = np.int64 if row.signed else np.uint64
    wanted = np.random.default_rng(7).integers(row.low, row.high, 4000, dtype=dtype, endpoint=True)
    assert [int(code) for code in drawn] == [int(value) % (1 << row.bits) for value in wanted]
    if row.bits <= 8:
        assert set(drawn.tolist()) == set(range(1 << row.bits))


@pytest.mark.parametrize("name", ["f32", "f16", "bf16", "e4m3fn", "e5m2"])
def test_random_floats_are_uniform_and_rounded_once(name: str) -> None:
    argument = use(name, 50, 40)
    drawn = make_inputs({"x": "random:7"}, {"x": argument})["x"]
    uniform = np.random.default_rng(7).uniform(-100, 100, (50, 40))
    wanted = oracle.cast_array(uniform.view(np.uint64), "f64", name)
    assert np.array_equal(np.ascontiguousarray(drawn).view(wanted.dtype), wanted)
    assert uniform.min() < -99
    assert uniform.max() > 99


def test_random_is_reproducible_and_depends_on_the_seed() -> None:
    uses = {"x": use("f32", 8), "y": use("i32", 8)}
    first, again, other = (make_inputs({"x": f"random:{seed}"}, uses)["x"] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_random_arguments_are_drawn_in_the_order_of_the_program() -> None:
    uses = {"x": use("i32", 8), "y": use("i32", 8)}
    forward = make_inputs({"x": "random:1", "y": "random:1"}, uses)
    backward = make_inputs({"y": "random:1", "x": "random:1"}, uses)
    assert all(np.array_equal(forward[name], backward[name]) for name in uses)


@pytest.mark.parametrize(
    "text", ["random:", "random:-1", "random:1.5", "random:x", "random: 1", "random:" + "9" * 5000]
)
def test_bad_seeds(text: str) -> None:
    with pytest.raises(ReadError, match="seed") as caught:
        make_inputs({"x": text}, {"x": use("f32", 2)})
    assert "random:0" in caught.value.legal


# ------------------------------------------------------------------------------------------------------------- refusals


def test_unknown_argument() -> None:
    with pytest.raises(ReadError, match="'z'") as caught:
        make_inputs({"z": "zeros"}, {"x": use("f32", 2), "y": use("f32", 2)})
    assert caught.value.legal == ("x", "y")


@pytest.mark.parametrize("size", [0, 1, 5, 7, 12])
def test_wrong_number_of_elements(size: int) -> None:
    with pytest.raises(ReadError, match=rf"input 'x' has shape \[{size}\], {size} elements.*2x3.*6"):
        to_memory(np.zeros(size, np.float32), "x", use("f32", 2, 3))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("f32", np.float64), ("f32", np.float16), ("f32", np.int32), ("f32", np.uint16), ("f32", bool), ("f32", complex),
        ("i8", np.float32), ("i8", np.int16), ("i32", np.float32), ("bf16", np.float32), ("bf16", np.uint8),
        ("f16", ml_dtypes.bfloat16), ("e4m3fn", ml_dtypes.float8_e5m2), ("f32", "U4"), ("f32", "datetime64[s]"),
        ("f32", [("a", np.float32)]),
    ],
)  # fmt: skip
def test_wrong_dtype(name: str, dtype: Any) -> None:
    with pytest.raises(ReadError, match="input 'x'"):
        to_memory(np.zeros(4, dtype), "x", use(name, 4))


@pytest.mark.parametrize(
    ("value", "dtype", "name"),
    [*((value, np.int8, "i4") for value in (8, -9, 100)), (16, np.uint8, "e2m1")],
)
def test_4_bit_values_out_of_range(value: int, dtype: Any, name: str) -> None:
    with pytest.raises(ReadError, match="input 'x'"):
        to_memory(np.full(4, value, dtype), "x", use(name, 4))


def archive(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, x=np.zeros(3))


def cut(path: Path) -> None:
    np.save(path, np.arange(100.0))
    path.write_bytes(path.read_bytes()[:-9])


def zipped(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a", "b")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: np.save(path, np.array([{"a": 1}, None], dtype=object), allow_pickle=True), "pickled objects"),
        (lambda path: path.write_bytes(pickle.dumps([1, 2, 3])), "is not a .npy file"),
        (archive, "is an archive; give a single array"),
        (zipped, "is an archive; give a single array"),
        (lambda path: path.write_bytes(b""), "is not a .npy file"),
        (lambda path: path.write_text("1 2 3\n"), "is not a .npy file"),
        (lambda path: path.mkdir(), "cannot be read: Is a directory"),
        (cut, "is truncated"),
        (lambda path: path.write_bytes(b"\x93NUMPY\x01\x00\x06\x00{'a':\n"), "header"),
        (lambda path: path.write_bytes(b"\x93NUMPY\x09\x00\x06\x00{'a':\n"), "is not a .npy file"),
    ],
)
def test_files_that_are_no_arrays(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    make(path)
    with pytest.raises(ReadError, match="input 'x'") as caught:
        read_array(path, "x")
    assert "x.npy" in caught.value.message
    assert message in caught.value.message
    assert caught.value.exit_code == 2


def test_pickles_are_never_run(tmp_path: Path) -> None:
    flag = tmp_path / "flag"

    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (os.mkdir, (str(flag),))

    (tmp_path / "x.npy").write_bytes(pickle.dumps(Trap()))
    np.save(tmp_path / "y.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    for name in ("x", "y"):
        with pytest.raises(ReadError):
            read_array(tmp_path / f"{name}.npy", name)
    assert not flag.exists()


def test_files_without_elements(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((0, 4), np.float32))
    array = read_array(tmp_path / "x.npy", "x")
    assert array.shape == (0, 4)
    argument = ArgumentUse(format_named("f32"))
    argument.see_view((0, 4), (4, 1))
    assert to_memory(array, "x", argument).size == 0


F32 = np.array([1.5, -2.0, 3.25], np.float32)
F16 = np.array([1.5, -2.0, 3.25], np.float16)
TIERS = [None, *(str(tier) for tier in Tier)]


def refused(
    kind: type[CastsimError], *words: str, legal: str | None = None, tier: str | None = None, **call: Any
) -> None:
    """The cast raises `kind`, a ValueError; its message has all the words, its list of alternatives the legal one."""
    arguments = {"array": F32, "src": "f32", "dst": "f16", "tier": tier, **call}
    with pytest.raises(kind) as caught:
        cast(**arguments)
    assert isinstance(caught.value, ValueError)
    for word in words:
        assert word in caught.value.message, caught.value.message
    if legal is not None:
        assert any(legal in item for item in caught.value.legal), caught.value.legal


# ------------------------------------------------------------------------------------------------------ what was typed


# Whatever the tier: what is raised, the call, words of the message, what is legal.
REFUSED: list[tuple[type[CastsimError], dict[str, Any], tuple[str, ...], str | None]] = [
    (ReadError, {"src": "f33"}, ("f33",), "f32"),
    (ReadError, {"dst": "float17"}, ("float17",), "f16"),
    (ReadError, {"dst": "f8_143@16"}, ("f8_143@16",), "f8_143@15"),
    (ReadError, {"dst": "f16@3"}, ("f16@3",), "f8_143@BIAS"),
    (ReadError, {"rounding": "up"}, ("up",), "half_up"),
    (ReadError, {"rounding": ""}, ("''",), "rint"),
    (ReadError, {"overflow": "clip"}, ("clip",), "saturate"),
    (IllegalError, {"overflow": "wrap"}, ("wrap", "f16"), "special"),
    (IllegalError, {"dst": "i8", "overflow": "special"}, ("special", "i8"), "wrap"),
    (IllegalError, {"dst": "hif8", "rounding": "rint"}, ("rint", "f32 -> hif8"), "hybrid"),
    (IllegalError, {"dst": "hif8", "rounding": "odd"}, ("odd", "f32 -> hif8"), "trunc"),
    (IllegalError, {"dst": "e8m0", "rounding": "rint"}, ("rint", "f32 -> e8m0"), "ceil"),
    (IllegalError, {"dst": "f16", "rounding": "hybrid"}, ("hybrid", "f32 -> f16"), "stochastic"),
    (
        IllegalError, {"array": F16, "src": "f16", "dst": "e4m3fn", "rounding": "hybrid"},
        ("hybrid", "f16 -> e4m3fn"), "rint",
    ),
    *(
        (ReadError, {"array": np.zeros(3, dtype), "src": src}, (src, str(np.dtype(dtype))), legal)
        for dtype, src, legal in (
            (np.float64, "f32", "float32"), (np.int32, "f32", "uint32"), (np.uint16, "f32", "uint32"),
            (np.uint32, "i32", "int32"), (np.int8, "e4m3fn", "uint8"), (np.float32, "hif8", "uint8"),
            (np.int16, "i4", "uint8"), (object, "f32", "float32"), ("U3", "f32", "float32"),
        )
    ),
    *(
        (ReadError, {"out": out}, words, None)
        for out, words in (
            (np.zeros(4, np.float16), ("(4,)", "(3,)")), (np.zeros((3, 1), np.float16), ("(3, 1)", "(3,)")),
            (np.zeros((), np.float16), ("()", "(3,)")), (np.zeros(3, np.float32), ("float32",)),
            (np.zeros(3, np.int16), ("int16",)), ([0, 0, 0], ("list",)),
        )
    ),
    # Values outside the width of a code.
    *(
        (ReadError, {"array": np.array(values, dtype), "src": src}, (word, src), legal)
        for values, dtype, src, word, legal in (
            ([1, 0x10], np.uint8, "e2m1", "0x10", "0 to 0xf"), ([0x40], np.uint8, "e3m2", "0x40", "0 to 0x3f"),
            ([4], np.uint8, "u2", "0x4", "0 to 0x3"), ([3, 9], np.int8, "i4", "9", "-8 to 7"),
            ([-9], np.int8, "i4", "-9", "-8 to 7"),
            ([1 << 47], np.int64, "i48", str(1 << 47), f"-{1 << 47} to {(1 << 47) - 1}"),
            ([-(1 << 47) - 1], np.int64, "i48", str(-(1 << 47) - 1), f"-{1 << 47} to"),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(("kind", "call", "words", "legal"), REFUSED)
def test_refused_whatever_the_tier(
    kind: type[CastsimError], call: dict[str, Any], words: tuple[str, ...], legal: str | None, tier: str | None
) -> None:
    if tier == "table" and call.get("src") == "i48":
        tier = "reference"  # no table has 2**48 entries, which is refused first
    refused(kind, *words, legal=legal, tier=tier, **call)


@pytest.mark.parametrize(
    ("call", "word", "legal"),
    [
        ({"tier": "fastest"}, "fastest", "reference"),
        ({"target": "a4"}, "a4", "a2a3"),
        ({"target": "a2a3", "saturation": "half"}, "half", "off"),
        ({"target": "a2a3", "rounding": "up"}, "up", "rint"),
        ({"saturation": "on"}, "saturation", None),
        ({"target": "a2a3", "overflow": "wrap"}, "saturation", None),
    ],
)
def test_unknown_words_without_a_choice_of_tier(call: dict[str, Any], word: str, legal: str | None) -> None:
    refused(ReadError, word, legal=legal, **call)


def test_pairs_that_a_chip_does_not_have() -> None:
    refused(IllegalError, "a2a3", "f32 -> e4m3fn", legal="f32 -> f16", dst="e4m3fn", target="a2a3")
    refused(IllegalError, "a2a3", "stochastic", legal="rint", target="a2a3", rounding="stochastic")


@pytest.mark.parametrize("tier", TIERS)
def test_outputs_that_cannot_be_written(tier: str | None) -> None:
    out = np.zeros(3, np.float16)
    out.flags.writeable = False
    refused(ReadError, "writ", tier=tier, out=out)
    memory = np.zeros(16, np.uint8)
    source = memory[:12].view(np.float32)
    refused(ReadError, "overlap", tier=tier, array=source, out=memory[2:8].view(np.float16))


@pytest.mark.parametrize(
    ("random", "words"),
    [
        (None, ("stochastic", "random words")),
        (np.zeros(3, np.int32), ("int32",)),
        (np.zeros(3, np.uint64), ("uint64",)),
        (np.zeros(4, np.uint32), ("(4,)", "(3,)")),
        ([1, 2, 3], ("list",)),
    ],
)
@pytest.mark.parametrize("tier", [None, "reference", "compiled", "generic"])
def test_random_words(random: Any, words: tuple[str, ...], tier: str | None) -> None:
    refused(ReadError, *words, tier=tier, rounding="stochastic", random=random)


@pytest.mark.parametrize("tier", TIERS)
def test_needless_random_words(tier: str | None) -> None:
    kind = IllegalError if tier == "table" else ReadError
    refused(kind, "random words", tier=tier, random=np.zeros(3, np.uint32))


def test_tables_have_no_random_words() -> None:
    words = np.zeros(3, np.uint32)
    refused(IllegalError, "table", legal="reference", tier="table", rounding="stochastic", random=words)


@pytest.mark.parametrize(("array", "dtype"), [(None, "object"), ([{}], "object"), ([1j], "complex128")])
def test_what_holds_no_numbers(array: Any, dtype: str) -> None:
    refused(ReadError, f"f32 holds numbers, not {dtype}", array=array)


def test_a_text_that_is_no_number() -> None:
    refused(ReadError, "'1.5x' is not a number", legal="decimal", array=["1.5", "1.5x"])


# ---------------------------------------------------------------------------------- shapes: as many elements, other axes


def test_a_program_that_views_an_argument_in_two_ways_takes_arrays_of_both() -> None:
    argument = use("f32", 16, 64)
    argument.see_view((1024,), (1,))
    for shape in ((16, 64), (1024,)):
        assert to_memory(np.zeros(shape, np.float32), "x", argument).size == 4096
    with pytest.raises(ReadError, match=r"expects shape \[16, 64\]"):
        to_memory(np.zeros((64, 16), np.float32), "x", argument)


def test_a_column_major_view_has_its_rows_innermost() -> None:
    argument = ArgumentUse(format_named("f32"))
    argument.see_view((16, 64), (1, 16))
    assert to_memory(np.zeros((64, 16), np.float32), "x", argument).size == 4096
    with pytest.raises(ReadError, match=r"expects shape \[64, 16\]"):
        to_memory(np.zeros((16, 64), np.float32), "x", argument)


def test_too_little_address_space_ends_in_a_sentence() -> None:
    """NumPy's libraries would end the process themselves."""
    command = f"ulimit -v 100000; exec {shlex.quote(sys.executable)} -m castsim targets"
    ended = subprocess.run(["/bin/bash", "-c", command], capture_output=True, text=True, check=False)
    assert ended.returncode == 1, ended.stderr
    assert ended.stderr.startswith("error: `ulimit -v` leaves 100000 KiB")
    assert "Traceback" not in ended.stderr


TILES, LANES = (4, 64), (16, 64)


@pytest.mark.parametrize(
    ("program", "shape", "fits"),
    [
        *(("f32_to_f16.pto", shape, True) for shape in (TILES, (256,), (1, 4, 1, 64), (256, 1))),
        *(("f32_to_f16.pto", shape, False) for shape in ((64, 4), (16, 16), (2, 2, 64))),
        *(("tpc_f32_bf16_packed_gaudi.tpc", shape, shape != (64, 16)) for shape in (LANES, (1024,), (64, 16))),
    ],
)
def test_arrays_have_the_shape_that_the_program_gives_them(
    program: str, shape: tuple[int, ...], fits: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An array of other axes with as many elements is refused, in calls and on the command line; flat runs."""
    x = np.zeros(shape, np.float32)
    np.save(tmp_path / "x.npy", x)
    name, file = "x" if program.endswith("tpc") else "src", str(PROGRAMS / program)
    if fits:
        run(file, inputs={name: x})
        return
    with pytest.raises(ReadError, match="has shape"):
        run(file, inputs={name: x})
    assert main(["run", file, "--in", f"{name}={tmp_path / 'x.npy'}"]) in (1, 2)
    assert str([*(LANES if name == "x" else TILES)]) in capsys.readouterr().err
    assert main(["run", file, "--in", f"{name}=flat:{tmp_path / 'x.npy'}"]) == 0
    run(file, inputs={name: x.reshape(-1)})
