"""The part of a `castsim run` document that a comparison reads; the other keys are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from castsim.isa.errors import ReadError

Count = Annotated[int, Field(ge=0, lt=1 << 63)]
"""A count. JSON sets no limit, and computations with it must end."""

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class RecordedInstruction(BaseModel):
    """Executions of an instruction."""

    line: Count
    op: str
    pipe: str
    start_cycle: Count
    end_cycle: Count
    executions: Count = 1


class RecordedLine(BaseModel):
    """The cycles of a line of a kernel or a launch."""

    line: Count | None
    op: str
    cycles: Count
    causes: dict[str, Count]


class RecordedLaunches(BaseModel):
    """The launches of a line."""

    lines: list[RecordedLine]


class RecordedKernel(BaseModel):
    """The lines of a kernel."""

    lines: list[RecordedLine]


class RecordedPipe(BaseModel):
    """The cycles of a pipe."""

    causes: dict[str, Count]


class RecordedOutput(BaseModel):
    """An output array."""

    name: str
    file: str | None
    format: str
    shape: list[Count]
    sha256: str


class RecordedRun(BaseModel):
    """The part of the document that a comparison reads; the other keys are ignored."""

    program: str
    entry: str | None
    target: str
    total_cycles: Count | None
    seconds: Seconds | None
    pipes: dict[str, RecordedPipe] | None
    instructions: list[RecordedInstruction] | None
    launches: list[RecordedLaunches] = Field(default_factory=list)
    kernel: RecordedKernel | None = None
    outputs: list[RecordedOutput]
    outputs_not_computed: list[RecordedOutput] = Field(default_factory=list)


def read_run(content: Mapping[str, object]) -> RecordedRun:
    """Return the needed part of a document.

    Raises:
        ReadError: a value is missing or has the wrong type.
    """
    try:
        return RecordedRun.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        raise ReadError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
