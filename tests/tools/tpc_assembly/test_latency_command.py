"""`castsim latency`: its grammar, published examples, issue rules; latencies that bind a program of bundles.

Distances of all pairs are held against the published tables in tests/core/machines/vliw/test_tpc_latency.py.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from kit.command_output import Capture, answer_of, document_of, err_of, out_of, refusal
from kit.paths import PROGRAMS
from kit.tpc_machine import END, assembled, nops
from kit.tpc_text import GENERATIONS, target

from castsim import run
from castsim.isa.tpc.parser import parse
from castsim.isa.tpc.program import Slot
from castsim.machines.vliw.latency_bound import LatencyBound, SlottedInstruction, applies
from castsim.tools.tpc_lint.lint_checking import lint

FROM_GAUDI = GENERATIONS[1:]


def answer(capsys: Capture, generation: str, producer: str, consumer: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = document_of(capsys, "latency", producer, consumer, "--target", generation, code=code)["pairs"]
    return found


def typed(monkeypatch: pytest.MonkeyPatch, lines: Sequence[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode()), encoding="utf-8"))


def answers(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, generation: str, lines: Sequence[str]
) -> tuple[int, list[Any]]:
    typed(monkeypatch, lines)
    code, document = answer_of(capsys, "latency", "-", "--target", generation)
    return code, document["pairs"]


# docs/reference/tpc.md section 6.1, and the published sheet's own examples: bare text, what decides, the distance.
@pytest.mark.parametrize(
    ("generations", "producer", "consumer", "register", "operand", "distance"),
    [
        (("gaudib", "greco", "gaudi2"), "add.f16 V10, V2, V3", "mul.f16 V4, V10, V5", "V10", "src_a", 6),
        (("gaudib", "greco", "gaudi2"), "add.f16 V10, V2, V3", "add.f16 V4, V10, V5", "V10", "src_a", 4),
        (("gaudib", "greco", "gaudi2"), "mac.f16 V10, V2, V3", "sub.f16 V4, V10, V5", "V10", "src_a", 4),
        (("gaudi2",), "add.f8_143 V10, V2, V3", "mul.f8_143 V4, V10, V5", "V10", "src_a", 6),
        (("gaudi2",), "add.f32 x2 D10, D2, V4, V5", "sub.f32 x2 D12, D10, V4, V5", "V10", "src_a", 4),
        (GENERATIONS, "add.i32 S1, S2, S3", "st_l 0x4, S1", "S1", "src_c", 7),
        (GENERATIONS, "mov.i32 S1, 0x4", "st_g AD1, S1", "S1", "src_c", 7),
        (FROM_GAUDI, "mac.bf16 acc_fp32 D6, V1, V2", "mac.bf16 acc_fp32 D6, V1, V2", "V6", "src_c", 4),
        (FROM_GAUDI, "mac.f32 V6, V1, V2", "mac.bf16 acc_fp32 D6, V1, V2", "V6", "src_c", 6),
        # The second register of a pair; two operands that read it, of which a scalar enters the VPU late.
        (FROM_GAUDI, "mul.i16 D4, V1, V2", "add.i32 V8, V9, V5", "V5", "src_b", 4),
        (GENERATIONS, "mov.i32 S1, 0x4", "add.i32 S2, S1, S1", "S1", "src_a", 4),
        # A look-up comes later than its stage.
        (FROM_GAUDI, "lookup_2c BV32 D4, V1, 0x100", "mac.f32 V8, V5, V9", "V5", "src_a", 5),
        (("gaudi2",), "lookup_2c BV16 x2 D4, V1, 0x100", "mac.bf16 V8, V5, V9", "V5", "src_a", 4),
        (GENERATIONS, "mac.i16 D4, V1, V2", "mac.i16 D4, V1, V2", "V4", "src_c", 4),
        # An integer accumulator written late in its own slot arrives one sooner than a factor; a float one later.
        (("gaudi2",), "shuffle.i32 V4, V1, V2", "mac.i16 D4, V1, V2", "V4", "src_c", 4),
        (("gaudi2",), "shuffle.i32 V4, V1, V2", "mac.i16 D6, V4, V2", "V4", "src_a", 5),
        (("gaudi2",), "shuffle.i32 V4, V1, V2", "mac.f32 V4, V1, V2", "V4", "src_c", 5),
    ],
)
def test_examples(
    generations: tuple[str, ...],
    producer: str,
    consumer: str,
    register: str,
    operand: str,
    distance: int,
    capsys: Capture,
) -> None:
    for generation in generations:
        entry = answer(capsys, generation, producer, consumer)
        found = (entry["register"], entry["consumer_operand"], entry["distance_bundles"])
        assert found == (register, operand, distance), (generation, entry)


def test_what_an_entry_says(capsys: Capture) -> None:
    line = "nop; nop; add.f16 V10, V2, V3; nop"
    entry = answer(capsys, "gaudi2", line, "mul.f16 V4, V10, V5")
    assert entry["producer"] == line
    assert (entry["producer_stage"], entry["consumer_stage"], entry["entry_port"]) == ("e5", "d2", "vpu_a")
    assert entry["minimum_bundles"] is None
    assert entry["rule"] == "commit stage and read stage"
    assert "latencies" in entry["source"]
    late = answer(capsys, "goya", "nop; mov.i32 S1, 0x4; nop; nop", "add.i32 V1, V2, S1")
    assert (late["entry_port"], late["rule"]) == ("vpu_spu", "the entry port of the operand")
    bypass = answer(capsys, "goya", "prmt_indx I3, I4, S5", "ld_tnsr V0, 0x1, I3")
    assert bypass["consumer_stage"] == "d2"
    assert "no bypass" in bypass["rule"]


# docs/reference/tpc.md section 6.2: the smallest distance that the compiler keeps, null where nothing is said.
BEFORE_GAUDI2 = GENERATIONS[:4]


SPACED: list[tuple[tuple[str, ...], str, str, int | None]] = [
    (FROM_GAUDI, "lookup_2c BV32 D4, V1, 0x100", "sel_eq.f32 V8, V1, V2, V4, V3", 2),
    (FROM_GAUDI, "lookup_2c BV32 D4, V1, 0x100", "add.f32 V8, V4, V9", None),
    (FROM_GAUDI, "lookup BV32 V4, V1, 0x100", "sel_eq.f32 V8, V1, V2, V4, V3", None),
    (("goya",), "lookup BV32 V4, V1, 0x1", "sel_eq.f32 V8, V1, V2, V4, V3", 2),
    (FROM_GAUDI, "lookup_1c BV32 V4, V1, 0x100", "lookup_1c BV32 V5, V4, 0x100", 2),
    (FROM_GAUDI, "lookup_1c BV32 V4, V1, 0x100", "mov V5, V4; nop; nop; nop", 2),
    (("gaudi", "gaudib", "greco"), "lookup BV32 V4, V1, 0x100", "st_l_v 0x100, V4", 2),
    (("gaudi2",), "lookup BV32 V4, V1, 0x100", "st_l_v 0x100, V4", None),
    (("gaudi2",), "lookup BV32 V4, V1, 0x100", "nop; nop; nop; ld_tnsr V4, 0x1, I1", 2),
    (FROM_GAUDI, "cache_invalidate", "lookup_1c BV32 V4, V1, 0x100", 2),
    (FROM_GAUDI, "lookup_1c BV32 V4, V1, 0x100", "cache_invalidate", 2),
    (FROM_GAUDI, "mac.f32 V6, V1, V2", "mac.f32 V6, V6, V2", 2),
    (("goya",), "mac.f32 V6, V1, V2", "mac.f32 V6, V6, V2", None),
    (FROM_GAUDI, "mac.f32 V6, V1, V2", "mac.f32 V7, V6, V2", None),
    (("gaudi2",), "madd.f32 V6, V1, V2, V3", "mov V6, V6; nop; nop; nop", 2),
    (("greco",), "madd.f32 V6, V1, V2, V3", "mov V6, V6; nop; nop; nop", None),
    (("gaudib", "greco", "gaudi2"), "add.f16 V6, V1, V2", "add.f16 V6, V6, V2", 2),
    (FROM_GAUDI, "add.f32 V6, V1, V2", "add.f32 V6, V6, V2", None),
    (("gaudi2",), "add.f32 x2 D6, D0, V2, V3", "add.f32 V6, V6, V2", 2),
    (GENERATIONS, "ld_tnsr_low V4, 0x1, I1", "ld_tnsr_high V4, 0x1, I1", 2),
    (GENERATIONS, "ld_tnsr_high V4, 0x1, I1", "ld_tnsr V4, 0x1, I1", None),
    (("gaudi", "gaudib", "greco"), "udiv_4step.u32 Z2, S4, S5", "udiv_4step.u32 Z2, S4, S5", 7),
    (("gaudi2",), "udiv.u32 Z2, S4, S5", "nop; halt; nop; nop", 5),
    (FROM_GAUDI, "st_l mmio 0x8fc, S1", "mul.f32 V1, V2, V3", 3),
    (FROM_GAUDI, "st_l mmio 0x8fc, S1", "convert.f32 target_type=int32 V1, V2", 3),
    (FROM_GAUDI, "st_l mmio 0x8fc, S1", "convert.f32 target_type=int32 sr V1, V2", 2),
    (("gaudi2",), "st_l mmio 0x8fc, S1", "convert.f32 target_type=f8_143 sr_rne V1, V2", 2),
    (FROM_GAUDI, "st_l mmio 0x8fc, S1", "convert_int32 sr to_8 S1, S2, S3", 2),
    (FROM_GAUDI, "st_l mmio 0x8fc, S1", "gen_addr AD1, 0x0, I1", 2),
    (FROM_GAUDI, "st_l mmio 0x8fc, S1", "st_tnsr 0x0, I1, V1", 2),
    (FROM_GAUDI, "st_l mmio 0x8fc, S1", "aso", 2),
    (("goya",), "st_l mmio 0x7fc, S1", "mul.f32 V1, V2, V3", None),
    (FROM_GAUDI, "st_l 0x8fc, S1", "mul.f32 V1, V2, V3", None),
    (GENERATIONS, "jmpa 0x20", "nop; halt; nop; nop", 3),
    (GENERATIONS, "jmpa 0x20", "aso", 3),
    (("goya",), "lookup_c0 BV32 V4, V1, 0x1", "lookup_c0 BV32 V5, V4, 0x1", 2),
    (("goya",), "cache_invalidate", "lookup_c1c2 BV32 D4, V1, 0x1", 2),
    (FROM_GAUDI, "st_l mmio 0x8fc, S1", "ld_l mmio S2, 0x8fc", 2),
    (FROM_GAUDI, "st_l mmio 0x8fc, S1", "mov V1, LFSR; nop; nop; nop", 2),
    (GENERATIONS, "jmpr 0x20", "convert.f32 target_type=int32 rhne S1, S2", 3),
    (GENERATIONS, "nop; nop; add.i32 V1, V2, S32; nop", "loop S1, S2, S3, <, 4", 5),
    (GENERATIONS, "mov.i32 V1, S32; nop; nop; nop", "loop S1, S2, S3, <, 4", 6),
    (("gaudi2",), "st_l_v 0x100, V1", "lookup_1c BV32 V4, V1, 0x100", 1),
    (BEFORE_GAUDI2, "st_tnsr 0x0, I1, V1", "ld_tnsr V2, 0x0, I1", 1),
]


@pytest.mark.parametrize(("generations", "producer", "consumer", "minimum"), SPACED)
def test_smallest_distances_by_issue_rules(
    generations: tuple[str, ...], producer: str, consumer: str, minimum: int | None, capsys: Capture
) -> None:
    for generation in generations:
        code, document = answer_of(capsys, "latency", producer, consumer, "--target", generation)
        (entry,) = document["pairs"]
        assert code == (entry is None)
        assert (None if entry is None else entry["minimum_bundles"]) == minimum, (generation, entry)


@pytest.mark.parametrize("row", SPACED)
def test_the_linter_keeps_the_same_distances(row: tuple[tuple[str, ...], str, str, int | None]) -> None:
    """The rule of the linter that no other rule replaces, at all distances; loops and jumps have rules of their own."""
    generations, producer, consumer, _ = row
    if any(word in f"{producer} {consumer}" for word in ("loop", "jmp", "halt")):
        return
    for generation in generations:
        chip = target(generation)
        placed = [
            SlottedInstruction(slot, each)
            for text in (producer, consumer)
            for slot, each in zip(Slot, parse(text, chip.dialect).bundles[0].slots, strict=True)
            if each is not None
        ]
        rules = [rule for rule in chip.bundle_distances if not rule.linted and applies(rule, chip, *placed[:2])]
        for distance in range(1, 9):
            text = f"{producer}\n{nops(distance - 1)}{consumer}\n{nops(9)}{END}"
            found = {finding.rule for finding in lint(assembled(text, chip).program, chip)}
            forbidden = any(distance < rule.distance or distance in rule.excluded for rule in rules)
            assert ("issue distance" in found) == forbidden, (generation, distance)


def test_pairs_from_standard_input_keep_their_order(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "mov.i32 S1, 0x1 -> st_l 0x4, S1",
        "add.f32 V1, V2, V3 -> add.f32 V4, V5, V6",
        "nop; nop; add.f32 V1, V2, V3; nop -> nop; nop; nop; st_l_v 0x100, V1",
    ]
    code, found = answers(capsys, monkeypatch, "greco", lines)
    assert code == 1
    assert [None if entry is None else entry["register"] for entry in found] == ["S1", None, "V1"]
    assert answers(capsys, monkeypatch, "greco", [lines[0]])[0] == 0


@pytest.mark.parametrize(
    ("line", "place", "message"),
    [
        ("add.f32 V1, V2, V3", "<stdin>:2", "write a line as PRODUCER -> CONSUMER"),
        ("add.f32 V1, V2, V3 -> mov V1, V2 -> mov V1, V2", "<stdin>:2", "write a line as PRODUCER -> CONSUMER"),
        ("", "<stdin>:2", "write a line as PRODUCER -> CONSUMER"),
        ("add.f32 V1, V2, V3 -> frobnicate V1", "<stdin>:2:23", "unknown instruction 'frobnicate'"),
        ("add.f32 V1, V2 -> mov V1, V2", "<stdin>:2:1", "needs 3 operands"),
        ("nop -> mov V1, V2", "<stdin>:2:1", "'nop' is not one instruction"),
        ("mov V1, V2; mov.i32 S1, S2 -> mov V1, V2", "<stdin>:2:1", "is not one instruction"),
        ("mac.bf16 acc_fp32 D5, V1, V2 -> mov V1, V2", "<stdin>:2:19", "unknown register D5"),
    ],
)
def test_a_line_that_cannot_be_read(
    line: str, place: str, message: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, ["mov.i32 S1, 0x1 -> st_l 0x4, S1", line, ""])
    code, err = refusal(capsys, "latency", "-", "--target", "gaudi2")
    assert code == 2
    assert f"{place}:" in err
    assert message in err


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["mov V1, V2", "--target", "goya"], 2, "needs two instructions"),
        (["-", "mov V1, V2", "--target", "goya"], 2, "pairs are read only from standard input"),
        (["mov V1, V2", "mov V3, V1"], 2, "required: --target"),
        (["mov V1, V2", "mov V3, V99", "--target", "goya"], 2, "CONSUMER:1:9"),
        (["madd.f32 V1, V2, V3, V4", "mov V3, V1", "--target", "gaudi"], 1, "gaudi has no madd"),
        (["mov V1, V2", "mov V3, V1", "--target", "a5"], 1, "has no TPC assembly"),
    ],
)
def test_what_was_typed(argv: list[str], code: int, message: str, capsys: Capture) -> None:
    assert message in err_of(capsys, ["latency", *argv], code)


def test_text_answers_first(capsys: Capture) -> None:
    words = ["latency", "mac.f32 V6, V1, V2", "add.f32 V6, V6, V3", "--target", "gaudi2"]
    first, *rest = out_of(capsys, words).splitlines()
    assert first == "6 bundles on gaudi2: mac.f32 V6, V1, V2 -> add.f32 V6, V6, V3"
    assert rest[0].strip() == "6 bundles until V6 as src_a is up to date: written in e5, read in d2 through vpu_a"
    assert rest[1].strip() == "2 bundles at least by issue rules"
    words[2] = "add.f32 V1, V2, V3"
    assert "the second reads nothing that the first writes" in " ".join(out_of(capsys, words, 1).split())


TRIPS = 64


def bound(path: Path, target: str | None = None) -> LatencyBound:
    found = run(path, target, timing_only=True)
    latencies = found.loaded.latencies(found.timing)
    assert latencies is not None
    return latencies


def products(folder: Path, empty: int, registers: tuple[int, ...], target: str) -> Path:
    """Write a loop of products, one a bundle on each register in turn, so many empty bundles behind them."""
    lines = [f"// castsim: target {target}", f"nop; loop 0, {TRIPS}, 1, <, End; nop; nop", "nop; nop; nop; nop"]
    lines += [f"nop; nop; mul.f32 V{each}, V{each}, V9; nop" for each in registers]
    lines += ["nop; nop; nop; nop"] * empty + ["End:", "nop; halt; halt; nop"]
    path = folder / "products.tpc"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("target", ["gaudi2", "goya", "greco"])
def test_a_product_that_needs_the_one_before_waits_from_trip_to_trip(target: str, tmp_path: Path) -> None:
    latencies = bound(products(tmp_path, 5, (1,), target))
    assert latencies.binds
    (link,) = latencies.links
    assert (link.distance, link.register, link.producer.span.line, link.consumer.span.line) == (6, "V1", 4, 4)
    assert (latencies.length, latencies.trips) == (6, TRIPS)
    assert latencies.gained == 5 * TRIPS  # one bundle of the six has work
    hidden = bound(products(tmp_path, 0, (1, 2, 3, 4, 5, 6), target))  # six products in turn
    assert not hidden.binds
    assert hidden.gained == 0


@pytest.mark.parametrize(
    ("name", "producer", "consumer", "register", "lines", "distance"),
    [
        # Comments of the programs: "MAC.f32 is visible after 6", "load after 4".
        ("tpc_f32_i8_quantise_gaudi2", "mac", "convert", "V7", (30, 36), 6),
        ("tpc_f32_i8_quantise_goya", "mac", "convert", "V7", (30, 36), 6),
        ("tpc_u8_f32_dequantise_greco", "ld_tnsr", "convert", "V8", (15, 19), 4),
    ],
)
def test_the_headline_names_the_chain(
    name: str, producer: str, consumer: str, register: str, lines: tuple[int, int], distance: int,
    capsys: Capture, tmp_path: Path,
) -> None:  # fmt: skip
    path, page = PROGRAMS / f"{name}.tpc", tmp_path / "page.html"
    text = out_of(capsys, ["run", str(path), "--timing-only", "--html", str(page)]).partition("\n\n")[0]
    (head,) = [line for line in text.splitlines() if line.startswith("Latency limits: ")]
    assert head.startswith(f"Latency limits: {producer}")
    assert head.endswith(f"({register}, lines {lines[0]} -> {lines[1]}, {distance} bundles)")
    assert all(words in text for words in ("latencies cost ", "Next: castsim advise", "--what-if latency"))
    assert f"({register}, lines {lines[0]} -\\u003e {lines[1]}, {distance} bundles)" in page.read_text()
    document = document_of(capsys, "run", str(path), "--timing-only", "--what-if", "latency")
    longest = document["latency_bound"]["longest"]
    assert (longest["producer_line"], longest["consumer_line"]) == lines
    assert (longest["through"], longest["distance_bundles"]) == (register, distance)
    assert longest["consumer"].startswith(consumer)
    (gain,) = document["what_if"]
    assert gain["gained_cycles"] == document["latency_bound"]["gained_cycles"] >= document["total_cycles"] / 5
    busiest = max(pipe["busy_cycles"] for pipe in document["pipes"].values())
    assert gain["total_cycles"] >= busiest


@pytest.mark.parametrize("name", ["tpc_f32_f8_143_gaudi2", "tpc_f32_bf16_packed_gaudi2", "tpc_f32_i32_pipelined_goya"])
def test_a_pipe_that_works_most_of_the_time_stays_the_headline(name: str, capsys: Capture) -> None:
    words = ["run", str(PROGRAMS / f"{name}.tpc"), "--timing-only"]
    assert document_of(capsys, *words)["latency_bound"] is None
    assert "Latency binds" not in out_of(capsys, words)
    document = document_of(capsys, "run", str(PROGRAMS / "f32_to_f16.pto"), "--timing-only")
    assert "latency_bound" not in document  # tiles have no such limit
