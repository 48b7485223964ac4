"""Forms that run but that the intrinsic header lacks: what is to be said of them, without running a program.

They break no rule. Source: docs/reference/tpc.md section 2.7.
"""

from __future__ import annotations

from castsim.machines.vliw.lint.finding import LintFinding
from castsim.machines.vliw.lint.flow import Flow


def notices(flow: Flow) -> tuple[LintFinding, ...]:
    """Return one notice per instruction and kind, in the order of the text; `rule` is the kind."""
    return tuple(
        LintFinding(notice.kind, plan.site.bundle, notice.text, plan.site.span)
        for plans in flow.plans
        for plan in plans
        if plan.meaning is not None
        for notice in plan.meaning.notices
    )
