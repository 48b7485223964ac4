"""`castsim run --sync` and `--show-sync`."""

from __future__ import annotations

import json

import pytest
from cli_programs import LOOP, NARROW, before, changed, written
from expected_reports import derivation_facts

from castsim import run
from castsim.__main__ import main
from castsim.execution.timing import Cause
from castsim.isa.errors import ReadError

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


def test_the_listed_program_says_itself_what_was_inserted(tmp_path, capsys):
    """Marked lines without their marks are a program that runs alike, cycle by cycle, and is taken at its word."""
    for text in (NARROW, LOOP):
        lines = shown(capsys, written(tmp_path, text), "--show-sync")
        found = iter(marked(lines))
        source = text.splitlines()
        first = next(k for k, line in enumerate(lines) if "func.func" in line)
        listed = [line for line in lines[first:] if line[:5].strip().isdigit() or line.startswith("    + ")]
        body = [next(found) if line.startswith("    + ") else source[int(line[:5]) - 1] for line in listed]
        start, end = int(listed[0][:5]) - 1, int(listed[-1][:5])
        own = written(tmp_path, "\n".join([*source[:start], *body, *source[end:]]), "own.pto")
        inserted = run(written(tmp_path, text), timing_only=True)
        explicit = run(own, timing_only=True)
        assert explicit.loaded.synchronised is None
        assert (explicit.cycles, explicit.pipes) == (inserted.cycles, inserted.pipes)


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


@pytest.mark.parametrize(("option", "value"), [("--sync", "none"), ("--races", "maybe")])
def test_unknown_words_are_refused_with_the_known_ones(option, value, tmp_path, capsys):
    assert main(["run", written(tmp_path), "--timing-only", option, value]) == 2
    assert "legal: " in capsys.readouterr().err
    with pytest.raises(ReadError):
        run(written(tmp_path), timing_only=True, **{option[2:]: value})
