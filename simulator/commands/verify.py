"""Compares the results of a tier bit by bit with those of the independent oracle, or two tiers with each other. Without
--rounding and --overflow, every mode of the pair is tried. If no set of codes is chosen, a source of up to 16 bits is
tried on all its codes; a wider one on the structured set (which decides all codes) where that is quick, and otherwise
on a million samples shared among the modes. Sources of 64 bits cannot be tried on all codes. --against oracle needs the
source checkout; in an installed package the default is --against reference. The exit code is 1 if anything differs and
130 after Ctrl-C: the record then holds everything done so far, and --resume continues from there, even without SRC and
DST.

With --lowering, the casts of a specification that `castsim lower` plans for a target are run again from the text of
their programs, on all codes of sources of up to 16 bits or on --samples N of wider ones, and judged by the oracle. So
are the counterexamples for the casts it rejects.

With --substitutions, the functions that replace instructions when `castsim lower` tries all codes of 32 bits are
compared with the machine model on every code: those for SRC and DST, or all those that the shipped specifications need.
Results in the shipped record count as proven there.

examples:
  castsim verify bf16 e4m3fn
  castsim verify f32 e5m2 --tier table --against reference --exhaustive --record e5m2.json
  castsim verify --record e5m2.json --resume --workers 2
  castsim verify --matrix --record f32.json
  castsim verify --matrix --record f32.json --resume --scheduler tcp://host:8786
  castsim verify --lowering --spec tosa --target a5 gaudi2 --record lowering.json
  castsim verify f16 i8 --lowering --spec tosa
  castsim verify --record substitutions.json --substitutions --target goya
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import declare_targets, declare_workers

SUMMARY = "prove a cast: compare a tier with the independent oracle, or two tiers with each other"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `verify`."""
    add = parser.add_argument
    add("pair", metavar="SRC DST", nargs="*", help="formats to cast from and to; not with --matrix")
    add("--rounding", metavar="M", action="append", default=[], help="rounding mode; default: all deterministic ones")
    add("--overflow", metavar="O", action="append", default=[], help="saturate, wrap or special; default: both legal")
    add(
        "--tier",
        metavar="T",
        help="the tier to judge: reference, table, compiled, generic, or default: the one that castsim chooses itself",
    )
    add(
        "--against",
        metavar="T",
        help="what to compare it with: oracle (default in a checkout), or a tier as above",
    )
    add("--exhaustive", action="store_true", help="all codes of the source")
    add("--structured", action="store_true", help="every sign, exponent and kept bit, with six kinds of dropped bits")
    add("--samples", metavar="N", help="N pseudo-random codes, half of them near rounding boundaries")
    add("--seed", metavar="S", help="seed of samples and of stochastic rounding; default: 0")
    add("--record", metavar="FILE", help="keep progress and findings in FILE")
    add("--resume", action="store_true", help="continue the record")
    declare_workers(parser)
    add("--lowering", action="store_true", help="run lowered casts again and judge them by the oracle")
    add("--substitutions", action="store_true", help="try the functions that replace 32-bit instructions on all codes")
    add("--spec", metavar="S", help="with --lowering: specification; default: tosa")
    declare_targets(parser, "with --lowering and --substitutions: names or paths of targets; default: all shipped")
    add("--matrix", action="store_true", help="the shipped proofs: f32 to eleven formats in all modes")
