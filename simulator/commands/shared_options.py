"""The options that several commands share, each declared once: its name, its placeholder and its help.

The numbers in the help are those of `castsim.execution.run_limits` and `castsim.graphs.graph_execution`, written out: a
declaration is read at every start of the command line, and may not import what the work needs.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError


def declare_target(parser: ArgumentParser, default: str = "the one the program names") -> None:
    """Add `--target`; `default` says which target is meant without it."""
    parser.add_argument("--target", metavar="T", help=f"name or path of a target description; default: {default}")


def declare_required_target(parser: ArgumentParser) -> None:
    """Add `--target` for a command that reads no program which could name one."""
    parser.add_argument("--target", metavar="T", required=True, help="name or path of a target description")


def declare_targets(parser: ArgumentParser, help_: str) -> None:
    """Add `--target`, which takes several."""
    parser.add_argument("--target", metavar="T", nargs="+", action="extend", default=[], help=help_)


def declare_entry(parser: ArgumentParser, what: str = "run") -> None:
    """Add `--entry`; `what` is what becomes of the function."""
    parser.add_argument("--entry", metavar="F", help=f"function to {what}; default: the entry, or the only one")


def declare_inputs(parser: ArgumentParser, help_: str = "input of argument NAME") -> None:
    """Add `--in`, as `inputs`."""
    _declare_repeatable(parser, "--in", "NAME=...", help_, "inputs")


def declare_arguments(
    parser: ArgumentParser, help_: str = "value of a scalar argument", metavar: str = "NAME=VALUE"
) -> None:
    """Add `--arg`, as `args`."""
    _declare_repeatable(parser, "--arg", metavar, help_, "args")


def declare_target_options(parser: ArgumentParser, help_: str = "set a target option") -> None:
    """Add `--option`, as `options`."""
    _declare_repeatable(parser, "--option", "NAME=VALUE", help_, "options")


def _cores(text: str) -> str:
    """Return `--cores` as the option of a target that it is."""
    if not text.isdecimal():
        raise ArgumentTypeError(f"'{text}' is no number of cores\n  legal: 1, 2, ...")
    return f"cores={text}"


def declare_cores(parser: ArgumentParser) -> None:
    """Add `--cores`, which stands among the target options, as `options`."""
    parser.add_argument(
        "--cores", metavar="N", dest="options", action="append", type=_cores,
        help="cores that work at once and share global memory; default: 1",
    )  # fmt: skip


def declare_kernel(parser: ArgumentParser) -> None:
    """Add what is asked of a kernel in C++: the core that it runs on, and its macros and headers."""
    add = parser.add_argument
    add("--block", metavar="N", help="core that a C++ kernel runs on, from 0; N/M: of M cores")
    add("--sub", metavar="N/M", help="vector unit of the core that a C++ kernel runs on, and how many there are")
    declare_headers(parser)


def declare_tilelang(parser: ArgumentParser) -> None:
    """Add what is asked of a kernel of TileLang."""
    add = parser.add_argument
    add("--core", metavar="N", help="core that a TileLang kernel runs on, from 0; run: all (the longest is told)")
    add("--unscheduled", action="store_true", help="take a TileLang kernel in the order of its source")


def declare_c_launch(parser: ArgumentParser) -> None:
    """Add the launch of a kernel in TPC-C."""
    add = parser.add_argument
    add("--tensor", dest="tensors", metavar="NAME=TENSOR", action="append", default=[],
        help="a tensor of a .c kernel: f32[64,1024], fastest size first; out:f32[64,1024] for an output")  # fmt: skip
    add("--index-space", metavar="A,B", help="members of the index space of a .c kernel, one to five numbers")
    what = "order of sums in loops of a .c kernel with loop_unroll: source (default), or split as by the vendor"
    add("--accumulators", metavar="A", help=what)
    add("--tpcs", metavar="N", help="engines that share the index space of a .c kernel; default: 1")


def declare_headers(parser: ArgumentParser) -> None:
    """Add macros and folders of headers, for kernels in C and C++."""
    add = parser.add_argument
    what = "a folder with headers of a kernel in C or C++"
    add("-I", "--include", metavar="DIR", dest="folders", action="append", default=[], help=what)
    what = "a macro for a kernel in C or C++"
    add("-D", "--define", metavar="NAME[=VALUE]", dest="macros", action="append", default=[], help=what)


def declare_opaque(parser: ArgumentParser) -> None:
    """Add `--opaque`."""
    what = "cycles of an operation that is not modelled (tmatmul=400); its results are not computed"
    _declare_repeatable(parser, "--opaque", "OP=N", what, "opaque")


def declare_engine(parser: ArgumentParser) -> None:
    """Add `--engine`."""
    parser.add_argument(
        "--engine", metavar="E", help="fast (default), or event: the reference engine; the cycles are the same"
    )


def declare_max_cycles(parser: ArgumentParser) -> None:
    """Add `--max-cycles`."""
    parser.add_argument("--max-cycles", metavar="N", help="give up after N cycles")


def declare_page(parser: ArgumentParser) -> None:
    """Add `--html`."""
    parser.add_argument("--html", metavar="FILE", help="write the report as a single HTML file for the browser")


def declare_output_folder(parser: ArgumentParser) -> None:
    """Add `--out`, for the outputs of a program."""
    parser.add_argument("--out", metavar="DIR", help="write every output to DIR/NAME.npy")


def declare_statements(parser: ArgumentParser) -> None:
    """Add the limit of commands that read and do not walk."""
    parser.add_argument("--max-statements", metavar="N", help="read up to N statements or bundles (default 200000)")


def declare_walk(parser: ArgumentParser) -> None:
    """Add the limits of commands that walk a program."""
    parser.add_argument(
        "--max-walk",
        metavar="N",
        help="follow up to N trips and statements of loops (default 200000), compute up to N executions (1000000)",
    )
    declare_statements(parser)


def declare_elements(parser: ArgumentParser, default: int = 134217728) -> None:
    """Add the limit of commands that compute tensors."""
    parser.add_argument("--max-elements", metavar="N", help=f"compute tensors of up to N elements; default: {default}")


def declare_run_limits(parser: ArgumentParser) -> None:
    """Add the limits of commands that run a program, whose tensors they compute."""
    declare_walk(parser)
    declare_elements(parser)


def declare_workers(parser: ArgumentParser, kept: str | None = None) -> None:
    """Add the options that say who computes; `kept` is what a ledger keeps, None where there is none."""
    parser.add_argument("--workers", metavar="N", help="number of processes; default: 1")
    declare_scheduler(parser)
    if kept is not None:
        parser.add_argument(
            "--ledger", metavar="FILE", help=f"keep {kept} in FILE, and continue from there; removed at the end"
        )


def declare_scheduler(parser: ArgumentParser) -> None:
    """Add `--scheduler`."""
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="use the workers of a Dask scheduler, such as tcp://host:8786"
    )


def _declare_repeatable(parser: ArgumentParser, option: str, metavar: str, help_: str, dest: str) -> None:
    """Add an option that may be given several times; all its values make one list."""
    parser.add_argument(option, metavar=metavar, dest=dest, action="append", default=[], help=help_)
