"""The command `latency`: show the latency in bundles between two instructions, and its reason."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from castsim.commands.outcome import CommandOutcome
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import CastsimError, ReadError, SourceText, Span
from castsim.isa.reading import STDIN
from castsim.isa.tpc.forms import Dialect
from castsim.isa.tpc.parser import parse
from castsim.isa.tpc.program import Bundle, Slot
from castsim.machines.vliw import tpc_target
from castsim.machines.vliw.latency_bound import PairDistance, SlottedInstruction, pair_distance
from castsim.targets.loader import load_target
from castsim.tools.tpc_assembly.asm import named_bytes
from castsim.tools.tpc_assembly.listing import Latency, pair_entry, pair_text

_ARROW = " -> "
_COLUMN = len(_ARROW)


@dataclass(frozen=True, slots=True)
class _InstructionText:
    """An instruction as written, and its position (line and column count from 0)."""

    file: str
    text: str
    line: int = 0
    column: int = 0

    @property
    def in_place(self) -> str:
        """The text preceded by as many lines and columns as in its file."""
        return "\n" * self.line + " " * self.column + self.text

    def error(self, message: str, legal: tuple[str, ...]) -> ReadError:
        """Return (do not raise) the error about the text."""
        span = Span.within(SourceText(self.file, self.in_place), self.line + self.column, len(self.text) or 1)
        return ReadError(message, span=span, legal=legal)


def execute(options: Namespace) -> CommandOutcome:
    """Find the distances.

    Raises:
        ReadError: an option is wrong, a line is not a pair, or a text is not one instruction.
        IllegalError: the target lacks an instruction, or has no assembly.
    """
    loaded = load_target(options.target)
    target = tpc_target(loaded, f"{loaded.name} has no TPC assembly")
    read_texts: dict[str, SlottedInstruction] = {}
    distances: list[tuple[str, str, PairDistance | None]] = []
    for first, other in _pairs(options.producer, options.consumer):
        producer, consumer = (
            _read_once(instruction_text, target.dialect, read_texts) for instruction_text in (first, other)
        )
        distances.append((first.text, other.text, pair_distance(target, producer, consumer)))
    entries = [pair_entry(target, *pair) for pair in distances]

    def text(_: int) -> str:
        return pair_text(target.name, distances, entries)

    document = Latency.of(pairs=entries)
    return CommandOutcome(document, text, code=1 if any(entry is None for entry in entries) else 0)


def _pairs(producer: str, consumer: str | None) -> Iterator[tuple[_InstructionText, _InstructionText]]:
    """Yield the pairs from the command line or from standard input."""
    if producer != STDIN:
        if consumer is None:
            raise ReadError("latency needs two instructions, or - for pairs on standard input", legal=("CONSUMER", "-"))
        yield _InstructionText("PRODUCER", producer), _InstructionText("CONSUMER", consumer)
        return
    if consumer is not None:
        raise ReadError("with -, pairs are read only from standard input", legal=("castsim latency - --target T",))
    file, data = named_bytes(STDIN)
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ReadError(f"{file}: byte {error.start} is not UTF-8 text") from None
    for number, line in enumerate(lines):
        first, arrow, second = line.partition(_ARROW)
        if not arrow or _ARROW in second:
            written = _InstructionText(file, line, number)
            raise written.error("write a line as PRODUCER -> CONSUMER", ("one ' -> ' between two instructions",))
        start = len(first) + _COLUMN
        yield _InstructionText(file, first, number), _InstructionText(file, second, number, start)


def _read_once(
    written: _InstructionText, dialect: Dialect, instructions: dict[str, SlottedInstruction]
) -> SlottedInstruction:
    """Return the only instruction of a text in its slot; equal texts are read once, and errors name the position."""
    if written.text not in instructions:
        try:
            instructions[written.text] = _instruction(written.text, written, dialect)
        except CastsimError:
            # Read again where it stands, so that the error says so.
            instructions[written.text] = _instruction(written.in_place, written, dialect)
    return instructions[written.text]


def _instruction(text: str, written: _InstructionText, dialect: Dialect) -> SlottedInstruction:
    items = parse(text, dialect, written.file).items
    placed = [
        SlottedInstruction(slot, instruction)
        for item in items
        if isinstance(item, Bundle)
        for slot, instruction in zip(Slot, item.slots, strict=True)
        if instruction is not None
    ]
    if len(items) != 1 or len(placed) != 1:
        message = f"'{written.text.strip()[:60]}' is not one instruction"
        raise written.error(message, ("one instruction", "four slots of which three are nop"))
    return placed[0]
