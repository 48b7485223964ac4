"""SIMT functions (`T.SimtVF`), computed: the threads of a core in lockstep, arrays with a row per thread and a column
per lane; and cores that wait for each other.

Racing threads have no defined result on the device; here the last thread's store remains.
The order of sums is that of the templates' butterflies, also assumed for hardware reductions; functions are
computed in f64 and rounded. Source: tilelang 0.1.15, `src/tl_templates/ascend/reduce.h`, `philox_rng.h`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from math import erf, prod
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import IllegalError, LimitError, TileError
from castsim.languages.tilelang.scalars import name_of, nodes_of, refused

Array = NDArray[Any]
UNTIMED = "castsim computes SIMT functions (T.SimtVF) but does not model their cycles"
_MOST_TRIPS = 1 << 20
_WARP = 32
_HERE = "in SIMT functions is not supported"


def number_type(dtype: object) -> np.dtype[Any]:
    """Return the type of an element, or of a lane of a vector of them."""
    word = re.sub(r"x\d+$", "", str(dtype))
    word = "float8_e4m3fn" if word == "float8_e4m3" else word
    if word.startswith("float4"):
        raise refused(word, None, _HERE)
    return np.dtype(getattr(ml_dtypes, word) if hasattr(ml_dtypes, word) else word)


def _truncated(a: Array, b: Array) -> Array:
    return np.divide(a, b) if a.dtype.kind not in "iu" else (a - np.fmod(a, b)) // b


def _wide(function: Any) -> Callable[..., Any]:
    """Return a function that is computed in f64."""
    return lambda *values: function(*(array.astype(np.float64) for array in values))


def _same(value: Array) -> Array:
    return value


_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _truncated, "FloorDiv": np.floor_divide,
    "Mod": np.fmod, "FloorMod": np.mod, "Min": np.fmin, "Max": np.fmax, "EQ": np.equal, "NE": np.not_equal,
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "And": np.logical_and,
    "Or": np.logical_or, "Not": np.logical_not, "Cast": _same, "Broadcast": _same, "likely": _same,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.invert, "shift_left": np.left_shift, "shift_right": np.right_shift, "pow": np.power,
    "fmod": np.fmod, "ieee_add": np.add, "ieee_sub": np.subtract, "ieee_mul": np.multiply, "ieee_fdiv": np.divide,
    "truncmod": np.fmod, "truncdiv": _truncated, "atan2": np.arctan2, "hypot": np.hypot, "copysign": np.copysign,
    "pow_of_int": np.power, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "infinity": lambda: np.inf,
    "clamp": lambda x, low, high: np.fmin(np.fmax(x, low), high),
    **{name: _wide(function) for name, function in {
        "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x), "log": np.log, "log2": np.log2,
        "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin,
        "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "atan": np.arctan,
        "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": np.vectorize(erf, otypes=[np.float64]), "floor": np.floor,
        "ceil": np.ceil, "trunc": np.trunc, "nearbyint": np.rint, "rint": np.rint, "fabs": np.abs,
        "round": lambda x: np.copysign(np.floor(abs(x) + 0.5), x), "fast_rcp": lambda x: 1 / x,
        "ieee_frcp": lambda x: 1 / x, "ieee_fsqrt": np.sqrt, "ieee_frsqrt": lambda x: 1 / np.sqrt(x),
        "fma": lambda a, b, c: a * b + c, "ieee_fmaf": lambda a, b, c: a * b + c,
    }.items()},
}  # fmt: skip
"""The effect of expressions and calls on each element of their operands, by name."""
_REDUCTIONS: Mapping[str, tuple[Callable[[Any, Any], Any], Callable[[np.dtype[Any]], Any]]] = {
    "sum": (np.add, lambda kind: 0), "max": (np.fmax, lambda kind: _bound(kind, -1)),
    "min": (np.fmin, lambda kind: _bound(kind, 1)), "bitand": (np.bitwise_and, lambda kind: -1),
    "bitor": (np.bitwise_or, lambda kind: 0), "bitxor": (np.bitwise_xor, lambda kind: 0),
}  # fmt: skip
"""Reductions: the combination of two values, and the value of an inactive thread."""
_ATOMICS: Mapping[str, Any] = {"add": np.add, "max": np.maximum, "min": np.minimum, "or": np.bitwise_or}
_ALL_REDUCE = re.compile(r"tl::AscendAllReduce<tl::(\w+)Op, (\d+), (\d+), (\d+)>::run")
_NOTHING = frozenset(
    ("tirx.tvm_storage_sync", "tl.sync_warp", "tl.device_assert", "tirx.assume", "tl.ascend_threadfence")
)
"""Threads are in step anyhow."""


def _bound(kind: np.dtype[Any], sign: int) -> Any:
    if kind.kind in "iu":
        return np.iinfo(kind).max if sign > 0 else np.iinfo(kind).min
    return sign * np.inf


def converted_to(values: Array, kind: np.dtype[Any]) -> Array:
    """Return converted values: to the nearest, whole numbers towards zero, 8-bit floats saturated."""
    if values.dtype == kind:
        return values
    with np.errstate(all="ignore"):
        if kind.kind == "V" or kind.name.startswith("float8"):
            finfo: Any = ml_dtypes.finfo
            most = float(finfo(kind).max)
            return np.clip(values.astype(np.float32), -most, most).astype(kind)
        if kind.kind in "iu" and values.dtype.kind not in "iub":
            wide = np.nan_to_num(np.trunc(values.astype(np.float64)), nan=0.0)
            bounds = np.iinfo(kind)
            return np.where(
                wide >= float(bounds.max), bounds.max, np.where(wide <= float(bounds.min), bounds.min, wide)
            ).astype(kind)
        return values.astype(kind)


@dataclass(slots=True)
class Philox:
    """Philox 4x32-10 with a state for every thread; words of a block are returned one by one."""

    seed: Array
    sequence: Array
    at: Array
    """The number of the next block, which is the low half of the counter; the high half is the sequence."""
    block: Array
    used: Array
    spare: Array
    """The second of two normal values, NaN when there is none."""

    @staticmethod
    def seeded(seed: Array, sequence: Array, offset: Array) -> Philox:
        """Return states; the offset counts in words."""
        at = (offset.astype(np.uint64) + np.uint64(3)) // np.uint64(4)
        count = len(seed)
        return Philox(seed.astype(np.uint64), sequence.astype(np.uint64), at, np.zeros((count, 4), np.uint64),
                      np.full(count, 4), np.full(count, np.nan))  # fmt: skip

    def draw(self, active: Array) -> Array:
        """Return a word of 32 bits for each active thread."""
        fresh = active & (self.used >= 4)
        if fresh.any():
            self.block[fresh] = self._blocks()[fresh]
            self.used[fresh] = 0
            self.at[fresh] += np.uint64(1)
        words = self.block[np.arange(len(self.used)), np.minimum(self.used, 3)]
        self.used[active] += 1
        return words.astype(np.uint32)

    def _blocks(self) -> Array:
        low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
        k0, k1, c0, c1, c2, c3 = (
            part for word in (self.seed, self.at, self.sequence) for part in (word & low, word >> shift)
        )
        for step in map(np.uint64, range(10)):
            a, b = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
            x = (k0 + step * np.uint64(0x9E3779B9)) & low
            y = (k1 + step * np.uint64(0xBB67AE85)) & low
            c0, c1, c2, c3 = (b >> shift) ^ c1 ^ x, b & low, (a >> shift) ^ c3 ^ y, a & low
        return np.stack([c0, c1, c2, c3], -1)

    def uniform(self, active: Array) -> Array:
        """Return numbers of f32 from 0 to 1."""
        unit = np.float32(2.3283064e-10)
        return self.draw(active).astype(np.float32) * unit + unit / np.float32(2)

    def normal(self, active: Array) -> Array:
        """Return normal numbers, by Box and Muller's transform in pairs."""
        fresh = active & np.isnan(self.spare)
        first = np.maximum(self.uniform(fresh).astype(np.float64), 1e-7)
        angle, far = 2 * np.pi * self.uniform(fresh).astype(np.float64), np.sqrt(-2 * np.log(first))
        # The device's sincosf hands the sine to the first of the pair.
        samples = np.where(fresh, far * np.sin(angle), self.spare)
        self.spare = np.where(fresh, far * np.cos(angle), np.where(active, np.nan, self.spare))
        return samples.astype(np.float32)


@dataclass(slots=True)
class ThreadMemory:
    """Bytes of the buffer and of global arrays by the variables of their data, with marks for stored bytes."""

    bytes: dict[Any, Array]
    stored: dict[Any, Array] = field(default_factory=dict)
    atomic: set[Any] = field(default_factory=set)


class Threads:
    """The threads of one launch."""

    def __init__(
        self, memory: ThreadMemory, buffer: Array, values: Mapping[Any, Any], cells: Mapping[Any, Any]
    ) -> None:
        self.memory, self.buffer, self.cells = memory, buffer, cells
        self.values: dict[Any, Any] = dict(values)
        self.locals: dict[Any, Array] = {}
        self.count = 1
        self.active = np.ones((1, 1), np.bool_)
        self.live = self.active
        """Threads that have not left the innermost loop."""
        self.random: Philox | None = None

    def run(self, block: Any) -> None:
        """Execute the body of a SIMT function.

        Raises:
            IllegalError: a construct is unknown. TileError: a thread accesses memory outside a buffer.
        """
        extents = dict.fromkeys("xyz", 1)
        for node in nodes_of(block.body):
            if type(node).__name__ == "AttrStmt" and node.attr_key == "thread_extent":
                extents[str(node.node.thread_tag)[-1]] = int(node.value)
        self.count, step = prod(extents.values()), 1
        row = np.arange(self.count, dtype=np.int64)[:, None]
        for axis, extent in extents.items():
            self.values[f"threadIdx.{axis}"] = row // step % extent
            step *= extent
        self.active = self.live = np.ones((self.count, 1), np.bool_)
        for buffer in block.alloc_buffers:
            self._allocate(buffer)
        with np.errstate(all="ignore"):
            self.statement(block.body)

    # ------------------------------------------------------------------------------------------------- statements

    def statement(self, s: Any) -> None:
        """Execute a statement in all active threads."""
        handler = getattr(self, f"_on_{type(s).__name__.lower()}", None)
        if handler is None:
            raise refused(f"statement {type(s).__name__}", None, _HERE)
        if self.mask.any():
            handler(s)

    @property
    def mask(self) -> Array:
        """The active threads."""
        return self.active & self.live

    def _only(self, condition: Array, act: Callable[[Any], Any], what: Any) -> Any:
        """Execute or evaluate something in those threads alone that a condition chooses."""
        around, self.active = self.active, self.active & condition
        try:
            return act(what)
        finally:
            self.active = around

    def _on_seqstmt(self, s: Any) -> None:
        for statement in s.seq:
            self.statement(statement)

    def _on_attrstmt(self, s: Any) -> None:
        if s.attr_key == "thread_extent":
            self.values[s.node.var] = self.values[str(s.node.thread_tag)].astype(number_type(s.node.var.dtype))
        self.statement(s.body)

    def _on_sblockrealize(self, s: Any) -> None:
        self._on_sblock(s.block)

    def _on_sblock(self, s: Any) -> None:
        for buffer in s.alloc_buffers:
            self._allocate(buffer)
        self.statement(s.body)

    def _on_allocbuffer(self, s: Any) -> None:
        self._allocate(s.buffer)

    def _on_declbuffer(self, s: Any) -> None:
        """Do nothing for a view."""

    def _allocate(self, buffer: Any) -> None:
        if str(buffer.scope()).startswith("local"):
            size = prod(int(extent) for extent in buffer.shape) * number_type(buffer.dtype).itemsize
            self.locals[buffer.data] = np.zeros((self.count, size), np.uint8)

    def _on_bind(self, s: Any) -> None:
        self.values[s.var] = self.value(s.value)

    def _on_bufferstore(self, s: Any) -> None:
        kind, index = number_type(s.buffer.dtype), self._index(s)
        self._put(s.buffer.data, kind, index, converted_to(self.value(s.value), kind))

    def _put(self, data: Any, kind: np.dtype[Any], index: Array, value: Array) -> None:
        shape = (self.count, max(np.shape(index)[-1:] + np.shape(value)[-1:], default=1))
        index, value = np.broadcast_to(index, shape), np.broadcast_to(value, shape)
        chosen = np.broadcast_to(self.mask, shape)
        array = self._held(data, kind)
        self._check(array, index, data)
        if data in self.locals:
            array[np.nonzero(chosen)[0], index[chosen]] = value[chosen]
        else:
            array[index[chosen]] = value[chosen]
            self._mark(data, kind, index[chosen])

    def _mark(self, data: Any, kind: np.dtype[Any], index: Array) -> None:
        size = self.memory.bytes.get(data, self.buffer).size
        marks = self.memory.stored.setdefault(data if data in self.memory.bytes else None, np.zeros(size, np.bool_))
        marks[: size // kind.itemsize * kind.itemsize].reshape(-1, kind.itemsize)[index] = True

    def _on_for(self, s: Any) -> None:
        low, extent = self.value(s.min), self.value(s.extent)
        step = 1 if s.step is None else self.value(s.step)
        most = int(np.max(np.where(self.mask, extent, 0)))
        self._repeated(
            most, lambda trip: trip < extent,
            lambda trip: self.values.update({s.loop_var: low + np.asarray(trip, number_type(s.loop_var.dtype)) * step}),
            s.body,
        )  # fmt: skip

    def _on_while(self, s: Any) -> None:
        self._repeated(_MOST_TRIPS + 1, lambda _: self.value(s.condition), lambda _: None, s.body)

    def _repeated(
        self, most: int, goes_on: Callable[[int], Array], begin: Callable[[int], None], body: Any
    ) -> None:  # fmt: skip
        around, live = self.active, self.live
        self.active, self.live = self.mask, np.ones_like(live)
        for trip in range(most):
            if trip > _MOST_TRIPS:
                raise LimitError(f"a loop of a SIMT function makes more than {_MOST_TRIPS} trips")
            self.active = self.mask & goes_on(trip)
            if not self.active.any():
                break
            begin(trip)
            self.statement(body)
        self.active, self.live = around, live

    def _on_ifthenelse(self, s: Any) -> None:
        condition = self.value(s.condition).astype(np.bool_)
        for case, chosen in ((s.then_case, condition), (s.else_case, ~condition)):
            if case is not None:
                self._only(chosen, self.statement, case)

    def _on_evaluate(self, s: Any) -> None:
        if type(s.value).__name__ == "Call" and name_of(s.value) not in _NOTHING:
            self.value(s.value)

    # -------------------------------------------------------------------------------------------------- expressions

    def value(self, e: Any) -> Array:
        """Return an expression's value in every thread; values of inactive ones are meaningless."""
        called = type(e).__name__ == "Call"
        name = name_of(e).rpartition(".")[2].removeprefix("__") if called else type(e).__name__
        operation = _OPERATIONS.get(name)
        if operation is not None:
            given = e.args if called else [getattr(e, part) for part in ("a", "b", "value") if hasattr(e, part)]
            values = [self.value(argument) for argument in given if type(argument).__name__ != "StringImm"]
            return converted_to(np.asarray(operation(*values)), number_type(e.dtype))
        word = next(
            (prefix for prefix in ("warp_reduce", "atomic", "shfl") if called and name.startswith(f"{prefix}_")), ""
        )
        if word:
            result: Array = getattr(self, f"_{word}")(e, name.removeprefix(f"{word}_"))
            return result
        own: Callable[[Any], Array] | None = getattr(self, f"_{'call' if called else 'of'}_{name.lower()}", None)
        if own is None:
            raise refused(f"T.{name}" if called else name, None, _HERE)
        return own(e)

    def _of_intimm(self, e: Any) -> Array:
        return np.asarray(e.value).astype(number_type(e.dtype))

    _of_floatimm = _of_intimm

    def _of_var(self, e: Any) -> Array:
        if e not in self.values:
            raise refused(f"variable {e.name}", None, "in SIMT functions has no value")
        return np.asarray(self.values[e]).astype(number_type(e.dtype))

    def _of_ramp(self, e: Any) -> Array:
        return self.value(e.base) + self.value(e.stride) * np.arange(int(e.lanes))

    def _of_let(self, e: Any) -> Array:
        self.values[e.var] = self.value(e.value)
        return self.value(e.body)

    def _of_select(self, e: Any) -> Array:
        return self._chosen(e.condition, e.true_value, e.false_value)

    def _call_if_then_else(self, e: Any) -> Array:
        return self._chosen(*e.args)

    def _chosen(self, condition: Any, yes: Any, no: Any) -> Array:
        chosen = self.value(condition).astype(np.bool_)
        whole = chosen.shape[-1:] != (1,)
        sides = [self._only(whole | lanes, self.value, side) for lanes, side in ((chosen, yes), (~chosen, no))]
        result: Array = np.where(chosen, *sides)
        return result

    def _of_bufferload(self, e: Any) -> Array:
        data, kind = e.buffer.data, number_type(e.buffer.dtype)
        if (data, 0) in self.cells:
            return np.asarray(self.cells[data, 0]).astype(kind)
        array, index = self._held(data, kind), self._index(e)
        self._check(array, index, data)
        index = np.clip(index, 0, array.shape[-1] - 1)
        return array[np.arange(self.count)[:, None], index] if data in self.locals else array[index]

    def _index(self, access: Any) -> Array:
        if len(access.indices) != 1:
            raise refused("an element with several indices", None, _HERE)
        return np.atleast_2d(self.value(access.indices[0]).astype(np.int64) + self.value(access.buffer.elem_offset))

    def _held(self, data: Any, kind: np.dtype[Any]) -> Array:
        array = self.locals.get(data)
        if array is None:
            array = self.memory.bytes.get(data, self.buffer)
        return array[..., : array.shape[-1] // kind.itemsize * kind.itemsize].view(kind)

    def _check(self, array: Array, index: Array, data: Any) -> None:
        wrong = self.mask & ((index < 0) | (index >= array.shape[-1]))
        if wrong.any():
            first = int(np.broadcast_to(index, wrong.shape)[wrong][0])
            raise TileError(f"a thread reaches element {first} of {data.name}, which has {array.shape[-1]}")

    # --------------------------------------------------------------------------------------------------------- calls

    def _call_reinterpret(self, e: Any) -> Array:
        return np.ascontiguousarray(self.value(e.args[0])).view(number_type(e.dtype))

    def _call_loop_break(self, e: Any) -> Array:
        self.live = self.live & ~self.active
        return np.zeros(1)

    def _call_get_lane_idx(self, e: Any) -> Array:
        return np.arange(self.count, dtype=np.int32)[:, None] % _WARP

    def _call_get_warp_idx(self, e: Any) -> Array:
        return np.arange(self.count, dtype=np.int32)[:, None] // _WARP

    _call_get_warp_idx_sync = _call_get_warp_idx

    def _call_call_extern(self, e: Any) -> Array:
        """Execute the templates' reduction over threads: `<operation, threads, stride of the participants, first>`."""
        match = _ALL_REDUCE.fullmatch(str(e.args[0].value))
        if match is None:
            raise refused(f"a call of {e.args[0].value}", None, _HERE)
        threads, scale, first = map(int, match.groups()[1:])
        values = np.broadcast_to(self.value(e.args[1]), (self.count, 1)).copy()
        whole = first + (self.count - first) // threads * threads
        values[first:whole] = self._reduced(values, match[1].lower(), slice(first, whole), (threads // scale, scale))
        return values

    def _warp_reduce(self, e: Any, operation: str) -> Array:
        given = self.value(e.args[0])
        if self.count % _WARP:
            raise refused(f"{self.count} threads", None, "are not a whole number of warps")
        return self._reduced(given, operation, slice(None), (_WARP, given.shape[-1]))

    def _reduced(self, values: Array, operation: str, threads: slice, group: tuple[int, int]) -> Array:
        """Return values of threads, reduced along the first axis of their groups."""
        combine, unit = _REDUCTIONS[operation]
        taken = np.where(self.mask, values, np.asarray(unit(values.dtype)).astype(values.dtype))[threads]
        groups = taken.reshape(-1, *group)
        return np.broadcast_to(_folded(groups, combine), groups.shape).reshape(taken.shape)

    def _shfl(self, e: Any, way: str) -> Array:
        """Return values of other threads of the warp; a lane outside the warp gives the thread's own."""
        mode, *given = way.removesuffix("_sync"), *(self.value(argument) for argument in e.args)
        value, by = given[-2:] if len(given) < 4 else given[1:3]
        row = np.arange(self.count)[:, None]
        lane, by = row % _WARP, np.asarray(by).astype(np.int64)
        to = {"xor": lane ^ by, "up": lane - by, "down": lane + by}.get(mode, by + 0 * lane)
        source = np.where((to >= 0) & (to < _WARP), row - lane + to, row)
        return np.broadcast_to(value, (self.count, 1))[source[:, 0]]

    def _atomic(self, e: Any, words: str) -> Array:
        operation, _, _rest = words.partition("_")
        pointer = e.args[0]
        if name_of(pointer) not in ("tirx.tvm_access_ptr", "tl.access_ptr") or operation not in _ATOMICS:
            raise refused(f"T.atomic_{operation}", None, "in SIMT functions is not supported in this form")
        data, kind = pointer.args[1], number_type(pointer.args[0].dtype)
        value = np.broadcast_to(converted_to(self.value(e.args[1]), kind), (self.count, 1))
        index = np.broadcast_to(np.atleast_2d(self.value(pointer.args[2])), (self.count, 1))
        array, chosen = self._held(data, kind), self.mask
        self._check(array, index, data)
        before: Array = array[np.clip(index, 0, array.size - 1)]
        for row in np.nonzero(chosen[:, 0])[0]:  # one after the other: results may be the values before
            at = index[row, 0]
            before[row, 0] = array[at]
            array[at] = _ATOMICS[operation](array[at], value[row, 0])
        self._mark(data, kind, index[chosen])
        self.memory.atomic.add(data)
        return before

    def _call_rng_init(self, e: Any) -> Array:
        self.random = Philox.seeded(
            *(np.broadcast_to(self.value(argument).astype(np.int64), (self.count, 1))[:, 0] for argument in e.args[:3])
        )
        return np.zeros(1)

    def _drawn(self, e: Any, draw: Callable[[Philox, Array], Array]) -> Array:
        if self.random is None:
            raise refused("T.rng_rand", None, "needs T.rng_init before it")
        lanes = re.search(r"x(\d+)$", str(e.dtype))
        chosen = np.broadcast_to(self.mask, (self.count, 1))[:, 0]
        return np.stack([draw(self.random, chosen) for _ in range(int(lanes[1]) if lanes else 1)], -1)

    def _call_rng_rand(self, e: Any) -> Array:
        return self._drawn(e, Philox.draw)

    def _call_rng_rand_float(self, e: Any) -> Array:
        return self._drawn(e, Philox.normal if e.args and str(e.args[0].value) == "normal" else Philox.uniform)


def _folded(groups: Array, combine: Callable[[Any, Any], Any]) -> Array:
    """Return the reduction along axis 1, by halves where it can be halved."""
    while groups.shape[1] > 1:
        half, odd = divmod(groups.shape[1], 2)
        if odd:
            first, *others = (groups[:, number : number + 1] for number in range(groups.shape[1]))
            for term in others:
                first = combine(first, term).astype(groups.dtype)
            folded: Array = first
            return folded
        groups = np.asarray(combine(groups[:, :half], groups[:, half:])).astype(groups.dtype)
    return groups


@dataclass(frozen=True, slots=True)
class SimtLaunch:
    """A call of a SIMT function: its values from the context, and the global arrays that it accesses."""

    block: Any
    keys: tuple[Any, ...]
    """Variables, and mutable scalars as (data, 0), whose values are passed, in order."""
    known: Mapping[Any, Any]
    arrays: Mapping[Any, tuple[str, int | None]]
    """By the variable of the data: name, and number of elements if it is known."""
    stores: frozenset[Any]
    """The arrays that it stores to."""
    atomics: dict[str, NDArray[np.bool_]]
    """Collects marks of the bytes of arrays that were changed atomically."""

    def __call__(self, values: tuple[float, ...], uses: Mapping[str, Any], memory: Any, span: Any) -> None:
        """Note the uses of arrays and, with a memory, compute."""
        for data, (name, count) in self.arrays.items():
            if count:
                uses[name].see_element(count - 1, span)
            uses[name].needs_input |= not uses[name].stored
            uses[name].stored |= data in self.stores
        if memory is None:
            return
        given = {**self.known, **dict(zip(self.keys, values, strict=True))}
        thread_memory = ThreadMemory({data: memory.arguments[name] for data, (name, _) in self.arrays.items()})
        cells = {key: value for key, value in given.items() if isinstance(key, tuple)}
        variables = {key: value for key, value in given.items() if not isinstance(key, tuple)}
        Threads(thread_memory, memory.buffer, variables, cells).run(self.block)
        for data, marks in thread_memory.stored.items():
            if data is None:
                memory.defined |= marks
                continue
            name = self.arrays[data][0]
            memory.stores(name)[marks] = True
            memory.marks(name)[marks] = False
            if data in thread_memory.atomic:
                self.atomics[name] = marks | self.atomics.get(name, np.False_)


# Cores that wait for each other, by value: each runs by itself, again until what the others left is what it read.

CORES_UNTIMED = "cores wait for each other; castsim computes this but does not model its cycles"
ALL_CORES, OWN_GROUP = 0, 1
"""Modes of flags: between all vector cores of a launch, and between the two of a group."""
_MOST_ROUNDS = 64

_Stores = Mapping[str, tuple[NDArray[np.uint8], NDArray[np.bool_]]]


class Meeting:
    """Flags between the cores of a launch: the stores of each core at the time it sets one, for waiting cores.

    A core waits for the others' n-th setting of the flag with its own n-th wait. Since the cores run one after the
    other, a round is repeated until no core finds new data.
    """

    def __init__(self, cores: range, launched: int = 1) -> None:
        self.cores, self.launched = cores, launched
        self.rounds = 0
        self._left: dict[tuple[int, int, int, int], _Stores] = {}
        self._before: dict[tuple[int, int, int, int], _Stores] | None = None
        self._memory: Any = None
        self._counts: Counter[tuple[bool, int, int]] = Counter()
        self._waits = False

    def goes_on(self) -> bool:
        """End a round, and return whether another is needed.

        Raises:
            LimitError: the rounds do not converge.
        """
        self.rounds += 1
        if self.rounds > _MOST_ROUNDS:
            raise LimitError(f"the cores wait for each other more than {_MOST_ROUNDS} times")
        settled = self._before is not None and _equal(self._before, self._left)
        self._before = dict(self._left)
        return self._waits and not settled

    def _next(self, memory: Any, *key: Any) -> int:
        if memory is not self._memory:
            self._memory, self._counts = memory, Counter()
        self._counts[key] += 1
        return self._counts[key]

    def arrive(self, core: int, mode: int, values: tuple[float, ...], uses: Any, memory: Any, span: Any) -> None:
        """Set a flag."""
        if memory is not None:
            number = self._next(memory, True, mode, int(values[0]))
            stores = {name: (memory.arguments[name].copy(), at.copy()) for name, at in memory.written.items()}
            self._left[core, mode, int(values[0]), number] = stores

    def wait(self, core: int, mode: int, values: tuple[float, ...], uses: Any, memory: Any, span: Any) -> None:
        """Wait for the flag of the other cores, and get their stores.

        Raises:
            IllegalError: the other cores are not run.
        """
        others = [
            other_core
            for other_core in self.cores
            if other_core != core and (mode == ALL_CORES or other_core // 2 == core // 2)
        ]
        if len(self.cores) < self.launched:
            raise IllegalError(f"core {core} waits for other cores", legal=("--core all", 'core="all"'))
        self._waits = True
        if memory is None:
            return
        number = self._next(memory, False, mode, int(values[0]))
        for other in others:
            for name, (array, marks) in self._left.get((other, mode, int(values[0]), number), {}).items():
                size = min(array.size, memory.arguments[name].size) if name in memory.arguments else 0
                at = marks[:size]
                if size:
                    memory.arguments[name][:size][at] = array[:size][at]


def _equal(a: Mapping[Any, _Stores], b: Mapping[Any, _Stores]) -> bool:
    return a.keys() == b.keys() and all(
        stores.keys() == b[key].keys()
        and all(
            np.array_equal(left, right)
            for name in stores
            for left, right in zip(stores[name], b[key][name], strict=True)
        )
        for key, stores in a.items()
    )
