"""Instructions of the text as time sees them: what they are, the bytes of their access.

Source: docs/reference/micro.md 6.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from castsim.execution.byte_sets import widened
from castsim.execution.dataflow.operations import BLOCK
from castsim.execution.interpreter.dependence import Scalar
from castsim.execution.micro.interpreter import BLOCK_ACCESSES
from castsim.execution.tree import Access
from castsim.isa.pto.micro.forms import OPAQUE
from castsim.isa.pto.micro.nodes import MicroOperation
from castsim.isa.pto.micro.types import lane_bits
from castsim.isa.pto.value_types import REGISTER_BITS, AlignType, MaskType, PointerType, ScalarType, VectorType
from castsim.machines.vector_function.scopes.scope import (
    Instruction as ScopeInstruction,
    Issue as ScopeIssue,
    Kind,
    Scope,
    issues,
)

# The bytes of the buffer that the loads and stores of a launch touch, as far as its masks tell.
#
# Source: docs/reference/micro.md 6.5.

REGISTER_BYTES = REGISTER_BITS // 8
"""Bytes of a register, and bits of a mask: one for each."""

MASK_WIDTH = re.compile(r"_b(8|16|32)$")
"""The bits of a lane, in the mnemonics of what makes masks."""
_FIRST = re.compile(r"PAT_VL(\d+)$")
_BY_LANES = ("NORM", "UNPK", "US", "DS", "PK", "DINTLV", "")
"""Distributions that take the lanes of a register in the order of memory, first part of their names."""

_LANEWISE = frozenset(
    (
        *("vadd", "vsub", "vmul", "vdiv", "vmax", "vmin", "vand", "vor", "vxor", "vshl", "vshr", "vadds"),
        *("vmuls", "vmaxs", "vmins", "vlrelu", "vshls", "vshrs", "vabs", "vneg"),
        *("vrelu", "vnot", "vexp", "vln", "vsqrt", "vrec", "vrsqrt", "vmula", "vaddrelu", "vsubrelu"),
        *("vcmp", "vcmps", "vcadd", "vcmax", "vcmin", "vcvt", "vtrc"),
    )
)
"""Instructions that look at no lane that their mask, the last one they read, leaves out."""


def leading_bits(node: MicroOperation, scalars: Sequence[Scalar], masks: Sequence[int]) -> int:
    """Return how many leading bits of the mask that an instruction makes may be set, `masks` being those it reads."""
    width = MASK_WIDTH.search(node.mnemonic)
    name = node.mnemonic if width is None else node.mnemonic[: width.start()]
    lane = int(width[1]) // 8 if width is not None else 1
    first = _FIRST.match(node.word("pattern") or "")
    if name in ("plt", "pltm"):
        numbers = [int(each.value) for each in scalars]
        left = numbers[-1] - (numbers[0] * (REGISTER_BYTES // lane) if name == "pltm" else 0)
        return min(max(left, 0) * lane, REGISTER_BYTES)
    if name in ("pset", "pge") and first is not None:
        return min(int(first[1]) * lane, REGISTER_BYTES)
    if name in ("pset", "pge") and node.word("pattern") == "PAT_ALLF":
        return 0
    if name in ("ppack", "punpack", "pbitcast") and masks:
        return _moved(name, masks[0], higher=node.word("half") == "HIGHER")
    if name == "pand" or (name in ("vcmp", "vcmps", "pnot", "por", "pxor") and masks):
        return min(masks) if name == "pand" else masks[-1]  # the last one governs
    return REGISTER_BYTES


def _moved(name: str, bits: int, *, higher: bool) -> int:
    """Return the leading bits of a mask whose bits are packed, spread or kept (docs/reference/micro.md 5.3)."""
    half = REGISTER_BYTES // 2
    if name == "ppack":
        return -(-bits // 2) + half * (higher and bits > 0)
    if name == "punpack":
        return min(max(2 * (bits - half * higher), 0), REGISTER_BYTES)
    return bits


def rows_of(node: MicroOperation, numbers: Sequence[int]) -> tuple[int, int, int] | None:
    """Return count, distance and length of the stretches of an access that its operands tell; None if they do not."""
    if node.mnemonic in BLOCK_ACCESSES:
        return REGISTER_BYTES // BLOCK, numbers[0] * BLOCK, BLOCK
    if node.mnemonic == "vstus":
        stored = next(kind for kind in node.operand_types if isinstance(kind, VectorType))
        return 1, 0, numbers[0] * lane_bits(stored.element) // 8
    return None


def extents(scope: Scope) -> Iterator[tuple[ScopeIssue, int, int]]:
    """Yield what was issued in program order, with the first byte that it touches and the first behind the last.

    Of a load only the bytes count that some instruction may look at; others than accesses touch none. An access to
    blocks comes once for each block.
    """
    needed = _needed(scope)
    for issue in issues(scope.body):
        instruction = issue.instruction
        size = instruction.size
        if instruction.kind is Kind.LOAD and issue.writes and not instruction.masks:
            size = _part(issue, max(needed.get(name, 0) for name in issue.writes))
        elif instruction.kind is Kind.STORE:
            size = _part(issue, _governing(issue, scope.leading))
        if issue.rows is None:
            yield issue, issue.address, issue.address + size
            continue
        count, distance, length = issue.rows
        if count > 1:
            count = -(-count * _governing(issue, scope.leading) // REGISTER_BYTES)
        for number in range(count):
            start = issue.address + number * distance
            yield issue, start, start + length


def touched(scope: Scope, buffer: str, capacity: int) -> tuple[Access, ...]:
    """Return the bytes that a launch reads and those that it writes, evenly spaced stretches together."""
    marks = {kind: np.zeros(capacity + 1, np.bool_) for kind in (Kind.LOAD, Kind.STORE)}
    for issue, start, end in extents(scope):
        if issue.instruction.kind in marks:
            marks[issue.instruction.kind][max(start, 0) : max(min(end, capacity), 0)] = True
    found: list[Access] = []
    for kind, marked in marks.items():
        edges = (np.flatnonzero(marked[1:] != marked[:-1]) + 1).tolist()
        edges[:0] = [0] * bool(marked[0])
        found += _spaced(list(zip(edges[::2], edges[1::2], strict=True)), buffer, write=kind is Kind.STORE)
    return tuple(found)


def _needed(scope: Scope) -> Mapping[int, int]:
    """Return for every register that something reads how many of its leading bytes matter."""
    needed: dict[int, int] = {}
    for issue in issues(scope.body):
        kind, name = issue.instruction.kind, issue.instruction.mnemonic
        looks = REGISTER_BYTES
        if name in _LANEWISE or (kind is Kind.STORE and _by_lanes(issue)):
            looks = _governing(issue, scope.leading)
        for register in issue.reads:
            needed[register] = max(needed.get(register, 0), looks)
    return needed


def _governing(issue: ScopeIssue, leading: Mapping[int, int]) -> int:
    """Return how many leading bits of the mask of an instruction may be set."""
    masks = [leading[name] for name in issue.reads if name in leading]
    return masks[-1] if masks else REGISTER_BYTES


def _by_lanes(issue: ScopeIssue) -> bool:
    return (
        issue.instruction.mnemonic in ("vlds", "vldsx2", "vldus", "vsts")
        and issue.instruction.word.partition("_")[0].rstrip("4") in _BY_LANES
    )


def _part(issue: ScopeIssue, leading: int) -> int:
    """Return the bytes of an access of which so many leading bytes of the register count."""
    size = issue.instruction.size
    return -(-size * leading // REGISTER_BYTES) if _by_lanes(issue) else size


def _spaced(stretches: Sequence[tuple[int, int]], buffer: str, *, write: bool) -> list[Access]:
    """Return stretches in order as accesses: each takes in those of its length that follow at one distance."""
    found: list[Access] = []
    index = 0
    while index < len(stretches):
        start, end = stretches[index]
        count, distance = 1, 0
        while index + count < len(stretches):
            first, last = stretches[index + count]
            step = first - stretches[index + count - 1][0]
            if last - first != end - start or (distance and step != distance):
                break
            count, distance = count + 1, step
        access = Access(buffer, start, end, write)
        found.append(widened(access, count, distance) if count > 1 else access)
        index += count
    return found


_LOADS = frozenset(("vlds", "vldsx2", "vsldb", "vldus", "plds", "pldi"))
_STORES = frozenset(
    (
        *("vsts", "vstsx2", "vsstb", "vstus", "vstur", "vstas", "vstar", "psts", "psti", "vscatter"),
        *OPAQUE,  # no text times them: assumed to take what their neighbours take
    )
)
_FREE = frozenset(
    (
        *("plt", "pltm", "pset", "pge", "pand", "por", "pxor", "pnot", "psel", "pmov", "ppack", "pintlv", "pdintlv"),
        *("pbitcast", "vbitcast", "init_align", "vldas", "sprclr"),
    )
)

_PARTS = {"UNPK4": 4, "UNPK": 2, "US": 2, "PK4": 4, "PK": 2}
_MULTIPLES = {"DINTLV": 2, "BDINTLV": 2, "DS": 2, "INTLV": 2}
_MASK_BYTES = REGISTER_BYTES // 8
_BLOCKS_OF_ELEMENTS = 8
"""Elements that a load E2B spreads over the blocks of a register."""


def instruction_of(node: MicroOperation) -> ScopeInstruction:
    """Return an instruction of the text."""
    name = MASK_WIDTH.sub("", node.mnemonic)
    results = [kind for kind in node.result_types if not isinstance(kind, PointerType | ScalarType | AlignType)]
    masks = bool(results) and all(isinstance(kind, MaskType) for kind in results)
    word = node.word("barrier" if name == "mem_bar" else "dist") or ""
    kind = _kind(name)
    return ScopeInstruction(
        mnemonic=name,
        kind=kind,
        width=_width(node),
        word=word,
        size=_bytes(node, name, word) if kind in (Kind.LOAD, Kind.STORE) else 0,
        updates=kind is Kind.LOAD and any(isinstance(each, PointerType) for each in node.result_types),
        unpacks=kind is Kind.LOAD and word.startswith("UNPK"),
        masks=masks,
        integers=_integers(node),
        line=node.span.line,
        text=_text(node),
    )


def _text(node: MicroOperation) -> str:
    """Return an instruction as reports name it: its elements, or those it converts, and its words."""
    kinds = (
        next((each.element for each in side if isinstance(each, VectorType)), "")
        for side in (node.operand_types, node.result_types)
    )
    between = " -> ".join(dict.fromkeys(filter(None, kinds)))
    return " ".join(filter(None, (node.mnemonic, between, *(word for _, word in node.attributes))))


def _kind(name: str) -> Kind:
    if name == "mem_bar":
        return Kind.BARRIER
    if name in _FREE:
        return Kind.PREDICATE
    return Kind.LOAD if name in _LOADS else Kind.STORE if name in _STORES else Kind.COMPUTE


def _width(node: MicroOperation) -> int:
    """Return the bits of a lane of the first register that an instruction names."""
    kinds = (*node.operand_types, *node.result_types)
    return next((lane_bits(kind.element) for kind in kinds if isinstance(kind, VectorType)), 32)


def _integers(node: MicroOperation) -> bool:
    """Whether the lanes of the first register that an instruction names are integers."""
    kinds = (*node.operand_types, *node.result_types)
    element = next((kind.element for kind in kinds if isinstance(kind, VectorType)), "")
    return element.removeprefix("u").removeprefix("s").startswith("i")


def _bytes(node: MicroOperation, name: str, word: str) -> int:
    """Return the bytes that an access touches when all of its lanes are active."""
    mode, _, width = word.partition("_")
    if name in ("plds", "pldi", "psts", "psti") or name in OPAQUE:
        return _MASK_BYTES
    if name in ("vstas", "vstar", "vscatter"):
        return 0
    if mode in _PARTS:
        return REGISTER_BYTES // _PARTS[mode]
    if mode in _MULTIPLES or name in ("vldsx2", "vstsx2"):
        return REGISTER_BYTES * 2
    element = int(width[1:]) // 8 if re.fullmatch(r"B\d+", width) else _width(node) // 8
    if mode in ("BRC", "1PT"):
        return _MASK_BYTES if width == "BLK" else element
    return _BLOCKS_OF_ELEMENTS * element if mode == "E2B" else REGISTER_BYTES
