"""Answers: what a target does for a cast, with the options that software can set.

found = answer(CastRequest("f32", "f16", "a5", spec="tosa"))
found.kind, found.plan.verdict, found.settings   # OPTIONS, CONFORMS, (("ctrl_48_at_start", 1),)
"""

from castsim.planning.lowering_answers.answer import (
    Alternative,
    Answer,
    Choice,
    Setting,
    answer,
    answer_through,
    changed,
    choices,
    settable,
    setting_of,
)
from castsim.planning.lowering_answers.lower import lower

__all__ = [
    "Alternative",
    "Answer",
    "Choice",
    "Setting",
    "answer",
    "answer_through",
    "changed",
    "choices",
    "lower",
    "settable",
    "setting_of",
]
