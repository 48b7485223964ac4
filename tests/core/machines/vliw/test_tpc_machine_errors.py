"""Bad assembly programs: the right kind of refusal, its place, the legal alternatives, the exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from kit.tpc_machine import END, chip, nops, ran

from castsim import run
from castsim.__main__ import main
from castsim.isa.errors import CastsimError, EngineError, IllegalError, ReadError, TileError

NOP = "nop; nop; nop; nop\n"
TWICE = "nop; loop 0, 2, 1, <, E; nop; nop\n"
X = "// castsim: tensor 0 x in f32 [64]\n// castsim: tensor 1 y out f32 [64]\n"


def refused(text: str, kind: type[CastsimError], message: str, target: str = "gaudi2", *inputs: str) -> CastsimError:
    with pytest.raises(kind, match=message) as caught:
        ran(text, target, dict.fromkeys(inputs, "zeros"))
    assert caught.value.span is not None
    return caught.value


NESTED = "".join(f"nop; loop 0, 2, 1, <, E; nop; nop\n{NOP}" for _ in range(5)) + f"{nops(8)}E:\n{END}"
MERGING = f"// castsim: reg S29 = 0\n{X}nop; nop; nop; st_tnsr rmw_sel 0x1, I0, V0, {{}}\n{END}"
AT = f"{X}// castsim: reg AD1 = 0x100000{{}}\n"
REFUSED = [  # text, kind, message, the first alternative, target, inputs
    (
        f"nop; halt; halt; nop\nnop; nop; convert.f32 target_type=uint8 rhne V0, V1; nop\n{END}",
        IllegalError, "goya", None, "goya",
    ),
    (f"{X}ld_tnsr V0, 0x3, I0; nop; nop; nop\n{END}", TileError, "tensor 3 is not declared",
     "// castsim: tensor 3 NAME", "gaudi2", "x"),
    (f"// castsim: tensor 8 x in f32 [64]\n{END}", ReadError, "tensor 8 is declared; the target has 8", "0 .. 7",
     "goya", "x"),
    (f"ld_tnsr V0, 0x9, I0; nop; nop; nop\n{END}", TileError, "tensor 9", None, "goya"),
    (f"// castsim: reg S27 = 99\n{X}ld_tnsr V0, S27, I0; nop; nop; nop\n{END}", TileError, "tensor 99", None, "gaudi",
     "x"),
    (f"{X}nop; nop; nop; st_tnsr 0x0, I0, V0\n{END}", IllegalError, "declared `in`", "out", "gaudi2", "x"),
    (f"// castsim: reg S30 = 0x3f01\n{X}ld_tnsr V0, 0x0, I0, S30; nop; nop; nop\n{END}", TileError,
     "a partial access of lanes 63 to 64; f32 has 64 lanes", None, "gaudi", "x"),
    (f"{X}ld_tnsr VP1, 0x0, I0; nop; nop; nop\n{END}", IllegalError, "is not documented", None, "gaudi2", "x"),
    (MERGING.format("S29"), IllegalError, "whose bit 6 is clear, is not documented", None, "gaudi", "x"),
    (MERGING.format("ST_RMW_REG"), IllegalError, "whose bit 8 is clear, is not documented", None, "gaudi2", "x"),
    (f"{AT.format('0ff')}ld_g S1, AD1; nop; nop; nop\n{END}", TileError, "inside an element of x", None, "gaudi2", "x"),
    (f"{AT.format('100')}nop; nop; nop; st_g AD1, S1\n{END}", TileError, "are in no tensor",
     "x: 0x100000000 .. 0x1000000ff", "gaudi2", "x"),
    (f"// castsim: vlm 0x13f80 x f32 [64]\n{END}", TileError, "ends at VLM address 0x14080", None, "gaudi2", "x"),
    (f"// castsim: vlm 0x0 x f32 [64]\n// castsim: vlm 0x80 z f32 [64]\n{END}", ReadError, "z and x overlap in VLM",
     None, "gaudi2", "x", "z"),
    (NESTED, IllegalError, "loops are nested 5 deep; the target has 4 iterators", None, "gaudi2"),
]  # fmt: skip


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row[2])
def test_programs_that_are_refused(row: tuple[str, type[CastsimError], str, str | None, str]) -> None:
    text, kind, message, legal, target, *inputs = row
    error = refused(text, kind, re.escape(message), target, *inputs)
    assert legal is None or error.legal[0].startswith(legal)


def test_what_is_refused_for_its_values_has_a_time() -> None:
    assert ran(MERGING.format("ST_RMW_REG"), "gaudi2", values=False).tree
    assert ran(f"{AT.format('100')}ld_g S1, AD1; nop; nop; nop\n{END}", "gaudi2", {"x": "zeros"}).tree


@pytest.mark.parametrize(
    ("line", "message", "legal"),
    [
        (
            "ld_l_v V0, 0x14000; nop; nop; nop",
            "VLM address 0x14000: an access of 256 bytes exceeds the memory of 81920",
            "0x0 .. 0x13f00",
        ),
        ("ld_l_v V0, 0x13f80; nop; nop; nop", "VLM address 0x13f80: an access of 256 bytes exceeds", "0x0 .. 0x13f00"),
        ("ld_l_v V0, 0x80; nop; nop; nop", "VLM address 0x80 is not a multiple of 256", "0x0"),
        ("ld_l_v_low V0, 0x40; nop; nop; nop", "VLM address 0x40 is not a multiple of 128", "0x0"),
        ("ld_l_v_high V0, 0x13f80; nop; nop; nop", "exceeds the memory of 81920", ""),
        ("ld_l_v VP1, 0x10; nop; nop; nop", "VLM address 0x10 is not a multiple of 32", "0x20"),
        ("nop; nop; nop; st_l_v S1, V0", "VLM address 0xffffff00", ""),
        ("ld_l S0, 0x2; nop; nop; nop", "SLM address 0x2 is not a multiple of 4", "0x4"),
        (
            "nop; nop; nop; st_l 0x4000, S0",
            "SLM address 0x4000: an access of 4 bytes exceeds the memory of 16384",
            "0x0 .. 0x3ffc",
        ),
    ],
)
def test_local_addresses(line: str, message: str, legal: str) -> None:
    error = refused(f"// castsim: reg S1 = 0xffffff00\n{line}\n{END}", TileError, message)
    assert legal in " ".join(error.legal)


def test_scalar_memory_differs_by_generation() -> None:
    for target, size in (("goya", 1024), ("gaudi", 1024), ("gaudib", 1024), ("greco", 2048), ("gaudi2", 16384)):
        text = f"nop; nop; nop; st_l {{address}}, S0\n{END}"
        assert ran(text.format(address=hex(size - 4)), target).tree
        refused(text.format(address=hex(size)), TileError, f"exceeds the memory of {size} bytes", target)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"nop; jmpr 0x400; nop; nop\n{NOP}{END}", "the jump to bundle 32"),
        (f"nop; jmpr -0x20; nop; nop\n{NOP}{END}", "the jump to bundle -1"),
        (f"nop; jmpa 0x21; nop; nop\n{NOP}{END}", "not a multiple of the 32 bytes"),
        (f"nop; jmpr Behind; nop; nop\n{NOP}{END}Behind:\n", "the jump to bundle 6"),
        (f"nop; jmpr S1; nop; nop\n{NOP}{END}// castsim: reg S1 = 0x4000\n", "bundle 512 leaves the program"),
        (f"nop; jmpr In; nop; nop\n{nops(4)}{TWICE}{nops(3)}In:\n{nops(5)}E:\n{END}", "enters or leaves"),
        (f"{TWICE}{nops(3)}nop; jmpr Out; nop; nop\n{nops(8)}E:\n{NOP}Out:\n{END}", "enters or leaves"),
        (f"{TWICE}{nops(3)}nop; jmpr S1; nop; nop\n{nops(8)}E:\n{END}// castsim: reg S1 = 320\n",
         "enters or leaves a loop body"),
        (f"nop; jmpr Next; nop; nop\nNext:\nnop; jmpr Next; nop; nop\n{NOP}{END}", "is in the delay bundle"),
        (f"nop; loop 0, 2, 1, <, E; nop; nop\nE:\n{END}", "the body of the loop is empty"),
        (f"nop; loop 0, 2, 1, <, 0x400; nop; nop\n{END}", "ends past the end of the program"),
        (f"nop; loop 0, 2, 1, <, E, 1; nop; nop\n{nops(8)}E:\n{END}", "last operand of LOOP"),
        (f"{TWICE}{NOP}nop; mov.i32 S32, 0x1; nop; nop\n{nops(6)}E:\n{END}", "writes its own counter, S32"),
        (f"nop; mov SP0, 0x1; nop; nop\n{END}", "SP0 is always true"),
    ],
)  # fmt: skip
def test_paths_that_the_machine_refuses(text: str, message: str) -> None:
    assert refused(text, IllegalError, message).exit_code == 1


@pytest.mark.parametrize(
    "text",
    [
        f"Again:\nnop; jmpr Again; nop; nop\n{NOP}{END}",
        f"nop; loop 0, 5, 0, <, E; nop; nop\n{nops(8)}E:\n{END}",
        f"Again:\nnop; nop; nop; st_l 0x0, S1\nnop; jmpr Again; nop; nop\n{NOP}{END}",
        f"Again:\nnop; add.i32 S1, S2, 0x1; nop; nop\n{nops(4)}nop; cmp_less.i32 SP1, S1, 0x4; nop; nop\n{NOP}"
        f"nop; jmpr Again, SP1; nop; nop\n{NOP}{END}",
    ],
)
def test_programs_that_never_end_are_recognised(text: str) -> None:
    with pytest.raises(EngineError, match="the program never ends: it is back at bundle") as caught:
        ran(text, limit=10**9)
    assert caught.value.span is not None


def test_long_programs_meet_the_limit() -> None:
    text = f"nop; loop 0, 1000000, 1, <, E; nop; nop\n{nops(8)}E:\n{END}"
    with pytest.raises(EngineError, match="cycle limit of 500 reached in bundle"):
        ran(text, limit=500)
    counting = f"Again:\nnop; add.i32 S1, S1, 0x1; nop; nop\nnop; jmpr Again; nop; nop\n{NOP}{END}"
    with pytest.raises(EngineError, match="cycle limit of 500"):  # it changes, and wraps around some day
        ran(counting, limit=500)


def test_a_path_that_needs_tensor_data_cannot_be_timed_alone() -> None:
    text = "// castsim: tensor 0 x in i32 [1]\n// castsim: reg AD1 = 0x100000000\n"
    text += f"ld_g {{what}}, AD1; nop; nop; nop\n{nops(6)}{{use}}\n{NOP}{nops(8)}E:\n{END}"
    for what, use, message in (
        ("SP1", "nop; jmpr E, SP1; nop; nop", "its predicate depends on tensor data"),
        ("S1", "nop; jmpr S1; nop; nop", "where it jumps depends on tensor data"),
        ("S1", "nop; loop 0, S1, 1, <, E; nop; nop", "its bound depends on tensor data"),
        ("S1", "ld_l_v V0, S1; nop; nop; nop", "its address depends on tensor data"),
    ):
        full = text.format(what=what, use=use)
        with pytest.raises(IllegalError, match=message):
            ran(full, values=False)
        assert ran(full, inputs={"x": np.array([256], np.int32)}).tree


COPY = f"ld_tnsr V0, 0x0, I0; nop; nop; nop\n{nops(3)}nop; nop; nop; st_tnsr 0x1, I0, V0\n"
KERNEL = f"// castsim: target gaudi2\n{X}{COPY}"


def written(folder: Path, text: str = KERNEL + END, name: str = "kernel.tpc") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--in", "x=zeros", "--entry", "main"], 2, "--entry applies only to .pto programs"),
        (["--in", "z=zeros"], 2, "no tensor argument 'z'"),
        ([], 2, "no input for x, which the program declares"),
        (["--in", "x=zeros", "--arg", "n=3"], 2, "takes only values of S registers"),
        (["--in", "x=zeros", "--arg", "S99=3"], 2, "takes only values of S registers"),
        (["--in", "x=zeros", "--arg", "S1=1.5"], 2, "not an integer of 32 bits"),
        (["--in", "x=zeros", "--target", "a2a3"], 1, "a2a3 does not run .tpc programs"),
        (["--in", "x=zeros", "--stale-reads", "soft"], 2, "unknown treatment of stale reads 'soft'"),
        (["--in", "x=zeros", "--max-cycles", "3"], 1, "cycle limit of 3"),
        (["--in", "x=zeros", "--option", "global_ports=two"], 2, "global_ports cannot be 'two'"),
    ],
)
def test_wrong_command_lines(
    words: list[str], code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", written(tmp_path), *words]) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("shape", "elements", "array", "legal"),
    [
        ("64, 4", "64 x 4 = 256 elements", (4, 63), "[4, 64]"),
        ("64, 2, 3", "64 x 2 x 3 = 384 elements", (256,), "[3, 2, 64]"),
        ("64", "64 elements", (), "[64]"),
    ],
)
def test_an_array_of_another_size_is_refused_at_the_declaration(
    shape: str, elements: str, array: tuple[int, ...], legal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, f"// castsim: target greco\n// castsim: tensor 0 x in f32 [{shape}]\n{END}")
    np.save(tmp_path / "x.npy", np.zeros(array, np.float32))
    assert main(["run", path, "--in", f"x={tmp_path / 'x.npy'}"]) == 2
    found = f"shape {list(array)}, {np.prod(array, dtype=int)} elements"
    err = capsys.readouterr().err
    assert f"{path}:2:13: input 'x' has {found}, but is declared as {elements}\n" in err
    assert f"legal: shape {legal}: dimension 0 " in err


HUGE = ("2000000000, 2000000000", "2000000000, 2000000000, 2000000000")


@pytest.mark.parametrize(
    ("shape", "more", "code", "message"),
    [
        (HUGE[0], [], 1, f"argument 'x' has {4 * 10**18} elements, over the limit of "),
        (HUGE[1], [], 1, f"argument 'x' has {8 * 10**27} elements, over the limit of "),
        *((shape, ["--max-elements", "9" * 30], 1, "not enough memory: x has 2000000000 x ") for shape in HUGE),
        ("64, 2147483649", [], 2, "not '2147483649' in [64, 2147483649]"),
    ],
)
def test_a_tensor_too_large_for_memory_or_coordinates_is_named(
    shape: str, more: list[str], code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, f"// castsim: target greco\n// castsim: tensor 0 x in f32 [{shape}]\n{END}")
    assert main(["run", path, "--in", "x=zeros", *more]) == code
    assert (f"{path}:2:13: {message}" if code == 1 else message) in capsys.readouterr().err


def test_a_program_without_a_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, END)
    assert main(["run", path]) == 2
    assert "does not declare a target" in capsys.readouterr().err
    assert main(["run", path, "--target", "gaudi"]) == 0


def test_stale_reads_in_text_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "// castsim: target greco\nnop; nop; mov.i32 V0, 0x1; nop\nnop; nop; mov V1, V0; nop\n"
    path = written(tmp_path, text + END)
    assert main(["run", path, "--report", "full"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "stale reads: the old value is read inside the latency window of a write (1)" in out
    written_by = "written by 'mov.i32 V0, 0x1' (line 2, bundle 0)"
    assert f"'mov V1, V0' (line 3, bundle 1) reads the old value of V0, {written_by}" in out
    assert "distance 1, needed 4, 3 missing" in out
    assert main(["run", path, "--json", "-"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["stale_reads"]
    assert (entry["distance_bundles"], entry["needed_bundles"], entry["missing_bundles"]) == (1, 4, 3)
    assert entry["writer"] == {"text": "mov.i32 V0, 0x1", "line": 2, "bundle": 0, "slot": "VPU"}
    assert main(["run", path, "--stale-reads", "ignore", "--json", "-"]) == 0
    assert "stale_reads" not in json.loads(capsys.readouterr().out)


def test_assembly_is_known_by_suffix_declaration_or_target(tmp_path: Path) -> None:
    for name in ("kernel.tpc", "kernel.s", "kernel.txt"):
        assert run(written(tmp_path, name=name), inputs={"x": "zeros"}).cycles > 0
    for target in ("goya", chip("goya")):
        assert run(written(tmp_path, END, name="plain.txt"), target=target).cycles > 0


def test_the_cycle_limit_names_its_place_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    assert main(["run", path, "--in", "x=zeros", "--max-cycles", "3"]) == 1
    assert capsys.readouterr().err.count(f"{path}:") == 1


def test_a_refusal_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "// castsim: target gaudi\nld_l_v V0, 0x14000; nop; nop; nop\n" + END)
    assert main(["run", path, "--json", "-"]) == 1
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert (error["kind"], error["line"], error["column"]) == ("tile does not fit", 2, 1)
    assert error["legal"] == ["0x0 .. 0x13f00"]


def test_the_json_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, KERNEL.replace(nops(3), nops(2)).replace("st_tnsr 0x1, I0, V0", "st_l_v 0x0, V0") + END)
    assert main(["run", path, "--in", "x=random:1", "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report) == [
        "schema_version", "program", "entry", "target", "engine", "total_cycles", "seconds", "pipes", "lost_most",
        "latency_bound", "lower_bound", "instructions", "outputs", "facts_assumed", "trust", "warnings", "stale_reads",
    ]  # fmt: skip
    assert (report["entry"], report["target"], report["engine"]) == ("kernel", "gaudi2", "fast")
    assert list(report["instructions"][0]) == ["line", "op", "pipe", "start_cycle", "end_cycle"]
    operations = ["ld_tnsr", "nop", "nop", "st_l_v", "nop", "nop", "nop", "halt|halt"]
    assert [entry["op"] for entry in report["instructions"]] == operations
    assert list(report["pipes"]) == ["LOAD", "SPU", "VPU", "STORE", "GLOBAL"]
    stale = report["stale_reads"]
    assert [(entry["kind"], entry["register"]) for entry in stale] == [("unwritten", "I0")]
