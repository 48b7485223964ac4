"""From what is asked for to a study: the kernel is read, its parameters and the choices are matched; `tune`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import castsim
from castsim.execution.limits import DEFAULT_LIMITS, Limits
from castsim.exploration.tuning.ledger import Ledger
from castsim.exploration.tuning.points import Study
from castsim.exploration.tuning.searching import ALL, MOST_SIMULATED, Tuning, search
from castsim.exploration.tuning.space import Axis, Kind, Space, read_axes, read_condition
from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError
from castsim.isa.expressions import Value
from castsim.isa.pto.lexer import PtoSource
from castsim.isa.pto.parameters import parameters, unknown_parameter
from castsim.isa.reading import is_file
from castsim.isa.sources import Language, read_source
from castsim.running import MAX_CYCLES
from castsim.targets import Target
from castsim.timing import ProgressCallback

Several = int | float | str | Sequence[Value | float]
"""A value, or several to choose from."""


def study_of(
    program: Path,
    axes: Sequence[Axis],
    where: Sequence[str] = (),
    *,
    target: str | Path | Target | None = None,
    entry: str | None = None,
    args: Mapping[str, int | float] | None = None,
    options: Mapping[str, str] | None = None,
    inputs: Mapping[str, Codes | str] | None = None,
    sync: str = "insert",
    engine: str | None = None,
    max_cycles: int = MAX_CYCLES,
    limits: Limits = DEFAULT_LIMITS,
) -> Study:
    """Return the study of a kernel; parameters of which nothing is said take the values that the program proposes.

    Raises:
        ReadError: the program cannot be read; a tile choice that is none of its parameters; as `Space.of`.
    """
    source = read_source(program, lambda: False)
    known = parameters(PtoSource(source.file, source.text)) if source.language is Language.TILES else {}
    for axis in axes:
        if axis.kind is Kind.TILE and axis.name not in known:
            raise unknown_parameter(axis.name, known, source.file, axis.span)
    named = {axis.name for axis in axes if axis.kind is Kind.TILE}
    proposed = [Axis(Kind.TILE, each.name, each.values, each.span) for each in known.values()
                if each.values and each.name not in named]  # fmt: skip
    fixed = {name: each.default for name, each in known.items() if name not in named and not each.values}
    space = Space.of([*axes, *proposed], [read_condition(text) for text in where], {**fixed, **(args or {})})
    return Study(
        source, space, target, entry, args or {}, options or {}, inputs or {}, sync, engine, max_cycles, limits
    )


def about(study: Study) -> dict[str, str]:
    """Return the digests of all that rows depend on, by what each is of; choices and conditions are not among it."""
    settings = {
        "entry": study.entry,
        "args": dict(study.args),
        "options": dict(study.options),
        "sync": study.sync,
        "max_cycles": study.max_cycles,
        "walk": study.limits.max_walk,
    }
    named = [str(value) for axis in study.space.axes if axis.kind is Kind.TARGET for value in axis.values]
    targets = [*map(_content, named), *([] if study.target is None else [_described(study.target)])]
    return {
        "program": _digest(study.source.text.encode(), study.source.data),
        "settings": _digest(json.dumps(settings, sort_keys=True).encode()),
        "target": _digest(*filter(None, targets)),
        "inputs": _digest(
            *(part for name, given in sorted(study.inputs.items()) for part in (name.encode(), _given(given)))
        ),
        "version of castsim": castsim.__version__,
    }


def _digest(*parts: bytes | memoryview) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.hexdigest()


def _content(name: str) -> bytes:
    """Return the content of a target description; of a shipped one nothing: the version says what it is."""
    path = Path(name)
    return path.read_bytes() if path.suffix == ".toml" and is_file(path) else b""


def _described(target: str | Path | Target) -> bytes:
    """Return what a target is, as far as the version does not say it."""
    if isinstance(target, str | Path):
        return _content(str(target)) or str(target).encode()
    return repr(target).encode()


def _given(given: Codes | str) -> bytes | memoryview:
    """Return the bytes of an input, those of a file mapped: it may be larger than memory."""
    if not isinstance(given, str):
        return np.ascontiguousarray(given).tobytes()
    path = Path(given)
    return np.memmap(path, np.uint8, "r").data if is_file(path) and path.stat().st_size else given.encode()


def tune(
    program: str | Path,
    tile: str | Sequence[str] | Mapping[str, Sequence[Value]] = (),
    *,
    where: str | Sequence[str] = (),
    args: Mapping[str, Several] | None = None,
    options: Mapping[str, Several] | None = None,
    target: str | Path | Target | Sequence[str] | None = None,
    entry: str | None = None,
    inputs: Mapping[str, Codes | str] | None = None,
    simulate: int | str = MOST_SIMULATED,
    sync: str = "insert",
    engine: str | None = None,
    max_cycles: int = MAX_CYCLES,
    max_walk: int | None = None,
    resume: str | Path | None = None,
    progress: ProgressCallback = lambda *_: None,
) -> Tuning:
    """Search the choices of a parametrised kernel for fewest cycles and fewest bytes of the tile buffer.

    Every point gets a lower bound of its cycles without being simulated; then the most promising ones are simulated,
    until no other can be faster or smaller, or as many are as `simulate` allows.

    Args:
        program: path of a `.pto` file with parameters (docs/reference/pto.md section 3.6), or of any program where
            only arguments, options or targets are to choose from.
        tile: what `--tile` takes, `R in 8..64, C in 128,256`, or values by parameter. Parameters that are not named
            take the values that the program proposes, or else their default.
        where: conditions such as `R*C*4 <= 65536`.
        args: scalar arguments: a number, or several to choose from.
        options: options of the target, in the same way.
        target: a target, or names of several to choose from.
        entry: function to run.
        inputs: as `castsim.run` takes them; with them values are computed and outputs compared between points.
        simulate: points to simulate at most; `all`: every one.
        sync, engine, max_cycles, max_walk: as `castsim.run` takes them.
        resume: file that keeps what is done; if it is there, the search goes on from it.
        progress: hears the stage, what of it is done, and how much it is.

    Returns:
        The points that were simulated, in cycles and bytes, and what is known of the others.

    Raises:
        ReadError: the program, the choices or a condition cannot be read; the space is empty; the ledger is about
            something else.
    """
    axes = _tile_axes(tile)
    fixed_args, fixed_options = {}, {}
    for name, given in (args or {}).items():
        if isinstance(given, int | float):
            fixed_args[name] = given
        else:
            axes.append(Axis(Kind.ARGUMENT, name, tuple(given)))
    for name, given in (options or {}).items():
        if isinstance(given, int | float | str):
            fixed_options[name] = str(given)
        else:
            axes.append(Axis(Kind.OPTION, name, tuple(given)))
    if isinstance(target, Sequence) and not isinstance(target, str):
        axes.append(Axis(Kind.TARGET, "target", tuple(target)))
        target = None
    if simulate != ALL and (not isinstance(simulate, int) or simulate < 1):
        raise ReadError(f"simulate={simulate!r}: not a number of points", legal=("1 or more", ALL))
    study = study_of(
        Path(program), axes, [where] if isinstance(where, str) else where, target=target, entry=entry, args=fixed_args,
        options=fixed_options, inputs=inputs, sync=sync, engine=engine, max_cycles=max_cycles,
        limits=Limits(max_walk=max_walk),
    )  # fmt: skip
    ledger = None if resume is None else Ledger.opened(Path(resume), about(study))
    return search(study, simulate, ledger, progress)


def _tile_axes(tile: str | Sequence[str] | Mapping[str, Sequence[Value]]) -> list[Axis]:
    if isinstance(tile, Mapping):
        return [Axis(Kind.TILE, name, tuple(values)) for name, values in tile.items()]
    return [axis for text in ([tile] if isinstance(tile, str) else tile) for axis in read_axes(Kind.TILE, text)]
