"""The option of `castsim run` that gives the parameters of a tile program their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from castsim.commands.option_parsers import assignments
from castsim.isa.errors import ReadError, Span
from castsim.isa.pto.lexer import PtoSource
from castsim.isa.pto.parameters import parameters, unknown_parameter, with_values
from castsim.isa.sources import Language, Source
from castsim.isa.value_lists import read_value


def with_parameters(texts: Sequence[str], source: Source) -> Source:
    """Return a tile program whose parameters have the values that `--tile NAME=VALUE` gives.

    Raises:
        ReadError: not of this form; a parameter that the program does not declare; a program of another language.
    """
    given = assignments("--tile", texts)
    if source.language is not Language.TILES:
        raise ReadError(f"--tile {texts[0]}: only tile programs have parameters", legal=("a .pto file",))
    known = parameters(PtoSource(source.file, source.text))
    values = {}
    for name, text in given.items():
        typed = f"{name}={text}"
        if name not in known:
            raise unknown_parameter(name, known, source.file, Span("--tile", 1, 1, typed, len(name)))
        values[name] = read_value(text, Span("--tile", 1, len(name) + 2, typed, len(text)))
    return replace(source, text=with_values(source.text, source.file, values))
