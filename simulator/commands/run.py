"""An input is FILE.npy, random:SEED or zeros. Without --out, nothing is written. A binary has its declarations in a
separate file: name it with --declare FILE (the source will do), or put a .decl file beside the binary.

A fragment for a tile target is `tcvt SRC -> DST ROWSxCOLS [MODE] [sat|nosat] [tmp]` or `OPERATION TYPE ROWSxCOLS
[NUMBER]`; separate several with `;`, and each takes the result of the one before. For a TPC target, a fragment is a
list of bundles, one per line.

examples:
  castsim run kernel.pto --in x=x.npy --out results
  castsim run kernel.pto --in x=random:1 --arg rows=128 --json -
  castsim run kernel.pto --timing-only --option vector_head=always
  castsim run kernel.tpc --in x=random:1 --lint
  castsim run kernel.tpc --in x=random:1 --stale-reads stop
  castsim run kernel.c --target gaudi2 --tensor x=f32[64,16] --tensor y=bf16[64,16] --index-space 1,16 --in x=random:0
  castsim run -e 'tcvt f32 -> e4m3fn 16x512 sat' --target a5
  castsim run kernel.bin --declare kernel.tpc --in x=random:1
  castsim run kernel.pto --timing-only --timeline --window 100:180
  castsim run kernel.pto --timing-only --report kernel --show-sync
  castsim run kernel.pto --timing-only --trace kernel.json
  castsim run kernel.pto --in x=random:1 --html kernel.html
  castsim run kernel.pto --timing-only --what-if all
  castsim run kernel.cpp --in x=x.npy --arg n=1024 --all-blocks
  castsim run kernel.py:per_token --in x=x.npy --arg hidden=64
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import (
    declare_arguments,
    declare_c_launch,
    declare_cores,
    declare_engine,
    declare_entry,
    declare_inputs,
    declare_kernel,
    declare_max_cycles,
    declare_opaque,
    declare_output_folder,
    declare_page,
    declare_run_limits,
    declare_target,
    declare_target_options,
    declare_tilelang,
)
from castsim.reports.sections import RUN, further_reports

SUMMARY = "simulate a program: cycles, utilisation, why pipes wait, outputs"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `run`."""
    add = parser.add_argument
    add(
        "program",
        metavar="PROGRAM",
        nargs="?",
        help="a .pto, .tpc, .onnx or .mlir file, a kernel in TPC-C (.c) or in C++ (which is compiled and executed), "
        "FILE.py:FUNCTION for a TileLang kernel (executed), a TPC binary or ELF file; - reads standard input",
    )
    add("-e", "--execute", metavar="TEXT", help="run a fragment instead of a file; inputs are random unless given")
    declare_target(parser)
    declare_entry(parser)
    add(
        "--all-entries",
        action="store_true",
        help="run every function of a .pto file on its own, with a table at the end",
    )
    declare_inputs(parser)
    declare_arguments(parser)
    declare_kernel(parser)
    add("--tile", metavar="NAME=VALUE", action="append", default=[], help="value of a parameter (.pto)")
    declare_output_folder(parser)
    declare_engine(parser)
    add("--no-skip", action="store_true", help="execute every trip of every loop (fast engine; .tpc programs)")
    add("--timing-only", action="store_true", help="compute no values; needs no inputs")
    _declare_unmodelled(parser)
    declare_max_cycles(parser)
    declare_run_limits(parser)
    add(
        "--sync",
        metavar="S",
        default="insert",
        help="programs without flags: insert (default), interlock, barriers, program",
    )
    add("--toolchain", metavar="V", help="assembler of a tile program: older (default), 2026-05 or 2026-07")
    add("--backend", metavar="B", help="A5, f32 to e4m3 and e5m2: library (default, by CTRL), or vpto (clamps)")
    add("--show-sync", action="store_true", help="list the program with the flags and barriers that were inserted")
    add("--races", metavar="R", help="stop at races (default), report them and run (default for C++), or ignore them")
    _declare_views(parser)
    add("--unsafe-scratch", action="store_true", help="let a cast write past a tmp tile that is too small")
    _declare_assembly(parser)
    declare_c_launch(parser)
    declare_tilelang(parser)
    add("--all-blocks", action="store_true", help="run a C++ kernel on each of its cores; the longest is the answer")
    declare_target_options(parser)
    declare_cores(parser)


def _declare_assembly(parser: ArgumentParser) -> None:
    """Add the arguments about programs of bundles."""
    add = parser.add_argument
    add("--lint", action="store_true", help="also check the issue rules (.tpc); certain findings give exit code 1")
    add(
        "--stale-reads",
        metavar="S",
        help="stale reads (.tpc): report them (default), stop at the first, or ignore them",
    )
    add(
        "--declare",
        metavar="FILE",
        help="file with the // castsim: declarations of a binary; default: the .decl beside it",
    )
    add("--machine", metavar="N", help="also accept this ELF machine number")


def _declare_views(parser: ArgumentParser) -> None:
    """Add the arguments about what is shown of a run."""
    add = parser.add_argument
    more = ", ".join(further_reports())
    add("--report", metavar="R", default=RUN, help=f"{RUN} (default), or the same with one more section: {more}")
    add("--timeline", action="store_true", help="show the life of every operation, in the notation of llvm-mca")
    add("--trace", metavar="FILE", help="write a Chrome/Perfetto trace (JSON); one microsecond stands for one cycle")
    declare_page(parser)
    add("--kanata", metavar="FILE", help="write a Kanata log for the Konata viewer")
    add("--window", metavar="A:B", help="cycles to show; default: all, or the first 80 in the timeline")
    add("--what-if", metavar="NAMES", help="run again with a limit lifted: names separated by commas, or all")
    add("--facts", action="store_true", help="list the undocumented facts that the result rests on")


def _declare_unmodelled(parser: ArgumentParser) -> None:
    """Add the arguments about what a program is held to, and what in it is not modelled."""
    add = parser.add_argument
    add("--level", metavar="N", help="require a level of a .pto file: 3, every tile has addr; 1 and 2, none has")
    declare_opaque(parser)
    add("--partial", action="store_true", help="also write outputs with elements that are not computed, with a mask")
