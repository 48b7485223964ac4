"""What a command loads: only what answers the question, so that short commands stay short. No times are taken here."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from simulator.commands import line
from targets.loader import SHIPPED

ROOT = Path(line.__file__).parents[2]

OPTIONAL = ("numba", "llvmlite", "onnx", "google.protobuf", "ml_dtypes")
"""Libraries of extras and of the boundary: for work that needs them."""
EVENTS = ("simpy", "simulator.engines.event_dataflow.simulation", "simulator.engines.event_vliw")
"""The engine that nobody asks for below."""
PROGRESS = ("rich.progress", "rich.live")
"""For terminals."""
COMPUTING = ("numpy", "simulator.numerics", "simulator.engines", "simulator.execution")
RUNNING = ("simulator.engines", "simulator.execution", "simulator.races", "isa.pto.parser", "isa.tpc.parser")
TILES = ("simulator.strided", "simulator.vector_function", "isa.pto.parser")
ASSEMBLY = ("simulator.vliw.semantics", "simulator.vliw.machine", "isa.tpc.parser", "isa.tpc.instructions")
PLANNING = ("simulator.planning", "simulator.conformance", "simulator.graphs", "simulator.verification")

NEVER = (*OPTIONAL, *EVENTS, *PROGRESS)
CASES = {
    "targets": (*COMPUTING, *TILES, *ASSEMBLY, *PLANNING),
    "targets a2a3": ("simulator.engines", "simulator.execution", "simulator.vector_function", *ASSEMBLY, *PLANNING),
    "targets gaudi2": ("simulator.engines", "simulator.execution", "simulator.strided", *PLANNING),
    "cast f32 i16 1": (*RUNNING, *TILES, *ASSEMBLY, *PLANNING),
    "cast f32 i16 1 --target a5": (*RUNNING, "simulator.strided", *ASSEMBLY, *PLANNING),
    "cast f32 i16 1 --target gaudi2": ("simulator.engines", "simulator.races", *TILES, "simulator.vliw.machine"),
    "scratch f32 i16 --rows 8 --cols 64 --row-stride 64 --target a2a3": (*RUNNING, *ASSEMBLY, *PLANNING),
    "lower f16 i8 --spec tosa --target a5": (*ASSEMBLY, "simulator.conformance", "simulator.compiled_casts"),
    "lower f16 i8 --spec tosa --target gaudi2": (
        "simulator.strided", "simulator.vector_function", "simulator.builtins.calling",
        "simulator.compiled_casts.compiling", "simulator.conformance",
    ),
    "run programs/f32_to_f16.pto --timing-only": (*ASSEMBLY, *PLANNING),
    "run programs/tpc_f32_f8_143_gaudi2.tpc --timing-only": (*TILES[:2], *PLANNING),
    "lint programs/tpc_f32_f8_143_gaudi2.tpc": ("simulator.engines", *TILES, *PLANNING),
    "asm programs/tpc_f32_f8_143_gaudi2.tpc --target gaudi2 --text": (*COMPUTING, *TILES, *PLANNING),
    "builtin": (*COMPUTING, *TILES, *ASSEMBLY, *PLANNING),
}  # fmt: skip
"""What a command must not load beside NEVER."""

DESCRIBED = {
    "targets a5": ("a5",),
    "targets tosa": ("tosa",),
    "cast f32 i16 1": (),
    "cast f32 i16 1 --target gaudi2": ("gaudi2",),
    "lower f16 i8 --spec tosa --target a5": ("a5", "tosa"),
    "lower f16 i8 --spec onnx --target gaudi2": ("gaudi2", "onnx"),
    "run programs/f32_to_f16.pto --timing-only --target a2a3": ("a2a3",),
}
"""The descriptions that a command is about."""

RUN = (
    "import sys; sys.path.insert(0, {root!r}); {before}; from simulator.__main__ import main; "
    "code = main(sys.argv[1:]); print(); print(code, *({after}))"
)


def last_line(arguments: str, before: str, after: str) -> list[str]:
    """Return the words of the line printed after a command in a process of its own; the first is its exit code."""
    script = RUN.format(root=str(ROOT), before=before, after=after)
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments.split()], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return done.stdout.splitlines()[-1].split()


@pytest.mark.parametrize("arguments", CASES)
def test_a_command_loads_only_what_it_needs(arguments: str) -> None:
    unwanted = (*NEVER, *CASES[arguments])
    found = last_line(arguments, "pass", f"name for name in {unwanted!r} if name in sys.modules")
    assert found == ["0"]


@pytest.mark.parametrize("arguments", DESCRIBED)
def test_a_command_reads_only_the_descriptions_it_is_about(arguments: str) -> None:
    # The parser is given each text once; a description that names a base needs that too.
    before = (
        "import tomllib; parse = tomllib.loads; read = []; "
        "tomllib.loads = lambda text, **how: (read.append(text), parse(text, **how))[1]"
    )
    found = last_line(arguments, before, "parse(text)['name'] for text in read")
    assert found[0] == "0"
    assert sorted(found[1:]) == sorted(name for described in DESCRIBED[arguments] for name in _with_bases(described))


def _with_bases(name: str) -> list[str]:
    base = tomllib.loads((SHIPPED / f"{name}.toml").read_text(encoding="utf-8")).get("base")
    return [name, *_with_bases(base)] if base else [name]


@pytest.mark.parametrize("name", line.COMMANDS)
def test_a_command_does_not_load_all_others(name: str) -> None:
    script = (
        "import sys; from simulator.commands import line; from contextlib import suppress\n"
        "with suppress(Exception): line.parse(sys.argv[1:])\n"  # most are refused without arguments, but loaded by then
        "print(*(name for name in line.COMMANDS if f'simulator.commands.{name}' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script, name], check=True, cwd=ROOT, capture_output=True, text=True)
    loaded = done.stdout.split()
    assert name in loaded
    assert len(loaded) <= 2  # one command may use a function of another


def test_the_modules_named_above_exist() -> None:
    own = {name for unwanted in (NEVER, *CASES.values()) for name in unwanted if name.startswith(("isa", "simulator"))}
    assert [name for name in sorted(own) if find_spec(name) is None] == []


def test_what_a_command_needs_is_found_by_the_same_means() -> None:
    needed = ("numpy", "pydantic", "simulator.engines", "isa.pto.parser")
    found = last_line("run programs/f32_to_f16.pto --timing-only", "pass", f"n for n in {needed!r} if n in sys.modules")
    assert found == ["0", *needed]
