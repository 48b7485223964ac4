"""Every node becomes a program of the target, or several, which are simulated one after the other. Every element is
compared: that of a cast with what its specification accepts, that of another ONNX node with what onnx's reference
evaluator gives for the same inputs, and the outputs with the evaluator's for the whole graph. `castsim run` takes these
files too, `--emit` writes the programs, which it runs by themselves.

ONNX (extra `onnx`): Cast, QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, Clip, Add, Mul, Identity, Reshape.
TOSA: a function of tosa.cast, tosa.rescale, tosa.identity, tosa.reshape and constants.

Inputs have the names that the file gives them, TOSA's without %. A cast is proven, exhaustively tried, or differs, with
a counterexample, as `castsim lower` finds; it runs with the options that lower finds, which software sets, and the
report names them and how to run its program. Other nodes are exhaustively tried where they read few codes (16
bits, or two operands of 8); of all others a run without a difference says no more than that: no mismatch on this input.
A node that differs in the run shows its first wrong element. One that the evaluator refuses is not judged (its result
is written all the same); one that the target lacks is not run. The exit code is 0 if every node is proven or
exhaustively tried, else 1, also if an operator is not supported; 2 if the file or an option cannot be read.
--option, repeatable, sets an option of the target, which then stays as it is.

examples:
  castsim graph model.onnx --target a5 --in x=random:1
  castsim graph model.onnx --target gaudi2 --in x=x.npy --arg rows=4 --out results --emit programs
  castsim graph casts.mlir --target a2a3 --in arg0=random:1 --json -
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.limits import declare_elements, declare_limits

SUMMARY = "run an ONNX model or TOSA text on a target, node by node, and compare every element"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `graph`."""
    add = parser.add_argument
    add("program", metavar="GRAPH", help="an .onnx file, or TOSA text in MLIR form (.mlir, .tosa)")
    add("--target", metavar="T", required=True, help="name or path of a target")
    add(
        "--in",
        metavar="NAME=...",
        dest="inputs",
        action="append",
        default=[],
        help="an input: FILE.npy, random:SEED or zeros",
    )
    add(
        "--arg",
        metavar="NAME=N",
        dest="args",
        action="append",
        default=[],
        help="a dynamic extent: its name in the model, or INPUT.AXIS",
    )
    add("--out", metavar="DIR", help="write every output to DIR/NAME.npy")
    add("--emit", metavar="DIR", help="write every program to DIR")
    add("--engine", metavar="E", help="fast (default), or event, the reference; the cycles are the same")
    declare_limits(parser)
    add("--tosa-version", metavar="V", help="version of TOSA; default: the latest")
    declare_elements(parser, 33554432)
    add("--option", metavar="NAME=VALUE", dest="options", action="append", default=[], help="set a target option")
