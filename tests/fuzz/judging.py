"""What every reader owes to every input: a result or a refusal, soon, in little memory, and in words that are safe."""

from __future__ import annotations

import re
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

from castsim.isa.errors import CastsimError, EngineError

SECONDS = 10.0
"""Time of the processor that one input may take: that of the clock says more of the machine than of the reader."""

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that steer a terminal: no message holds one."""

Read = Callable[[bytes], None]
"""Reads an input and asserts what must hold of what was read."""


class DefectError(Exception):
    """An input that a reader does not bear; `kind` is what happened, `detail` where."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail


class HangError(BaseException):
    """The time of an input is over. No `Exception`, so that no reader takes it for one of its own."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an input was read, and the seconds of the processor that it took."""

    was_read: bool
    seconds: float


def judge(read: Read, data: bytes, *, placed: bool = False, seconds: float = SECONDS) -> Verdict:
    """Give an input to a reader.

    Args:
        read: the reader.
        data: the input.
        placed: every refusal says where in the input it is.
        seconds: time of the processor that it may take.

    Raises:
        DefectError: something else than a result or a refusal.
    """
    begun = time.process_time()
    before = signal.signal(signal.SIGPROF, _over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        read(data)
        was_read = True
    except (CastsimError, EngineError) as error:
        _check_refusal(error, placed=placed)
        was_read = False
    except HangError as error:
        raise DefectError("hang", _where(error)) from error
    except MemoryError as error:
        raise DefectError("memory", _where(error)) from error
    except Exception as error:
        raise DefectError(type(error).__name__, f"{error}"[:300] + f" {_where(error)}") from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return Verdict(was_read, time.process_time() - begun)


def _check_refusal(error: CastsimError | EngineError, *, placed: bool) -> None:
    """Check that a refusal can be told: exit code 1 or 2, a message, a place, nothing that steers a terminal."""
    for one in (error, *getattr(error, "further", ())):
        try:
            text = one.render()
        except Exception as fault:
            raise DefectError(f"message: {type(fault).__name__}", _where(fault)) from fault
        if one.exit_code not in (1, 2) or not one.message.strip():
            raise DefectError("message", f"exit code {one.exit_code}, {one.message[:200]!r}")
        if STEERING.search(text):
            raise DefectError("message steers a terminal", repr(text[:300]))
        if len(text) > 20_000:
            raise DefectError("message is long", text[:300])
        if placed and one.span is None:
            raise DefectError("message without a place", text[:300])


def _over(_: int, frame: FrameType | None) -> NoReturn:
    raise HangError


def _where(error: BaseException) -> str:
    """Return the last places in the product that an error passed."""
    found = [one for one in traceback.extract_tb(error.__traceback__) if "fuzz" not in one.filename.split("/")]
    return " < ".join(f"{'/'.join(one.filename.split('/')[-2:])}:{one.lineno}" for one in reversed(found[-3:]))
