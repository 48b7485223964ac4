"""Small `.pto` texts for the execution tests, and what the machine issues for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from castsim.execution.interpreter.interpreter import Executed, execute
from castsim.execution.tree import Loop, Node, Operation, accesses, instances, operations
from castsim.isa.pto.pto_parser import parse
from castsim.machines.mechanisms import compute_of, lowerer_of
from castsim.targets.loader import Target, load_target

CONSTANTS = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 3, 4, 8, 16, 32, 64, 128, 256))


def kernel(body: str, arguments: str = "%x: !pto.ptr<f32>, %y: !pto.ptr<f16>") -> str:
    """An entry function `@k` that begins with the index constants %c0, %c1, %c2, ... ."""
    return f"func.func @k({arguments}) attributes {{pto.entry}} {{\n{CONSTANTS}\n{body}\nreturn\n}}\n"


def kernel_file(folder: Path, text: str, name: str = "k.pto") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def walk(text: str, args: Mapping[str, int | float] | None = None, target: Target | None = None) -> Executed:
    program = parse(text, "k.pto")
    (function,) = program.functions
    return execute(program, function, lowerer_of(target or load_target("a2a3")), args or {})


def issued(executed: Executed) -> list[tuple[str, Operation]]:
    """Every operation with its final addresses, and the text of its instruction, in program order."""
    tree = executed.tree
    return [
        (tree.instructions[lowered.instruction].text, operation)
        for lowered, deltas in instances(tree)
        for operation in operations(lowered, deltas)
    ]


def touched(executed: Executed) -> list[object]:
    return [access for lowered, deltas in instances(executed.tree) for access in accesses(lowered, deltas)]


def moved(executed: Executed, kind: str) -> list[tuple[int, int]]:
    """Global and buffer address of every transfer of one direction."""
    return [(op.gm_address, op.ub_address) for name, op in issued(executed) if name.startswith(kind)]


def run(
    text: str,
    memory: Mapping[str, np.ndarray],
    args: Mapping[str, int | float] | None = None,
    *,
    shortcuts: bool = True,
    fill: int = 0,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Compute a program on byte arrays; return changed global memory and unified buffer."""
    target = load_target("a2a3")
    executed = walk(text, args, target)
    buffer = np.full(target.memories["ub"].capacity_bytes, fill, np.uint8)
    far = {name: np.array(data, np.uint8) for name, data in memory.items()}
    compute_of(target)(executed.tree, buffer, far, shortcuts=shortcuts)
    return far, buffer


def loops(node: Node) -> list[Loop]:
    """Loops at the top level of a block."""
    return [item for item in node.items if isinstance(item, Loop)]
