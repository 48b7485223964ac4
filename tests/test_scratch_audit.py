"""The scratch auditor against the published deviations of the sizing formulas, and against a wrong lowering."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from castsim.__main__ import main
from castsim.isa.errors import IllegalError
from castsim.machines.strided import audit as audit_module
from castsim.machines.strided import plan as plan_module
from castsim.machines.strided.audit import UNEXPLAINED, ScratchAuditor
from castsim.reports import scratch
from castsim.reports.scratch import shape_count, shapes, sweep
from castsim.targets import load_target

A2A3 = load_target("a2a3")


def blocks(size):
    return 32 * math.ceil(size / 32)


def published(pair, rows, cols, stride):
    """The formulas of the instruction page, typed anew."""
    if cols == 0:
        return 0
    lanes = min(cols, 64)
    if pair == ("f16", "i16"):
        return blocks(4 * lanes)
    if pair == ("f16", "i8"):
        return max(blocks(4 * lanes), 128 + blocks(2 * lanes))
    head = 4 * 64 * min(cols // 64, 255)
    tail = 32 * ((min(rows, 255) - 1) * stride // 8 + math.ceil(cols % 64 / 8)) if cols % 64 else 0
    return max(head, tail)


def touched(pair, rows, cols, stride):
    """Bytes behind the start of tmp that the sequences of docs/reference/a2a3.md section 3.4 touch, from its tables."""
    if not rows or not cols:
        return 0
    lanes = min(cols, 64)
    if pair == ("f16", "i16"):
        return 4 * lanes
    if pair == ("f16", "i8"):
        return max(4 * lanes, 128 + 2 * lanes)
    head = 256 * min(cols // 64, 255)
    tail = 32 * (stride % 65536 // 8) * (min(rows, 255) - 1) + 4 * (cols % 64) if cols % 64 else 0
    return max(head, tail)


PAIRS = [("f32", "i16"), ("f16", "i16"), ("f16", "i8")]


@pytest.mark.parametrize("pair", PAIRS, ids="->".join)
def test_audit_over_many_shapes(pair):
    auditor = ScratchAuditor(A2A3, *pair)
    step = 8 if pair[0] == "f32" else 16
    for rows in (0, 1, 2, 254, 255, 256, 600):
        for stride in (step, 64, 128, 256, 1024, 16384, 49152, 65536, 65536 + 64):
            for cols in {1, step - 1, step, 33, 63, 64, 65, 127, 128, 129, 200, 255 * 64, 255 * 64 + 1, 32640}:
                if cols > stride:
                    continue
                audit = auditor.audit(rows, cols, stride)
                assert audit.exact == touched(pair, rows, cols, stride), (rows, cols, stride)
                assert audit.in_blocks == blocks(audit.exact)
                assert audit.need.total == published(pair, rows, cols, stride), (rows, cols, stride)
                assert audit.explained
                assert audit.agrees == (audit.need.total == audit.in_blocks)


@pytest.mark.parametrize(
    ("pair", "shape", "formula", "exact", "reason"),
    [
        # The deviations of docs/reference/a2a3.md section 3.5, one by one.
        (("f32", "i16"), (1, 1, 8), 32, 4, "the last block is partly used"),
        (("f32", "i16"), (0, 64, 64), 256, 0, "no rows: nothing is issued"),
        (("f32", "i16"), (2, 1, 65536), 262176, 4, "the row stride is cut to 0 elements"),
        (("f16", "i16"), (0, 1, 16), 32, 0, "no rows: nothing is issued"),
        (("f16", "i16"), (3, 1, 16), 32, 4, "the last block is partly used"),
        (("f16", "i8"), (3, 1, 16), 160, 130, "the last block is partly used"),
        (("f16", "i8"), (0, 1, 16), 160, 0, "no rows: nothing is issued"),
    ],
)
def test_published_deviations(pair, shape, formula, exact, reason):
    audit = ScratchAuditor(A2A3, *pair).audit(*shape)
    assert (audit.need.total, audit.exact, audit.reasons) == (formula, exact, (reason,))


def test_sweep_counts_and_explains():
    found = sweep(ScratchAuditor(A2A3, "f32", "i16"), range(0, 301, 50), range(0, 129), range(8, 129, 8))
    assert found.shapes == 7 * sum(stride + 1 for stride in range(8, 129, 8))
    assert found.explained and found.smaller == 0
    assert set(found.reasons) == {"the last block is partly used", "no rows: nothing is issued"}
    assert found.equal + sum(found.reasons.values()) == found.shapes


@pytest.mark.parametrize("strides", [None, range(8, 65, 4), range(9, 10)])
def test_shapes_are_counted_without_being_made(strides):
    auditor = ScratchAuditor(A2A3, "f16", "i8")
    ranges = (range(0, 20, 3), range(0, 70, 7), strides)
    assert shape_count(auditor, *ranges) == len(list(shapes(auditor, *ranges)))


def test_a_large_sweep_says_how_large_it_is(monkeypatch, capsys):
    monkeypatch.setattr(scratch, "_MANY", 12)
    command = ["scratch", "f32", "i16", "--rows", "1:4", "--sweep", "--cols"]
    for cols, extra, expected in (("1:2", [], ""), ("1:3", [], "12 shapes to audit\n"), ("1:3", ["--quiet"], "")):
        assert main([*command, cols, *extra]) == 0
        assert capsys.readouterr().err == expected


def test_a_wrong_lowering_makes_the_audit_fail(monkeypatch, capsys):
    def wrong(target, plan, call, scratch):
        for operation in plan_module.emit_call(target, plan, call, scratch):
            if operation.__class__.__name__ == "StridedInstruction" and operation.destination.address == scratch:
                wide = dataclasses.replace(operation.destination, repeat_stride=operation.destination.repeat_stride + 1)
                yield dataclasses.replace(operation, destination=wide)
            else:
                yield operation

    monkeypatch.setattr(audit_module, "emit_call", wrong)
    audit = ScratchAuditor(A2A3, "f32", "i16").audit(4, 200, 256)
    assert audit.reasons == (UNEXPLAINED,) and not audit.explained
    assert main(["scratch", "f32", "i16", "--rows", "4", "--cols", "200", "--row-stride", "256", "--audit"]) == 1
    assert "disagree" in capsys.readouterr().out
    assert main(["scratch", "f32", "i16", "--rows", "4", "--cols", "200", "--row-stride", "256"]) == 0
    assert main(["scratch", "f32", "i16", "--rows", "1:4", "--cols", "100:200", "--row-stride", "256", "--sweep"]) == 1


def test_pairs_without_scratch_are_refused_with_those_that_use_it():
    with pytest.raises(IllegalError) as error:
        ScratchAuditor(A2A3, "f32", "i32")
    assert error.value.legal == ("f32 -> i16", "f16 -> i16", "f16 -> i8")


def test_json(capsys):
    assert main(["scratch", "f16", "i8", "--rows", "3", "--cols", "1", "--audit", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["formula_bytes"], found["touched_bytes"], found["touched_bytes_in_blocks"]) == (160, 130, 160)
    assert [term["bytes"] for term in found["terms"]] == [32, 160]


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("scratch f32 i16 --rows x --cols 1", 2, "--rows x: neither a number nor a range"),
        ("scratch f32 i16 --rows 5:1 --cols 1 --sweep", 2, "the range is empty"),
        ("scratch f32 i16 --rows 1:5 --cols 1", 2, "a range needs --sweep"),
        ("scratch f32 i16 --rows 99999999999999 --cols 1", 2, "no tile is that large"),
        ("scratch f32 i16 --rows 1 --cols 9 --row-stride 8", 2, "--row-stride 8 is less than --cols 9"),
        ("scratch f32 i99 --rows 1 --cols 1", 2, "unknown format 'i99'"),
        ("scratch f32 i16 --rows 1 --cols 1 --rounding up", 2, "unknown rounding mode 'up'"),
        ("scratch f32 i8 --rows 1 --cols 1", 1, "no cast f32 -> i8"),
        ("scratch f32 i32 --rows 1 --cols 1", 1, "uses no scratch"),
        ("scratch f32 i16 --rows 1 --cols 1 --target a5", 1, "use no scratch tile\n  help: --target a2a3"),
        ("scratch f32 i16 --rows 1:100000 --cols 1:100000 --sweep", 1, "10000000000 shapes: 100000 rows, 100000 col"),
        ("scratch f32 i16 --rows 1:1000001:1 --cols 1 --sweep", 2, "--rows 1:1000001:1: no tile"),
        ("scratch f32 i16 --rows 1 --cols 0:999999 --row-stride 8:1000000 --sweep", 1, "up to 1000000 shapes"),
    ],
)
def test_wrong_input(line, code, words, capsys):
    assert main(line.split()) == code
    assert words in capsys.readouterr().err
