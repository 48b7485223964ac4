"""NAME may omit __builtin_cast_; without NAME, the builtins are listed. For a cast, the array x holds the elements of
all source registers one after the other, for one call or several; f16_to_f32 takes f16 codes as uint32 with the upper
halves 0, and warns about any others, such as random ones. --rounding is the build option of the helpers on goya and
gaudi; elsewhere it is the setting of the rounding register. Special functions take arrays of any size: x, y or rc; a
short name will do if it is unique (cos, div_fast). A table that the vendor does not publish is an input too
(rcp=FILE.npy: c0, c1, c2 of each interval); without it, the values are correctly rounded and marked as not claimed.
Functions of tensor descriptors take numbers by --arg. The assembly can be run as it is: castsim run FILE.tpc.

examples:
  castsim builtin i16_to_i8_lin_order --target goya
  castsim builtin i32_to_i16_lin_order --target gaudi2 --in x=random:1 --arg shift=-4 --out results
  castsim builtin f32_to_u8_lin_order --target greco --emit > f32_to_u8.tpc
  castsim builtin __builtin_v_tan_cephes_f32 --target gaudi --in x=random:1 --in rcp=random:2
  castsim builtin get_dim_stride --target gaudi --arg tensor=0 --arg dimension=1
  castsim builtin i16_to_32bits --target gaudib --in x=zeros --option unpacked_lane_order=every_second
"""

from __future__ import annotations

from argparse import Namespace

from castsim.commands.option_parsers import assignments, refuse_given
from castsim.commands.outcome import CommandOutcome, answer
from castsim.commands.shared_options import OptionParser
from castsim.isa.errors import ReadError
from castsim.reports.pages.answer_pages import builtin_list_page
from castsim.reports.targets import BuiltinList
from castsim.targets.description import with_options
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.builtin_sequences import builtin_target, find_function, generations, is_cast


def declare(parser: OptionParser) -> None:
    """Add the arguments of `builtin`."""
    add = parser.add_argument
    add("name", metavar="NAME", nargs="?", help="name of a builtin; default: list all")
    add("--target", metavar="T", help="name or path of a target; default without NAME: all")
    add("--emit", action="store_true", help="print only the assembly")
    parser.take(
        inputs="x=FILE.npy|random:SEED|zeros; y, rc, tables",
        arguments="shift=INTEGER or scale=NUMBER; numbers of a function",
    )
    add("--out", metavar="DIR", help="write the result to DIR/y.npy, or DIR/z.npy for several operands")
    add("--rounding", metavar="M", help="rounding mode, as written in assembly")
    parser.take("target_options")


def execute(options: Namespace) -> CommandOutcome:
    """Print a builtin's assembly, call it on an input, or list all builtins.

    Raises:
        ReadError: the builtin or target is unknown, or an input or number is invalid.
        IllegalError: the target lacks it, or its values are not documented or not modelled.
    """
    if options.name is None:
        refuse_given(options, ("emit", "in", "arg", "out", "rounding", "option"), "needs the name of a builtin")
        return _list(options.target)
    if options.target is None:
        raise ReadError("choose the generation", legal=[f"--target {target.name}" for target in _targets(None)])
    from castsim.commands import builtin_call  # noqa: PLC0415 - a list needs no machine

    chosen = with_options(builtin_target(options.target), assignments("--option", options.options))
    function = None if is_cast(options.name, chosen) else find_function(options.name, chosen)
    if function is not None:
        return builtin_call.emit_or_call_function(options, chosen, function)
    return builtin_call.emit_or_call(options, chosen)


def _list(target: str | None) -> CommandOutcome:
    return answer(builtin_list_page, BuiltinList.of(targets=_targets(target)))


def _targets(name: str | None) -> list[VliwTarget]:
    return [builtin_target(each) for each in ((name,) if name is not None else generations())]
