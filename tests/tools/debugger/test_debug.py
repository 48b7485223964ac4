"""Stepping through recorded runs: either way to the same state, the machine's own; what the console prints."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from kit.cli_programs import LOOP, NARROW, TCVT, TLOAD, TSTORE, written
from kit.command_output import Capture, err_of, out_of
from kit.paths import PROGRAMS
from tools.debugger.debug_programs import debug_words, digest, digested, launch

import castsim
from castsim.__main__ import main
from castsim.isa.errors import LimitError, ReadError
from castsim.numerics.codec import codes_from_array
from castsim.running.program_runs import RunConfig
from castsim.tools.debugger import step_recording
from castsim.tools.debugger.stepper import Stepper, stepper_of
from castsim.tools.debugger.stepping import element_lines, stop_line
from castsim.tools.debugger.stops import parse_selection

SAMPLES = (
    "f32_to_f16_pipelined.pto", "a5_e2m1_to_bf16_rows.pto", "f16_s4_round_trip.pto", "f32_to_i16_partial.pto",
    "kernels/quantise_rows_fp8_a5.pto", "micro/f32_to_f16_parts.pto", "micro/logical/quantise_int8.pto",
    "tpc_f32_exp_goya.tpc", "tpc_f32_bf16_packed_gaudi2.tpc", "tpc_f32_bf16_stochastic_gaudi.tpc",
)  # fmt: skip
"""Of every kind of program: tiles on both mechanisms, with loops, packed formats, vector instructions, bundles."""
WALKS, MOVES = 10, 25


def state(stepper: Stepper) -> str:
    return digest(stepper.trace.memories, stepper.trace.registers)


@pytest.mark.parametrize("name", SAMPLES)
def test_random_walks_meet_the_same_state_at_the_same_place(name: str) -> None:
    """100 walks in all: steps, lines, runs to breakpoints, either way; states are those of a walk straight ahead."""
    straight = stepper_of(launch(PROGRAMS / name))
    count = len(straight.lines)
    places = sorted({*range(min(count, 40)), *range(0, count + 1, max(1, count // 40)), count})
    known: dict[int, str] = {}
    for place in places:
        straight.go_to(place)
        known[place] = state(straight)
    stepper = stepper_of(launch(PROGRAMS / name))
    for seed in range(WALKS):
        dice = random.Random(f"{name} {seed}")
        stepper.breakpoints.held.clear()
        for _ in range(2):
            stepper.break_at_line(dice.choice(stepper.lines))
        for _ in range(MOVES):
            move = dice.choice((
                stepper.step, stepper.step, stepper.reverse_step, stepper.reverse_step, stepper.next,
                stepper.reverse_next, stepper.run, stepper.reverse_run,
                lambda dice=dice: stepper.go_to(dice.choice(places)),
            ))  # fmt: skip
            move()
            assert stepper.cycle == straight.trace.cycle(stepper.position)
            if stepper.position in known:
                assert state(stepper) == known[stepper.position]
        stepper.go_to(dice.choice(places))
        assert state(stepper) == known[stepper.position]


@pytest.mark.parametrize("name", SAMPLES)
def test_states_are_those_of_the_machine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the machine's own memories held before each operation, and after the last the outputs of a run."""
    stepper, digests = digested(PROGRAMS / name, monkeypatch)
    trace = stepper.trace
    for position in range(0, len(stepper.lines), max(1, len(stepper.lines) // 60)):
        stepper.go_to(position)
        change = trace.steps[position].change
        assert change < 0 or digests[change] == digest(trace.memories), position
    stepper.run()
    assert stepper.ended
    asked = launch(PROGRAMS / name)
    outputs = castsim.run(
        asked.program, asked.target, entry=asked.entry, args=asked.args, inputs=asked.inputs, engine="event"
    ) if not asked.options else None  # fmt: skip
    for name_, array in (trace.result.outputs if outputs is None else outputs.outputs).items():
        place = trace.symbols.fixed[name_]
        assert np.array_equal(
            place.codes(trace.memories), codes_from_array(np.asarray(array), place.format).reshape(-1)
        )
    assert outputs is None or stepper.cycle == outputs.cycles


def narrow(folder: Path, text: str = NARROW, values: np.ndarray | None = None) -> Stepper:
    """A program of 4 x 64 elements, before its first operation."""
    values = np.arange(256, dtype=np.float32).reshape(4, 64) / 8 if values is None else values
    np.save(folder / "x.npy", values)
    return stepper_of(RunConfig(written(folder, text), inputs={"x": str(folder / "x.npy")}))


def test_values_are_those_of_numpy(tmp_path: Path) -> None:
    values = np.linspace(-3, 3, 256, dtype=np.float32).reshape(4, 64)
    values[0, :4] = np.nan, np.inf, -np.inf, -0.0
    stepper = narrow(tmp_path, values=values)
    stepper.run()
    assert next(element_lines(stepper, parse_selection("wide[0,2]"))) == "wide[0,2] = -inf (0xff800000)"
    assert next(element_lines(stepper, parse_selection("wide[0,0]"))) == "wide[0,0] = nan (0x7fc00000)"
    half = values.astype(np.float16)  # in Inf/NaN mode infinity stays
    for name, array in (("x", values), ("wide", values), ("slim", half), ("y", half)):
        bits = array.view(f"u{array.itemsize}")
        lines = list(element_lines(stepper, parse_selection(f"{name}[0:3,2:6]")))
        for line, (row, col) in zip(lines, np.ndindex(3, 4), strict=True):
            head, value, code = line.split(" = ")[0], line.split()[2], line.split()[3]
            assert head == f"{name}[{row},{col + 2}]"
            assert code == f"(0x{bits[row, col + 2]:0{2 * array.itemsize}x})"
            want = float(array[row, col + 2])
            assert np.isnan(want) or (float(value) == want and value.startswith("-") == bool(np.signbit(want)))
    as_bits = list(element_lines(stepper, parse_selection("slim[1,0:2] as bf16")))
    code = int(half.view("u2")[1, 0])
    want = np.array([code << 16], np.uint32).view(np.float32)[0]
    assert as_bits[0] == f"slim[1,0] = {float(want)!r} (0x{code:04x})"
    wide = np.frombuffer(values[2].tobytes(), "u1")
    assert [each.split()[2] for each in element_lines(stepper, parse_selection("wide[2,4:8] as u8"))] == [
        str(each) for each in wide[4:8]
    ]


def test_four_bits_share_a_byte() -> None:
    stepper = stepper_of(launch(PROGRAMS / "f16_s4_round_trip.pto"))
    stepper.run()
    small = [name for name in stepper.trace.symbols.names() if stepper.trace.symbols.at(name, 0).format.bits == 4]
    assert small
    for name in small:
        codes = [
            int(line.split()[-1].strip("()"), 16) for line in element_lines(stepper, parse_selection(f"{name}[0]"))
        ]
        place = stepper.trace.symbols.at(name, 0)
        first = place.offset // 8
        data = stepper.trace.memories[place.space][first : first + len(codes) // 2]
        assert codes == [half for byte in data for half in (int(byte) & 15, int(byte) >> 4)]


def test_steps_are_executed_operations_and_lines_have_all_their_trips(tmp_path: Path) -> None:
    stepper = narrow(tmp_path)
    assert stepper.lines == [TLOAD, TCVT, TSTORE]  # flags that were inserted stand in no line
    loop = narrow(tmp_path, LOOP)
    head, *body = loop.lines[:4]
    assert loop.lines == [head, *body] * 4 + [loop.lines[-1]]
    loop.step()
    loop.next()
    assert loop.position == len(loop.lines) - 1 - 2  # behind the last trip of its line
    loop.go_to(0)
    loop.next()
    assert loop.line == loop.lines[-1]
    loop.reverse_next()
    assert loop.line == body[-1] and loop.position == 3


def test_breakpoints(tmp_path: Path) -> None:
    stepper = narrow(tmp_path, LOOP)
    body = stepper.lines[3]
    made = stepper.break_at_line(1)
    assert made.line == min(stepper.lines)
    stepper.breakpoints.held.clear()
    at = stepper.break_at_line(body)
    places = []
    while stepper.run() is at:
        places.append(stepper.position)
    assert places == [p for p, line in enumerate(stepper.lines) if line == body] and stepper.ended
    back = []
    while stepper.reverse_run() is at:
        back.append(stepper.position)
    assert back == places[::-1] and stepper.position == 0
    stepper.breakpoints.held.clear()
    starts = [step.start for step in stepper.trace.steps]
    cycle = sorted(starts)[len(starts) // 2]
    stepper.break_at_cycle(cycle)
    stepper.run()
    assert stepper.position == next(p for p, start in enumerate(starts) if start >= cycle)
    for refused in (lambda: stepper.break_at_line(10**6), lambda: stepper.break_at_cycle(10**9)):
        with pytest.raises(ReadError):
            refused()


def test_conditions_stop_where_they_come_true(tmp_path: Path) -> None:
    values = np.zeros((4, 64), np.float32)
    values[3, 7] = np.nan
    values[3, 8] = 1.5
    stepper = narrow(tmp_path, values=values)
    for text, line in (("wide[3,7] is nan", TCVT), ("slim[3,8] == 1.5", TSTORE)):
        stepper.go_to(0)
        stepper.breakpoints.held.clear()
        hit = stepper.break_if(text)
        assert stepper.run() is hit and stepper.line == line
        assert stepper.run() is None and stepper.ended  # it stays true, and stops no more
        assert stepper.reverse_run() is hit and stepper.line == line
    stepper.breakpoints.held.clear()
    stepper.break_if("y[3,8] > 1")
    stepper.break_at_line(TSTORE, "slim[0,0] == 1")
    stepper.go_to(0)
    assert stepper.run() is not None and stepper.ended  # true behind the last operation


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("x[0,1] == 0.125", True), ("x[0,1] > 0.125", False), ("0.1 < x[0,1]", True), ("x[0,0:4] >= 0.375", True),
        ("x[0,0] is zero", True), ("x[0,1] is not zero", True), ("x[0,0] is nan", False), ("x[1] != 0", True),
        ("cycle >= 0", True), ("cycle > 0", False), ("pipe V is waiting", False), ("pipe S is not empty", True),
        ("%x[0,8] == 0x1", True), ("x[0,0] as u32 == 0", True), ("x[-1,-1] == 31.875", True),
    ],
)  # fmt: skip
def test_what_conditions_say(text: str, want: bool, tmp_path: Path) -> None:
    stepper = narrow(tmp_path)
    assert stepper.condition(text).holds(stepper) is want


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "x[0,0] is odd", "x[0,0] == big", "pipe V", "pipe W is waiting", "pipe V is asleep",
        "nothing[0] is nan",
        "x[9,9] is nan", "x[0,0,0] is nan", "x[0", "x[a] is nan", "x[0,0] as f17 is nan", "x[" + "9" * 40 + "] is nan",
    ],
)  # fmt: skip
def test_conditions_that_are_none(text: str, tmp_path: Path) -> None:
    stepper = narrow(tmp_path)
    with pytest.raises(ReadError) as caught:
        stepper.condition(text)
    assert "internal" not in caught.value.message


def test_a_pipe_waits_as_the_event_engine_says(tmp_path: Path) -> None:
    stepper = narrow(tmp_path)
    hit = stepper.break_if("pipe MTE3 is waiting")
    stepper.run()
    assert stepper.pipe("MTE3") == "flag wait"
    stepper.go_to(0)
    assert hit.condition is not None and not hit.condition.holds(stepper)
    causes = stepper.trace.result.timing.pipes["MTE3"].causes
    spent = [stepper.pipes.at("MTE3", cycle) for cycle in range(stepper.trace.result.cycles)]
    assert {cause: spent.count(cause) for cause in set(spent)} == {c: n for c, n in causes.items() if n}


def test_registers_of_bundles() -> None:
    """The rounded quotient of the exponential: z = nearbyint(x log2 e + 0.5), as NumPy has it."""
    stepper = stepper_of(launch(PROGRAMS / "tpc_f32_exp_gaudi2.tpc"))
    stepper.break_at_line(26)
    stepper.run()
    x = stepper.trace.symbols.fixed["x"].codes(stepper.trace.memories).view(np.float32)[:64]
    shown = [line.split() for line in element_lines(stepper, parse_selection("V3 as f32"))]
    fused = np.float32(x.astype(np.float64) * float(np.uint32(0x3FB8AA3B).view(np.float32)) + 0.5)
    assert [float(each[2]) for each in shown] == np.floor(fused).tolist()
    assert shown[5][0] == "V3[5]"
    assert next(element_lines(stepper, parse_selection("S0"))) == "S0 = 0 (0x00000000)"
    assert len(list(element_lines(stepper, parse_selection("I0")))) == 5


def test_registers_of_vector_functions() -> None:
    stepper = stepper_of(launch(PROGRAMS / "micro/f32_to_f16_parts.pto"))
    with pytest.raises(ReadError, match="no value yet"):
        list(element_lines(stepper, parse_selection("half")))
    stepper.break_at_line(27)
    stepper.run()
    x = stepper.trace.symbols.fixed["x"].codes(stepper.trace.memories).view(np.float32)
    values = [float(line.split()[2]) for line in element_lines(stepper, parse_selection("half"))]
    assert values == x[:128].astype(np.float16).tolist()
    masks = [line.split()[2] for line in element_lines(stepper, parse_selection("all"))]
    assert masks == ["1"] * 64


def test_too_much_to_keep_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_recording, "MOST_BYTES", 100)
    with pytest.raises(LimitError, match="too much to step through"):
        narrow(tmp_path)


def test_a_program_without_cycles(tmp_path: Path) -> None:
    within = (
        "pto.mte_ub_ub %in, %in, %one nburst(%one, %o, %o) : !pto.ptr<f32, ub>, !pto.ptr<f32, ub>, i64, i64, i64, i64"
    )
    (tmp_path / "k.pto").write_text(f"""module attributes {{pto.target_arch = "a5"}} {{
  func.func @copy(%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>) attributes {{pto.kernel}} {{
    %o = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %size = arith.constant 256 : i64
    %in = pto.castptr %o : i64 -> !pto.ptr<f32, ub>
    pto.mte_gm_ub %x, %in, %o, %size nburst(%one, %size, %size) \
: !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>
    {within}
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.mte_ub_gm %in, %y, %size nburst(%one, %size, %size) : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64
    return
  }}
}}
""")
    stepper = stepper_of(RunConfig(str(tmp_path / "k.pto"), inputs={"x": "random:1"}))
    assert stop_line(stepper).endswith("k.pto:7 cycle ?")
    for refused in (lambda: stepper.break_at_cycle(1), lambda: stepper.break_if("cycle > 1"), lambda: stepper.pipes):
        with pytest.raises(ReadError):
            refused()
    stepper.run()
    memories = stepper.trace.memories
    assert stepper.ended and np.array_equal(memories["gm:x"], memories["gm:y"]) and memories["gm:y"].any()


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", np.arange(256, dtype=np.float32).reshape(4, 64) - 100)
    return Path(written(tmp_path))


def debug(
    kernel: Path, commands: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture, *words: str
) -> tuple[int, list[str], str]:
    monkeypatch.setattr(sys, "stdin", StringIO(commands))
    code = main(["debug", str(kernel), "--in", f"x={kernel.parent / 'x.npy'}", *words])
    told = capsys.readouterr()
    return code, told.out.splitlines(), told.err


def test_a_session_of_a_process(kernel: Path) -> None:
    """No prompt, the stops, the elements, an error that ends nothing, exit code 2 for it."""
    result = castsim.run(kernel, inputs={"x": np.load(kernel.parent / "x.npy")}, engine="event")
    start = {result.loaded.tree.instructions[e.instruction].span.line: e.start for e in result.timing.executions
             if not result.loaded.tree.instructions[e.instruction].inserted}  # fmt: skip
    script = (
        f"step\nprint wide[0:2,3]\nprynt\nbreak {TSTORE}\ncontinue\nprint slim[1,0]\ncontinue\nprint y[3,63] as u16\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "castsim", "debug", kernel.name, "--in", "x=x.npy"],
        input=script, capture_output=True, text=True, timeout=120, check=False, cwd=kernel.parent,
    )  # fmt: skip
    last = int(np.float16(155).view("u2"))
    assert done.stdout.splitlines() == [
        f"{kernel.name}:{TLOAD} cycle {start[TLOAD]}",
        f"{kernel.name}:{TCVT} cycle {start[TCVT]}",
        f"wide[0,3] = -97.0 (0x{int(np.float32(-97).view('u4')):08x})",
        f"wide[1,3] = -33.0 (0x{int(np.float32(-33).view('u4')):08x})",
        f"breakpoint 1: line {TSTORE}",
        f"{kernel.name}:{TSTORE} cycle {start[TSTORE]}",
        f"slim[1,0] = -36.0 (0x{int(np.float16(-36).view('u2')):04x})",
        f"{kernel.name}:{TSTORE} cycle {result.cycles}",
        "the program has ended",
        f"y[3,63] = {last} (0x{last:04x})",
    ]
    assert done.stderr.startswith("error: unknown command 'prynt'\n  legal: print, step, next, ")
    assert done.returncode == 2


@pytest.mark.parametrize("end", ["quit\nstep\n", "q", ""])
def test_it_ends_at_quit_or_with_its_input(
    end: str, kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    code, lines, err = debug(kernel, f"s\n\n# nothing\n{end}", monkeypatch, capsys)
    assert (code, len(lines), err) == (0, 2, "")


def test_the_last_line_may_lack_its_end_and_short_forms_do(
    kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    code, lines, _ = debug(kernel, f"b {TCVT}\nc\nrs\nn\nrc\nd 1\ni b\nw\nh\nl\ni names\np x[0,0]", monkeypatch, capsys)
    stops = [int(found[1]) for line in lines if (found := re.fullmatch(r".*:(\d+) cycle \d+", line))]
    assert code == 0
    assert stops == [TLOAD, TCVT, TLOAD, TCVT, TLOAD, TLOAD]
    assert "operation 1 of 3: tload f32 4 x 64 on MTE2, cycles 0 .. " in "\n".join(lines)
    assert "slim: tile f16 [4, 64]" in lines
    assert lines[-1] == "x[0,0] = -100.0 (0xc2c80000)"
    assert any(line.startswith(f"> {TLOAD}  ") for line in lines)


@pytest.mark.parametrize(
    "command",
    [
        "stop", "step x", "step -1", "next 2", "break", "break x", "break 0", "break 10000", "break cycle",
        "break cycle x",
        "break cycle 99999999", "break if", "break if x", "break if nobody[0] is nan", "break 15 if x[0,0] is odd",
        "print", "print nobody", "print x[0", "print x[4,0]", "print x[0,0,0]", "print x as f33", "print x[0,0] of f32",
        "info", "info weather", "delete 7", "delete x", "quit now", "continue 3", "print x[\x1b[2J]", "\x1b[31m",
        "print %", "break 99999999999999999999999999",
    ],
)  # fmt: skip
def test_a_bad_command_is_an_error_and_the_session_goes_on(
    command: str, kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    code, lines, err = debug(kernel, f"{command}\nprint x[0,1]\n", monkeypatch, capsys)
    assert code == 2
    assert lines[-1] == "x[0,1] = -99.0 (0xc2c60000)"
    assert err.startswith("error: ") and "internal error" not in err and "\x1b" not in err
    assert len(lines) == 2


def test_the_stops_as_json(kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    code, lines, _ = debug(kernel, "next\nbad\ncontinue\n", monkeypatch, capsys, "--json", "-")
    document = json.loads("\n".join(lines))
    assert code == 2
    assert [stop["line"] for stop in document["stops"]] == [TLOAD, TCVT, TSTORE]
    assert [stop["ended"] for stop in document["stops"]] == [False, False, True]
    assert (document["operations"], document["failed"]) == (3, 1)


@pytest.mark.parametrize("name", ["tpc_f32_i16_quantise_greco.tpc", "micro/masked_tail.pto", "a5_hif8_round_trip.pto"])
def test_every_kind_of_program(name: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    path = PROGRAMS / name
    monkeypatch.setattr(sys, "stdin", StringIO("step\ncontinue\nreverse-continue\nwhere\ninfo pipes\n"))
    stops = [line for line in out_of(capsys, ["debug", *debug_words(path)]).splitlines() if line.startswith(f"{path}:")]
    assert len(stops) == 5
    assert stops[0] == stops[3] == stops[4]


def test_hostile_names_stay_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    np.save(tmp_path / "x.npy", np.zeros((4, 64), np.float32))
    kernel = Path(written(tmp_path, NARROW, "<script>\x1b[2J\u202e.pto"))
    code, lines, _ = debug(kernel, "step\nwhere\nlist\ninfo names\nbreak if x[0,0] > 1\n", monkeypatch, capsys)
    assert code == 0
    assert lines[0].endswith(f"<script>\\x1b[2J\\u202e.pto:{TLOAD} cycle 0")
    assert not re.search("[\x1b\u202e]", "\n".join(lines))


def test_input_that_cannot_be_read(kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    class Broken(StringIO):
        def __next__(self) -> str:
            raise OSError("it is a folder")

    monkeypatch.setattr(sys, "stdin", Broken())
    assert "standard input cannot be read: it is a folder" in err_of(capsys, ["debug", str(kernel), "--in", "x=zeros"])
