"""The meaning of the options that several commands share: assignments, numbers, limits, folders, memory."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from castsim.execution.run_limits import MAX_ELEMENTS, Limits
from castsim.isa.dataclass import fields
from castsim.isa.errors import MAX_STATEMENTS, LimitError, ReadError
from castsim.isa.reading import file_limit, limit_of

_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|\d+)", re.ASCII)
_MOST_DIGITS = 300
"""Maximum number of hexadecimal digits of an argument: the range of f64 ends earlier, and more could not be shown."""
_LIMIT_DIGITS = 1000
"""Maximum number of digits of a limit; Python refuses to convert 5,000 digits."""
_LEVELS = ("1", "2", "3")
Typed = TypeVar("Typed")
LAST_PORT = 65535
"""Largest port number: port numbers have 16 bits."""
_LAST_MACHINE = 0xFFFF
"""`e_machine` of an ELF header is an Elf32_Half or Elf64_Half, 16 bits (System V ABI)."""


def assignments(option: str, texts: Sequence[str], names: Sequence[str] = ()) -> dict[str, str]:
    """Split the `NAME=VALUE` texts of a repeatable option; the longest of `names` that fits may itself contain `=`.

    Raises:
        ReadError: a text has no `=`, an empty name or value, or a name occurs twice.
    """
    assigned: dict[str, str] = {}
    for text in texts:
        fitting = max((name for name in names if text.startswith(f"{name}=")), key=len, default="")
        name, equals, value = text[len(fitting) :].partition("=")
        name = fitting or name.strip().removeprefix("%")
        if not equals or not name or not value:
            raise ReadError(f"{option} {text}: expected NAME=VALUE", legal=(f"{option} NAME=VALUE",))
        if name in assigned:
            raise ReadError(f"{option} {name}=... is given twice")
        assigned[name] = value
    return assigned


def scalar(name: str, text: str) -> int | float:
    """Return an integer (decimal or hexadecimal) or a float.

    Raises:
        ReadError: the text is neither.
    """
    if _INTEGER.fullmatch(text) and "x" in text.lower() and len(text) > _MOST_DIGITS:
        raise ReadError(f"--arg {name}: a hexadecimal number of more than {_MOST_DIGITS} digits")
    if _INTEGER.fullmatch(text):
        return int(text, 16 if "x" in text.lower() else 10)
    try:
        if "_" in text or not text.isascii():  # which Python takes
            raise ValueError
        return float(text)
    except ValueError:
        raise ReadError(f"--arg {name}={text}: not a number", legal=("12", "-3", "0x10", "1.5")) from None


def scalars(texts: Sequence[str], names: Sequence[str] = ()) -> dict[str, int | float]:
    """Return the scalar arguments that `--arg` gives; `names` may hold `=`.

    Raises:
        ReadError: a text is not an assignment of a number, or a name occurs twice.
    """
    return {name: scalar(name, text) for name, text in assignments("--arg", texts, names).items()}


def level_of(text: str | None) -> int | None:
    """Return the placement level from `--level`.

    Raises:
        ReadError: the level does not exist.
    """
    if text is None:
        return None
    if text not in _LEVELS:
        raise ReadError(f"--level {text[:40]}: not a placement level", legal=_LEVELS)
    return int(text)


def opaque_cycles(texts: list[str]) -> dict[str, int]:
    """Return the cycles from `--opaque NAME=CYCLES`, by operation; the dialect may precede its name.

    Raises:
        ReadError: a name is missing or occurs twice, or the cycles are not an integer of at least 0.
    """
    given = {}
    for name, text in assignments("--opaque", texts).items():
        if not (text.isascii() and text.isdecimal()) or len(text) > _LIMIT_DIGITS:
            raise ReadError(f"--opaque {name}={text[:40]}: not a number of cycles", legal=(f"--opaque {name}=400",))
        given[name.removeprefix("pto.")] = int(text)
    return given


def positive(option: str, text: str) -> int:
    """Return an option's value as a positive integer.

    Raises:
        ReadError: the value is not a positive integer.
    """
    if not (text.isascii() and text.isdecimal()) or len(text) > _LIMIT_DIGITS or int(text) == 0:
        raise ReadError(f"{option} {text.strip()[:40]}: must be a positive integer", legal=("1 or more",))
    return int(text)


def integer_from(option: str, text: str, *, least: int = 1) -> int:
    """Return an option's value as an integer of at least `least`; surrounding blanks are ignored.

    Raises:
        ReadError: the value is not such an integer.
    """
    text = text.strip()
    if not text.isdecimal() or int(text) < least:
        raise ReadError(f"{option} {text}: must be an integer of at least {least}", legal=(f"{least} or more",))
    return int(text)


def limits_of(walk: str | None = None, statements: str | None = None, elements: str | None = None) -> Limits:
    """Return the limits from `--max-walk`, `--max-statements` and `--max-elements`; None means not given.

    Raises:
        ReadError: a limit is not a positive integer.
    """
    return Limits(
        MAX_STATEMENTS if statements is None else positive("--max-statements", statements),
        None if walk is None else positive("--max-walk", walk),
        MAX_ELEMENTS if elements is None else positive("--max-elements", elements),
    )


def machine_number(text: str) -> int:
    """Return the number from `--machine`.

    Raises:
        ReadError: the text is not a number, or the ELF header has too few bits for it.
    """
    text, legal = text.strip(), (f"0 to {_LAST_MACHINE}", f"0x0 to {_LAST_MACHINE:#x}")
    if _INTEGER.fullmatch(text) is None:
        raise ReadError(f"--machine {text}: not a number", legal=legal)
    number = int(text, 16 if "x" in text.lower() else 10)
    if not 0 <= number <= _LAST_MACHINE:
        raise ReadError(f"--machine {text}: not an ELF machine number (16 bits)", legal=legal)
    return number


def output_folder(name: str | None, option: str = "--out") -> Path | None:
    """Create the output folder before a long run, so a missing folder is reported early.

    Raises:
        ReadError: the folder cannot be created, or its name is that of an array's file.
    """
    if name is None:
        return None
    folder = Path(name)
    if folder.suffix == ".npy":
        raise ReadError(f"{option} {name}: needs a folder, not a file", legal=(f"{option} DIR, for DIR/NAME.npy",))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReadError(f"{option} {name}: {error.strerror or error}", legal=(f"{option} DIR",)) from None
    return folder


def take_words(values: list[str], given: list[str], vocabulary: Iterable[str]) -> list[str]:
    """Return the words of a repeatable option, including words after blanks that were parsed as values.

    No number is spelt like a mode or a target, so `--rounding rint trunc` can only mean both.
    """
    words = listed(given)
    if words:
        legal = set(vocabulary)
        words += [text for text in values if text.lower() in legal]
        values[:] = [text for text in values if text.lower() not in legal]
    return list(dict.fromkeys(words))


def listed(texts: list[str]) -> list[str]:
    """Split the values of a repeatable option at commas; return each word once, in the order given."""
    return list(dict.fromkeys(word.strip() for text in texts for word in text.split(",")))


def refuse(given: Mapping[str, str | Sequence[str] | None], program: str | None, suffixes: Sequence[str]) -> None:
    """Reject options that apply only to kernels in other languages; `given` are their values, empty if not given.

    Raises:
        ReadError: such an option was given.
    """
    for option, value in given.items():
        if value:
            shown = value if isinstance(value, str) else " ".join(value)
            message = f"{option} {shown}: {program} is not a kernel that takes it"
            raise ReadError(message, legal=[f"*{suffix}" for suffix in suffixes])


_DESTINATIONS = {"in": "inputs", "arg": "args", "option": "options"}
"""Options whose name in a namespace differs."""


def options_as(kind: type[Typed], options: Namespace, **more: object) -> Typed:
    """Return options as an object of a dataclass, whose fields have their names; `more` are further fields.

    Options that were not given, or that the command lacks, have the defaults of the fields; lists become tuples.
    """
    values = dict(more)
    for option in fields(cast(Any, kind)):
        value = getattr(options, option.name, None)
        if value is not None:
            values[option.name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def given_of(options: Namespace, *names: str) -> dict[str, object]:
    """Return the values of options by their names on the command line."""
    return {name: getattr(options, _DESTINATIONS.get(name, name.replace("-", "_"))) for name in names}


def refuse_given(
    given: Mapping[str, object], why: str, usual: Sequence[object] = (), legal: Sequence[str] = ()
) -> None:
    """Reject options that have no effect here; `given` are their values by name, `usual` count as not given.

    Raises:
        ReadError: such an option was given; `why` is the reason for the rejection.
    """
    for name, value in given.items():
        if value not in (None, False, [], (), {}, *usual):
            raise ReadError(f"--{name} {why}", legal=legal)


# The limit of `--max-memory`: what a command takes beyond it is refused, and no other process of the machine suffers.
# What counts is memory that a process writes to and that no file backs (RLIMIT_DATA, which Linux keeps for it): mapped
# `.npy` files do not. Processes that a command starts have the same limit each.

MEMORY_OPTION = "--max-memory"
"""Command-line option for the memory limit."""

LEAST_MEMORY = 128 << 20
"""Smallest memory limit: what Python and the libraries need before anything is read."""

_SIZE_UNITS = {"": 0, "K": 10, "M": 20, "G": 30}
_SIZE = re.compile(r"(\d{1,18})([KMG]?)", re.ASCII)
_MOST_BYTES = 1 << 62


def memory_of(text: str) -> int:
    """Return the number of bytes from `--max-memory`.

    Raises:
        ReadError: the value is not a number of bytes, or is less than `LEAST_MEMORY`.
    """
    match = _SIZE.fullmatch(text.strip())
    size = int(match[1]) << _SIZE_UNITS[match[2]] if match else 0
    if not LEAST_MEMORY <= size <= _MOST_BYTES:
        raise ReadError(
            f"{MEMORY_OPTION} {text[:40]}: not a number of bytes from {LEAST_MEMORY} on",
            legal=(f"{LEAST_MEMORY}", "512M", "4G"),
        )
    return size


@contextmanager
def bounded(file_bytes: str | None, memory: str | None) -> Iterator[None]:
    """Apply the limits of `--max-file-bytes` and `--max-memory` while the block lasts; None means not given.

    Raises:
        ReadError: a limit is wrong.
        LimitError: see `memory_limit`.
    """
    with ExitStack() as limits:
        if memory is not None:
            limits.enter_context(memory_limit(memory_of(memory)))
        if file_bytes is not None:
            limits.enter_context(file_limit(limit_of(file_bytes)))
        yield


@contextmanager
def memory_limit(size: int) -> Iterator[None]:
    """Limit the process to `size` bytes of memory while the block lasts.

    Raises:
        LimitError: the process needed more.
        ReadError: the operating system supports no such limit.
    """
    try:
        import resource  # noqa: PLC0415 - Windows has none
    except ImportError:
        raise ReadError(f"{MEMORY_OPTION}: this system does not support process limits") from None
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    bound = size if hard == resource.RLIM_INFINITY else min(size, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (bound, hard))
    try:
        yield
    except Exception as error:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))  # first of all: the message needs memory too
        if not _of_memory(error):
            raise
        raise LimitError(
            f"the run needs more than {size} bytes of memory, the limit of {MEMORY_OPTION}",
            legal=(f"{MEMORY_OPTION} N with a larger N",),
        ) from None
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _of_memory(error: BaseException | None) -> bool:
    """Return whether an error, or its cause, is a lack of memory."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False
