"""What a random text is made of: the forms that it may use by themselves, and the registers that have values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from schedule_programs import target_of

from castsim.isa.tpc import FORMS, File, Form, Operand, Register, available
from castsim.isa.tpc.program import GROUPED

_HARDWARE = ("M0", "M1", "M2", "M3", "LD_TNSR_ID_REG", "ST_TNSR_ID_REG", "ST_RMW_REG", "LD_PARTIAL_REG",
             "ST_PARTIAL_REG")  # fmt: skip
_SKIPPED = ("loop", "jmpr", "jmpa", "halt", "prefetch")


@cache
def rows(generation: str) -> Mapping[str, tuple[Form, ...]]:
    """The rows of the table that a text may use by themselves, by mnemonic: no memory, no control."""
    found: dict[str, list[Form]] = {}
    language = target_of(generation).dialect
    for form in FORMS:
        known = form.mnemonic not in _SKIPPED and form.memory is None and available(form, language)
        words = {word for spec in form.operands for word in spec.accepts}
        if known and words.isdisjoint((*_HARDWARE, "PC")) and not ("Z" in words and "AD" in form.operands[0].accepts):
            found.setdefault(form.mnemonic, []).append(form)
    return {name: tuple(each) for name, each in found.items()}


@dataclass
class Known:
    """The registers that have values on every way to a place, by file."""

    V: set[int] = field(default_factory=set)
    SP: set[int] = field(default_factory=lambda: {0})
    VP: set[int] = field(default_factory=lambda: {0})
    AD: set[int] = field(default_factory=set)

    def copy(self) -> Known:
        return Known(set(self.V), set(self.SP), set(self.VP), set(self.AD))

    def holds(self, register: Register) -> bool:
        whole, size = GROUPED.get(register.file, (register.file, 1))
        known = getattr(self, whole.value, None)
        return known is None or set(range(register.index, register.index + size)) <= known

    def add(self, register: Register) -> None:
        whole, size = GROUPED.get(register.file, (register.file, 1))
        if hasattr(self, whole.value):
            getattr(self, whole.value).update(range(register.index, register.index + size))


def is_vector(operand: Operand) -> bool:
    return isinstance(operand, Register) and operand.file is File.V
