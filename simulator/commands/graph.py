"""Every node becomes one or more programs of the target, which are simulated one after the other. Every element is
compared: for a cast, with what its specification accepts; for any other ONNX node, with the result of onnx's reference
evaluator on the same inputs; the outputs, with the evaluator's result for the whole graph. `castsim run` takes these
files too. `--emit` writes the programs, so that they can be run on their own.

ONNX (extra `onnx`): Cast, QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, Clip, Add, Mul, Identity, Reshape.
TOSA: a function of tosa.cast, tosa.rescale, tosa.identity, tosa.reshape and constants.

Inputs have the names used in the file, without the % of TOSA. A cast is proven, exhaustively tried, or differs, with a
counterexample, as found by `castsim lower`; it runs with the options that lower finds and software can set, and the
report names them and shows how to run its program. Other nodes are exhaustively tried if they read few codes (16 bits,
or two operands of 8); for the rest, a run without a difference only means no mismatch on this input. A node that
differs in the run shows its first wrong element. A node that the evaluator rejects is not judged, but its result is
still written; a node that the target lacks is not run. The exit code is 0 if every node is proven or exhaustively
tried; otherwise 1, also for an unsupported operator; 2 if the file or an option cannot be read. --option, which may be
repeated, sets an option of the target and keeps it fixed.

examples:
  castsim graph model.onnx --target a5 --in x=random:1
  castsim graph model.onnx --target gaudi2 --in x=x.npy --arg rows=4 --out results --emit programs
  castsim graph casts.mlir --target a2a3 --in arg0=random:1 --json -
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import (
    declare_arguments,
    declare_cores,
    declare_elements,
    declare_engine,
    declare_inputs,
    declare_output_folder,
    declare_page,
    declare_required_target,
    declare_target_options,
    declare_walk,
)

SUMMARY = "run an ONNX model or TOSA text on a target, node by node, and compare every element"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `graph`."""
    add = parser.add_argument
    add("program", metavar="GRAPH", help="an .onnx file, or TOSA text in MLIR form (.mlir, .tosa)")
    declare_required_target(parser)
    declare_inputs(parser, "an input: FILE.npy, random:SEED or zeros")
    declare_arguments(parser, "a dynamic extent: its name in the model, or INPUT.AXIS", "NAME=N")
    declare_output_folder(parser)
    add("--emit", metavar="DIR", help="write every program to DIR")
    declare_engine(parser)
    declare_walk(parser)
    add("--tosa-version", metavar="V", help="version of TOSA; default: the latest")
    declare_elements(parser, 33554432)
    declare_target_options(parser)
    declare_cores(parser)
    declare_page(parser)
