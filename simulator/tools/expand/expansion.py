"""A program of tile operations or of logical registers as the vector instructions that its target executes for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from castsim.execution.interpreter.lowerer import Lowerer
from castsim.execution.tree import Tree
from castsim.isa.dataclass import replace
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.pto import program as pto
from castsim.isa.pto.program import nodes
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.reading import TILE_SUFFIX, Language, Source, read_source
from castsim.machines.mechanisms import vector_units_of
from castsim.machines.registry import MachinePart
from castsim.running.loaded import LoadRequest
from castsim.running.micro import MicroProgram
from castsim.running.program_loading import Walking, reads_elements, walking_of
from castsim.targets.loader import Target

Expansion = Callable[[pto.Function, Tree | Lowerer, Target], tuple[str, Mapping[str, str]]]

EXPANSIONS: MachinePart[Expansion] = MachinePart(
    "expansion",
    {
        "strided-repeat": "castsim.tools.expand.strided:expanded_statements",
        "vector-function": "castsim.tools.expand.statements:expanded_functions",
    },
)
"""The expansion of a tile function by mechanism."""


def expanded_function(function: pto.Function, issued: Tree | Lowerer, target: Target) -> tuple[str, Mapping[str, str]]:
    """Return the text of the instructions that a tile function executes, and the options that this text needs.

    `issued` are its instructions; for a function that is not walked, its lowerer: its scalar arguments remain
    arguments.

    Raises:
        IllegalError: programs cannot name an instruction of an operation's lowering; without a walk,
            also if an operation can only be written for known scalars.
    """
    return EXPANSIONS.of(target)(function, issued, target)


def expand(path: Path, request: LoadRequest) -> str:
    """Return micro text equivalent to a tile function, with the vector functions of its lowering, or to a function
    of logical registers.

    Options that differ from those shipped, and those that its instructions need, are in its first lines.

    Raises:
        ReadError: the file cannot be read, lacks the entry, or elements of memory decide the path.
        IllegalError: the target has no vector functions, the function has vector instructions, or the lowering of some
            does not consist of register operations.
    """
    return expand_source(read_source(path, lambda: False), request)


def expand_source(source: Source, request: LoadRequest) -> str:
    """Return the micro text of a program that was already read; see `expand`."""
    if source.language is not Language.TILES:
        raise ReadError(f"'{source.file}' is not a tile program", legal=(f"a {TILE_SUFFIX} file",))
    shipped: list[Target] = []
    walking = walking_of(source, replace(request, shipped=shipped.append))
    if isinstance(walking, MicroProgram):
        return _lowered(walking, shipped[0])
    chip = walking.target
    try:
        vector_units_of(chip)
    except IllegalError as error:
        raise error.at(walking.function.span) from None
    _check_arguments(walking.function)
    text, needed = _expanded(walking)
    loops = {"short_loops": "kept"} if "short_loops" in chip.options else {}  # the tile library's loops turn
    return _headed(walking, shipped[0], {**loops, **needed}) + text


def _headed(walking: Walking | MicroProgram, shipped: Target, needed: Mapping[str, str]) -> str:
    """Return the heading comments: the origin of the text, and its options."""
    chip = walking.target
    options = {name: str(option.value) for name, option in chip.options.items()}
    changed = {name: value for name, value in options.items() if value != str(shipped.option(name))}
    lines = [f"// castsim: option {name}={value}\n" for name, value in {**changed, **needed}.items()]
    head = f"// What @{walking.function.name} of {Path(walking.file).name} executes on {chip.name}.\n"
    return head + "".join(lines)


def _lowered(program: MicroProgram, shipped: Target) -> str:
    """Return a function of logical registers as its vector instructions.

    Raises:
        IllegalError: it has only vector instructions.
    """
    if not any(isinstance(node, pto.DialectOperation) for node in nodes(program.written.body or ())):
        raise IllegalError(
            f"@{program.entry} is already a function of vector instructions", span=program.function.span,
            legal=("a function of tile operations", "one of logical registers (pto.vmi)"),
        )  # fmt: skip
    named = dict(program.attributes)
    named.setdefault("pto.target_arch", f'"{program.target.name}"')
    module = pto.Program((program.function,), attributes=tuple(sorted(named.items())))
    return _headed(program, shipped, {}) + print_program(module)


def _expanded(walking: Walking) -> tuple[str, Mapping[str, str]]:
    """Return the text and its required options.

    Scalar arguments without a value stay open, as do conditions and loops that depend on run-time values.
    """
    function = walking.function if walking.plan is None else walking.plan.function
    scalars = [argument.name for argument in function.arguments if isinstance(argument.type, pto.ScalarType)]
    branches = any(isinstance(node, pto.If | pto.While) for node in nodes(function.body or ()))
    settled = set(scalars) <= set(walking.scalars) and not reads_elements(walking)
    if settled and not branches:
        return expanded_function(walking.function, walking.program().tree, walking.target)
    try:
        return expanded_function(function, walking.request.make_lowerer(walking.target), walking.target)
    except IllegalError:
        if not settled:
            raise
    return expanded_function(walking.function, walking.program().tree, walking.target)


def _check_arguments(function: pto.Function) -> None:
    for argument in function.arguments:
        if not isinstance(argument.type, pto.PointerType | pto.ScalarType):
            raise IllegalError(
                f"expand cannot write the argument %{argument.name}", span=argument.span,
                legal=("pointers", "scalars"),
            )  # fmt: skip
