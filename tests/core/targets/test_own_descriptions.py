"""What a description of one's own keeps of the shipped one: source, status, validation and interval of equal facts."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.paths import PROGRAMS, ROOT

from castsim.reports.numbers import facts_of
from castsim.reports.run_findings import run_document
from castsim.reports.run_report import RunReport
from castsim.reports.target_template import template
from castsim.running.program_runs import run
from castsim.targets.description import with_facts
from castsim.targets.loader import load_target, target_names

OWN = {
    "a5": (
        "headlines/absmax_two_halves.pto", "timing.special_function", "ports = 3",
        {"tdivs f32"}, {"tabs f16", "tcvt f16 -> f32"},
    ),
    "a2a3": (
        "quantise_rows_i8_a2a3.pto", "timing.vector.vmul", "startup_cycles = 40",
        {"trowexpandmul f32"}, {"tcvt f32 -> f16", "trowmax f32"},
    ),
}  # fmt: skip
"""By target: a program, a fact and what is changed in it, works that rest on the fact, and such as do not."""
PLACES = (ROOT / "tests/vectors", ROOT / "programs/kernels")


def own_description(folder: Path, kind: str, name: str, change: str = "") -> Path:
    """A description with only a base, or a renamed template; `change` is a table of it laid over that."""
    path = folder / "own.toml"
    if kind == "base":
        path.write_text(f'base = "{name}"\n{change}')
    elif kind == "named":
        path.write_text(f'base = "{name}"\nname = "own_chip"\ntitle = "mine"\n{change}')
    else:
        path.write_text(template(name).replace(f'name = "{name}"', 'name = "own_chip"', 1))
        if change:
            (folder / "changed.toml").write_text(f'base = "own.toml"\nname = "own_chip_2"\n{change}')
            return folder / "changed.toml"
    return path


def rests(program: Path, target: object) -> dict[str, object]:
    inputs = {} if program.suffix == ".pto" else {"x": "random:1"}
    result = run(program, target, timing_only=program.suffix == ".pto", inputs=inputs)
    document = run_document(RunReport.of(result, {}))
    return {key: document.get(key) for key in ("total_cycles", "trust", "facts_assumed", "operations")}


@pytest.mark.parametrize("kind", ["base", "named", "template"])
@pytest.mark.parametrize("name", target_names())
def test_a_description_with_equal_facts_keeps_source_status_validation_and_interval(
    tmp_path: Path, name: str, kind: str
) -> None:
    """Shipped facts are the expectation: nothing of them has changed."""
    program = next(place / OWN[name][0] for place in PLACES if (place / OWN[name][0]).exists()) if name in OWN else (
        PROGRAMS / f"tpc_f32_i16_quantise_{name}.tpc"
    )  # fmt: skip
    assert rests(program, own_description(tmp_path, kind, name)) == rests(program, load_target(name))
    kept, shipped = load_target(own_description(tmp_path, kind, name)), load_target(name)
    assert kept.lineage.name == name
    assert not kept.lineage.changed
    for field in type(shipped).model_fields:
        if field not in ("name", "title"):
            assert getattr(kept, field) == getattr(shipped, field), field


@pytest.mark.parametrize("kind", ["base", "named", "template"])
@pytest.mark.parametrize("name", OWN)
def test_what_depends_on_a_changed_fact_alone_loses_its_validation(tmp_path: Path, name: str, kind: str) -> None:
    file, path, change, changed, same = OWN[name]
    program = next(place / file for place in PLACES if (place / file).exists())
    own = own_description(tmp_path, kind, name, f'[{path}]\n{change}\nsource = "own"\nstatus = "assumed"\n')

    def bases(target: object) -> dict[str, tuple[object, object]]:
        trust = rests(program, target)["trust"]
        assert isinstance(trust, dict)
        return {each: (share["basis"], share["standing"]) for share in trust["shares"] for each in share["operations"]}

    shipped, found = bases(load_target(name)), bases(own)
    assert all(found[work] == ("assumption", "facts") for work in changed)
    assert all(found[work] == shipped[work] and found[work][1] != "facts" for work in same)
    assert {work for work in shipped if found[work] != shipped[work]} == changed
    old, new = (rests(program, target)["trust"]["interval"]["covered"] for target in (load_target(name), own))  # type: ignore[index]
    assert 0 < new <= old  # of kinds without an interval of their own nothing was covered


def test_changed_facts_and_rows_are_named(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('base = "a5"\n[timing.load]\nstartup_cycles = 100\nsource = "own"\nstatus = "measured"\n')
    chip = load_target(own)
    assert chip.lineage.changed == {"timing.load.startup_cycles"}
    assert (
        with_facts(chip, {"timing.load.startup_cycles": 90}).lineage == chip.lineage
    )  # of the description, not of a run
    assert load_target("a5").lineage.changed == frozenset()


@pytest.mark.parametrize(
    ("name", "table", "changed"), [("a2a3", "load", "bytes_per_cycle"), ("a5", "load", "bytes_per_cycle")]
)
def test_values_that_a_derived_description_leaves_keep_source_and_status(
    tmp_path: Path, name: str, table: str, changed: str
) -> None:
    """A changed value has a source of its own, which is not that of the values beside it."""
    change = f'[timing.{table}]\n{changed} = 60\nsource = "a data sheet"\nstatus = "documented"\n'
    base, own = load_target(name), load_target(own_description(tmp_path, "named", name, change))
    shipped, derived = (getattr(target.timing, table) for target in (base, own))
    assert (derived.status, derived.source, derived.status_of(changed)) == ("documented", "a data sheet", "documented")
    assert derived.status_of("startup_cycles") == shipped.status
    assert {kept.source for kept in derived.kept} == {shipped.source}
    entries = {entry.status: entry for entry in facts_of(own) if entry.name == f"timing.{table}"}
    assert entries.keys() == {"documented", shipped.status}
    assert changed in entries["documented"].value and "startup_cycles" in entries[shipped.status].value
    assert own.timing.scalar == base.timing.scalar
