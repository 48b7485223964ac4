"""Races between the pipes of programs of vector instructions: every needed flag is missed, and nothing else."""

from __future__ import annotations

import re

import pytest
from kit.lanes_model import READS
from kit.micro_cases import texts
from kit.paths import PROGRAMS

from castsim.engines import simulate
from castsim.isa.errors import EngineError
from castsim.isa.pto.micro_forms import micro_operations
from castsim.isa.pto.pto_parser import parse
from castsim.isa.reading import Language, Source
from castsim.machines.vector_function.scope_recorder import _moved, instruction_of
from castsim.running.loaded import LoadRequest, RunOptions
from castsim.running.program_loading import load_tiles
from castsim.running.synchronisation.race_findings import REPORT, RaceKind
from castsim.targets.loader import load_target

SAMPLES = PROGRAMS / "micro"
SYNCHRONISES = re.compile(r"pto\.(set_flag|wait_flag|barrier|get_buf|rls_buf)\b")

HEAD = """module attributes {pto.target_arch = "a5"} {
  func.func @k(%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>) attributes {pto.kernel} {
    %o = arith.constant 0 : i64
    %p = arith.constant 65536 : i64
    %one = arith.constant 1 : i64
    %two = arith.constant 2 : i64
    %next = arith.constant 128 : i64
    %length = arith.constant 1024 : i64
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 4 : index
    %step = arith.constant 64 : index
    %tail = arith.constant 8 : i32
    %in = pto.castptr %o : i64 -> !pto.ptr<f32, ub>
    %beside = pto.castptr %next : i64 -> !pto.ptr<f32, ub>
    %out = pto.castptr %p : i64 -> !pto.ptr<f32, ub>
"""
END = """    pto.barrier #pto.pipe<PIPE_ALL>
    return
  }
}
"""
IN = "!pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64"
OUT = "!pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64"
V = "!pto.vreg<64xf32>"


def load(to: str = "%in", length: str = "%length") -> str:
    return f"pto.mte_gm_ub %x, {to}, %o, {length} nburst(%one, {length}, {length}) : {IN}\n"


def store(of: str = "%out", length: str = "%length") -> str:
    return f"pto.mte_ub_gm {of}, %y, {length} nburst(%one, {length}, {length}) : {OUT}\n"


def flag(one: str, other: str, event: int = 0, word: str = "set") -> str:
    return f'pto.{word}_flag["PIPE_{one}", "PIPE_{other}", "EVENT_ID{event}"]\n'


def both(one: str, other: str, event: int = 0) -> str:
    return flag(one, other, event) + flag(one, other, event, "wait")


def hold(pipe: str, buffer: str, word: str = "get") -> str:
    return f'pto.{word}_buf "PIPE_{pipe}", {buffer}, %o : i64, i64\n'


SCOPE = f"""pto.vecscope {{
  %m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
  scf.for %i = %c0 to %n step %c1 {{
    %at = arith.muli %i, %step : index
    %v = pto.vlds %in[%at] : !pto.ptr<f32, ub> -> {V}
    %w = pto.vabs %v, %m : {V}, !pto.mask<b32> -> {V}
    pto.vsts %w, %out[%at], %m : {V}, !pto.ptr<f32, ub>, !pto.mask<b32>
  }}
}}
"""
TAIL = f"""pto.vecscope {{
  %m, %rest = pto.plt_b32 %tail : i32 -> !pto.mask<b32>, i32
  %v = pto.vlds %in[%c0] : !pto.ptr<f32, ub> -> {V}
  %w = pto.vabs %v, %m : {V}, !pto.mask<b32> -> {V}
  pto.vsts %w, %in[%c0], %m : {V}, !pto.ptr<f32, ub>, !pto.mask<b32>
}}
"""
TRIPS = "scf.for %j = %c0 to %n step %c1 {\n{}}\n"

BUFFERS = TRIPS.replace("{}", "".join((
    hold("MTE2", "%one"), load(), hold("MTE2", "%one", "rls"),
    hold("V", "%one"), hold("V", "%two"), SCOPE, hold("V", "%one", "rls"), hold("V", "%two", "rls"),
    hold("MTE3", "%two"), store(), hold("MTE3", "%two", "rls"),
)))  # fmt: skip
"""Pipes that hand their buffers on, trip after trip."""

FLAGS = "".join((
    flag("V", "MTE2"), flag("MTE3", "V"),
    TRIPS.replace("{}", "".join((
        flag("V", "MTE2", 0, "wait"), load(), both("MTE2", "V"),
        flag("MTE3", "V", 0, "wait"), SCOPE, flag("V", "MTE2"), both("V", "MTE3"),
        store(), flag("MTE3", "V"),
    ))),
    flag("V", "MTE2", 0, "wait"), flag("MTE3", "V", 0, "wait"),
))  # fmt: skip
"""The same with flags."""


def written(body: str) -> str:
    return HEAD + body + END


def findings(text: str, *, sync: str = "insert", races: str = REPORT) -> list[RaceKind]:
    """What is wrong with the order of a program; a wait without end is told by an error."""
    args = {"scale": 2.0} if "%scale: f32" in text else {}
    loaded = load_tiles(Source("k.pto", Language.TILES, text), LoadRequest("a5", args=args, sync=sync))
    try:
        found = loaded.issue({}, RunOptions(values=False, races=races)).races
    except EngineError as error:
        assert "deadlock" in error.message
        return [RaceKind.DEADLOCK]
    assert found is not None
    return [each.kind for each in found]


SYNCHRONISED = {
    **{path.stem: path.read_text() for path in sorted(SAMPLES.glob("*.pto"))},
    **{name: texts()[name] for name in sorted(texts())[::24]},
    "buffers": written(BUFFERS),
    "flags": written(FLAGS),
}


@pytest.mark.parametrize("name", SYNCHRONISED)
def test_every_synchronising_line_that_is_left_out_is_missed(name: str) -> None:
    text = SYNCHRONISED[name]
    assert not findings(text)
    lines = text.splitlines()
    found = {
        number: findings("\n".join(lines[:number] + lines[number + 1 :]))
        for number, line in enumerate(lines)
        if SYNCHRONISES.search(line)
    }
    assert found
    assert all(found.values()), [lines[number] for number, kinds in found.items() if not kinds]


@pytest.mark.parametrize("name", sorted(texts()))
def test_own_programs_have_no_races(name: str) -> None:
    assert not findings(texts()[name])


def test_masked_lanes_meet_nothing() -> None:
    """Eight lanes of a register: what lies behind their 32 bytes is neither needed nor written."""
    length = "%next"
    body = (
        load("%in", length)
        + both("MTE2", "V")
        + load("%beside", length)
        + TAIL
        + both("V", "MTE3")
        + store("%in", length)
    )
    assert not findings(written(body))
    whole = body.replace(
        "%m, %rest = pto.plt_b32 %tail : i32 -> !pto.mask<b32>, i32", '%m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>'
    )
    assert RaceKind.RACE in findings(written(whole))


def test_pipes_wait_for_buffers_as_for_flags() -> None:
    held, flagged = (
        load_tiles(Source("k.pto", Language.TILES, text), LoadRequest("a5"))
        for text in (written(BUFFERS), written(FLAGS))
    )
    trees = [each.issue({}, RunOptions(values=False)).loaded for each in (held, flagged)]
    for each in trees:
        fast, event = (simulate(each.tree, each.target, engine=engine) for engine in ("fast", "event"))
        assert (fast.total, fast.pipes, list(fast.operations)) == (event.total, event.pipes, list(event.operations))
        assert all(sum(pipe.causes.values()) == fast.total for pipe in fast.pipes.values())
    pipes = [simulate(each.tree, each.target).pipes for each in trees]
    for pipe in ("MTE2", "V", "MTE3"):
        assert pipes[0][pipe].busy == pipes[1][pipe].busy


@pytest.mark.parametrize("higher", [False, True])
@pytest.mark.parametrize("name", ["ppack", "punpack", "pbitcast"])
def test_how_far_a_mask_reaches_that_is_made_of_another(name: str, higher: bool) -> None:
    """Against bit by bit: docs/reference/micro.md 5.3."""
    for bits in range(257):
        given = [int(bit < bits) for bit in range(256)]
        half = given[128:] if higher else given[:128]
        match name:
            case "ppack":
                packed = given[::2]
                made = [0] * 128 + packed if higher else packed + [0] * 128
            case "punpack":
                made = [half[bit // 2] if bit % 2 == 0 else 0 for bit in range(256)]
            case _:
                made = given
        last = max((bit + 1 for bit, value in enumerate(made) if value), default=0)
        found = _moved(name, bits, higher=higher)
        assert last <= found <= last + 1  # the odd bit behind the last one is 0


@pytest.mark.parametrize("mode", [mode for mode in READS if "DINTLV" not in mode])
def test_a_load_touches_the_bytes_of_its_distribution(mode: str) -> None:
    bits = int(mode.rpartition("_B")[2]) if mode[-1].isdigit() and "_B" in mode else 8
    kind = {8: "ui8", 16: "ui16", 32: "ui32"}[bits]
    register = f"!pto.vreg<{2048 // bits}x{kind}>"
    function = parse(
        f"""func.func @f() attributes {{pto.kernel}} {{
%z = arith.constant 0 : i64
%o = arith.constant 0 : index
%p = pto.castptr %z : i64 -> !pto.ptr<{kind}, ub>
pto.vecscope {{
%r = pto.vlds %p[%o] {{dist = "{mode}"}} : !pto.ptr<{kind}, ub> -> {register}
}}
return
}}"""
    ).functions[0]
    (load,) = (each for each in micro_operations(function.body or ()) if each.mnemonic == "vlds")
    assert instruction_of(load, load_target("a5")).size == READS[mode]
