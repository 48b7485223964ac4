"""Headline tables of measurements, from the records in `docs/measured/`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kit.measured_record import MEASURED, read, rows
from makers.page_parts.markdown import code, table

_HEADLINE = ("f32 -> e4m3fn", "f32 -> hif8", "e4m3fn -> f32", "f32 -> bf16", "f32 -> f16", "f32 -> i16", "f16 -> i8")
_LIBRARIES = ("ml_dtypes", "numpy", "en_dtypes", "onnxruntime", "torch")
_SHOWN = 6
_ROW = 10_000
"""Instructions in a row up to which the event engine is waited for."""


def advice() -> str:
    """Return how many sample programs gain by advice, and the largest gains."""
    found = rows(read(MEASURED / "advice.json")["tables"][0])
    gains = sorted((row for row in found if row["gain %"]), key=lambda row: -row["gain %"])
    large = sum(row["gain %"] >= 10 for row in gains)
    shown = [
        (code(row["program"]), f"{row['cycles']:,}", f"{row['with the best change']:,}", row["how"], row["change"])
        for row in gains[:_SHOWN]
    ]
    return (
        f"Of {len(found)} programs {len(gains)} gain, {large} of them at least a tenth of the cycles. The largest:\n\n"
        + table(("program", "cycles", "with the best change", "how", "change"), shown)
    )


def casts() -> str:
    """Return the speed of some casts beside that of libraries."""
    section = next(one for one in read(MEASURED / "casts.json")["sections"] if one["title"] == "headline")
    found = {row["cast"]: row for row in reversed(rows(section["tables"][0]))}
    shown = []
    for name in _HEADLINE:
        row = found[name]
        ratios = ((library, str(row[f"x {library}"]).partition(" ")[0]) for library in _LIBRARIES)
        beside = ", ".join(f"{library} {ratio}" for library, ratio in ratios if ratio != "None")
        shown.append((name, row["overflow"], f"{row['Ge/s']:.1f}", f"{row['of copy']:.2f}", beside))
    return table(("cast", "overflow", "1e9/s", "of a copy", "times as fast as"), shown)


def vectors() -> str:
    """Return the speed of casts at several sizes beside the fastest library, by the width of the vectors."""
    sections = [one for one in read(MEASURED / "casts.json")["sections"] if one["title"].startswith("vectors of ")]
    speeds: dict[str, list[str]] = {}
    for section in sections:
        by_cast: dict[str, list[str]] = {}
        for row in rows(section["tables"][0]):
            cells = (str(row.get(f"x {library}")).partition(" ")[0] for library in _LIBRARIES)
            by_cast.setdefault(row["cast"], []).append(min((cell for cell in cells if cell != "None"), key=float))
        for cast, ratios in by_cast.items():
            speeds.setdefault(cast, []).append(", ".join(ratios))
    return table(("cast", *(one["title"] for one in sections)), ((cast, *cells) for cast, cells in speeds.items()))


def engines() -> str:
    """Return the instructions per second of both engines."""
    sections = {one["title"]: rows(one["tables"][0]) for one in read(MEASURED / "engines.json")["sections"]}
    straight = sections["Instructions in a row"]
    largest = max(row["count"] for row in straight)
    speed = {(row["program"], row["count"], row["engine"]): row["per second"] for row in straight}
    held = {row["program"]: row["MiB"] for row in sections["Largest resident size, tree included"]}
    shown = [
        (name, f"{speed[name, _ROW, 'event']:,.0f}", *(f"{speed[name, largest, each]:,.0f}" for each in
         ("fast, no skip", "fast")), f"{mebibytes}")
        for name, mebibytes in held.items()
    ]  # fmt: skip
    return table(("instruction", "event", "fast, `--no-skip`", "fast", f"MiB for {largest:,}"), shown)


def hostile() -> str:
    """Return the sums of the campaigns of hostile inputs, random programs and kills."""
    record = json.loads((MEASURED / "fuzz.json").read_text(encoding="utf-8"))
    kills = json.loads((MEASURED / "kills.json").read_text(encoding="utf-8"))["cases"].values()
    readers, mechanisms = record["readers"].values(), record["engines"].values()
    inputs = sum(one["inputs"] + one["guided_inputs"] for one in readers)
    longest = max(one["longest_seconds"] for one in readers)
    peak = max(one.get("peak_bytes", 0) for one in readers) >> 20
    fewest = min(one["programs"] for one in mechanisms)

    def total(name: str, records: Iterable[dict[str, int]]) -> str:
        return f"{sum(one[name] for one in records):,}"

    return table(
        ("tried", "how many", "found"),
        [
            (f"inputs in {len(readers)} readers", f"{inputs:,}", f"at most {longest:.1f} s and {peak} MiB for one"),
            (
                f"programs and casts in {len(mechanisms)} mechanisms",
                f"{total('programs', mechanisms)}, at least {fewest:,} each",
                f"{total('differences', mechanisms)} differences since the last was mended",
            ),
            (
                f"kills of {len(kills)} commands",
                f"{total('kills', kills)}, of them {total('while_writing', kills)} while a file was being written",
                f"{total('half_files', kills)} half-written files, {total('lost_records', kills)} lost records",
            ),
        ],
    )


def kernels() -> str:
    """Return how many forms of operations of public kernels run."""
    return table(*_plain(read(MEASURED / "real-kernels.json")["tables"][0]))


def _plain(one: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    return one["columns"], [[f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in one["rows"]]
