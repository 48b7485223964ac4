"""The seed corpus: the sample programs, the vectors of the tests, and what once broke a reader."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
REGRESSIONS = Path(__file__).parent / "regressions"
MOST_BYTES = 1 << 14
"""Longest seed: reading longer ones would take the time of many inputs."""

_FOLDERS = (
    ROOT / "programs", ROOT / "programs" / "kernels", ROOT / "programs" / "sequential", ROOT / "programs" / "tuning",
    TESTS / "vectors" / "hostile", TESTS / "vectors" / "pto_own", TESTS / "vectors" / "pto_scalars",
    TESTS / "vectors" / "pto_specimens",
)  # fmt: skip


@cache
def files(suffix: str, *folders: Path) -> tuple[bytes, ...]:
    """Return the small files with a suffix, in the order of their names; without folders those of the whole corpus."""
    found = [path for folder in folders or _FOLDERS for path in sorted(folder.glob(f"*{suffix}"))]
    return tuple(path.read_bytes() for path in found if path.stat().st_size <= MOST_BYTES)


def regressions(reader: str) -> tuple[Path, ...]:
    return tuple(path for path in sorted(REGRESSIONS.iterdir()) if path.name.rpartition("-")[0] == reader)


@cache
def micro() -> tuple[bytes, ...]:
    kernels = (TESTS / "vectors" / "micro_own" / "kernels.txt").read_text(encoding="utf-8")
    parts = [f"//{each}".encode() for each in kernels.split("////")[1:]]
    short = sorted((each for each in parts if len(each) <= MOST_BYTES), key=len)
    return (*files(".pto", ROOT / "programs" / "micro"), *short[::7])


def logical() -> tuple[bytes, ...]:
    return files(".pto", ROOT / "programs" / "micro" / "logical")


@cache
def binaries() -> tuple[bytes, ...]:
    """Return assembled sample programs, of the newest generation, and of the oldest."""
    from castsim.isa.tpc.parser import parse  # noqa: PLC0415
    from castsim.tools.tpc_assembly.asm import encoded_target  # noqa: PLC0415 - only for binaries
    from castsim.tools.tpc_binary.assembler import assemble  # noqa: PLC0415

    found = []
    for name in ("gaudi2", "goya"):
        target, encoding = encoded_target(name)
        for path in sorted((ROOT / "programs").glob(f"*_{name}.tpc")):
            program = parse(path.read_text(encoding="utf-8"), target.dialect)
            found.append(assemble(program, encoding).code)
    return tuple(found)


@cache
def records() -> tuple[bytes, ...]:
    """Return records as the product writes them, cut to a few of their parts."""
    found = []
    for path in (ROOT / "simulator" / "tools" / "verify" / "records" / "f32.json",
                 ROOT / "simulator" / "tools" / "lowering" / "records" / "substitutions.json",
                 ROOT / "docs" / "tools" / "lowering-onnx.json"):  # fmt: skip
        held = json.loads(path.read_text(encoding="utf-8"))
        for key, value in held.items():
            if isinstance(value, list):
                held[key] = value[:1]
        found.append(json.dumps(held).encode()[:MOST_BYTES])
    return tuple(found)


@cache
def results() -> tuple[bytes, ...]:
    """Return what `castsim run --json` writes of two programs, with outputs of which the files are gone."""
    import tempfile  # noqa: PLC0415 - only for results

    from castsim.__main__ import main  # noqa: PLC0415

    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.json"
        for name, source in (("f32_to_f16.pto", "src"), ("tpc_f32_f8_143_gaudi2.tpc", "x")):
            words = ["run", str(ROOT / "programs" / name), "--in", f"{source}=random:1", "--out", folder]
            assert main([*words, "--json", str(path), "--quiet"]) == 0
            found.append(path.read_bytes())
    return tuple(found)


@cache
def arrays() -> tuple[bytes, ...]:
    """Return `.npy` files of several dtypes and shapes."""
    import io  # noqa: PLC0415 - only for arrays

    found = list(files(".npy"))
    for dtype in ("<f4", ">f2", "u1", "<i8", "?", "<u2", "<c8"):
        for shape in ((), (0,), (3,), (2, 4), (1, 1, 3)):
            file = io.BytesIO()
            np.save(file, np.zeros(shape, dtype))
            found.append(file.getvalue())
    return tuple(found)
