"""Steps of a chain: one legal instruction of a target each, its values and its spellings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from castsim.isa.codes import Codes
from castsim.isa.formats import Format
from castsim.isa.modes import Saturation
from castsim.isa.pto.program import RoundMode
from castsim.numerics import Tier
from castsim.planning.primitives import Primitive, apply


@dataclass(frozen=True, slots=True)
class TileCastForm:
    """A tile cast as the text writes it; None leaves a choice to the chip's default."""

    rounding: RoundMode | None
    saturation: Saturation | None
    scratch: bool

    @property
    def options(self) -> tuple[str, ...]:
        """The modes that have to be asked for."""
        words = [] if self.rounding is None else [f"rounding {self.rounding.name}"]
        words += [] if self.saturation is None else [f"saturation {self.saturation.name}"]
        return (*words, *(["tmp"] if self.scratch else []))


@dataclass(frozen=True, slots=True)
class TileOperationForm:
    """A tile operation with a constant: the mnemonic without `pto.`, the constant's code, further attributes."""

    mnemonic: str
    constant: int | None = None
    attributes: tuple[str, ...] = ()
    scratch: bool = False
    """Whether it needs a tmp tile as large as its operand."""

    @property
    def options(self) -> tuple[str, ...]:
        """The modes that have to be asked for."""
        return self.attributes


@dataclass(frozen=True, slots=True)
class TileChoiceForm:
    """A comparison with a scalar and a selection: elements for which it holds stay, others become another scalar.

    `mode` is that of the comparison; scalars are codes.
    """

    mode: str
    bound: int
    other: int

    @property
    def mnemonic(self) -> str:
        """The instructions."""
        return "tcmps+tsels"

    @property
    def options(self) -> tuple[str, ...]:
        """Nothing."""
        return ()


@dataclass(frozen=True, slots=True)
class BuiltinForm:
    """A cast builtin of a vector unit, by its name; a sequence of instructions that the compiler inserts."""

    mnemonic: str

    @property
    def options(self) -> tuple[str, ...]:
        """Nothing."""
        return ()


@dataclass(frozen=True, slots=True)
class VectorForm:
    """An instruction of the vector unit: mnemonic with its type, switches, operands behind the first source.

    Among the operands `@` stands for the first source, `=CODE` for a vector with that code in every element.

    `lanes` tells a conversion that changes the width of elements how it can be spelt: the largest `lane_sel` (None:
    no lane operand), and whether it has the all_lanes form.
    `lanes_chosen` tells whether all lanes have to be asked for, `default_rounding` whether `rounding` is what happens
    anyway.
    """

    mnemonic: str
    switches: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()
    lane_sel_max: int | None = None
    all_lanes: bool = False
    rounding: str | None = None
    lanes_chosen: bool = True
    default_rounding: bool = True

    @property
    def options(self) -> tuple[str, ...]:
        """The modes that have to be asked for: no rounding that happens anyway."""
        words = [] if self.rounding is None or self.default_rounding else [f"rounding {self.rounding}"]
        return (*words, *(word for word in self.switches if not word.startswith(("target_type", "to_"))))


@dataclass(frozen=True, slots=True)
class RereadForm:
    """No instruction: registers hold bits."""

    @property
    def options(self) -> tuple[str, ...]:
        """Nothing."""
        return ()


Form = TileCastForm | TileOperationForm | TileChoiceForm | VectorForm | BuiltinForm | RereadForm


@dataclass(frozen=True, slots=True)
class LoweringStep:
    """One instruction from `src` to `dst`.

    `forms` are the spellings that give the same values, the plainest first; `name` says what the instruction does.
    """

    src: Format
    dst: Format
    primitives: tuple[Primitive, ...]
    forms: tuple[Form, ...]
    name: str

    def run(self, codes: Codes, tier: Tier | None = None) -> Codes:
        """Return the codes of `dst` for codes of `src`."""
        for primitive in self.primitives:
            codes = apply(primitive, codes, tier)
        return codes

    @property
    def is_instruction(self) -> bool:
        """Whether anything is issued for it."""
        return not isinstance(self.forms[0], RereadForm)

    @property
    def label(self) -> str:
        """Name and the options of the plainest form."""
        options = ", ".join(self.forms[0].options)
        return f"{self.name} ({options})" if options else self.name


Chain = tuple[LoweringStep, ...]


def run_chain(chain: Sequence[LoweringStep], codes: Codes, tier: Tier | None = None) -> Codes:
    """Return the codes that a chain makes of codes."""
    for step in chain:
        codes = step.run(codes, tier)
    return codes


def intermediates(chain: Sequence[LoweringStep], codes: Codes) -> list[tuple[Format, Codes]]:
    """Return format and codes after every step."""
    found = []
    for step in chain:
        codes = step.run(codes)
        found.append((step.dst, codes))
    return found


def primitives_of(chain: Iterable[LoweringStep]) -> tuple[Primitive, ...]:
    """Return all primitives of a chain."""
    return tuple(primitive for step in chain for primitive in step.primitives)


def path_of(chain: Sequence[LoweringStep]) -> tuple[str, ...]:
    """Return the names of the formats that a chain goes through."""
    names = [chain[0].src.name, *(step.dst.name for step in chain)] if chain else []
    return tuple(name for place, name in enumerate(names) if place == 0 or name != names[place - 1])
