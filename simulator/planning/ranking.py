"""Which of the chains that satisfy a request is the best: by the simulated cost of their programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product
from typing import Any

from castsim.isa.codes import Codes
from castsim.isa.errors import CastsimError
from castsim.planning.assembling import assembly_of, cost_of
from castsim.planning.assembly import Assembly, ProgramCost
from castsim.planning.demand import Demand, Verdict, grading_of
from castsim.planning.primitives import FormatCast, Integral, Primitive
from castsim.planning.proof import goes_by_breakpoints
from castsim.planning.request import CastRequest
from castsim.planning.steps import (
    Chain,
    Form,
    LoweringStep,
    RereadForm,
    TileCastForm,
    primitives_of,
    run_chain,
)
from castsim.targets import Target

_SIMULATED = 6
"""Chains of one length whose programs are simulated to rank them."""
_SPELLINGS = 6


def ranked(
    chains: list[Chain], demand: Demand, target: Target, request: CastRequest, codes: Codes
) -> list[tuple[Chain, Assembly, ProgramCost]]:
    """Return the most promising chains with their programs, the cheapest first.

    Raises:
        CastsimError: none of them can be written as a program; the first one's reason.
    """
    grading = grading_of(demand, codes)
    exact: dict[tuple[Primitive, ...], bool] = {}  # spellings of one chain share it

    def plainness(chain: Chain) -> tuple[int, ...]:
        primitives = primitives_of(chain)
        if primitives not in exact:
            exact[primitives] = grading.graded(run_chain(chain, codes)) is Verdict.EXACT
        return not exact[primitives], *_plainness(chain, demand)

    plain = sorted(chains, key=plainness)
    picked: dict[tuple[Any, ...], Chain] = {}
    for chain in (spelt for one in plain for spelt in _spellings(one)):
        picked.setdefault(_kind(chain), chain)
    found, reasons = [], []
    for chain in picked.values():
        try:
            assembly = assembly_of(chain, demand.src, demand.dst, target, request.rows, request.cols)
            found.append((chain, assembly, cost_of(assembly)))
        except CastsimError as error:
            reasons.append(error)
        if len(found) == _SIMULATED:
            break
    if not found:
        raise reasons[0]
    order = {id(chain): place for place, chain in enumerate(picked.values())}
    return sorted(found, key=lambda one: (one[2].rank, plainness(one[0]), order[id(one[0])]))


def _plainness(chain: Chain, demand: Demand) -> tuple[int, ...]:
    """Return the key by which one chain is preferable to another that is as exact: narrow, proven soon, plain."""
    wanted = {policy.rounding for policy in demand.references}
    strange = sum(
        primitive.policy.rounding not in wanted
        for primitive in primitives_of(chain)
        if isinstance(primitive, FormatCast | Integral)
    )
    instructions = [step for step in chain if step.is_instruction]
    width = sum(max(step.src.bits, step.dst.bits) for step in instructions)
    options = sum(len(step.forms[0].options) for step in chain)
    slow = int(demand.src.bits > 16 and not goes_by_breakpoints(demand, chain))
    return width, slow, strange, len(chain), options


def _kind(chain: Chain) -> tuple[Any, ...]:
    """Return the key of a chain's cost: formats and kinds of instructions, not rounding modes or constants."""
    return tuple(
        (step.src.name, step.dst.name, type(step.forms[0]), _mnemonic(step.forms[0]), _switches(step.forms[0]))
        for step in chain
    )


def _mnemonic(form: Form) -> str | None:
    """Return the mnemonic of a form; None for casts of tiles, which all have the same one, and for rereading bits."""
    return None if isinstance(form, TileCastForm | RereadForm) else form.mnemonic


def _switches(form: Form) -> tuple[Any, ...]:
    return (form.saturation, form.scratch) if isinstance(form, TileCastForm) else ()


def _spellings(chain: Chain) -> Iterator[Chain]:
    """Yield a chain with every spelling of its steps that may take another time."""
    choices: list[list[LoweringStep]] = []
    for step in chain:
        by_switches: dict[tuple[Any, ...], Form] = {}
        for form in step.forms:
            by_switches.setdefault(_switches(form), form)
        choices.append([replace(step, forms=(form,)) for form in by_switches.values()])
    yield from islice(product(*choices), _SPELLINGS)
