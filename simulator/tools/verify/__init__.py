"""Exhaustive proofs: a tier of the numerics against the independent oracle, or two tiers against each other.

A `VerificationPart` defines the comparison and its codes, `compare` does a piece of it, `verify` does many pieces, and
a `VerificationRecord` stores the results, so a proof can be interrupted, continued and shipped.
"""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _verify(parser: OptionParser) -> None:
    """Compares the results of a tier bit by bit with those of the independent oracle, or two tiers with each other.
    Without --rounding and --overflow, every mode of the pair is tried. If no set of codes is chosen, a source of up
    to 16 bits is tried on all its codes; a wider one on the structured set (which decides all codes) where that is
    quick, and otherwise on a million samples shared among the modes. Sources of 64 bits cannot be tried on all
    codes. --against oracle needs the source checkout; in an installed package the default is --against reference.
    The exit code is 1 if anything differs and 130 after Ctrl-C: the record then holds everything done so far, and
    --resume continues from there, even without SRC and DST.

    With --lowering, the casts of a specification that `castsim lower` plans for a target are run again from the
    text of their programs, on all codes of sources of up to 16 bits or on --samples N of wider ones, and judged by
    the oracle. So are the counterexamples for the casts it rejects.

    With --substitutions, the functions that replace instructions when `castsim lower` tries all codes of 32 bits
    are compared with the machine model on every code: those for SRC and DST, or all those that the shipped
    specifications need. Results in the shipped record count as proven there.

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
    add = parser.add_argument
    add("pair", metavar="SRC DST", nargs="*", help="formats to cast from and to; not with --matrix")
    add("--rounding", metavar="M", action="append", default=[], help="rounding mode; default: all deterministic modes")
    add("--overflow", metavar="O", action="append", default=[], help="saturate, wrap or special; default: both legal")
    what = "tier to verify: reference, table, compiled, generic, or default (castsim chooses)"
    add("--tier", metavar="T", help=what)
    add("--against", metavar="T", help="compare with the oracle (default in a checkout) or a tier")
    add("--exhaustive", action="store_true", help="try all codes of the source")
    add(
        "--structured",
        action="store_true",
        help="try every sign, exponent and kept bit, with six kinds of dropped bits",
    )
    add("--samples", metavar="N", help="try N pseudo-random codes, half of them near rounding boundaries")
    add("--seed", metavar="S", help="seed of samples and of stochastic rounding; default: 0")
    add("--record", metavar="FILE", help="save progress and findings in FILE")
    add("--resume", action="store_true", help="continue the record")
    parser.take("workers")
    add("--lowering", action="store_true", help="run lowered casts again, and compare them with the oracle")
    add("--substitutions", action="store_true", help="try all codes on the functions that replace 32-bit instructions")
    add("--spec", metavar="S", help="specification for --lowering; default: tosa")
    parser.take(targets="with --lowering and --substitutions: names or paths of targets; default: all shipped")
    add("--matrix", action="store_true", help="verify the shipped proofs: f32 to eleven formats in all modes")


FEATURES = (
    Feature(
        "verify",
        "evidence",
        "prove a cast against the independent oracle, or compare two implementations",
        _verify,
        "castsim.tools.verify.command",
        documents=(
            "castsim.tools.verify.report:Verification",
            "castsim.tools.verify.lowering:LoweringVerification",
            "castsim.tools.verify.substitutions:SubstitutionVerification",
        ),
    ),
)
