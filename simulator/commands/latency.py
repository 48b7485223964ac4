"""PRODUCER and CONSUMER are one instruction each, or a bundle of four slots with one instruction and three nops. An
instruction without a bundle that several slots can execute goes to the first of LOAD, SPU, VPU, STORE. With - as the
only argument, pairs are read from standard input, one per line: PRODUCER -> CONSUMER. `--json -` has one entry per
line.

The distance is counted in bundles: 1 is the next one. If the consumer reads none of the producer's registers and no
issue rule is known for the pair, the entry is null and the exit code is 1; a line that cannot be read gives exit code
2.

examples:
  castsim latency "add.f16 V10, V2, V3" "mul.f16 V4, V10, V5" --target gaudi2
  castsim latency "nop; nop; nop; set_indx I2, b00001, S1" "ld_tnsr V0, 0x0, I2" --target goya
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import declare_required_target

SUMMARY = "show the distance in bundles between two TPC instructions, and why"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `latency`."""
    add = parser.add_argument
    add("producer", metavar="PRODUCER", help="the earlier instruction; - reads pairs from standard input")
    add("consumer", metavar="CONSUMER", nargs="?", help="the later instruction")
    declare_required_target(parser)
