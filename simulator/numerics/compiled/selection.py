"""The choice of the compiled loop for a cast, and running it over arrays. Importing this module imports numba."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from numba import types

from castsim.files import kept_code
from castsim.isa.codes import Codes
from castsim.isa.formats import Format, TaperedFormat
from castsim.isa.modes import Rounding
from castsim.numerics import rounding
from castsim.numerics.blocks import code_dtype
from castsim.numerics.compiled import fields, kernels, shortcuts, steps, words
from castsim.numerics.compiled.fields import FormatFamily, family_of, fields_of, tables_of, word_bits
from castsim.numerics.compiled.hint import hint
from castsim.numerics.policy import Policy
from castsim.numerics.tables import LookupTable, table_of, table_size

_settings: Any = numba.config
if _settings.DISABLE_JIT:
    raise ImportError("it is told not to compile, by NUMBA_DISABLE_JIT")


@cache
def source_stamp() -> int:
    """Return a hash of all sources that decide what kernels compute."""
    digest = hashlib.sha256()
    for module in (rounding, fields, kernels, shortcuts, steps, words):
        assert module.__file__ is not None
        digest.update(Path(module.__file__).read_bytes())
    return int.from_bytes(digest.digest()[:7], "big")


@cache
def has_half_conversion() -> bool:
    """Whether the processor converts between f16 and f32; elsewhere a slow library routine would."""
    features = llvm.get_host_cpu_features()
    return bool(features.get("f16c")) or llvm.get_process_triple().startswith(("aarch64", "arm64"))


def compiled(make: Callable[[], Any], signature: Any) -> Callable[..., None]:
    """Return the machine code of the loop that `make` returns, from the disk where it is there."""
    loop, is_kept = kept_code.compiled(make(), signature, nogil=True)
    if not is_kept:
        hint(
            "compiled casts cannot be kept on disk and are compiled anew; set NUMBA_CACHE_DIR to a folder that "
            "only you can write to"
        )
    found: Callable[..., None] = loop
    return found


def signature(codes: np.dtype[Any], results: np.dtype[Any], extra: np.dtype[Any], parameters: np.dtype[Any]) -> Any:
    """Return the types of a loop over contiguous arrays of these dtypes, of which only the results are written."""
    read = [types.Array(numba.from_dtype(dtype), 1, "C", readonly=True) for dtype in (codes, extra, parameters)]
    return types.void(read[0], types.Array(numba.from_dtype(results), 1, "C"), read[1], read[2])


_LARGEST_TABLE = 1 << 16
"""Entries of a table that second-level caches hold; larger ones lose against computing."""

_NO_WORDS = np.zeros(1, np.uint32)
_NO_FIELDS = np.zeros(1, np.uint32)


@dataclass(frozen=True, slots=True)
class CompiledLoop:
    """Machine code for one cast: `run(codes, results, words, fields)` over contiguous native arrays."""

    code: Callable[..., None]
    words: Codes
    fields: Codes

    def run(self, results: Codes, codes: Codes, words: Codes | None = None) -> None:
        """Convert one block; `words` are the random ones of a stochastic cast."""
        self.code(codes, results, self.words if words is None else words, self.fields)


@lru_cache(maxsize=256)
def fastest_loop(src: Format, dst: Format, policy: Policy) -> CompiledLoop:
    """Return the fastest loop for a cast that `check_policy` accepts."""
    word = np.dtype(f"u{word_bits(src, dst, policy) // 8}")
    if shortcuts.takes_low_bits(src, dst, policy):
        p = fields_of(src, dst, policy)
        model = word.type(0)
        return _loop(src, dst, lambda stamp: shortcuts.low_bits_kernel(p, model.itemsize * 8, model, stamp))
    loop = _single_precision_loop(src, dst, policy)
    if loop is not None:
        return loop
    size = table_size(src, dst, policy)
    if size is not None and size <= _LARGEST_TABLE and (src.storage_bits <= 16 or isinstance(dst, TaperedFormat)):
        table = table_of(src, dst, policy)
        assert table is not None
        return _lookup_loop(src, dst, table)
    return _single_loop(src, dst, policy)


def _dtypes(src: Format, dst: Format) -> tuple[np.dtype[Any], np.dtype[Any]]:
    return code_dtype(src), code_dtype(dst)


def _loop(src: Format, dst: Format, make: Callable[[int], Any]) -> CompiledLoop:
    """Compile a loop whose numbers are all constants of its code."""
    types = signature(*_dtypes(src, dst), _NO_WORDS.dtype, _NO_FIELDS.dtype)
    return CompiledLoop(compiled(lambda: make(source_stamp()), types), _NO_WORDS, _NO_FIELDS)


def _single_precision_loop(src: Format, dst: Format, policy: Policy) -> CompiledLoop | None:
    inward, outward = shortcuts.path_to_f32(src, dst), shortcuts.path_from_f32(dst, policy)
    if inward is None or outward is None or policy.flush_source:
        return None
    if shortcuts.F32Path.HALF in (inward, outward) and not has_half_conversion():
        return None
    paths = int(inward), int(outward), shortcuts.TO_INTEGRAL.get(policy.rounding, 0)
    p, (largest, beyond) = fields_of(src, dst, policy), shortcuts.constants(dst)
    modes = {policy.rounding, policy.subnormal_rounding or policy.rounding}
    if shortcuts.rounds_to_f32(src) and modes != {Rounding.RINT}:
        return None
    if inward is shortcuts.F32Path.DOUBLE:
        if p.saturates or not shortcuts.is_natural(p):
            return None  # infinities that overflow made cannot be told from the source's
        return _loop(src, dst, lambda stamp: shortcuts.double_precision_kernel(p, np.uint64(0), stamp))
    return _loop(
        src,
        dst,
        lambda stamp: shortcuts.single_precision_kernel(*paths, p, largest, beyond, np.uint32(0), stamp),
    )


@lru_cache(maxsize=32)
def _lookup_code(codes: np.dtype[Any], results: np.dtype[Any], shortened: bool) -> Callable[..., None]:
    model = np.uint64(0) if codes.itemsize > 4 else np.uint32(0)
    types = signature(codes, results, results, _NO_FIELDS.dtype)
    return compiled(lambda: kernels.lookup_kernel(shortened, model, source_stamp()), types)


def _lookup_loop(src: Format, dst: Format, table: LookupTable) -> CompiledLoop:
    code = _lookup_code(*_dtypes(src, dst), table.dropped_bits > 0)
    return CompiledLoop(code, table.entries, np.array([table.dropped_bits], np.uint32))


def _family(src: Format, dst: Format, policy: Policy) -> tuple[int, int, int, bool]:
    source = family_of(src)
    source = FormatFamily.FLOAT if source is FormatFamily.POWER else source
    draws = policy.rounding is Rounding.STOCHASTIC
    return int(source), int(family_of(dst)), word_bits(src, dst, policy), draws


def _single_loop(src: Format, dst: Format, policy: Policy) -> CompiledLoop:
    family = _family(src, dst, policy)
    bits = family[2]
    p, tables, model = fields_of(src, dst, policy), tables_of(src, dst, bits), np.dtype(f"u{bits // 8}").type(0)
    return _loop(src, dst, lambda stamp: kernels.single_kernel(*family, tables, p, model, stamp))


@lru_cache(maxsize=64)
def _family_code(
    family: tuple[int, int, int, bool],
    dtypes: tuple[np.dtype[Any], np.dtype[Any]],
    tapered: tuple[Format | None, Format | None],
) -> Callable[..., None]:
    bits = family[2]
    types = signature(*dtypes, _NO_WORDS.dtype, np.dtype(f"u{bits // 8}"))
    tables = tables_of(*tapered, bits)
    return compiled(lambda: kernels.family_kernel(*family, tables, source_stamp()), types)


@lru_cache(maxsize=256)
def generic_loop(src: Format, dst: Format, policy: Policy) -> CompiledLoop:
    """Return the loop that serves all casts of a family and takes formats and policy at run time."""
    family = _family(src, dst, policy)
    tapered = tuple(fmt if isinstance(fmt, TaperedFormat) else None for fmt in (src, dst))
    code = _family_code(family, _dtypes(src, dst), (tapered[0], tapered[1]))
    fields = np.array(fields_of(src, dst, policy), dtype=object).astype(np.dtype(f"u{family[2] // 8}"))
    return CompiledLoop(code, _NO_WORDS, fields)
