"""Inserted flags and barriers: that nothing stays unordered, event ids, and what does not depend on the run.

Kernels are on tiles x, w, z, a, b of 16 x 128 f32, y in f16, r a column, t scratch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from difflib import ndiff
from pathlib import Path

import pytest
from core.execution.sync_random import LARGE, SMALL, Maker
from kit.cli_programs import LOOP, before, changed, written
from kit.paths import PROGRAMS
from kit.sample_arguments import argument_words, scalars
from makers.expected_reports import derivation_facts
from oracle_races import judge

from castsim import run
from castsim.__main__ import main
from castsim.engines import simulate
from castsim.execution.interpreter.interpreter import execute
from castsim.execution.timing import Cause
from castsim.execution.tree import Tree
from castsim.isa.errors import ReadError
from castsim.isa.pto import program as nodes
from castsim.isa.pto import program as pto
from castsim.isa.pto.pto_parser import parse
from castsim.machines.mechanisms import lowerer_of
from castsim.running.program_edits import with_inserted_flags
from castsim.running.synchronisation.flags import SynchronisedFunction, insert, noted, plan
from castsim.running.synchronisation.race_detector import find_races
from castsim.running.synchronisation.race_findings import RaceKind
from castsim.running.synchronisation.removing import ElementListing, OperandBytes
from castsim.targets.description import with_options
from castsim.targets.loader import load_target

A3, A5 = load_target("a2a3"), load_target("a5")
WIDE, SLIM, COLUMN = "vec, 16x128xf32", "vec, 16x128xf16", "vec, 16x1xf32, blayout=col_major"
TILES = {**dict.fromkeys("xwzabt", WIDE), "y": SLIM, "r": COLUMN}
VIEW, PART = "!pto.tensor_view<16x128x{0}>", "!pto.partition_tensor_view<16x128x{0}>"

HEAD = """func.func @k(%p: !pto.ptr<f32>, %q: !pto.ptr<f32>, %s: !pto.ptr<f32>, %h: !pto.ptr<f16>, %n: index, %c: i1)
    attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  %one = arith.constant 1.0 : f32
"""


def kind(tile: str) -> str:
    return f"!pto.tile_buf<{TILES[tile]}>"


def kernel(body: str) -> str:
    """The program whose statements are written as in `tload p x`, `for 0 {`, `if {`, `else {`, `}`."""
    lines = [HEAD]
    for name, element in (("p", "f32"), ("q", "f32"), ("s", "f32"), ("h", "f16")):
        view, part = VIEW.format(element), PART.format(element)
        lines.append(
            f"  %v{name} = pto.make_tensor_view %{name}, shape = [%c16, %c128], strides = [%c128, %c1] : {view}"
        )
        sizes = "offsets = [%c0, %c0], sizes = [%c16, %c128]"
        lines.append(f"  %part_{name} = pto.partition_view %v{name}, {sizes} : {view} -> {part}")
    lines += [f"  %{name} = pto.alloc_tile : {kind(name)}" for name in TILES]
    lines += [statement(number, line.split()) for number, line in enumerate(body.strip().splitlines()) if line.strip()]
    return "\n".join([*lines, "  return", "}", ""])


def statement(number: int, words: Sequence[str]) -> str:
    match words:
        case ["for", first, "{"]:
            return f"  scf.for %i{number} = %c{first} to %n step %c1 {{"
        case ["if", "{"]:
            return "  scf.if %c {"
        case ["else", "{"]:
            return "  } else {"
        case ["}"]:
            return "  }"
        case ["tload", part, tile]:
            return f"  pto.tload ins(%part_{part} : {PART.format('f32')}) outs(%{tile} : {kind(tile)})"
        case ["tstore", tile, part]:
            element = "f16" if tile == "y" else "f32"
            return f"  pto.tstore ins(%{tile} : {kind(tile)}) outs(%part_{part} : {PART.format(element)})"
        case ["tcvt", src, dst]:
            return f"  pto.tcvt ins(%{src} : {kind(src)}) outs(%{dst} : {kind(dst)})"
        case [("tadds" | "tmuls") as name, src, dst]:
            return f"  pto.{name} ins(%{src}, %one : {kind(src)}, f32) outs(%{dst} : {kind(dst)})"
        case ["texpands", dst]:
            return f"  pto.texpands ins(%one : f32) outs(%{dst} : {kind(dst)})"
        case [name, *sources, dst]:
            types = ", ".join(map(kind, sources))
            return f"  pto.{name} ins({', '.join(f'%{each}' for each in sources)} : {types}) outs(%{dst} : {kind(dst)})"
    raise AssertionError(words)


def inserted(text: str, target=A3) -> SynchronisedFunction:
    return insert(parse(text, "k.pto").functions[0], lowerer_of(target), target)


def listing(body: str, target=A3) -> list[str]:
    """The operations, loops, branches and inserted lines (with `+`) of a kernel, from the first of them on."""
    return list(_lines(inserted(kernel(body), target).function.body or ()))


def _lines(body: Sequence[nodes.Operation]) -> Iterator[str]:
    for node in body:
        match node:
            case nodes.SetFlag() | nodes.WaitFlag():
                word = "set" if isinstance(node, nodes.SetFlag) else "wait"
                yield f"+ {word} {node.src[5:]}->{node.dst[5:]} #{node.event}"
            case nodes.Barrier():
                yield f"+ barrier {node.pipe[5:]}"
            case nodes.Tcvt():
                yield "tcvt"
            case nodes.TileOperation():
                yield node.mnemonic
            case nodes.For():
                yield "for"
                yield from _lines(node.body)
                yield "end"
            case nodes.If():
                yield "if"
                yield from _lines(node.then_body)
                yield from ["else", *_lines(node.else_body)] if node.else_body else []
                yield "end"


RUNS = [(0, 0, 0, 0), (1, 2, 1, 0), (2, 1, 0, 1), (2, 3, 1, 1), (3, 2, 0, 0), (0, 3, 1, 1)]
"""Trips of the loops and truth of the conditions."""
UNSEEN = 59
"""A seed whose program has a race by the literal rule."""
HOLE = 353
"""A seed whose program has a race if what a branch or an empty loop has seen counts without it."""


def scarce(target, event_ids: int):
    return target.model_copy(update={"pipes": target.pipes.model_copy(update={"event_ids": event_ids})})


def trees(text: str, target, runs=RUNS) -> list[Tree]:
    """The trees of one synchronised program, run with various arguments."""
    parsed = parse(text, "k.pto")
    made = insert(parsed.functions[0], lowerer_of(target), target)
    return [
        execute(parsed, made.function, lowerer_of(target), dict(zip("nmcd", given, strict=True))).tree for given in runs
    ]


# ----------------------------------------------------------------------------------------------------- nothing is left
@pytest.mark.parametrize("seed", [*range(60), HOLE])
def test_nothing_is_unordered_whatever_path_is_taken(seed: int) -> None:
    """Neither for the judge, which unrolls everything, nor for the race detector; no flag is left over."""
    target = (A3, A5, A3, scarce(A3, 2), scarce(A3, 1))[seed % 5] if seed != HOLE else A3
    text = Maker(seed, LARGE if seed % 4 == 1 else SMALL).text()
    facts = target.synchronisation
    for tree in trees(text, target):
        verdict = judge(tree, tuple(map(str, facts.required_barriers)), facts.unordered_bytes or 10**9)
        assert verdict.clean, verdict
        assert [f for f in find_races(tree, target) if f.kind is not RaceKind.UNWRITTEN] == []


def test_the_literal_rule_is_an_option() -> None:
    """It keeps more as seen than holds on every path: one program has a race with it, and none without it."""
    literal = with_options(A3, {"flags_past_regions": "literal"})
    text, facts = Maker(UNSEEN, SMALL).text(), A3.synchronisation
    verdicts = [
        judge(tree, tuple(map(str, facts.required_barriers)), facts.unordered_bytes or 10**9)
        for tree in trees(text, literal)
    ]
    assert not all(verdict.clean for verdict in verdicts)
    same = [
        [[str(each.text) for each in insert(parse(text, "k.pto").functions[0], lowerer_of(chip), chip).inserts]
         for chip in (A3, literal)]
        for text in map(kernel, EXAMPLES)
    ]  # fmt: skip
    assert all(one == other for one, other in same)


EXAMPLES = (
    "tload p x\ntcvt x y\ntstore y h",
    "for 0 {\ntload p x\ntcvt x y\ntstore y h\n}",
    "tload p w\nfor 0 {\ntload q x\ntmul x w z\ntstore z s\n}",
)
"""Of the worked examples; the rule decides nothing about them."""


@pytest.mark.parametrize("seed", range(100, 112))
def test_the_engine_runs_it_to_the_end(seed: int) -> None:
    for tree in trees(Maker(seed, SMALL).text(), A3, RUNS[3:5]):
        assert simulate(tree, A3, engine="event").total == simulate(tree, A3, engine="fast").total > 0


# ------------------------------------------------------------------------------------------------- no value takes part


def test_an_empty_loop_still_sets_and_consumes_its_flags() -> None:
    parsed = parse(kernel("for 0 {\ntload p x\ntcvt x y\ntstore y h\n}"), "k.pto")
    made = insert(parsed.functions[0], lowerer_of(A3), A3)
    ran = execute(parsed, made.function, lowerer_of(A3), {"n": 0, "c": 0})
    assert [note.times for note in noted(made, ran).notes] == [1, 1, *[0] * 8, 1, 1, 1]


def test_the_end_may_be_a_flag() -> None:
    text = kernel("tload p x\ntcvt x y\ntstore y h").replace(
        "{pto.entry}", '{pto.entry, pto.auto_sync_tail_hint = "mte3-to-s-event0"}'
    )
    assert [each.text for each in inserted(text).inserts][-2:] == [
        "pto.set_flag[<PIPE_MTE3>, <PIPE_S>, <EVENT_ID0>]",
        "pto.wait_flag[<PIPE_MTE3>, <PIPE_S>, <EVENT_ID0>]",
    ]


# ------------------------------------------------------------------------------------------------------------ the rules


def test_what_several_trips_store_of_one_argument_stays_in_order() -> None:
    """Accesses through one argument always overlap: a store after itself, without anything in between."""
    assert listing("for 0 {\ntstore x q\n}") == ["for", "+ barrier MTE3", "tstore", "end", "+ barrier ALL"]


def test_in_place_chains_of_dense_tiles_need_no_barrier_others_do() -> None:
    assert "+ barrier V" not in listing("tadds x x\ntadds x x\ntmuls x z")
    # x is written again after it was read: not what the first wrote and the second reads.
    assert "+ barrier V" in listing("tadds x z\ntmuls z x")
    assert "+ barrier V" in listing("texpands x\ntexpands x")


# ------------------------------------------------------------------------------------------------------------ event ids
def _loads(count: int) -> ElementListing:
    """All loads first, then all vector operations: as many flags are needed at once."""
    found = ElementListing()
    tiles = [OperandBytes("vec", n, ((n * 64, n * 64 + 64),)) for n in range(2 * count)]
    for each in tiles[:count]:
        found.operation("MTE2", [OperandBytes("gm", "p")], [each])
    for each, other in zip(reversed(tiles[:count]), tiles[count:], strict=True):
        found.operation("V", [each], [other])
    return found


def _ids(found: ElementListing, target=A3) -> list[int]:
    return [each.event for orders in plan(found, target).after for each in orders if isinstance(each, pto.SetFlag)]


@pytest.mark.parametrize(
    ("pipe", "reads", "count", "ids"),
    [
        # An id that was never used is preferred.
        ("MTE2", [OperandBytes("gm", "p")], 10, [0, 1, 2, 3, 4, 5, 6, 7, 0, 0]),
        # Seven ids between scalar and vector.
        ("S", [], 8, [0, 1, 2, 3, 4, 5, 6, 0]),
    ],
)
def test_which_ids_are_taken(pipe: str, reads: list[OperandBytes], count: int, ids: list[int]) -> None:
    found = ElementListing()
    for number in range(count):
        tile = OperandBytes("vec", number, ((number * 64, number * 64 + 64),))
        found.operation(pipe, reads, [tile])
        found.operation("V", [tile], [OperandBytes("vec", 100, ((10_000, 10_064),))])
    assert _ids(found) == ids


def test_a_load_that_the_pipe_orders_needs_no_flag() -> None:
    """The last load is waited for first, so all others are there too: the pipe is in order."""
    assert _ids(_loads(12)) == [0]


def test_a_barrier_stands_for_a_flag_without_an_id() -> None:
    """Flags of three loops in each other, one id: those that find none are drained."""
    body = "tload p w\nfor 0 {\ntload q x\ntmul x w z\ntstore z s\n}"
    lines = listing(f"for 0 {{\n{body}\n}}", scarce(A3, 1))
    assert lines.count("+ barrier ALL") > 1
    assert not [line for line in lines if "#" in line and not line.endswith("#0")]


MAT, LEFT, RIGHT, ACC = (f"!pto.tile_buf<{where}, 16x16xf32>" for where in ("mat", "left", "right", "acc"))


MATRIX_PART = "!pto.partition_tensor_view<16x16xf32>"


PRODUCT = f"""func.func @k(%p: !pto.ptr<f32>, %q: !pto.ptr<f32>) attributes {{pto.entry}} {{
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c16 = arith.constant 16 : index
%v = pto.make_tensor_view %p, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf32>
%w = pto.make_tensor_view %q, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf32>
%x = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c16] : !pto.tensor_view<16x16xf32> -> {MATRIX_PART}
%y = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c16, %c16] : !pto.tensor_view<16x16xf32> -> {MATRIX_PART}
%m = pto.alloc_tile : {MAT}
%l = pto.alloc_tile : {LEFT}
%r = pto.alloc_tile : {RIGHT}
%a = pto.alloc_tile : {ACC}
pto.tload ins(%x : {MATRIX_PART}) outs(%m : {MAT})
pto.tmov ins(%m : {MAT}) outs(%l : {LEFT})
pto.tmov ins(%m : {MAT}) outs(%r : {RIGHT})
pto.tmatmul ins(%l, %r : {LEFT}, {RIGHT}) outs(%a : {ACC})
pto.tstore ins(%a : {ACC}) outs(%y : {MATRIX_PART})
return
}}
"""


@pytest.mark.parametrize("target", [A3, A5], ids=["a2a3", "a5"])
def test_operations_of_the_matrix_unit_take_part_by_their_pipes(target, tmp_path) -> None:
    """MTE2 loads, MTE1 moves to the operands, M multiplies, FIX stores out of the accumulator."""
    assert [each.text for each in inserted(PRODUCT, target).inserts] == [
        *(
            f"pto.{name}[<PIPE_{one}>, <PIPE_{other}>, <EVENT_ID0>]"
            for one, other in (("MTE2", "MTE1"), ("MTE1", "M"), ("M", "FIX"))
            for name in ("set_flag", "wait_flag")
        ),
        "pto.barrier <PIPE_ALL>",
    ]
    path = tmp_path / "k.pto"
    path.write_text(PRODUCT)
    cycles = {engine: run(path, target.name, timing_only=True, engine=engine).cycles for engine in ("fast", "event")}
    assert cycles["fast"] == cycles["event"] > 0


# ----------------------------------------------------------------------------- `castsim run --sync` and `--show-sync`
FLAGGED = before("return", "pto.barrier <PIPE_ALL>")


def shown(capsys, *argv: str) -> list[str]:
    assert main(["run", *argv, "--timing-only"]) == 0
    return capsys.readouterr().out.splitlines()


def marked(lines: list[str]) -> list[str]:
    return [line.split("+", 1)[1].strip() for line in lines if line.startswith("    + ")]


def test_the_listing_is_the_program_with_marked_lines(tmp_path, capsys):
    lines = shown(capsys, written(tmp_path), "--show-sync")
    assert marked(lines) == [
        "pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]",
        "pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]",
        "pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]",
        "pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]",
        "pto.barrier <PIPE_ALL>",
    ]
    at = {name: next(k for k, line in enumerate(lines) if f"pto.{name} ins" in line) for name in ("tload", "tcvt")}
    assert lines[at["tload"] + 1].lstrip().startswith("+")
    assert lines[at["tcvt"] - 1].lstrip().startswith("+")
    assert any("return" in line and lines[k - 1].endswith("pto.barrier <PIPE_ALL>") for k, line in enumerate(lines))


def test_json_names_every_inserted_instruction(tmp_path, capsys):
    assert main(["run", written(tmp_path, LOOP), "--timing-only", "--json", "-", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)["synchronisation"]
    assert found["by"] == "insertion"
    assert {"line", "place", "text", "executions"} == set(found["inserted"][0])
    around = [each for each in found["inserted"] if "PIPE_V>, <PIPE_MTE2" in each["text"]]
    assert [(each["place"], each["executions"]) for each in around] == [
        ("before", 1), ("before", 4), ("after", 4), ("end", 1),
    ]  # fmt: skip


def test_interlock_is_the_ideal_order(tmp_path, capsys):
    ideal = run(written(tmp_path, LOOP), timing_only=True, sync="interlock")
    real = run(written(tmp_path, LOOP), timing_only=True)
    assert ideal.loaded.tree.interlocked
    assert not real.loaded.tree.interlocked
    assert ideal.cycles <= real.cycles
    assert Cause.FLAG_WAIT not in ideal.pipes["V"].causes
    assert real.pipes["V"].causes[Cause.FLAG_WAIT] > 0
    lines = shown(capsys, written(tmp_path, LOOP), "--sync", "interlock", "--show-sync")
    assert "synchronisation: nothing inserted, the instructions wait for each other's bytes" in lines


def test_the_cast_itself_takes_what_it_took(tmp_path):
    """The cycles of a 4 x 64 cast (docs/reference/a2a3.md section 6.2) hold whoever synchronises.

    They begin with the write of CTRL and end with the results of the last of four repeats.
    """
    facts = derivation_facts("a2a3")
    taken = facts["control"] + facts["issue"] + facts["vconv_f322f16"](1) + 3 + facts["drain"]
    for sync in ("insert", "interlock"):
        result = run(written(tmp_path), timing_only=True, sync=sync)
        tree = result.loaded.tree
        (cast,) = [e for e in result.timing.executions if tree.instructions[e.instruction].text.startswith("tcvt")]
        assert cast.end - cast.start == taken


def test_flags_of_the_program_are_left_alone(tmp_path, capsys):
    path = written(tmp_path, changed("    pto.tcvt", "    pto.barrier <PIPE_ALL>\n    pto.tcvt", FLAGGED))
    text = before("pto.tstore", "pto.barrier <PIPE_ALL>", (tmp_path / "kernel.pto").read_text())
    lines = shown(capsys, written(tmp_path, text), "--show-sync", "--sync", "program")
    assert "synchronisation: nothing inserted, the program has its own" in lines
    assert run(path, timing_only=True, races="ignore", sync="program").loaded.synchronised is None
    with_flag = before("return", "pto.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]", text)
    with_flag = before("pto.tload", "pto.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]", with_flag)
    assert run(written(tmp_path, with_flag, "f.pto"), timing_only=True).loaded.synchronised is None


def test_barriers_of_the_program_are_no_flags(tmp_path, capsys):
    """The tool does not see them: it inserts what it would without."""
    assert marked(shown(capsys, written(tmp_path, FLAGGED), "--show-sync")) == marked(
        shown(capsys, written(tmp_path), "--show-sync")
    )


def test_a_barrier_before_every_operation(tmp_path, capsys):
    lines = shown(capsys, written(tmp_path, LOOP), "--show-sync", "--sync", "barriers")
    assert marked(lines) == [
        "pto.barrier <PIPE_ALL>  // 4 times", "pto.barrier <PIPE_ALL>  // 4 times", "pto.barrier <PIPE_ALL>",
        "pto.barrier <PIPE_ALL>",
    ]  # fmt: skip


def test_own_flags_and_interlock_exclude_each_other(tmp_path, capsys):
    assert main(["run", written(tmp_path, FLAGGED), "--timing-only", "--sync", "interlock"]) == 2
    assert "@narrow already has flags or barriers" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------ `castsim run --emit-sync`
SAMPLES = [path for path in sorted(PROGRAMS.rglob("*.pto")) if "micro" not in path.parts]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_saved_program_runs_alike_and_needs_no_insertion(path: Path, tmp_path: Path) -> None:
    args, saved = scalars(path), tmp_path / "saved.pto"
    argv = ["run", str(path), "--emit-sync", str(saved), "--quiet", *argument_words(path)]
    original = run(path, args=args, timing_only=True)
    if original.loaded.synchronised is None:
        assert main([*argv, "--timing-only"]) == 2
        assert not saved.exists()
        return
    assert main([*argv, "--timing-only"]) == 0
    again = run(saved, args=args, timing_only=True)
    assert again.loaded.synchronised is None
    assert (again.cycles, again.pipes) == (original.cycles, original.pipes)
    # Every line of the program is still there; what stands between them are flags and barriers.
    added = [line[2:] for line in ndiff(path.read_text().split("\n"), saved.read_text().split("\n")) if line[0] in "+-"]
    assert added and all(re.match(r" *pto\.(set_flag|wait_flag|barrier)\b", line) for line in added)
    drawn = {name: "random:3" for name, use in original.loaded.arguments.items() if use.needs_input}
    before_, after = (run(each, inputs=drawn, args=args).outputs for each in (path, saved))
    assert {name: codes.tobytes() for name, codes in before_.items()} == {n: c.tobytes() for n, c in after.items()}


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", range(200, 212))
def test_a_saved_random_program_runs_alike(seed: int, shared: bool, tmp_path: Path) -> None:
    """Where operations share a line, the function is printed anew."""
    text = Maker(seed, SMALL).text()
    path, saved = tmp_path / "k.pto", tmp_path / "saved.pto"
    path.write_text(text.replace("\npto.t", "  pto.t", 1) if shared else text)
    for given in RUNS[2:4]:
        args = dict(zip("nmcd", given, strict=True))
        original = run(path, "a2a3", args=args, timing_only=True)
        saved.write_text(with_inserted_flags(original.loaded))
        again = run(saved, "a2a3", args=args, timing_only=True, sync="program")
        assert again.loaded.synchronised is None
        assert again.cycles == original.cycles


def test_what_cannot_be_saved(tmp_path, capsys):
    path, saved = written(tmp_path, FLAGGED), str(tmp_path / "saved.pto")
    for argv, code, message in (
        ((path, "--emit-sync", saved, "--sync", "program", "--races", "ignore"), 2, "the program has its own"),
        ((path, "--emit-sync", saved, "--sync", "interlock"), 2, "already has flags or barriers"),
        ((path, "--emit-sync", path), 2, "name the same file"),
        ((path, "--emit-sync", saved, "--all-entries"), 2, "--emit-sync saves one function"),
        ((path, "--emit-sync", str(tmp_path / "no" / "saved.pto")), 2, "no such folder"),
        (
            (str(PROGRAMS / "tpc_f32_f8_143_gaudi2.tpc"), "--emit-sync", saved),
            2,
            "--emit-sync applies only to tile programs",
        ),
        ((str(next(PROGRAMS.rglob("micro/*.pto"))), "--emit-sync", saved), 2, "no flags were inserted"),
    ):
        text = Path(path).read_text()
        assert main(["run", *argv, "--timing-only"]) == code
        assert message in capsys.readouterr().err
        assert Path(path).read_text() == text
        assert not Path(saved).exists()


@pytest.mark.parametrize(("option", "value"), [("--sync", "none"), ("--races", "maybe")])
def test_unknown_words_are_refused_with_the_known_ones(option, value, tmp_path, capsys):
    assert main(["run", written(tmp_path), "--timing-only", option, value]) == 2
    assert "legal: " in capsys.readouterr().err
    with pytest.raises(ReadError):
        run(written(tmp_path), timing_only=True, **{option[2:]: value})


# -------- the worked examples of docs/reference/pto.md section 5, line by line: flags that depend on the text alone
WORKED = {
    "a straight line": (
        "tload p x\ntcvt x y\ntstore y h",
        """tload; + set MTE2->V #0
        + wait MTE2->V #0; tcvt; + set V->MTE3 #0
        + wait V->MTE3 #0; tstore
        + barrier ALL""",
    ),
    "a chain of vector operations": (
        "tload p x\ntmuls x x\ntadds x z\ntrowmax z t r\ntrowexpandsub z r x\ntstore x q",
        """tload; + set MTE2->V #0
        + wait MTE2->V #0; tmuls
        tadds
        trowmax
        + barrier V; trowexpandsub; + set V->MTE3 #0
        + wait V->MTE3 #0; tstore
        + barrier ALL""",
    ),
    "a loop, one buffer each": (
        "for 0 {\ntload p x\ntcvt x y\ntstore y h\n}",
        """+ set V->MTE2 #0; + set MTE3->V #0; for
        + wait V->MTE2 #0; tload; + set MTE2->V #0
        + wait MTE2->V #0; + wait MTE3->V #0; tcvt; + set V->MTE2 #0; + set V->MTE3 #0
        + wait V->MTE3 #0; tstore; + set MTE3->V #0
        end
        + wait V->MTE2 #0; + wait MTE3->V #0; + barrier ALL""",
    ),
    "a load before a loop": (
        "tload p w\nfor 0 {\ntload q x\ntmul x w z\ntstore z s\n}",
        """+ set V->MTE2 #0; + set MTE3->V #0; tload
        for
        + wait V->MTE2 #0; tload; + set MTE2->V #0
        + wait MTE2->V #0; + wait MTE3->V #0; tmul; + set V->MTE2 #0; + set V->MTE3 #0
        + wait V->MTE3 #0; tstore; + set MTE3->V #0
        end
        + wait V->MTE2 #0; + wait MTE3->V #0; + barrier ALL""",
    ),
    "a branch, and a use after it": (
        "tload p x\ntmuls x z\nif {\ntadds z z\ntstore z s\n}\ntstore z q",
        """tload; + set MTE2->V #0
        + wait MTE2->V #0; tmuls; + set V->MTE3 #1
        if
        tadds; + set V->MTE3 #0
        + wait V->MTE3 #0; tstore
        end
        + wait V->MTE3 #1; tstore
        + barrier ALL""",
    ),
    "a branch in a loop": (
        "for 0 {\ntload p x\nif {\ntmuls x x\n}\ntstore x q\n}",
        """+ set MTE3->MTE2 #0; for
        + wait MTE3->MTE2 #0; tload; + set MTE2->MTE3 #0; + set MTE2->V #0
        + wait MTE2->V #0; if
        tmuls
        end; + set V->MTE3 #0
        + wait V->MTE3 #0; + wait MTE2->MTE3 #0; tstore; + set MTE3->MTE2 #0
        end
        + wait MTE3->MTE2 #0; + barrier ALL""",
    ),
    "a sum in a loop, stored after it": (
        "texpands z\nfor 0 {\ntload p x\ntadd z x z\n}\ntstore z q",
        """+ set V->MTE2 #0; texpands
        for
        + wait V->MTE2 #0; tload; + set MTE2->V #0
        + wait MTE2->V #0; tadd; + set V->MTE2 #0
        end; + set V->MTE3 #0
        + wait V->MTE3 #0; tstore
        + wait V->MTE2 #0; + barrier ALL""",
    ),
    "a loop in a loop": (
        "for 0 {\ntload p w\nfor 0 {\ntload q x\ntmul x w z\ntstore z s\n}\n}",
        """+ set V->MTE2 #0; + set V->MTE2 #1; + set MTE3->V #0; for
        + wait V->MTE2 #0; tload
        for
        + wait V->MTE2 #1; tload; + set MTE2->V #0
        + wait MTE2->V #0; + wait MTE3->V #0; tmul; + set V->MTE3 #0; + set V->MTE2 #1
        + wait V->MTE3 #0; tstore; + set MTE3->V #0
        end; + set V->MTE2 #0
        end
        + wait V->MTE2 #0; + wait V->MTE2 #1; + wait MTE3->V #0; + barrier ALL""",
    ),
    "a load before a loop that may not run": (
        "tload p x\nfor 1 {\nif {\ntmov x a\n}\n}\ntmov x b",
        """tload; + set MTE2->V #0
        + wait MTE2->V #0; for
        if
        + barrier V; tmov
        end
        end
        tmov
        + barrier ALL""",
    ),
}
"""The body of a program, and its statements in order, each with the flags that stand before and behind it."""


@pytest.mark.parametrize("target", [A3, A5], ids=["a2a3", "a5"])
@pytest.mark.parametrize("name", WORKED)
def test_the_worked_examples(name: str, target) -> None:
    body, expected = WORKED[name]
    lines = re.split(r"(?:;|\n) *", expected)
    assert listing(body, target) == [line for line in lines if target is A3 or line != "+ barrier V"]


@pytest.mark.parametrize("target", [A3, A5], ids=["a2a3", "a5"])
def test_scalars_from_memory_and_a_gather(target) -> None:
    """Operations of the scalar unit by their buffers; a program with a gather keeps all its flags."""
    x, i, z = (OperandBytes("vec", n, ((n * 8192, n * 8192 + 8192),), 8192) for n in range(3))
    p, n = OperandBytes("gm", "p"), OperandBytes("gm", "n")
    found = ElementListing()
    for pipe, reads, writes in (
        ("MTE2", [p], [x]), ("S", [n], []), ("S", [], [i]), ("V", [x, i], [z]), ("S", [z], []), ("S", [], [p]),
        ("MTE3", [z], [p]),
    ):  # fmt: skip
        found.operation(pipe, reads, writes, gathers=pipe == "V")
    made = plan(found, target)

    def texts(orders) -> list[str]:
        kinds = {"SetFlag": "set", "WaitFlag": "wait"}
        return [f"{kinds[type(o).__name__]} {o.src[5:]}->{o.dst[5:]} #{o.event}" for o in orders]

    assert made.start == ()
    assert [(texts(a), texts(b)) for a, b in zip(made.before, made.after, strict=True)] == [
        ([], ["set MTE2->V #0"]), ([], []), ([], ["set S->V #0"]),
        (["wait S->V #0", "wait MTE2->V #0"], ["set V->S #0"]), (["wait V->S #0"], []), ([], ["set S->MTE3 #0"]),
        (["wait S->MTE3 #0"], []),
    ]  # fmt: skip
