"""The linter: a clean program of every rule, and the rule named once its compliance is taken away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kit.tpc_machine import END, assembled, nops
from kit.tpc_text import GENERATIONS, greco_schedule

from castsim.__main__ import main
from castsim.tools.tpc_lint.lint_checking import RULES, lint

NOP = "nop; nop; nop; nop\n"
TENSORS = "// castsim: tensor 0 x in f32 [64, 64]\n// castsim: tensor 1 y out f32 [64, 64]\n"
STORE_V0, STORE_V1 = "nop; nop; nop; st_l_v 0x0, V0\n", "nop; nop; nop; st_l_v 0x100, V1\n"
GAP = NOP * 6
"""So many bundles that every result is there (docs/reference/tpc.md section 6.1)."""


def found(text: str, target: str) -> set[str]:
    program = assembled(text, target)
    doubtful = ("unread result", "scalar load in loop")  # no fault of what runs: a warning
    return {each.rule for each in lint(program.program, program.target) if each.certain or each.rule in doubtful}


def loop(body: str, *, before: str = nops(5)) -> str:
    """A loop of some bundles, with S1 as its bound."""
    head = f"nop; mov.i32 S1, 0x8; nop; nop\n{before}nop; loop 0x0, S1, 1, <, End; nop; nop\n"
    return f"{head}{NOP}{body}End:\n{NOP}nop; halt; halt; nop\n"


JUMP = "nop; jmpr Skip, SP1; nop; nop\n"
TO_INTEGER = "nop; convert.f32 target_type=int32 S4, S5; nop; nop\n"
CASES = {  # rule: target, clean text, what is changed, into what
    "two results": (
        "greco", f"mov V1, V2; nop; mov V0, V2; nop\n{GAP}{STORE_V0}{STORE_V1}{END}",
        "mov V0, V2; nop\n", "mov V1, V2; nop\n",
    ),
    "field overlay": (
        "gaudi", "nop; nop; unpack.i16 source_group=0 element_stride=2 group_half=0 V1, V2; nop\n"
        f"{STORE_V0}{GAP}{STORE_V1}{END}", "V1, V2; nop\nnop; nop; nop; st_l_v", "V1, V2; st_l_v",
    ),
    "immediates": (
        "gaudi", f"ld_l_v V0, 0x100; mov.i32 S1, 0x100; nop; nop\n{GAP}nop; nop; nop; st_l_v S1, V0\n{END}",
        "S1, 0x100", "S1, 0x200",
    ),
    "shared predicate": (
        "greco", f"ld_l_v V0, 0x0, SP1; nop; nop; st_l_v 0x0, V1, SP1\n{GAP}{STORE_V0}{END}", "V1, SP1", "V1, !SP1",
    ),
    "loop bundle": ("greco", loop(nops(6)), "<, End; nop; nop", "<, End; nop; st_l_v 0x0, V3"),
    "scalar beside load": (
        "greco", f"ld_l_v V1, 0x0; nop; mul.f32 V0, V2, V3; nop\n{GAP}{STORE_V0}{STORE_V1}{END}", "V2, V3", "V2, S3",
    ),
    "minifloat beside store": (
        "gaudi2", f"{TENSORS}nop; nop; convert.f32 target_type=f8_152 V0, V2; st_tnsr 0x1, I0, V1\n{GAP}{STORE_V0}"
        + END, "f8_152", "f8_143",
    ),
    "tensor store spacing": (
        "greco", f"{TENSORS}nop; nop; nop; st_tnsr 0x1, I0, V1\n{nops(4)}ld_tnsr V0, 0x0, I1; nop; nop; nop\n"
        f"{GAP}{STORE_V0}{END}", nops(4) + "ld_tnsr", nops(3) + "ld_tnsr",
    ),
    "tensor half spacing": (
        "gaudi2", f"{TENSORS}ld_tnsr_low V0, 0x0, I1; nop; nop; nop\n{NOP}nop; nop; nop; ld_tnsr_high V1, 0x0, I2\n"
        f"{GAP}{STORE_V1}{STORE_V0}{END}", f"I1; nop; nop; nop\n{NOP}", "I1; nop; nop; nop\n",
    ),
    "random spacing": (
        "goya", f"nop; nop; mov V0, LFSR; nop\n{nops(3)}nop; nop; mov V1, LFSR; nop\n{nops(3)}{END}",
        nops(3) + "nop; nop; mov V1", nops(2) + "nop; nop; mov V1",
    ),
    "product write": (
        "gaudi", f"nop; nop; mul.f32 V0, V2, V3; nop\n{NOP}nop; nop; mov V0, V4, SP1; nop\n{nops(6)}{STORE_V0}{END}",
        f"V3; nop\n{NOP}nop; nop; mov V0", "V3; nop\nnop; nop; mov V0",
    ),
    "overtaken predicate": (
        "gaudi", f"ld_l SP1, 0x0; nop; nop; nop\n{nops(2)}nop; mov SP1, S2, SP2; nop; nop\n{GAP}"
        f"nop; nop; nop; st_l 0x4, SP1\n{END}", nops(2) + "nop; mov SP1", NOP + "nop; mov SP1",
    ),
    "jump delay": (
        "gaudi", f"ld_l_v V0, 0x0; nop; nop; nop\n{GAP}{JUMP}nop; nop; nop; nop\n{STORE_V0}Skip:\n{STORE_V0}{END}",
        f"SP1; nop; nop\n{NOP}", "SP1; nop; nop\nnop; nop; nop; st_l_v 0x100, V0\n",
    ),
    "convert before delay": (
        "gaudi", f"{TO_INTEGER}{NOP}{JUMP}{NOP}{GAP}nop; nop; nop; st_l 0x0, S4\nSkip:\n{END}",
        f"S5; nop; nop\n{NOP}", "S5; nop; nop\n",
    ),
    "loop body": ("greco", loop(nops(6)), nops(6) + "End:", nops(5) + "End:"),
    "loop registers": ("greco", loop(nops(6)), nops(5) + "nop; loop", nops(3) + "nop; loop"),
    "iterator read": (
        "greco", loop(f"nop; nop; add.i32 V0, V1, S32; nop\n{nops(3)}{STORE_V0}{nops(3)}"),
        nops(3) + "End:", nops(2) + "End:",
    ),
    "stale read": (
        "gaudi", f"nop; nop; mov V0, V1; nop\n{nops(6)}{STORE_V0}{END}", nops(6) + STORE_V0, nops(5) + STORE_V0,
    ),
    "slot count": ("gaudi", f"ld_l_v V0, 0x0; nop; nop; nop\n{GAP}{STORE_V0}{END}", "nop; nop; nop\n", "nop; nop\n"),
    "mapped store": (
        "gaudi", f"nop; nop; nop; st_l mmio 0x538, S1\n{NOP}ld_l mmio S2, 0x8fc; nop; nop; nop\n{GAP}"
        f"nop; nop; nop; st_l 0x0, S2\n{END}", NOP + "ld_l", "ld_l",
    ),
    "after jump": (
        "gaudi", f"{JUMP}{NOP}{NOP}Skip:\n{NOP}{TO_INTEGER}{NOP}{GAP}nop; nop; nop; st_l 0x0, S4\n{END}",
        f"Skip:\n{NOP}", "Skip:\n",
    ),
    "jump in loop": (
        "greco", loop(f"{JUMP}{NOP}{NOP}{NOP}Skip:\n{nops(3)}"), f"Skip:\n{nops(3)}", f"{NOP}Skip:\n{nops(2)}",
    ),
    "issue distance": (
        "gaudi", f"lookup_1c BV32 V0, V1, 0x100; nop; nop; nop\n{NOP}ld_l_v V2, 0x100; nop; nop; nop\n{GAP}{STORE_V0}"
        f"nop; nop; nop; st_l_v 0x100, V2\n{END}", f"{NOP}ld_l_v V2", "ld_l_v V2",
    ),
    "halt": ("greco", NOP + END, "nop; halt; halt", "nop; halt; nop"),
    "stores at end": ("greco", STORE_V0 + END, STORE_V0 + NOP, STORE_V0),
    "unread result": ("greco", f"nop; nop; mov V0, V1; nop\n{GAP}{STORE_V0}{END}", "st_l_v 0x0, V0", "st_l_v 0x0, V2"),
    "scalar load in loop": (
        "gaudi2", loop(f"ld_l S2, 0x0; nop; nop; nop\n{nops(7)}nop; nop; nop; st_l 0x4, S2\n{nops(3)}"),
        "ld_l S2, 0x0", "ld_g S2, AD1",
    ),
}  # fmt: skip


def test_every_rule_has_a_case() -> None:
    assert set(CASES) == set(RULES) - {"unwritten register"}  # which is never certain


@pytest.mark.parametrize("rule", CASES)
def test_taking_compliance_away_names_the_rule(rule: str) -> None:
    target, clean, compliant, broken = CASES[rule]
    assert compliant in clean
    assert found(clean, target) == set()
    assert found(clean.replace(compliant, broken, 1), target) == {rule}


EXEMPT = {
    "random spacing": "gaudi",
    "tensor store spacing": "gaudi2",
    "field overlay": "greco",
    "product write": "goya",
}


@pytest.mark.parametrize(("rule", "exempt"), EXEMPT.items())
def test_generations_without_a_rule(rule: str, exempt: str) -> None:
    """docs/reference/tpc.md sections 1 and 6.2: which generations each of these holds for."""
    _, clean, compliant, broken = CASES[rule]
    text = clean.replace(compliant, broken, 1)
    if exempt == "goya":
        text = text.replace("st_l_v 0x0", "st_l_v S0, 0x0")
    assert found(text, exempt) == set()


def test_short_immediates_need_no_field() -> None:
    """From Greco every slot has immediates of its own: 0 to 15, of signed types 0 to 7 (docs/reference/tpc.md 8)."""
    text = "ld_l_v V0, 0x100; {}; nop\n" + GAP + "nop; nop; nop; st_l_v S1, V0\n" + END
    for line, fits in (
        ("add.u32 S1, S2, 0xf; nop", True), ("add.u32 S1, S2, 0x10; nop", False), ("add.i32 S1, S2, 0x7; nop", True),
        ("add.i32 S1, S2, 0x8; nop", False), ("nop; add.u16 V1, V2, 0xf", True), ("nop; add.i16 V1, V2, 0x8", False),
    ):  # fmt: skip
        assert ("immediates" in found(text.format(line), "greco")) is not fits, line
        assert "immediates" in found(text.format(line), "gaudi")


@pytest.mark.parametrize("generation", GENERATIONS)
def test_an_empty_program_and_one_that_only_stops(generation: str) -> None:
    assert found("", generation) == set()
    assert found("nop; halt; halt; nop\n", generation) == set()
    assert found(NOP, generation) == {"halt"}


def test_castsim_lint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clean, broken = tmp_path / "clean.tpc", tmp_path / "broken.tpc"
    clean.write_text("// castsim: target greco\n" + STORE_V0 + END)
    broken.write_text("// castsim: target greco\n" + STORE_V0 + END.replace("halt; halt", "halt; nop"))
    assert main(["lint", str(clean)]) == 0
    assert capsys.readouterr().out.startswith("lint: no certain issues\npossible, depending on path, predicates or")
    assert main(["lint", str(broken)]) == 1
    assert capsys.readouterr().out.startswith("lint: 1 finding\n  line 6, bundle 4: halt: ")
    whole = tmp_path / "whole.tpc"
    whole.write_text("// castsim: target greco\nnop; nop; mov.i32 V0, 0x1; nop\n" + NOP * 6 + STORE_V0 + END)
    assert main(["lint", str(whole)]) == 0
    assert capsys.readouterr().out.startswith("lint: no issues found\n")
    assert main(["lint", str(broken), "--json", "-"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [(f["rule"], f["bundle"], f["line"]) for f in document["lint"]] == [("halt", 4, 6)]
    assert document["rules"] == list(RULES)


def test_castsim_run_with_lint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kernel.tpc"
    path.write_text("// castsim: target greco\n" + STORE_V0 + END.replace(NOP, "", 1))
    assert main(["run", str(path), "--json", "-"]) == 0
    assert "lint" not in json.loads(capsys.readouterr().out)
    assert main(["run", str(path), "--lint", "--json", "-"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [f["rule"] for f in document["lint"]] == ["stores at end"]
    assert document["total_cycles"] > 0
    assert main(["run", str(path), "--lint"]) == 1
    assert "stores at end: 2 empty bundles follow the last store; needed: 3" in capsys.readouterr().out


def test_lint_of_a_tile_program_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kernel.pto"
    path.write_text('module attributes {pto.target_arch = "a3"} {\n  func.func @f() {\n    return\n  }\n}\n')
    assert main(["run", str(path), "--lint"]) == 2
    assert "--lint applies only to assembly" in capsys.readouterr().err
    assert main(["lint", str(path), "--target", "a5"]) == 2
    assert "`castsim run --timing-only` checks" in capsys.readouterr().err


# ------------------------------------------------------------------------- docs/reference/tpc.md section 6.2, rule by
# rule


def spaced(first: str, second: str, target: str, rule: str) -> list[int]:
    """Distances of two bundles at which the rule finds something."""
    texts = {d: f"{TENSORS}{first}\n{nops(d - 1)}{second}\n{nops(9)}L:\n{END}" for d in range(1, 9)}
    return [distance for distance, text in texts.items() if rule in found(text, target)]


LOW, HIGH, WHOLE = (f"ld_tnsr{half} V{k}, 0x0, I1; nop; nop; nop" for k, half in enumerate(("_low", "_high", "")))
JUMPING = "nop; jmpr L, SP1; nop; nop"
MAPPED = "nop; nop; nop; st_l mmio 0x538, S1"


@pytest.mark.parametrize(
    ("first", "second", "target", "rule", "distances"),
    [
        (LOW, HIGH, "goya", "tensor half spacing", [1]),
        (HIGH, LOW, "greco", "tensor half spacing", [1]),
        (LOW, WHOLE, "gaudi", "tensor half spacing", [1]),
        (HIGH, WHOLE, "gaudi", "tensor half spacing", []),
        (WHOLE, LOW, "gaudi", "tensor half spacing", []),
        ("nop; nop; add.f16 V0, V1, V2; nop", "nop; nop; mov V0, V4; nop", "gaudib", "product write", [1]),
        ("nop; nop; sub.f8_143 V0, V1, V2; nop", "nop; nop; mov V0, V4; nop", "gaudi2", "product write", [1]),
        ("nop; nop; add.bf16 V0, V1, V2; nop", "nop; nop; mov V0, V4; nop", "gaudi2", "product write", []),
        ("nop; nop; add.f32 V0, V1, V2; nop", "nop; nop; mov V0, V4; nop", "gaudi2", "product write", []),
        ("nop; mul.f32 S0, S1, S2; nop; nop", "nop; mov.i32 S0, S4; nop; nop", "gaudi", "product write", [1]),
        (MAPPED, "nop; nop; mul.f32 V0, V1, V2; nop", "gaudi", "mapped store", [1, 2]),
        (MAPPED, "nop; nop; add.f16 V0, V1, V2; nop", "greco", "mapped store", [1, 2]),
        (MAPPED, "nop; nop; add.i32 V0, V1, V2; nop", "gaudi", "mapped store", []),
        (MAPPED, "nop; nop; convert.f32 target_type=int32 V0, V1; nop", "gaudi2", "mapped store", [1, 2]),
        (MAPPED, "nop; nop; convert.f32 target_type=int32 rz V0, V1; nop", "gaudi2", "mapped store", []),
        (MAPPED, "nop; nop; convert.f32 target_type=int32 sr V0, V1; nop", "gaudi2", "mapped store", [1]),
        (MAPPED, "nop; nop; nearbyint.f32 V0, V1; nop", "gaudi2", "mapped store", [1, 2]),
        (MAPPED, "nop; nop; mov V0, LFSR; nop", "gaudi", "mapped store", [1]),
        (MAPPED, "ld_tnsr V0, 0x0, I1; nop; nop; nop", "gaudi", "mapped store", [1]),
        (MAPPED, "nop; nop; nop; st_tnsr 0x1, I1, V0", "gaudi2", "mapped store", [1]),
        (MAPPED, "gen_addr AD1, 0x0, I1; nop; nop; nop", "gaudi", "mapped store", [1]),
        (MAPPED, "nop; nop; nop; st_l mmio 0x53c, S1", "gaudi", "mapped store", [1]),
        (MAPPED, "nop; nop; nop; st_l 0x10, S1", "gaudi", "mapped store", []),
        (MAPPED, "nop; nop; mul.f32 V0, V1, V2; nop", "goya", "mapped store", []),
        (JUMPING, "nop; convert.f32 target_type=int32 S4, S5; nop; nop", "gaudi", "after jump", [1, 2]),
        (JUMPING, "nop; halt; halt; nop", "greco", "after jump", [1, 2]),
        (JUMPING, "nop; add.i32 S4, S5, S6; nop; nop", "gaudi", "after jump", []),
    ],
)  # fmt: skip
def test_smallest_distances(first: str, second: str, target: str, rule: str, distances: list[int]) -> None:
    assert spaced(first, second, target, rule) == distances


@pytest.mark.parametrize(("second", "certain"), [("nop; nop; nop; st_l mmio 0xcdc, S1", False),
                                                 ("ld_l mmio S2, 0xcdc; nop; nop; nop", True)])  # fmt: skip
def test_two_stores_to_the_configuration_space_in_a_row_are_no_certain_fault(second: str, certain: bool) -> None:
    """A public kernel that runs on cards has them in neighbouring bundles."""
    text = f"// castsim: reg S1 = 0\nnop; nop; nop; st_l mmio 0xcd8, S1\n{second}\n{nops(4)}{END}"
    kernel = assembled(text, "gaudi2")
    findings = [each for each in lint(kernel.program, kernel.target) if each.rule == "mapped store"]
    assert [(each.bundle, each.certain) for each in findings] == [(1, certain)]


def test_accesses_read_the_iterator_in_time_for_the_next_loop() -> None:
    """VPU 5, LD_L_V, ST_L_V and MOV of the LOAD slot 6 bundles before LOOP; others may read it at any time."""
    for reader, needed in (
        ("nop; nop; add.i32 V0, V1, S32; nop", 5), ("ld_l_v V0, S32; nop; nop; nop", 6),
        ("nop; nop; nop; st_l_v S32, V0", 6), ("mov.i32 S4, S32; nop; nop; nop", 6),
        ("nop; add.i32 S4, S32, S5; nop; nop", 0),
    ):  # fmt: skip
        texts = {d: loop(nops(8), before=f"{nops(9)}{reader}\n{nops(d - 1)}") for d in range(1, 9)}
        near = [d for d, text in texts.items() if "iterator read" in found(text, "greco")]
        assert near == list(range(1, needed)), reader


def test_a_jump_stands_seven_bundles_before_the_end_of_its_loop() -> None:
    for after in range(4, 9):
        body = f"nop; jmpr Skip, SP1; nop; nop\n{NOP}Skip:\n{nops(after)}"
        assert ("jump in loop" in found(loop(body), "greco")) == (after + 2 < 7)


def test_a_run_tells_of_slots_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kernel.tpc"
    path.write_text("// castsim: target gaudi\nnop; nop; mov.i32 V0, 0x1\n" + END)
    assert main(["run", str(path), "--json", "-"]) == 0
    (warning,) = json.loads(capsys.readouterr().out)["warnings"]
    assert warning.startswith(f"{path}:2:1: a bundle with fewer than 4 slots")
    assert main(["lint", str(path)]) == 1
    assert "3 of 4 slots are written" in capsys.readouterr().out


def test_rules_follow_jumps_and_loops_not_the_text() -> None:
    # Behind the last bundle of a body comes its first: three bundles apart in time, though not in the text.
    body = "nop; nop; nop; st_tnsr 0x1, I0, V1\n" + nops(4) + "ld_tnsr V1, 0x0, I1; nop; nop; nop\n" + NOP
    assert found(TENSORS + loop(body), "greco") == set()
    body = nops(3) + "nop; nop; nop; st_tnsr 0x1, I0, V1\n" + nops(2) + "ld_tnsr V1, 0x0, I1; nop; nop; nop\n" + nops(1)
    assert found(TENSORS + loop(body), "greco") == set()
    body = "ld_tnsr V1, 0x0, I1; nop; nop; nop\n" + nops(3) + "nop; nop; nop; st_tnsr 0x1, I0, V1\n" + nops(3)
    assert found(TENSORS + loop(body), "greco") == {"tensor store spacing"}


def test_the_type_of_a_move_is_a_field() -> None:
    """The encoder refuses what shares the field: fields of the bundle, docs/reference/tpc.md section 8."""
    text = "mov{} V1, S6; nop; form_fp_num.f32 V2, V3, V4, V5; nop\n" + END
    for generation, rules in (("goya", {"field overlay"}), ("gaudi", {"field overlay"}), ("gaudi2", set[str]())):
        assert found(text.format(".i32"), generation) & {"field overlay"} == rules
        plain = text.replace("S6", "V6").format("")
        assert "field overlay" not in found(plain, generation)


def test_the_vendors_greco_schedule_is_clean() -> None:
    assert found("".join(greco_schedule()), "greco") == set()


def test_registers_that_nothing_wrote_are_possible_findings(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What they start with is the caller's business, so that they do not fail a check."""
    head = "// castsim: target gaudi\n// castsim: reg S1 = 4\n"
    path = tmp_path / "kernel.tpc"
    path.write_text(
        f"{head}nop; nop; add.i32 V0, V1, S1; nop\n{JUMP}nop; nop; mov V2, V0; nop\n{nops(6)}Skip:\n"
        f"nop; nop; nop; st_l_v 0x0, V2\n{nops(8)}nop; nop; nop; st_l_v 0x100, V0\n{END}"
    )
    main(["lint", str(path), "--json", "-"])
    possible = json.loads(capsys.readouterr().out)["lint_possible"]
    findings = [finding for finding in possible if finding["rule"] == "unwritten register"]
    assert [(finding["bundle"], finding["message"].split()[2]) for finding in findings] == [(0, "V1,"), (1, "SP1,")]
