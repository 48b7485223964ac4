"""`castsim diff` of programs and results, and lifted limits: runs on a description with those facts changed."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from dataclasses import replace
from math import exp
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from kit import fast_programs
from kit.command_output import Capture, answer_of, document_of, err_of, file_of, out_of
from kit.diff_mutations import MUTATIONS, Mutation
from kit.engine_outcome import outcome
from kit.engine_trees import a2a3, cast, lowered, program
from kit.paths import PROGRAMS
from kit.sample_arguments import scalars

import castsim
from castsim import run
from castsim.__main__ import main
from castsim.engines import simulate
from castsim.execution.pipe_operations import ScalarWork
from castsim.execution.timing import Timing
from castsim.execution.tree import Lowered
from castsim.isa.errors import TargetDataError
from castsim.reports.lifted_limits import LiftedLimit, limits_known, what_if
from castsim.reports.run_findings import Run
from castsim.running.program_loading import load
from castsim.running.program_runs import run_loaded
from castsim.targets.description import lifted, with_facts, with_options
from castsim.targets.loader import load_target
from castsim.tools.diff.command import speed_of
from castsim.tools.diff.differences import compared, difference, side_of
from castsim.tools.reference import schema as registry

SMALL = PROGRAMS / "f32_to_f16.pto"
GREATER = PROGRAMS / "tpc_f32_i16_quantise_greco.tpc"


def samples() -> list[Path]:
    """The programs that run as they are."""
    found = sorted(path for path in PROGRAMS.rglob("*") if path.suffix in (".pto", ".tpc"))
    return [path for path in found if path.parent.name != "sequential"]


def edited(folder: Path, program: Path, old: str, new: str) -> Path:
    """Write a program with one word changed."""
    text = program.read_text()
    assert old in text
    return file_of(folder / program.name, text.replace(old, new))


def told(words: list[object], capsys: Capture) -> tuple[int, dict]:
    """Exit code and document of a command; the document is what the schema says."""
    code, document = answer_of(capsys, "diff", *map(str, words))
    jsonschema.Draft202012Validator(registry.schema_of("diff")).validate(document)
    return code, document


@pytest.mark.parametrize("path", samples(), ids=lambda path: path.stem)
def test_a_program_does_not_differ_from_itself(path: Path) -> None:
    found = castsim.diff(path, path, timing_only=True, args=scalars_of(path))
    assert found.equal
    assert (found.lines, found.pipes, found.slowdown_percent) == ((), (), 0.0)


def scalars_of(path: Path) -> dict[str, int | float]:
    """The scalar arguments of the command that stands with a program, if one does."""
    has_one = path.with_suffix(".expected").exists() or "// castsim run" in path.read_text()
    try:
        return scalars(path) if has_one else {}
    except (ValueError, IndexError):  # a comment without a command
        return {}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name)
def test_an_edit_is_shown_where_it_was_made(mutation: Mutation, tmp_path: Path) -> None:
    text, shown = mutation.edited()
    before, after = PROGRAMS / mutation.program, tmp_path / Path(mutation.program).name
    after.write_text(text)
    found = castsim.diff(before, after, timing_only=True, args=mutation.arguments)
    assert [(each.change, each.line_a, each.line_b) for each in found.lines if each.change != "cycles"] == shown
    runs = [castsim.run(path, timing_only=True, args=mutation.arguments) for path in (before, after)]
    assert (found.cycles_a, found.cycles_b) == tuple(run.cycles for run in runs)
    assert found.equal == (runs[0].cycles == runs[1].cycles)


def doubled(folder: Path) -> Path:
    """Write the small program with its cast on line 15 done twice."""
    lines = SMALL.read_text().split("\n")
    lines.insert(15, lines[14])
    return file_of(folder / "after.pto", "\n".join(lines))


def test_cycles_of_lines_are_those_of_the_instructions(tmp_path: Path, capsys: Capture) -> None:
    after = doubled(tmp_path)
    sums: list[dict[int, int]] = []
    for path in (SMALL, after):
        sums.append({})
        for each in document_of(capsys, "run", str(path), "--timing-only")["instructions"]:
            spent = each["end_cycle"] - each["start_cycle"]
            sums[-1][each["line"]] = sums[-1].get(each["line"], 0) + spent
    _, document = told([SMALL, after, "--timing-only"], capsys)
    shown = {(each["line_a"], each["line_b"]): (each["cycles_a"], each["cycles_b"]) for each in document["lines"]}
    assert shown[None, 16] == (None, sums[1][16])
    for (a, b), cycles in shown.items():
        assert cycles == (sums[0].get(a), sums[1].get(b))
    for line in sums[0]:
        other = line if line < 16 else line + 1
        assert ((line, other) in shown) == (sums[0][line] != sums[1][other])


def test_pipes_are_those_of_the_runs(capsys: Capture) -> None:
    words = [GREATER, "--timing-only", "--option-b", "global_latency_cycles=100"]
    code, document = told(words, capsys)
    run = ("run", str(GREATER), "--timing-only")
    both = [(), ("--option", "global_latency_cycles=100")]
    pipes = [document_of(capsys, *run, *options)["pipes"] for options in both]
    assert code == 1
    assert {each["pipe"]: (each["causes_a"], each["causes_b"]) for each in document["pipes"]} == {
        name: (pipes[0][name]["causes"], pipes[1][name]["causes"])
        for name in pipes[0]
        if pipes[0][name]["causes"] != pipes[1][name]["causes"]
    }


def test_elements_that_differ_are_those_that_numpy_finds(tmp_path: Path, capsys: Capture) -> None:
    after = edited(tmp_path, SMALL, "RINT", "TRUNC")
    code, document = told([SMALL, after, "--in", "src=random:3"], capsys)
    a, b = (castsim.run(path, inputs={"src": "random:3"}).outputs["dst"] for path in (SMALL, after))
    where = np.argwhere(a.view("u2") != b.view("u2"))
    (output,) = document["outputs"]
    assert code == 1
    assert (output["equal"], output["differing"]) == (False, len(where))
    assert [each["index"] for each in output["first"]] == where[:10].tolist()
    for each in output["first"]:
        index = tuple(each["index"])
        assert (int(each["bits_a"], 16), int(each["bits_b"], 16)) == (a.view("u2")[index], b.view("u2")[index])
        assert (each["value_a"], each["value_b"]) == (float(a[index]), float(b[index]))


def test_nan_is_compared_by_its_bits(tmp_path: Path, capsys: Capture) -> None:
    x = np.full((4, 64), np.nan, np.float32)
    np.save(tmp_path / "x.npy", x)
    code, document = told([SMALL, SMALL, "--in", f"src={tmp_path}/x.npy"], capsys)
    assert (code, document["equal"], document["outputs"][0]["differing"]) == (0, True, 0)


def test_outputs_match_under_other_names(tmp_path: Path, capsys: Capture) -> None:
    after = edited(tmp_path, SMALL, "%dst", "%out")
    code, document = told([SMALL, after, "--in", "src=random:0"], capsys)
    (output,) = document["outputs"]
    assert (code, output["name"], output["name_b"], output["equal"]) == (0, "dst", "out", True)
    assert {each["change"] for each in document["lines"]} == {"renamed"}


def test_an_input_goes_to_the_side_that_has_it(tmp_path: Path, capsys: Capture) -> None:
    after = edited(tmp_path, SMALL, "%src", "%x")
    code, _ = told([SMALL, after, "--in", "src=random:0", "--in", "x=random:0"], capsys)
    assert code == 0
    assert "'zz'" in err_of(capsys, ["diff", str(SMALL), str(after), "--in", "src=random:0", "--in", "zz=random:0"])


def test_formats_and_shapes_that_differ(tmp_path: Path, capsys: Capture) -> None:
    after = edited(tmp_path, SMALL, "f16", "bf16")
    code, document = told([SMALL, after, "--in", "src=random:0"], capsys)
    (output,) = document["outputs"]
    assert (code, output["equal"], output["format_a"], output["format_b"]) == (1, False, "f16", "bf16")
    first = output["first"][0]
    both = [castsim.run(path, inputs={"src": "random:0"}).outputs["dst"] for path in (SMALL, after)]
    assert [first["value_a"], first["value_b"]] == [float(each[tuple(first["index"])]) for each in both]
    one = tmp_path / "shape.pto"
    one.write_text(
        SMALL.read_text().replace("4x64", "8x64").replace("constant 4 :", "constant 8 :").replace("=4", "=8")
    )
    code, document = told([SMALL, one, "--in", "src=random:0"], capsys)
    (output,) = document["outputs"]
    assert (code, output["differing"], output["shape_a"], output["shape_b"]) == (1, None, [4, 64], [8, 64])


def test_a_slowdown_is_measured_exactly() -> None:
    runs = [castsim.run(GREATER, timing_only=True, target=target).cycles for target in (load_target("greco"), slower())]
    percent = 100 * (runs[1] - runs[0]) / runs[0]  # no whole number, so that no float is on the edge
    assert percent % 1
    words = [str(GREATER), "--timing-only", "--option-b", "global_latency_cycles=100", "--quiet", "--max-slowdown"]
    below, above = f"{percent - 1e-6:.7f}", f"{percent + 1e-6:.7f}"
    assert [main(["diff", *words, limit]) for limit in (below, above, "0", "1e9", "99999")] == [1, 0, 1, 2, 0]


def slower() -> castsim.Target:
    return with_options(load_target("greco"), {"global_latency_cycles": 100})


def test_a_faster_side_is_allowed_and_other_outputs_are_not(tmp_path: Path) -> None:
    latencies = ["--option", "global_latency_cycles=100", "--option-b", "global_latency_cycles=0"]
    words = ["--timing-only", *latencies, "--quiet"]
    assert main(["diff", str(GREATER), *words]) == 1
    assert main(["diff", str(GREATER), *words, "--max-slowdown", "0"]) == 0
    after = edited(tmp_path, SMALL, "RINT", "TRUNC")
    assert main(["diff", str(SMALL), str(after), "--in", "src=random:0", "--max-slowdown", "100", "--quiet"]) == 1


def test_the_bits_of_an_expanded_program_are_those_of_the_program(tmp_path: Path, capsys: Capture) -> None:
    program = PROGRAMS / "a5_f32_to_e4m3fn_padded.pto"
    text = out_of(capsys, ["expand", str(program)])
    (tmp_path / "same.pto").write_text(text)
    code, document = told([program, tmp_path / "same.pto", "--in", "src=random:1"], capsys)
    (output,) = document["outputs"]
    assert (code, output["equal"], output["differing"]) == (0, True, 0)


def test_another_shape_of_the_same_elements_is_a_remark(tmp_path: Path, capsys: Capture) -> None:
    a = castsim.run(SMALL, inputs={"src": np.arange(256, dtype=np.float32).reshape(4, 64)})
    (before,) = side_of(a, "", values=True).outputs
    for shape, other, equal in (((256,), 0, True), ((2, 128), 1, False)):
        codes = before.codes.reshape(shape) ^ other
        (found,) = compared([before], [replace(before, shape=shape, codes=codes)])
        assert (found.equal, found.differing) == (equal, 0 if equal else 256)
    (found,) = compared([before], [replace(before, shape=(255,), codes=before.codes.ravel()[:255])])
    assert (found.equal, found.differing) == (False, None)


def test_speed_is_a_ratio_and_a_share_of_cycles() -> None:
    """9979 / 4724 = 2.112, 1 - 4724 / 9979 = 52.66 %."""
    side = side_of(castsim.run(GREATER, timing_only=True), "", values=False)
    made = [replace(side, cycles=cycles) for cycles in (9979, 4724)]
    assert speed_of(difference(*made)) == "52.7 % fewer cycles, 2.1x faster"
    assert speed_of(difference(*reversed(made))) == "111.2 % more cycles, 2.1x slower"
    assert speed_of(difference(made[0], replace(side, cycles=9978))) == "0.01 % fewer cycles"
    assert speed_of(difference(made[0], made[0])) == ""


def test_flags_are_one_line_and_the_largest_effect_comes_first(capsys: Capture) -> None:
    words = [str(PROGRAMS / name) for name in ("f32_to_f16_pipelined.pto", "f32_to_f16.pto")]
    shown = out_of(capsys, ["diff", *words, "--timing-only"], 1).partition("lines that differ")[2]
    found = [int(number.replace(",", "")) for number in re.findall(r"removed +([\d,]+) pipe cycles? in A", shown)]
    assert found == sorted(found, reverse=True)
    assert "set_flag" not in shown and "wait_flag" not in shown
    assert re.search(r"flags, barriers and waits: \d+ lines", shown)


MICRO = PROGRAMS / "micro" / "f32_to_f16_parts.pto"


def recorded(folder: Path, name: str, program: Path, *words: str) -> Path:
    """Run a program, and return the file of its JSON."""
    file = folder / f"{name}.json"
    assert main(["run", str(program), *words, "--quiet", "--json", str(file)]) == 0
    return file


@pytest.fixture
def truncated(tmp_path: Path) -> Path:
    """The small program with another rounding mode."""
    return file_of(tmp_path / "truncated.pto", SMALL.read_text().replace("RINT", "TRUNC"))


def test_results_compare_as_their_programs_do(truncated: Path, tmp_path: Path, capsys: Capture) -> None:
    words = ["--in", "src=random:0"]
    a = recorded(tmp_path, "a", SMALL, *words, "--out", str(tmp_path / "a"))
    b = recorded(tmp_path, "b", truncated, *words, "--out", str(tmp_path / "b"))
    _, direct = told([SMALL, truncated, *words], capsys)
    for sides in ([a, b], [a, truncated, *words], [SMALL, b, *words]):
        code, found = told(sides, capsys)
        assert code == 1
        assert [found[key] for key in ("cycles_a", "cycles_b", "outputs", "pipes")] == [
            direct[key] for key in ("cycles_a", "cycles_b", "outputs", "pipes")
        ]
    assert told([a, SMALL, *words], capsys)[0] == 0


def test_without_files_digests_tell(truncated: Path, tmp_path: Path, capsys: Capture) -> None:
    a = recorded(tmp_path, "a", SMALL, "--in", "src=random:0")
    b = recorded(tmp_path, "b", truncated, "--in", "src=random:0", "--out", str(tmp_path / "b"))
    assert told([a, a], capsys)[0] == 0
    code, found = told([a, b], capsys)
    (output,) = found["outputs"]
    assert (code, output["equal"], output["differing"], output["first"]) == (1, False, None, [])
    np.save(tmp_path / "b" / "dst.npy", np.zeros((4, 64), np.float16))  # written over since: not what the run gave
    assert told([b, b], capsys)[1]["outputs"][0]["equal"]
    assert told([b, truncated, "--in", "src=random:0"], capsys)[0] == 0


def test_lines_of_results_match_by_instruction(tmp_path: Path, capsys: Capture) -> None:
    after = doubled(tmp_path)
    files = [recorded(tmp_path, path.stem, path, "--timing-only") for path in (SMALL, after)]
    for sides in (files, [files[0], after, "--timing-only"]):
        _, found = told([*sides], capsys)
        shown = [
            (each["change"], each["line_a"], each["line_b"]) for each in found["lines"] if each["change"] != "cycles"
        ]
        assert shown == [("added", None, 16)]
        assert [each["text_b"] for each in found["lines"] if each["change"] == "added"] == ["tcvt"]


def test_results_in_python() -> None:
    runs = [castsim.run(SMALL, inputs={"src": f"random:{seed}"}) for seed in (0, 0, 1)]
    assert castsim.diff(runs[0], runs[1]).equal
    found = castsim.diff(runs[0], runs[2])
    different = int((runs[0].outputs["dst"] != runs[2].outputs["dst"]).sum())
    assert (found.cycles_a == found.cycles_b, found.outputs[0].differing) == (True, different)
    spans = [(each.line, each.start, each.end) for each in found.a.spans()]
    timing = runs[0].timing
    assert set(spans) <= {
        (runs[0].loaded.tree.instructions[one.instruction].span.line, one.start, one.end) for one in timing.executions
    }
    assert [line for line, _, _ in spans] == [14, 15, 16]  # tload, tcvt, tstore


def test_standard_input_is_a_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    for text in (SMALL.read_bytes(), recorded(tmp_path, "a", SMALL, "--timing-only").read_bytes()):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        assert told(["-", SMALL, "--timing-only"], capsys)[0] == 0


def changed(file: Path, **values: object) -> Path:
    """Write a result with other values for some keys."""
    found = json.loads(file.read_text()) | values
    other = file.with_name("changed.json")
    other.write_text(json.dumps({key: value for key, value in found.items() if value is not ...}))
    return other


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"schema_version": Run.VERSION - 1}, f"has schema_version {Run.VERSION - 1}; this castsim"),
        ({"schema_version": "2"}, 'has schema_version "2"'),
        ({"schema_version": ...}, "has schema_version null"),
        ({"instructions": ...}, "not what `castsim run --json` writes"),
        ({"total_cycles": "many"}, "total_cycles: Input should be a valid integer"),
        ({"pipes": {"V": {"causes": {"sleep": 1}}}}, "unknown cause of cycles 'sleep'"),
        ({"outputs": [{"name": "y"}]}, "outputs.0.file: Field required"),
        ({"traceEvents": []}, "is a trace"),
        ({"errors": []}, "is a run that failed"),
        ({"total_cycles": None}, "has no cycles"),
    ],
)
def test_another_document_is_refused(values: dict, message: str, tmp_path: Path, capsys: Capture) -> None:
    file = recorded(tmp_path, "a", SMALL, "--timing-only")
    other = changed(file, **values)
    for sides in ([file, other], [other, file]):
        assert message in err_of(capsys, ["diff", *map(str, sides)])


def test_what_is_no_json_has_a_place(tmp_path: Path, capsys: Capture) -> None:
    file = file_of(tmp_path / "bad.json", '{"schema_version": 2,\n "program" 3}')
    assert err_of(capsys, ["diff", str(file), str(SMALL), "--timing-only"]).startswith(f"error: {file}:2:12: not JSON:")
    for text in (b"[" * 100_000, b"[]", b"\xff", b"", b"1" * 5000):
        file.write_bytes(text)
        assert "internal error" not in err_of(capsys, ["diff", str(file), str(SMALL), "--timing-only"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("{small}", "the second program is missing"),
        ("{small} {small}", "no input was given (side A)"),
        ("{small} {small} --in src=random:0 --target-b goya", "(side B)"),
        ("{small} {greater} --timing-only --option native_off_infinity=clamp", None),
        ("{small} nosuch.pto --timing-only", "No such file"),
        ("{small} {racing} --timing-only", "(side B)"),
        ("{small} {illegal} --timing-only", "(side B)"),
        ("{small} {small} --timing-only --max-cycles 5", "(side A)"),
        ("{small} {small} --timing-only --option zz=1", "no option 'zz'"),
        ("{small} {small} --timing-only --option-b zz=1", "no option 'zz'"),
        ("{timed} {small} --in src=random:0", "has no outputs"),
        ("{timed} {timed} --target a5", "both sides are results"),
        ("{small} {timed} --timing-only --target-b a5", "B is a result"),
        ("{timed} {small} --timing-only --option zz=1", "no option 'zz'"),
        ("casts.mlir {small} --timing-only", "is a graph"),
        ("{small} {small} --timing-only --max-slowdown nan", "expected a percentage"),
        ("{small} {small} --timing-only --max-slowdown -1", "expected a percentage"),
    ],
)
def test_what_cannot_be_compared_gives_two(words: str, message: str | None, tmp_path: Path, capsys: Capture) -> None:
    text = SMALL.read_text()
    (tmp_path / "illegal.pto").write_text(text.replace("f16", "e4m3fn"))
    (tmp_path / "racing.pto").write_text(MICRO.read_text().replace("pto.barrier #pto.pipe<PIPE_ALL>", ""))
    files = {
        "small": SMALL, "greater": GREATER, "timed": recorded(tmp_path, "timed", SMALL, "--timing-only"),
        "illegal": tmp_path / "illegal.pto", "racing": tmp_path / "racing.pto",
    }  # fmt: skip
    code = main(["diff", *words.format(**files).split(), "--quiet"])
    if message is None:
        assert code == 1  # options of one target are none of the other's
        return
    assert code == 2
    assert message in capsys.readouterr().err


def test_the_text_fits_a_narrow_terminal(truncated: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(PROGRAMS)
    assert main(["diff", SMALL.name, "f32_to_f16_pipelined.pto", "--timing-only"]) == 1
    lines = out_of(capsys, ["diff", SMALL.name, str(truncated), "--in", "src=random:0"], 1).splitlines()
    assert max(len(line) for line in lines if not line.startswith("B /")) <= 80
    assert not [line for line in lines if line.endswith(" ")]


CASES = (
    ("f32_to_f16_pipelined.pto", {}), ("bank_conflict.pto", {}), ("a5_f32_to_e4m3fn_padded.pto", {}),
    ("a5_f16_to_f32_one_trip.pto", {}), ("tpc_f32_i16_quantise_greco.tpc", {}),
    ("tpc_u8_f32_dequantise_greco.tpc", {}),
)  # fmt: skip


def written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, str) else str(value)


def keys(held: Any, path: list[str], done: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the paths that a path with stars means, by looking at the loaded description."""
    if not path:
        return [done]
    name, *rest = path
    names = list(held) if name == "*" else [name]
    return [
        found
        for each in names
        for found in keys(held[each] if isinstance(held, dict) else getattr(held, each), rest, (*done, each))
    ]


def held(target: Any, path: tuple[str, ...]) -> Any:
    """Return what a description has at a path."""
    for name in path:
        target = target[name] if isinstance(target, dict) else getattr(target, name)
    return target


def edited_file(folder: Path, base: str, facts: dict[str, object]) -> Path:
    """Write a description that says the same as `base` but for some facts."""
    target = load_target(base)
    lines = [f'base = "{base}"']
    tables = set()
    for path, value in facts.items():
        for found in keys(target, path.split(".")):
            lines.append(f"{'.'.join(found)} = {written(value)}")
            tables.add(found[: 1 + max(n for n in range(len(found)) if hasattr(held(target, found[:n]), "source"))])
    for table in {each[: len(each) - 1] for each in tables}:
        lines += [f'{".".join(table)}.source = "a what-if"', f'{".".join(table)}.status = "assumed"']
    file = folder / "edited.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


OF_ROWS = {"instant-results"}
"""Limits whose facts are rows of a CSV table, which a description can replace only as a whole."""


@pytest.mark.parametrize(("name", "options"), CASES)
def test_each_what_if_is_a_run_on_an_edited_description(name: str, options: dict[str, int], tmp_path: Path) -> None:
    program = PROGRAMS / name
    before = run(program, timing_only=True)
    target = before.loaded.target
    found = what_if(program)
    assert {gain.name for gain in found} == set(limits_known(target))
    found = tuple(gain for gain in found if gain.name in target.what_if)  # latencies are in the text of the program
    for gain in found:
        if gain.name in OF_ROWS:
            continue
        file = edited_file(tmp_path, target.name, dict(target.what_if[gain.name].set))
        after = run(program, target=file, timing_only=True).cycles
        assert run(program, target=file, timing_only=True, engine="event").cycles == after, gain.name
        assert gain.cycles == after, gain.name
        assert gain.gained == before.cycles - after
    assert [gain.gained for gain in found] == sorted((gain.gained for gain in found), reverse=True)


def test_the_padded_tile_cliff_explains_itself() -> None:
    """docs/reference/a5.md section 6.2 rule 7: padded 2D kernels of fp8 spend 39.5 cycles in each of 2n + 1
    serialising branches per row.
    """
    found = what_if(PROGRAMS / "a5_f32_to_e4m3fn_padded.pto")
    assert found[0].name == "free-branches"
    cycles = run(PROGRAMS / "a5_f32_to_e4m3fn_padded.pto", timing_only=True).cycles
    assert found[0].gained > cycles / 2


def test_latency_of_global_memory_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--timing-only", "--option", "global_latency_cycles=100", "--what-if", "all"]
    document = document_of(capsys, "run", str(PROGRAMS / "tpc_f32_i16_quantise_greco.tpc"), *options)
    first = document["what_if"][0]
    assert first["name"] == "instant-global-loads"
    assert first["gained_cycles"] == document["total_cycles"] - first["total_cycles"] > 0
    assert first["facts"] == {"options.global_latency_cycles.value": 0, "element_loads.latency_cycles": 0}


def test_text_ranks_gains(capsys: pytest.CaptureFixture[str]) -> None:
    program = str(PROGRAMS / "a5_f32_to_e4m3fn_padded.pto")
    text = out_of(capsys, ["run", program, "--timing-only", "--what-if", "free-branches,infinite-ports"])
    assert "what if a limit were lifted" in text
    assert "no gain: infinite-ports" in text


def test_unknown_limits_are_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    program = str(PROGRAMS / "f32_to_f16.pto")
    error = err_of(capsys, ["run", program, "--timing-only", "--what-if", "no-drain,no-gravity"])
    assert "no what-if 'no-gravity'" in error
    assert "no-drain" in error.split("legal:")[1]


def test_what_can_be_read_once_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "k.pto")
    for file in ("-", str(tmp_path / "k.pto")):
        assert "can be read only once" in err_of(capsys, ["run", file, "--timing-only", "--what-if", "all"])


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"timing.load.startup_cycle": 1}, "has no fact 'timing.load.startup_cycle'"),
        ({"timing.nothing.at.all": 1}, "has no fact"),
        ({"timing.vector.vbogus.head_cycles": 1}, "has no fact"),
        ({"timing.load.startup_cycles": -1}, "cannot be -1"),
        ({"timing.load.startup_cycles": "many"}, "cannot be many"),
    ],
)
def test_facts_that_cannot_be_edited(facts: dict[str, object], said: str) -> None:
    with pytest.raises(TargetDataError, match=said):
        with_facts(load_target("a2a3"), facts)


THOROUGH = "CASTSIM_THOROUGH" in os.environ
SLOW = ("rms_norm_a5", "softmax_prepare_a5")
"""Kernels whose limits take long to lift one by one."""
SAMPLES = sorted(
    path
    for path in (*PROGRAMS.rglob("*.pto"), *PROGRAMS.rglob("*.tpc"))
    if path.parent.name != "sequential"  # texts for `castsim schedule`
    and (THOROUGH or path.stem not in SLOW)
)
NAMED = re.compile(r"([a-z ]+) of (\w+) (\d+) -> (\d+)")
WAITS = {"empty", "operand wait", "flag wait", "barrier"}


def timing(path: Path, limit: str) -> Timing:
    loaded = load(path, None, None, scalars(path), prepare=lambda target: lifted(target, limit))
    return run_loaded(loaded, {}, timing_only=True).timing


def check_reason(path: Path, gain: LiftedLimit, before: Timing) -> None:
    """Each cause that the reason names has grown by what it says, in a run of its own."""
    after = timing(path, gain.name)
    named = NAMED.findall(gain.reason)
    assert named, (path.name, gain)
    for cause, pipe, old, new in named:
        assert int(old) == before.pipes[pipe].causes.get(cause.strip(), 0)
        assert int(new) == after.pipes[pipe].causes[cause.strip()] > int(old)
        assert cause.strip() not in WAITS, "waiting for another pipe does not explain a difference"


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_lifted_limit_that_costs_cycles_says_on_what_and_no_drain_costs_none(path: Path) -> None:
    before = run(path, args=scalars(path), timing_only=True).timing
    for gain in what_if(path, args=scalars(path)):
        assert gain.cycles == before.total - gain.gained
        assert bool(gain.reason) == (gain.gained < 0), gain
        assert gain.name != "no-drain" or gain.gained >= 0, "without a drain nothing is slower"
        if gain.reason:
            check_reason(path, gain, before)


def test_the_drain_alone_is_lifted() -> None:
    # Four calls of one repeat, which by the profile's curve takes -9.83 + 1 + 14.31 exp(-1 / 20.78), rounded, and the
    # pipe's tail of 12 cycles. Source and result lie in different banks, so that nothing takes their place.
    curve = round(-9.83 + 1 + 14.31 * exp(-1 / 20.78))
    path = PROGRAMS / "f32_to_f16.pto"
    before = run(path, timing_only=True)
    assert timing(path, "no-drain").total == before.cycles - (curve - 1 + 12)


@pytest.mark.parametrize("engine", ["event", "fast"])
@pytest.mark.parametrize(("tail", "gap"), [(5, 0), (5, 3)])
def test_a_pipe_that_drains_nothing_is_idle_no_sooner(engine: str, tail: int, gap: int) -> None:
    # Two instructions of two repeats, the second one `gap` cycles behind the end of the first one's last repeat.
    # By hand: issue 1, head 3, 2 x 2; then no head again, as gap < tail: 2 x 2 more, behind the gap.
    target = a2a3(vconv=(3, 2, tail), issue_cycles=1)
    first = 1 + 3 + 2 * 2
    tree = program(lowered(0, cast(2)), *spaces(first + gap - 2), lowered(1, cast(2, 0, 70_016)))
    end = first + gap + 2 * 2
    assert simulate(tree, target, engine=engine).total == end + tail
    assert simulate(tree, lifted(target, "no-drain"), engine=engine).total == end


def spaces(cycles: int) -> list[Lowered]:
    """Instructions that keep the scalar unit at work."""
    return [lowered(2, ScalarWork("loop")) for _ in range(cycles)]


@pytest.mark.parametrize(
    ("seeds", "small"), [(range(7 * 10**6, 7 * 10**6 + (400 if THOROUGH else 100)), True), (range(30), False)]
)
def test_engines_agree_without_a_drain(seeds: range, small: bool) -> None:
    for seed in seeds:
        tree, target = fast_programs.strided(seed, small=small)
        free = lifted(target, "no-drain")
        expected = outcome(tree, free, engine="event", max_cycles=10**6)
        assert outcome(tree, free, engine="fast", max_cycles=10**6) == expected, seed


def test_the_report_prints_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    program = str(PROGRAMS / "kernels" / "quantise_rows_i8_a2a3.pto")
    text = out_of(capsys, ["run", program, "--timing-only", "--what-if", "instant-loads"])
    reason = r"instant-loads costs \d+ cycles: bank conflict of V \d+ -> \d+[:,] "
    assert re.search(reason, " ".join(text.split()))
