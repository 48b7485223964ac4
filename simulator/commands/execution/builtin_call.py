"""The execution of `castsim builtin NAME`: the assembly of one builtin, and its values."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from castsim.commands.option_parsers import assignments, scalar
from castsim.commands.outcome import Outcome
from castsim.execution.input_data import make_inputs, read_input, write_array
from castsim.execution.interpreter.arguments import ArgumentUse
from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError
from castsim.isa.formats import format_named
from castsim.reports.builtins import builtin_document
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.builtins import Builtin, emitted
from castsim.tpc_compiler.builtins.calling import call
from castsim.tpc_compiler.builtins.sequences import INPUT, OUTPUT


def emit_or_call(options: Namespace, target: VliwTarget) -> Outcome:
    """Show the assembly of a builtin, and what it makes of the input if there is one.

    Raises:
        ReadError, IllegalError: as `castsim.commands.execution.builtin.execute`.
    """
    found = emitted(options.name, target, rounding=options.rounding)
    x, args = _given(options, found)
    if x is None and options.out is not None:
        raise ReadError("--out has nothing to write without --in", legal=("--in x=FILE.npy|random:SEED|zeros",))
    result = None if x is None else call(found, x, args)
    assembly = found.text(1, args or None) if result is None else result.text
    files = {} if options.out is None or result is None else {OUTPUT: Path(options.out) / f"{OUTPUT}.npy"}
    for name, path in files.items():
        assert result is not None
        write_array(path, result.outputs[name])

    document = builtin_document(found, assembly, result, files)

    def text(_: int) -> Any:
        from castsim.reports.builtins import builtin_text  # noqa: PLC0415 - rich, only if printed
        from castsim.reports.listing import plain_text  # noqa: PLC0415 - as above

        return plain_text(assembly) if options.emit else builtin_text(found, document, result)

    return Outcome(document, text, code=1 if result is not None and result.stale_reads else 0)


def _given(options: Namespace, found: Builtin) -> tuple[Codes | None, Mapping[str, int | float]]:
    """Return the array and the numbers that were given; numbers may stand under --in too.

    Raises:
        ReadError: an unknown name, a number that is none, an input that cannot be read.
    """
    named = found.built.signature.scalar
    numbers = set() if named is None else {named[0]}
    inputs = assignments("--in", options.inputs)
    texts = assignments("--arg", options.args) | {name: inputs.pop(name) for name in numbers & inputs.keys()}
    args = {name: scalar(name, text) for name, text in texts.items()}
    source = found.built.signature.source
    use = ArgumentUse(
        format=format_named(source.format),
        elements=source.elements,
        padded={source.elements},
        shapes={(source.elements,)},
        needs_input=True,
        stored=False,
    )
    text = inputs.get(INPUT, "")
    if text and text != "zeros" and not text.startswith("random:"):
        return read_input(text, INPUT), args  # any number of calls
    return make_inputs(inputs, {INPUT: use}).get(INPUT), args
