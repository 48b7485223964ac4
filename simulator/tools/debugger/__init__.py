"""The debugger: stepping through a program, forwards and backwards."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _debug(parser: OptionParser) -> None:
    """Commands come from the terminal or, one per line, from standard input:

      step                 one operation (of a .tpc: one bundle)
      next                 one source line with all its trips; for a loop or section, its body
      continue             up to the next breakpoint, or the end
      reverse-step, reverse-next, reverse-continue
                           the same backwards
      break LINE           stop before the operations of a line (`break LINE if CONDITION` too)
      break cycle N        stop before the first operation that starts in cycle N or later
      break if CONDITION   stop when it is true: `dst[3,7] is nan`, `acc[0:4,0] >= 448`, `pipe V is waiting`
      print NAME[0:2,3] as FORMAT
                           elements of a tile, tensor or register, one per line (index and format optional)
      where                the current position
      info breakpoints|pipes|names, delete N, list, help, quit

    Every stop prints FILE:LINE cycle N: in program order, all operations before the one on that line have been
    executed, and that one starts in cycle N. Pipes work in parallel, so N does not always rise from stop to stop.
    At the end, N is the number of cycles of the run. The exit code is 0 at `quit` or at the end of the input, 2 if
    a command failed.

    --dap speaks the Debug Adapter Protocol on standard input and output instead; --dap --port N uses a local port.

    examples:
      castsim debug kernel.pto --in x=random:1
      castsim debug kernel.tpc --in x=random:1 < commands.txt
      castsim debug kernel.c --target gaudi2 --tensor x=f32[64,16] --tensor y=bf16[64,16] --index-space 1,16 --in x=random:0
      castsim debug --dap
    """  # noqa: E501 - an example is one line
    add = parser.add_argument
    what = "a .pto or .tpc file, a kernel in C or C++, a TPC binary or an ELF file"
    add("program", metavar="PROGRAM", nargs="?", help=what)
    parser.take("target", "entry", "inputs", "arguments", "engine", "target_options", "toolchain", "cores")
    add("--declare", metavar="FILE", help="file with the `// castsim:` declarations of a binary")
    add("--dap", action="store_true", help="speak the Debug Adapter Protocol")
    add("--port", metavar="N", help="with --dap: listen on port N of this machine, and serve one editor")
    parser.take("kernel", "c_launch", "run_limits")


FEATURES = (
    Feature(
        "debug",
        "run and look",
        "step through a program, forwards and backwards",
        _debug,
        "castsim.tools.debugger.command",
        documents=("castsim.tools.debugger.stepping:Debug",),
        interactive=True,
    ),
)
