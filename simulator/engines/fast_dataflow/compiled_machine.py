"""The machine as compiled code: the same functions through numba, cached on disk.

Compiled code sees the state under the names in `state`: a machine is the address of its record (`memory`),
rows are records, tables are addresses of rows or integers. numba passes an array in seven parts and counts references
to it at every call; raw memory avoids both.

Importing this module imports numba. Compiling takes longer than most programs, so only very long ones use
it (see `tile_simulation`).
"""

from __future__ import annotations

import ctypes
import hashlib
import inspect
import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, imputils
from numba.core.base import BaseContext
from numba.core.datamodel import models
from numba.core.typing import templates
from numba.core.typing.context import Context
from numba.core.typing.templates import Signature
from numba.extending import intrinsic, lower_builtin, register_jitable, register_model

from castsim import files
from castsim.engines.fast_dataflow import issue, machine_steps, pipe_steps
from castsim.engines.fast_dataflow.execution_rows import address_of, machine_record, parts_of_machine, sources
from castsim.engines.fast_dataflow.state import DONE, MachineState, names_of
from castsim.execution import transfer_timing
from castsim.machines.strided import strided_instructions as strided_timing
from castsim.machines.vector_function import function_timing

_RULES = (transfer_timing, strided_timing, function_timing)
_MODULES = (*_RULES, pipe_steps, issue, machine_steps)

_settings: Any = numba.config
if _settings.DISABLE_JIT:
    raise ImportError("NUMBA_DISABLE_JIT forbids compilation")

# ----------------------------------------------------------------------------------------------------- types of state

# Of most of this numba says nothing to a type checker.
_resolves_fields: Any = templates.infer_getattr
_resolves: Any = templates.infer_global
_signature: Any = templates.signature
_reads_fields: Any = imputils.lower_getattr_generic
_writes_fields: Any = imputils.lower_setattr_generic
_does: Any = lower_builtin

_INTEGER: Any = types.int64


class _MachineType(types.Type):
    """The address of a machine's record."""

    def __init__(self) -> None:
        super().__init__("MachineState")


class _TableType(types.Type):
    """The address of the first of many rows, or integers."""

    def __init__(self, row: Any) -> None:
        self.row = row
        super().__init__(f"Table({row})")


def _row_type(row: type) -> Any:
    if row is int:
        return _INTEGER
    return numba.from_dtype(np.dtype([(name, np.int64) for name in names_of(row)]))


def _types_of_fields() -> dict[str, Any]:
    """Return the type of every field of a machine."""
    numbers, rows, tables = parts_of_machine()
    kinds: dict[str, Any] = dict.fromkeys(numbers, _INTEGER)
    kinds |= {name: _row_type(row) for name, row in rows.items()}
    return kinds | {name: _TableType(_row_type(row)) for name, row in tables.items()}


_MACHINE = _MachineType()
_FIELDS = _types_of_fields()

for _type in (_MachineType, _TableType):
    register_model(_type)(models.OpaqueModel)


@_resolves_fields
class _Fields(templates.AttributeTemplate):
    """The fields of a machine."""

    key = _MachineType

    def generic_resolve(self, _machine: Any, name: str) -> Any:  # type: ignore[override]  # nothing there
        return _FIELDS.get(name)


@_resolves(operator.getitem)
class _Item(templates.AbstractTemplate):
    """`table[row]`: a row by reference, or an integer."""

    def generic(self, arguments: Any, _keywords: Any) -> Any:
        if isinstance(arguments[0], _TableType):
            return _signature(arguments[0].row, arguments[0], types.intp)
        return None


@_resolves(operator.setitem)
class _NewItem(templates.AbstractTemplate):
    """`table[place] = number`."""

    def generic(self, arguments: Any, _keywords: Any) -> Any:
        if isinstance(arguments[0], _TableType) and arguments[0].row is _INTEGER:
            return _signature(types.none, arguments[0], types.intp, _INTEGER)
        return None


def _at(context: BaseContext, builder: ir.IRBuilder, base: ir.Value, offset: ir.Value, kind: types.Type) -> ir.Value:
    """Return a pointer to an offset from an address."""
    address = builder.gep(builder.bitcast(base, cgutils.voidptr_t), [offset], inbounds=True)
    wanted = context.get_value_type(kind)
    return builder.bitcast(address, wanted if isinstance(kind, types.Record) else wanted.as_pointer())


def _field(context: BaseContext, builder: ir.IRBuilder, base: ir.Value, name: str) -> ir.Value:
    """Return a pointer to a field of a machine; for a table to its address."""
    kind = _FIELDS[name]
    is_table = isinstance(kind, _TableType)
    offset = getattr(machine_record(), address_of(name) if is_table else name).offset
    return _at(context, builder, base, context.get_constant(types.intp, offset), _INTEGER if is_table else kind)


def _get_field(context: BaseContext, builder: ir.IRBuilder, _kind: types.Type, base: ir.Value, name: str) -> ir.Value:
    address = _field(context, builder, base, name)
    if isinstance(_FIELDS[name], types.Record):
        return address
    value = builder.load(address)
    return value if _FIELDS[name] is _INTEGER else builder.inttoptr(value, cgutils.voidptr_t)


_reads_fields(_MachineType)(_get_field)


def _set_field(
    context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Sequence[ir.Value], name: str
) -> None:
    base, value = arguments
    builder.store(context.cast(builder, value, signature.args[1], _INTEGER), _field(context, builder, base, name))


_writes_fields(_MachineType)(_set_field)


def _item(context: BaseContext, builder: ir.IRBuilder, table: _TableType, base: ir.Value, number: ir.Value) -> ir.Value:
    size = context.get_constant(types.intp, 8 if table.row is _INTEGER else table.row.size)
    return _at(context, builder, base, builder.mul(number, size), table.row)


def _get_item(
    context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Sequence[ir.Value]
) -> ir.Value:
    table = signature.args[0]
    address = _item(context, builder, table, *arguments)
    return builder.load(address) if table.row is _INTEGER else address


_does(operator.getitem, _TableType, types.intp)(_get_item)


def _set_item(
    context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Sequence[ir.Value]
) -> ir.Value:
    base, number, value = arguments
    builder.store(value, _item(context, builder, signature.args[0], base, number))
    return context.get_dummy_value()


_does(operator.setitem, _TableType, types.intp, _INTEGER)(_set_item)


@intrinsic
def _machine_at(_context: Context, _address: types.Type) -> tuple[Signature, Callable[..., ir.Value]]:
    """Return the machine whose record has an address."""

    def generate(
        _codegen: BaseContext, builder: ir.IRBuilder, _signature: Signature, arguments: Sequence[ir.Value]
    ) -> ir.Value:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return _MACHINE(types.intp), generate


_to_machine: Any = _machine_at

# ------------------------------------------------------------------------------------------------- compiled machine


@cache
def compiled_machine() -> Callable[[MachineState], int]:
    """Return the compiled form of `machine.run`; it takes a machine in raw memory."""
    for module in _MODULES:
        for _, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__:
                register_jitable(function)
    machine, _ = files.compiled(_machine(_source_stamp()), types.int64(types.intp), nogil=True, error_model="numpy")
    compiled: Callable[[int], int] = machine

    def run(m: MachineState) -> int:
        return compiled(ctypes.addressof(cast(ctypes.Structure, m)))

    return run


def _machine(stamp: int) -> Callable[[int], int]:
    """Return the machine; the stamp becomes part of the cache key, which otherwise covers only this file."""

    def run(address: int) -> int:
        return machine_steps.run(_to_machine(address)) if stamp >= 0 else DONE

    return run


def _source_stamp() -> int:
    """Return a hash of all sources that the machine consists of."""
    digest = hashlib.sha256()
    for source in sources():
        digest.update(source.read_bytes())
    return int.from_bytes(digest.digest()[:7], "big")
