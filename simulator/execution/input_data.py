"""The input of a run: target and entry, `.npy` files, random and zero inputs, and their bytes in global memory.

Formats without a native dtype are unsigned codes, one element per byte or wider storage unit; 4-bit formats are packed
low nibble first when they enter memory (design: program inputs and outputs).
"""

from __future__ import annotations

import math
import os
import re
import stat
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import LimitError, ReadError, Span, WarningKind, Warnings, WarningText
from castsim.isa.formats import Codes, Format, IntFormat, code_bits, format_named
from castsim.isa.pto import program as pto
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import cast_codes
from castsim.numerics.codec import array_from_codes, codes_from_array, pack_codes, unpack_codes
from castsim.numerics.policy import abstract_policy
from castsim.targets.loader import Target, load_target, target_for_architecture, target_names


@dataclass(slots=True)
class ArgumentUse:
    """The use of one pointer argument in the walk.

    `elements` is the largest extent of the views made from it, `shapes` the shapes of those views, `padded` the
    number of elements with every row filled to its stride; `touched` ends with the last element that the scalar unit
    reads or writes; `needs_input` is True if it is loaded before any store.
    """

    format: Format
    elements: int = 0
    padded: set[int] = field(default_factory=set)
    shapes: set[tuple[int, ...]] = field(default_factory=set)
    axes: set[tuple[tuple[int, int], ...]] = field(default_factory=set)
    """Extents and strides in elements of the views, largest stride first, without axes of one element."""
    contiguous: bool = True
    needs_input: bool = False
    stored: bool = False
    span: Span | None = None
    """The location of the view with the largest extent."""
    viewed: int = 0
    touched: int = 0
    touched_at: Span | None = None
    follows_reads: bool = False
    """Whether the extents of a view depend on elements that the program reads: other values, other extents."""

    def see_view(
        self, shape: tuple[int, ...], strides: tuple[int, ...], span: Span | None = None, offset: int = 0
    ) -> None:
        """Widen the argument to contain one more view, created at `span`, that begins with element `offset`."""
        self.shapes.add(shape)
        if 0 in shape:
            return
        axes = ((size, step) for size, step in zip(shape, strides, strict=True) if size > 1)
        self.axes.add(tuple(sorted(axes, key=lambda axis: axis[1], reverse=True)))
        need = 1 + offset + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
        self.viewed = max(self.viewed, need)
        if need > self.elements:
            self.elements, self.span = need, span
        self.padded.add(offset + shape[0] * strides[0])
        self.contiguous &= offset == 0
        total = 1
        for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
            self.contiguous &= stride == total or extent == 1
            total *= extent

    def see_element(self, index: int, span: Span) -> None:
        """Widen the argument to contain an element that the scalar unit reads or writes."""
        if index >= self.touched:
            self.touched, self.touched_at = index + 1, span
        if index >= self.elements:
            self.elements, self.span = index + 1, span

    @property
    def is_open(self) -> bool:
        """Whether the tensor may have more elements than this run uses of it."""
        return bool(self.touched) or self.follows_reads

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array that a user gets: the view's if all views are the same dense one, else flat."""
        in_view = not self.is_open or self.touched <= self.viewed == self.elements
        if len(self.shapes) == 1 and self.contiguous and in_view:
            return next(iter(self.shapes))
        return (self.elements,)


# Reading `.npy` files: the header is checked against a grammar and the file's size before NumPy maps the elements.
#
# NumPy evaluates the header as Python and trusts what it says of elements and extents. A file from elsewhere may nest
# it without end, name elements of no bytes or more of them than any file holds. Format: NEP 1, numpy.lib.format.

MAX_HEADER_BYTES = 10_000
"""Maximum length of a header; NumPy has the same limit, unless a file is trusted."""

ARRAY_MAGIC = b"\x93NUMPY"
"""The first bytes of an array in a file."""

_ARCHIVE = b"PK\x03\x04"
_LENGTHS = {1: "<H", 2: "<I", 3: "<I"}
"""The storage of the header's length, by version of the format."""

_PAIR = (
    r"""['"](?:descr['"]\s*:\s*['"][^'"]*['"]|fortran_order['"]\s*:\s*(?:True|False)|shape['"]\s*:\s*\([\dL,\s]*\))"""
)
_HEADER = re.compile(rf"\s*\{{\s*{_PAIR}\s*,\s*{_PAIR}\s*,\s*{_PAIR}\s*,?\s*\}}\s*", re.ASCII)
_DESCRIPTION = re.compile(r"""['"]descr['"]\s*:\s*['"]([^'"]*)['"]""")
_ORDER = re.compile(r"""['"]fortran_order['"]\s*:\s*(True|False)""")
_SHAPE = re.compile(r"""['"]shape['"]\s*:\s*\(([\dL,\s]*)\)""", re.ASCII)
_EXTENTS = re.compile(r"\s*(?:\d+L?\s*(?:,\s*\d+L?\s*)*,?\s*)?", re.ASCII)
_ELEMENT = re.compile(r"[<>|=]?[A-Za-z?][0-9]{0,6}", re.ASCII)
_LONGEST_EXTENT = 18
_OBJECTS = re.compile(r"""['"]descr['"]\s*:\s*(?:\[.*)?['"][<>|=]?O""", re.DOTALL)


class _FormError(Exception):
    """An error in a file; the text continues after the file's name."""


def read_array(path: Path, name: str) -> Codes:
    """Return the array of a `.npy` file, read-only; its elements are mapped into memory, not read. `name` is the input.

    Raises:
        ReadError: the file is missing, unreadable, pickled, an archive, irregular, or an incomplete `.npy` file.
    """
    try:
        with path.open("rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _FormError(
                    "is not a regular file: elements are mapped into memory, and pipes and devices cannot be"
                )
            dtype, shape, fortran = _header(file)
            return _mapped(path, file, dtype, shape, "F" if fortran else "C")
    except FileNotFoundError:
        legal = ("FILE.npy", "random:SEED", "zeros")
        raise ReadError(f"input '{name}': file '{path}' does not exist", legal=legal) from None
    except _FormError as error:
        reason = str(error)
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
    except ValueError as error:  # a name that no file can have, more extents than NumPy has
        reason = f"cannot be read: {error}"
    raise ReadError(f"input '{name}': '{path}' {reason}", legal=("a .npy file of numbers",))


def _header(file: BinaryIO) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """Read up to the first element; return the dtype, the extents, and whether the first of them is the fastest."""
    start = file.read(8)
    if start.startswith(_ARCHIVE):
        raise _FormError("is an archive; give a single array")
    if not start.startswith(ARRAY_MAGIC) or len(start) < 8 or start[6] not in _LENGTHS:
        raise _FormError("is not a .npy file, or is incomplete")
    form = _LENGTHS[start[6]]
    counted = file.read(struct.calcsize(form))
    length = struct.unpack(form, counted)[0] if len(counted) == struct.calcsize(form) else 0
    if length > MAX_HEADER_BYTES:
        raise _FormError(f"has a header of {length} bytes; up to {MAX_HEADER_BYTES} are read")
    raw = file.read(length)
    if len(raw) < length or not raw:
        raise _FormError("is not a .npy file, or is incomplete: it ends within its header")
    text = raw.decode("utf-8" if start[6] == 3 else "latin-1", "replace")
    return _parsed(text)


def _parsed(text: str) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    if _OBJECTS.search(text):
        raise _FormError("holds pickled objects")
    matches = [pattern.findall(text) for pattern in (_DESCRIPTION, _ORDER, _SHAPE)]
    if not _HEADER.fullmatch(text) or any(len(matches_of_field) != 1 for matches_of_field in matches):
        raise _FormError("is not a .npy file of numbers: its header does not name one dtype, order and shape")
    (description,), (order,), (extents,) = matches
    if not _EXTENTS.fullmatch(extents):
        raise _FormError("is not a .npy file: its shape cannot be read")
    numbers = [number.strip().removesuffix("L") for number in extents.split(",") if number.strip()]
    if any(len(number) > _LONGEST_EXTENT for number in numbers):
        raise _FormError("is truncated: an extent is larger than any file")
    return _dtype(description), tuple(map(int, numbers)), order == "True"


def _dtype(description: str) -> np.dtype[Any]:
    try:
        dtype = np.dtype(description) if _ELEMENT.fullmatch(description) else None
    except (TypeError, ValueError):
        dtype = None
    if dtype is None or dtype.hasobject or dtype.itemsize == 0:
        raise _FormError(f"holds elements of dtype '{description[:40]}', whose elements are not numbers")
    return dtype


def _mapped(path: Path, file: BinaryIO, dtype: np.dtype[Any], shape: tuple[int, ...], order: str) -> Codes:
    needed, there = math.prod(shape) * dtype.itemsize, os.fstat(file.fileno()).st_size - file.tell()
    if needed > there:
        raise _FormError(f"is truncated: its header announces {needed} bytes of elements, but the file has {there}")
    if needed == 0:  # no byte can be mapped
        return np.zeros(shape, dtype)
    return np.memmap(path, dtype, "r", file.tell(), shape, "F" if order == "F" else "C")


def digest(array: Codes) -> str:
    """Return the SHA-256 of an array's elements in C order, little-endian; for text, of its code points."""
    import hashlib  # noqa: PLC0415 - only results have digests

    plain = np.ascontiguousarray(array)
    if plain.dtype.kind == "U":
        return hashlib.sha256(plain.astype(plain.dtype.newbyteorder("<"), copy=False).tobytes()).hexdigest()
    codes = plain.view(f"u{plain.dtype.itemsize}") if plain.ndim else plain.reshape(1).view(f"u{plain.dtype.itemsize}")
    return hashlib.sha256(codes.astype(codes.dtype.newbyteorder("<"), copy=False).tobytes()).hexdigest()


RANDOM_LIMIT = 100.0
"""Random floats are uniform in [-RANDOM_LIMIT, RANDOM_LIMIT)."""

_DRAWN_AT_ONCE = 1 << 18
"""Elements: 2 MiB of f64."""

SEED_DIGITS = 40
"""Maximum number of decimal digits of a seed: 128 bits, the entropy of NumPy's generator."""


def make_inputs(specifications: Mapping[str, str], uses: Mapping[str, ArgumentUse]) -> dict[str, Codes]:
    """Resolve `NAME=file.npy`, `random:SEED` and `zeros` into arrays; one random generator per seed, in order.

    Raises:
        ReadError: an argument name is unknown, a seed is invalid, or a file is unreadable.
    """
    arrays: dict[str, Codes] = {}
    generators: dict[int, np.random.Generator] = {}
    for name in specifications:
        check_known(name, uses)
    for name, use in uses.items():
        text = specifications.get(name)
        if text is None:
            continue
        if text == "zeros":
            arrays[name] = array_from_codes(np.zeros(use.shape, code_dtype(use.format)), use.format)
        elif text.startswith("random:"):
            seed = seed_of(name, text)
            generator = generators.setdefault(seed, np.random.default_rng(seed))
            arrays[name] = array_from_codes(random_codes(generator, use.format, use.shape), use.format)
        else:
            arrays[name] = read_input(text, name)
    return arrays


FLAT = "flat:"
"""Prefix of a file: its elements in C order, whatever shape they have in it."""


def read_input(text: str, name: str) -> Codes:
    """Read the file that an input names, neither `zeros` nor `random:SEED`; `flat:FILE` flattens its array.

    Raises:
        ReadError: see `read_array`; or the word random without a seed.
    """
    if text == "random" and not Path(text).exists():
        raise ReadError(f"input '{name}': random needs a seed", legal=(f"--in {name}=random:0",))
    if text.startswith(FLAT):
        return read_array(Path(text.removeprefix(FLAT)), name).reshape(-1)
    return read_array(Path(text), name)


def arrayed(array: Codes) -> str:
    """Return dtype and shape of an array in a word, for the short forms of results."""
    return f"{array.dtype}{list(array.shape)}"


def check_known(name: str, uses: Mapping[str, ArgumentUse]) -> None:
    """Reject a name that is not a tensor argument."""
    if name not in uses:
        raise ReadError(f"the program has no tensor argument '{name}'", legal=uses)


def random_codes(generator: np.random.Generator, fmt: Format, shape: tuple[int, ...]) -> Codes:
    """Return random codes: integers over their whole range, floats uniform in [-100, 100) rounded to the format.

    They are drawn piece by piece: a float is drawn as f64, and a whole view of 4-bit codes would take 16 times the
    memory. The numbers do not depend on the pieces.
    """
    drawn = np.empty(shape, code_dtype(fmt))
    flat = drawn.reshape(-1)
    for start in range(0, flat.size, _DRAWN_AT_ONCE):
        piece = flat[start : start + _DRAWN_AT_ONCE]
        piece[...] = _drawn(generator, fmt, piece.size)
    return drawn


def _drawn(generator: np.random.Generator, fmt: Format, count: int) -> Codes:
    if isinstance(fmt, IntFormat):
        values: Codes = generator.integers(
            fmt.minimum, fmt.maximum, count, dtype=np.int64 if fmt.signed else np.uint64, endpoint=True
        )
        mask = (1 << code_bits(fmt)) - 1
        return (values.astype(np.uint64) & np.uint64(mask)).astype(code_dtype(fmt))
    wide = format_named("f64")
    uniform = generator.uniform(-RANDOM_LIMIT, RANDOM_LIMIT, count)
    return cast_codes(uniform.view("<u8"), wide, fmt, abstract_policy(wide, fmt))


def to_memory(array: Codes, name: str, use: ArgumentUse) -> NDArray[np.uint8]:
    """Return the bytes of one argument's buffer, filled from `array` in C order.

    Raises:
        ReadError: the dtype is neither the format's own nor that of its codes, or the shape fits no view.
    """
    array = np.asarray(array)
    sizes = {use.elements} | {size for size in use.padded if size >= use.elements}
    _check_elements(array, name, use, sizes)
    _check_shape(array.shape, name, use)
    return input_bytes(array, name, use.format)


def without_ones(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape without its axes of one element, which do not affect the order of elements."""
    return tuple(extent for extent in shape if extent != 1)


def same_elements(given: Sequence[int], expected: Sequence[int]) -> bool:
    """Return whether an array has the elements in order: flat, or with the expected axes except those of size
    1."""
    plain, wanted = without_ones(given), without_ones(expected)
    return plain == wanted or (len(plain) < 2 and math.prod(plain) == math.prod(wanted))


def _check_shape(shape: tuple[int, ...], name: str, use: ArgumentUse) -> None:
    """Reject an array whose element order differs from that of the views; a flat one has no order.

    Raises:
        ReadError: it has other axes; the message names the shapes that the program expects.
    """
    given = without_ones(shape)
    steps = {math.prod(given[axis + 1 :]): extent for axis, extent in enumerate(given)}
    views = use.axes or {_dense_axes(expected_shape) for expected_shape in use.shapes}
    if len(given) < 2 or not views or any(all(size <= steps.get(step, 0) for size, step in axes) for axes in views):
        return
    expected = {_memory_shape(axes, math.prod(shape)) for axes in views} if use.axes else use.shapes
    legal = [
        f"shape {list(expected_shape)}"
        for expected_shape in sorted(
            filter(None, expected), key=lambda expected_shape: (-len(expected_shape), expected_shape)
        )
    ]
    raise ReadError(
        f"input '{name}' has shape {list(shape)}, the program expects {legal[0] if legal else 'another'}; in C order "
        "the elements would end up in wrong positions",
        legal=(*legal[:3], f"--in {name}={FLAT}FILE.npy takes a file's elements in its own order"),
    )


def _dense_axes(shape: Sequence[int]) -> tuple[tuple[int, int], ...]:
    plain = without_ones(shape)
    return tuple((extent, math.prod(plain[axis + 1 :])) for axis, extent in enumerate(plain))


def _memory_shape(axes: Sequence[tuple[int, int]], elements: int) -> tuple[int, ...] | None:
    """Return the C-order shape of an array in which a view has these strides; None if no array has them."""
    outer, shape = elements, []
    for _, step in axes:
        if step == 0 or outer % step:
            return None
        shape.append(outer // step)
        outer = step
    return (*shape, *((outer,) if outer > 1 else ()))


def input_bytes(array: Codes, name: str, fmt: Format) -> NDArray[np.uint8]:
    """Return the bytes of an input in C order, whatever its size.

    Raises:
        ReadError: the dtype is neither the format's own nor that of its codes.
    """
    try:
        codes = codes_from_array(np.asarray(array), fmt)
    except ReadError as error:
        raise ReadError(f"input '{name}': {error.message}", legal=error.legal) from None
    return _bytes_of(codes.reshape(-1), fmt)


def _check_elements(array: Codes, name: str, use: ArgumentUse, sizes: set[int]) -> None:
    """Before anything is read, as the file of a mapped array may be of any size."""
    if array.size in sizes or (use.is_open and array.size >= use.elements):
        return
    wanted = " or ".join(str(size) for size in sorted(sizes))
    shapes = ", ".join("x".join(map(str, shape)) for shape in sorted(use.shapes))
    who = f"its views ({shapes}) need {wanted}"
    if use.is_open:
        who = f"the program uses {use.elements} or more"
    raise ReadError(f"input '{name}' has shape {list(array.shape)}, {array.size} elements; {who}")


def empty_memory(use: ArgumentUse) -> NDArray[np.uint8]:
    """Return a zeroed buffer for one argument."""
    return _bytes_of(np.zeros(use.elements, code_dtype(use.format)), use.format)


def from_memory(memory: NDArray[np.uint8], use: ArgumentUse) -> Codes:
    """Return one argument as an array of its native dtype, or of codes if there is none."""
    fmt = use.format
    if fmt.bits in (2, 4):
        codes: Codes = unpack_codes(memory, fmt, memory.size * 8 // fmt.bits)
    else:
        codes = memory.view(code_dtype(fmt))
    if use.is_open and codes.size > use.elements:
        return array_from_codes(codes, fmt)
    codes = codes[: use.elements] if use.elements <= codes.size else codes
    return array_from_codes(codes.reshape(use.shape), fmt)


def write_array(path: Path, array: Codes) -> None:
    """Write one `.npy` file atomically: the file is complete or absent.

    Raises:
        ReadError: the folder cannot be written.
    """
    native = array.dtype.kind == "U" or (array.dtype.kind in "fiub" and array.dtype.isbuiltin == 1)
    plain = array if native else array.view(f"<u{array.dtype.itemsize}")
    from castsim.files import whole_file  # noqa: PLC0415 - few runs write arrays

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            np.save(file, plain, allow_pickle=False)
    except OSError as error:
        raise ReadError(f"cannot write '{path}': {error.strerror or error}") from None


def seed_of(name: str, text: str) -> int:
    """Return the seed of `random:SEED`, given for an input.

    Raises:
        ReadError: it is not a number, or too long.
    """
    digits = text.removeprefix("random:")
    if not digits.isdecimal() or len(digits) > SEED_DIGITS:
        raise ReadError(
            f"input '{name}': '{text[:40]}' has no seed of 1 to {SEED_DIGITS} digits",
            legal=("random:0", "random:12345"),
        )
    return int(digits)


def _bytes_of(codes: Codes, fmt: Format) -> NDArray[np.uint8]:
    """Return the bytes of flat codes as memory holds them."""
    if fmt.bits in (2, 4):
        return pack_codes(codes, fmt)
    return np.array(codes, code_dtype(fmt).newbyteorder("<"), copy=True).view(np.uint8)


# Global memory of a tile program as its inputs fill it.


def check_elements(uses: Mapping[str, ArgumentUse], most: int) -> None:
    """Reject arguments that need more memory than a simulation should use, before any of it is allocated.

    Raises:
        LimitError: an argument has more than `most` elements; the error has the position of the view that needs them.
    """
    for name, use in uses.items():
        if use.elements > most:
            raise LimitError(
                f"argument '{name}' has {use.elements} elements, over the limit of {most}",
                span=use.span,
                legal=(f"--max-elements {use.elements}", "--timing-only"),
            )


def filled_memory(uses: Mapping[str, ArgumentUse], inputs: Mapping[str, Codes | str]) -> dict[str, NDArray[np.uint8]]:
    """Return the bytes of every argument, filled from the inputs.

    Raises:
        ReadError: a name is unknown, an input is missing, or an array does not fit.
    """
    for name in inputs:
        check_known(name, uses)
    missing = [name for name, use in uses.items() if use.needs_input and name not in inputs]
    if missing:
        raise ReadError(
            f"the program loads {', '.join(f'%{name}' for name in missing)} before storing to it; no input was given",
            legal=[f"--in {name}=FILE.npy|random:SEED|zeros" for name in missing],
        )
    named = {name: text for name, text in inputs.items() if isinstance(text, str)}
    arrays = {
        **{name: array for name, array in inputs.items() if not isinstance(array, str)},
        **make_inputs(named, uses),
    }
    return {
        name: to_memory(arrays[name], name, use) if name in arrays else empty_memory(use) for name, use in uses.items()
    }


# Which target, function, assembler version and back end of a `.pto` program are run.

DEFAULT_ARCHITECTURE = "a3"
"""The architecture of a `.pto` file without a target attribute (docs/reference/pto.md section 3.2)."""

_MOST_SHOWN = 12  # functions that an error lists
_LISTED = 1000  # functions that a misspelt name is compared with, and characters of it


def choose_target(architecture: str | None, given: str | Path | Target | None, location: Span | None = None) -> Target:
    """Return the given target, otherwise the one that a `.pto` program requests, at `location` of its text.

    Raises:
        ReadError, TargetDataError: it cannot be read, or no shipped target has the name in the program.
    """
    if isinstance(given, str | Path):
        return load_target(given)
    if given is not None:
        return given
    chosen = target_for_architecture(architecture or DEFAULT_ARCHITECTURE)
    if chosen is None:
        raise ReadError(
            f"the program is for '{architecture}', which castsim does not simulate; choose a target with --target",
            span=location,
            legal=tuple(
                name
                for target in map(load_target, target_names())
                if "pto" in target.languages
                for name in target.architectures
            ),
        )
    return chosen


def choose_entry(parsed: pto.Program, path: Path, entry: str | None) -> tuple[pto.Function, Warnings]:
    """Return the function to run, and warnings about unreadable functions that were not requested.

    Raises:
        ReadError: there is no such function, or more than one.
        CastsimError: the requested function could not be read or, without a name, one that might have been meant.
    """
    functions = {function.name: function for function in parsed.functions if function.body is not None}
    candidates = entries(parsed)
    if entry is not None:
        name = entry.removeprefix("@")
        for refusal in parsed.refused:
            if refusal.name == name:
                raise refusal.error
        if name not in functions:
            names = [*functions, *(one.name for one in parsed.refused)]
            from difflib import get_close_matches  # noqa: PLC0415 - only a refusal needs it

            near = get_close_matches(name[:_LISTED], names[:_LISTED], 3) or names
            raise ReadError(f"{path}: no function @{name}", legal=_shown(near))
        return functions[name], ()
    if parsed.refused and (
        len(candidates) != 1
        or (not any(function.is_entry for function in candidates) and any(one.is_entry for one in parsed.refused))
    ):
        raise parsed.refused[0].error
    if len(candidates) != 1:
        if not candidates:
            raise ReadError(f"{path}: no function to run", legal=("func.func @NAME(...) { ... }",))
        what = f"{len(candidates)} functions to run; choose one with --entry"
        raise ReadError(f"{path}: {what}", legal=_shown([f.name for f in candidates]))
    return candidates[0], tuple(
        WarningText(
            WarningKind.LEFT_OUT,
            f"function @{one.name} is skipped, because castsim cannot read it: {one.error.message}",
            str(one.error.span),
        )
        for one in parsed.refused
    )


def entries(parsed: pto.Program) -> list[pto.Function]:
    """Return the functions that can be run without a name.

    These are the marked entries; without any, the functions that are never called, preferably those marked for a core.
    """
    from castsim.isa.pto.pto_parser import calls  # noqa: PLC0415 - casts of numbers need only the options below

    functions = [function for function in parsed.functions if function.body is not None]
    marked = [function for function in functions if function.is_entry]
    called = {call.callee for function in functions for call in calls(function.body or ())}
    free = [function for function in functions if function.name not in called]
    return marked or [function for function in free if function.is_for_core] or free


def _shown(names: Sequence[str]) -> list[str]:
    """Return the function names that an error lists: the first ones of many."""
    more = len(names) - _MOST_SHOWN
    return [*(f"@{name}" for name in names[:_MOST_SHOWN]), *([f"and {more} more"] if more > 0 else [])]


# Choices that decide what a program computes and that its text leaves open: versions of the assembler, back ends.

TOOLCHAIN = "toolchain"
"""The option that names the assembler of a program."""

OLDEST = "older"
"""The toolchain that adds nothing itself."""

PASS_OFF = ("2026-05", "2026-07")
"""Toolchains that pass saturation OFF to the library if tcvt names none (docs/reference/pto.md section 1.2)."""

PASS_ON = ("2026-08",)
"""Toolchains that pass ON, but OFF for f16 -> bf16 and bf16 -> f16 (docs/reference/pto.md section 1.2)."""

MAKE_SCRATCH = ("2026-07", "2026-08")
"""Toolchains that give operations the tmp tiles that they need (docs/reference/pto.md section 1.3)."""

IMPLICIT_TMP = "implicit tmp "
"""Prefix of the names of such tiles, which no text can spell."""

BACKEND = "backend"
"""The option that chooses between the C++ library and the micro back end for casts."""

MICRO = "vpto"
"""The back end whose instructions carry their own saturation (docs/reference/a5.md section 4.2)."""


@dataclass(frozen=True, slots=True)
class ProgramChoice:
    """An option that decides something in a program: its value, and its consequences with their positions."""

    option: str
    value: str
    effect: str
