"""How long `castsim check` takes for long programs, up to the limit; writes `docs/measured/checking.json`.

python tests/benchmarks/checking.py [STATEMENTS ...]

Every text has so many bundles or tile instructions, either the same few over and over or no two alike. Exit code 1 if
one takes longer than the bound that the page of limits states, or more memory.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable
from itertools import islice, product
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kit.measured_record import MEASURED, table, write

from benchmarks.timing import ended

RECORD = MEASURED / "checking.json"
SIZES = (2_000, 20_000, 200_000)
BASE_SECONDS, MICROSECONDS, MEBIBYTES = 10, 2_000, 1_024
"""What the page of limits states: so many seconds and so many microseconds for each statement; so much memory."""


def repeated_bundles(count: int) -> str:
    """Return the trip of a conversion over and over."""
    trip = ["ld_tnsr V0, 0x0, I0; nop; nop; nop", *["nop; nop; nop; nop"] * 5]
    trip += ["nop; nop; mul.f32 V2, V0, S0; nop", *["nop; nop; nop; nop"] * 5]
    trip += ["nop; add.i32 b00010 I0, 0x1, I0; convert.f32 target_type=int16 rhne V4, V2; nop"]
    return _assembly(trip * (count // len(trip)))


def different_bundles(count: int) -> str:
    """Return sums with constants of their own."""
    return _assembly([f"nop; add.i32 S{2 + n % 20}, S0, {n:#x}; nop; nop" for n in range(count)])


def _assembly(bundles: list[str]) -> str:
    head = ["// castsim: target gaudi2", "// castsim: tensor 0 x in f32 [64, 16]", "// castsim: reg S0 = 0x43aa2000"]
    return "\n".join([*head, "// castsim: reg I0 = [0, 0, 0, 0, 0]", *bundles, "nop; halt; halt; nop", ""])


def repeated(chip: str, work: str) -> Callable[[int], str]:
    """Return a maker of texts of one cast or sum over and over."""
    return lambda count: tiles(chip, 1, ((0, 0) for _ in range(count)), work)


def different_casts(chip: str) -> Callable[[int], str]:
    """Return a maker of texts of casts between tiles, no two casts alike."""
    return lambda count: tiles(chip, 450, islice(product(range(450), repeat=2), count), CAST)


WIDE, SLIM = "!pto.tile_buf<vec, 1x16xf32>", "!pto.tile_buf<vec, 1x16xf16>"
CAST = f"    pto.tcvt ins(%a{{src}} {{{{rmode = #pto<round_mode RINT>}}}} : {WIDE}) outs(%b{{dst}} : {SLIM})"
SUM = f"    pto.tadd ins(%a{{src}}, %a{{src}} : {WIDE}, {WIDE}) outs(%a{{src}} : {WIDE})"


def tiles(chip: str, count: int, pairs: Iterable[tuple[int, int]], work: str) -> str:
    view, part = "!pto.tensor_view<1x16xf32>", "!pto.partition_tensor_view<1x16xf32>"
    lines = [f'module attributes {{pto.target_arch = "{chip}"}} {{', "  func.func @k(%src: !pto.ptr<f32>) {"]
    lines += [f"    %c{n} = arith.constant {n} : index" for n in (0, 1, 16)]
    lines += [f"    %v = pto.make_tensor_view %src, shape = [%c1, %c16], strides = [%c16, %c1] : {view}"]
    lines += [f"    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %c16] : {view} -> {part}"]
    for n in range(count):
        lines += [f"    %a{n} = pto.alloc_tile : {WIDE}", f"    %b{n} = pto.alloc_tile : {SLIM}"]
        lines += [f"    pto.tload ins(%p : {part}) outs(%a{n} : {WIDE})"]
    lines += [work.format(src=src, dst=dst) for src, dst in pairs]
    return "\n".join([*lines, "    return", "  }", "}", ""])


TEXTS: dict[str, tuple[str, Callable[[int], str]]] = {
    "bundles, repeated": ("r.tpc", repeated_bundles),
    "bundles, all different": ("d.tpc", different_bundles),
    "tcvt, repeated, A2/A3": ("r3.pto", repeated("a3", CAST)),
    "tcvt, all different, A2/A3": ("d3.pto", different_casts("a3")),
    "tadd, repeated, A2/A3": ("s3.pto", repeated("a3", SUM)),
    "tcvt, repeated, A5": ("r5.pto", repeated("a5", CAST)),
    "tcvt, all different, A5": ("d5.pto", different_casts("a5")),
    "tadd, repeated, A5": ("s5.pto", repeated("a5", SUM)),
}


def measured(path: Path) -> tuple[float, float]:
    """Return seconds of processor time and MiB of one check."""
    done = ended([sys.executable, "-m", "castsim", "check", str(path), "--json", str(path.with_suffix(".json"))])
    if done.code not in (0, 1):
        raise SystemExit(done.err)
    return done.seconds, done.mebibytes


def rows(sizes: tuple[int, ...], folder: Path) -> list[tuple[str, int, float, float]]:
    """Return a row per text and size: seconds and MiB."""
    found = []
    for title, (name, make) in TEXTS.items():
        for size in sizes:
            path = folder / f"{size}-{name}"
            path.write_text(make(size), encoding="utf-8")
            found.append((title, size, *measured(path)))
            print(*found[-1], flush=True)
    return found


def page(found: list[tuple[str, int, float, float]]) -> str:
    """Return the page."""
    rows = (
        (title, f"{size:,}", f"{seconds:.1f}", f"{1000 * seconds / size:.2f}", f"{bound(size):.0f}", f"{mebibytes:.0f}")
        for title, size, seconds, mebibytes in found
    )
    return f"""# Checks of long programs

Written by `python tests/benchmarks/checking.py`: processor time and memory of `castsim check`, the start of
the process included. The bound is the one under `docs/inputs-outputs.md`, limits.

python {sys.version.split()[0]}, two processor cores shared with other work

{table("text | statements | seconds | ms for each | bound, seconds | MiB", rows)}"""


def bound(statements: int) -> float:
    return BASE_SECONDS + statements * MICROSECONDS / 1e6


def main(words: list[str]) -> int:
    """Measure, write the page, and compare with the bound."""
    sizes = tuple(map(int, words)) or SIZES
    with tempfile.TemporaryDirectory() as folder:
        found = rows(sizes, Path(folder))
    write(RECORD, page(found))
    slow = [row for row in found if row[2] > bound(row[1]) or row[3] > MEBIBYTES]
    for row in slow:
        print(f"beyond the bound: {row}", file=sys.stderr)
    return int(bool(slow))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
