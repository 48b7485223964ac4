"""Findings that requests share: the same as those made anew, made once, bounded."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Callable
from itertools import combinations, product
from threading import Thread

import numpy as np
import pytest

from castsim.isa.formats import FORMATS, Codes, Format
from castsim.running.loaded import LoadedProgram
from castsim.targets.loader import Target, load_specification, load_target, target_names
from castsim.tools.lowering import catalogue as written
from castsim.tools.lowering import planner as planning
from castsim.tools.lowering.catalogue import arithmetic_between, catalogue_of, nearest
from castsim.tools.lowering.conformance import conform
from castsim.tools.lowering.demand import CastRequest, settle
from castsim.tools.lowering.planner import plan
from castsim.tools.lowering.samples import telling_codes
from castsim.tools.lowering.sharing import Equals, Kept, Numbers, Shared, forget, unshared
from castsim.tools.lowering.steps import Constants, LoweringStep, run_chain
from castsim.tools.lowering.tile_casts import tile_arithmetic, tile_choices
from castsim.tools.lowering.vector_steps import vector_arithmetic

SLICES = [("onnx", "a5", "i8", "e5m2"), ("tosa", "gaudi2", "i8", "f16"), ("tosa", "a2a3", "i16", "i8")]
THOROUGH = [(spec, target, None, None) for spec in ("tosa", "onnx") for target in target_names()]


@pytest.fixture(autouse=True)
def _forgotten() -> None:
    forget()


@pytest.mark.parametrize(
    ("spec", "target", "src", "dst"), THOROUGH if os.environ.get("CASTSIM_THOROUGH") == "1" else SLICES
)
def test_shared_and_unshared_calculation_agree(spec: str, target: str, src: str | None, dst: str | None) -> None:
    together = conform(spec, [target], src=src, dst=dst).entries
    again = conform(spec, [target], src=src, dst=dst).entries
    with unshared():
        alone = conform(spec, [target], src=src, dst=dst).entries
    assert together == again == alone


def test_each_program_is_timed_once_and_each_pair_has_its_codes_chosen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    timed: Counter[tuple[int, str]] = Counter()
    cells: Counter[tuple[str, str]] = Counter()
    load, telling = written.load_text, planning.telling_codes

    def loaded(text: str, name: str, target: Target) -> LoadedProgram:
        timed[id(target), text.partition("\n")[2]] += 1  # the first line is a comment
        return load(text, name, target)

    def told(src: Format, others: tuple[Format, ...], count: int) -> Codes:
        cells[src.name, others[0].name] += 1
        return telling(src, others, count)

    monkeypatch.setattr(written, "recorded_cycles", lambda _: {})
    monkeypatch.setattr(written, "load_text", loaded)
    monkeypatch.setattr(planning, "telling_codes", told)
    conform("tosa", ["a2a3"], src="i8")
    assert timed
    assert max(timed.values()) == 1
    assert cells
    assert max(cells.values()) == 1
    before = timed.total(), cells.total()
    with unshared():
        conform("tosa", ["a2a3"], src="i8", dst="f16")
    assert timed.total() > before[0]
    assert cells.total() > before[1]


@pytest.mark.parametrize("name", target_names())
def test_arithmetic_made_in_parts_is_that_made_at_once(name: str) -> None:
    target = load_target(name)
    pairs = [("f32", "u8"), ("u8", "f32"), ("i32", "i8"), ("f16", "bool"), ("i16", "u8"), ("bool", "i16"), ("u8", "u8")]
    for src, dst in pairs:
        found = arithmetic_between(target, FORMATS[src], FORMATS[dst])
        assert found == _at_once(target, Constants(FORMATS[src], FORMATS[dst])), (src, dst)


def _at_once(target: Target, constants: Constants) -> dict[str, tuple[LoweringStep, ...]]:
    if target.mechanism == "vliw":
        steps = list(vector_arithmetic(target, constants))
    else:
        steps = [*tile_arithmetic(target, constants), *tile_choices(target, constants)]
    found: dict[str, list[LoweringStep]] = {}
    for step in dict.fromkeys(steps):
        found.setdefault(step.src.name, []).append(step)
    return {source: tuple(listed) for source, listed in found.items()}


@pytest.mark.parametrize(
    ("src", "dst", "target"), [("f16", "u8", "a2a3"), ("bf16", "i8", "gaudi"), ("f32", "i8", "goya")]
)
def test_the_nearest_chain_is_that_of_all_chains(src: str, dst: str, target: str) -> None:
    demand = settle(CastRequest(src, dst, target, spec="exact"))
    catalogue = catalogue_of(load_target(target), demand.src, demand.dst)
    codes = telling_codes(demand.src, (demand.dst,), 4)
    found = nearest(catalogue, demand, codes)

    def ends(names: tuple[str, ...]) -> list[tuple[LoweringStep, ...]]:
        """All chains of up to two instructions, rereads before, between and behind them where they may be."""
        grown: list[tuple[LoweringStep, ...]] = [()]
        for place in range(3):
            here = demand.src if place == 0 else None
            grown += [(*one, step) for one in grown if not one or one[-1].is_instruction
                      for step in catalogue.rereads_of(here or one[-1].dst)
                      if place == 0 or catalogue.rereads_inside or step.dst == demand.dst]  # fmt: skip
            everything.extend(one for one in grown if one and one[-1].dst == demand.dst)
            grown = [(*one, step) for one in grown
                     for step in catalogue.from_format(one[-1].dst if one else demand.src)]  # fmt: skip
        return everything

    everything: list[tuple[LoweringStep, ...]] = []
    fewest = min(int((~demand.satisfied(codes, run_chain(one, codes))).sum()) for one in ends(()))
    assert found[0][1] == fewest
    assert int((~demand.satisfied(codes, run_chain(found[0][0], codes))).sum()) == fewest


def test_of_too_many_findings_the_one_not_asked_for_longest_goes() -> None:
    kept: Kept[int] = Kept(2)
    made: list[str] = []

    def make(name: str) -> int:
        made.append(name)
        return len(made)

    for name in ("a", "b", "a", "c", "a", "b"):
        kept.of(name, lambda name=name: make(name))
    assert made == ["a", "b", "c", "b"]
    assert len(kept) == 2


class _Slow:
    """A key that gives another thread its turn in the middle of being looked up."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], object] | None = None
        self.looks = 0

    def __hash__(self) -> int:
        self.looks += 1
        if self.meanwhile is not None and self.looks == 2:  # it was found, and is to become the latest
            other = Thread(target=self.meanwhile)
            other.start()
            other.join(0.1)
        return 1


def test_threads_share_findings() -> None:
    kept: Kept[str] = Kept(2)
    key = _Slow()
    assert kept.of(key, lambda: "first") == "first"
    kept.of("latest", str)
    key.looks, key.meanwhile = 0, lambda: kept.of("other", str)
    assert kept.of(key, lambda: "second") == "first"


def test_an_error_is_not_kept() -> None:
    shared: Shared[float] = Shared(2)
    with pytest.raises(ZeroDivisionError):
        shared.of("key", lambda: 1 / 0)
    assert shared.of("key", lambda: 1.0) == 1.0


def test_sharing_is_on_again_after_an_error() -> None:
    shared: Shared[object] = Shared(2)
    with pytest.raises(KeyError), unshared(), unshared():
        raise KeyError
    assert shared.of("key", object) is shared.of("key", object)
    with unshared():
        assert shared.of("key", object) is not shared.of("key", object)


def test_numbers_tell_apart_what_differs() -> None:
    numbers = Numbers(4)
    things = [(a, b) for a, b in product("abc", repeat=2)]
    for one, other in combinations(things, 2):
        assert numbers.of(one) != numbers.of(other)
        assert numbers.of(one) == numbers.of((*one,))


def test_a_copy_from_another_process_shares_with_the_first() -> None:
    spec, chip = load_specification("tosa"), load_target("a5")
    for thing in (spec, chip):
        known: Equals[object] = Equals(2)
        copy = pickle.loads(pickle.dumps(thing))
        assert known.first(thing) is thing
        assert copy is not thing
        assert known.first(copy) is thing
    changed = chip.model_copy(update={"clock_mhz": None} if "clock_mhz" in type(chip).model_fields else {"name": "b5"})
    assert known.first(changed) is changed


def test_codes_that_are_shared_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[Codes] = []
    of = Shared.of

    def sealed(self: Shared[object], key: object, make: Callable[[], object], held: object = None) -> object:
        found = of(self, key, make, held)
        if isinstance(found, np.ndarray):
            found.setflags(write=False)
            handed.append(found)
        return found

    monkeypatch.setattr(Shared, "of", sealed)
    for src, dst, target in (("f16", "i8", "a5"), ("f32", "i8", "a2a3"), ("i8", "e5m2", "gaudi2")):
        plan(CastRequest(src, dst, target, spec="tosa" if dst == "i8" else "onnx"))
    assert len(handed) > 3


def test_objects_are_given_up_by_age_and_all_at_once() -> None:
    chip = load_target("a5")
    copies = [pickle.loads(pickle.dumps(chip)) for _ in range(2)]
    known: Equals[object] = Equals(1)
    assert known.first(copies[0]) is copies[0]
    assert known.first(chip) is copies[0]
    forget()
    assert known.first(copies[1]) is copies[1]
    for number in (2, 3):
        known.first([number])
    assert known.first(chip) is chip
