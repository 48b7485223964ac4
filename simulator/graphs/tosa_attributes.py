"""The attributes that operators of TOSA have in text: which must be there, which may, and what they are.

RESCALE of TOSA 1.0 takes multiplier, shift and zero points as operands and has five attributes without a default
(tosa.xml; the TOSA dialect of MLIR). Older text has some of these operands as attributes, `double_round` in place of
`rounding_mode`, and no signedness. Names with a dialect before a dot say nothing about the operator; MLIR lets them
stand anywhere, and they are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from castsim.graphs.model import GraphTensor
from castsim.graphs.tosa_text import TensorType, TosaAttribute, TosaReader
from castsim.specifications.rescale import DOUBLE_ROUND, INEXACT_ROUND, SINGLE_ROUND

RESCALE = "tosa.rescale"
OPERANDS = ("input", "multiplier", "shift", "input_zp", "output_zp")
"""Operands of RESCALE in their order; all but the first may be attributes."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """The legal values of an attribute: a test, and their spelling."""

    accepts: Callable[[Any], bool]
    shown: tuple[str, ...]


def _is_integer(value: Any) -> bool:
    return type(value) is int


def _are_integers(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_integer, value))


_MODES = (SINGLE_ROUND, INEXACT_ROUND, DOUBLE_ROUND)
_FLAG = _Rule(lambda value: isinstance(value, bool), ("true", "false"))
_MODE = _Rule(lambda value: value in _MODES, _MODES)
_ZERO_POINT = _Rule(_is_integer, ("0 : i32",))
_VALUES = _Rule(lambda value: isinstance(value, GraphTensor), ("dense<1> : tensor<1xi32>",))
_RULES = {
    "scale32": _FLAG, "per_channel": _FLAG, "double_round": _FLAG, "input_unsigned": _FLAG, "output_unsigned": _FLAG,
    "rounding_mode": _MODE, "input_zp": _ZERO_POINT, "output_zp": _ZERO_POINT,
    "multiplier": _Rule(_are_integers, ("array<i32: 1073741824>",)), "shift": _Rule(_are_integers, ("array<i8: 31>",)),
    "new_shape": _Rule(lambda value: value == [] or _are_integers(value), ("array<i64: 4, 8>",)),
    "values": _VALUES, "value": _VALUES,
}  # fmt: skip


def checked_attributes(
    reader: TosaReader, operator: str, index: int, operands: int, given: Mapping[str, TosaAttribute]
) -> dict[str, Any]:
    """Return the values of an operator's attributes by name; `index` is the place of its name.

    Raises:
        ReadError: one that the operator does not have, that is missing, or that is something else; with its place.
    """
    own = {name: found for name, found in given.items() if "." not in name}
    required, optional = _names(operator, operands, own)
    legal = (*required, *optional)
    for name, found in own.items():
        if name not in legal:
            form = f" with {operands} operands" if name in _RULES else ""
            raise reader.error(f"{operator} has no attribute '{name}'{form}", found.index, legal or ("no attributes",))
        rule = _RULES[name]
        if not rule.accepts(found.value):
            said = f"'{found.value}'" if isinstance(found.value, str | int | float) else "this"
            raise reader.error(f"{said} is not a value of {name} of {operator}", found.index, _shown(name, rule))
    for name in required:
        if name not in own:
            raise reader.error(f"{operator} needs attribute '{name}'", index, _shown(name, _RULES[name]))
    return {name: found.value for name, found in own.items()}


def check_operand_types(
    reader: TosaReader, operands: list[tuple[TensorType, int]], result: TensorType, attributes: Mapping[str, Any]
) -> None:
    """Reject operands of a RESCALE whose element types are not those that the others and `scale32` call for.

    Raises:
        ReadError: as said, at the operand.
    """
    source = operands[0][0].format.name
    wanted = (source, "i32" if attributes["scale32"] else "i16", "i8", source, result.format.name)
    why = {"multiplier": f" with scale32 = {str(attributes['scale32']).lower()}"}
    for name, (kind, index), element in zip(OPERANDS, operands, wanted, strict=False):
        if kind.format.name != element:
            raise reader.error(f"{name} of {kind.format.name}{why.get(name, '')}", index, (element,))


def _names(operator: str, operands: int, given: Mapping[str, TosaAttribute]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the attributes that an operator needs, and those that it may have."""
    if operator == RESCALE:
        flags = ("scale32", "per_channel")
        signs = ("input_unsigned", "output_unsigned")
        if "double_round" in given and "rounding_mode" not in given:
            return (*OPERANDS[operands:], *flags, "double_round"), signs
        return (*OPERANDS[operands:], "scale32", "rounding_mode", "per_channel", *signs), ()
    if operator in ("tosa.const", "tosa.const_shape"):
        return ("value" if "value" in given and "values" not in given else "values",), ()
    if operator == "tosa.reshape" and operands == 1:
        return ("new_shape",), ()
    return (), ("input_unsigned",) if operator == "tosa.cast" else ()


def _shown(name: str, rule: _Rule) -> tuple[str, ...]:
    return tuple(f"{name} = {text}" for text in rule.shown)
