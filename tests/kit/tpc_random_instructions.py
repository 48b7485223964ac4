"""Random instances of the rows of the instruction table, with every switch that applies."""

from __future__ import annotations

import random
from collections.abc import Callable

from castsim.isa.tpc.forms import Dialect, Form, OperandSpec, Predication, Switch, Value
from castsim.isa.tpc.program import (
    DimensionMask,
    File,
    Immediate,
    LabelUse,
    LoopComparison,
    Operand,
    Predicate,
    Register,
    Special,
    TpcInstruction,
)

STEPS = {"D": ("V", 2), "A": ("V", 4), "Z": ("S", 2)}

Choose = Callable[[str, Dialect, random.Random], Register]
"""Chooses a register of a file."""


def some_register(file: str, language: Dialect, source: random.Random) -> Register:
    whole, step = STEPS.get(file, (file, 1))
    return Register(File(file), source.randrange(0, language.registers[whole] - step + 1, step))


def some_operand(
    spec: OperandSpec, language: Dialect, source: random.Random, register: Choose = some_register
) -> Operand:
    choice = source.choice(spec.accepts)
    if choice == "imm":
        return Immediate(source.getrandbits(32) if spec.limit is None else source.randint(0, spec.limit))
    if choice == "mask":
        return DimensionMask(source.getrandbits(5))
    if choice == "label":
        return LabelUse("end")
    if choice == "compare":
        return LoopComparison(source.choice((">", ">=", "<", "<=", "==", "!=")))
    if choice.startswith("@"):
        choice = language.tensor_registers[choice[1:]]
        if choice[1:].isdecimal():
            return Register(File(choice[0]), int(choice[1:]))
    return register(choice, language, source) if choice in File.__members__ else Special(choice)


def some_value(switch: Switch, form: Form, language: Dialect, source: random.Random) -> Value:
    implied = dict(form.implied)
    if switch.name in implied:
        return implied[switch.name]
    words: tuple[Value, ...] = tuple(value for value, _ in switch.words)
    if switch.rounding is not None:
        words = language.roundings[switch.rounding]
    return source.choice(words or switch.numbers)


def some_switches(form: Form, language: Dialect, source: random.Random) -> tuple[tuple[str, Value], ...]:
    switches: dict[str, Value] = {}
    for switch in form.switches:
        if switch.needs is None or switch.needs in language.features:
            switches[switch.name] = some_value(switch, form, language, source)
    for switch in form.switches:
        if switch.only_if is not None and switches.get(switch.only_if[0]) != switch.only_if[1]:
            switches.pop(switch.name, None)
    return tuple(switches.items())


def some_predicate(
    form: Form, language: Dialect, source: random.Random, register: Choose = some_register
) -> Predicate | None:
    if form.predication is Predication.NONE or source.random() >= 0.5:
        return None
    vectors = form.predication is Predication.VECTOR or form.vector_predicate in language.features
    found = register(source.choice(("SP", "VP") if vectors else ("SP",)), language, source)
    return Predicate(found, inverted=found.index == 0 or source.random() < 0.5)


def some_instruction(
    form: Form, language: Dialect, source: random.Random, register: Choose = some_register
) -> TpcInstruction:
    """A random instance of a row, with every switch that applies."""
    switches = some_switches(form, language, source)
    predicate = some_predicate(form, language, source, register)
    return TpcInstruction(
        form,
        source.choice(form.types) if form.types else None,
        switches,
        tuple(some_operand(spec, language, source, register) for spec in form.operands),
        predicate,
    )
