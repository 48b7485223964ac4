"""Conversion of arrays between number formats, by the abstract cast or like a chip."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from castsim.isa.errors import ReadError, arguments_checked
from castsim.isa.formats import Codes, Format, IntFormat, Overflow, Rounding, Saturation, format_named
from castsim.isa.value_expressions import format_spelled, hexadecimal_float
from castsim.machines.mechanisms import CastAsked, CastForm, TargetCast, machine_of
from castsim.numerics.blocks import check_out, code_dtype, walk
from castsim.numerics.codec import (
    FormatLike,
    array_from_codes,
    codes_from_array,
    codes_of_out,
    encode_value,
    finish_out,
    format_name,
    is_codes,
    native_dtype,
)
from castsim.numerics.policy import Policy, abstract_policy
from castsim.numerics.tiers import Tier, cast_array
from castsim.targets.description import with_options
from castsim.targets.loader import Target, load_target


@arguments_checked
def cast(
    array: ArrayLike,
    src: FormatLike | None = None,
    dst: FormatLike | None = None,
    *,
    rounding: str | None = None,
    overflow: str | None = None,
    target: str | Path | Target | None = None,
    saturation: str | None = None,
    scratch: bool = False,
    form: str | None = None,
    options: Mapping[str, int | str] | None = None,
    random: NDArray[np.uint32] | np.random.Generator | None = None,
    policy: Policy | None = None,
    tier: str | None = None,
    out: Codes | None = None,
) -> Codes:
    """Convert an array from one number format to another, bit-exactly.

        cast(x, "f16"), cast(x, "f32", "f16"), cast([1.5, 300.0], "f32", "e4m3fn", target="a5")

    Args:
        array: any shape; lists and numbers are converted like `np.asarray`, in the dtype of `src` if it is given,
            texts ("0x1.8p+3", "1/3") like `castsim cast`, tensors of other libraries by DLPack (`__dlpack__`).
            Unsigned integers of the storage width of a float format are codes if `src` is given, and codes return;
            native arrays return in the native dtype of `dst`, or as codes if there is none.
        src, dst: format names (also in the spelling of PyTorch, ONNX and C: fp16_t, float8e4m3fn, int4b_t), or dtypes
            that belong to a single format: np.float16, not float. If only one format is given, it is `dst`, and `src`
            is the format of the array's dtype: an array of np.uint8 then contains integers.
        rounding: rint, round, floor, ceil, trunc, odd, half_up, stochastic, hybrid; with `target` one of its modes
            or none. None: the default.
        overflow: saturate, wrap, special; not with `target`.
        target: a chip with its own defaults, fallbacks and special values; None: the abstract cast.
        saturation: on, off or None (the chip's default); only with `target`.
        scratch: whether the chip has a tmp tile.
        form: 1d or 2d, for a chip (a5) that casts tiles with rows longer than their valid columns by other code; None:
            1d, the form of contiguous tiles. Only with `target`.
        options: values of the chip's options by name, as in `castsim run --option`; only with `target`.
        random: one word per element for stochastic rounding, or a generator that draws them.
        policy: everything at once, instead of `rounding` and `overflow`.
        tier: reference, table, compiled or generic, all of which give the same bits; None: the fastest one.
        out: array to fill and return, in any layout; `array` itself if the widths agree, but no other view of it.

    Returns:
        An array of the shape of `array`: numbers in the native dtype of `dst`, or its codes; `out` if it is given.

    Raises:
        ReadError: a format, mode, form, option or dtype is unknown, or `src` cannot represent a number.
        IllegalError: the target or format lacks the mode or pair.
    """
    if dst is None:
        src, dst = None, src
    if dst is None:
        raise ReadError("the format of the results is missing", legal=["cast(x, 'f16')", "cast(x, 'f32', 'f16')"])
    dst = _name(dst)
    array, src = _numbers(array, src)
    random = _words(random, array.shape)
    of_target = saturation is not None or scratch or form is not None or bool(options)
    if target is None and not of_target and policy is None:
        source, destination, policy = _abstract_cast(src, dst, rounding, overflow)
        return cast_array(array, source, destination, policy, random=random, tier=_tier(tier), out=out)
    source, destination = format_named(src), format_named(dst)
    if target is None:
        if of_target:
            raise ReadError("saturation, scratch, form and options need a target; the abstract cast takes overflow")
        if policy is None:
            policy = abstract_policy(source, destination, _rounding(rounding), _overflow(overflow))
        return cast_array(array, source, destination, policy, random=random, tier=_tier(tier), out=out)
    if overflow is not None or policy is not None:
        raise ReadError("the target determines overflow; set saturation to on or off instead")
    if random is not None or tier is not None:
        raise ReadError("random= and tier= cannot be combined with target=")
    chip = load_target(target)
    chip = with_options(chip, options) if options else chip
    chosen = None if form is None else _form(form)
    codes = codes_from_array(array, source)
    written = check_out(None if out is None else codes_of_out(out, destination), codes, destination)

    def fill(result: Codes, block: Codes) -> None:
        converted = cast_on_target(
            block,
            source,
            destination,
            chip,
            rounding=rounding,
            saturation=_saturation(saturation),
            scratch=scratch,
            form=chosen,
        )
        result[...] = converted.codes

    if codes.size > _BLOCK:
        walk(fill, written, codes, size=_BLOCK)
    else:
        fill(written, codes)
    if out is not None:
        finish_out(out, destination)
        return out
    return written if is_codes(array, source) else array_from_codes(written, destination)


def format_given(given: FormatLike) -> Format:
    """Return the format of a name or dtype, including PyTorch's dtypes, without importing PyTorch.

    Raises:
        ReadError: there is no such format.
    """
    text = given if isinstance(given, str) else repr(given)
    return format_spelled(text if text.startswith(_TORCH) else format_name(given))


def _name(given: FormatLike) -> str:
    return format_given(given).name


_TORCH = "torch."


def _words(given: NDArray[np.uint32] | np.random.Generator | None, shape: tuple[int, ...]) -> NDArray[np.uint32] | None:
    """Return the given random words, or one per element drawn from a generator."""
    return given.integers(1 << 32, size=shape, dtype=np.uint32) if isinstance(given, np.random.Generator) else given


def _numbers(given: ArrayLike, src: FormatLike | None) -> tuple[Codes, str]:
    """Return the input as an array, and the name of its format.

    Raises:
        ReadError: no array of numbers, no format for its dtype, or numbers that the format cannot hold.
    """
    if isinstance(given, np.ndarray | np.generic):
        array: Codes = given  # type: ignore[assignment]  # a scalar of NumPy has what is used of an array
        return array, _name(array.dtype if src is None else src)
    name = None if src is None else _name(src)
    if hasattr(given, "__dlpack__"):
        return _tensor(given, name)
    native = None if name is None else native_dtype(format_named(name))
    if name is not None and native is None:
        raise ReadError(f"{name} has no NumPy type; pass an array of codes", legal=("numpy.ndarray",))
    try:
        array = np.asarray(given)
    except ValueError as error:  # lists of several lengths
        raise ReadError(f"the values to convert are not an array: {error}") from None
    if name is None:
        return array, _name(array.dtype)
    return _read(array, name) if array.dtype.kind == "U" else _held(array, name, native), name


def _tensor(given: Any, name: str | None) -> tuple[Codes, str]:
    """Return a tensor of another library, in place where it can be: by DLPack, or its bits where NumPy lacks the dtype.

    Raises:
        ReadError: it is on a device, needs gradients, or NumPy and castsim lack its dtype.
    """
    for reader in (np.from_dlpack, np.asarray):
        try:
            array = reader(given)
        except (BufferError, RuntimeError, TypeError, ValueError):
            continue
        if array.dtype.kind != "O":
            return array, _name(array.dtype) if name is None else name
    try:
        fmt = format_given(given.dtype)
        library = sys.modules[type(given).__module__.partition(".")[0]]
        bits = np.from_dlpack(given.view(getattr(library, f"int{fmt.storage_bits}")))
    except (AttributeError, BufferError, KeyError, ReadError, RuntimeError, TypeError, ValueError) as error:
        shown = f"{type(given).__module__}.{type(given).__name__}"
        raise ReadError(f"{shown} is not readable as an array: {error}", legal=("x.detach().cpu()",)) from None
    found: Codes = array_from_codes(bits.view(f"u{bits.dtype.itemsize}"), fmt)
    return found, fmt.name if name is None else name


def _read(array: NDArray[Any], name: str) -> Codes:
    """Return the numbers that texts are.

    Raises:
        ReadError: a text that is not a number, or an integer that the format lacks.
    """
    fmt = format_named(name)
    codes = np.zeros(array.shape, code_dtype(fmt))
    for place, text in np.ndenumerate(array):
        number = hexadecimal_float(str(text))
        encoded = encode_value(str(text) if number is None else number, fmt)
        if encoded.inexact and isinstance(fmt, IntFormat):
            raise ReadError(f"{name} cannot represent '{text}'")
        codes[place] = encoded.code
    return array_from_codes(codes, fmt)


def _held(array: Codes, name: str, native: np.dtype[Any] | None) -> Codes:
    """Return numbers in the dtype of a format; floats are rounded as NumPy rounds them.

    Raises:
        ReadError: integers that the format does not have, or something else than numbers.
    """
    whole = isinstance(format_named(name), IntFormat)
    if array.size and array.dtype.kind not in ("biu" if whole else "biuf"):
        raise ReadError(f"{name} holds {'integers' if whole else 'numbers'}, not {array.dtype}")
    with np.errstate(over="ignore"):  # beyond the largest number is infinity, which is a result and no mishap
        held = array.astype(native)
    if whole and (held.astype(array.dtype) != array).any():
        raise ReadError(f"{name} cannot represent all of {str(array.tolist())[:60]}")
    return held


_BLOCK = 1 << 17
"""The number of elements per step of a chip's cast, whose instructions exchange whole arrays."""


@lru_cache(maxsize=256)
def _abstract_cast(src: str, dst: str, rounding: str | None, overflow: str | None) -> tuple[Format, Format, Policy]:
    """Return formats and policy of a cast without a chip, the same objects every time."""
    source, destination = format_named(src), format_named(dst)
    return source, destination, abstract_policy(source, destination, _rounding(rounding), _overflow(overflow))


def cast_on_target(
    codes: Codes,
    src: Format,
    dst: Format,
    target: Target,
    *,
    rounding: str | None = None,
    saturation: Saturation | None = None,
    scratch: bool = False,
    form: CastForm | None = None,
) -> TargetCast:
    """Convert codes of any shape like a tile cast on the chip; `form` None: the first of `cast_forms`, if any.

    Raises:
        ReadError: the word is not a rounding mode, or the chip has no such form.
        IllegalError: the chip lacks the pair, or its instructions cannot name the mode.
    """
    machine = machine_of(target)
    if form is not None and form not in machine.cast_forms:
        raise ReadError(f"{target.name} casts tiles of all shapes the same way; leave out form {form}", legal=("none",))
    asked = CastAsked(src, dst, rounding, saturation, scratch, form)
    result = machine.cast_elements(codes.reshape(1, -1), asked)
    return replace(result, codes=result.codes.reshape(codes.shape))


def _rounding(name: str | None) -> Rounding | None:
    return None if name is None else _member(Rounding, name, "rounding mode")


def _overflow(name: str | None) -> Overflow | None:
    return None if name is None else _member(Overflow, name, "overflow policy")


def _tier(name: str | None) -> Tier | None:
    return None if name is None else _member(Tier, name, "tier")


def _form(name: str) -> CastForm:
    forms: tuple[CastForm, ...] = get_args(CastForm)
    for form in forms:
        if form == name.lower():
            return form
    raise ReadError(f"unknown form '{name}' of a cast", legal=forms)


def _saturation(name: str | None) -> Saturation | None:
    return None if name is None else _member(Saturation, name, "saturation")


_Word = TypeVar("_Word", Rounding, Overflow, Saturation, Tier)


def _member(kind: type[_Word], name: str, what: str) -> _Word:
    try:
        return kind(name.lower())
    except ValueError:
        raise ReadError(f"unknown {what} '{name}'", legal=[member.value for member in kind]) from None
