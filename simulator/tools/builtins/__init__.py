"""The TPC-C builtins: assembly, cost, lane order, values."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _builtin(parser: OptionParser) -> None:
    """NAME may omit __builtin_cast_; without NAME, the builtins are listed. For a cast, the array x holds the
    elements of all source registers one after the other, for one call or several; f16_to_f32 takes f16 codes as
    uint32 with the upper halves 0, and warns about any others, such as random ones. --rounding is the build option
    of the helpers on goya and gaudi; elsewhere it is the setting of the rounding register. Special functions take
    arrays of any size: x, y or rc; a short name will do if it is unique (cos, div_fast). A table that the vendor
    does not publish is an input too (rcp=FILE.npy: c0, c1, c2 of each interval); without it, the values are
    correctly rounded and marked as not claimed. Functions of tensor descriptors take numbers by --arg. The assembly
    can be run as it is: castsim run FILE.tpc.

    examples:
      castsim builtin i16_to_i8_lin_order --target goya
      castsim builtin i32_to_i16_lin_order --target gaudi2 --in x=random:1 --arg shift=-4 --out results
      castsim builtin f32_to_u8_lin_order --target greco --emit > f32_to_u8.tpc
      castsim builtin __builtin_v_tan_cephes_f32 --target gaudi --in x=random:1 --in rcp=random:2
      castsim builtin get_dim_stride --target gaudi --arg tensor=0 --arg dimension=1
      castsim builtin i16_to_32bits --target gaudib --in x=zeros --option unpacked_lane_order=every_second
    """
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


FEATURES = (
    Feature(
        "builtin",
        "TPC tools",
        "show the TPC-C builtins: assembly, cost, lane order, values",
        _builtin,
        "castsim.tools.builtins.command",
        documents=(
            "castsim.reports.targets:BuiltinList",
            "castsim.tools.builtins.builtin_call:BuiltinCall",
            "castsim.tools.builtins.builtin_call:FunctionCall",
            "castsim.tools.builtins.builtin_call:DescriptorCall",
        ),
    ),
)
