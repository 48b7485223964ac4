"""Tables of the tile language: formats, modes, casts and operations, from `castsim.isa` and the targets."""

from __future__ import annotations

from textwrap import fill

from makers.page_parts.markdown import code, codes, csv_text, table

from castsim.isa.formats import FORMATS, IntFormat, Overflow, Rounding
from castsim.isa.pto.control_flow import HANDLERS
from castsim.isa.pto.micro_forms import ROWS
from castsim.isa.pto.statement_forms import EVENTS, PIPES, ROUND_MODES, SATURATIONS
from castsim.isa.pto.strided_statements import PREFIX as STRIDED
from castsim.isa.pto.types import ELEMENTS, EXTENSIONS, PREFIXED
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.reports.pairs import pair_rows
from castsim.reports.target_template import told
from castsim.targets.csv_tables import SHIPPED, TableFile
from castsim.targets.loader import load_target

CHIPS = ("a2a3", "a5")


def formats() -> str:
    """Return the names of all number formats, with those of `.pto` types where they differ."""
    spellings: dict[str, list[str]] = {}
    for spelling, name in (*ELEMENTS.items(), *EXTENSIONS.items(), *PREFIXED.items()):
        spellings.setdefault(name, []).append(spelling)
    names: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for name, fmt in FORMATS.items():
        kind = None if isinstance(fmt, IntFormat) else name in spellings
        other = [each for each in spellings.get(name, ()) if each != name]
        names[kind].append(f"{code(name)} ({codes(other)})" if kind and other else code(name))
    parts = (
        ("In `.pto` types, by another name where one is in brackets", names[True]),
        ("Elsewhere", names[False]),
        ("Integers and truth values", names[None]),
    )
    return "\n".join(fill(f"* {what}: {', '.join(each)}.", 120, subsequent_indent="  ") for what, each in parts)


def modes() -> str:
    """Return tables of rounding modes and overflow policies."""
    words = {name.lower(): name for name in ROUND_MODES}
    rounding = [
        (code(mode.value), code(words.get(mode.value, "")) or "-", told(Rounding)[mode.name]) for mode in Rounding
    ]
    overflow = [(code(mode.value), told(Overflow)[mode.name]) for mode in Overflow]
    return (
        f"{table(('rounding', '`rmode` of `tcvt`', 'which neighbour it chooses'), rounding)}\n"
        f"`rmode` also knows {codes(name for name in ROUND_MODES if name.lower() not in {m.value for m in Rounding})}, "
        f"and `sat_mode` has the values {codes(SATURATIONS)}.\n\n"
        f"{table(('overflow', 'what becomes of results beyond the range'), overflow)}"
    )


def casts() -> str:
    """Return which casts the chips that run tiles have, a row a source."""
    found: dict[str, dict[str, list[str]]] = {}
    for chip in CHIPS:
        for row in pair_rows(load_target(chip)):
            found.setdefault(row.src, {name: [] for name in CHIPS})[chip].append(row.dst)
    rows = ((code(src), *(" ".join(made[chip]) or "-" for chip in CHIPS)) for src, made in found.items())
    return table(("from", *(f"to, on {chip}" for chip in CHIPS)), rows)


def cast_file() -> str:
    """Return the casts of the chips that run tiles as CSV."""
    headings = ("target", "from", "to", "rounding modes", "default", "fallback", "saturation", "tmp")
    rows = (
        (
            chip, row.src, row.dst, " ".join(row.modes), row.default or "exact", row.fallback or "", row.saturation,
            row.scratch or "",
        )
        for chip in CHIPS
        for row in pair_rows(load_target(chip))
    )  # fmt: skip
    return csv_text(headings, rows)


def operations() -> str:
    """Return the vector operations, each by the first of its kinds, then the other operations."""
    first = {operation.name: operation.kind.value for operation in reversed(VECTOR_OPERATIONS.values())}
    kinds: dict[str, dict[str, None]] = {}
    for operation in VECTOR_OPERATIONS.values():
        kinds.setdefault(first[operation.name], {})[operation.name] = None
    named = {f"pto.{name}" for name in (*VECTOR_OPERATIONS, *ROWS)}
    others = sorted(
        name for name in HANDLERS
        if name.startswith(("pto.", "scf.", "func.")) and not name.startswith(f"pto.{STRIDED}") and name not in named
    )  # fmt: skip
    single = ", ".join(f"{kind} {codes(names)}" for kind, names in kinds.items() if len(names) == 1)
    several = "\n".join(f"* {kind}: {codes(names)}" for kind, names in kinds.items() if len(names) > 1)
    return (
        f"{several}\n* {single}\n\nOperations of another form: {codes(others)}; "
        "`arith`, `math` and `index` as in [section 7.6](#76-scalar-operations).\n\n"
        f"Pipes of flags and barriers: {codes(PIPES)}. Events: {codes((min(EVENTS), max(EVENTS)), ' to ')}.\n"
    )


def operation_file() -> str:
    """Return every vector operation as CSV, with the element types that each chip has."""
    types = {chip: _types(chip) for chip in CHIPS}
    headings = ("operation", "kind", "function", "operands", "attribute", *CHIPS, "section")
    rows = (
        (
            operation.name, operation.kind.value, operation.function, "; ".join(operation.spellings),
            operation.attribute or "", *(types[chip].get(operation.mnemonic, "") for chip in CHIPS), operation.section,
        )
        for operation in VECTOR_OPERATIONS.values()
    )  # fmt: skip
    return csv_text(headings, rows)


def _types(chip: str) -> dict[str, str]:
    """Return the element types of each operation of a chip."""
    rows = TableFile(SHIPPED / f"{chip}.toml", "operations", f"{chip}_operations.csv").rows()
    return {str(row["mnemonic"]): _listed(row["types"]) for row in rows}


def _listed(cell: object) -> str:
    return " ".join(map(str, cell)) if isinstance(cell, list | tuple) else str(cell).replace(";", " ")
