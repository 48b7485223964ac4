"""The published timing model of A5's vector functions (docs/reference/a5.md section 6.3, model M2) as formulas.

It shares no code with the product. Constants are the rounded values of the sheet. Kernel inputs are columns of
`vectors/a5_ops_kernels.csv`.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from math import floor

from kit.paths import VECTORS

K, E, NEST, POST, LDX, G0, G1 = 48, 2, 1, 1, 1, 5, 1.25
KM2, CM2, KM1, CM1 = 38.5, 2.06, 52, 1.33
HP, HPO = {32: 346.7, 16: 170}, 8


with (VECTORS / "a5_ops_kernels.csv").open(newline="", encoding="utf-8") as _file:
    KERNELS = list(csv.DictReader(_file))


@dataclass(frozen=True)
class Inputs:
    """What the model takes from a kernel: loads, cycles per trip, post-update, latencies, port cycles."""

    loads: int
    per_trip: int
    post: int
    latencies: tuple[int, ...]
    ports: tuple[int, ...]
    flat: bool

    @classmethod
    def of(cls, row: dict[str, str], bits: int) -> Inputs:
        """Read a row of the table for elements of so many bits."""
        kind = "fp32" if bits == 32 else "fp16"

        def numbers(column: str) -> tuple[int, ...]:
            return tuple(int(word) for word in row[f"{column}_{kind}"].split(";") if word)

        return cls(
            int(row["m2_ld"]), int(row["m2_f"]), int(row["m2_post"]), numbers("lat"), numbers("port_cycles"),
            row["variant"].startswith("1D"),
        )  # fmt: skip


def cycles(kernel: Inputs, rows: int, trips: int) -> int:
    """Cycles of `rows` rows of `trips` trips; a single row is a flat loop."""
    f, total = kernel.per_trip, rows * trips
    nested = not kernel.flat and rows > 1
    latency = sum(kernel.latencies) - 3 * (len(kernel.latencies) - 1)
    start = K + latency + NEST * nested + LDX * (kernel.loads - 1) + POST * kernel.post * kernel.loads
    start -= E * (not nested and trips == 1)
    row = trips * f + max(0, G0 - G1 * (f - 1))
    if not nested:
        work = _special(kernel, trips) + f - 1
    elif trips == 1:
        work = max((rows - 1) * f, _special(kernel, rows)) + f - 1
    else:
        work = max((rows - 1) * row + _special(kernel, trips), _special(kernel, total)) + f - 1
    time = start + work
    if kernel.loads == 2:
        time = max(time, KM2 + CM2 * total)
    elif f == 1 and nested and trips > 1 and not kernel.ports:
        time = max(time, KM1 + CM1 * total)
    return floor(time + 0.5)


def _special(kernel: Inputs, trips: int) -> float:
    """What `trips` trips take at the ports of the special functions, or at the front end."""
    if not kernel.ports:
        return kernel.per_trip * (trips - 1)
    if len(kernel.ports) == 1:
        return kernel.ports[0] * ((trips - 1) // 2) + (trips % 2 == 0)
    return sum(kernel.ports) / 2 * (trips - 1)


def precise_division(kernel: Inputs, bits: int, rows: int, trips: int) -> int:
    """The same of kernels whose trip is the long body of the high-precision division."""
    nested = not kernel.flat and rows > 1
    around = K + NEST * nested + LDX * (kernel.loads - 1) + POST * kernel.post * kernel.loads - HPO
    return floor(around - E * (not nested and trips == 1) + HP[bits] * rows * trips + 0.5)
