"""What `Casts at a glance` shows: for each cast of each chip its rules, the results of telling inputs, and its cycles.

A hook of the site's build, as docs/hooks.py: it writes the data beside the page, from the targets as they are then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from fractions import Fraction
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING, Any

from castsim import estimate
from castsim.__main__ import main
from castsim.isa.formats import FloatFormat, Format, IntFormat, Rounding, format_named
from castsim.numerics.codec import value_of
from castsim.reports.pairs import PairEntry, pair_rows
from castsim.reports.target_template import told
from castsim.targets.loader import load_target, target_names

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROWS, COLS = 16, 64
"""The tile whose cycles are shown."""
FAMILIES = {
    "e4m3fn": "fp8",
    "e5m2": "fp8",
    "hif8": "fp8",
    "f8_143": "fp8",
    "f8_152": "fp8",
    "e2m1": "fp4",
    "e1m2": "fp4",
}
"""The families of formats, by which readers search."""
SATURATES = {
    "clamps": "saturates: numbers beyond the range become the largest or smallest number.",
    "on": "saturates by default: numbers beyond the range become the largest or smallest number.",
    "off": "does not saturate by default.",
    "none: inf": "does not saturate: numbers beyond the range become infinity.",
    "none: NaN": "does not saturate: numbers beyond the range become NaN.",
    "none: low bits": "does not saturate: numbers beyond the range keep their low bits.",
    "not needed": "needs no saturation: the destination holds every number of the source.",
}
SWITCHES = {
    "never": "",
    "always": " `sat_mode` switches saturation on and off.",
    "with tmp": " `sat_mode` switches saturation off if the cast has a tmp tile.",
    "by clip_fp": " The switch `clip_fp` turns an infinite result into the largest number.",
}
TINY = Fraction(1, 10**6)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the data of the page, and a page per chip on which the search finds each cast."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - linters need no MkDocs

    files.append(File.generated(config, "assets/casts.js", content=script()))
    for chip in chips():
        files.append(File.generated(config, f"casts/{chip['name']}.md", content=chip_page(chip)))
    return files


def largest(fmt: Format) -> Fraction:
    """Return the largest finite number of a format."""
    return Fraction(fmt.maximum if isinstance(fmt, IntFormat) else value_of(fmt.max_finite_code, fmt))


def inputs(src: Format, dst: Format) -> Iterator[str]:
    """Yield inputs that tell casts apart: ties, numbers beyond the range on both sides, tiny ones, infinities, NaN."""
    top = largest(src)
    if isinstance(src, IntFormat):
        yield from map(str, (src.maximum, src.minimum, *((1,) if src.maximum > 1 else ())))
        if isinstance(dst, FloatFormat) and src.maximum >= 3 << dst.fraction_bits:
            yield from (str((2 << dst.fraction_bits) + 1), str((2 << dst.fraction_bits) + 3))
        return
    if isinstance(dst, IntFormat) or src == dst:  # f32 -> f32 rounds to integers
        yield from ("2.5", "3.5", "-2.5", "-0.7") if src.signed else ("2", "4")
    elif isinstance(dst, FloatFormat) and isinstance(src, FloatFormat) and src.fraction_bits > dst.fraction_bits:
        yield from (str(Fraction(k, 2 << dst.fraction_bits) + 1) for k in (1, 3))
    beyond = 2 * (largest(dst) + 1) if isinstance(dst, IntFormat) else 2 * largest(dst)
    yield from (f"{sign}{beyond if beyond < top else top}" for sign in ("", "-")[: 1 + src.signed])
    yield str(TINY)
    yield from ("inf", "-inf") if src.has_infinity else ()
    yield from ("nan",) if src.has_nan else ()


def results(target: str, row: PairEntry, saturation: str | None) -> list[list[str]]:
    """Return input, its bits, the result, its bits and what became of it; of tiles with padded rows, too, if others."""
    words = ["cast", row.src, row.dst, *inputs(format_named(row.src), format_named(row.dst)), "--target", target]
    with redirect_stdout(StringIO()) as said:
        assert main([*words, *(("--saturation", saturation) if saturation else ()), "--json", "-"]) == 0
    found = json.loads(said.getvalue())["results"]
    return [_told(one, row) for one in found]


def _told(one: dict[str, Any], row: PairEntry) -> list[str]:
    forms = one["forms"]
    tiles = "" if len(forms) != 1 else {"1d": "contiguous", "2d": "padded rows"}[forms[0]]
    given, bits = _number(one["input_bits"], row.src), one["input_bits"]
    return [given, bits, str(one["value"]), one["output_bits"], one["outcome"], tiles]


def _number(bits: str, name: str) -> str:
    value = value_of(int(bits, 16), format_named(name))
    return str(value.numerator) if isinstance(value, Fraction) and value.denominator == 1 else f"{float(value):.12g}"


def cycles(target: str, row: PairEntry) -> dict[str, Any]:
    """Return the cycles of the cast alone and what most of them rest on."""
    found = estimate(row.src, row.dst, ROWS, COLS, target=target)
    share = max(found.trust.shares, key=lambda each: each.cycles)
    return {
        "cycles": found.cycles,
        "bound": found.bound_by.value,
        "basis": share.basis.value,
        "fitted": share.standing.value,
    }


def cast(target: str, row: PairEntry) -> dict[str, Any]:
    """Return all that the page shows of one cast."""
    switched = () if load_target(target).mechanism == "vliw" or row.switchable == "never" else ("on", "off")
    usual = results(target, row, None)
    others = {asked: found for asked in switched if (found := results(target, row, asked)) != usual}
    return {
        "src": row.src, "dst": row.dst, "modes": list(row.modes), "default": row.default, "fallback": row.fallback,
        "saturation": row.saturation, "switchable": row.switchable, "scratch": row.scratch,
        "time": cycles(target, row), "results": {"default": usual, **others},
    }  # fmt: skip


@cache
def chips() -> list[dict[str, Any]]:
    """Return all casts of all chips."""
    return [
        {
            "name": name,
            "title": load_target(name).title,
            "casts": [cast(name, row) for row in pair_rows(load_target(name))],
        }
        for name in target_names()
    ]


@cache
def script() -> str:
    """Return all casts of all chips as a script, which a page opened from disk can load."""
    modes = {mode.value: told(Rounding)[mode.name].rstrip(".").lower() for mode in Rounding}
    modes["csr"] = "that of the control register; after a reset nearest, ties to even"
    lines = ",\n".join(json.dumps(chip, ensure_ascii=False) for chip in chips())
    return f'const TILE = "{ROWS} x {COLS}", MODES = {json.dumps(modes)}, CHIPS = [\n{lines}\n];\n'


def chip_page(chip: dict[str, Any]) -> str:
    """Return a page with a section for each cast of a chip: whether it saturates, how it rounds, its cycles."""
    name, core = chip["name"], chip["title"].removesuffix(" vector core")
    sections = (_section(name, core, row) for row in chip["casts"])
    intro = f"Every cast of `{name}`; [casts at a glance](../casts.md) has all results."
    return "\n\n".join([f"# {core}: pairs of formats", intro, *sections]) + "\n"


def _short(number: str) -> str:
    return number if len(number) < 12 else f"{float(number):.5g}"


def _section(name: str, core: str, row: dict[str, Any]) -> str:
    """Return the section of one cast."""
    src, dst = (f"{fmt} ({FAMILIES[fmt]})" if fmt in FAMILIES else fmt for fmt in (row["src"], row["dst"]))
    examples = dict.fromkeys(
        f"`{_short(given)}` gives `{_short(value)}`{f' ({tiles})' if tiles else ''}"
        for given, _, value, _, outcome, tiles in row["results"]["default"]
        if outcome not in ("exact", "rounded") and not given.startswith("-")
    )
    lines = [
        f"## {src} -> {dst} on the {core} {{: #{row['src']}-{row['dst']} }}",
        f"The cast from {src} to {dst} on {name} {SATURATES[row['saturation']]}{SWITCHES[row['switchable']]}",
        f"For example, {', '.join(examples)}." if examples else "",
        f"It rounds by `{row['default']}` by default." if row["default"] else "It rounds nothing.",
        f"Its modes are {', '.join(row['modes'])}." if row["modes"] else "",
        f"A {ROWS} x {COLS} tile takes {row['time']['cycles']:,} cycles.",
        f'See <a href="../casts.html#{name}:{row["src"]}:{row["dst"]}">all results</a>.',  # its script knows the place
    ]
    return "\n\n".join([lines[0], " ".join(filter(None, lines[1:]))])
