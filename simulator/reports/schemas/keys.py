"""What the models of documents are made of: closed objects, units, keys that may be absent."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Never, TypeAlias, Unpack

from pydantic import BaseModel, ConfigDict, Field

from castsim.reports.documents import identifier
from castsim.timing import Cause


def says(text: str, **further: Any) -> Any:  # as pydantic's own function, whose result stands for every type
    """Return a field that tells what its key means."""
    return Field(description=text, **further)


class Keys(BaseModel):
    """A JSON object that has these keys and no others; the text beside or under a key says what it means."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Form(Keys):
    """A document that a command writes; `name` of its class is its own."""

    NAME: ClassVar[str]
    """By which `castsim.reports.documents.VERSIONS` knows it."""

    def __init_subclass__(cls, *, name: str = "", **further: Unpack[ConfigDict]) -> None:
        super().__init_subclass__(**further)
        if name:  # else what several forms have in common
            cls.NAME = name

    schema_version: int = says("Version of the shape of this document; it grows with every change of the shape.")


def absent() -> Never:
    """Stand for the value of a key that is left out: there is none."""
    raise LookupError("a key that is not there has no value")


Cycles: TypeAlias = Annotated[int, Field(json_schema_extra={"unit": "cycles"})]
Bundles: TypeAlias = Annotated[int, Field(json_schema_extra={"unit": "bundles"})]
Bytes: TypeAlias = Annotated[int, Field(json_schema_extra={"unit": "bytes"})]
Elements: TypeAlias = Annotated[int, Field(json_schema_extra={"unit": "elements"})]
Seconds: TypeAlias = Annotated[float, Field(json_schema_extra={"unit": "seconds"})]
Percent: TypeAlias = Annotated[float, Field(json_schema_extra={"unit": "percent"})]
Ulps: TypeAlias = Annotated[int, Field(json_schema_extra={"unit": "ulps"})]

Line: TypeAlias = Annotated[int, Field(ge=1)]
"""A line of a source file, from 1."""

Column: TypeAlias = Annotated[int, Field(ge=1)]
"""A column of a source line in code points, from 1."""

Name: TypeAlias = Annotated[str, Field(pattern=r"^\S+$")]
"""The key of an object whose keys are names: without blanks."""

CauseName: TypeAlias = Annotated[str, Field(json_schema_extra={"enum": [identifier(cause) for cause in Cause]})]
"""A cause of cycles."""

Bits: TypeAlias = Annotated[str, Field(pattern="^0x[0-9a-f]+$")]
"""A code in hexadecimal."""

Hexadecimal: TypeAlias = Annotated[str, Field(pattern="^([0-9a-f]{2})*$")]
"""Bytes in hexadecimal, two digits each."""

Sha256: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
"""A SHA-256 digest in hexadecimal."""

Date: TypeAlias = Annotated[str, Field(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
"""A day."""

Special: TypeAlias = Annotated[str, Field(json_schema_extra={"enum": ["nan", "inf", "-inf"]})]

Value: TypeAlias = int | float | Special
"""A number; JSON has no NaN and no infinities, which are words."""

Scalar: TypeAlias = bool | int | float | str
"""The value of an option or of an attribute."""
