"""NAME may leave out __builtin_cast_; without NAME the builtins are listed. The array x holds the elements of all
source registers one after the other, of one call or several; f16_to_f32 takes codes of f16 as uint32, the upper
halves 0, and warns of others, such as random ones. --rounding is the build option of the helpers on goya and
gaudi; elsewhere it is what the rounding register is set to. The assembly runs as it is: castsim run FILE.tpc.

examples:
  castsim builtin i16_to_i8_lin_order --target goya
  castsim builtin i32_to_i16_lin_order --target gaudi2 --in x=random:1 --arg shift=-4 --out results
  castsim builtin f32_to_u8_lin_order --target greco --emit > f32_to_u8.tpc
  castsim builtin i16_to_32bits --target gaudib --in x=zeros --option unpacked_lane_order=every_second
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from simulator.builtins import Builtin
    from simulator.commands.outcome import Outcome
    from targets.vliw import VliwTarget

SUMMARY = "cast builtins of TPC-C: their assembly, operation count, lane order and values"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `builtin`."""
    add = parser.add_argument
    add("name", metavar="NAME", nargs="?", help="a builtin; none lists them")
    add("--target", metavar="T", help="name or path of a target description; without NAME all by default")
    add("--emit", action="store_true", help="print the assembly only")
    add("--in", metavar="NAME=...", dest="inputs", action="append", default=[], help="x=FILE.npy|random:SEED|zeros")
    add("--arg", metavar="NAME=VALUE", dest="args", action="append", default=[], help="shift=INTEGER or scale=NUMBER")
    add("--out", metavar="DIR", help="write the result to DIR/y.npy")
    add("--rounding", metavar="M", help="rounding mode in the words of the assembly")
    add("--option", metavar="NAME=VALUE", dest="options", action="append", default=[], help="set a target option")


def execute(options: Namespace) -> Outcome:
    """Emit a builtin, call it if there is an input, or list them.

    Raises:
        ReadError: unknown builtin or target, a bad input or number.
        IllegalError: the target lacks it, or its values are not documented or not modelled.
    """
    from isa.errors import ReadError  # noqa: PLC0415
    from simulator.builtins.lookup import builtin_target  # noqa: PLC0415
    from simulator.commands.run import assignments  # noqa: PLC0415
    from targets.options import with_options  # noqa: PLC0415

    if options.name is None:
        for option in ("emit", "inputs", "args", "out", "rounding", "options"):
            if getattr(options, option):
                shown = {"inputs": "in", "args": "arg", "options": "option"}.get(option, option)
                raise ReadError(f"--{shown} belongs to one builtin; NAME says which")
        return _list(options.target)
    if options.target is None:
        raise ReadError("--target says on which generation", legal=[target.name for target in _targets(None)])
    chosen = with_options(builtin_target(options.target), assignments("--option", options.options))
    return _one(options, chosen)


def _list(target: str | None) -> Outcome:
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.reports.builtin_lists import listed  # noqa: PLC0415

    targets = _targets(target)

    def text(_: int) -> Any:
        from simulator.reports.builtins_text import builtin_list  # noqa: PLC0415 - rich, only if printed

        return builtin_list(targets)

    return Outcome({"targets": [{"name": each.name, **listed(each)} for each in targets]}, text)


def _targets(name: str | None) -> list[VliwTarget]:
    from simulator.builtins.lookup import builtin_target, generations  # noqa: PLC0415

    return [builtin_target(each) for each in ((name,) if name is not None else generations())]


def _one(options: Namespace, target: VliwTarget) -> Outcome:
    from pathlib import Path  # noqa: PLC0415

    from isa.errors import ReadError  # noqa: PLC0415
    from simulator.builtins import emitted  # noqa: PLC0415
    from simulator.builtins.calling import call  # noqa: PLC0415
    from simulator.builtins.sequences import OUTPUT  # noqa: PLC0415
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.inputs import write_array  # noqa: PLC0415
    from simulator.reports.builtins import builtin_document  # noqa: PLC0415

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
        from simulator.reports.builtins_text import builtin_text  # noqa: PLC0415 - rich, only if printed
        from simulator.reports.listing import plain_text  # noqa: PLC0415

        return plain_text(assembly) if options.emit else builtin_text(found, document, result)

    return Outcome(document, text, code=1 if result is not None and result.stale_reads else 0)


def _given(options: Namespace, found: Builtin) -> tuple[NDArray[Any] | None, Mapping[str, int | float]]:
    """Return the array and the numbers that were given; numbers may stand under --in too.

    Raises:
        ReadError: an unknown name, a number that is none, an input that cannot be read.
    """
    from isa.formats import format_named  # noqa: PLC0415
    from simulator.builtins.sequences import INPUT  # noqa: PLC0415
    from simulator.commands.run import assignments, scalar  # noqa: PLC0415
    from simulator.execution import ArgumentUse  # noqa: PLC0415
    from simulator.inputs import make_inputs, read_array  # noqa: PLC0415

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
        from pathlib import Path  # noqa: PLC0415

        return read_array(Path(text), INPUT), args  # any number of calls
    return make_inputs(inputs, {INPUT: use}).get(INPUT), args
