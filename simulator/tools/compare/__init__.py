"""Comparison of a user's own conversion with a cast."""

from __future__ import annotations

from castsim.commands.feature import Feature
from castsim.commands.shared_options import OptionParser


def _compare(parser: OptionParser) -> None:
    """GIVEN is a function of yours, FILE.py:NAME, or the array FILE.npy of its results for --in. The function gets
    an array of numbers in the NumPy dtype of SRC (codes where there is none) and returns numbers or codes of DST,
    or numbers of a wider float dtype. It is tried on all codes of a SRC of up to 16 bits, or on every number of a
    DST of up to 16 bits, every middle between two, their neighbours, and --samples random codes. The Python file is
    executed.

    The cast is abstract (one exact rounding, then --overflow) or, with --target, that of a chip. Exit code 1 if
    results differ. One NaN is as good as another unless --nan bits.

    examples:
      castsim compare f32 e4m3fn pack.py:to_fp8
      castsim compare f32 bf16 pack.py:to_bf16 --target a2a3 --rounding rint
      castsim compare f32 f16 results.npy --in numbers.npy
    """
    add = parser.add_argument
    add("src", metavar="SRC", help="format of the inputs")
    add("dst", metavar="DST", help="format of the results")
    add("given", metavar="GIVEN", help="function FILE.py:NAME, or results FILE.npy")
    add(
        "--in",
        metavar="FILE",
        dest="input",
        help="numbers or codes (.npy) to convert; default for functions: see below",
    )
    add("--target", metavar="T", help="name or path of a target description; default: the abstract cast")
    add("--rounding", metavar="M", help="rounding mode; default: the cast's own")
    add("--overflow", metavar="O", help="saturate, wrap or special; not with --target")
    add("--saturation", metavar="on|off", help="saturation switch of the target")
    add("--scratch", action="store_true", help="give the target's cast a tmp tile")
    add("--nan", metavar="WHICH", default="any", help="any (default): all NaNs are equal; bits: compare their codes")
    add(
        "--samples",
        metavar="N",
        default="65536",
        help="number of random codes for sources wider than 16 bits; default: 65536",
    )
    add("--seed", metavar="N", default="0", help="seed of the random codes; default: 0")
    parser.take("target_options")


FEATURES = (
    Feature(
        "compare",
        "casts and specifications",
        "compare your own conversion with a cast: first difference, distances, binades",
        _compare,
        "castsim.tools.compare.command",
        documents=("castsim.tools.compare.user_conversions:Comparison",),
    ),
)
