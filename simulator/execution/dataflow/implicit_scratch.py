"""The tmp tiles that newer assemblers give operations which need one and have none, before tiles are placed.

Source: docs/reference/pto.md section 1.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from castsim.execution.choices import IMPLICIT_TMP, MAKE_SCRATCH, OLDEST, PASS_OFF, TOOLCHAIN, Choice
from castsim.execution.interpreter.assembler_forms import check_form, is_binary
from castsim.execution.interpreter.structure import has_addresses
from castsim.isa.errors import IllegalError, Span
from castsim.isa.modes import Saturation
from castsim.isa.pto import program as pto
from castsim.isa.pto.regions import nodes
from castsim.isa.pto.scratch_forms import form_of, form_with_tmp
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Role

Needy = pto.Tcvt | pto.TileOperation

ScratchType = Callable[[Needy, int | None], pto.TileType | None]
"""Returns the type of the tmp tile that an operation gets, None for none; the number is the pitch of the first source
in elements, where that is a part of a wider tile."""

Made = tuple[pto.Function, tuple[tuple[Choice, Span], ...]]
"""A function with its tmp tiles, and what was decided where."""


def complete(function: pto.Function, toolchain: str, scratch: ScratchType, target: str) -> Made:
    """Return a function as its assembler completes it.

    Raises:
        ReadError: an operation without the tmp tile that the assembler wants.
        IllegalError: the assembler would add one, and the program places its tiles itself.
    """
    body = function.body or ()
    if toolchain not in MAKE_SCRATCH:
        for node in nodes(body):
            check_form(node, toolchain)
        return function, ()
    completing = _Completing(scratch, toolchain, target, has_addresses(body))
    made = completing.region(body)
    return (replace(function, body=made), tuple(completing.made)) if completing.made else (function, ())


def lacks_tmp(node: pto.TileOperation) -> tuple[Role, ...] | None:
    """Return the form with a tmp tile that an operation without one could have, None if there is none."""
    operation = VECTOR_OPERATIONS.get(node.mnemonic)
    form = None if operation is None else form_of(operation, node.input_types)
    if operation is None or form is None or (operation.attribute == "isBinary" and not is_binary(node)):
        return None
    return form_with_tmp(operation, form)


@dataclass(slots=True)
class _Completing:
    """Regions being rewritten; `pitches` are those of parts of tiles, by the name of the part."""

    scratch: ScratchType
    toolchain: str
    target: str
    placed: bool
    made: list[tuple[Choice, Span]] = field(default_factory=list)
    pitches: dict[str, int] = field(default_factory=dict)

    def region(self, body: Sequence[pto.Operation]) -> tuple[pto.Operation, ...]:
        return tuple(new for node in body for new in self._operation(node))

    def _operation(self, node: pto.Operation) -> Iterator[pto.Operation]:
        match node:
            case pto.For() | pto.Section():
                yield replace(node, body=self.region(node.body))
            case pto.If():
                yield replace(node, then_body=self.region(node.then_body), else_body=self.region(node.else_body))
            case pto.Tcvt(tmp=None):
                # This assembler hands OFF on where the text names nothing.
                off = node.saturation in (None, Saturation.OFF) and self.toolchain in PASS_OFF
                yield from self._completed(node, node.src) if off else (node,)
            case pto.TileOperation() if lacks_tmp(node) is not None:
                yield from self._completed(node, node.inputs[0])
            case _:
                if isinstance(node, pto.Subview):
                    pitch = self.pitches.get(node.source, _pitch(node.source_type))
                    self.pitches[node.result] = pitch
                yield node

    def _completed(self, node: Needy, source: str) -> Iterator[pto.Operation]:
        """Yield a tile and the operation with it, or the operation alone if it needs none."""
        kind = self.scratch(node, self.pitches.get(source))
        if kind is None:
            yield node
            return
        name = node.mnemonic if isinstance(node, pto.TileOperation) else "tcvt"
        if self.placed:
            form = "ins(%src, %tmp : ...)" if isinstance(node, pto.Tcvt) else VECTOR_OPERATIONS[name].spellings[0]
            raise IllegalError(
                f"pto.{name} requires explicit tmp when PlanMemory is skipped: tiles have addresses (level 3), and on "
                f"{self.target} it needs {kind.rows} x {kind.cols} {kind.element}",
                span=node.span,
                legal=(form, f"--{TOOLCHAIN} {PASS_OFF[0]}", f"--{TOOLCHAIN} {OLDEST}"),
            )
        tmp = f"{IMPLICIT_TMP}{len(self.made) + 1}"
        effect = f"{name} has no tmp tile and gets one of {kind.rows} x {kind.cols} {kind.element}"
        self.made.append((Choice(TOOLCHAIN, self.toolchain, effect), node.span))
        yield pto.AllocTile(tmp, kind, added=True, span=node.span)
        if isinstance(node, pto.Tcvt):
            yield replace(node, tmp=tmp, tmp_type=kind)
            return
        wanted = lacks_tmp(node)
        assert wanted is not None
        place = wanted.index(Role.TMP)
        inputs, types = list(node.inputs), list(node.input_types)
        inputs.insert(place, tmp)
        types.insert(place, kind)
        yield replace(node, inputs=tuple(inputs), input_types=tuple(types))


def _pitch(kind: pto.TileType) -> int:
    return kind.cols if kind.block_layout == "row_major" else kind.rows
