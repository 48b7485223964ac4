"""Faults of AscendC kernels: each is reported at its line; tiling, commands, and what the compiler adds."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from kit.ascendc_runs import KERNELS, TEST_KERNELS
from kit.pto_cpp_runs import needs_compiler
from languages.ascendc import ascendc_models

from castsim import run as run_program
from castsim.__main__ import main
from castsim.execution.run_limits import Limits
from castsim.isa.dataclass import replace
from castsim.isa.errors import CastsimError, LimitError, ReadError, TileError
from castsim.isa.pto import program as pto
from castsim.languages.ascendc import Request, record, run
from castsim.languages.cpp_recording.recording import CppRecording
from castsim.running.program_loading import load
from castsim.running.program_runs import run_loaded

pytestmark = needs_compiler


def mutated(tmp_path, kernel, pattern, text, count=1):
    """Return a copy of a kernel with a change, which it must be."""
    given = (KERNELS / kernel).read_text()
    changed, times = re.subn(pattern, text, given, count=count)
    assert times == count
    for header in KERNELS.glob("*.h"):
        (tmp_path / header.name).write_text(header.read_text())
    path = tmp_path / kernel
    path.write_text(changed)
    return path


def found_races(path, inputs, args):
    """Return the races of a kernel as it is written, without what its compiler adds."""
    (recording,) = record(Request(path, None, args, inputs, "a2a3", compiled_synchronisation=False))
    return raced(recording)


def raced(recording: CppRecording):
    return run_loaded(load(recording.source, "a2a3", None, {}), recording.inputs, races="report").races


ROWS = {"x": np.linspace(-1, 1, 24 * 64).astype(np.float16)}


def test_a_removed_barrier(tmp_path):
    given = (TEST_KERNELS / "softmax_rows.cpp").read_text()
    whole = tmp_path / "whole.cpp"
    whole.write_text(given)
    assert found_races(whole, ROWS, {"rows": 24}) == ()
    places = [match.span() for match in re.finditer(r"PipeBarrier<PIPE_V>\(\);", given)]
    path = tmp_path / "softmax_rows.cpp"
    start, end = places[1]
    path.write_text(given[:start] + " " * (end - start) + given[end:])
    (race,) = found_races(path, ROWS, {"rows": 24})
    assert race.missing.startswith("barrier V before line")
    assert "Brcb(block, stat" in race.spans[1].text
    (recording,) = record(Request(path, None, {"rows": 24}, ROWS, "a2a3"))
    added = [node for node in recording.program.functions[0].body if getattr(node, "inserted", False)]
    assert added == [pto.Barrier(pto.Pipe.V)]
    assert raced(recording) == ()


def pairs_of_flags(body):
    """Return the places of each set_flag and of the wait_flag that it is for, in order."""
    open_flags: dict[tuple, list[int]] = {}
    for place, node in enumerate(body):
        if isinstance(node, pto.SetFlag):
            open_flags.setdefault((node.src, node.dst, node.event), []).append(place)
        elif isinstance(node, pto.WaitFlag) and open_flags.get((node.src, node.dst, node.event)):
            yield open_flags[node.src, node.dst, node.event].pop(0), place


@pytest.mark.parametrize("number", range(len(ascendc_models.CASES)))
def test_whatever_orders_two_instructions_is_missed(number):
    """Without what the compiler adds, a kernel races that lacks one pair of flags, be they a queue's or set by hand.

    Some pairs order nothing that another does not order too, as those of queues that are filled one after the other: of
    each way between pipes all are taken away, and pairs one by one until one is missed.
    """
    case = ascendc_models.CASES[number]
    inputs = case.inputs(np.random.default_rng(number))
    args = {**case.args, **{f"tiling.{name}": value for name, value in case.tiling.items()}}
    args |= {"tiling_key": case.tiling_key} if case.tiling_key else {}
    held = {name: np.zeros(size, kind) for name, (kind, size) in case.outputs.items()}
    path = TEST_KERNELS / f"{case.kernel}.cpp"
    (recording,) = record(
        Request(path, None, args, {**inputs, **held}, "a2a3", blocks=case.blocks, compiled_synchronisation=False)
    )
    (function,) = recording.program.functions
    body = function.body
    barriers = [
        (place,) for place, node in enumerate(body) if isinstance(node, pto.Barrier) and node.pipe is pto.Pipe.V
    ]

    def missed(places):
        left = tuple(node for place, node in enumerate(body) if place not in places)
        program = replace(recording.program, functions=(replace(function, body=left),))
        return len(raced(replace(recording, program=program)))

    whole = missed(())
    flags = list(pairs_of_flags(body))
    ways: dict[tuple[str, str], set[int]] = {}
    for pair in flags:
        node = body[pair[0]]
        ways.setdefault((node.src.name, node.dst.name), set()).update(pair)
    for way in (("MTE2", "V"), ("V", "MTE3")):
        by_scalar_unit = {("V", "S"), ("S", way[1])} <= ways.keys()  # which keeps the same order
        assert way not in ways or by_scalar_unit or missed(ways[way]) > whole, way
    order = np.random.default_rng(number).permutation(len(flags))
    assert any(missed(flags[place]) > whole for place in order)
    if barriers:
        assert missed({place for (place,) in barriers}) > whole


def test_a_queue_is_forgotten(tmp_path):
    path = mutated(tmp_path, "add.cpp", r"sum_\.EnQue\(sum\);", "")
    x = np.zeros(4096, np.float32)
    with pytest.raises(CastsimError, match="DeQue: no tensor is in the queue") as caught:
        run(path, "a2a3", inputs={"x": x, "y": x}, args={"total": 4096, "tile": 512})
    assert "sum_.DeQue" in caught.value.span.text
    path = mutated(tmp_path, "add.cpp", r"right_\.FreeTensor\(right\);", "")
    with pytest.raises(CastsimError, match="all 2 buffers of the queue are in use") as caught:
        run(path, "a2a3", inputs={"x": x, "y": x}, args={"total": 4096, "tile": 512})
    assert "right_.AllocTensor" in caught.value.span.text


def test_a_buffer_is_freed_too_early(tmp_path):
    early = (KERNELS / "cast_tail.cpp").read_text()
    early = early.replace("    wideQueue.FreeTensor(wide);\n", "")
    early = early.replace("    Cast(slim, wide", "    wideQueue.FreeTensor(wide);\n    Cast(slim, wide")
    path = tmp_path / "cast_tail.cpp"
    path.write_text(early)
    races = found_races(path, {"x": np.zeros(1000, np.float32)}, {"total": 1000, "tile": 256})
    assert races
    assert any("DataCopyPad(wide" in span.text for race in races for span in race.spans)


def test_an_element_is_read_before_its_copy_came(tmp_path):
    text = re.sub(
        r"    (Set|Wait)Flag<HardEvent::MTE2_S>\(read\);\n", "", (TEST_KERNELS / "gather_rows.cpp").read_text()
    )
    path = tmp_path / "gather_rows.cpp"
    path.write_text(text)
    given = {"table": np.zeros(1000, np.float32), "index": np.zeros(11, np.int32)}
    args = {"entries": 20, "cols": 50, "count": 11}
    races = found_races(path, given, args)
    assert races
    assert "numbers.GetValue(i)" in races[0].spans[1].text
    assert not run(path, "a2a3", inputs=given, args=args).races


def test_bytes_outside_of_a_buffer_and_of_blocks(tmp_path):
    x = np.zeros(4096, np.float32)
    for call, message in (
        ("Add(sum, left, right, tile_ + 64);", "its buffer has bytes"),
        ("Add(sum[4], left, right, tile_ - 4);", "Add: a tensor is at byte .* no multiple of 32"),
        ("Add(sum[4096], left, right, 8);", "Add: byte .* is outside the tensor's buffer"),
        ("Add(sum, left, right, -1);", "a count of -1 elements"),
        ("sum.SetValue(512, 1);", "SetValue: byte .* is outside"),
    ):
        path = mutated(tmp_path, "add.cpp", r"Add\(sum, left, right, tile_\);", call)
        with pytest.raises(CastsimError, match=message) as caught:
            run(path, "a2a3", inputs={"x": x, "y": x}, args={"total": 4096, "tile": 512})
        assert call.split("(")[0] in caught.value.span.text


def test_a_kernel_that_never_ends_and_one_that_writes_outside(tmp_path, monkeypatch):
    x = np.zeros(4096, np.float32)
    how = {"inputs": {"x": x, "y": x}, "args": {"total": 4096, "tile": 512}}
    path = mutated(tmp_path, "add.cpp", r"at < total_; at \+= tile_", "at < total_; at += 0")
    with pytest.raises(LimitError, match="more than 500 operations"):
        record(Request(path, None, how["args"], how["inputs"], "a2a3", limits=Limits(500)))
    path = mutated(
        tmp_path, "add.cpp", r"DataCopy\(z_\[at\], sum, tile_\);", "DataCopy(z_[(uint64_t)at - 8], sum, tile_);"
    )
    with pytest.raises(TileError, match="32 bytes before z"):
        run(path, "a2a3", **how)
    path = mutated(tmp_path, "add.cpp", r"kernel\.Process\(\);", "*(volatile int *)8 = 1;")
    with pytest.raises(CastsimError, match="outside all arguments"):
        run(path, "a2a3", **how)
    with pytest.raises(TileError, match="outside the tensor"):
        run(KERNELS / "add.cpp", "a2a3", inputs={"x": x[:4000], "y": x}, args=how["args"])


def test_tiling(tmp_path, capsys):
    x = np.linspace(-4, 4, 512).astype(np.float16)
    expected = run(KERNELS / "quantise.cpp", "a2a3", inputs={"x": x}, args={"tiling.total": 512, "tiling.scale": 20})
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "t.json").write_text(json.dumps({"total": 512, "scale": 20.0}))
    words = [str(KERNELS / "quantise.cpp"), "--in", f"x={tmp_path / 'x.npy'}", "--out", str(tmp_path)]
    assert main(["run", *words, "--tiling", str(tmp_path / "t.json"), "--quiet"]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected.outputs["y"])
    assert main(["run", *words, "--arg", "tiling.total=512"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "fields of QuantiseTiling that are not given are 0: scale" in shown
    for wrong, message in (
        ({"tiling.totl": 512}, "QuantiseTiling has no field totl"),
        ({"tiling.total": -1}, "-1 does not fit its type"),
        ({"tiling.total[1": 3}, "not a field"),
    ):
        with pytest.raises(ReadError, match=message):
            run(KERNELS / "quantise.cpp", "a2a3", inputs={"x": x}, args=wrong)
    (tmp_path / "t.json").write_text('["a"]')
    assert main(["run", *words, "--tiling", str(tmp_path / "t.json")]) == 2
    assert "not an object" in capsys.readouterr().err
    two = mutated(tmp_path, "quantise.cpp", r"GET_TILING_DATA_WITH_STRUCT\(QuantiseTiling, ", "GET_TILING_DATA(")
    two.write_text(two.read_text().replace("extern", "struct OtherTiling { int a; };\nextern", 1))
    with pytest.raises(ReadError, match="2 tiling structures could be meant") as caught:
        run(two, "a2a3", inputs={"x": x}, args={"tiling.total": 512})
    assert caught.value.legal == ("--tiling-struct QuantiseTiling", "--tiling-struct OtherTiling")
    given = {"tiling.total": 512, "tiling.scale": 20}
    (recording,) = record(Request(two, None, given, {"x": x}, "a2a3", structure="QuantiseTiling"))
    assert recording.extents["y"] == 512


def test_names_of_the_build(tmp_path):
    path = mutated(tmp_path, "cast_tail.cpp", "GlobalTensor<float> source;", "GlobalTensor<DTYPE_X> source;")
    given = {"inputs": {"x": np.zeros(64, np.float32)}, "args": {"total": 64, "tile": 64}}
    with pytest.raises(ReadError, match="DTYPE_X") as caught:
        run(path, "a2a3", **given)
    assert "-D DTYPE_X=half" in caught.value.legal
    assert run(path, "a2a3", macros=("DTYPE_X=float",), **given).cycles > 0
    key = TEST_KERNELS / "bf16_scale.cpp"
    args = {"tiling.total": 512, "tiling.tile": 512, "tiling.factor": 1.5}
    with pytest.raises(ReadError, match="tiling_key") as caught:
        run(key, "a2a3", inputs={"x": np.zeros(512, np.uint16)}, args=args)
    assert "--arg tiling_key=VALUE" in caught.value.legal


def test_what_was_added_is_written_and_runs(tmp_path, capsys):
    words = [
        str(KERNELS / "scale_rows.cpp"),
        "--in",
        "x=random:1",
        "--arg",
        "tiling.rows=4",
        "--arg",
        "tiling.cols=104",
    ]
    file = tmp_path / "k.pto"
    assert main(["run", *words, "--emit-sync", str(file), "--out", str(tmp_path / "a"), "--quiet"]) == 0
    text = file.read_text()
    assert text.count("(added for the compiler)") > 4
    assert "// scale_rows.cpp:27" in text
    capsys.readouterr()
    whole = record(
        Request(KERNELS / "scale_rows.cpp", None, {"tiling.rows": 4, "tiling.cols": 104}, {"x": "random:1"})
    )[0]
    again = run_program(file, inputs={"x": whole.arrays["x"]}, sync="program")
    first = np.load(tmp_path / "a" / "y.npy")
    np.testing.assert_array_equal(again.outputs["y"], first)
    assert main(["record", *words, "--auto-sync", "off"]) == 0
    assert "added for the compiler" not in capsys.readouterr().out


def test_options_are_of_this_language_alone(tmp_path, capsys):
    other = tmp_path / "k.cpp"
    other.write_text("#include <pto/pto-inst.hpp>\nAICORE void k() {}\n")
    assert main(["run", str(other), "--auto-sync", "off"]) == 2
    assert "--auto-sync" in capsys.readouterr().err
    assert main(["run", str(KERNELS / "add.cpp"), "--auto-sync", "maybe"]) == 2
    assert "not a choice" in capsys.readouterr().err


def test_only_commands_that_name_the_file_execute_it(monkeypatch, capsys):
    def never(*_args, **_more):
        raise AssertionError("a compiler was started")

    monkeypatch.setattr("castsim.languages.cpp_recording.host_compiler.compiler", never)
    for command in (["check", str(KERNELS / "add.cpp")], ["lint", str(KERNELS / "add.cpp")], ["check", str(KERNELS)]):
        assert main(command) in (0, 1, 2)
    capsys.readouterr()
    code = "import castsim, sys; castsim.run; print('castsim.languages.ascendc' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
