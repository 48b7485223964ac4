"""A program of tile operations as the vector instructions that its target executes."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _expand(parser: OptionParser) -> None:
    """Prints the vector instructions that the A5 or the A2/A3 executes for a function of tile operations: each
    operation becomes the vecscope of the vector function chosen by its lowering, on A2/A3 its pto.strided
    statements; tloads and tstores become transfers, and flags missing from the source are added. The entry and its
    arguments keep their names, so the same --in and --arg apply, and running the result gives the same bytes. Loops
    stay loops. Scalar arguments stay arguments on the A5, and choices that depend on them are made when the text is
    run; if --arg gives all of them, as the A2/A3 needs, the choices are made here. An operation that has no
    instructions is rejected with its location.

    A function of logical registers (pto.vmi) is printed as the vector instructions that castsim makes of it, and so
    is a kernel of TileLang, whose file is executed for it.

    --option sets an option of the target, as in `castsim run`; the output itself names the options it needs.

    examples:
      castsim expand programs/a5_bf16_to_e2m1.pto
      castsim expand kernel.py:per_token --arg num_tokens=32
      castsim expand programs/a5_bf16_to_e2m1.pto --option ctrl_60_at_start=1 -o micro.pto
    """
    add = parser.add_argument
    add("file", metavar="FILE", help="a .pto program of tile operations, or KERNEL.py:FUNCTION; - reads stdin")
    parser.take("target")
    add("--entry", metavar="F", help="function to expand; default: the entry")
    parser.take("arguments", "target_options", "tilelang")
    add("-o", "--out", metavar="FILE", help="write the program to FILE; default: standard output")
    parser.take("page")


FEATURES = (
    Feature(
        "expand",
        "run and look",
        "show a tile program as the vector instructions that the A5 executes",
        _expand,
        "castsim.tools.expand.command",
        documents=("castsim.tools.expand.page:Expanded",),
        pages=("castsim.tools.expand.page",),
    ),
)
