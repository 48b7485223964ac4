"""The page "Extend castsim": each list is carried out on a copy of castsim; the files that it names suffice.

The edits touch no test and no file that the lists do not name.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from kit.paths import PROGRAMS, ROOT

PAGE = ROOT / "docs" / "extending.md"
PACKAGES = {"simulator": "castsim", "isa": "castsim/isa", "targets": "castsim/targets"}


class Copy:
    """castsim in a folder of its own; `edit` changes files by their names in the repository."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.touched = folder, set[str]()
        for source, name in PACKAGES.items():
            shutil.copytree(ROOT / source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))

    def edit(self, file: str, before: str, added: str) -> None:
        package, rest = file.split("/", 1)
        path = self.folder / PACKAGES[package] / rest
        text = path.read_text(encoding="utf-8")
        assert before in text
        path.write_text(text.replace(before, before + added, 1), encoding="utf-8")
        self.touched.add(file)

    def run(self, *arguments: str) -> str:
        """Run `castsim` of the copy; what it says is returned, a failure is the test's."""
        return self._python("-m", "castsim", *arguments)

    def evaluate(self, expression: str) -> str:
        """Return what an expression on the copy prints; `castsim` and `np` are there."""
        return self._python("-c", f"import numpy as np, castsim; print({expression})").strip()

    def _python(self, *arguments: str) -> str:
        environment: Mapping[str, str] = {**os.environ, "PYTHONPATH": str(self.folder), "NO_COLOR": "1"}
        done = subprocess.run(
            [sys.executable, *arguments], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    found = Copy(tmp_path)
    assert found.evaluate("castsim.__file__") == str(tmp_path / "castsim" / "__init__.py")
    return found


def matched(number: int) -> set[str]:
    """Return the files that an item of the page's list means; a star stands for any name, a folder for its files."""
    return {
        path.relative_to(ROOT).as_posix()
        for pattern in listed(number)
        for path in ROOT.glob(f"{pattern}*" if pattern.endswith("/") else pattern)
    }


def listed(number: int) -> set[str]:
    """Return the paths that an item of the page's list names."""
    text = PAGE.read_text(encoding="utf-8")
    item = re.search(rf"^{number}\. (.*?)(?=^\d+\. |^\[|\Z)", text, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"`((?:isa|targets|simulator)/[^`]+)`", item[1]))


def test_a_format(copy: Copy) -> None:
    """A float of 7 bits: three of exponent, three of fraction, bias 3, no infinity and no NaN."""
    copy.edit("isa/formats.py", "_ROWS: tuple[Format, ...] = (\n", '    FloatFormat("e3m3", 3, 3, 3, Specials.NONE),\n')
    assert copy.touched <= matched(1)
    # By hand: 1.125 * 2**0 is 011 001; the largest is 1.875 * 2**4 = 30; the smallest 2**-2 / 8 = 1/32.
    numbers = "np.array([1.125, 30, 31, 1e9, -0.03125, 1.0625, 1.1875, 0.0], np.float32)"
    codes = copy.evaluate(f"castsim.cast({numbers}, 'f32', 'e3m3').tolist()")
    assert codes == str([0x19, 0x3F, 0x3F, 0x3F, 0x41, 0x18, 0x1A, 0x00])
    back = copy.evaluate("castsim.cast(np.arange(128, dtype=np.uint8), 'e3m3', 'f32').view(np.float32).tolist()")
    signs = [(code, -1 if code & 64 else 1, code >> 3 & 7, code & 7) for code in range(128)]
    expected = [
        sign * (fraction / 32 if exponent == 0 else (1 + fraction / 8) * 2.0 ** (exponent - 3))
        for _, sign, exponent, fraction in signs
    ]
    assert back == str(expected)
    assert "e3m3" in copy.run("cast", "e3m3", "f32", "1.125")


def test_a_chip_from_a_path_and_shipped(copy: Copy, tmp_path: Path) -> None:
    """A5 with 64 KiB less buffer: a tile in the last 64 KiB is refused; what lies below runs as before."""
    bytes_less = 262_144 - 65_536
    said = 'source = "made up"\nstatus = "assumed"\n'
    text = (
        f'base = "a5"\nname = "a5_less"\narchitectures = ["a5_less"]\n[memories.ub]\ncapacity_bytes = {bytes_less}\n'
        f"allocatable_bytes = {bytes_less}\n{said}[banks]\nbank_bytes = {bytes_less // 16}\n{said}"
    )
    file = tmp_path / "a5_less.toml"
    file.write_text(text)
    program = tmp_path / "high.pto"
    for address, fits in ((bytes_less - 256, True), (bytes_less, False)):
        program.write_text(
            "func.func @k() attributes {pto.entry} {\n"
            f"%at = arith.constant {address} : i64\n"
            "%a = pto.alloc_tile addr = %at : !pto.tile_buf<vec, 1x64xf32>\n"
            "pto.trelu ins(%a : !pto.tile_buf<vec, 1x64xf32>) outs(%a : !pto.tile_buf<vec, 1x64xf32>)\nreturn\n}\n"
        )
        for target in (str(file), "a5_less"):
            if target == "a5_less":
                shutil.copy(file, copy.folder / "castsim" / "targets")
            arguments = ("run", str(program), "--target", target, "--timing-only", "--races", "ignore")
            if fits:
                assert "a5_less" in copy.run(*arguments)
            else:
                with pytest.raises(AssertionError, match=r"the buffer has 196608: 256 bytes past the end"):
                    copy.run(*arguments)
    assert "a5_less" in copy.run("targets")


RELU6 = {
    "isa/pto/vector_operations.py": (
        "COMPOSITIONS: Mapping[str, tuple[Application, ...]] = {\n",
        '    "relu6": (Application("max", 0), Application("min", 6)),\n',
    ),
    "isa/pto/vector_operations.csv": (
        "mnemonic,kind,function,forms,section,attribute,flags\n",
        "trelu6,elementwise,relu6,a,7.3,-,-\n",
    ),
    "targets/a2a3_operations.csv": (
        "approximate,structure,instructions,lines,status,source,note\n",
        "trelu6,i32;f16;f32,-,none,-,-,elementwise,vmaxs vmins,never,assumed,made up,-\n",
    ),
    "targets/a5_operations.csv": (
        "scalar_integers,broadcasts,control,controlled,status,source,note\n",
        "trelu6,i32;f16;f32,-,none,-,-,elementwise,vmaxs vmins,tile,-,-,-,-,assumed,made up,-\n",
    ),
}
"""The files that are touched: what is put behind which of their lines."""


def test_a_tile_operation(copy: Copy, tmp_path: Path) -> None:
    """`trelu6` clamps to [0, 6]. NaN wins, as in all maxima of these chips, and becomes 0 where results clamp.

    Cycles on A2/A3, by a chip's profile: startup 4 of vmaxs and vmins, four repeats, and 12 until the next step may
    begin; one cycle to issue. A5, one trip a row: VfSim lets vmins take the result of vmaxs 2 cycles after it, where a
    store takes it 6 - 3 cycles after it; vmins, as long, is then stored 6 - 3 cycles later.
    """
    for file, (before, added) in RELU6.items():
        copy.edit(file, before, added)
    assert copy.touched - {"isa/pto/vector_operations.py"} <= matched(3)
    numbers = [-np.inf, -7.5, -0.0, 0.0, 0.25, 3.0, 5.99, 6.0, 6.01, 1e4, np.inf, np.nan]
    for chip, (element, kind) in product(("a2a3", "a5"), (("f32", "<f4"), ("f16", "<f2"), ("i32", "<i4"))):
        given = np.resize(np.array([-7, 0, 5, 6, 7, 2**31 - 1] if kind[1] == "i" else numbers, kind), (5, 60))
        expected = np.minimum(np.maximum(given, given.dtype.type(0)), given.dtype.type(6))
        expected = np.nan_to_num(expected) if (chip, element) == ("a5", "f16") else expected
        np.save(tmp_path / "src.npy", given)
        words = ["-e", f"trelu6 {element} 5x60", "--target", chip, "--in", f"src={tmp_path / 'src.npy'}"]
        copy.run("run", *words, "--out", str(tmp_path / "out"), "--quiet")
        assert np.array_equal(np.load(tmp_path / "out" / "dst.npy"), expected, equal_nan=kind[1] == "f"), words
    estimated = "castsim.tools.estimate.operation_estimates.estimate_tile_operation"
    estimates = (f"{estimated}({name!r}, 'f32', 4, 64, target={chip!r}).cycles"
                 for name, chip in (("trelu6", "a2a3"), ("trelu6", "a5"), ("tmaxs", "a5")))  # fmt: skip
    found = copy.evaluate(f"[__import__('{estimated.rpartition('.')[0]}'), {', '.join(estimates)}][1:]")
    cycles = [int(number) for number in found.strip("[]").split(", ")]
    assert cycles[0] == 1 + (4 + 4 + 12) + (4 + 4 + 12)
    assert cycles[1] == cycles[2] - (6 - 3) + 2 + (6 - 3)


ABSOLUTE = """    return codes_of(np.abs(integers(a, fmt)), fmt)  # the smallest number wraps to itself, as sums do
"""
MEAN = """

def _mean(a: Codes, b: Codes, fmt: Format, context: Context) -> Codes:
    return codes_of(integers(a, fmt) + integers(b, fmt) >> 1, fmt)
"""
GENERATIONS = ("goya", "gaudi", "gaudib", "greco", "gaudi2") if "CASTSIM_THOROUGH" in os.environ else ("greco",)
PROGRAM = """// castsim: tensor 0 x in i32 [64]
// castsim: tensor 1 y out i32 [64]
nop; mov.i32 S1, -3; nop; nop
ld_tnsr V0, 0x0, I0; nop; nop; nop
{gap}nop; mean.i32 S2, S1, 0x8; mean.i32 V1, V0, S1; nop
{gap}nop; nop; mean.i32 V2, V1, S2; nop
{gap}nop; nop; nop; st_tnsr 0x1, I0, V2
{gap}nop; halt; halt; nop
"""


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_tpc_instruction(generation: str, copy: Copy, tmp_path: Path) -> None:
    """MEAN: half the sum of two integers, rounded down, on scalars, indices and vectors, also in binaries."""
    copy.edit("isa/tpc/instructions.py", '    "max=5 min=6": tuple(_plain()),\n', '    "mean=56": _plain(),\n')
    values = "simulator/machines/vliw/semantics/elementwise.py"
    copy.edit(values, ABSOLUTE, MEAN)
    copy.edit(values, '    "add": ElementwiseKind(_add),\n', '    "mean": ElementwiseKind(_mean, floats=False),\n')
    assert copy.touched <= matched(4)
    program, x = tmp_path / "mean.tpc", np.arange(-32, 32, dtype=np.int32) * 1000 + 1
    program.write_text(PROGRAM.format(gap="nop; nop; nop; nop\n" * 12))
    np.save(tmp_path / "x.npy", x)
    arguments = (str(program), "--target", generation)
    said = copy.run("run", *arguments, "--in", f"x={tmp_path / 'x.npy'}", "--out", str(tmp_path / "out"))
    assert "mean" in said
    # S2 = floor((-3 + 8) / 2) = 2.
    expected = [((int(number) - 3) // 2 + 2) // 2 for number in x]
    assert np.load(tmp_path / "out" / "y.npy").tolist() == expected
    copy.run("lint", *arguments)
    on, (code, text, again) = ("--target", generation), (str(tmp_path / name) for name in ("m.bin", "m.tpc", "n.bin"))
    copy.run("asm", *arguments, "--out", code)
    assert copy.run("disasm", code, *on).count("mean.i32 V1, V0, S1") == 1
    copy.run("disasm", code, *on, "--text", "--out", text)
    copy.run("asm", text, *on, "--out", again)
    assert Path(code).read_bytes() == Path(again).read_bytes()
    copy.run(
        "run", code, *on, "--declare", str(program), "--in", f"x={tmp_path / 'x.npy'}", "--out", str(tmp_path / "b")
    )
    assert np.load(tmp_path / "b" / "y.npy").tolist() == expected
    assert len(copy.touched) == 2


def test_a_what_if(copy: Copy, tmp_path: Path) -> None:
    """A limit is a table; here one of a derived target, and one of the shipped file."""
    table = '\n[what_if.free-launch-of-all]\ntitle = "nothing waits for a start"\n[what_if.free-launch-of-all.set]\n'
    table += '"timing.load.startup_cycles" = 0\n"timing.store.startup_cycles" = 0\n'
    file = tmp_path / "mine.toml"
    file.write_text(f'base = "a2a3"\nname = "mine"\n{table}')
    program = PROGRAMS / "f32_to_f16.pto"
    copy.edit("targets/a2a3.toml", "# Limits that", "")
    assert copy.touched <= matched(5)
    shipped = copy.folder / "castsim" / "targets" / "a2a3.toml"
    shipped.write_text(shipped.read_text(encoding="utf-8") + table, encoding="utf-8")
    for target in (str(file), "a2a3"):
        said = copy.run("run", str(program), "--target", target, "--timing-only", "--what-if", "free-launch-of-all")
        assert "free-launch-of-all" in said


COMMAND = '''"""A command of another package."""

from castsim.commands.feature import Feature
from castsim.commands.outcome import CommandOutcome


def _declare(parser):
    """NAME is greeted.

    examples:
      castsim greet world
    """
    parser.add_argument("name", metavar="NAME", help="who is greeted")


def execute(options):
    return CommandOutcome({"greeted": options.name}, lambda width: f"hello {options.name}")


GREET = Feature("greet", "improve", "greet somebody", _declare, "greeting")
'''


def packaged(folder: Path, module: str, entry: str) -> None:
    """Install a package of one module, whose entry point adds a command."""
    (folder / "greeting.py").write_text(module, encoding="utf-8")
    about = folder / "greeting-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text(f"[castsim.features]\n{entry}\n", encoding="utf-8")


def test_a_command_of_another_package(copy: Copy) -> None:
    assert "`castsim.features`" in PAGE.read_text(encoding="utf-8")
    packaged(copy.folder, COMMAND, "greet = greeting:GREET")
    assert copy.run("greet", "world") == "hello world\n"
    assert '"greeted": "world"' in copy.run("greet", "world", "--quiet", "--json", "-")
    assert "castsim greet world" in copy.run("help", "greet")
    assert copy.touched == set()


@pytest.mark.parametrize(
    ("module", "entry", "message"),
    [
        ("raise OSError('no disk')", "greet = greeting:GREET", "the package greeting cannot be loaded: no disk"),
        (COMMAND, "hello = greeting:GREET", "is not a Feature named hello: greeting:GREET"),
        ("GREET = 1", "greet = greeting:GREET", "is not a Feature named greet: greeting:GREET"),
    ],
)
def test_a_command_of_another_package_that_is_wrong(copy: Copy, module: str, entry: str, message: str) -> None:
    packaged(copy.folder, module, entry)
    with pytest.raises(AssertionError) as refused:
        copy.run(entry.split(maxsplit=1)[0], "world")
    assert message in str(refused.value)
    assert "Traceback" not in str(refused.value)
