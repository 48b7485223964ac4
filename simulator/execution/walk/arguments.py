"""What a kernel's arguments are when the walk begins: pointers to global memory, and scalars with their values."""

from __future__ import annotations

from collections.abc import Mapping

from castsim.execution.walk.dependence import Scalar
from castsim.execution.walk.places import Pointer
from castsim.execution.walk.scalars import argument_value
from castsim.isa.errors import ReadError
from castsim.isa.formats import format_named
from castsim.isa.pto import program as pto


def bind_arguments(function: pto.Function, scalars: Mapping[str, int | float]) -> dict[str, Pointer | Scalar]:
    """Return the value of every argument by its name.

    Raises:
        ReadError: a scalar without a value, a value for none, an argument of another kind.
    """
    known = {argument.name for argument in function.arguments if isinstance(argument.type, pto.ScalarType)}
    for name in scalars:
        if name not in known:
            raise ReadError(f"@{function.name} has no scalar argument '{name}'", legal=sorted(known))
    return {argument.name: _bound(function, argument, scalars) for argument in function.arguments}


def _bound(function: pto.Function, argument: pto.Argument, scalars: Mapping[str, int | float]) -> Pointer | Scalar:
    if isinstance(argument.type, pto.PointerType):
        return Pointer(argument.name, format_named(argument.type.element))
    if not isinstance(argument.type, pto.ScalarType):
        raise ReadError(f"argument %{argument.name}: a kernel takes pointers and scalars", span=argument.span)
    if argument.name not in scalars:
        raise ReadError(
            f"scalar argument %{argument.name} of @{function.name} needs a value",
            span=argument.span,
            legal=(f"--arg {argument.name}=VALUE",),
        )
    return Scalar(argument_value(argument.name, scalars[argument.name], argument.type.name))
