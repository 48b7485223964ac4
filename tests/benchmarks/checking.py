"""How long `castsim check` takes for long programs, up to the limit; writes `docs/measured/checking.json`.

python tests/benchmarks/checking.py [STATEMENTS ...]

Every text has so many bundles or tile instructions, either the same few over and over or no two alike. Exit code 1 if
one takes longer than the bound that the page of limits states, or more memory.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import islice, product
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from measured_record import MEASURED, write

RECORD = MEASURED / "checking.json"
SIZES = (2_000, 20_000, 200_000)
BASE_SECONDS, MICROSECONDS, MEBIBYTES = 10, 2_000, 1_024
"""What the page of limits states: so many seconds and so many microseconds for each statement; so much memory."""

_TIMED = """
import resource, sys
from castsim.__main__ import main
code = main(["check", sys.argv[1], "--json", sys.argv[2]])
own = resource.getrusage(resource.RUSAGE_SELF)
print(code, own.ru_utime + own.ru_stime, own.ru_maxrss / 1024, file=sys.stderr)
"""


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


def repeated_casts(chip: str) -> Callable[[int], str]:
    """Return a maker of texts of one cast over and over."""
    return lambda count: _tiles(chip, 1, ((0, 0) for _ in range(count)), _cast)


def different_casts(chip: str) -> Callable[[int], str]:
    """Return a maker of texts of casts between tiles, no two casts alike."""
    return lambda count: _tiles(chip, 450, islice(product(range(450), repeat=2), count), _cast)


def repeated_sums(chip: str) -> Callable[[int], str]:
    """Return a maker of texts of one sum over and over."""
    return lambda count: _tiles(chip, 1, ((0, 0) for _ in range(count)), _sum)


def _cast(kinds: tuple[str, str], src: int, dst: int) -> str:
    return f"    pto.tcvt ins(%a{src} {{rmode = #pto<round_mode RINT>}} : {kinds[0]}) outs(%b{dst} : {kinds[1]})"


def _sum(kinds: tuple[str, str], src: int, _: int) -> str:
    return f"    pto.tadd ins(%a{src}, %a{src} : {kinds[0]}, {kinds[0]}) outs(%a{src} : {kinds[0]})"


def _tiles(chip: str, tiles: int, pairs: object, written: Callable[[tuple[str, str], int, int], str]) -> str:
    kinds = "!pto.tile_buf<vec, 1x16xf32>", "!pto.tile_buf<vec, 1x16xf16>"
    view, part = "!pto.tensor_view<1x16xf32>", "!pto.partition_tensor_view<1x16xf32>"
    lines = [f'module attributes {{pto.target_arch = "{chip}"}} {{', "  func.func @k(%src: !pto.ptr<f32>) {"]
    lines += [f"    %c{n} = arith.constant {n} : index" for n in (0, 1, 16)]
    lines += [f"    %v = pto.make_tensor_view %src, shape = [%c1, %c16], strides = [%c16, %c1] : {view}"]
    lines += [f"    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %c16] : {view} -> {part}"]
    for n in range(tiles):
        lines += [f"    %a{n} = pto.alloc_tile : {kinds[0]}", f"    %b{n} = pto.alloc_tile : {kinds[1]}"]
        lines += [f"    pto.tload ins(%p : {part}) outs(%a{n} : {kinds[0]})"]
    lines += [written(kinds, src, dst) for src, dst in pairs]  # type: ignore[attr-defined]
    return "\n".join([*lines, "    return", "  }", "}", ""])


TEXTS: dict[str, tuple[str, Callable[[int], str]]] = {
    "bundles, repeated": ("r.tpc", repeated_bundles),
    "bundles, all different": ("d.tpc", different_bundles),
    "tcvt, repeated, A2/A3": ("r3.pto", repeated_casts("a3")),
    "tcvt, all different, A2/A3": ("d3.pto", different_casts("a3")),
    "tadd, repeated, A2/A3": ("s3.pto", repeated_sums("a3")),
    "tcvt, repeated, A5": ("r5.pto", repeated_casts("a5")),
    "tcvt, all different, A5": ("d5.pto", different_casts("a5")),
    "tadd, repeated, A5": ("s5.pto", repeated_sums("a5")),
}


def measured(path: Path) -> tuple[float, float]:
    """Return seconds of processor time and MiB of one check."""
    found = path.with_suffix(".json")
    command = [sys.executable, "-c", _TIMED, str(path), str(found)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    code, seconds, mebibytes = done.stderr.splitlines()[-1].split()
    if code not in ("0", "1"):
        raise SystemExit(done.stderr)
    return float(seconds), float(mebibytes)


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
    lines = [
        "# Checks of long programs",
        "",
        "Written by `python tests/benchmarks/checking.py`: processor time and memory of `castsim check`, the start of",
        "the process included. The bound is the one under `docs/inputs-outputs.md`, limits.",
        "",
        f"python {sys.version.split()[0]}, two processor cores shared with other work",
        "",
        "| text | statements | seconds | ms for each | bound, seconds | MiB |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for title, size, seconds, mebibytes in found:
        bound = BASE_SECONDS + size * MICROSECONDS / 1e6
        each = 1000 * seconds / size
        lines.append(f"| {title} | {size:,} | {seconds:.1f} | {each:.2f} | {bound:.0f} | {mebibytes:.0f} |")
    return "\n".join([*lines, ""])


def main(words: list[str]) -> int:
    """Measure, write the page, and compare with the bound."""
    sizes = tuple(map(int, words)) or SIZES
    with tempfile.TemporaryDirectory() as folder:
        found = rows(sizes, Path(folder))
    write(RECORD, page(found))
    slow = [row for row in found if row[2] > BASE_SECONDS + row[1] * MICROSECONDS / 1e6 or row[3] > MEBIBYTES]
    for row in slow:
        print(f"beyond the bound: {row}", file=sys.stderr)
    return int(bool(slow))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
