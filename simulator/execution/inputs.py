"""Arrays in and out: `.npy` files, random and zero inputs, and their bytes in global memory.

Formats without a native dtype are unsigned codes, one element per byte or wider storage unit; 4-bit formats are packed
low nibble first when they enter memory (design: program inputs and outputs).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from castsim.execution.interpreter import ArgumentUse
from castsim.execution.npy import read_array
from castsim.files import whole_file
from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError
from castsim.isa.formats import Format, IntFormat, format_named
from castsim.numerics import (
    abstract_policy,
    array_from_codes,
    cast_codes,
    code_dtype,
    codes_from_array,
    pack_codes,
    unpack_codes,
)
from castsim.numerics.unpack import code_bits

RANDOM_LIMIT = 100.0
"""Random floats are uniform in [-RANDOM_LIMIT, RANDOM_LIMIT)."""

_DRAWN_AT_ONCE = 1 << 18
"""Elements: 2 MiB of f64."""

SEED_DIGITS = 40
"""Decimal digits of a seed: 128 bits, as much entropy as NumPy's generator takes."""


def make_inputs(specifications: Mapping[str, str], uses: Mapping[str, ArgumentUse]) -> dict[str, Codes]:
    """Resolve `NAME=file.npy`, `random:SEED` and `zeros` into arrays; one random generator per seed, in order.

    Raises:
        ReadError: unknown argument name, bad seed, unreadable file.
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


def read_input(text: str, name: str) -> Codes:
    """Read the file that an input names, neither `zeros` nor `random:SEED`.

    Raises:
        ReadError: as `read_array`; the word random without a seed.
    """
    if text == "random" and not Path(text).exists():
        raise ReadError(f"input '{name}': random needs a seed", legal=(f"--in {name}=random:0",))
    return read_array(Path(text), name)


def arrayed(array: Codes) -> str:
    """Return dtype and shape of an array in a word, for the short forms of results."""
    return f"{array.dtype}{list(array.shape)}"


def check_known(name: str, uses: Mapping[str, ArgumentUse]) -> None:
    """Refuse a name that is no tensor argument."""
    if name not in uses:
        raise ReadError(f"the program has no tensor argument '{name}'", legal=uses)


def random_codes(generator: np.random.Generator, fmt: Format, shape: tuple[int, ...]) -> Codes:
    """Return random codes: integers over their whole range, floats uniform in [-100, 100) rounded to the format.

    They are drawn piece by piece: a float is drawn as f64, of which a whole view of 4-bit codes would take 16 times
    the memory. The numbers do not depend on the pieces.
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
        ReadError: a dtype that is neither the format's own nor its codes, or a number of elements that fits no view.
    """
    array = np.asarray(array)
    sizes = {use.elements} | {size for size in use.padded if size >= use.elements}
    _check_elements(array, name, use, sizes)
    return input_bytes(array, name, use.format)


def input_bytes(array: Codes, name: str, fmt: Format) -> NDArray[np.uint8]:
    """Return the bytes of an input in C order, whatever its size.

    Raises:
        ReadError: a dtype that is neither the format's own nor its codes.
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
    """Return one argument as an array of its native dtype, or of codes where there is none."""
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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            np.save(file, plain, allow_pickle=False)
    except OSError as error:
        raise ReadError(f"cannot write '{path}': {error.strerror or error}") from None


def seed_of(name: str, text: str) -> int:
    """Return the seed of `random:SEED`, given for an input.

    Raises:
        ReadError: it is no number, or too long.
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
