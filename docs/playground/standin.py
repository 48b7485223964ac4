"""Stands in for NumPy where its browser wheel cannot be had: arrays as lists of Python numbers, as castsim uses them.

Enough to check and time programs and to cast single values: integers wrap to their width, floats are rounded by
`struct`. What is not here raises `NumPyMissingError`; tests hold every output to the one with NumPy.
"""

from __future__ import annotations

import functools
import math
import operator
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from importlib.machinery import ModuleSpec
from itertools import pairwise, product
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

NAMES = ("numpy", "ml_dtypes")


class NumPyMissingError(RuntimeError):
    """Something was asked for that only NumPy can do."""


class generic:  # noqa: N801 - NumPy's name
    """The root of the scalar types."""

    code = "q"

    @property
    def dtype(self) -> dtype:
        """The type."""
        return dtype(type(self))

    def item(self) -> Any:
        """Return the number as one of Python's."""
        return type(self).__mro__[1](self)  # type: ignore[call-arg]

    def astype(self, kind: Any) -> Any:
        """Return the number in another type."""
        return asarray([self]).astype(kind)[0]

    def view(self, kind: Any) -> Any:
        """Return the bytes as a number of another type."""
        return asarray([self]).view(kind)[0]


def _scalar(name: str, base: type, code: str) -> type:
    """Return a scalar type; sums and the like of integers wrap to its width."""

    def closed(function: Callable[..., Any]) -> Callable[..., Any]:
        def apply(self: Any, other: Any) -> Any:
            if isinstance(other, ndarray):
                return NotImplemented
            made = function(base(self), base(other) if isinstance(other, base) else other)
            return kind(_fit(made, code)) if type(made) is base and not isinstance(other, float) else made

        return apply

    kind = type(name, (base, generic), {"code": code})
    if base is int:
        names = ("add", "sub", "mul", "and", "or", "xor", "lshift", "rshift", "floordiv", "mod")
        for each in names:
            setattr(kind, f"__{each}__", closed(getattr(operator, f"__{each}__")))
        kind.__invert__ = lambda self: kind(_fit(~int(self), code))  # type: ignore[attr-defined]
    return kind


SCALARS = {
    **{f"{'u' * (code < 'a')}int{size}": _scalar(f"{'u' * (code < 'a')}int{size}", int, code)
       for size, codes in ((8, "bB"), (16, "hH"), (32, "iI"), (64, "qQ")) for code in codes},
    **{f"float{size}": _scalar(f"float{size}", float, code) for size, code in ((16, "e"), (32, "f"), (64, "d"))},
}  # fmt: skip
CODES = {kind.code: kind for kind in SCALARS.values()} | {"?": bool}
PYTHON = {bool: "?", int: "q", float: "d"}


def _fit(value: Any, code: str) -> Any:
    """Return a number as an element of a type holds it."""
    if code == "?":
        return bool(value)
    if code in "efd":
        value = float(value)
        if code == "d" or math.isinf(value) or math.isnan(value):
            return value
        try:
            return struct.unpack(code, struct.pack(code, value))[0]
        except OverflowError:
            return math.copysign(math.inf, value)
    bits = 8 * struct.calcsize(code)
    value = int(value) & ((1 << bits) - 1)
    return value - (1 << bits) if code.islower() and value >> (bits - 1) else value


class dtype:  # noqa: N801 - NumPy's name
    """A type of elements, or of records: names and types."""

    def __init__(self, of: Any = None) -> None:
        self.fields = {name: dtype(each) for name, each in of} if isinstance(of, list) else None
        self.names = tuple(self.fields) if self.fields else None
        if isinstance(of, dtype):
            self.code, self.fields, self.names = of.code, of.fields, of.names
        elif isinstance(of, str):
            bits = {
                "f2": "e",
                "f4": "f",
                "f8": "d",
                "u1": "B",
                "u2": "H",
                "u4": "I",
                "u8": "Q",
                "i1": "b",
                "i2": "h",
                "i4": "i",
                "i8": "q",
            }
            of = of.lstrip("<=|")
            self.code = bits.get(of) or getattr(SCALARS.get(of), "code", "") or "d"
        else:
            self.code = "" if self.fields else PYTHON.get(of) or getattr(of, "code", "d")

    @property
    def type(self) -> type:
        """The scalar type."""
        return CODES[self.code]

    @property
    def letters(self) -> str:
        """The letters of `struct` for an element."""
        if not isinstance(self.code, str):
            _missing(str(self.code))
        return "".join(each.code for each in self.fields.values()) if self.fields else self.code

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return struct.calcsize(f"<{self.letters}")

    isnative, byteorder, hasobject, subdtype, shape = True, "=", False, None, ()
    name = property(lambda self: self.type.__name__)

    def newbyteorder(self, _order: str) -> dtype:
        """Return the type itself: there is one order."""
        return self

    @property
    def kind(self) -> str:
        """The letter of the kind."""
        return "b" if self.code == "?" else "f" if self.code in "efd" else "i" if self.code.islower() else "u"

    def __class_getitem__(cls, of: Any) -> Any:
        return cls

    def __eq__(self, other: object) -> bool:
        other = other if isinstance(other, dtype) else dtype(other)
        return (self.fields, self.code) == (other.fields, other.code)

    def __hash__(self) -> int:
        return hash((self.names, self.code))


def _promoted(first: str, second: str) -> str:
    if second in (first, "?"):
        return first
    if first == "?":
        return second
    floats = [code for code in (first, second) if code in "efd"]
    if floats:
        return max(floats, key="efd".index) if len(floats) == 2 else "d"
    wide, slim = sorted((first, second), key=struct.calcsize, reverse=True)
    if wide.islower() == slim.islower() or (wide.islower() and struct.calcsize(wide) > struct.calcsize(slim)):
        return wide
    return {1: "h", 2: "i", 4: "q", 8: "d"}[struct.calcsize(wide)]


def _steps(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Return the distances of elements that follow each other."""
    return tuple(size * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _before(of: dtype, name: str, key: str) -> bool:
    return of.names.index(name) < of.names.index(key)  # type: ignore[union-attr]


class ndarray:  # noqa: N801 - NumPy's name
    """Elements in a buffer of bytes, with a shape and the distances of elements along each extent."""

    def __init__(self, data: list[Any], shape: tuple[int, ...], of: dtype) -> None:
        self.buffer, self.offset, self.shape, self.dtype = bytearray(len(data) * of.itemsize), 0, shape, of
        self.strides = _steps(shape, of.itemsize)
        self.write(data)

    @classmethod
    def part(cls, buffer: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], of: dtype) -> ndarray:
        """Return an array of bytes that others may share."""
        made = cls.__new__(cls)
        made.buffer, made.offset, made.shape, made.strides, made.dtype = buffer, offset, shape, strides, of
        return made

    def __class_getitem__(cls, of: Any) -> Any:
        return cls

    size = property(lambda self: math.prod(self.shape))
    ndim = property(lambda self: len(self.shape))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.dtype.itemsize)
    flat = property(lambda self: self.ravel())
    flags = property(
        lambda self: SimpleNamespace(c_contiguous=self.contiguous, aligned=True, writeable=True, owndata=False)
    )

    @property
    def T(self) -> ndarray:  # noqa: N802
        """The extents in the other order."""
        return ndarray.part(self.buffer, self.offset, self.shape[::-1], self.strides[::-1], self.dtype)

    @property
    def contiguous(self) -> bool:
        """Whether the elements follow each other in the buffer."""
        return self.strides == _steps(self.shape, self.dtype.itemsize) or self.size < 2

    def places(self) -> list[int]:
        """Return where each element lies."""
        found = [self.offset]
        for extent, step in zip(self.shape, self.strides, strict=True):
            found = [place + step * each for place in found for each in range(extent)]
        return found

    @property
    def data(self) -> list[Any]:
        """The elements in a list of their own."""
        letters, count = self.dtype.letters, self.size
        if self.dtype.fields:
            return [struct.unpack_from(f"<{letters}", self.buffer, place) for place in self.places()]
        if self.contiguous:
            return list(struct.unpack_from(f"<{count}{letters}", self.buffer, self.offset))
        return [struct.unpack_from(f"<{letters}", self.buffer, place)[0] for place in self.places()]

    def write(self, values: list[Any]) -> None:
        """Set all elements."""
        letters = self.dtype.letters
        if len(values) != self.size:
            raise ValueError(f"{len(values)} values for {self.size} elements")
        if self.contiguous and not self.dtype.fields:
            struct.pack_into(f"<{self.size}{letters}", self.buffer, self.offset, *values)
            return
        for place, value in zip(self.places(), values, strict=True):
            struct.pack_into(f"<{letters}", self.buffer, place, *(value if self.dtype.fields else (value,)))

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self[place] for place in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self.item())

    __hash__ = None  # type: ignore[assignment]

    def __int__(self) -> int:
        return int(self.item())

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.item())

    def item(self, *place: int) -> Any:
        """Return the one element, or the one at a place."""
        return self.data[place[0]] if place else self.data[0] if self.size == 1 else _missing("item")

    def _keys(self, key: Any) -> tuple[Any, ...]:
        keys = tuple(
            asarray(each) if isinstance(each, list) else each for each in (key if isinstance(key, tuple) else (key,))
        )
        dots = [at for at, each in enumerate(keys) if each is Ellipsis]
        if dots:
            gap = self.ndim - sum(each is not None for each in keys) + 1
            return (*keys[: dots[0]], *[slice(None)] * gap, *keys[dots[0] + 1 :])
        return keys

    def _basic(self, keys: tuple[Any, ...]) -> ndarray:
        """Return the part that numbers, slices and new extents choose: it shares the bytes."""
        shape: list[int] = []
        strides: list[int] = []
        offset, axis = self.offset, 0
        for each in (*keys, *[slice(None)] * (self.ndim - sum(each is not None for each in keys))):
            if each is None:
                shape.append(1)
                strides.append(0)
                continue
            extent, step = self.shape[axis], self.strides[axis]
            axis += 1
            if isinstance(each, slice):
                chosen = range(*each.indices(extent))
                offset += step * chosen.start if chosen else 0
                shape.append(len(chosen))
                strides.append(step * chosen.step)
            else:
                place = operator.index(each)
                if not -extent <= place < extent:
                    raise IndexError(f"index {place} is out of bounds")
                offset += step * (place % extent)
        return ndarray.part(self.buffer, offset, tuple(shape), tuple(strides), self.dtype)

    def _places(self, keys: tuple[Any, ...]) -> tuple[list[int], tuple[int, ...]]:
        """Return the places in `data` that arrays of indices or of truth values choose."""
        if (
            isinstance(keys[0], ndarray)
            and len(keys) == 1
            and keys[0].dtype.code == "?"
            and keys[0].shape == self.shape
        ):
            found = [place for place, there in enumerate(keys[0].data) if there]
            return found, (len(found),)
        if sum(isinstance(each, ndarray) and each.ndim > 0 for each in keys) > 1:
            return self._paired(keys)
        shape: list[int] = []
        axes: list[Iterable[int]] = []
        for each, extent in zip((*keys, *[slice(None)] * (self.ndim - len(keys))), self.shape, strict=True):
            if isinstance(each, slice):
                axes.append(range(*each.indices(extent)))
                shape.append(len(axes[-1]))  # type: ignore[arg-type]
            elif isinstance(each, ndarray) and each.ndim:
                truth = each.dtype.code == "?"
                taken = [place for place, there in enumerate(each.data) if there] if truth else each.data
                if any(not -extent <= place < extent for place in taken):
                    raise IndexError("index out of bounds")
                axes.append([place % extent for place in taken])
                shape.extend((len(taken),) if truth else each.shape)
            else:
                axes.append((operator.index(each) % extent,))
        steps = _steps(self.shape, 1)
        return [sum(map(operator.mul, steps, each)) for each in product(*axes)], tuple(shape)

    def _paired(self, keys: tuple[Any, ...]) -> tuple[list[int], tuple[int, ...]]:
        """Return the places at which arrays of indices, one for each axis, meet."""
        if len(keys) != self.ndim or any(isinstance(each, slice) for each in keys):
            _missing("index")
        arrays = [asarray(each) for each in keys]
        shape = _common(*(each.shape for each in arrays))
        steps = [math.prod(self.shape[axis + 1 :]) for axis in range(self.ndim)]
        parts = [
            [place % extent for place in _spread(each, shape)] for each, extent in zip(arrays, self.shape, strict=True)
        ]
        return [sum(map(operator.mul, steps, each)) for each in zip(*parts, strict=True)], shape

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            before = sum(each.itemsize for name, each in self.dtype.fields.items() if _before(self.dtype, name, key))
            return ndarray.part(self.buffer, self.offset + before, self.shape, self.strides, self.dtype.fields[key])
        keys = self._keys(key)
        if any(isinstance(each, ndarray) and (each.ndim or each.dtype.code == "?") for each in keys):
            places, shape = self._places(keys)
            data = self.data
            return ndarray([data[place] for place in places], shape, self.dtype)
        found = self._basic(keys)
        whole = (
            not found.shape
            and keys
            and not any(each is Ellipsis for each in (key if isinstance(key, tuple) else (key,)))
        )
        return _out(found.data[0], self.dtype) if whole else found

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, str):
            self[key][...] = value
            return
        keys = self._keys(key)
        if any(isinstance(each, ndarray) and (each.ndim or each.dtype.code == "?") for each in keys):
            places, shape = self._places(keys)
            data = self.data
            for place, one in zip(places, _spread(asarray(value, self.dtype), shape), strict=True):
                data[place] = one
            self.write(data)
            return
        part = self._basic(keys)
        if self.dtype.fields:
            part.write(value.data if isinstance(value, ndarray) else [tuple(value)])
        else:
            part.write(_spread(asarray(value, self.dtype), part.shape))

    def astype(self, kind: Any, copy: bool = True, **_: object) -> ndarray:
        """Return the elements in another type."""
        of = dtype(kind)
        if not copy and of == self.dtype:
            return self
        return ndarray([_fit(each, of.code) for each in self.data], self.shape, of)

    def view(self, kind: Any) -> ndarray:
        """Return the bytes as elements of another type."""
        of, own = dtype(kind), self.dtype.itemsize
        if of.itemsize == own:
            return ndarray.part(self.buffer, self.offset, self.shape, self.strides, of)
        if not self.shape or (self.shape[-1] > 1 and self.strides[-1] != own):
            _missing("view")
        last = self.shape[-1] * own // of.itemsize
        return ndarray.part(self.buffer, self.offset, (*self.shape[:-1], last), (*self.strides[:-1], of.itemsize), of)

    def tobytes(self) -> bytes:
        """Return the bytes."""
        return bytes(self.copy().buffer)

    def reshape(self, *shape: Any) -> ndarray:
        """Return the elements in another shape; they share the bytes if they follow each other."""
        found = tuple(shape[0]) if isinstance(shape[0], tuple | list) else shape
        known = max(-math.prod(found), 1) if -1 in found else 1
        extents = tuple(self.size // known if each == -1 else each for each in found)
        if math.prod(extents) != self.size:
            raise ValueError(f"cannot reshape {self.shape} to {extents}")
        if not self.contiguous:
            return ndarray(self.data, extents, self.dtype)
        return ndarray.part(self.buffer, self.offset, extents, _steps(extents, self.dtype.itemsize), self.dtype)

    def ravel(self) -> ndarray:
        """Return the elements in one row."""
        return self.reshape(-1) if self.size else self.reshape(0)

    def copy(self) -> ndarray:
        """Return another array of the same elements."""
        return ndarray(self.data, self.shape, self.dtype)

    def tolist(self) -> Any:
        """Return the elements as nested lists."""
        return [each.tolist() if isinstance(each, ndarray) else each for each in self] if self.shape else self.data[0]

    def _reduced(
        self, function: Callable[..., Any], axis: Any = None, *, kind: Any = None, keepdims: bool = False
    ) -> Any:
        of = self.dtype if kind is None else dtype(kind)
        if axis is None or (axis in (0, -1) and self.ndim == 1):
            return _out(function(self.data), of)
        axis %= self.ndim
        before, after, extent = math.prod(self.shape[:axis]), math.prod(self.shape[axis + 1 :]), self.shape[axis]
        data = [
            function([self.data[(b * extent + k) * after + a] for k in range(extent)])
            for b in range(before)
            for a in range(after)
        ]
        kept = (1,) if keepdims else ()
        return ndarray(data, (*self.shape[:axis], *kept, *self.shape[axis + 1 :]), of)

    def all(self, axis: Any = None) -> Any:
        """Return whether no element is zero."""
        return self._reduced(all, axis, kind=bool)

    def any(self, axis: Any = None) -> Any:
        """Return whether an element is not zero."""
        return self._reduced(any, axis, kind=bool)

    def sum(self, axis: Any = None, dtype: Any = None) -> Any:
        """Return the sum of the elements."""
        return self._reduced(sum, axis, kind=dtype or (int if self.dtype.code in "?bhiq" else None))

    def max(self, axis: Any = None) -> Any:
        """Return the largest element."""
        return self._reduced(max, axis)

    def min(self, axis: Any = None) -> Any:
        """Return the smallest element."""
        return self._reduced(min, axis)

    def take(self, places: Any, axis: Any = None, out: Any = None, mode: str = "") -> ndarray:
        """Return elements, or parts, at places; those beyond the end wrap in every mode."""
        if out is not None:
            out[...] = self.take(places)
            return out  # type: ignore[no-any-return]
        if axis is None:
            return self.ravel()[asarray(places)]
        return self[(slice(None),) * (axis % self.ndim) + (asarray(places),)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"array.{name}")


def _out(value: Any, of: dtype) -> Any:
    return value if of.fields or of.code == "?" else CODES[of.code](value)


ASKED: list[str] = []
"""What was asked for in vain."""


def _missing(name: str) -> Any:
    ASKED.append(name)
    raise NumPyMissingError(name)


def _spread(array: ndarray, shape: tuple[int, ...]) -> list[Any]:
    """Return the elements of an array broadcast to a shape."""
    if array.shape == shape:
        return array.data
    if array.size == 1:
        return array.data * math.prod(shape)
    own = (1,) * (len(shape) - array.ndim) + array.shape
    if any(mine not in (1, extent) for mine, extent in zip(own, shape, strict=True)):
        raise ValueError(f"shape {array.shape} does not fit {shape}")
    steps = [0 if extent == 1 else math.prod(own[axis + 1 :]) for axis, extent in enumerate(own)]
    data = array.data
    return [data[sum(map(operator.mul, steps, place))] for place in product(*map(range, shape))]


def _common(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    most = max(map(len, shapes))
    padded = [(1,) * (most - len(shape)) + shape for shape in shapes]
    return tuple(next((each for each in extents if each != 1), 1) for extents in zip(*padded, strict=True))


def _code(value: Any) -> str | None:
    """Return the type of an operand, None of a number of Python's, which takes the other's."""
    if isinstance(value, ndarray):
        return value.dtype.code
    return "?" if isinstance(value, bool) else getattr(value, "code", None)


def _ufunc(function: Callable[..., Any], result: str = "") -> Callable[..., Any]:
    """Return a function of arrays, element by element; `result` is its type, '' that of its operands."""

    def apply(*given: Any, out: Any = None, where: Any = True, dtype: Any = None, casting: str = "") -> Any:
        known = [code for code in map(_code, given) if code is not None]
        codes = known or [PYTHON[type(each)] for each in given]
        code = codes[0]
        for each in codes[1:]:
            code = _promoted(code, each)
        if any(isinstance(each, float) and _code(each) is None for each in given) and code not in "efd":
            code = "d"
        if code == "?" and any(type(each) is int for each in given):
            code = "q"
        arrays = [asarray(each, CODES[code]) if not isinstance(each, ndarray) else each for each in given]
        shape = _common(*(each.shape for each in arrays))
        made = dtype_of(dtype) if dtype is not None else dtype_of(CODES[result or code])
        parts = [[_fit(one, code) for one in _spread(each, shape)] for each in arrays]
        data = [_fit(function(*each), made.code) for each in zip(*parts, strict=True)]
        if out is not None:
            out = out[0] if isinstance(out, tuple) else out
            kept = _spread(asarray(where), shape)
            out.write(
                [
                    _fit(new, out.dtype.code) if keep else old
                    for new, old, keep in zip(data, out.data, kept, strict=True)
                ]
            )
            return out
        return ndarray(data, shape, made) if any(isinstance(each, ndarray) for each in given) else _out(data[0], made)

    def reduce(array: Any, axis: int = 0) -> Any:
        rows = [asarray(each) for each in array]
        return functools.reduce(apply, rows) if axis == 0 else _stack([functools.reduce(apply, row) for row in rows])

    apply.__name__ = getattr(function, "__name__", "function")
    apply.reduce = reduce  # type: ignore[attr-defined]
    return apply


dtype_of = dtype
UFUNCS = {
    **{name: _ufunc(getattr(operator, short)) for name, short in {
        "add": "add", "subtract": "sub", "multiply": "mul", "bitwise_and": "and_", "bitwise_or": "or_",
        "bitwise_xor": "xor", "left_shift": "lshift", "right_shift": "rshift", "negative": "neg",
        "floor_divide": "floordiv", "remainder": "mod", "absolute": "abs",
    }.items()},
    **{name: _ufunc(getattr(operator, short), "?") for name, short in {
        "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
    }.items()},
    "maximum": _ufunc(max), "minimum": _ufunc(min),
    "logical_not": _ufunc(operator.not_, "?"), "isnan": _ufunc(math.isnan, "?"), "isfinite": _ufunc(math.isfinite, "?"),
    "isinf": _ufunc(math.isinf, "?"), "signbit": _ufunc(lambda one: math.copysign(1, one) < 0, "?"),
    "logical_and": _ufunc(lambda a, b: bool(a and b), "?"), "logical_or": _ufunc(lambda a, b: bool(a or b), "?"),
}  # fmt: skip
UFUNCS["invert"] = _ufunc(lambda one: not one if isinstance(one, bool) else ~one)
UFUNCS["bitwise_not"], UFUNCS["abs"] = UFUNCS["invert"], UFUNCS["absolute"]

for _name, _method in {
    "add": "add", "subtract": "sub", "multiply": "mul", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
    "left_shift": "lshift", "right_shift": "rshift", "floor_divide": "floordiv", "remainder": "mod",
}.items():  # fmt: skip
    setattr(ndarray, f"__{_method}__", UFUNCS[_name])
    setattr(ndarray, f"__r{_method}__", lambda self, other, function=UFUNCS[_name]: function(other, self))
    setattr(ndarray, f"__i{_method}__", lambda self, other, function=UFUNCS[_name]: function(self, other, out=self))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(ndarray, f"__{_name}__", _ufunc(getattr(operator, _name), "?"))
ndarray.__invert__ = UFUNCS["invert"]  # type: ignore[attr-defined]
ndarray.__neg__ = UFUNCS["negative"]  # type: ignore[attr-defined]


def _full(shape: Any, value: Any, kind: Any = None, dtype: Any = None, **_: object) -> ndarray:
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    of = dtype_of(dtype or kind or type(value))
    return ndarray([(0,) * len(of.names) if of.names else _fit(value, of.code)] * math.prod(extents), extents, of)


def zeros(shape: Any, dtype: Any = float, **_: object) -> ndarray:
    """Return zeros."""
    return _full(shape, 0, dtype)


def asarray(values: Any, dtype: Any = None, **_: object) -> ndarray:
    """Return an array as it is, or one of numbers or nested lists."""
    if isinstance(values, ndarray):
        return values if dtype is None or values.dtype == dtype_of(dtype) else values.astype(dtype)
    if isinstance(values, bytes | bytearray | memoryview) or not isinstance(values, list | tuple | range):
        number = values
        of = dtype_of(dtype or (type(number) if isinstance(number, bool | int | float) else _missing("array")))
        return ndarray([_fit(number, of.code)], (), of)
    parts = [asarray(each, dtype) for each in values]
    of = dtype_of(dtype) if dtype is not None else parts[0].dtype if parts else dtype_of(float)
    if dtype is None and any(each.dtype.code == "d" for each in parts):
        of = dtype_of(float)
    shape = (len(parts), *(parts[0].shape if parts else ()))
    return ndarray([_fit(one, of.code) for each in parts for one in each.data], shape, of)


def _where(condition: Any, first: Any, second: Any) -> ndarray:
    codes = [code for code in (_code(first), _code(second)) if code] or [PYTHON[type(first)]]
    code = _promoted(codes[0], codes[-1])
    arrays = [asarray(condition), *(asarray(each, CODES[code]) for each in (first, second))]
    shape = _common(*(each.shape for each in arrays))
    parts = [_spread(each, shape) for each in arrays]
    return ndarray([one if yes else other for yes, one, other in zip(*parts, strict=True)], shape, dtype(CODES[code]))


def _copyto(to: ndarray, values: Any, where: Any = True, **_: object) -> None:
    kept, new = _spread(asarray(where), to.shape), _spread(asarray(values, to.dtype), to.shape)
    to.write([one if yes else old for yes, one, old in zip(kept, new, to.data, strict=True)])


def _arange(*given: Any, dtype: Any = None) -> ndarray:
    return asarray(list(range(*map(int, given))), dtype or int).reshape(-1)


def _indices(array: Any) -> ndarray:
    return asarray([place for place, each in enumerate(asarray(array).data) if each], SCALARS["int64"]).reshape(-1)


def _broadcast_to(array: Any, shape: Any) -> ndarray:
    of = asarray(array)
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    return ndarray(list(_spread(of, extents)), extents, of.dtype)


def _concatenate(arrays: Any, **_: object) -> ndarray:
    parts = [asarray(each) for each in arrays]
    data = [one for each in parts for one in each.data]
    return ndarray(data, (sum(len(each) for each in parts), *parts[0].shape[1:]), parts[0].dtype)


def _bytes(raw: Any) -> ndarray:
    buffer = memoryview(raw).cast("B")
    return ndarray.part(buffer, 0, (len(buffer),), (1,), dtype(SCALARS["uint8"]))


def _as_strided(array: ndarray, shape: Any, strides: Any, **_: object) -> ndarray:
    return ndarray.part(array.buffer, array.offset, tuple(shape), tuple(strides), array.dtype)


def _memmap(path: Any, kind: Any, _mode: str, offset: int, shape: tuple[int, ...], order: str) -> ndarray:
    of = dtype(kind)
    raw = Path(path).read_bytes()[offset : offset + math.prod(shape) * of.itemsize]
    return _bytes(raw).view(of).reshape(shape) if order == "C" else _missing("memmap")


def _diff(array: Any, *, prepend: Any = (), append: Any = ()) -> ndarray:
    data = [*asarray(prepend).data, *asarray(array).data, *asarray(append).data]
    return ndarray([b - a for a, b in pairwise(data)], (max(len(data) - 1, 0),), asarray(array).dtype)


def _bincount(array: Any) -> ndarray:
    counts = Counter(asarray(array).data)
    return asarray([counts[each] for each in range(max(counts, default=-1) + 1)], SCALARS["int64"]).reshape(-1)


class _Blocks:
    """All elements of several arrays as one block."""

    def __init__(self, operands: Any, **_: object) -> None:
        self.block = tuple(each.ravel() for each in operands)

    def __enter__(self) -> list[tuple[ndarray, ...]]:
        return [self.block]

    def __exit__(self, *_: object) -> None:
        """Keep nothing: the block shares the lists of the arrays."""


def _stack(arrays: Any, axis: int = 0) -> ndarray:
    parts = [asarray(each) for each in arrays]
    of, shape = parts[0].dtype, parts[0].shape
    if axis == 0:
        return ndarray([one for each in parts for one in each.data], (len(parts), *shape), of)
    if axis in (len(shape), -1):
        return ndarray(
            [one for each in zip(*(each.data for each in parts), strict=True) for one in each], (*shape, len(parts)), of
        )
    return _missing("stack")


FUNCTIONS: dict[str, Any] = {
    "bincount": _bincount, "diff": _diff, "memmap": _memmap, "stack": _stack, "nditer": _Blocks,
    "argsort": lambda array, **_: asarray(sorted(range(len(array.data)), key=array.data.__getitem__)),
    "divmod": lambda a, b: (UFUNCS["floor_divide"](a, b), UFUNCS["remainder"](a, b)),
    "frombuffer": lambda raw, dtype=float, **_: _bytes(raw).view(dtype),
    "clip": lambda x, low, high, out=None: UFUNCS["minimum"](UFUNCS["maximum"](x, low), high, out=out),
    "repeat": lambda array, times: asarray([one for one in array.data for _ in range(times)], array.dtype),
    "may_share_memory": lambda a, b: a.buffer is b.buffer,
    **UFUNCS, "generic": generic, "dtype": dtype, "ndarray": ndarray, "zeros": zeros, "empty": zeros, "full": _full,
    "ones": lambda shape, dtype=float: _full(shape, 1, dtype), "asarray": asarray, "ascontiguousarray": asarray,
    "array": lambda values, dtype=None, **_: asarray(values, dtype).copy(), "where": _where, "copyto": _copyto,
    "empty_like": lambda like, dtype=None, **_: zeros(like.shape, dtype or like.dtype),
    "zeros_like": lambda like, dtype=None, **_: zeros(like.shape, dtype or like.dtype),
    "full_like": lambda like, value, dtype=None, **_: _full(like.shape, value, dtype or like.dtype),
    "arange": _arange, "flatnonzero": _indices, "broadcast_to": _broadcast_to, "concatenate": _concatenate,
    "all": lambda array, **_: all(asarray(array).data), "any": lambda array, **_: any(asarray(array).data),
    "count_nonzero": lambda array: sum(map(bool, asarray(array).data)), "size": lambda array: asarray(array).size,
    "argmin": lambda array: asarray(array).data.index(min(asarray(array).data)),
    "array_equal": lambda a, b: asarray(a).shape == asarray(b).shape and asarray(a).data == asarray(b).data,
    "bool_": bool, "int_": SCALARS["int64"], "intp": SCALARS["int64"], "inf": math.inf, "nan": math.nan,
    "newaxis": None, "errstate": lambda **_: nullcontext(), **SCALARS,
}  # fmt: skip
"""What is here of NumPy."""


class Missing:
    """Something of NumPy that may be named, and not called."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *_: object, **__: object) -> Any:
        """Refuse."""
        _missing(self.__name__)

    def __str__(self) -> str:
        return self.__name__

    def __or__(self, other: object) -> object:
        return self

    __ror__ = __or__

    def __getitem__(self, key: object) -> object:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self.__name__}.{name}")


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__dict__.setdefault(name, Missing(f"{self.__name__}.{name}"))


class Finder:
    """Finds NumPy and ml_dtypes, and all modules in them."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return where a module is, if it is one of these."""
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in NAMES else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module, filled."""
        made = _Module(spec.name)
        if spec.name == "numpy":
            made.__dict__.update(FUNCTIONS)
        elif spec.name == "numpy.lib.stride_tricks":
            made.__dict__["as_strided"] = _as_strided
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing more."""


def install() -> None:
    """Let the modules be found from here on."""
    sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]
