"""The meaning of the options that several commands share: assignments, numbers, limits, folders, memory."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from castsim.execution.run_limits import MAX_CYCLES, Limits
from castsim.isa.dataclass import replace
from castsim.isa.errors import MAX_STATEMENTS, LimitError, ReadError
from castsim.isa.reading import file_limit, limit_of

_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|\d+)", re.ASCII)
_MOST_DIGITS = 300
"""Maximum number of hexadecimal digits of an argument: the range of f64 ends earlier, and more could not be shown."""
_LIMIT_DIGITS = 1000
"""Maximum number of digits of a limit; Python refuses to convert 5,000 digits."""
_LEVELS = ("1", "2", "3")
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


def scalars_of(options: Namespace, names: Sequence[str] = ()) -> dict[str, int | float]:
    """Return the scalar arguments that `--arg` gives; `names` may hold `=`.

    Raises:
        ReadError: a text is not an assignment of a number, or a name occurs twice.
    """
    return {name: scalar(name, text) for name, text in assignments("--arg", options.args, names).items()}


def most_cycles(options: Namespace) -> int:
    """Return the limit from `--max-cycles`.

    Raises:
        ReadError: the text is not a positive integer.
    """
    return MAX_CYCLES if options.max_cycles is None else positive("--max-cycles", options.max_cycles)


def level_of(options: Namespace) -> int | None:
    """Return the placement level from `--level`.

    Raises:
        ReadError: the level does not exist.
    """
    if options.level is None:
        return None
    if options.level not in _LEVELS:
        raise ReadError(f"--level {options.level[:40]}: not a placement level", legal=_LEVELS)
    return int(options.level)


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


def limits_of(options: Namespace) -> Limits:
    """Return the limits from the command line.

    Raises:
        ReadError: a limit is not a positive integer.
    """
    walk = None if options.max_walk is None else positive("--max-walk", options.max_walk)
    return Limits(statements_of(options), walk)


def run_limits_of(options: Namespace) -> Limits:
    """Return the limits for a command that also computes a program's arguments.

    Raises:
        ReadError: a limit is not a positive integer.
    """
    limits, asked = limits_of(options), options.max_elements
    return limits if asked is None else replace(limits, max_elements=positive("--max-elements", asked))


def statements_of(options: Namespace) -> int:
    """Return the maximum number of statements to read.

    Raises:
        ReadError: the value is not a positive integer.
    """
    return MAX_STATEMENTS if options.max_statements is None else positive("--max-statements", options.max_statements)


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


LAUNCH = {"--tensor": "tensors", "--index-space": "index_space", "--tpcs": "tpcs", "--accumulators": "accumulators"}
HEADERS = {"--define": "macros", "--include": "folders"}
ASCENDC = {"--auto-sync": "auto_sync", "--tiling": "tiling", "--tiling-struct": "tiling_struct"}
CORE = {"--block": "block", "--sub": "sub", **ASCENDC}
"""Options of kernels in C, of kernels in C and C++, of AscendC, and of C++, with their names in a namespace."""


def refuse_tilelang(options: Namespace, program: str | None) -> None:
    """Reject options of TileLang kernels for other programs.

    Raises:
        ReadError: such an option was given.
    """
    core = None if options.core is None else f"--core {options.core[:40]}"
    for option in (core, "--unscheduled" if options.unscheduled else None):
        if option is not None:
            raise ReadError(f"{option}: {program} is not a TileLang kernel", legal=("KERNEL.py:FUNCTION",))


def refuse(options: Namespace, named: Mapping[str, str], program: str | None, suffixes: Sequence[str]) -> None:
    """Reject options that apply only to kernels in other languages.

    Raises:
        ReadError: such an option was given.
    """
    for option, name in named.items():
        value = getattr(options, name, None)
        if value:
            shown = value if isinstance(value, str) else " ".join(value)
            message = f"{option} {shown}: {program} is not a kernel that takes it"
            raise ReadError(message, legal=[f"*{suffix}" for suffix in suffixes])


_DESTINATIONS = {"in": "inputs", "arg": "args", "option": "options"}
"""Options whose name in a namespace differs."""


def refuse_given(
    options: Namespace, names: Sequence[str], why: str, usual: Sequence[str] = (), legal: Sequence[str] = ()
) -> None:
    """Reject options that have no effect here, by their names; `usual` are values that count as not given.

    Raises:
        ReadError: such an option was given; `why` is the reason for the rejection.
    """
    for name in names:
        value = getattr(options, _DESTINATIONS.get(name, name.replace("-", "_")))
        if value not in (None, False, [], *usual):
            raise ReadError(f"--{name} {why}", legal=legal)


def headers_of(options: Namespace) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Return the header folders and macros from the options.

    Raises:
        ReadError: a folder does not exist, or a macro's name is malformed.
    """
    for folder in options.folders:
        if not Path(folder).is_dir():
            raise ReadError(f"--include {folder}: no such folder", legal=("--include FOLDER",))
    for macro in options.macros:
        if not macro.partition("=")[0].isidentifier():
            raise ReadError(f"--define {macro}: expected NAME or NAME=VALUE", legal=("--define NAME=VALUE",))
    return tuple(map(Path, options.folders)), tuple(options.macros)


def macros_of(options: Namespace) -> dict[str, str]:
    """Return the texts of macros from the options, by name; a macro without a text is 1.

    Raises:
        ReadError: see `headers_of`.
    """
    parts = (macro.partition("=") for macro in headers_of(options)[1])
    return {name: text if given else "1" for name, given, text in parts}


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
