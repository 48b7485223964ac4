"""Text about a stopped program: its position, elements, pipes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from castsim.execution.timing import Cause
from castsim.isa.errors import SHOWN
from castsim.isa.formats import Format, IntFormat
from castsim.numerics.codec import value_of
from castsim.reports.documents import CommandDocument, Keys, record, says
from castsim.reports.numbers import bits_text
from castsim.reports.schemas.keys import Cycles, Line
from castsim.tools.debugger.stepper import Stepper
from castsim.tools.debugger.stops import Selection, Shown

_AROUND = 3
"""Number of lines shown before and after the current one."""


_DOING = {
    Cause.BUSY: "is busy",
    Cause.EMPTY: "is empty",
    Cause.FILL: "is filling",
    Cause.DRAIN: "is draining",
    Cause.BARRIER: "waits at a barrier",
    Cause.FLAG_WAIT: "waits for a flag",
    Cause.OPERAND_WAIT: "waits for operands",
}
"""Activity of a pipe in a cycle of each cause; other causes are waits."""


def stop_line(stepper: Stepper) -> str:
    """Return `FILE:LINE cycle N`; N is `?` if no cycles are modelled."""
    cycle = stepper.cycle if stepper.trace.timed else "?"
    return f"{stepper.trace.file}:{stepper.line} cycle {cycle}"


@record
class Stop(Keys):
    """A position at which the program stopped."""

    line: Line = says("The line of the next operation; at the end, that of the last one.")
    cycle: Cycles | None = says(
        "The cycle in which the next operation starts, at the end the cycles of the run; null if none are modelled."
    )
    ended: bool = says("Whether every operation has been executed.")


@record
class Debug(CommandDocument, name="debug"):
    """The stops of a session, in order."""

    file: str = says("The program.")
    entry: str = says("The executed part of the program.")
    target: str = says("The target's name.")
    operations: int = says("Total number of executed operations, the unit of `step`.")
    stops: Sequence[Stop] = says("The first stop, and those of each command that moved the program.")
    failed: int = says("Commands that failed.")


def number_text(code: int, fmt: Format) -> str:
    """Return the number of a code: integers in full, floats with as many digits as f64 needs."""
    value = value_of(code, fmt)
    if isinstance(value, Fraction) and isinstance(fmt, IntFormat):
        return str(value.numerator)
    return repr(float(value))


def element_name(name: str, index: tuple[int, ...]) -> str:
    """Return `NAME[i,j]`, or the name alone if there is one element."""
    return f"{name}[{','.join(map(str, index))}]" if index else name


def element_value(shown: Shown) -> str:
    """Return `VALUE (0xBITS)`."""
    if not shown.known:
        return "not computed"
    return f"{number_text(shown.code, shown.format)} ({bits_text(shown.code, shown.format)})"


def element_lines(stepper: Stepper, selection: Selection) -> Iterator[str]:
    """Yield `NAME[i,j] = VALUE (0xBITS)` for each selected element. Raises the errors of `Stepper.elements`."""
    for shown in stepper.elements(selection).shown():
        yield f"{element_name(selection.name, shown.place)} = {element_value(shown)}"


def operation_text(stepper: Stepper) -> str:
    """Return the next operation to execute, and its cycles."""
    trace, count = stepper.trace, len(stepper.trace.steps)
    if stepper.ended:
        return f"the program has ended: {count} operations"
    step = trace.steps[stepper.position]
    instruction = trace.instructions[step.instruction]
    cycles = f", cycles {step.start} .. {max(step.start, step.end - 1)}" if trace.timed else ""
    return f"operation {stepper.position + 1} of {count}: {instruction.text} on {instruction.pipe}{cycles}"


def line_text(stepper: Stepper) -> str:
    """Return the line at which a program has stopped, with its operation and cycle."""
    cycle = f", cycle {stepper.cycle}" if stepper.trace.timed else ""
    if stepper.ended:
        return f"line {stepper.line}: end of the program{cycle}"
    instruction = stepper.trace.instructions[stepper.trace.steps[stepper.position].instruction]
    return f"line {stepper.line}: {instruction.text} on {instruction.pipe}{cycle}"


def source_lines(text: str, line: int, marks: frozenset[int] = frozenset()) -> Iterator[str]:
    """Yield the lines around the one marked by `>`; `*` marks lines with breakpoints."""
    lines = text.splitlines()
    first, last = max(1, line - _AROUND), min(len(lines), line + _AROUND)
    for number in range(first, last + 1):
        mark = f"{'>' if number == line else ' '}{'*' if number in marks else ' '}"
        text = lines[number - 1]
        shown = text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
        yield f"{mark}{number:{len(str(last))}}  {shown}"


def pipe_lines(stepper: Stepper) -> Iterator[str]:
    """Yield the activity of every pipe in the cycle of the stop.

    Raises:
        ReadError: the program has no cycles.
    """
    for pipe, cause in stepper.pipes.all(stepper.cycle).items():
        yield f"{pipe} {_DOING.get(cause, f'is held up: {cause.value}')}"
