"""A planned cast as JSON, and what its text shares with it; ways to a block format; lowered casts that ran again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from castsim.isa.formats import Format, IntFormat
from castsim.planning import Chain, Counterexample, Plan, Refuted
from castsim.planning.demand import Number, Required
from castsim.planning.lowering_answers import Answer
from castsim.reports.documents import VERSIONS, Document, document, numbered
from castsim.reports.numbers import bits_text, ends_document, number_document

if TYPE_CHECKING:
    from castsim.evidence.verification.lowering import LoweringRecord
    from castsim.running.block_lowering import BlockLowering


def answer_document(answer: Answer, out: str | None) -> Document:
    """Return an answer as JSON; `out` is the file that its program was written to.

    `options` are those of the target with which the program is to be run, given or chosen; `without_options` is where
    the target fails without the chosen ones, `native_with_options` the single instruction beside a chain.
    """
    native = answer.native
    return {
        **lower_document(answer.plan, out),
        **document(answer, "kind", kind="way"),
        "options": dict(answer.settings),
        "options_chosen": [name for name, _ in answer.chosen],
        "without_options": None if answer.refuted is None else refuted_document(answer.refuted, answer.plan.demand.dst),
        "native_with_options": None
        if native is None
        else {
            "options": dict((*answer.given, *native.setting)),
            "chain": chain_document(native.plan.chain),
            "cycles_per_element": None if native.plan.cost is None else native.plan.cost.cycles_per_element,
        },
        **document(answer, "text", text="program"),
    }


def lower_document(found: Plan, out: str | None) -> Document:
    """Return a plan as JSON; `out` is the file that its program was written to.

    `evidence` says how the verdict was reached: `method` is one of `castsim.planning.Method`, `codes` how many went
    through, `proves` whether that leaves none out; `proven` is true as well of what a counterexample refutes.
    """
    cost, evidence, demand = found.cost, found.evidence, found.demand
    return {
        "specification": demand.label,
        "version_asked": None if found.request.version is None else str(found.request.version),
        "rule": demand.cast.rule.meaning,
        **document(demand, "src", "dst"),
        **document(found, "target", "kind", "verdict", "proven", "claim", kind="way"),
        "chain": chain_document(found.chain),
        "evidence": None if evidence is None else document(evidence, "method", "codes", "proves", "argument"),
        "cost": None if cost is None else document(cost, *_COST, registers="vector_registers"),
        "counterexample": counterexample_document(found.counterexample, demand.dst),
        "refuted": [refuted_document(one, demand.dst) for one in found.refuted],
        **document(found, *_OUTCOME, **_OUTCOME_KEYS),
        "file": out if found.text is not None else None,
    }


_OUTCOME = ("searched", "reason", "nearest", "text")
_OUTCOME_KEYS = {"searched": "steps_searched", "nearest": "nearest_format", "text": "program"}
_COST = ("cycles", "elements", "cycles_per_element", "scratch_bytes", "buffer_bytes", "registers")


def chain_document(chain: Chain) -> list[Document]:
    """Return the steps of a chain."""
    return [
        {"instruction": step.name, "options": list(step.forms[0].options), **document(step, "src", "dst")}
        for step in chain
    ]


def refuted_document(one: Refuted | Plan, dst: Format) -> Document:
    """Return a chain that fails, and where."""
    return {"chain": chain_document(one.chain), "counterexample": counterexample_document(one.counterexample, dst)}


def counterexample_document(found: Counterexample | None, dst: Format) -> Document | None:
    """Return a counterexample as JSON: every value on the way, and what would be right."""
    if found is None:
        return None
    required = found.required
    ends = required.lowest, required.highest, required.further
    return {
        "values": [
            {
                **document(traced, "step", "format"),
                **number_document(traced.code, traced.value, traced.format, code_text),
            }
            for traced in found.values
        ],
        "required": {**ends_document(ends, dst, code_text), "nan": required.nan},
    }


def code_text(code: int, fmt: Format) -> str:
    """Return a code in hexadecimal; of a boolean the whole byte, which may be true without being 1."""
    whole = isinstance(fmt, IntFormat) and fmt.boolean
    return f"0x{code:02x}" if whole else bits_text(code, fmt)


def number_text(value: Number) -> str:
    """Return a number as a report shows it: whole where it is, else in the shortest decimal."""
    if isinstance(value, float):
        return "-0" if value == 0 else str(value)
    if value.denominator == 1:
        return str(value.numerator)
    return repr(float(value))


def required_text(required: Required, dst: Format) -> str:
    """Return in words what would be right."""
    parts = []
    if required.lowest is not None and required.highest is not None:
        low, high = (
            f"{number_text(value)} ({code_text(code, dst)})" for code, value in (required.lowest, required.highest)
        )
        parts.append(low if required.lowest == required.highest else f"{low} to {high}")
        if required.further is not None:
            parts.append(f"{number_text(required.further[1])} ({code_text(required.further[0], dst)})")
    if required.nan:
        parts.append("NaN")
    return " or ".join(parts)


# The ways to a block format on a target.


def block_lowering_document(found: BlockLowering, out: str | None) -> Document:
    """Return the document; `out` is the file that the first program was written to."""
    return {
        "schema_version": VERSIONS.get("lower-blocks", 1),
        **document(found, "src", "format", "target", "rows", "cols"),
        "ways": [
            {
                **document(way, "kind", "rule", "operations", "cycles"),
                "cycles_per_element": way.cycles / (found.rows * found.cols),
                **document(way, "differs", "program"),
            }
            for way in found.ways
        ],
        **document(found, "refused"),
        "file": out if found.ways else None,
    }


# A record of lowered casts that were run again.


def lowering_document(record: LoweringRecord) -> Document:
    """Return a record as JSON, attributes by name."""
    found = record.document()
    return {
        **found,
        "schema_version": VERSIONS["verify-lowering"],  # of the command's document, not of the record
        "results": [{**row, "attributes": numbered(dict(row["attributes"]))} for row in found["results"]],
        "missing": [{**row, "attributes": numbered(dict(row["attributes"]))} for row in found["missing"]],
    }
