"""Without an optional package: the commands and functions that need it name the extra that has it, all others run.

The package is hidden in a process of its own, in the two ways in which one can be missing: the finder does not find it,
or its place in `sys.modules` is empty.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from kit.paths import ROOT
from packaging.requirements import Requirement

from castsim.isa.errors import extra_command

SWEEP = 'kind = "cast"\n[grid]\nsrc = "f32"\ndst = "f16"\nrows = 16\ncols = 64\ntarget = "a5"\n'
KERNEL = "void main(tensor x, tensor y) {\n  int5 at = {0};\n}\n"
TILELANG = "import tilelang\nimport tilelang.language as T\n\n\ndef kernel():\n    return None\n"
RUN = "castsim.run('programs/f32_to_f16.pto', timing_only=True)"
C = [("check kernel.c --target gaudi2", ""), ("asm kernel.c --target gaudi2", "")]
NEEDS: dict[tuple[str, str], list[tuple[str, str]]] = {
    ("pyarrow", "sweep"): [("sweep grid.toml --out made", ""), ("", "castsim.sweep('grid.toml', 'made')")],
    ("distributed", "cluster"): [
        ("conform --spec tosa --target a5 --src f16 --dst i8 --scheduler tcp://127.0.0.1:1", "")
    ],
    ("scipy", "calibrate"): [
        ("calibrate --help", "-"),
        ("calibrate --data measured.csv --target a5 --out own.toml", ""),
    ],
    ("onnx", "onnx"): [("graph quantise_half.onnx --target a5 --in x=random:1 --arg rows=32", "")],
    ("pcpp", "c"): C,
    ("pycparser", "c"): C,
    ("pygls", "lsp"): [("lsp", "")],
    ("pandas", "notebook"): [("", f"{RUN}.to_frame('lines', library='pandas')")],
    ("matplotlib", "notebook"): [("", f"{RUN}.plot()")],
    ("viztracer", "view"): [
        ("run programs/f32_to_f16.pto --timing-only --trace t.json", "-"),
        ("view t.json --no-open", "exit 0"),
    ],
    ("tilelang", "tilelang"): [("run tile.py:kernel", "")],
    ("numba", ""): [("", "castsim.cast([1.5], 'f32', 'f16')"), ("verify --help", "-")],
}
"""By package and the extra that has it: a command line, or code, that needs it; `-`: needs nothing of it."""
ALWAYS = ("run programs/f32_to_f16.pto --timing-only", "cast f32 f16 1.5 --target a5")
SCRIPT = """
import sys
hidden, way, root = sys.argv[1], sys.argv[2], sys.argv[3]
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == hidden:
            raise ModuleNotFoundError(f"No module named {hidden!r}", name=hidden)
if way == "finder":
    sys.meta_path.insert(0, Hidden())
else:
    sys.modules[hidden] = None
import contextlib, io
from castsim.__main__ import main
import castsim
for line in sys.stdin.read().splitlines():
    kind, text = line.split("|", 1)
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        try:
            if kind == "code":
                exec(text.replace("'programs", repr(root + "/programs")[:-1]))
                code = 0
            else:
                code = main(text.split())
        except castsim.CastsimError as error:
            code = 1; print("error:", error.render() if hasattr(error, "render") else error, error.legal)
        except SystemExit as error:
            code = error.code
        except BaseException as error:
            code = -1; print("Traceback", type(error), error)
    print(repr((code, told.getvalue())))
"""


@pytest.mark.parametrize(
    ("package", "extra", "way"),
    [*((*row, "finder") for row in NEEDS), ("pyarrow", "sweep", "modules"), ("numba", "", "modules")],
)
def test_what_needs_a_missing_package_names_its_extra(tmp_path: Path, package: str, extra: str, way: str) -> None:
    (tmp_path / "grid.toml").write_text(SWEEP)
    (tmp_path / "kernel.c").write_text(KERNEL)
    (tmp_path / "tile.py").write_text(TILELANG)
    (tmp_path / "measured.csv").write_text("src,dst,rows,cols,measured_cycles\nf32,f16,16,64,80\nf32,f16,32,64,120\n")
    (tmp_path / "quantise_half.onnx").write_bytes((ROOT / "programs/quantise_half.onnx").read_bytes())
    needing = NEEDS[package, extra]
    lines = [f"command|{line.replace('programs', str(ROOT / 'programs'))}" for line in ALWAYS]
    lines += [
        f"command|{command.replace('programs', str(ROOT / 'programs'))}" if command else f"code|{code}"
        for command, code in needing
    ]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, package, way, str(ROOT)],
        input="\n".join(lines), capture_output=True, text=True, cwd=tmp_path, timeout=300, check=True,
    )  # fmt: skip
    results = [eval(line) for line in done.stdout.splitlines()]
    assert len(results) == len(lines), done.stderr
    for _, told in results:
        assert "internal error" not in told, told
        assert "Traceback" not in told, told
    assert all(code == 0 for code, _ in results[: len(ALWAYS)]), results[: len(ALWAYS)]
    for (_, mark), (code, told) in zip(needing, results[len(ALWAYS) :], strict=True):
        if not extra or mark == "-":
            assert code in (0, None), told
        else:
            assert f"pip install 'castsim[{extra}]'" in " ".join(told.split()), told
            assert (code == 0) == (mark == "exit 0")


def test_in_a_checkout_the_command_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert extra_command("sweep") == "pip install 'castsim[sweep]'"
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\n')
    assert extra_command("sweep") == "pip install 'castsim[sweep]'"
    monkeypatch.chdir(ROOT)
    assert extra_command("sweep") == "pip install '.[sweep]'"


def test_every_extra_is_in_the_table_of_the_installation_page() -> None:
    """Those of pyproject.toml; a page that leaves one out sends its users to a refusal."""
    import tomllib  # noqa: PLC0415

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    page = (ROOT / "docs/tutorial/install.md").read_text()
    assert {name for name in extras if f"`{name}`" not in page} == set()
    readme = (ROOT / "README.md").read_text()
    assert {name for name in extras if name not in ("docs", "test") and f"`{name}`" not in readme} == set()


def needed(requirements: list[str], known: set[str]) -> set[str]:
    """Return the distributions that requirements without extras ask for, and those that these ask for."""
    for each in map(Requirement, requirements):
        if each.name not in known and (each.marker is None or each.marker.evaluate({"extra": ""})):
            known.add(each.name)
            needed(metadata.requires(each.name) or [], known)
    return known


def test_castsim_needs_no_more_than_it_declares(tmp_path: Path) -> None:
    """An environment with links to castsim and to the distributions that pyproject.toml asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name in needed(project["dependencies"], set()):
        found = metadata.distribution(name)
        for part in {path.parts[0] for path in found.files or () if path.parts[0] not in ("..", "__pycache__")}:
            (tmp_path / part).symlink_to(Path(str(found.locate_file(part))).resolve())
    (tmp_path / "castsim").mkdir()
    for path in (*(ROOT / "simulator").iterdir(), ROOT / "isa", ROOT / "targets"):
        (tmp_path / "castsim" / path.name).symlink_to(path)
    for line in (*ALWAYS, "verify f16 i8 --rounding rint --overflow saturate --against reference"):
        words = line.replace("programs", str(ROOT / "programs")).split()
        command = [sys.executable, "-S", "-m", "castsim", *words]
        subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=True)
