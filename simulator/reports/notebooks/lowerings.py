"""The lowering of a cast in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from castsim.planning.counterexample import Counterexample
from castsim.planning.lowering_answers import Answer
from castsim.reports.lower import code_text, number_text, required_text
from castsim.reports.lower_text import cost_text, evidence_text, headline, option_text
from castsim.reports.notebooks.columns import Columns
from castsim.reports.notebooks.markup import line, program_text, table, whole
from castsim.reports.notebooks.presentation import Presentation


class LoweringPresentation(Presentation):
    """What a target does for a cast, step by step."""

    def __init__(self, result: object) -> None:
        assert isinstance(result, Answer)
        self._result = result

    def tables(self) -> Mapping[str, Callable[[], Columns]]:
        """Return the steps."""
        return {"steps": self._steps}

    def _steps(self) -> Columns:
        chain = self._result.plan.chain
        return {
            "step": np.arange(1, len(chain) + 1, dtype=np.int64),
            "instruction": [step.name for step in chain],
            "src": [step.src.name for step in chain],
            "dst": [step.dst.name for step in chain],
            "options": [", ".join(step.forms[0].options) for step in chain],
        }

    def html(self) -> str:
        """Return the answer, the steps, the proof, the cost, where it fails if it does, the program."""
        result, found = self._result, self._result.plan
        demand, steps = found.demand, self._steps()
        rows = list(zip(*steps.values(), strict=True))
        return whole(
            line(f"{demand.src.name} -> {demand.dst.name} on {found.target.name}{headline(result)}", bold=True),
            *(line(option_text(found.target, name, value)) for name, value in result.settings),
            table(("step", "instruction", "from", "to", "options"), rows, ("step",)) if rows else "",
            line(evidence_text(found, found.evidence)) if found.evidence is not None else "",
            line(cost_text(found.cost)) if found.cost is not None else "",
            self._failing(found.counterexample) if found.counterexample is not None else "",
            program_text(result.text) if result.text is not None else "",
        )

    def _failing(self, found: Counterexample) -> str:
        rows = [
            (each.step or "input", each.format.name, code_text(each.code, each.format), number_text(each.value))
            for each in found.values
        ]
        right = required_text(found.required, self._result.plan.demand.dst)
        heads = ("after", "format", "bits", "value")
        return table(heads, rows, ("bits", "value")) + line(f"correct: {right}")
