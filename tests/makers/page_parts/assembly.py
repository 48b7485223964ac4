"""Tables of TPC assembly: declarations, generations and instructions, from `castsim.isa.tpc` and the targets."""

from __future__ import annotations

from makers.page_parts.markdown import code, codes, csv_text, table

from castsim.isa.tpc.forms import Feature
from castsim.isa.tpc.instructions import ALIASES, available, forms_of, mnemonics
from castsim.isa.tpc.parser import _SHAPES as SHAPES
from castsim.reports.target_template import told
from castsim.targets.loader import load_target, target_names

SLOTS = ("LOAD", "SPU", "VPU", "STORE")

MEANINGS = {
    "target": "The generation that the program is written for; `--target` overrides it.",
    "tensor": "A tensor by its number in `ld_tnsr` and `st_tnsr`. The first size is that of the fastest dimension; the "
    "array has the sizes in reverse order.",
    "reg": "The initial value of a register: bits in hexadecimal or a decimal number; for an I register five "
    "coordinates.",
    "vlm": "An array in vector local memory at a byte address: `in` (the default), `out` or `inout`.",
    "table": "A look-up table by its function id; `--in` supplies its values if the declaration has none.",
}
"""The meaning of each declaration."""


def generations() -> tuple[str, ...]:
    """Return the names of the targets that run TPC assembly, oldest first."""
    order = ("goya", "gaudi", "gaudib", "greco", "gaudi2")
    return tuple(sorted((n for n in target_names() if "tpc" in load_target(n).languages), key=order.index))


def declarations() -> str:
    """Return every declaration: how it is written, what it is for."""
    rows = ((code(f"// castsim: {shape}"), MEANINGS[name]) for name, shape in SHAPES.items())
    return table(("declaration", "meaning"), rows)


def generation_file() -> str:
    """Return the abilities of each generation as CSV."""
    names = generations()
    dialects = [load_target(name).dialect for name in names]
    rows = (
        (told(Feature)[feature.name], *("yes" if feature in dialect.features else "" for dialect in dialects))
        for feature in Feature
    )
    return csv_text(("ability", *names), rows)


def instructions() -> str:
    """Return the mnemonics by slot, and their older spellings."""
    slots: dict[str, dict[str, None]] = {}
    for mnemonic in mnemonics():
        found = {slot for form in forms_of(mnemonic) for slot in form.slots}
        slots.setdefault(" ".join(SLOTS[slot] for slot in sorted(found)), {})[mnemonic] = None
    older = ", ".join(f"`{other}` is `{name}`" for other, name in ALIASES.items())
    made = table(("slots", "instructions"), ((name, codes(found)) for name, found in slots.items()))
    return f"{made}\nOlder spellings: {older}.\n"


def instruction_file() -> str:
    """Return every instruction as CSV: operands, slots, types, switches, generations."""
    names = generations()
    dialects = {name: load_target(name).dialect for name in names}
    rows = (
        (
            form.pattern(), " ".join(SLOTS[slot] for slot in form.slots), " ".join(form.types),
            " ".join(dict.fromkeys(switch.name for switch in form.switches)),
            " ".join(name for name in names if available(form, dialects[name])),
        )
        for mnemonic in mnemonics()
        for form in forms_of(mnemonic)
    )  # fmt: skip
    return csv_text(("instruction", "slots", "types", "switches", "generations"), rows)
