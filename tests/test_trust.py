"""What cycles rest on: shares that add up, the weight of facts by hand, assumed clocks."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_output import document_of, out_of

import castsim
from castsim.running import load, run_loaded
from castsim.running.estimating.cast_estimates import Standing, fact_at, sensitivities, trust_of
from castsim.targets import Target, load_target
from castsim.targets.description import SourceKind, Status, with_facts
from castsim.targets.loader import residuals_of

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = {
    "f32_to_f16.pto": {},
    "f32_to_f16_pipelined.pto": {},
    "a5_f32_to_e4m3fn_padded.pto": {},
    "kernels/rms_norm_a2a3.pto": {"eps": 1e-6},
}


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    return document_of(capsys, "run", *words, "--timing-only")


@pytest.mark.parametrize("name", PROGRAMS)
def test_shares_add_up_to_the_cycles_of_the_run(name: str) -> None:
    loaded = load(ROOT / "programs" / name, None, None, PROGRAMS[name])
    result = run_loaded(loaded, {}, timing_only=True)
    trust = trust_of(loaded.target, result.timing, result.loaded.tree.instructions)
    assert sum(share.cycles for share in trust.shares) == result.timing.total == trust.cycles
    assert len({name for share in trust.shares for name in share.operations}) == sum(
        len(share.operations) for share in trust.shares
    )


def test_a_program_without_overlap_is_shared_out_exactly(capsys: pytest.CaptureFixture[str]) -> None:
    """Load, cast and store one after the other: the shares are the cycles of their pipes."""
    found = document(capsys, str(ROOT / "programs/a5_f32_to_e4m3fn_padded.pto"))
    occupied = {name: sum(pipe["causes"].values()) for name, pipe in found["pipes"].items()}
    waiting = ("empty", "flag_wait", "barrier", "operand_wait")
    occupied = {
        name: cycles - sum(found["pipes"][name]["causes"].get(cause, 0) for cause in waiting)
        for name, cycles in occupied.items()
    }
    cast = next(share for share in found["trust"]["shares"] if "tcvt f32 -> e4m3fn" in share["operations"])
    assert cast["cycles"] == occupied["V"]
    others = [share for share in found["trust"]["shares"] if share is not cast]
    assert {share["basis"] for share in others} == {"assumption"}
    assert sum(share["cycles"] for share in others) == found["total_cycles"] - occupied["V"]


def test_the_weight_of_a_fact_is_what_ten_percent_of_it_cost(capsys: pytest.CaptureFixture[str]) -> None:
    """One load waits for its start-up once: 207 cycles more or less a tenth, and the rest moves with it."""
    found = document(capsys, str(ROOT / "programs/f32_to_f16.pto"))
    weights = {each["fact"]: (each["less"], each["more"]) for each in found["trust"]["sensitivities"]}
    assert weights["timing.load.startup_cycles"] == (-21, 21)
    assert weights["timing.store.startup_cycles"] == (-20, 20)
    assert weights["timing.load.bytes_per_cycle"] == (2, -2)  # 1024 bytes at 51.3, 57 and 62.7: 20, 18 and 16 cycles
    sizes = [max(abs(each["less"]), abs(each["more"])) for each in found["trust"]["sensitivities"]]
    assert sizes == sorted(sizes, reverse=True)
    names = [fact["name"] for fact in found["facts_assumed"]]
    assert names.index("timing.load") < names.index("timing.store") < names.index("timing.scalar")


def test_weights_are_linear_in_whole_numbers_and_tell_no_facts_that_are_documented() -> None:
    chip = load_target("a5")

    def cycles(change: object) -> int:
        changed = change(chip)
        return 1000 * changed.timing.loops.setup_cycles + 7 * changed.timing.load.startup_cycles

    base = 1000 * chip.timing.loops.setup_cycles + 7 * chip.timing.load.startup_cycles
    found = sensitivities(chip, ["timing.loops", "timing.load", "timing.access", "options.backend"], base, cycles)
    told = {each.fact: (each.less, each.more) for each in found}
    tenth = round(100 * chip.timing.loops.setup_cycles)
    assert told["timing.loops.setup_cycles"] == (-tenth, tenth)
    assert "timing.load.bytes_per_cycle" not in told
    assert fact_at(chip, "timing.access").status is Status.DOCUMENTED
    assert not any(name.startswith("timing.access") for name in told)


def test_text_says_what_cycles_rest_on_and_whose_the_clock_is(capsys: pytest.CaptureFixture[str]) -> None:
    text = out_of(capsys, ["run", str(ROOT / "programs/a5_f32_to_e4m3fn_padded.pto"), "--timing-only", "--facts"])
    status = load_target("a5").frequency.status
    assert ("(assumed clock)" in text) == (status is Status.ASSUMED)
    assert "tcvt f32 -> e4m3fn" in text.splitlines()[4]
    assert text.index("timing.store (") < text.index("timing.load (")
    assert "startup_cycles: -10 % -18 cycles, +10 % +18" in text
    known = residuals_of("a5", "cast")
    if known is not None:
        assert f"{known.share} % interval" in text


def test_other_targets_of_the_same_name_or_none_are_not_validated(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('base = "a5"\nname = "mine"\ntitle = "mine"\n')
    found = castsim.estimate("f32", "f16", 4, 128, target=tmp_path / "mine.toml").trust
    assert {share.standing for share in found.shares} == {Standing.FACTS}
    assert found.interval is None


def test_estimates_say_what_they_rest_on() -> None:
    found = castsim.estimate("f32", "f16", 4, 128, target="a5")
    (share,) = found.trust.shares
    assert (share.cycles, share.basis) == (found.cycles, SourceKind.DOCUMENT)
    known = residuals_of("a5", "cast")
    assert known is not None
    assert found.trust.interval is not None
    assert found.trust.interval.low <= found.cycles * (1 + known.low / 100)
    assert found.trust.interval.high >= found.cycles * (1 + known.high / 100)
    for each in found.sensitivities[:3]:
        if each.value == each.value.to_integral_value():
            continue  # whole numbers change by more than a tenth

        def again(factor: int, fact: str = each.fact, value: object = each.value) -> int:
            chip: Target = with_facts(load_target("a5"), {fact: value * (10 + factor) / 10})
            return castsim.estimate("f32", "f16", 4, 128, target=chip).cycles

        assert (each.less, each.more) == (again(-1) - found.cycles, again(1) - found.cycles)
