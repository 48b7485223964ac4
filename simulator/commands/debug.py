"""Commands come from the terminal or, one per line, from standard input:

  step                 one operation (of a .tpc: one bundle)
  next                 one source line with all its trips; of a loop or section, all of its body
  continue             up to the next breakpoint, or the end
  reverse-step, reverse-next, reverse-continue
                       the same backwards
  break LINE           stop before the operations of a line (`break LINE if CONDITION` too)
  break cycle N        stop before the first operation that starts in cycle N or later
  break if CONDITION   stop where it comes true: `dst[3,7] is nan`, `acc[0:4,0] >= 448`, `pipe V is waiting`
  print NAME[0:2,3] as FORMAT
                       elements of a tile, tensor or register, a line each; index and format may be left out
  where                where the program stands
  info breakpoints|pipes|names, delete N, list, help, quit

Every stop prints FILE:LINE cycle N: in program order, all operations before the one of that line have been executed,
and it starts in cycle N. Pipes work beside each other, so that cycles do not only rise from stop to stop. At the end N
is the cycles of the run. Exit code 0 at `quit` or at the end of the input, 2 if a command failed.

--dap speaks the Debug Adapter Protocol on standard input and output instead, --dap --port N on a port of this machine.

examples:
  castsim debug kernel.pto --in x=random:1
  castsim debug kernel.tpc --in x=random:1 < commands.txt
  castsim debug --dap
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.limits import declare_elements, declare_limits

SUMMARY = "step through a program, forwards and backwards, also from editors"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `debug`."""
    add = parser.add_argument
    add("program", metavar="PROGRAM", nargs="?", help="a .pto or .tpc file, a TPC binary or ELF file")
    add("--target", metavar="T", help="name or path of a target description; default: the one the program names")
    add("--entry", metavar="F", help="function to run; default: the entry, or the only one")
    add("--in", metavar="NAME=...", dest="inputs", action="append", default=[], help="input of argument NAME")
    add("--arg", metavar="NAME=VALUE", dest="args", action="append", default=[], help="value of a scalar argument")
    add("--engine", metavar="E", help="fast (default), or event: the reference, with the same cycles")
    add("--option", metavar="NAME=VALUE", dest="options", action="append", default=[], help="set a target option")
    add("--declare", metavar="FILE", help="binary: file with its // castsim: declarations")
    add("--dap", action="store_true", help="speak the Debug Adapter Protocol")
    add("--port", metavar="N", help="with --dap: listen on port N of this machine, and serve one editor")
    declare_limits(parser)
    declare_elements(parser, 134217728)
