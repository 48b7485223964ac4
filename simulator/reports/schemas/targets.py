"""The documents of `castsim targets`, on targets and on specifications."""

from __future__ import annotations

from castsim.reports.documents import CommandDocument, Keys, says
from castsim.reports.schemas.keys import FactEntry, Name, Scalar
from castsim.targets.description import Status


class TargetHeader(Keys):
    """A target in the list."""

    name: str = says("Its name.")
    title: str = says("The chip.")
    mechanism: str = says("How it executes: `strided-repeat`, `vector-function` or `vliw`.")
    languages: list[str] = says("The languages of its programs.")
    architectures: list[str] = says("The names by which programs ask for it.")
    casts: int = says("How many type pairs it has.")


class SpecificationHeader(Keys):
    """A specification in the list."""

    name: str = says("Its name.")
    title: str = says("What it specifies.")
    kind: str = says("Always `specification`.")
    versions: list[str] = says("Its versions; these are names, `1.1`.")
    default_version: str = says("The one that is taken if none is named.")
    casts: int = says("How many type pairs it has.")


class TargetsList(CommandDocument, name="targets-list"):
    """All targets and specifications."""

    targets: list[TargetHeader] = says("The targets.")
    specifications: list[SpecificationHeader] = says("The specifications.")


class PairEntry(Keys):
    """A type pair."""

    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    modes: list[str] = says("The rounding modes that it honours; none if there is one instruction only.")
    default: str | None = says("The mode in force if none is named; null where nothing is rounded.")
    fallback: str | None = says("The mode in force if one is named that the pair lacks; null where there is none.")
    saturation: str
    """The default, `on` or `off`, where there is a choice; else what happens beyond the range by the options in force:
    `clamps`, `none: inf`, `none: NaN`, `none: low bits`, or `not needed` where all numbers have their place."""
    switchable: str = says("When the other value takes effect.")
    scratch: str | None = says("The sequence that runs through a tmp tile; null if there is none.")


class OptionEntry(Keys):
    """An option of a target."""

    name: str = says("Its name.")
    value: int | str = says("Its default.")
    legal: list[int | str] = says("The values that it may have.")
    meaning: str = says("What it decides.")
    set_by: str = says("Who sets it on the chip; may be empty.")
    status: Status = says("How well the default is known.")
    source: str = says("Where it is from.")


class BuiltinEntry(Keys):
    """A cast builtin of TPC-C."""

    name: str = says("Its name.")
    signature: str = says("Result and operands.")
    vpu_operations: int = says("Vector operations that a call issues, as documented.")
    result_order: str = says("Order of the result's elements.")
    status: Status = says("How well it is known.")
    note: str = says("What else is to be said; may be empty.")


class FunctionEntry(Keys):
    """A special function of TPC-C."""

    name: str = says("Its name.")
    signature: str = says("Result and operands.")
    modelled: bool = says("Whether castsim has it.")
    kind: str = says("`sequence`, `table`, `descriptor` or `unpublished`.")


class TargetDescription(CommandDocument, TargetHeader, name="targets"):
    """One target."""

    pairs: list[PairEntry] = says("Its type pairs.")
    facts: list[FactEntry] = says("What its description says.")
    options: list[OptionEntry] = says("Its options.")
    builtins: list[BuiltinEntry] = says("The cast builtins of chips with TPC-C.", optional=True)
    special_functions: list[FunctionEntry] = says(optional=True)
    """The special functions of chips with TPC-C."""


class ModeEntry(Keys):
    """What asking for a rounding mode gives."""

    requested: str = says("The mode asked for; `default` if none is named.")
    in_force: str | None = says("The mode in force; null where nothing is rounded.")
    mnemonic: str = says("The instruction.")
    warning: str | None = says("What a program is warned of; null for nothing.")


class SaturationEntry(Keys):
    """What asking for a saturation mode gives."""

    requested: str = says("The mode asked for; `default` if none is named.")
    scratch: bool = says("Whether a tmp tile is given.")
    in_force: str = says("The mode in force, in the words of `saturation` of the pair.")
    warning: str | None = says("What a program is warned of; null for nothing.")


class ConfigurationEntry(Keys):
    """A number of the instruction, or a word about it."""

    name: str = says("What it is.")
    value: object = says("Its value.")


class ScratchSequence(Keys):
    """The sequence through a tmp tile."""

    steps: str = says("Its name.")
    operations: list[str] = says("The operations that it issues for one element.")
    status: Status = says("How well it is known.")
    source: str = says("Where it is from.")


class TargetPair(CommandDocument, PairEntry, name="targets-pair"):
    """One type pair of a target."""

    target: str = says("Name of the target.")
    mnemonics: list[ModeEntry] = says("The rounding modes.")
    saturation_modes: list[SaturationEntry] = says("The saturation modes.")
    configuration: list[ConfigurationEntry] = says("The mechanism's own numbers.")
    scratch_sequence: ScratchSequence | None = says("The sequence through a tmp tile; null if there is none.")
    note: str = says("What else is to be said; may be empty.")
    status: Status = says("How well the pair is known.")
    source: str = says("Where it is from.")


class DiffEntry(Keys):
    """The casts from one format on both targets."""

    src: str = says("Name of the source format.")
    first: list[str] = says("Its destinations on the first target.")
    second: list[str] = says("Its destinations on the second target.")
    only_first: list[str] = says("Those that the second lacks.")
    only_second: list[str] = says("Those that the first lacks.")
    difference: str = says("The same in words.")


class DiffFact(Keys):
    """A fact whose value differs between two targets."""

    name: str = says("Its path in the description.")
    first: object = says("Its value on the first target; null if that lacks it.")
    second: object = says("Its value on the second target; null if that lacks it.")


class TargetsDiff(CommandDocument, name="targets-diff"):
    """With `--diff`: two targets side by side."""

    targets: list[str] = says("Names of the first and of the second target.")
    rows: list[DiffEntry] = says("One entry for each source format.")
    facts: list[DiffFact] = says("The facts whose values differ; none for two chips of the same facts.")


# The documents of `castsim targets` on specifications.


class Rule(Keys):
    """A rule that says which results are accepted."""

    name: str = says("Its name.")
    source: str = says("Where it is from.")
    status: Status = says("How well it is known.")
    note: str = says("What else is to be said; may be empty.")
    meaning: str = says("The rule in words.")
    accept: str = says("Form of the set: `exact`, `interval` and the like.")
    roundings: list[str] = says("The roundings of an exact rule.")
    overflow: str | None = says("The overflow policy of an exact rule; null if an attribute or the cast decides.")
    below_ulps: float = says("How far below the exact magnitude results may be.")
    above_ulps: float = says("How far above it.")
    beyond: str = says("What holds beyond the range.")
    undefined: list[str] = says("Sources for which every result is right.")
    flush_source: bool = says("Whether subnormal sources may be taken for 0.")
    flush_result: bool = says("Whether subnormal results may be 0.")
    zero_of_either_sign: bool = says("Whether the sign of 0 is free.")
    unclear_overflow: bool = says("Whether both orders of rounding and overflow are right.")


class SpecifiedPairs(Keys):
    """Type pairs that share a rule: every source with every destination."""

    src: list[str] = says("Names of the source formats.")
    dst: list[str] = says("Names of the destination formats.")
    since: str = says("The version that introduced them.")
    requires: list[str] = says("Profiles and extensions that they need.")
    when: dict[Name, Scalar] = says("The attribute values for which the rule holds.")
    rule: str = says("Name of the rule.")


class SpecifiedType(Keys):
    """A type."""

    name: str = says("Name of the format.")
    since: str = says("The version that introduced it.")


class AttributeEntry(Keys):
    """An attribute of the operator."""

    name: str = says("Its name.")
    source: str = says("Where it is from.")
    status: Status = says("How well it is known.")
    note: str = says("What else is to be said; may be empty.")
    values: list[Scalar] = says("Its values, the default first.")
    since: str = says("The version that introduced it.")
    effect: str = says("What it does.")
    meaning: str = says("The same in words.")


class RescaleRounding(Keys):
    """A rounding mode of RESCALE."""

    number: int = says("Its number.")
    requires: list[str] = says("Profiles and extensions that it needs.")
    wide_only: bool = says("Whether it needs the 32-bit multiplier.")


class Rescale(Keys):
    """The rules of RESCALE."""

    source: str = says("Where they are from.")
    status: Status = says("How well they are known.")
    note: str = says("What else is to be said; may be empty.")
    inputs: dict[Name, list[str]] = says("What each input type needs.")
    outputs: list[str] = says("The output types.")
    unsigned_types: list[str] = says("Types that may be unsigned.")
    wide_inputs: list[str] = says("Input types of the 32-bit multiplier.")
    any_zero_point: list[str] = says("Types with any zero point.")
    unsigned_zero_points: dict[Name, list[int]] = says("Zero points of types that have them only when unsigned.")
    wide_multiplier: str = says("Type of the wide multiplier.")
    narrow_multiplier: str = says("Type of the narrow multiplier.")
    shift_type: str = says("Type of the shift.")
    min_shift: int = says("The smallest shift.")
    max_shift: int = says("The largest shift.")
    double_round_above_shift: int = says("DOUBLE_ROUND rounds twice above this shift.")
    double_round_bit: int = says("At which bit it rounds first.")
    relative_errors: int = says("INEXACT_ROUND: how many units of error.")
    relative_error_exponent: int = says("The exponent of 2 of such a unit.")
    rounding_modes: dict[Name, RescaleRounding] = says("The rounding modes.")


class SpecificationDescription(CommandDocument, name="specification"):
    """One specification."""

    name: str = says("Its name.")
    title: str = says("What it specifies.")
    kind: str = says("Always `specification`.")
    versions: list[str] = says("Its versions; these are names, `1.1`.")
    default_version: str = says("The one that is taken if none is named.")
    casts: int = says("How many type pairs it has.")
    pairs: list[SpecifiedPairs] = says("Its type pairs.")
    types: list[SpecifiedType] = says("Its types.")
    rules: list[Rule] = says("Its rules.")
    attributes: list[AttributeEntry] = says("Its attributes.")
    rescale: Rescale | None = says("Its RESCALE; null if it has none.")
    status: Status = says("How well the type pairs are known.")
    source: str = says("Where they are from.")


class PairRule(Rule):
    """A rule of a type pair."""

    since: str = says("The version that introduced it.")
    requires: list[str] = says("Profiles and extensions that it needs.")
    when: dict[Name, Scalar] = says("The attribute values for which it holds.")


class SpecificationPair(CommandDocument, name="specification-pair"):
    """One type pair of a specification."""

    specification: str = says("Name of the specification.")
    src: str = says("The source as it was given.")
    dst: str = says("The destination as it was given.")
    rules: list[PairRule] = says("Its rules.")
