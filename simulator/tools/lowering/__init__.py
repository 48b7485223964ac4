"""Planning of casts: the chain of a target's instructions that meets a specification, proven or refuted.

planned = plan(CastRequest("f16", "i8", "a5", spec="tosa"))
planned.verdict, planned.chain, planned.cost.cycles_per_element, planned.text, planned.counterexample
"""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _lower(parser: OptionParser) -> None:
    """Searches chains of up to four of the target's instructions for one that gives what a specification asks of a
    cast, proves the best one on every code of SRC where possible, and writes it as a program for `castsim run`. If
    there is none, the chain that fails least is shown with the smallest value on which it fails and every
    intermediate value, and the exit code is 1. --spec is NAME@VERSION:ATTRIBUTE=VALUE:..., exact (default), tosa,
    onnx or a path. --rounding and --saturate ask for more than the specification does. --via judges the chain
    through the given formats, each optionally followed by the rounding mode of the instruction that produces it;
    the destination may be listed last.

    --option sets an option of the target, as in `castsim run`. Where nothing conforms without further options,
    those that a program or its launcher can set, such as mode bits (`castsim targets T` lists them), are searched
    too, one at a time and then in pairs: single instructions first, then chains. A result that needs no further
    options takes precedence; if it is a chain and a single instruction would do with options, a line says so. With
    --via, and for options about uncertain points of the hardware, nothing is searched: they are used as given.

    DST may be a block format (mxfp8_e4m3, ...; see castsim quantise): the answer is the operation of the target
    that makes it, or a chain of operations, with the rule of its scales, cycles and program, or why there is none
    (exit code 1).

    Without SRC and DST every cast of the specification is lowered: a matrix of one target in which every verdict is
    proven where that is possible. --out names a folder, which gets a program for each cast that has one, and the
    exit code is 1 if a cast has none that conforms. Use --workers or --scheduler to compute in parallel and
    --ledger FILE to continue after an interruption; FILE is removed once the results are written.

    examples:
      castsim lower f16 i8 --spec tosa --target a5
      castsim lower f32 u16 --spec onnx --saturate --target gaudi --out f32_to_u16.tpc
      castsim lower i32 bf16 --spec tosa --target a5 --json -
      castsim lower f16 i8 --spec tosa --target greco --via bf16:rhne i8:rhne
      castsim lower f32 bf16 --spec tosa --target a5 --option ctrl_48_at_start=1
      castsim lower f32 mxfp8_e4m3 --target a5
      castsim lower --spec tosa --target gaudi2 --out programs --workers 2 --ledger tosa.ledger
    """
    add = parser.add_argument
    what = "format of the source; default: lower all casts of --spec"
    add("src", metavar="SRC", nargs="?", help=what)
    add("dst", metavar="DST", nargs="?", help="format of the results, or block format")
    parser.take("required_target")
    add("--spec", metavar="S", help="specification: exact (default), tosa, onnx, or a path")
    add("--rounding", metavar="M", help="rounding mode of results in range")
    add("--saturate", action="store_true", help="clamp results out of range")
    add("--via", metavar="F[:M]", nargs="+", help="judge the chain through these formats, each with an optional mode")
    parser.take("target_options")
    add("--rows", metavar="R", default="16", help="rows of the tensor that the program converts; default: 16")
    add("--cols", metavar="C", default="256", help="columns of the tensor; default: 256")
    add("--steps", metavar="N", default="4", help="search chains of up to N instructions, 1 to 4; default: 4")
    add("--out", metavar="FILE", help="write the program to FILE, or print only it with -; for all casts: a folder")
    parser.take("page", "workers", ledger="finished casts")


def _conform(parser: OptionParser) -> None:
    """Plans every legal cast of a specification on every target, as `castsim lower` would: native, native with
    options, a chain and its cost, or none found and why. --option, which may be repeated, and the search for target
    options work as in `castsim lower`. A verdict that only a run of all codes of 32 bits could prove rests on
    samples, unless --prove is given. --markdown prints a page. A full run takes many minutes; --src, --dst and
    --target narrow it down. Use --workers or --scheduler to compute in parallel and --ledger FILE to continue after
    an interruption; FILE is removed once the results are written.

    examples:
      castsim conform --spec tosa --target a5 --src f32
      castsim conform --spec tosa --target a5 --src f32 --dst f16 --option ctrl_48_at_start=1
      castsim conform --spec tosa --target a2a3 a5 --src f16 --html matrix.html
      castsim conform --spec onnx@19 --target a2a3 gaudi2 --dst e4m3fn
      castsim conform --spec tosa --markdown --workers 2 > conformance.md
      castsim conform --spec onnx --scheduler tcp://host:8786 --ledger onnx.ledger --json onnx.json
    """
    add = parser.add_argument
    add("--spec", metavar="S", required=True, help="specification: tosa, onnx or a path, optionally with @VERSION")
    parser.take(targets="names or paths of target descriptions; default: all shipped")
    add("--src", metavar="F", help="plan only casts from this format")
    add("--dst", metavar="F", help="plan only casts to this format")
    parser.take("target_options", "workers", ledger="finished cells")
    add("--prove", action="store_true", help="try all codes of 32-bit sources where nothing else proves the verdict")
    add("--markdown", action="store_true", help="print the matrix as Markdown")
    parser.take("page")


FEATURES = (
    Feature(
        "lower",
        "casts and specifications",
        "find the instructions for a specification's cast: proof, cost, program",
        _lower,
        "castsim.tools.lowering.command",
        documents=(
            "castsim.tools.lowering.report:Lower",
            "castsim.tools.lowering.conform:LoweredMatrix",
            "castsim.tools.lowering.block_lowering:LoweredBlocks",
        ),
    ),
    Feature(
        "conform",
        "casts and specifications",
        "plan every cast of a specification on every target",
        _conform,
        "castsim.tools.lowering.conform",
        documents=("castsim.tools.lowering.conform:Conform",),
    ),
)
