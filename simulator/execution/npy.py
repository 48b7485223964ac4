"""Reading `.npy` files: the header is checked against a grammar and the file's size before NumPy maps the elements.

NumPy evaluates the header as Python and trusts what it says of elements and extents. A file from elsewhere may nest it
without end, name elements of no bytes or more of them than any file holds. Format: NEP 1, numpy.lib.format.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import stat
import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError

MAX_HEADER_BYTES = 10_000
"""Longest header that is read; NumPy stops at as many characters too, unless a file is trusted."""

_MAGIC = b"\x93NUMPY"
_ARCHIVE = b"PK\x03\x04"
_LENGTHS = {1: "<H", 2: "<I", 3: "<I"}
"""How the length of the header is stored, by version of the format."""

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
    """What is wrong with a file, in words that follow its name."""


def read_array(path: Path, name: str) -> Codes:
    """Return the array of a `.npy` file, read-only; its elements are mapped into memory, not read. `name` is the input.

    Raises:
        ReadError: the file is missing, unreadable, pickled, an archive, no regular or no whole `.npy` file.
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
        raise _FormError("is an archive; give one array")
    if not start.startswith(_MAGIC) or len(start) < 8 or start[6] not in _LENGTHS:
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
    found = [pattern.findall(text) for pattern in (_DESCRIPTION, _ORDER, _SHAPE)]
    if not _HEADER.fullmatch(text) or any(len(each) != 1 for each in found):
        raise _FormError("is not a .npy file of numbers: its header does not name one dtype, order and shape")
    (description,), (order,), (extents,) = found
    if not _EXTENTS.fullmatch(extents):
        raise _FormError("is not a .npy file: its shape cannot be read")
    numbers = [number.strip().removesuffix("L") for number in extents.split(",") if number.strip()]
    if any(len(number) > _LONGEST_EXTENT for number in numbers):
        raise _FormError("is not a complete .npy file: an extent is larger than any file")
    return _dtype(description), tuple(map(int, numbers)), order == "True"


def _dtype(description: str) -> np.dtype[Any]:
    try:
        found = np.dtype(description) if _ELEMENT.fullmatch(description) else None
    except (TypeError, ValueError):
        found = None
    if found is None or found.hasobject or found.itemsize == 0:
        raise _FormError(f"holds elements of dtype '{description[:40]}', which are not numbers")
    return found


def _mapped(path: Path, file: BinaryIO, dtype: np.dtype[Any], shape: tuple[int, ...], order: str) -> Codes:
    needed, there = math.prod(shape) * dtype.itemsize, os.fstat(file.fileno()).st_size - file.tell()
    if needed > there:
        raise _FormError(
            f"is not a complete .npy file: its header announces {needed} bytes of elements, {there} are there"
        )
    if needed == 0:  # no byte can be mapped
        return np.zeros(shape, dtype)
    return np.memmap(path, dtype, "r", file.tell(), shape, "F" if order == "F" else "C")


def digest(array: Codes) -> str:
    """Return the SHA-256 of an array's elements in C order, little-endian; of texts that of their code points."""
    plain = np.ascontiguousarray(array)
    if plain.dtype.kind == "U":
        return hashlib.sha256(plain.astype(plain.dtype.newbyteorder("<"), copy=False).tobytes()).hexdigest()
    codes = plain.view(f"u{plain.dtype.itemsize}") if plain.ndim else plain.reshape(1).view(f"u{plain.dtype.itemsize}")
    return hashlib.sha256(codes.astype(codes.dtype.newbyteorder("<"), copy=False).tobytes()).hexdigest()
