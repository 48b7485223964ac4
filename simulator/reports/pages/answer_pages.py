"""Pages and text reports of look-ups, each built from the JSON document alone: targets, programs."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import groupby, pairwise
from math import ceil
from pathlib import PurePath
from typing import Any, TypeAlias, cast

from rich.console import Group, RenderableType
from rich.text import Text as StyledText

from castsim.reports.documents import Json, Keys, keys_of
from castsim.reports.pages.blocks import (
    Block,
    Cell,
    Figure,
    Figures,
    Folded,
    Line,
    Page,
    PageSection,
    PageTable,
    ResultsView,
    Text,
)
from castsim.reports.terminal import indented, table

Entry: TypeAlias = Mapping[str, Any]
"""An object of a JSON document."""

Column: TypeAlias = str | Callable[[Entry], Any]
"""The source of a column: a key of each entry, a format of its keys (`{src} -> {dst}`), or a function of it."""

Columns: TypeAlias = Mapping[str, Column]
"""The columns of a table by their headings."""

# Values of JSON in words: units behind numbers, lists with commas, nothing for what is absent.

_WITH_UNIT = re.compile(
    r"((?P<stem>\w+?)_)?(?P<unit>cycles|bytes|bits|elements|blocks|trips|rows|lanes)(?P<per>_per_\w+)?"
)
"""Pattern of a key that ends in the unit of its number."""

_ACRONYMS = {"ub": "UB", "dst": "destination", "src": "source", "startup": "start-up"}


def words(key: str) -> str:
    """Return a key in words: `startup_cycles` becomes start-up cycles."""
    return " ".join(_ACRONYMS.get(part, part) for part in key.replace("_", " ").split())


def in_words(value: Json) -> str:
    """Return a document's value in one line; empty for null and for empty lists and objects."""
    match value:
        case None | "":
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.6g}"
        case str():
            return value
        case Mapping():
            return "; ".join(filter(None, (_quantity(key, item) for key, item in value.items())))
    return ("; " if any(isinstance(item, Mapping) for item in value) else ", ").join(map(in_words, value))


def _quantity(key: str, value: Json) -> str:
    """Return a value with its name and the unit from the end of its key."""
    text = in_words(value)
    if not text:
        return ""
    if key == "megahertz":
        return f"{text} MHz"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if match := _WITH_UNIT.fullmatch(key):
            unit = match["unit"].removesuffix("s") if value == 1 else match["unit"]
            return f"{words(match['stem'] or '')} {text} {unit} {words(match['per'] or '')}".strip()
        return f"{words(key)} {text}"
    return f"{words(key)}: {text.replace('; ', ', ') if isinstance(value, Mapping) else text}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 cast, 2 casts, 2 entries."""
    plural = noun if number == 1 else f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number:,} {plural}"


def listed(parts: Iterable[str]) -> str:
    """Return parts of a sentence with commas, and `and` before the last."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


# Parts of pages.


def entry_table(
    entries: Sequence[Entry], columns: Columns, caption: str = "", *, most: int = 300, sources: int = 0
) -> PageTable:
    """Return a table with a row for each entry, without empty columns.

    The last `sources` columns give the origin of a row: pages show them, text reports do not.
    """
    filled = []
    for number, (heading, column) in enumerate(columns.items()):
        values = [_value(entry, column) for entry in entries]
        if any(value not in (None, "", [], {}) for value in values) or not entries:
            filled.append((heading, values, number >= len(columns) - sources))
    numbers = tuple(
        number
        for number, (_, values, _) in enumerate(filled)
        if values and all(value is None or _is_number(value) or _DECIMAL.fullmatch(str(value)) for value in values)
    )
    rows = tuple(zip(*([_cell(value) for value in values] for _, values, _ in filled), strict=True))
    first_source = len(filled) - sum(is_source for _, _, is_source in filled)
    return PageTable(
        caption, tuple(heading for heading, _, _ in filled), rows, numbers, most=most, reported=first_source
    )


def _value(entry: Entry, column: Column) -> Any:
    if not isinstance(column, str):
        return column(entry)
    return column.format_map(entry) if "{" in column else entry[column]


def same(*keys: str) -> Columns:
    """Return columns whose headings are their keys."""
    return dict(zip(keys, keys, strict=True))


def columns_of(form: type[Keys], *names: str) -> Columns:
    """Return the columns of an object's keys that have a heading, or of the named ones in their order."""
    keys = keys_of(form)
    meanings = {name: keys[name][0] for name in names or keys if keys[name][0].heading}
    return {
        meaning.heading: f"{{{meaning.key or name}:{meaning.form}}}" if meaning.form else meaning.key or name
        for name, meaning in meanings.items()
    }


_DECIMAL = re.compile(r"[+-]?\d[\d,]*(\.\d+)?(e[+-]\d+)?")
"""A number with given digits."""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: Any) -> Cell:
    return value if value is None or _is_number(value) else in_words(value)


def summary_section(answer: str, *further: str, figures: Sequence[Figure] = (), alarm: bool = False) -> PageSection:
    """Return the first section: the answer in a sentence, figures, then the explanation."""
    first = Text((Line(answer, "alarm" if alarm else "answer"),))
    lines = tuple(Line(text) for text in further if text)
    blocks = (first, *((Figures(tuple(figures)),) if figures else ()), *((Text(lines),) if lines else ()))
    return PageSection("summary", "Summary", blocks)


def titled_section(title: str, *blocks: Block) -> PageSection:
    """Return a section whose link name is its title."""
    return PageSection(re.sub(r"\W+", "-", title.lower()).strip("-"), title, blocks)


def table_section(
    title: str,
    entries: Sequence[Entry],
    columns: Columns,
    caption: str = "",
    *,
    most: int = 300,
    sources: int = 0,
    remark: str = "",
) -> PageSection:
    """Return a section with a table from `entry_table` and a remark below it; empty without entries."""
    blocks: list[Block] = [entry_table(entries, columns, caption, most=most, sources=sources), *_remarks(remark)]
    return titled_section(title, *(blocks if entries else []))


def _remarks(text: str) -> tuple[Text, ...]:
    return (Text((Line(text, "dim"),)),) if text else ()


def _source_section(document: Entry) -> PageSection:
    return titled_section("Source", Text((Line(f"{document['status'].capitalize()}: {document['source']}"),)))


Sections: TypeAlias = Iterator[PageSection]
PageMaker: TypeAlias = Callable[[Entry], Page]

PAGES: dict[str, PageMaker] = {}
"""The page builder of each document that has a page, by the document's name."""


def page_of_document(
    name: str, title: str | Callable[[Entry], str], command: str | Callable[[Entry], str]
) -> Callable[[Callable[[Entry], Sections]], PageMaker]:
    """Register a function that yields sections as the page of documents with this name, without empty sections.

    `title` and `command` are functions of the document, or formats of its keys and of `stem`, its file's base name.
    """

    def page_maker(sections: Callable[[Entry], Sections]) -> PageMaker:
        @wraps(sections)
        def page(document: Entry) -> Page:
            keys = {**document, "stem": PurePath(str(document.get("file") or document.get("program"))).name}
            heading, words = (
                text.format_map(keys) if isinstance(text, str) else text(keys) for text in (title, command)
            )
            filled = tuple(section for section in sections(document) if section.blocks)
            return Page(words.split()[1], heading, words, filled, dict(document))

        PAGES[name] = page
        return page

    return page_maker


_PROVENANCE: Columns = {
    "status": "status",
    "source": lambda entry: entry.get("source"),
    "note": lambda entry: entry.get("note") or (f"set by {entry['set_by']}" if entry.get("set_by") else ""),
}


# Targets: the list, one target, one of its casts, two targets side by side.


@page_of_document("targets-list", "Targets and specifications", "castsim targets")
def targets_list_page(document: Entry) -> Sections:
    """Yield the sections on all targets and specifications."""
    targets, specifications = document["targets"], document["specifications"]
    yield summary_section(
        f"castsim has {counted(len(targets), 'target')} and {counted(len(specifications), 'specification')} of casts.",
        "Run `castsim targets NAME` for one of them and `castsim targets NAME SRC DST` for one cast.",
    )
    columns: Columns = {"target": "name", "chip": "title", **same("mechanism"), "other names": _other_names}
    yield table_section("Targets", targets, {**columns, **same("casts")})
    columns = {"specification": "name", **same("title", "versions", "casts")}
    yield table_section("Specifications", specifications, columns)


def _other_names(target: Entry) -> list[str]:
    return [name for name in target["architectures"] if name != target["name"]]


_PAIR_LEGEND = (
    "default: the rounding mode used when a program names none. fallback: the mode used when it names one that the "
    "cast lacks. switchable: when a program can turn saturation on or off."
)


@page_of_document("targets", "{name}: {title}", "castsim targets {name}")
def target_page(document: Entry) -> Sections:
    """Yield the sections on a target: casts, facts by subject, options, functions of TPC-C."""
    name, facts, options = document["name"], document["facts"], document["options"]
    operations = sum(fact["name"].startswith("tile_operations[") for fact in facts)
    parts = [counted(document["casts"], "cast")]
    parts += [counted(operations, "other tile operation")] if operations else []
    parts.append(counted(len(options), "option"))
    programs = "TPC programs in assembly and C" if "tpc" in document["languages"] else "PTO programs"
    other = _other_names(document)
    yield summary_section(
        f"{name} is the {document['title']}: {listed(parts)}.",
        f"It runs {programs}{f', which may also call it {listed(other)}' if other else ''}. "
        f"`castsim targets {name} SRC DST` shows one cast.",
        f"Of its {len(facts)} facts, {listed(_statuses(Counter(fact['status'] for fact in facts)))}.",
        figures=tuple(_target_figures(facts)),
    )
    yield table_section("Casts", document["pairs"], _PAIR_COLUMNS, most=10, remark=_PAIR_LEGEND)
    yield titled_section("Facts", *_fact_groups(facts))
    if options:
        columns: Columns = {"option": "name", "default": "value", "values": "legal", **same("meaning"), **_PROVENANCE}
        table = entry_table(options, columns, most=4, sources=2)
        yield titled_section("Options", *_remarks("Set an option with `castsim run --option NAME=VALUE`."), table)
    if document.get("builtins"):
        yield titled_section(
            "Functions of TPC-C",
            folded_table("Cast builtins", entry_table(document["builtins"], _BUILTINS, sources=3)),
            folded_table("Special functions", entry_table(document["special_functions"], _FUNCTIONS)),
            *_remarks("`castsim builtin NAME` computes one of them."),
        )


_BUILTINS: Columns = {"builtin": "name", "result (arguments)": "signature", "vector operations": "vpu_operations",
                      "order of the result": "result_order", **_PROVENANCE}  # fmt: skip
_FUNCTIONS: Columns = {"function": "name", "result (arguments)": "signature", "simulated": "modelled", **same("kind")}


@page_of_document("builtin-list", "Functions of TPC-C", "castsim builtin")
def builtin_list_page(document: Entry) -> Sections:
    """Yield the sections on the functions of TPC-C that targets have."""
    targets = document["targets"]
    counts = [f"{target['name']} {len(target['builtins'])}" for target in targets]
    functions = targets[0]["special_functions"]
    yield summary_section(
        f"Cast builtins of TPC-C: {listed(counts)}. Special functions: {len(functions)}, the same on all targets.",
        "`castsim builtin NAME` computes one of them and shows whether castsim claims the values of the chip.",
    )
    for target in targets:
        yield table_section(f"Cast builtins of {target['name']}", target["builtins"], _BUILTINS, sources=3)
    yield table_section("Special functions", functions, _FUNCTIONS)


_STATUS_WORDS = {
    "measured": "measured",
    "documented": "documented by the vendor",
    "fitted": "fitted here to measurements",
    "vendor-model": "taken from the vendor's cost model",
    "assumed": "assumed",
}


def _statuses(counts: Mapping[str, int]) -> Iterator[str]:
    first = True
    for status, meaning in _STATUS_WORDS.items():
        if number := counts.get(status, 0):
            verb = ("is " if number == 1 else "are ") if first else ""
            yield f"{number} {verb}{meaning}"
            first = False


def _target_figures(facts: Sequence[Entry]) -> Iterator[Figure]:
    for fact in facts:
        part, _, name = fact["name"].partition(".")
        if part == "frequency":
            yield Figure("clock", fact["value"]["megahertz"], "MHz", fact["status"])
        elif part == "memories" and "capacity_bytes" in fact["value"]:
            label = {"ub": "UB, on-chip buffer"}.get(name, words(name))
            yield Figure(label, fact["value"]["capacity_bytes"], "bytes", fact["status"])


_PAIR_COLUMNS: Columns = {
    "from": "src",
    "to": "dst",
    "rounding modes": lambda pair: " ".join(pair["modes"]) or "one only",
    "default": lambda pair: pair["default"] or "exact",
    **same("fallback", "saturation", "switchable"),
    "tmp tile": lambda pair: words(pair["scratch"] or ""),
}


_GROUPED = 5
"""Entries with equal keys, which form a separate table with a column for each key."""

_TITLES = {
    "tile_operations": "Tile operations",
    "arithmetic": "Latencies of vector instructions",
    "timing.vector": "Timing of vector instructions",
    "timing.paced": "Timing of paced loops",
    "free_facts": "Facts that calibration may fit",
    "configuration": "Configuration registers",
    "latency_rules": "Rules of latencies",
}
"""Titles of groups of facts by section of the description; other groups use the section's name."""


def _fact_groups(facts: Sequence[Entry]) -> Iterator[Block]:
    """Yield facts by section of the description; small sections are merged."""
    alike: dict[tuple[str, ...], list[Entry]] = {}
    for fact in facts:
        part = re.sub(r"(\[\d+\]|\.[^.]*)$", "", fact["name"])
        alike.setdefault((part, *sorted(fact["value"])), []).append(fact)
    tables = {id(fact): group for group in alike.values() if len(group) >= _GROUPED for fact in group}
    rest: dict[str, list[Entry]] = {"Clock and memories": [], "Timing": [], "Other facts": []}
    titles = {"frequency": "Clock and memories", "memories": "Clock and memories", "timing": "Timing"}
    for fact in facts:
        if id(fact) not in tables:
            rest[titles.get(re.split(r"[.\[]", fact["name"])[0], "Other facts")].append(fact)
    columns: Columns = {"fact": "name", "value": "value", **_PROVENANCE}
    groups = [(title, entries, entry_table(entries, columns, sources=2)) for title, entries in rest.items() if entries]
    for key, entries in alike.items():
        if len(entries) >= _GROUPED:
            title = _TITLES.get(key[0], words(key[0]).capitalize())
            groups.append((title, entries, _uniform_table(entries)))
    for title, entries, block in groups:
        yield folded_table(title, block, Counter(entry["status"] for entry in entries))


def _uniform_table(facts: Sequence[Entry]) -> PageTable:
    """Return a table of facts with equal keys, one column per key."""
    keys = list(facts[0]["value"])
    named = {} if "[" in facts[0]["name"] else {"name": lambda fact: fact["name"].rpartition(".")[2]}
    values = {words(key): (lambda fact, key=key: fact["value"][key]) for key in keys}
    return entry_table(facts, {**named, **values, **_PROVENANCE}, sources=2)


def folded_table(title: str, block: PageTable, statuses: Mapping[str, int] | None = None) -> Folded:
    """Return a folded table; its title counts the rows, in total and for each of the `statuses`."""
    counts = f": {', '.join(f'{number} {status}' for status, number in statuses.items())}" if statuses else ""
    return Folded(f"{title} ({len(block.rows)}{counts})", (block,))


@page_of_document("targets-pair", "{src} -> {dst} on {target}", "castsim targets {target} {src} {dst}")
def target_pair_page(document: Entry) -> Sections:
    """Yield the sections on a cast of a target: rounding, saturation, instruction."""
    default, sequence = document["default"], document["scratch_sequence"]
    rounding = "is exact" if default is None else f"rounds by {default} unless the program names another mode"
    saturation = {"on": "saturation is on", "off": "saturation is off", "clamps": "out-of-range values clamp",
                  "not needed": "no value is out of range"}  # fmt: skip
    beyond = saturation.get(document["saturation"], f"out-of-range values are {document['saturation'][6:]}")
    cast = f"On {document['target']}, {document['src']} -> {document['dst']}"
    yield summary_section(f"{cast} {rounding}; {beyond}.", sentence(document["note"]))
    in_force: Columns = {"in force": lambda mode: mode["in_force"] or "exact", "instruction": "mnemonic"}
    modes: Columns = {"rounding asked": "requested", **in_force, **same("warning")}
    yield table_section("Rounding", document["mnemonics"], modes)
    switches = {"saturation asked": "requested", "tmp tile": "scratch", "in force": "in_force", **same("warning")}
    yield table_section("Saturation", document["saturation_modes"], switches)
    properties: Columns = {"property": lambda item: words(item["name"]), **same("value")}
    yield table_section("Instruction", document["configuration"], properties)
    if sequence is not None:
        steps = [{"instructions for one element": step} for step in sequence["operations"]]
        title, source = "With saturation off and a tmp tile", f"{sequence['status'].capitalize()}: {sequence['source']}"
        yield table_section(title, steps, same("instructions for one element"), remark=source)
    yield _source_section(document)


def sentence(text: str) -> str:
    """Return a text with a capital letter and a full stop; an empty text stays empty."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}" if text else ""


def _sides(document: Entry) -> tuple[str, str]:
    """Return the names of two targets, made distinct if two descriptions share a name."""
    first, second = document["targets"]
    return (f"{first} (first)", f"{second} (second)") if first == second else (first, second)


@page_of_document(
    "targets-diff",
    lambda document: " and ".join(_sides(document)),
    lambda document: f"castsim targets --diff {' '.join(document['targets'])}",
)
def targets_diff_page(document: Entry) -> Sections:
    """Yield the sections on two targets side by side."""
    (first, second), rows = _sides(document), document["rows"]
    alone = [sum(len(row[key]) for row in rows) for key in ("only_first", "only_second")]
    common = sum(len({*row["first"]} & {*row["second"]}) for row in rows)
    changed, *single = _differing(document["facts"])
    yield summary_section(
        f"{first} and {second} share {counted(common, 'cast')}; {first} has {alone[0]} more and {second} has "
        f"{alone[1]} more.",
        f"Of their facts, {len(changed)} have different values; {first} has {len(single[0])} facts of its own and "
        f"{second} has {len(single[1])}."
        if document["facts"]
        else "Their facts are the same.",
    )
    both: Columns = {"from": "src", "both": lambda row: [dst for dst in row["first"] if dst in row["second"]]}
    yield table_section("Casts", rows, {**both, f"only {first}": "only_first", f"only {second}": "only_second"})
    facts: Columns = {
        "fact": "name",
        first: lambda fact: _unequal(fact["first"], fact["second"]),
        second: lambda fact: _unequal(fact["second"], fact["first"]),
    }
    yield table_section("Facts that differ", changed, facts, most=12)
    folds = [
        folded_table(f"Only {name}", entry_table(entries, {"fact": "name", "value": key}))
        for name, key, entries in zip((first, second), ("first", "second"), single, strict=True)
        if entries
    ]
    yield titled_section("Facts of one target", *folds)


def _differing(facts: Sequence[Entry]) -> tuple[Sequence[Entry], Sequence[Entry], Sequence[Entry]]:
    """Return the facts that differ, those of the first target alone, and those of the second alone.

    Facts in a list are matched by their subject, an operation or a cast, not by their index.
    """
    merged: dict[str, dict[str, Any]] = {}
    for fact in facts:
        for side in ("first", "second"):
            if fact[side] is not None:
                name = _name_of_fact(fact["name"], fact[side])
                merged.setdefault(name, {"name": name, "first": None, "second": None})[side] = fact[side]
    both: list[Entry] = [fact for fact in merged.values() if None not in (fact["first"], fact["second"])]
    firsts, seconds = ([fact for fact in merged.values() if fact[other] is None] for other in ("second", "first"))
    return [fact for fact in both if fact["first"] != fact["second"]], firsts, seconds


def _name_of_fact(name: str, value: Json) -> str:
    part, bracket, _ = name.partition("[")
    if not bracket or not isinstance(value, Mapping):
        return name
    if "mnemonic" in value:
        return f"{part}.{value['mnemonic']}"
    if "src" in value and "dst" in value:
        return f"{part}, {value['src']} -> {value['dst']}"
    return f"{part}, {in_words(value['facts'])}" if "facts" in value else name


def _unequal(value: Json, other: Json) -> Json:
    """Return the items of an object that differ from another object's; if all shared items are equal, its own items."""
    if not isinstance(value, Mapping) or not isinstance(other, Mapping):
        return "none" if value in (None, "", [], {}) else value
    shared = [key for key in value if key in other and value[key] != other[key]]
    own = [key for key in value if key not in other and value[key] not in (None, "", [], {})]
    return {key: _unequal(value[key], other.get(key)) for key in shared or own} or "none"


# Specifications.


@page_of_document("specification", "{name}: {title}", "castsim targets {name}")
def specification_page(document: Entry) -> Sections:
    """Yield the sections on a specification: casts, rules, attributes."""
    name, versions, rescale = document["name"], document["versions"], document["rescale"]
    yield summary_section(
        f"{name} ({document['title']}) specifies {counted(document['casts'], 'cast')} by "
        f"{counted(len(document['rules']), 'rule')}.",
        "It defines the accepted results of a cast; it cannot run programs.",
        f"Versions {', '.join(versions)}; castsim takes {document['default_version']} unless you name another. "
        f"`castsim targets {name} SRC DST` shows the rules of one cast.",
    )
    pairs: Columns = {
        "from": lambda pair: " ".join(pair["src"]), "to": lambda pair: " ".join(pair["dst"]), **same("since"),
        "requires": _required, "when": lambda pair: _condition(pair, "\n"), **same("rule"),
    }  # fmt: skip
    yield table_section("Casts", document["pairs"], pairs, most=10)
    yield _rules_section(document["rules"])
    attributes: Columns = {"attribute": "name", "values, default first": "values", **same("since", "meaning")}
    yield table_section("Attributes", document["attributes"], {**attributes, **_PROVENANCE}, sources=2)
    if rescale is not None:
        inputs, outputs, modes = (", ".join(rescale[key]) for key in ("inputs", "outputs", "rounding_modes"))
        line = Line(f"RESCALE takes {inputs} and gives {outputs}; its rounding modes are {modes}.")
        source = Line(f"{rescale['status']}: {rescale['source']}", "dim")
        yield titled_section("RESCALE", Text((line, source)))
    yield _source_section(document)


def _required(rule: Entry) -> str:
    return " ".join(rule["requires"])


def _condition(rule: Entry, separator: str) -> str:
    return separator.join(f"{key}={value}" for key, value in rule["when"].items())


def _rules_section(rules: Sequence[Entry]) -> PageSection:
    columns = {"rule": "name", "accepts": "accept", **same("meaning", "note", "status", "source")}
    return table_section("Rules", rules, columns, most=8, sources=2)


@page_of_document(
    "specification-pair", "{src} -> {dst} in {specification}", "castsim targets {specification} {src} {dst}"
)
def specification_pair_page(document: Entry) -> Sections:
    """Yield the sections on a cast of a specification."""
    rules = document["rules"]
    more = f" {len(rules)} rules apply, by version and attributes." if len(rules) > 1 else ""
    cast = f"{document['specification']} specifies {document['src']} -> {document['dst']}"
    yield summary_section(f"{cast}: {rules[0]['meaning']}.{more}")
    yield _rules_section(rules)
    needs: Columns = {
        "rule": "name",
        **same("since"),
        "requires": _required,
        "when": lambda rule: _condition(rule, " "),
    }
    yield table_section("Conditions", rules, needs)


# Number formats.


@page_of_document("formats", "Number formats", "castsim formats")
def formats_page(document: Entry) -> Sections:
    """Yield the sections on number formats: limits, then names."""
    formats = document["formats"]
    yield summary_section(f"{counted(len(formats), 'number format')}.")
    floats: Columns = {
        "format": "name", **same("bits"), "exp": "exponent_bits", "man": "mantissa_bits", **same("bias"),
        "largest": "{largest:.6g}", "least normal": "{smallest_normal:.5g}",
        "subnormal": lambda entry: entry["smallest_subnormal"] and f"{entry['smallest_subnormal']:.5g}",
        "special": lambda entry: " ".join(["inf"] * entry["infinities"] + ["NaN"] * entry["nan"]),
    }  # fmt: skip
    yield table_section("Floating point", [entry for entry in formats if entry["kind"] != "integer"], floats)
    integers: Columns = {"format": "name", **same("bits", "smallest", "largest")}
    yield table_section("Integers", [entry for entry in formats if entry["kind"] == "integer"], integers)
    yield table_section("Names", formats, {"format": "name", "cast by": "targets", "also written": "aliases"})


# The same as text.

_MOST_ROWS = 60
"""Maximum number of rows of a folded table in a text report, which also gives the number of the others."""

_STACKED = 80
"""Number of characters that makes a row long; tables with many long rows show their columns one below the other."""

_MOST_STACKED = 60
"""Maximum number of rows in that layout."""

_UNNAMED = ("value", "meaning")
"""Columns whose heading adds nothing to their cells."""

_STYLES = {"answer": "bold", "alarm": "bold red", "dim": "dim"}


def answer_text(page: Page) -> RenderableType:
    """Return a page as a text report, without the origin of facts."""
    parts: list[RenderableType] = []
    for section in page.sections:
        alone = section.name in ("summary", "source")
        parts += [] if alone and not parts else [StyledText()]
        parts += [] if alone else [StyledText(section.title, style="bold")]
        parts += [part for block in section.blocks for part in _block_text(block)]
    return Group(*parts)


def _block_text(block: Block) -> Iterator[RenderableType]:
    match block:
        case Text():
            yield from (StyledText(line.text, style=_STYLES.get(line.tone, "")) for line in block.lines)
        case PageTable():
            yield from [StyledText(block.caption)] if block.caption else []
            yield from _table_text(block)
        case Folded(title, (PageTable() as inner,)) if len(inner.rows) > _MOST_ROWS:
            yield StyledText(f"{title}: shown with --html FILE and --json FILE")
        case Folded():
            yield StyledText(block.title, style="bold")
            yield from (indented(part) for inner in block.blocks for part in _block_text(inner))
        case ResultsView("measurements"):
            yield from _measurements_text(cast(Sequence[Entry], block.packed.columns["rows"]))


_EDGES = (-20, -5, -1, 1, 5, 20)
"""Edges of error bins in percent; the first and last bins include everything beyond."""

_LONGEST = 40
"""Characters of the longest bar."""


def _measurements_text(rows: Sequence[Entry]) -> Iterator[RenderableType]:
    """Yield the distribution of held-out errors as bars, then the rows of each table."""
    counts = Counter(bisect(_EDGES, row["error"]) for row in rows if row["evidence"].startswith("held out"))
    if counts:
        ends = ["", *(f"{edge:g}" for edge in _EDGES), ""]
        scale = _LONGEST / max(counts.values())
        lines = [
            f"{f'{low} .. {high} %':>14}  {counts[number]:>4}  {'#' * ceil(scale * counts[number])}"
            for number, (low, high) in enumerate(pairwise(ends))
        ]
        yield StyledText("Errors of the held-out rows")
        yield StyledText("\n".join(line.rstrip() for line in lines), no_wrap=True)
    columns: Columns = {
        **same("operation", "types", "path", "shape", "measured", "simulated"),
        "error %": "{error:+.2f}",
        "public model": "public",
        "its error %": lambda row: None if row["public"] is None else f"{row['public_error']:+.2f}",
        **same("reason"),
    }
    for (target, file), group in groupby(rows, lambda row: (row["target"], row["table"])):
        yield StyledText(f"{target}: {file}")
        yield from _table_text(entry_table(list(group), columns))


def _table_text(block: PageTable) -> Iterator[RenderableType]:
    headings = block.columns[: block.reported]
    rows = [tuple(map(_printed, row[: block.reported])) for row in block.rows]
    if len(headings) > 1 and 4 * sum(any(len(cell) > _STACKED for cell in row[1:]) for row in rows) > len(rows):
        for first, *others in rows[:_MOST_STACKED]:
            cells = dict(zip(headings[1:], others, strict=True))
            status = f" ({cells.pop('status')})" if cells.get("status") else ""
            yield StyledText(f"{first}{status}")
            texts = [cell if name in _UNNAMED else f"{name}: {cell}" for name, cell in cells.items() if cell]
            yield from (indented(StyledText(text)) for text in texts)
        if len(rows) > _MOST_STACKED:
            yield StyledText(f"and {len(rows) - _MOST_STACKED:,} more: shown with --html FILE and --json FILE")
        return
    yield table(*(f">{text}" if number in block.numbers else text for number, text in enumerate(headings)), rows=rows)


def _printed(cell: Cell) -> str:
    return cell if isinstance(cell, str) else in_words(cell)
