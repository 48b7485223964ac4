"""The instruction table as a whole: look-up by mnemonic and slot, cut down to a dialect."""

from __future__ import annotations

from functools import lru_cache

from castsim.isa.tpc import arithmetic_forms, convert_forms, memory_forms
from castsim.isa.tpc.dialect import Dialect
from castsim.isa.tpc.forms import Form

FORMS: tuple[Form, ...] = (
    *memory_forms.FORMS,
    *memory_forms.MOVE_FORMS,
    *arithmetic_forms.FORMS,
    *convert_forms.FORMS,
    *arithmetic_forms.PRODUCT_FORMS,
    *arithmetic_forms.BIT_FORMS,
    *memory_forms.TABLE_FORMS,
)
"""Every row."""

ALIASES = {"mov_dual_group": "mov_dg", "mov_group": "mov_g"}
"""Mnemonics of the old spelling. Source: tpc_opcodes table of the vendor's instruction database."""

UNMODELLED = frozenset(("ld_tnsr_cnvrt", "dbg"))
"""Instructions of which no source gives operands: one is of a later device, one is for debugging."""


@lru_cache(maxsize=1)
def _by_mnemonic() -> dict[str, tuple[Form, ...]]:
    found: dict[str, list[Form]] = {}
    for form in FORMS:
        found.setdefault(form.mnemonic, []).append(form)
    return {mnemonic: tuple(forms) for mnemonic, forms in found.items()}


def mnemonics() -> tuple[str, ...]:
    """Return all canonical mnemonics in the order of the table."""
    return tuple(_by_mnemonic())


def forms_of(mnemonic: str) -> tuple[Form, ...]:
    """Return the rows of a mnemonic in every slot and generation (none, if there is no such mnemonic)."""
    return _by_mnemonic().get(mnemonic, ())


def available(form: Form, dialect: Dialect) -> bool:
    """Whether a generation has this form: its features, and the registers its operands name by role."""
    return (
        dialect.features.issuperset(form.needs)
        and dialect.features.isdisjoint(form.lacks)
        and all(spec.dialect_role is None or spec.dialect_role in dialect.tensor_registers for spec in form.operands)
    )
