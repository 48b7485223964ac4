"""Files that are read or written: bounded, refused by name and option; headers of arrays; names of outputs."""

from __future__ import annotations

import io
import os
import signal
import struct
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from castsim import run
from castsim.__main__ import kept_interrupts, main
from castsim.execution.input_data import MAX_HEADER_BYTES, random_codes, read_array
from castsim.files import file_names, whole_file
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FORMATS
from castsim.isa.reading import file_limit, read_bytes, read_text

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parent.parent

# ------------------------------------------------------------------------------------------------------------- reading


def test_a_file_over_the_limit_is_refused_with_the_option(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "a.pto"
    with path.open("wb") as file:
        file.truncate((16 << 20) + 1)  # sparse
    for command in (["run"], ["lint"], ["asm"], ["graph", "--target", "a5"], ["accuracy", "--target", "a5", "--data"]):
        name = path if command[0] in ("run", "accuracy") else path.with_suffix(".tpc" if len(command) == 1 else ".mlir")
        if name != path:
            os.link(path, name) if not name.exists() else None
        assert main([*command, str(name)]) == 2
        assert f"--max-file-bytes {(16 << 20) + 1}" in capsys.readouterr().err, command


def test_the_option_raises_the_limit_and_lowers_it(capsys: Capture) -> None:
    program = str(ROOT / "programs/f32_to_f16.pto")
    assert main(["run", program, "--timing-only", "--quiet", "--max-file-bytes", "1000000"]) == 0
    assert main(["--max-file-bytes", "100", "run", program, "--timing-only"]) == 2
    assert "over the limit of 100" in capsys.readouterr().err
    with file_limit(100), pytest.raises(ReadError, match="over the limit of 100"):
        run(program, timing_only=True)
    assert run(program, timing_only=True).cycles > 0
    for text in ("0", "-1", "x", "9" * 19):
        assert main(["run", program, "--timing-only", f"--max-file-bytes={text}"]) == 2


def test_devices_and_pipes_are_read_up_to_the_limit(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="more than 16777216 bytes"):
        read_bytes("/dev/zero", "program")
    with pytest.raises(ReadError, match="directory"):
        read_bytes(tmp_path, "program")
    with pytest.raises(ReadError, match="null"):
        read_bytes("a\0b", "program")
    reader, writer = os.pipe()
    os.write(writer, b"some text")
    os.close(writer)
    assert read_text(f"/dev/fd/{reader}", "program") == "some text"
    os.close(reader)


def test_standard_input_has_the_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b"x" * 101)

    monkeypatch.setattr(sys, "stdin", Stdin())
    with file_limit(100), pytest.raises(ReadError, match="more than 100 bytes"):
        read_bytes("-", "program")


# --------------------------------------------------------------------------------------------------------------- .npy


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    raw = header.encode("latin-1")
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(raw)) + raw + data


def described(descr: str = "'<f4'", shape: str = "(4,)", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


@pytest.mark.parametrize(
    "header",
    [
        described("'V0'", "(-1,)"), described("'V0'", "(4, 64)"), described("'|S0'"), described("()"), described("[]"),
        described("'<f4'", "(-4,)"), described("'<f4'", f"({2**64},)"), described("'<f4'", "(1e3,)"),
        described("'<f4'", "(4,), 'shape': (4,)"), described("'<f4'", "4"), described("'<f4'", "(" * 900 + ")" * 900),
        described("-" * 3000 + "1"), described("'O'"), described("'<f4'", "(5,)"), described("'<f4'", "(4,)", "1"),
        described("'" + "f" * 5000 + "'"), described("[('a', '<f4')]"), described("'<f4,<f4'"), described("'<f999999'"),
        "lambda: 1", "{}", "", "{'descr': '<f4'}", described("'<f4'", f"({'1,' * 100})"),
        described("'<f4'", f"(0, {10**17}, {10**17})"), described("'<f4'", "(9" + "9" * 5000 + ",)"),
    ],
)  # fmt: skip
def test_headers_that_are_refused(header: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(npy(header, bytes(16)))
    with pytest.raises(ReadError, match="input 'x'") as caught:
        read_array(path, "x")
    assert caught.value.exit_code == 2


def test_the_length_of_a_header_is_capped(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(npy(described() + " " * MAX_HEADER_BYTES, bytes(16), 2))
    with pytest.raises(ReadError, match="header of"):
        read_array(path, "x")


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f2", "|b1", "|i1", "<u8", "<c8", "<U4", "|V2"])
@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (0,), (2, 0, 3), (2, 3, 4)])
def test_what_numpy_writes_is_read(
    dtype: str, shape: tuple[int, ...], version: tuple[int, int], tmp_path: Path
) -> None:
    path = tmp_path / "x.npy"
    for order in ("C", "F"):
        array = np.zeros(shape, dtype, order)
        array.reshape(-1).view(np.uint8)[:] = 1 if array.flags.c_contiguous and array.size else 0
        with path.open("wb") as file:
            np.lib.format.write_array(file, array, version)
        found = read_array(path, "x")
        wanted = np.load(path)
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert np.asarray(found).tobytes() == wanted.tobytes()


def test_pipes_and_devices_are_no_arrays() -> None:
    with pytest.raises(ReadError, match="regular file"):
        read_array(Path("/dev/zero"), "x")


def test_random_without_a_seed_is_told_of_seeds(capsys: Capture) -> None:
    assert main(["run", str(ROOT / "programs/f32_to_f16.pto"), "--in", "src=random"]) == 2
    assert "src=random:0" in capsys.readouterr().err
    assert main(["run", str(ROOT / "programs/f32_to_f16.pto"), "--in", "src=nothing"]) == 2
    assert "random:SEED" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["f32", "f16", "e2m1", "i8", "u16", "i64", "bool", "i4"])
def test_numbers_drawn_in_pieces_are_those_drawn_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fmt = FORMATS[name]
    at_once = random_codes(np.random.default_rng(3), fmt, (7, 1111))
    monkeypatch.setattr("castsim.execution.input_data._DRAWN_AT_ONCE", 101)
    assert (random_codes(np.random.default_rng(3), fmt, (7, 1111)) == at_once).all()


# ------------------------------------------------------------------------------------------------------------- writing


def test_partial_files_have_a_recognisable_name_and_nobody_changes_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.json"
    real = os.umask
    mask = real(0o027)
    try:
        monkeypatch.setattr(os, "umask", lambda _: pytest.fail("the umask is the whole process's"))
        with whole_file(path) as file:
            (partial,) = tmp_path.iterdir()
            assert partial.name.startswith(".out.json.castsim-")
            assert partial.suffix == ".partial"
            file.write(b"x")
    finally:
        real(mask)
    assert path.stat().st_mode & 0o777 == 0o640
    with whole_file(tmp_path / ("n" * 250)) as file:
        file.write(b"x")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["n" * 250, "out.json"]


@pytest.mark.parametrize(
    "names",
    [
        ("a/b", "a_b"), ("x", "X"), ("..", "."), ("a\0b", "a_b"), ("CON", "con_"), ("é", "e\u0301"), ("%y", "y"),
        ("a", "A", "a_2", "A_2"), ("n" * 400, "n" * 401), ("ﬁ", "fi"),
    ],
)  # fmt: skip
def test_outputs_never_share_a_file(names: tuple[str, ...]) -> None:
    found = file_names(names)
    assert list(found) == list(names)
    assert len({name.casefold() for name in found.values()}) == len(names)
    for name in found.values():
        assert name.encode("ascii", "ignore") or name
        assert not set(name) & {"/", "\\", "\0", ":"}
        assert not name.startswith(".")
        assert len(name.encode()) < 250
        assert name.partition(".")[0].casefold() != "con"


# ---------------------------------------------------------------------------------------------------------- interrupts


def test_an_interrupt_during_compilation_is_not_lost() -> None:
    """LLVM calls back through ctypes, which drops exceptions; a module that is called numba does so here."""
    import ctypes  # noqa: PLC0415

    body = """
def compiling(back):
    back()
    return "compiled"
"""
    module: dict[str, object] = {"__name__": "numba.core.compiler"}
    exec(body, module)
    back = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGINT))
    usual = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    reached = []
    try:
        with pytest.raises(KeyboardInterrupt), kept_interrupts():
            compiling = module["compiling"]
            assert callable(compiling)
            reached.append(compiling(back))
            for _ in range(1000):
                time.sleep(0.01)
            pytest.fail("the interrupt was lost")
    finally:
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.signal(signal.SIGINT, usual)
    assert reached == ["compiled"]


def test_an_input_of_a_binary_without_declarations(tmp_path: Path, capsys: Capture) -> None:
    binary = tmp_path / "k.bin"
    source = str(ROOT / "programs/tpc_f32_i32_pipelined_goya.tpc")
    assert main(["asm", source, "--out", str(binary), "--quiet"]) == 0
    assert main(["run", str(binary), "--target", "goya", "--in", "x=random:0"]) == 2
    error = capsys.readouterr().err
    assert "--declare FILE" in error
    assert "// castsim: tensor 0 x" in error


def test_refusals_are_of_the_kinds_that_callers_catch() -> None:
    assert issubclass(IllegalError, ValueError)
    with pytest.raises(ReadError), file_limit(0):
        pass
