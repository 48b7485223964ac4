"""What a kernel in C++ is refused for: one message each, with its line; nothing is executed that was not named."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from kit.pto_cpp_runs import KERNELS, needs_compiler, recorded, written

from castsim.__main__ import main
from castsim.execution.run_limits import Limits
from castsim.isa.errors import CastsimError, EngineError, IllegalError, LimitError, ReadError, TileError
from castsim.isa.pto import program as pto
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.languages import pto_cpp
from castsim.languages.pto_cpp import Request, record, run

TILES = """
using T = Tile<TileType::Vec, float, 4, 64>;
T a, b;
TASSIGN(a, 0);
TASSIGN(b, 0x1000);
"""


def refusal(folder, statements, kind=CastsimError, parameters="__gm__ float *x", **how):
    """Return the error of a kernel of these statements; its line, without the head, is that of the last of them."""
    body = f"AICORE void k({parameters}) {{ {TILES}\n{statements}\n}}"
    with pytest.raises(kind) as caught:
        recorded(folder, body, **how)
    return caught.value


@needs_compiler
def test_an_error_of_the_compiler_has_its_file_and_line(tmp_path):
    error = refusal(tmp_path, "int n = b + ;", ReadError)
    assert (error.span.line, error.span.file) == (9, str(tmp_path / "kernel.cpp"))
    assert "does not compile" in error.message
    error = refusal(tmp_path, "TFROBNICATE(a, b);", ReadError)
    assert "castsim's header lacks TFROBNICATE" in error.message
    error = refusal(tmp_path, "Tile<TileType::Vec, half, 4, 64> h; int h2 = TADDS(h, h);", ReadError)
    assert error.span.line == 9


@needs_compiler
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("vadd(a.data(), b.data(), 1, 1);", "vadd is an instruction below the tile level"),
        ("TMATMUL(a, a, b);", "TMATMUL is work of the cube unit"),
        ("TileAcc<float, 16, 16> acc; TASSIGN(acc, 0); TMOV(a, acc);", "tile of 'acc'"),
        ("ffts_cross_core_sync(PIPE_MTE3, 1);", "another core"),
        ("TPUSH(a, b);", "another core"),
        ("set_atomic_add();", "atomic"),
        ("T c; TADD(a, b, c);", "without an address"),
        ("TEXP<ExpAlgorithm::HIGH_PRECISION>(a, b);", "default algorithm"),
        ("TLOAD(a, b);", "TLOAD does not take these operands"),
        ("TCVT(a, b, b);", "TCVT does not take these operands"),
        ("TGATHER(a, b);", "TGATHER does not take these operands"),
        ("TADDS(a, b);", "TADDS does not take these operands"),
        ("a.GetValue(1 << 20);", "GetValue(1048576)"),
        ("set_flag(PIPE_V, PIPE_MTE2, 8);", "flag 8: flags are 0 to 7"),
        (
            "GlobalTensor<float, Shape<>, Stride<>> g((float *)64); TLOAD(a, g);",
            "outside all arguments: a null pointer",
        ),
        ("GlobalTensor<float, Shape<>, Stride<>> g(x + (1l << 36)); TLOAD(a, g);", "far from all arguments"),
        (
            "GlobalTensor<float, Shape<>, Stride<>> g(x); MSCATTER(g, a, b);",
            "MSCATTER stores to global memory",
        ),
        ("vector_f16 register_;", "vector_f16 is a vector register"),
        ("TADD<TFillPadMode::InPlace>(a, a, b);", "TADD with a mode as template argument is not modelled"),
        ("TGATHER<GatherAxis::GATHER_COL>(a, a, b);", "TGATHER with a GatherAxis is not modelled"),
        ("ConvTile<TileType::Vec, half, 512, Layout::NC1HWC0> t;", "does not model convolution tiles (ConvTile)"),
        ("TQUANT<QuantType::INT8_ASYM>(a, b, b, a);", "INT8_ASYM needs an offset"),
        ("TQUANT<QuantType::INT8_SYM>(a, b, b, a, &b);", "INT8_SYM has no offset"),
        ("TQUANT<QuantType::MXFP8>(a, b, b);", "pointers to three tiles"),
        ("TQUANT<1, MxQuantAlg::NvMxFp4E2M1>(a, b, &a, &a, &a);", "writes tiles of float4_e2m1x2_t"),
        ("TQUANT<1, MxQuantAlg::Hif4>(a, b, &a, &a, &a);", "HiF4 is not in the A5's library"),
    ],
)
def test_what_cannot_be_followed_is_refused_in_its_line(tmp_path, statement, words):
    error = refusal(tmp_path, statement)
    assert words in error.message
    assert (error.span.line, error.span.file) == (9, str(tmp_path / "kernel.cpp"))


@needs_compiler
@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("int n = FRACTAL_NZ_ROWS;", "FRACTAL_NZ_ROW"), ("auto n = pto::ScaterAxis::SCATTER_ROW;", "ScatterAxis"),
        ("TADDD(a, a, b);", "TADD"), ("int n = T::ValidRows;", "ValidRow"), ("auto n = CmpMode::GTE;", "GT"),
        ("TRandomKeys key;", "TRandomKey"),
    ],
)  # fmt: skip
def test_names_that_no_header_has_are_refused_with_the_closest(tmp_path, statement, name):
    error = refusal(tmp_path, statement, ReadError)
    assert "does not compile" in error.message and error.span.line == 9
    assert name in error.legal and len(error.legal) <= 5


@needs_compiler
def test_a_header_that_is_missing_names_its_folder(tmp_path):
    for folder in ("kernels", "include"):
        (tmp_path / folder).mkdir()
    (tmp_path / "include" / "sizes.h").write_text("#define ROWS 16\n")
    path = written(tmp_path / "kernels", '#include "sizes.h"\nAICORE void k() { int n = ROWS; }')
    with pytest.raises(ReadError, match=r"sizes\.h: No such file") as caught:
        record(Request(path))
    assert caught.value.legal == (f"-I {tmp_path / 'include'}",) and caught.value.span.line == 3
    record(Request(path, folders=(tmp_path / "include",)))
    with pytest.raises(ReadError) as caught:
        record(Request(written(tmp_path / "kernels", '#include "nowhere.h"\nAICORE void k() {}')))
    assert caught.value.legal == ("-I FOLDER, of nowhere.h",)


NOT_MODELLED = (
    "TTRI", "THISTOGRAM", "TRANDOM", "MGATHER", "MSCATTER", "TSCATTER", "TSUBC", "TADDSC", "TSUBSC",
)  # fmt: skip


@needs_compiler
def test_operations_that_are_not_modelled_are_refused_by_name_in_their_line(tmp_path):
    calls = [f"{name}(a, b, b{', b' if name == 'TSUBC' else ''});" for name in NOT_MODELLED]
    body = f"AICORE void k() {{ {TILES}\nTEXPANDS(b, 1.0f);\n" + "\n".join(calls) + "\n}"
    nodes = recorded(tmp_path, body).program.functions[0].body
    found = [(node.mnemonic, node.span.line) for node in nodes if isinstance(node, pto.TileOperation)]
    assert found[1:] == [(name.lower(), 10 + number) for number, name in enumerate(NOT_MODELLED)]
    with pytest.raises(IllegalError) as caught:
        run(written(tmp_path, body))
    assert "pto.ttri" in caught.value.message
    assert caught.value.span.line == 10


def test_what_castsim_models_is_sent_with_all_its_operands():
    """An operation that is sent with its tiles alone loses scalars and attributes."""
    header = (Path(pto_cpp.__file__).parent / "include" / "castsim_operations.hpp").read_text(encoding="utf-8")
    names = re.search(r"CASTSIM_EACH\(CASTSIM_UNMODELLED,([^)]*)\)", header)
    alone = [name.strip().lower() for name in names[1].split(",")]
    assert {"ttri", "mgather"} <= set(alone)
    assert set(alone) & set(VECTOR_OPERATIONS) == set()


@needs_compiler
def test_memory_outside_of_arguments(tmp_path):
    x = np.zeros(100, np.float32)
    move = "GlobalTensor<float, Shape<1, 1, 1, 4, 64>, Stride<1, 1, 1, 64, 1>> g(x{}); TLOAD(a, g);"
    error = refusal(tmp_path, move.format(""), TileError, inputs={"x": x})
    assert "element 255 of x, which has 100" in error.message
    error = refusal(tmp_path, move.format(" - 8"), TileError)
    assert "32 bytes before x" in error.message
    error = refusal(tmp_path, "float v = x[100]; TADDS(a, a, v);", TileError, inputs={"x": x})
    assert "outside the tensor" in error.message
    error = refusal(tmp_path, "float v = x[3]; TADDS(a, a, v);", ReadError)
    assert "element 3 of x; no input was given" in error.message
    error = refusal(tmp_path, "*(volatile int *)8 = 1;")
    assert "outside all arguments" in error.message
    assert error.span.line == 9
    error = refusal(tmp_path, "x[200] = 1.0f;", TileError, inputs={"x": x})
    assert "element 200 of x, which has 100" in error.message


@needs_compiler
def test_a_tile_behind_the_buffer(tmp_path):
    path = written(tmp_path, f"AICORE void k(__gm__ float *x) {{ {TILES}\nTASSIGN(a, 196608);\nTEXPANDS(a, 1.0f);\n}}")
    with pytest.raises(TileError) as caught:
        run(path)
    assert "past the end" in caught.value.message
    assert caught.value.span.line == 10


@needs_compiler
def test_a_kernel_that_never_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("castsim.languages.cpp_recording.recording.SECONDS", 1)
    body = f"AICORE void k() {{ {TILES}\nfor (volatile int i = 0; i < 2; i = 0) {{ }}\n}}"
    with pytest.raises(LimitError, match="did not finish within 1 s"):
        recorded(tmp_path, body)
    body = f"AICORE void k() {{ {TILES}\nwhile (true) {{ TADD(a, a, b); }}\n}}"
    with pytest.raises(LimitError, match="more than 1000 operations"):
        recorded(tmp_path, body, limits=Limits(1000))
    with pytest.raises(EngineError, match="SIGABRT"):
        recorded(tmp_path, "AICORE void k() { abort(); }")


@needs_compiler
def test_arguments(tmp_path):
    error = refusal(tmp_path, "", ReadError, parameters="__gm__ float *x, int n")
    assert "scalar argument n of k needs a value" in error.message
    assert error.legal == ("--arg n=VALUE",)
    error = refusal(tmp_path, "", ReadError, args={"m": 1})
    assert error.message == "--arg m: k has no such parameter"
    error = refusal(tmp_path, "", ReadError, parameters="uint8_t n", args={"n": 300})
    assert "does not fit its type" in error.message
    error = refusal(tmp_path, "", ReadError, args={"x": 5})
    assert "is a pointer" in error.message


def test_the_entry_must_be_one(tmp_path):
    path = written(tmp_path, "AICORE void k() {}\nAICORE void l() {}\n")
    with pytest.raises(ReadError, match="2 functions could be the kernel") as caught:
        record(Request(path))
    assert caught.value.legal == ("k", "l")
    with pytest.raises(ReadError, match=r"--entry m: .*kernel\.cpp no such function") as caught:
        record(Request(path, "m"))
    assert caught.value.legal == ("k", "l")
    with pytest.raises(ReadError, match="no function to run"):
        record(Request(written(tmp_path, "int x;")))
    with pytest.raises(ReadError, match="t is a template"):
        record(Request(written(tmp_path, "template <int N> AICORE void t() {}"), "t"))


TEMPLATES = """namespace own {
template <typename T, int R, int C> AICORE void twice(__gm__ T *x) {}
template <> AICORE void twice<int, 1, 1>(__gm__ int *x) {}
AICORE inline int helper(int n) { return n; }
template <typename T, int R, int C> void launch(T *x, void *stream) { twice<T, R, C><<<1, nullptr, stream>>>(x); }
"""


def test_instantiations_of_the_file_are_listed(tmp_path):
    texts = [f"template void launch<float, {n},\n 64>(float *x, void *stream);" for n in range(1, 8)]
    path = written(tmp_path, TEMPLATES + "\n".join(texts[:2]) + "\n}\n")
    with pytest.raises(ReadError, match="no function to run; the file instantiates 2 templates") as caught:
        record(Request(path))
    assert caught.value.legal == tuple(f"--entry 'own::launch<float, {n}, 64>'" for n in (1, 2))
    with pytest.raises(ReadError, match="launch is a template") as caught:
        record(Request(path, "launch"))
    assert caught.value.legal == tuple(f"--entry 'own::launch<float, {n}, 64>'" for n in (1, 2))
    with pytest.raises(ReadError, match="instantiates 7 templates") as caught:
        record(Request(written(tmp_path, TEMPLATES + "\n".join(texts) + "\n}\n")))
    assert len(caught.value.legal) == 5


@needs_compiler
def test_an_instantiation_that_is_alone_is_the_entry(tmp_path):
    """Others than the entry's are not compiled: what castsim has no type for is refused where it is called."""
    text = "template void launch<float, 1, 64>(float *x, void *stream);\n}\n"
    (recording,) = record(Request(written(tmp_path, TEMPLATES + text)))
    assert recording.blocks == 1
    text += "struct Odd {};\ntemplate void own::launch<Odd, 1, 64>(Odd *x, void *stream);\n"
    record(Request(written(tmp_path, TEMPLATES + text), "launch<float, 1, 64>"))


def test_a_missing_compiler_is_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CASTSIM_CXX", raising=False)
    path = written(tmp_path, "AICORE void k() {}")
    assert main(["run", str(path)]) == 2
    first = capsys.readouterr().err.splitlines()[0]
    assert "recording a C++ kernel needs a C++ compiler" in first
    monkeypatch.setenv("CASTSIM_CXX", "no-such-compiler")
    assert main(["record", str(path)]) == 2
    assert "no-such-compiler" in capsys.readouterr().err


def test_only_commands_that_name_the_file_execute_it(monkeypatch, capsys, tmp_path):
    def never(*_args, **_more):
        raise AssertionError("a compiler was started")

    monkeypatch.setattr("castsim.languages.cpp_recording.host_compiler.compiler", never)
    path = written(tmp_path, "AICORE void k() {}")
    for command in (["check", str(path)], ["lint", str(path)], ["expand", str(path)], ["check", str(tmp_path)]):
        assert main(command) in (0, 1, 2)
    capsys.readouterr()
    code = "import castsim, sys; castsim.run; print('castsim.languages.pto_cpp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@needs_compiler
def test_commands(capsys, tmp_path):
    kernel = str(KERNELS / "cores.cpp")
    how = ["--entry", "scaled_rows", "--arg", "rows=6", "--arg", "cols=40", "--arg", "scale=2", "--in", "x=random:1"]
    assert main(["run", kernel, *how, "--block", "0/4", "--all-blocks", "--out", str(tmp_path), "--summary"]) == 0
    shown = capsys.readouterr().out
    assert "4 cores; the longest, block 0" in shown
    y = np.load(tmp_path / "y.npy").reshape(6, 40)
    assert main(["run", kernel, *how, "--out", str(tmp_path), "--quiet"]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy").reshape(6, 40), y)
    text = tmp_path / "kernel.pto"
    assert main(["record", kernel, *how, "--out", str(text)]) == 0
    assert "// cores.cpp:" in text.read_text()
    capsys.readouterr()
    assert main(["diff", kernel, str(text), *how[:2], "--in", "x=random:1", *how[2:8]]) in (0, 2)
    assert main(["diff", kernel, *how, "--option-b", "vector_head=always"]) in (0, 1)
    assert "cores.cpp" in capsys.readouterr().out
