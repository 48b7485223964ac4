"""The part of a run that a view shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from castsim.isa.errors import ReadError

_FORM = re.compile(r"(\d*):(\d*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Window:
    """Cycles [start, end); `end` None is the end of the run."""

    start: int = 0
    end: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `A:B`, `A:` or `:B`.

        Raises:
            ReadError: another form, or nothing between the two.
        """
        found = _FORM.fullmatch(text)
        if found is None:
            raise ReadError(f"--window {text}: not of the form A:B", legal=("100:200", "100:", ":200"))
        start, end = (int(part) if part else None for part in found.groups())
        if end is not None and end <= (start or 0):
            raise ReadError(f"--window {text}: nothing happens between cycle {start or 0} and cycle {end}")
        return cls(start or 0, end)

    def within(self, total: int) -> tuple[int, int]:
        """Return first cycle and end in a run of `total` cycles.

        Raises:
            ReadError: the window reaches beyond the run.
        """
        end = total if self.end is None else self.end
        if end > total or self.start >= max(total, 1):
            raise ReadError(
                f"--window {self.start}:{'' if self.end is None else self.end}: the run ends in cycle {total}",
                legal=(f"0:{total}",),
            )
        return self.start, end
