"""What the TPC compiler makes of casts of C and LLVM IR."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _compiled(parser: OptionParser) -> None:
    """SRC is a text of LLVM IR (.ll), of which every cast is shown, calls of llvm.tpc.*.swch among them; or SRC and DST
    are vector types of TPC-C (float128, short128, bfloat128, uchar256, ...) or formats (f32, i16); without a number of
    elements, a format means one register of the narrower side. A VALUE is a decimal, nan, inf, or 0x followed by the
    bits of SRC. The result is what the emitted assembly computes on the machine. --form chooses how the program writes
    the cast: as (as_T(x), with --rounding as_T(x, mode); in a kernel in C, as_T(x) without a mode keeps the bits of
    equal widths), implicit (an assignment: promotions only), explicit ((T)x), reinterpret (the same bits), ir (an LLVM
    IR cast in the compiler's own instructions, with its defined result beside it), convert_to (convert_T_to_U(x, mode):
    one instruction, which keeps its order of lanes). Where the vendor's compiler and document differ, both are shown.
    --order swizzle leaves the lanes as all_lanes puts them, lane converts one register to one, and scalar converts one
    element in scalar registers, where the compiler has shortcuts of its own. --table prints the C-level casts of a
    generation.

    examples:
      castsim compiled f32 u16 40000 70000 -1.5 --target gaudi
      castsim compiled float128 short128 2.5 --target gaudi --rounding SW_RZ
      castsim compiled f32 i32 0.75 2.5 nan --target gaudi --form ir
      castsim compiled f32 u16 --target greco --form ir --order scalar --emit
      castsim compiled bf16 f32 --target gaudi --emit
      castsim compiled casts.ll 2.5 --target gaudi
      castsim compiled --table --target gaudi
    """
    add = parser.add_argument
    add("src", metavar="SRC", nargs="?", help="vector type or format of the argument, or a file (.ll)")
    add("dst", metavar="DST", nargs="?", help="vector type or format of the result")
    add("values", metavar="VALUE", nargs="*", help="number, nan, inf, -inf, or 0x bits")
    add("--target", metavar="T", required=True, help="name or path of a TPC target")
    add("--form", metavar="F", default="as", help="as (default), implicit, explicit, reinterpret, convert_to, ir")
    what = "mode of as_T(x, mode), if supported: SW_RHNE, SW_RZ, SW_RU, SW_RD, SW_SR, SW_CSR, SW_RHAZ, SW_SR_RNE"
    add("--rounding", metavar="M", help=what)
    what = "source of the chain: compiler (default), document, or scalar with --order scalar"
    add("--reading", metavar="R", default="compiler", help=what)
    add("--order", metavar="O", default="linear", help="order of the result: linear (default), swizzle, lane or scalar")
    add("--emit", action="store_true", help="print the assembly of the cast")
    add("--table", action="store_true", help="print the table of C-level casts of the target as Markdown")


FEATURES = (
    Feature(
        "compiled",
        "TPC tools",
        "show how the TPC compiler makes casts of C and LLVM IR: chains, values, assembly",
        _compiled,
        "castsim.tools.compiled.command",
        documents=(
            "castsim.tools.compiled.command:CompiledValues",
            "castsim.tools.compiled.command:CompiledAssembly",
            "castsim.tools.compiled.command:CompiledTable",
            "castsim.tools.compiled.command:CompiledText",
        ),
    ),
)
