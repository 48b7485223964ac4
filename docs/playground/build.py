"""Builds the playground into the site: `python docs/playground/build.py`, after the site; needs npm and PyPI.

Pyodide comes from npm, castsim's dependencies and their browser wheels from PyPI. Wheels that its lock file names and
PyPI lacks are taken from `--wheels DIR`, if they lie there; else the page says what is missing. All of it is written as
scripts, as a page opened from disk can load nothing else.
"""

from __future__ import annotations

import argparse
import base64
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYODIDE = "314.0.7"
PLAIN = ("simpy", "pydantic", "rich", "shtab", "platformdirs")
LOCKED = ("numpy", "ml-dtypes")
"""Packages that are taken in the version of Pyodide's lock file, or not at all."""
CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")
SAMPLES = (
    "f32_to_f16.pto", "f32_to_f16_pipelined.pto", "a5_f32_to_e4m3fn_padded.pto", "f32_to_i16_partial.pto",
    "kernels/rms_norm_a2a3.pto", "tpc_f32_i16_quantise_greco.tpc", "tpc_f32_f8_143_gaudi2.tpc",
)  # fmt: skip


def called(*command: object) -> bool:
    """Run a command; return whether it succeeded."""
    return subprocess.run([str(word) for word in command], capture_output=True, check=False).returncode == 0


def fetched(folder: Path, given: Path | None) -> tuple[Path, list[str]]:
    """Fill a folder with Pyodide and wheels; return that of Pyodide, and the names of the wheels that cannot be had."""
    if not called("npm", "pack", f"pyodide@{PYODIDE}", "--silent", "--pack-destination", folder):
        sys.exit(f"pyodide {PYODIDE} cannot be had from npm")
    with tarfile.open(folder / f"pyodide-{PYODIDE}.tgz") as archive:
        archive.extractall(folder, filter="data")
    core = folder / "package"
    lock = json.loads((core / "pyodide-lock.json").read_text(encoding="utf-8"))
    python, platform = lock["info"]["python"].rpartition(".")[0], f"pyemscripten_{lock['info']['abi_version']}_wasm32"
    pip = (sys.executable, "-m", "pip", "-q")
    target = ("--only-binary=:all:", "--platform", platform, "--python-version", python, "-d", folder)
    if not called(*pip, "download", *target, *PLAIN):
        sys.exit(f"the dependencies {', '.join(PLAIN)} cannot be had as wheels for {platform}")
    if not called(*pip, "wheel", "--no-deps", "-w", folder, ROOT):
        sys.exit("castsim cannot be built as a wheel")
    missing = []
    for name in LOCKED:
        wheel = lock["packages"][name]["file_name"]
        if given and (given / wheel).is_file():
            shutil.copy(given / wheel, folder)
        elif not called(*pip, "download", *target, "--no-deps", f"{name}=={lock['packages'][name]['version']}"):
            missing.append(wheel)
    return core, missing


def parts(core: Path, wheels: Path) -> Iterator[Path]:
    """Yield the files that the page loads."""
    yield from (core / name for name in CORE)
    yield from sorted(wheels.glob("*.whl"))
    yield from (HERE / "standin.py", HERE / "session.py")


def build(site: Path, given: Path | None) -> list[str]:
    """Write the playground into a site; return the names of missing wheels."""
    out = site / "playground"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        core, missing = fetched(folder, given)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        names, size = [], 0
        for path in parts(core, folder):
            data = path.read_bytes()
            size += len(data)
            names.append(path.name)
            text = f'PLAYGROUND.add({json.dumps(path.name)}, "{base64.b64encode(data).decode()}");\n'
            (out / f"{path.name}.js").write_text(text, encoding="ascii")
    samples = {name: (ROOT / "programs" / name).read_text(encoding="utf-8") for name in SAMPLES}
    found = {"pyodide": PYODIDE, "parts": names, "bytes": size, "missing": missing, "samples": samples}
    (out / "manifest.js").write_text(f"const PLAYGROUND_BUILT = {json.dumps(found)};\n", encoding="utf-8")
    return missing


def main(words: Sequence[str] | None = None) -> int:
    """Build, and say what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=Path, default=ROOT / "build" / "site", help="folder of the site")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="folder with browser wheels of Pyodide's lock file")
    options = parser.parse_args(words)
    if not (options.site / "playground.html").is_file():
        parser.error(f"{options.site} has no playground.html: build the site first (README)")
    missing = build(options.site, options.wheels)
    sys.stdout.write(f"{options.site / 'playground.html'}: built; missing: {', '.join(missing) or 'nothing'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
