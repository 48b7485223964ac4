"""Plans every legal cast of a specification on every target, as `castsim lower` would: native, native with options, a
chain and its cost, or none found and why. --option, which may be repeated, and the search for target options work as in
`castsim lower`. A verdict that only a run of all codes of 32 bits could prove rests on samples, unless --prove is
given. --markdown prints a page. A full run takes many minutes; --src, --dst and --target narrow it
down. Use --workers or --scheduler to compute in parallel and --ledger FILE to continue after an interruption; FILE is
removed once the results are written.

examples:
  castsim conform --spec tosa --target a5 --src f32
  castsim conform --spec tosa --target a5 --src f32 --dst f16 --option ctrl_48_at_start=1
  castsim conform --spec tosa --target a2a3 a5 --src f16 --html matrix.html
  castsim conform --spec onnx@19 --target a2a3 gaudi2 --dst e4m3fn
  castsim conform --spec tosa --markdown --workers 2 > conformance.md
  castsim conform --spec onnx --scheduler tcp://host:8786 --ledger onnx.ledger --json onnx.json
"""

from __future__ import annotations

from argparse import ArgumentParser

from castsim.commands.shared_options import declare_page, declare_target_options, declare_targets, declare_workers

SUMMARY = "plan every cast of a specification on every target: native, with options, chain, none found, impossible"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `conform`."""
    add = parser.add_argument
    add("--spec", metavar="S", required=True, help="specification: tosa, onnx, or a path; optionally with @VERSION")
    declare_targets(parser, "names or paths of target descriptions; default: all shipped")
    add("--src", metavar="F", help="casts from this format only")
    add("--dst", metavar="F", help="casts to this format only")
    declare_target_options(parser)
    declare_workers(parser, "finished cells")
    add("--prove", action="store_true", help="try all codes of 32-bit sources if nothing less proves a verdict")
    add("--markdown", action="store_true", help="print a page in Markdown")
    declare_page(parser)
