"""Conversion of arrays between number formats, by the abstract cast or like a chip."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import ReadError, arguments_checked
from castsim.isa.formats import (
    Codes,
    Format,
    IntFormat,
    Overflow,
    Rounding,
    Saturation,
    code_bits,
    format_named,
)
from castsim.isa.value_expressions import format_spelled, hexadecimal_float
from castsim.machines.mechanisms import CastAsked, CastForm, ElementCast, Machine, TargetCast, machine_of
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
from castsim.numerics.tables import LookupTable, look_up
from castsim.numerics.tiers import Tier, cast_array, convert_codes, why_not_compiled
from castsim.targets.description import TargetHeader, with_options
from castsim.targets.loader import Target, load_target, target_names


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
    if type(array) is not np.ndarray:
        array, src = _numbers(array, src)
    if random is None and tier is None and policy is None:
        asked = _Asked(rounding, overflow, saturation, scratch, form, options)
        return _settled(array.dtype, src, dst, target, asked).of(array, out)
    source, destination = format_named(_name(array.dtype if src is None else src)), format_named(_name(dst))
    words = _words(random, array.shape)
    if target is not None:
        if overflow is not None or policy is not None:
            raise ReadError(_OVERFLOW_OF_TARGET)
        raise ReadError("random= and tier= cannot be combined with target=")
    if saturation is not None or scratch or form is not None or options:
        raise ReadError(_NEEDS_TARGET)
    if policy is None:
        policy = abstract_policy(source, destination, _rounding(rounding), _overflow(overflow))
    return cast_array(array, source, destination, policy, random=words, tier=_tier(tier), out=out)


_OVERFLOW_OF_TARGET = "the target determines overflow; set saturation to on or off instead"
_NEEDS_TARGET = "saturation, scratch, form and options need a target; the abstract cast takes overflow"

# Casts that are settled, found again by what was asked: reading the words and planning the instructions of a chip takes
# longer than a small cast.


class _Asked(NamedTuple):
    """What is asked of a cast besides its formats and its target, in the user's words."""

    rounding: str | None
    overflow: str | None
    saturation: str | None
    scratch: bool
    form: str | None
    options: Mapping[str, int | str] | None


@dataclass(frozen=True, slots=True)
class _SettledCast:
    """What a cast does to arrays of one dtype.

    `run` takes codes and fills results, both in one contiguous dimension. `codes` is the dtype as which an array holds
    its codes, None if they must be made or checked; `native` that of the numbers, None where codes come back. `target`
    is kept so that no other one gets its identity.
    """

    src: Format
    dst: Format
    policy: Policy | None
    run: Callable[[Codes, Codes], None]
    codes: np.dtype[Any] | None
    results: np.dtype[Any]
    native: np.dtype[Any] | None
    target: object

    def of(self, array: Codes, out: Codes | None) -> Codes:
        """Return the array converted; `out`, if given, filled."""
        if self.codes is not None and out is None and type(array) is np.ndarray and array.flags.c_contiguous:
            results = np.empty(array.shape, self.results)
            self.run(array.view(self.codes).reshape(-1), results.reshape(-1))
            return results if self.native is None else results.view(self.native)
        if self.policy is not None:
            return cast_array(array, self.src, self.dst, self.policy, out=out)
        codes = codes_from_array(array, self.src)
        written = check_out(None if out is None else codes_of_out(out, self.dst), codes, self.dst)
        walk(lambda results, block: self.run(block, results), written, codes, size=_BLOCK)
        if out is not None:
            finish_out(out, self.dst)
            return out
        return written if is_codes(array, self.src) else array_from_codes(written, self.dst)


_KEPT = 1024
_SETTLED: dict[tuple[object, ...], _SettledCast] = {}


def _settled(
    dtype: np.dtype[Any], src: FormatLike | None, dst: FormatLike, target: str | Path | Target | None, asked: _Asked
) -> _SettledCast:
    """Return what a cast of arrays of a dtype does; errors as `cast`."""
    given = None if asked.options is None else tuple((name, str(value)) for name, value in asked.options.items())
    chip = target if target is None or type(target) is str else id(target)
    key = (dtype, src, dst, chip, *asked[:5], given)
    try:
        settled = _SETTLED.get(key)
    except TypeError:  # something without a hash, which names no format
        settled = None
    if settled is None:
        settled = _settle(dtype, _name(dtype if src is None else src), _name(dst), target, asked)
        # A description in a file may have changed when it is asked for again.
        if target is None or isinstance(target, TargetHeader) or str(target).lower() in target_names():
            if len(_SETTLED) >= _KEPT:
                _SETTLED.clear()
            _SETTLED[key] = settled
    return settled


def _settle(
    dtype: np.dtype[Any], src: str, dst: str, target: str | Path | Target | None, asked: _Asked
) -> _SettledCast:
    source, destination = format_named(src), format_named(dst)
    if target is None:
        if asked.saturation is not None or asked.scratch or asked.form is not None or asked.options:
            raise ReadError(_NEEDS_TARGET)
        rounding, overflow = _rounding(asked.rounding), _overflow(asked.overflow)
        policy: Policy | None = (usual := abstract_policy(source, destination, rounding, overflow))
        run: Callable[[Codes, Codes], None] = partial(_convert, source, destination, usual)
    else:
        if asked.overflow is not None:
            raise ReadError(_OVERFLOW_OF_TARGET)
        settled = _of_chip(source, destination, target, asked)
        policy, run = settled.policy, _loop_of(settled, source, destination)
    example: Codes = np.empty(0, dtype)
    codes_from_array(example, source)  # refuses dtypes
    numbers = not is_codes(example, source)
    plain = source.bits == source.storage_bits and dtype.isnative
    return _SettledCast(
        source,
        destination,
        policy,
        run,
        code_dtype(source) if plain else None,
        code_dtype(destination),
        native_dtype(destination) if numbers else None,
        target,
    )


def _of_chip(src: Format, dst: Format, target: str | Path | Target, asked: _Asked) -> ElementCast:
    chip = load_target(target)
    chip = with_options(chip, asked.options) if asked.options else chip
    chosen = None if asked.form is None else _form(asked.form)
    request = CastAsked(src, dst, asked.rounding, _saturation(asked.saturation), asked.scratch, chosen)
    return _machine_of(chip, chosen).element_cast(request)


def _convert(src: Format, dst: Format, policy: Policy, codes: Codes, results: Codes) -> None:
    convert_codes(codes, src, dst, policy, out=results)


# How arrays go through a chip's cast: by the loops of `castsim.numerics` where it is one conversion, else in blocks.


def _loop_of(element_cast: ElementCast, src: Format, dst: Format) -> Callable[[Codes, Codes], None]:
    if element_cast.policy is not None:
        return partial(_convert, src, dst, element_cast.policy)
    policy = element_cast.integral
    if policy is not None and src.name == "f32" and policy.rounding in _WHOLE and not _flushes(policy):
        return partial(_round_whole, element_cast.run, _WHOLE[policy.rounding])
    policy = element_cast.wrapping
    if policy is not None and src.name == "f32" and policy.rounding in _WHOLE and not _flushes(policy):
        return WrappingLoop(element_cast.run, policy.rounding, dst).run
    if src.storage_bits <= _INDEX_BITS:
        boolean = isinstance(src, IntFormat) and src.boolean
        every = np.arange(1 << (src.storage_bits if boolean else code_bits(src)), dtype=code_dtype(src))
        return _TableLoop(element_cast.run(every), src, dst).run
    return partial(_in_blocks, element_cast.run)


_INDEX_BITS = 16


def _flushes(policy: Policy) -> bool:
    """Return whether zeros or subnormal numbers become something else than rounding makes of them."""
    return policy.flush_source or policy.flush_result or policy.drop_negative_zero


def _in_blocks(run: Callable[[Codes], Codes], codes: Codes, results: Codes) -> None:
    for start in range(0, codes.size, _BLOCK):
        results[start : start + _BLOCK] = run(codes[start : start + _BLOCK])


def _away(numbers: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Round to the nearest integral value, ties away from zero."""
    np.trunc(numbers, out=out)
    out += np.copysign(np.abs(numbers - out) >= np.float32(0.5), numbers)


_WHOLE: Mapping[Rounding, Callable[..., object]] = {
    Rounding.RINT: np.rint,
    Rounding.ROUND: _away,
    Rounding.FLOOR: np.floor,
    Rounding.CEIL: np.ceil,
    Rounding.TRUNC: np.trunc,
}
"""Functions of numbers and the array of their results."""


def _round_whole(run: Callable[[Codes], Codes], whole: Callable[..., object], codes: Codes, results: Codes) -> None:
    """Round f32 to integral values as processors do; infinities and NaN go through the chip's own step."""
    for start in range(0, codes.size, _BLOCK):
        block, results_block = codes[start : start + _BLOCK], results[start : start + _BLOCK]
        numbers = block.view(np.float32)
        with np.errstate(invalid="ignore"):
            whole(numbers, out=results_block.view(np.float32))
        finite = np.isfinite(numbers)
        if not finite.all():
            results_block[~finite] = run(block[~finite])


# Casts of f32 that keep the low bits of rounded numbers: by the processor's own conversion to i32.

_MODES = tuple(_WHOLE)
_RINT, _ROUND, _FLOOR, _CEIL, _TRUNC = range(len(_MODES))
_COMPILED = "castsim.numerics.compiled"
_LOADS = 1 << 26
"""Elements that take as long by NumPy as numba takes to be imported."""


def _machine_code_pays(count: int) -> bool:
    """Return whether numba is loaded already, or would have paid for so many elements."""
    return (_COMPILED in sys.modules or count > _LOADS) and why_not_compiled() is None


@dataclass(slots=True)
class WrappingLoop:
    """A cast of f32 to the low bits of the rounded number; `steps` gives the same, and alone what i32 does not hold."""

    steps: Callable[[Codes], Codes]
    rounding: Rounding
    dst: Format
    converted: int = 0
    code: Callable[..., None] | None = None

    def run(self, codes: Codes, results: Codes) -> None:
        """Fill the results of codes; both arrays are contiguous."""
        self.converted += codes.size
        if self.code is None and _machine_code_pays(self.converted):
            self.code = _kernel(_MODES.index(self.rounding), code_dtype(self.dst))
        outside = np.zeros(1, np.uint32)
        for start in range(0, codes.size, _BLOCK):
            block, results_block = codes[start : start + _BLOCK], results[start : start + _BLOCK]
            if self.code is None:
                results_block[...] = self.steps(block)
                continue
            numbers = block.view(np.float32)
            self.code(numbers, results_block, outside)
            if outside[0]:
                beyond = ~(np.abs(numbers) < _END)
                results_block[beyond] = self.steps(block[beyond])


_END = np.float32(0x7FFFFF80)
"""The largest number below 2**31: up to it every rounding stays within i32."""


@cache
def _kernel(mode: int, results: np.dtype[Any]) -> Callable[..., None]:
    """Return the loop over numbers; it tells whether any is as large as `_END`, or not a number."""
    import numba  # noqa: PLC0415 - loaded already, or worth it

    from castsim.numerics.compiled import compiled  # noqa: PLC0415 - likewise

    end, low = _END, results.type

    def kernel(numbers: NDArray[np.float32], codes: Codes, outside: NDArray[np.uint32]) -> None:
        beyond = np.uint32(0)
        for index in range(numbers.size):
            number = numbers[index]
            if mode == _RINT:
                whole = np.rint(number)
            elif mode == _FLOOR:
                whole = np.floor(number)
            elif mode == _CEIL:
                whole = np.ceil(number)
            else:
                whole = np.trunc(number)
                if mode == _ROUND:
                    whole += np.copysign(np.float32(abs(number - whole) >= np.float32(0.5)), number)
            inside = abs(number) < end
            codes[index] = low(np.int32(whole if inside else np.float32(0)))
            beyond |= np.uint32(0) if inside else np.uint32(1)
        outside[0] = beyond

    array = numba.types.Array
    single, result_type = numba.types.float32, numba.from_dtype(results)
    types = numba.types.void(
        array(single, 1, "C", readonly=True), array(result_type, 1, "C"), array(numba.types.uint32, 1, "C")
    )
    return compiled(lambda: kernel, types)


@dataclass(slots=True)
class _TableLoop:
    """Look-up of the results of all codes of a source of up to 16 bits."""

    entries: Codes
    src: Format
    dst: Format
    looked_up: int = 0
    code: Callable[..., None] | None = None

    def run(self, codes: Codes, results: Codes) -> None:
        """Fill the results; in machine code where numba is there already, or arrays were large enough to load it."""
        self.looked_up += codes.size
        if self.code is None and _machine_code_pays(self.looked_up):
            from castsim.numerics import compiled  # noqa: PLC0415 - imports numba

            dtypes = code_dtype(self.src), code_dtype(self.dst)
            types = compiled.signature(*dtypes, dtypes[1], np.dtype(np.uint32))
            self.code = compiled.compiled(
                lambda: compiled.lookup_kernel(False, np.uint32(0), compiled.source_stamp()), types
            )
        if self.code is None or np.may_share_memory(codes, results):
            look_up(LookupTable(self.entries, 0), codes, self.src, self.dst, out=results)
        else:
            self.code(codes, results, self.entries, _NOTHING_DROPPED)


_NOTHING_DROPPED = np.zeros(1, np.uint32)


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
    codes: Codes = array_from_codes(bits.view(f"u{bits.dtype.itemsize}"), fmt)
    return codes, fmt.name if name is None else name


def _read(array: NDArray[Any], name: str) -> Codes:
    """Return the numbers that texts are.

    Raises:
        ReadError: a text that is not a number, or an integer that the format lacks.
    """
    fmt = format_named(name)
    codes = np.zeros(array.shape, code_dtype(fmt))
    for index, text in np.ndenumerate(array):
        number = hexadecimal_float(str(text))
        encoded = encode_value(str(text) if number is None else number, fmt)
        if encoded.inexact and isinstance(fmt, IntFormat):
            raise ReadError(f"{name} cannot represent '{text}'")
        codes[index] = encoded.code
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
        codes = array.astype(native)
    if whole and (codes.astype(array.dtype) != array).any():
        raise ReadError(f"{name} cannot represent all of {str(array.tolist())[:60]}")
    return codes


_BLOCK = 1 << 16
"""The number of elements per step of a chip's cast, whose instructions exchange whole arrays."""


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
    asked = CastAsked(src, dst, rounding, saturation, scratch, form)
    result = _machine_of(target, form).cast_elements(codes.reshape(1, -1), asked)
    return replace(result, codes=result.codes.reshape(codes.shape))


def _machine_of(target: Target, form: CastForm | None) -> Machine:
    """Return the machine model of a target that has a form of casts.

    Raises:
        ReadError: it has not.
    """
    machine = machine_of(target)
    if form is not None and form not in machine.cast_forms:
        raise ReadError(f"{target.name} casts tiles of all shapes the same way; leave out form {form}", legal=("none",))
    return machine


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
