"""The commands of the core: their options, help and documents."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _run(parser: OptionParser) -> None:
    """An input is FILE.npy, random:SEED or zeros. Without --out, nothing is written. A binary has its declarations
    in a separate file: name it with --declare FILE (the source will do), or put a .decl file beside the binary.

    A fragment for a tile target is `tcvt SRC -> DST ROWSxCOLS [MODE] [sat|nosat] [tmp]` or `OPERATION TYPE
    ROWSxCOLS [NUMBER]`; separate several with `;`, and each takes the result of the one before. For a TPC target, a
    fragment is a list of bundles, one per line.

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
    """  # noqa: E501 - an example is one line
    add = parser.add_argument
    what = (
        "a .pto, .tpc, .onnx or .mlir file, a kernel in TPC-C (.c) or C++ (compiled and executed), "
        "FILE.py:FUNCTION for a TileLang kernel, a TPC binary or an ELF file; - reads standard input"
    )
    add("program", metavar="PROGRAM", nargs="?", help=what)
    add("-e", "--execute", metavar="TEXT", help="run a fragment instead of a file, with random inputs unless given")
    parser.take("target", "entry")
    what = "run each function of a .pto file alone, and print a table"
    add("--all-entries", action="store_true", help=what)
    parser.take("inputs", "arguments", "kernel")
    add("--tile", metavar="NAME=VALUE", action="append", default=[], help="value of a parameter (.pto)")
    parser.take("output_folder", "engine")
    add("--no-skip", action="store_true", help="execute every trip of every loop (fast engine, .tpc programs)")
    add("--timing-only", action="store_true", help="count cycles without computing values; needs no inputs")
    add("--level", metavar="N", help="require level 3 (every tile of the .pto file has addr), or 1 or 2 (none has)")
    parser.take("opaque")
    add("--partial", action="store_true", help="also write outputs that are computed in part, each with a mask")
    parser.take("max_cycles", "run_limits")
    what = "synchronise programs without flags: insert (default), interlock, barriers, program"
    add("--sync", metavar="S", default="insert", help=what)
    add("--toolchain", metavar="V", help="assembler of a tile program: older (default), 2026-05, 2026-07 or 2026-08")
    add(
        "--backend", metavar="B", help="A5 casts f32 -> e4m3 and e5m2: library (default, follows CTRL) or vpto (clamps)"
    )
    add("--show-sync", action="store_true", help="list the program with the inserted flags and barriers")
    add("--emit-sync", metavar="FILE", help="save the program (.pto) with the inserted flags and barriers")
    add("--races", metavar="R", help="races: stop (default), report (default for C++) or ignore")
    from castsim.reports.sections import FULL, RUN, further_reports  # noqa: PLC0415 - all that a help knows of reports

    more = ", ".join(further_reports())
    what = f"{RUN} (default): one screen; {FULL}: every section; or one screen and one more section: {more}"
    add("--report", metavar="R", default=RUN, help=what)
    add("--timeline", action="store_true", help="show when each line executes, scaled to the width, or the --window")
    add("--trace", metavar="FILE", help="write a Chrome/Perfetto trace (JSON), in which a cycle lasts one microsecond")
    parser.take("page")
    add("--window", metavar="A:B", help="cycles to show, one column per cycle in the timeline; default: all")
    add("--what-if", metavar="NAMES", help="run again with each limit lifted: names separated by commas, or all")
    add("--facts", action="store_true", help="list the undocumented facts behind the result")
    add("--unsafe-scratch", action="store_true", help="let a cast write past a tmp tile that is too small")
    add("--lint", action="store_true", help="also check the issue rules (.tpc); exit with 1 if one is certainly broken")
    what = "stale reads (.tpc): report (default), stop or ignore"
    add("--stale-reads", metavar="S", help=what)
    what = "file with the `// castsim:` declarations of a binary; default: its .decl file"
    add("--declare", metavar="FILE", help=what)
    add("--machine", metavar="N", help="accept this ELF machine number too")
    parser.take("c_launch", "tilelang")
    add("--all-blocks", action="store_true", help="run a C++ kernel on each of its cores, and report the slowest")
    parser.take("target_options", "cores")


def _cast(parser: OptionParser) -> None:
    """A VALUE is a decimal (1.5, -3e-8), a ratio (1/3), a hexadecimal float (0x1.8p+3), nan, inf, -inf, or 0x
    followed by the bits of SRC. A number is first rounded to the nearest value of SRC. Without --target, the cast
    is abstract: one exact rounding, then --overflow. With a target, it is the chip's own behaviour, including its
    defaults and fallbacks. Options may be repeated or take lists: --rounding rint odd. --target all shows the
    abstract cast side by side with every target that has the pair and highlights results that differ from the
    abstract one; ulps counts the steps from the abstract result to theirs. Where a chip gives tiles whose rows go
    on behind their valid columns (2d) other bits than contiguous ones (1d), both are shown. --spec adds what a
    specification accepts, as NAME@VERSION:ATTRIBUTE=VALUE:..., and says which results conform to it.

    The format string is text as ONNX Cast has it: numbers are read from VALUEs (3.14, 1e-5, INF, -INF, NaN), or
    written as plain decimals.

    examples:
      castsim cast f32 f16 65520 -1.5 nan
      castsim cast f32 e4m3fn 448.5 0x43e80000 --rounding rint trunc --overflow saturate
      castsim cast f32 i16 40000 -inf --target a2a3 --saturation off --scratch
      castsim cast f32 f16 65520 1e-8 nan --target all --rounding rint odd
      castsim cast f32 e4m3fn 480 nan --target a5 --spec tosa onnx@24:saturate=0
      castsim cast string f32 1e-5 +INF 100.5
      castsim cast f32 string 314.15926
    """
    add = parser.add_argument
    add("src", metavar="SRC", help="format of the values")
    add("dst", metavar="DST", help="format to cast to")
    add("values", metavar="VALUE", nargs="+", help="number, nan, inf, -inf, or 0x bits")
    what = "name or path of a target, all, or abstract (default)"
    add("--target", metavar="T", action="append", default=[], help=what)
    add("--rounding", metavar="M", action="append", default=[], help="rounding mode; default: the cast's own")
    add("--overflow", metavar="O", action="append", default=[], help="saturate, wrap or special; not with --target")
    add("--saturation", metavar="on|off", help="saturation switch of the target")
    what = "judge the results by a specification: tosa, onnx, exact, or a path"
    add("--spec", metavar="S", action="append", default=[], help=what)
    add("--scratch", action="store_true", help="give the target's cast a tmp tile")
    parser.take(target_options="set an option of the targets that have it")


def _formats(parser: OptionParser) -> None:
    """Without NAME, all formats are listed. A NAME is a format or one of its aliases, in any case. A target is
    listed if it casts from or to the format. f8_143@BIAS has the exponent bias BIAS, 0 to 15.

    examples:
      castsim formats
      castsim formats e4m3 f8_143@11
      castsim formats --json formats.json
    """
    parser.add_argument("names", metavar="NAME", nargs="*", help="a format; default: all")


def _targets(parser: OptionParser) -> None:
    """NAME is a shipped target or specification, or the path of a description (a name ending in .toml).

    examples:
      castsim targets
      castsim targets a2a3
      castsim targets my.toml f32 f16
      castsim targets --diff a2a3 a5
      castsim targets --template a5 > chip.toml
      castsim targets tosa f32 e4m3fn
    """
    what = "a target or specification, optionally with one of its type pairs"
    parser.add_argument("what", metavar="NAME SRC DST", nargs="*", help=what)
    what = "compare the casts of two targets side by side"
    parser.add_argument("--diff", metavar=("A", "B"), nargs=2, help=what)
    parser.add_argument("--template", metavar="T", help="print the description of a target as a template for another")
    parser.take("page")


def _scratch(parser: OptionParser) -> None:
    """R, C and S take a number or, with --sweep, a range FIRST:LAST[:STEP]. Without --row-stride, each row starts
    at the next whole block. Given a program instead of two formats, it shows the smallest tmp tile for each cast
    and the one that serves them all; given all, the size that serves every cast of a shape (tmpSizeAllBytes). A
    sweep covers up to 1000000 shapes and shows its progress from 10000 shapes on.

    examples:
      castsim scratch f32 i16 --rows 4 --cols 200 --row-stride 256
      castsim scratch f16 i8 --rows 8 --cols 160 --audit
      castsim scratch all --rows 4 --cols 200 --row-stride 256
      castsim scratch f32 i16 --rows 0:300:50 --cols 0:256 --row-stride 8:512:8 --sweep
      castsim scratch kernel.pto --arg rows=128
    """
    add = parser.add_argument
    add("what", metavar="SRC DST | all | PROGRAM", nargs="+", help="two formats, all casts, or a .pto file")
    add("--rows", metavar="R", help="valid rows")
    add("--cols", metavar="C", help="valid columns")
    add("--row-stride", metavar="S", help="row stride of the source tile in elements")
    add("--rounding", metavar="M", help="rounding mode of the cast")
    add("--target", metavar="T", help="name or path of a target; default: the one the program names, or a2a3")
    add("--entry", metavar="F", help="name of a function of the program")
    parser.take(arguments="scalar argument of the program")
    parser.take("walk")
    add("--audit", action="store_true", help="compare with the bytes that a run touches")
    add(
        "--sweep", action="store_true", help="audit every shape of the ranges, and list where formula and extent differ"
    )
    parser.take("page")


FEATURES = (
    Feature(
        "run",
        "run and look",
        "run a program: cycles, the limiting pipe, why pipes wait, outputs",
        _run,
        "castsim.commands.run",
        documents=(
            "castsim.reports.run_findings:Run",
            "castsim.reports.schemas.keys:AllEntries",
            "castsim.tools.graphs.graph_text:Graph",
        ),
        start="castsim run kernel.pto --in x=random:1",
    ),
    Feature(
        "cast",
        "casts and specifications",
        "show what values become in another format: bits and numbers per target and mode",
        _cast,
        "castsim.commands.cast",
        documents=(
            "castsim.reports.value_casts:CastResults",
            "castsim.reports.value_casts:CastText",
        ),
        start="castsim cast f32 e4m3fn 448.5 nan --target a5",
    ),
    Feature(
        "formats",
        "casts and specifications",
        "list the number formats: widths, limits, special values, names, targets",
        _formats,
        "castsim.commands.targets",
        documents=("castsim.reports.pairs:FormatsList",),
        function="execute_formats",
    ),
    Feature(
        "targets",
        "casts and specifications",
        "list targets and specifications, or show the casts, facts and options of one",
        _targets,
        "castsim.commands.targets",
        documents=(
            "castsim.reports.targets:TargetsList",
            "castsim.reports.targets:TargetDescription",
            "castsim.reports.pairs:TargetPair",
            "castsim.reports.targets:TargetsDiff",
            "castsim.reports.targets:SpecificationDescription",
            "castsim.reports.targets:SpecificationPair",
        ),
        pages=("castsim.reports.pages.answer_pages",),
        start="castsim targets a5",
    ),
    Feature(
        "scratch",
        "casts and specifications",
        "show how large a tmp tile a cast needs, and which bytes it touches",
        _scratch,
        "castsim.commands.scratch",
        documents=(
            "castsim.reports.scratch:Scratch",
            "castsim.reports.scratch:EveryScratch",
            "castsim.reports.scratch:ScratchSweep",
            "castsim.reports.scratch:ProgramScratch",
        ),
        pages=("castsim.reports.scratch",),
    ),
)
