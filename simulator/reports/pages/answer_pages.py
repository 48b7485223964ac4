"""Pages and text reports of look-ups, each made of the JSON document alone: targets, findings, programs."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from math import ceil
from pathlib import PurePath
from typing import Any, TypeAlias, cast

from rich.console import Group, RenderableType
from rich.text import Text as StyledText

from castsim.reports.documents import Json
from castsim.reports.pages.blocks import (
    Block,
    Cell,
    Figure,
    Figures,
    Folded,
    Line,
    Listing,
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
"""The values of a column: a key of each entry, or a function of it."""

# Values of JSON in words: units behind numbers, lists with commas, nothing for what is absent.

_WITH_UNIT = re.compile(
    r"((?P<stem>\w+?)_)?(?P<unit>cycles|bytes|bits|elements|blocks|trips|rows|lanes)(?P<per>_per_\w+)?"
)
"""A key whose end is the unit of its number."""

_ACRONYMS = {"ub": "UB", "dst": "destination", "src": "source", "startup": "start-up"}


def words(key: str) -> str:
    """Return a key in words: `startup_cycles` is start-up cycles."""
    return " ".join(_ACRONYMS.get(part, part) for part in key.replace("_", " ").split())


def in_words(value: Json) -> str:
    """Return a value of a document in one line; `` of null and of empty lists and objects."""
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
    """Return a value with its name and its unit, which ends the key."""
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
    """Return parts of a sentence with commas, `and` before the last."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


# Parts of pages.


def entry_table(
    entries: Sequence[Entry], columns: Mapping[str, Column], caption: str = "", *, most: int = 300, sources: int = 0
) -> PageTable:
    """Return a table with a row for each entry, without columns that are empty.

    The last `sources` columns say where a row is from: pages show them, text reports do not.
    """
    filled = []
    for number, (heading, column) in enumerate(columns.items()):
        values = [entry[column] if isinstance(column, str) else column(entry) for entry in entries]
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


_DECIMAL = re.compile(r"[+-]?\d[\d,]*\.\d\d")
"""A number that has its decimals whatever they are."""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: Any) -> Cell:
    return value if value is None or _is_number(value) else in_words(value)


def summary_section(answer: str, *further: str, figures: Sequence[Figure] = (), alarm: bool = False) -> PageSection:
    """Return the first section: the answer in a sentence, figures, then what explains it."""
    first = Text((Line(answer, "alarm" if alarm else "answer"),))
    lines = tuple(Line(text) for text in further if text)
    blocks = (first, *((Figures(tuple(figures)),) if figures else ()), *((Text(lines),) if lines else ()))
    return PageSection("summary", "Summary", blocks)


def titled_section(title: str, *blocks: Block) -> PageSection:
    """Return a section whose links are called as its title."""
    return PageSection(re.sub(r"\W+", "-", title.lower()).strip("-"), title, blocks)


def _remark(text: str) -> Text:
    return Text((Line(text, "dim"),))


_PROVENANCE: Mapping[str, Column] = {
    "status": "status",
    "source": lambda entry: entry.get("source"),
    "note": lambda entry: entry.get("note") or (f"set by {entry['set_by']}" if entry.get("set_by") else ""),
}


# Targets: the list, one target, one of its casts, two targets side by side.


def targets_list_page(document: Entry) -> Page:
    """Return the page of all targets and specifications."""
    targets, specifications = document["targets"], document["specifications"]
    sections = (
        summary_section(
            f"castsim has {counted(len(targets), 'target')} and {counted(len(specifications), 'specification')} "
            "of casts.",
            "Run `castsim targets NAME` for one of them and `castsim targets NAME SRC DST` for one cast."
        ),
        titled_section(
            "Targets",
            entry_table(
                targets,
                {"target": "name", "chip": "title", "mechanism": "mechanism", "other names": _other_names,
                 "casts": "casts"}
            )
        ),
        titled_section(
            "Specifications",
            entry_table(
                specifications,
                {"specification": "name", "title": "title", "versions": "versions", "casts": "casts"}
            )
        )
    )  # fmt: skip
    return page_of_entry("targets", "Targets and specifications", "castsim targets", sections, document)


def _other_names(target: Entry) -> list[str]:
    return [name for name in target["architectures"] if name != target["name"]]


_PAIR_LEGEND = (
    "default: the rounding mode used when a program names none. fallback: the mode used when it names one that the "
    "cast lacks. switchable: when a program can turn saturation on or off."
)


def target_page(document: Entry) -> Page:
    """Return the page of a target: casts, facts by subject, options, functions of TPC-C."""
    name, facts, options = document["name"], document["facts"], document["options"]
    statuses = Counter(fact["status"] for fact in facts)
    operations = sum(fact["name"].startswith("tile_operations[") for fact in facts)
    parts = [counted(document["casts"], "cast")]
    parts += [counted(operations, "other tile operation")] if operations else []
    parts.append(counted(len(options), "option"))
    programs = "TPC programs in assembly and C" if "tpc" in document["languages"] else "PTO programs"
    other = _other_names(document)
    sections = [
        summary_section(
            f"{name} is the {document['title']}: {listed(parts)}.",
            f"It runs {programs}{f', which may also call it {listed(other)}' if other else ''}. "
            f"`castsim targets {name} SRC DST` shows one cast.",
            f"Of its {len(facts)} facts, {listed(_statuses(statuses))}.",
            figures=tuple(_target_figures(facts)),
        ),
        titled_section("Casts", _pairs_table(document["pairs"]), _remark(_PAIR_LEGEND)),
        titled_section("Facts", *_fact_groups(facts)),
    ]
    if options:
        columns = {"option": "name", "default": "value", "values": "legal", "meaning": "meaning", **_PROVENANCE}
        sections.append(
            titled_section(
                "Options",
                _remark("Set an option with `castsim run --option NAME=VALUE`."),
                entry_table(options, columns, most=4, sources=2),
            )
        )
    functions = document.get("special_functions", [])
    if document.get("builtins"):
        builtins = {"builtin": "name", "result (arguments)": "signature", "vector operations": "vpu_operations",
                    "order of the result": "result_order", **_PROVENANCE}  # fmt: skip
        sections.append(
            titled_section(
                "Functions of TPC-C",
                folded_table("Cast builtins", entry_table(document["builtins"], builtins, sources=3)),
                folded_table(
                    "Special functions",
                    entry_table(functions, {"function": "name", "result (arguments)": "signature",
                                       "simulated": "modelled", "kind": "kind"})
                ),
                _remark("`castsim builtin NAME` computes one of them.")
            )
        )  # fmt: skip
    return page_of_entry("targets", f"{name}: {document['title']}", f"castsim targets {name}", sections, document)


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


def _pairs_table(pairs: Sequence[Entry]) -> PageTable:
    columns: Mapping[str, Column] = {
        "from": "src",
        "to": "dst",
        "rounding modes": lambda pair: " ".join(pair["modes"]) or "one only",
        "default": lambda pair: pair["default"] or "exact",
        "fallback": "fallback",
        "saturation": "saturation",
        "switchable": "switchable",
        "tmp tile": lambda pair: words(pair["scratch"] or ""),
    }
    return entry_table(pairs, columns, most=10)


_GROUPED = 5
"""Entries with the same keys that make a table of their own, with a column for each key."""

_TITLES = {
    "tile_operations": "Tile operations",
    "arithmetic": "Latencies of vector instructions",
    "timing.vector": "Timing of vector instructions",
    "timing.paced": "Timing of paced loops",
    "free_facts": "Facts that calibration may fit",
    "configuration": "Configuration registers",
    "latency_rules": "Rules of latencies",
}
"""Titles of groups of facts by the part of the description that holds them; others are called as that part."""


def _fact_groups(facts: Sequence[Entry]) -> Iterator[Block]:
    """Yield facts by the part of the description that holds them; small parts are merged."""
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
    columns: Mapping[str, Column] = {"fact": "name", "value": "value", **_PROVENANCE}
    groups = [(title, entries, entry_table(entries, columns, sources=2)) for title, entries in rest.items() if entries]
    for key, entries in alike.items():
        if len(entries) >= _GROUPED:
            title = _TITLES.get(key[0], words(key[0]).capitalize())
            groups.append((title, entries, _uniform_table(entries)))
    for title, entries, block in groups:
        yield folded_table(title, block, Counter(entry["status"] for entry in entries))


def _uniform_table(facts: Sequence[Entry]) -> PageTable:
    """Return facts of the same keys, a column for each key."""
    keys = list(facts[0]["value"])
    named = {} if "[" in facts[0]["name"] else {"name": lambda fact: fact["name"].rpartition(".")[2]}
    values = {words(key): (lambda fact, key=key: fact["value"][key]) for key in keys}
    return entry_table(facts, {**named, **values, **_PROVENANCE}, sources=2)


def folded_table(title: str, block: PageTable, statuses: Mapping[str, int] | None = None) -> Folded:
    """Return a folded table; its title counts the rows, in total and for each of the `statuses`."""
    known = f": {', '.join(f'{number} {status}' for status, number in statuses.items())}" if statuses else ""
    return Folded(f"{title} ({len(block.rows)}{known})", (block,))


def target_pair_page(document: Entry) -> Page:
    """Return the page of a cast of a target: rounding, saturation, instruction."""
    src, dst, name = document["src"], document["dst"], document["target"]
    default = document["default"]
    rounding = "is exact" if default is None else f"rounds by {default} unless the program names another mode"
    saturation = {"on": "saturation is on", "off": "saturation is off", "clamps": "out-of-range values clamp",
                  "not needed": "no value is out of range"}  # fmt: skip
    beyond = saturation.get(document["saturation"], f"out-of-range values are {document['saturation'][6:]}")
    sequence = document["scratch_sequence"]
    modes: Mapping[str, Column] = {
        "rounding asked": "requested",
        "in force": lambda mode: mode["in_force"] or "exact",
        "instruction": "mnemonic",
        "warning": "warning",
    }
    switches = {"saturation asked": "requested", "tmp tile": "scratch", "in force": "in_force", "warning": "warning"}
    sections = [
        summary_section(f"On {name}, {src} -> {dst} {rounding}; {beyond}.", sentence(document["note"])),
        titled_section("Rounding", entry_table(document["mnemonics"], modes)),
        titled_section("Saturation", entry_table(document["saturation_modes"], switches)),
        titled_section(
            "Instruction",
            entry_table(document["configuration"], {"property": lambda item: words(item["name"]), "value": "value"}),
        ),
    ]
    if sequence is not None:
        steps = [{"step": step} for step in sequence["operations"]]
        sections.append(
            titled_section(
                "With saturation off and a tmp tile",
                entry_table(steps, {"instructions for one element": "step"}),
                _remark(f"{sequence['status'].capitalize()}: {sequence['source']}"),
            )
        )
    sections.append(titled_section("Source", Text((Line(f"{document['status'].capitalize()}: {document['source']}"),))))
    title = f"{src} -> {dst} on {name}"
    return page_of_entry("targets", title, f"castsim targets {name} {src} {dst}", sections, document)


def sentence(text: str) -> str:
    """Return a text with a capital and a full stop; an empty one as it is."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}" if text else ""


def targets_diff_page(document: Entry) -> Page:
    """Return the page of two targets side by side."""
    first, second = document["targets"]
    if first == second:  # two descriptions may have one name
        first, second = f"{first} (first)", f"{second} (second)"
    rows = document["rows"]
    alone = [sum(len(row[key]) for row in rows) for key in ("only_first", "only_second")]
    common = sum(len({*row["first"]} & {*row["second"]}) for row in rows)
    changed, *single = _differing(document["facts"])
    casts: Mapping[str, Column] = {
        "from": "src",
        "both": lambda row: [dst for dst in row["first"] if dst in row["second"]],
        f"only {first}": "only_first",
        f"only {second}": "only_second",
    }
    facts: Mapping[str, Column] = {
        "fact": "name",
        first: lambda fact: _unequal(fact["first"], fact["second"]),
        second: lambda fact: _unequal(fact["second"], fact["first"]),
    }
    sections = [
        summary_section(
            f"{first} and {second} share {counted(common, 'cast')}; {first} has {alone[0]} more and {second} has "
            f"{alone[1]} more.",
            f"Of their facts, {len(changed)} have different values; {first} has {len(single[0])} facts of its own and "
            f"{second} has {len(single[1])}."
            if document["facts"]
            else "Their facts are the same.",
        ),
        titled_section("Casts", entry_table(rows, casts)),
    ]
    if changed:
        sections.append(titled_section("Facts that differ", entry_table(changed, facts, most=12)))
    folds = [
        folded_table(f"Only {name}", entry_table(entries, {"fact": "name", "value": key}))
        for name, key, entries in zip((first, second), ("first", "second"), single, strict=True)
        if entries
    ]
    sections += [titled_section("Facts of one target", *folds)] if folds else []
    title = f"{first} and {second}"
    command = f"castsim targets --diff {' '.join(document['targets'])}"
    return page_of_entry("targets", title, command, sections, document)


def _differing(facts: Sequence[Entry]) -> tuple[Sequence[Entry], Sequence[Entry], Sequence[Entry]]:
    """Return the differing facts that both targets have, the facts of the first alone, and of the second alone.

    Facts in a list are matched by what they are of, an operation or a cast, not by their places.
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


def specification_page(document: Entry) -> Page:
    """Return the page of a specification: casts, rules, attributes."""
    name, rescale = document["name"], document["rescale"]
    pairs: Mapping[str, Column] = {
        "from": lambda pair: " ".join(pair["src"]),
        "to": lambda pair: " ".join(pair["dst"]),
        "since": "since",
        "requires": lambda pair: " ".join(pair["requires"]),
        "when": lambda pair: "\n".join(f"{key}={value}" for key, value in pair["when"].items()),
        "rule": "rule",
    }
    attributes = {"attribute": "name", "values, default first": "values", "since": "since", "meaning": "meaning",
                  **_PROVENANCE}  # fmt: skip
    versions = document["versions"]
    sections = [
        summary_section(
            f"{name} ({document['title']}) specifies {counted(document['casts'], 'cast')} by "
            f"{counted(len(document['rules']), 'rule')}.",
            "It says which results a cast may give; nothing runs on it.",
            f"Versions {', '.join(versions)}; castsim takes {document['default_version']} unless you name another. "
            f"`castsim targets {name} SRC DST` shows the rules of one cast.",
        ),
        titled_section("Casts", entry_table(document["pairs"], pairs, most=10)),
        titled_section("Rules", _rules_table(document["rules"])),
    ]
    if document["attributes"]:
        sections.append(titled_section("Attributes", entry_table(document["attributes"], attributes, sources=2)))
    if rescale is not None:
        inputs, outputs = ", ".join(rescale["inputs"]), ", ".join(rescale["outputs"])
        modes = ", ".join(rescale["rounding_modes"])
        line = Line(f"RESCALE takes {inputs} and gives {outputs}; its rounding modes are {modes}.")
        sections.append(
            titled_section("RESCALE", Text((line, Line(f"{rescale['status']}: {rescale['source']}", "dim"))))
        )
    sections.append(titled_section("Source", Text((Line(f"{document['status'].capitalize()}: {document['source']}"),))))
    return page_of_entry("targets", f"{name}: {document['title']}", f"castsim targets {name}", sections, document)


def _rules_table(rules: Sequence[Entry]) -> PageTable:
    columns = {"rule": "name", "accepts": "accept", "meaning": "meaning", "note": "note", "status": "status",
               "source": "source"}  # fmt: skip
    return entry_table(rules, columns, most=8, sources=2)


def specification_pair_page(document: Entry) -> Page:
    """Return the page of a cast of a specification."""
    name, src, dst = document["specification"], document["src"], document["dst"]
    rules = document["rules"]
    more = f" {len(rules)} rules apply, by version and attributes." if len(rules) > 1 else ""
    first = rules[0]["meaning"]
    needs: Mapping[str, Column] = {
        "rule": "name",
        "since": "since",
        "requires": lambda rule: " ".join(rule["requires"]),
        "when": lambda rule: " ".join(f"{key}={value}" for key, value in rule["when"].items()),
    }
    sections = (
        summary_section(f"{name} specifies {src} -> {dst}: {first}.{more}"),
        titled_section("Rules", _rules_table(rules)),
        titled_section("Conditions", entry_table(rules, needs)),
    )
    return page_of_entry(
        "targets", f"{src} -> {dst} in {name}", f"castsim targets {name} {src} {dst}", sections, document
    )


# Findings of `check`, and expanded programs.


def findings_page(document: Entry) -> Page:
    """Return the page of what `check` reports."""
    findings = document["findings"]
    counts = Counter(finding["severity"] for finding in findings)
    files = list(dict.fromkeys(finding["file"] for finding in findings))
    parts = [counted(counts[severity], severity) for severity in ("error", "warning", "note") if counts[severity]]
    where = files[0] if len(files) == 1 else counted(len(files), "file")
    columns: Mapping[str, Column] = {
        "file": "file",
        "line": "line",
        "column": "column",
        "severity": "severity",
        "finding": lambda finding: sentence(finding["message"]),
        "write instead": lambda finding: finding["help"] or _suggested(finding["legal"]),
        "kind": "kind",
    }
    answer = f"{listed(parts)} in {where}." if parts else "No errors, warnings or notes."
    sections = [summary_section(f"{answer[:1].upper()}{answer[1:]}", alarm=bool(counts["error"]))]
    sections += [titled_section("Findings", entry_table(findings, columns, most=100))] if findings else []
    return page_of_entry("check", f"Check of {where}" if files else "Check", "castsim check", sections, document)


_MOST_LEGAL = 5
"""Legal values that a finding shows."""


def _suggested(legal: Sequence[str]) -> str:
    """Return the first legal values, and how many others there are."""
    more = f" and {len(legal) - _MOST_LEGAL} more" if len(legal) > _MOST_LEGAL else ""
    return ", ".join(legal[:_MOST_LEGAL]) + more


_ORIGIN = re.compile(r"\s*// (.+), line (\d+)")
_OPTION = re.compile(r"// castsim: option (\S+?)=(.*)")
_VECTOR = re.compile(r"pto\.v(?!ecscope)\w+")


def expanded_page(document: Entry) -> Page:
    """Return the page of an expanded program: its text, and where each operation of the source is in it."""
    file, program = document["file"], document["program"].rstrip("\n")
    lines = program.split("\n")
    origins = [
        {"operation": match[1], "line": int(match[2]), "here": number}
        for number, line in enumerate(lines, 1)
        if (match := _ORIGIN.fullmatch(line))
    ]
    options = [{"name": match[1], "value": match[2]} for line in lines if (match := _OPTION.fullmatch(line))]
    scopes, vector = program.count("pto.vecscope"), len(_VECTOR.findall(program))
    sections = [
        summary_section(
            f"{PurePath(file).name} expands to {counted(len(lines), 'line')} with "
            f"{counted(vector, 'vector instruction')} in {counted(scopes, 'vector scope')}.",
            "The expanded program takes the same `--in` and `--arg` and gives the same bytes.",
            f"It was written to {document['out']}." if document["out"] else "",
        ),
        titled_section("Program", Listing("", program)),
    ]
    if origins:
        columns = {"operation of the source": "operation", "line of the source": "line", "line of the result": "here"}
        sections.append(titled_section("Operations", entry_table(origins, columns)))
    if options:
        sections.append(
            titled_section("Options that it needs", entry_table(options, {"option": "name", "value": "value"}))
        )
    return page_of_entry("expand", f"{PurePath(file).name}, expanded", f"castsim expand {file}", sections, document)


def page_of_entry(kind: str, title: str, subtitle: str, sections: Iterable[PageSection], document: Entry) -> Page:
    """Return a page of those sections that are not empty."""
    return Page(kind, title, subtitle, tuple(section for section in sections if section.blocks), dict(document))


# The same as text.

_MOST_ROWS = 60
"""Rows of a folded table that a text report shows; of a longer one it says how many there are."""

_STACKED = 80
"""Characters of a cell beyond which its row is long; of a table with many such rows, columns stand below each other."""

_MOST_STACKED = 60
"""Rows that a text report so shows."""

_UNNAMED = ("value", "meaning")
"""Columns whose headings say nothing that their cells do not."""

_STYLES = {"answer": "bold", "alarm": "bold red", "dim": "dim"}


def answer_text(page: Page) -> RenderableType:
    """Return a page as a text report, without where facts are from."""
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
"""Edges of errors in percent; outside of the first and the last is everything beyond."""

_LONGEST = 40
"""Characters of the longest bar."""


def _measurements_text(rows: Sequence[Entry]) -> Iterator[RenderableType]:
    """Yield how many held-out rows have which error, as bars, then the rows of each table."""
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
    columns: Mapping[str, Column] = {
        "operation": "operation",
        "types": "types",
        "path": "path",
        "shape": "shape",
        "measured": "measured",
        "simulated": "simulated",
        "error %": lambda row: f"{row['error']:+.2f}",
        "public model": "public",
        "its error %": lambda row: None if row["public"] is None else f"{row['public_error']:+.2f}",
        "reason": "reason",
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
    shown = table(*headings, numbers=tuple(headings[number] for number in block.numbers if number < len(headings)))
    for row in rows:
        shown.add_row(*row)
    yield shown


def _printed(cell: Cell) -> str:
    return cell if isinstance(cell, str) else in_words(cell)
