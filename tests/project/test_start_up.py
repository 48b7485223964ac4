"""What a command loads: only what answers the question, so that short commands stay short. No times are taken here."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from castsim.commands import command_line
from castsim.commands.feature import COMMANDS, shipped_features

ROOT = Path(command_line.__file__).parents[2]

OPTIONAL = ("numba", "llvmlite", "onnx", "google.protobuf", "ml_dtypes")
"""Libraries of extras and of the boundary: for work that needs them."""
VALIDATOR = ("pydantic", "tomllib", "difflib")
"""For descriptions of users, and for refusals."""
EVENTS = ("simpy", "castsim.engines.event_dataflow", "castsim.engines.event_vliw")
"""The engine that nobody asks for below."""
PROGRESS = ("rich.progress", "rich.live")
"""For terminals."""
COMPUTING = ("numpy", "castsim.numerics", "castsim.engines", "castsim.execution.interpreter")
RUNNING = (
    "castsim.engines", "castsim.execution.interpreter", "castsim.running.synchronisation.race_findings",
    "castsim.isa.pto.pto_parser", "castsim.isa.tpc.parser",
)  # fmt: skip
TILES = ("castsim.machines.strided", "castsim.machines.vector_function", "castsim.isa.pto.pto_parser")
ASSEMBLY = (
    "castsim.machines.vliw.semantics", "castsim.machines.vliw.machine", "castsim.isa.tpc.parser",
    "castsim.isa.tpc.instructions",
)  # fmt: skip
PLANNING = (
    "castsim.tools.lowering.planner", "castsim.tools.lowering.conformance", "castsim.tools.graphs.graph_execution",
    "castsim.tools.verify",
)  # fmt: skip
"""What specifications accept stands in the room of lowering too, and a cast asks for it."""

WALKING = ("castsim.engines", "castsim.execution.interpreter")

PAGES = ("castsim.reports.pages.blocks", "castsim.reports.views.timeline", "castsim.reports.views.perfetto", "html")
"""For who writes a page, a trace or a log."""

REPORTS = (
    "rich", "castsim.reports.documents", "castsim.reports.run_report", "castsim.reports.run_findings",
    "castsim.tools", "hashlib", "secrets", "tempfile", "json",
)  # fmt: skip
"""For who reads what a run gave."""

NEVER = (*OPTIONAL, *EVENTS, *PROGRESS, *PAGES, *VALIDATOR)
CASES = {
    "targets": (*COMPUTING, *TILES, *ASSEMBLY, *PLANNING),
    "targets a2a3": (*WALKING, "castsim.machines.vector_function", *ASSEMBLY, *PLANNING),
    "targets gaudi2": (*WALKING, "castsim.machines.strided", *PLANNING),
    "cast f32 i16 1": (
        *RUNNING, *TILES, *ASSEMBLY, *PLANNING, "castsim.isa.tpc", "castsim.isa.pto.lexer", "castsim.execution.tree",
        "castsim.execution.input_data", "castsim.machines.casting", "castsim.tools.lowering", "castsim.tools.accuracy",
    ),
    "cast f32 i16 1 --target a5": (*RUNNING, "castsim.machines.strided", *ASSEMBLY, *PLANNING),
    "cast f32 i16 1 --target gaudi2": (
        "castsim.engines", "castsim.running.synchronisation.race_findings", *TILES, "castsim.machines.vliw.machine",
    ),
    "estimate f32 f16 16x256 --target a2a3": ("castsim.tools.advise.advice_search", *ASSEMBLY[:2], *PLANNING),
    "scratch f32 i16 --rows 8 --cols 64 --row-stride 64 --target a2a3": (*RUNNING, *ASSEMBLY, *PLANNING),
    "lower f16 i8 --spec tosa --target a5": (
        *ASSEMBLY, "castsim.tools.lowering.conformance", "castsim.tools.compiled.compiled_casts",
    ),
    "lower f16 i8 --spec tosa --target gaudi2": (
        "castsim.machines.strided", "castsim.machines.vector_function", "castsim.tools.tpc_compiler.builtin_calls",
        "castsim.tools.compiled.compiled_casts", "castsim.tools.lowering.conformance",
    ),
    "run programs/f32_to_f16.pto --timing-only": (*ASSEMBLY, *PLANNING),
    "run programs/f32_to_f16.pto --timing-only --quiet": (*ASSEMBLY, *PLANNING, *REPORTS),
    "run programs/a5_f32_to_i8_by_steps.pto --timing-only --quiet": (*ASSEMBLY, *PLANNING, *REPORTS),
    "run programs/tpc_f32_f8_143_gaudi2.tpc --timing-only": (*TILES[:2], *PLANNING),
    "lint programs/tpc_f32_f8_143_gaudi2.tpc": ("castsim.engines", *TILES, *PLANNING),
    "asm programs/tpc_f32_f8_143_gaudi2.tpc --target gaudi2 --text": (*COMPUTING, *TILES, *PLANNING),
    "builtin": (*COMPUTING, *TILES, *ASSEMBLY, *PLANNING),
}  # fmt: skip
"""What a command must not load beside NEVER."""

MOST_MODULES = {
    "run programs/f32_to_f16.pto --in src=random:0": (230, 390),
    "run programs/tpc_f32_f8_143_gaudi2.tpc --timing-only": (280, 378),
    "check programs/f32_to_f16.pto": (170, 376),
    "cast f32 i16 1 --target a2a3": (125, 376),
    "run programs/f32_to_f16.pto --timing-only --quiet": (127, 265),
    "cast f32 i16 1": (60, 290),
}
"""How many modules a command may load: those of castsim, and all others."""

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
    "import sys; sys.path.insert(0, {root!r}); {before}; from castsim.__main__ import main; "
    "code = main(sys.argv[1:]); print(); print(code, *({after}))"
)


BY_OWNER = "([name for name in sys.modules if name.startswith('castsim') == own] for own in (True, False))"


def last_line(arguments: str, before: str, after: str, variables: dict[str, str] | None = None) -> list[str]:
    """Return the words of the line printed after a command in a process of its own; the first is its exit code."""
    script = RUN.format(root=str(ROOT), before=before, after=after)
    command = [sys.executable, "-c", script, *arguments.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=variables)
    return done.stdout.splitlines()[-1].split()


@pytest.mark.parametrize("arguments", CASES)
def test_a_command_loads_only_what_it_needs(arguments: str) -> None:
    unwanted = (*NEVER, *CASES[arguments])
    found = last_line(arguments, "pass", f"name for name in {unwanted!r} if name in sys.modules")
    assert found == ["0"]


@pytest.fixture(scope="module")
def keeping(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables of processes that keep what they compile and check in a folder of these tests."""
    kept = {name: str(tmp_path_factory.mktemp(name)) for name in ("PYTHONPYCACHEPREFIX", "XDG_CACHE_HOME")}
    return {**{name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}, **kept}


@pytest.mark.parametrize("arguments", MOST_MODULES)
def test_a_short_command_loads_few_modules(arguments: str, keeping: dict[str, str]) -> None:
    after = f"*(name for name in {NEVER!r} if name in sys.modules), *map(len, {BY_OWNER})"
    last_line(arguments, "pass", after, keeping)
    code, *found = last_line(arguments, "pass", after, keeping)
    assert code == "0"
    assert len(found) == 2, found
    assert all(int(count) <= most for count, most in zip(found, MOST_MODULES[arguments], strict=True)), found


@pytest.mark.parametrize("arguments", DESCRIBED)
def test_a_command_reads_only_the_descriptions_it_is_about(arguments: str) -> None:
    before = (
        "from castsim.targets import validated; take = validated.checked; read = []; "
        "validated.checked = lambda name: (read.append(name), take(name))[1]"
    )
    found = last_line(arguments, before, "name for name in read if name.islower()")  # the others are tables of TPC-C
    assert found[0] == "0"
    assert sorted(found[1:]) == sorted(DESCRIBED[arguments])


@pytest.mark.parametrize("name", COMMANDS)
def test_reading_a_command_line_loads_no_command(name: str) -> None:
    script = (
        "import sys; from castsim.commands import command_line; from contextlib import suppress\n"
        # Most are rejected without arguments, but declared by then.
        "with suppress(Exception): command_line.parse(sys.argv[1:])\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script, name], check=True, cwd=ROOT, capture_output=True, text=True)
    assert not {feature.module for feature in shipped_features()} & {*done.stdout.split()}


def parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[: number + 1]) for number in range(len(parts))]


HEAVY = ("numpy", "rich", "pydantic", "simpy", "ml_dtypes", "numba")
"""Libraries that take tens of milliseconds to import."""


@pytest.mark.parametrize("name", [*COMMANDS, ""])
def test_the_help_of_a_command_loads_nothing_else(name: str) -> None:
    script = (
        "import sys; from castsim.__main__ import main; code = main([*filter(None, sys.argv[1:]), '--help']); "
        f"print('loaded', code, *(each for each in sys.modules if each.startswith('castsim') or each in {HEAVY!r}))"
    )
    done = subprocess.run([sys.executable, "-c", script, name], check=True, cwd=ROOT, capture_output=True, text=True)
    _, code, *loaded = done.stdout.splitlines()[-1].split()
    line_itself = {"castsim", "castsim.__main__", "castsim.commands", "castsim.commands.command_line"}
    line_itself |= {"castsim.commands.shared_options", "castsim.commands.feature"}
    line_itself |= {*parents(COMMANDS[name])} if name else set()
    line_itself |= {"castsim.reports", "castsim.reports.sections"} if name == "run" else set()  # names of its reports
    if not name:  # the list of commands reads every declaration
        line_itself |= {module for module in loaded if module.startswith("castsim")}
    assert code == "0"
    assert set(loaded) <= line_itself


def test_the_modules_named_above_exist() -> None:
    own = {name for unwanted in (NEVER, *CASES.values()) for name in unwanted if name.startswith("castsim.")}
    assert len(own) > 10
    assert [name for name in sorted(own) if find_spec(name) is None] == []


def test_what_a_command_needs_is_found_by_the_same_means() -> None:
    needed = ("numpy", "castsim.engines", "castsim.isa.pto.pto_parser")
    found = last_line("run programs/f32_to_f16.pto --timing-only", "pass", f"n for n in {needed!r} if n in sys.modules")
    assert found == ["0", *needed]
