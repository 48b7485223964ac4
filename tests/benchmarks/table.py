"""Results as data and as a table for people."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from kit.measured_record import table

from benchmarks.timing import Quartiles, quartiles

LIBRARIES = ("ml_dtypes", "numpy", "en_dtypes", "onnxruntime", "torch")


@dataclass(slots=True)
class Row:
    """One cast at one size: elements per second, and ratios of castsim to every contestant."""

    name: str
    rounding: str
    overflow: str
    tier: str
    elements: int
    rate: Quartiles
    of_copy: Quartiles
    ratios: dict[str, Quartiles]

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        return self.name, self.rounding, self.overflow, self.tier, self.elements


def row_of(case: Any, elements: int, seconds: dict[str, np.ndarray]) -> Row:
    own, policy = seconds["castsim"], case.policy
    ratios = {name: quartiles(taken / own) for name, taken in seconds.items() if name not in ("castsim", "copy")}
    return Row(
        name=case.name,
        rounding=str(policy.rounding),
        overflow=str(policy.overflow),
        tier=case.tier,
        elements=elements,
        rate=quartiles(elements / own),
        of_copy=quartiles(seconds["copy"] / own),
        ratios=ratios,
    )


def rows_from(data: list[dict[str, Any]]) -> list[Row]:
    """Return the rows that `asdict` was made of."""
    rows = []
    for item in data:
        ratios = {name: Quartiles(**value) for name, value in item["ratios"].items()}
        own = {name: Quartiles(**item[name]) for name in ("rate", "of_copy")}
        rows.append(Row(**{**item, **own, "ratios": ratios}))
    return rows


def machine() -> dict[str, str]:
    """Return what the figures depend on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        fields = dict(line.split(":", 1) for line in info.read_text().splitlines() if ":" in line)
        named = {key.strip(): value.strip() for key, value in fields.items()}
        cpu = "{model name} (family {cpu family}, model {model})".format_map(named)
    hardware = {"processor": cpu, "caches": _caches(), "vectors of": f"{_vector_bits()} bits"}
    return hardware | {"python": platform.python_version(), **_versions()}


def _caches() -> str:
    """Return the data caches of the first processor, as `L1 48K L2 1024K`."""
    folders = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"))
    caches = [[(folder / name).read_text().strip() for name in ("type", "level", "size")] for folder in folders]
    return " ".join(f"L{level} {size}" for kind, level, size in caches if kind != "Instruction") or "unknown"


def _vector_bits() -> int:
    """Return the width of the registers that numba's code uses: the widest, unless the environment names others."""
    features = numba.config.CPU_FEATURES
    enabled = llvm.get_host_cpu_features().flatten() if features is None else features
    return next((bits for name, bits in (("+avx512f", 512), ("+avx2", 256)) if name in enabled.split(",")), 128)


def machine_text() -> str:
    """Return the same as a line of a page."""
    return ", ".join(f"{name} {value}" for name, value in machine().items())


def _versions() -> dict[str, str]:
    found = {}
    for name in ("numpy", "numba", *LIBRARIES[:1], *LIBRARIES[2:]):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _size(count: int) -> str:
    for unit, name in ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return str(count)


def _ratio(value: Quartiles | None) -> str:
    if value is None:
        return "-"
    digits = 2 if value.median < 2 else 1 if value.median < 20 else 0
    return f"{value.median:.{digits}f} ({value.lower:.{digits}f}-{value.upper:.{digits}f})"


def markdown(rows: list[Row]) -> str:
    """Return one table: rates in 1e9 elements per second, ratios as median and quartiles."""
    libraries = [name for name in LIBRARIES if any(name in row.ratios for row in rows)]
    head = ["cast", "rounding", "overflow", "tier", "elements", "Ge/s", "of copy", *(f"x {name}" for name in libraries)]
    lines = []
    for row in rows:
        cells = [row.name, row.rounding, row.overflow, row.tier, _size(row.elements)]
        cells += [f"{row.rate.median / 1e9:.2f}", f"{row.of_copy.median:.2f}"]
        cells += [_ratio(row.ratios.get(name)) for name in libraries]
        lines.append(cells)
    return table(" | ".join(head), lines)


def as_data(rows: list[Row]) -> dict[str, Any]:
    return {"schema_version": 1, "machine": machine(), "rows": [asdict(row) for row in rows]}
