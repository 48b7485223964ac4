"""The record of real kernels: what they use, how much of it runs. `python tests real_kernels` writes it.

Counts come from the index of public kernels and the list of the forms in them (`tests/vectors/README_pto.md`). What is
said to run has run just then: every form as a program of its own, every other construct in a program below.
"""

# ruff: noqa: E501

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from kit.measured_record import MEASURED, write
from kit.real_form_runs import Outcome, kernels, listed, outcomes

from castsim import run
from castsim.isa.errors import CastsimError
from castsim.isa.pto.control_flow import is_foreign_name

RECORD = MEASURED / "real-kernels.json"
TILE = "!pto.tile_buf<vec, 8x64xf32, valid=?x?>"
FULL = "!pto.tile_buf<vec, 8x64xf32>"
OTHERS: Mapping[str, str] = {
    **{
        f"arith.{name}": f"%r = arith.{name} %i, %c3 : i32\npto.store_scalar %r, %out[%c0] : !pto.ptr<i32>, i32"
        for name in ("addi", "subi", "muli", "divsi", "remsi", "maxsi", "minsi")
    },
    "arith.index": "%r = arith.index_cast %i : i32 to index\n%s = arith.index_cast %r : index to i32",
    "arith.cmpi": "%r = arith.cmpi slt, %i, %c3 : i32",
    "arith.trunci": "%r = arith.trunci %i : i32 to i8",
    "arith.extsi": "%r = arith.extsi %i : i32 to i64",
    "scf.for": "scf.for %k = %c0 to %c2 step %c1 {\n%r = arith.addi %k, %c1 : index\n}",
    "scf.if": "%t = arith.constant true\nscf.if %t {\n%r = arith.addi %c0, %c1 : index\n}",
    "scf.yield": (
        "%r = scf.for %k = %c0 to %c2 step %c1 iter_args(%a = %i) -> (i32) {\n%n = arith.addi %a, %c3 : i32\n"
        "scf.yield %n : i32\n}"
    ),
    "set_validshape": (
        f"%t = pto.alloc_tile valid_row = %c2 valid_col = %c2 : {TILE}\npto.set_validshape %t, %c1, %c2 : {TILE}"
    ),
    "cmo.cacheinvalid": "pto.cmo.cacheinvalid all",
    "fence.barrier_all": "pto.fence.barrier_all #pto.fence_scope<gm>",
    "reserve_buffer": '%r = pto.reserve_buffer {name = "q", size = 8192, location = #pto.address_space<vec>, auto = true} -> i32',
    "import_reserved_buffer": '%r = pto.import_reserved_buffer {name = "q", peer_func = @consumer} -> i32',
    "aic_initialize_pipe": "pto.aic_initialize_pipe {dir_mask = 1, slot_size = 8192} (c2v_consumer_buf = %i : i32)",
    "aiv_initialize_pipe": "pto.aiv_initialize_pipe {dir_mask = 1, slot_size = 8192} (c2v_consumer_buf = %i : i32)",
    **{f"tfree_from_{core}": f"pto.tfree_from_{core} {{split = 1}}" for core in ("aic", "aiv")},
    **{f"tpop_from_{core}": f"%r = pto.tpop_from_{core} {{split = 1}} -> {FULL}" for core in ("aic", "aiv")},
    **{
        f"tpush_to_{core}": f"%t = pto.alloc_tile : {FULL}\npto.tpush_to_{core}(%t : {FULL}) {{split = 1}}"
        for core in ("aic", "aiv")
    },
}
"""Constructs that are no operations on tiles, each in a few lines."""

_FRAME = """func.func @k(%out: !pto.ptr<i32>, %i: i32) attributes {{pto.entry}} {{
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c3 = arith.constant 3 : i32
{}
return
}}
"""


@dataclass(frozen=True)
class Construct:
    """An operation on one target: in how many kernels, its forms by what became of them, counted by occurrence."""

    name: str
    kernels: int
    runs: int
    opaque: int
    refused: int

    @property
    def verdict(self) -> str:
        if self.refused:
            return "in part" if self.runs or self.opaque else "no"
        return "opaque" if self.opaque and not self.runs else "yes"


@cache
def other_runs(name: str, target: str) -> bool:
    """Whether a construct that is no operation on tiles runs, with time and, unless it is opaque, with values."""
    if name not in OTHERS:
        return False
    with TemporaryDirectory() as folder:
        path = Path(folder) / "k.pto"
        path.write_text(_FRAME.format(OTHERS[name]))
        try:
            run(path, target, args={"i": 7}, timing_only=True)
            run(path, target, args={"i": 7})
        except CastsimError:
            return False
    return True


@cache
def by_operation() -> Mapping[tuple[str, str], tuple[Outcome, ...]]:
    """What became of the forms of each operation on each target."""
    found: defaultdict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for outcome in (*outcomes(), *outcomes(of_vector_kernels=False)):
        found[outcome.form.operation, outcome.form.target].append(outcome)
    return {key: tuple(several) for key, several in found.items()}


def constructs(target: str) -> Iterator[Construct]:
    """Yield the constructs of a target, those of most kernels first."""
    used = Counter(name for row in kernels() if row["arch"] == target for name in row["ops"].split())
    for name, count in sorted(used.items(), key=lambda item: (-item[1], item[0])):
        counts: Counter[str] = Counter()
        for outcome in by_operation().get((name, target), ()):
            what = "refused" if outcome.refusal else "opaque" if outcome.opaque else "runs"
            counts[what] += outcome.form.occurrences
        if not counts:
            foreign = is_foreign_name(f"pto.{name}")
            counts["refused" if not other_runs(name, target) else "opaque" if foreign else "runs"] = 1
        yield Construct(name, count, counts["runs"], counts["opaque"], counts["refused"])


def verdicts(row: Mapping[str, str]) -> set[str]:
    known = {each.name: each.verdict for each in constructs_of(row["arch"])}
    return {known[name] for name in row["ops"].split()}


@cache
def constructs_of(target: str) -> tuple[Construct, ...]:
    return tuple(constructs(target))


def page() -> str:
    return "\n".join([*_head(), *_kernels(), *_missing(), *_tables(), ""])


def _head() -> Iterator[str]:
    yield "# Public Ascend kernels: what they use, and what runs"
    yield ""
    yield "Made by `python tests real_kernels`; a test holds it to what runs today."
    yield ""
    yield "The counts come from an index of the development half of the public vector kernels of real models (A2/A3 and"
    yield "A5; their texts are not free, so only facts about them stand here) and from the list of all forms, that is"
    yield "operations with their attributes and operand types, that occur in both halves. A form counts as running only"
    yield "if a program made for it has just run with values and time; tiles of the matrix unit and boxed tiles are"
    yield "opaque: such forms run with placeholders for their time, and nothing computes what they write."
    yield ""
    every = outcomes()
    rows = (
        ("run, values and time", [each for each in every if not each.refusal and not each.opaque]),
        ("opaque, time only", [each for each in every if each.opaque]),
        ("refused", [each for each in every if each.refusal]),
        ("all", list(every)),
    )
    yield "| forms of operations in vector kernels | forms | occurrences | share |"
    yield "|---|---|---|---|"
    total = sum(each.form.occurrences for each in every)
    for what, found in rows:
        count = sum(each.form.occurrences for each in found)
        yield f"| {what} | {len(found):,} | {count:,} | {100 * count / total:.2f} % |"
    yield ""


def _kernels() -> Iterator[str]:
    yield "## Kernels"
    yield ""
    yield "The index lists the operations of a kernel, not which forms of them it has. So two counts: kernels without any"
    yield "operation that is refused in all of its forms on their target, and those without any that is refused in a single"
    yield "one, wherever that form occurs. How many are covered lies between the two."
    yield ""
    yield "| class | target | functions | no operation refused in whole | nor in part | the former, with opaque operations |"
    yield "|---|---|---|---|---|---|"
    for kind in ("vector", "cube", "comm"):
        for target in ("a2a3", "a5"):
            rows = [verdicts(row) for row in kernels() if (row["class"], row["arch"]) == (kind, target)]
            if rows:
                covered = [each for each in rows if "no" not in each]
                surely = sum("in part" not in each for each in covered)
                opaque = sum("opaque" in each for each in covered)
                yield f"| {kind} | {target} | {len(rows)} | {len(covered)} | {surely} | {opaque} |"
    yield ""


def _missing() -> Iterator[str]:
    yield "## Refused forms"
    yield ""
    yield "| target | operation | occurrences | why |"
    yield "|---|---|---|---|"
    found: Counter[tuple[str, str, str]] = Counter()
    for each in outcomes():
        if each.refusal:
            why = listed(str(each.form)) or "not listed"
            found[each.form.target, each.form.operation, why] += each.form.occurrences
    for (target, operation, why), count in sorted(found.items(), key=lambda item: (-item[1], item[0])):
        yield f"| {target} | {operation} | {count} | {why} |"
    yield ""


def _tables() -> Iterator[str]:
    yield "## Constructs by number of kernels"
    for target in ("a2a3", "a5"):
        yield ""
        count = sum(row["arch"] == target for row in kernels())
        yield f"### {target}, {count} functions"
        yield ""
        yield "| construct | kernels | supported | occurrences that run | opaque | refused |"
        yield "|---|---|---|---|---|---|"
        for each in constructs_of(target):
            counted = (each.name, target) in by_operation()
            shown = (each.runs, each.opaque, each.refused) if counted else ("", "", "")
            cells = " | ".join(f"{number:,}" if number != "" else "" for number in shown)
            yield f"| `{each.name}` | {each.kernels} | {each.verdict} | {cells} |"


if __name__ == "__main__":
    write(RECORD, page())
