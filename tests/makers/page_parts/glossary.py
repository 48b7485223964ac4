"""The glossary: what every cause of the reports means, and every column of their tables."""

from __future__ import annotations

import re
from collections.abc import Mapping

from makers.page_parts.markdown import code

from castsim.execution.timing import Cause

CAUSES = {
    Cause(found[1]): (found[2], found[3])
    for found in re.finditer(
        r"^(\S.*?): (.*)\n  (.*)$",
        """\
busy: The pipe does its own work.
  Do less work, or use faster instructions.
fill: The pipe starts from idle, and its first result takes the length of the pipeline.
  Issue vector instructions back to back; use larger tiles.
drain: The pipe starts no new work; its last results are still on their way to the buffer.
  Issue vector instructions back to back; use larger tiles.
operand wait: An instruction waits for the result of an earlier one.
  Put independent work between the two instructions.
flag wait: The pipe waits at a `wait_flag` for the `set_flag` of another pipe.
  Use two buffers to overlap iterations.
barrier: The pipe waits at a `pipe_barrier` for earlier work; on the scalar unit this is usually the end of the kernel.
  Remove barriers between instructions that touch different bytes.
dependence: An instruction inside a vector function waits for an operand; the pipe stays occupied.
  Put independent work between the two instructions, or interleave several chains.
store barrier: An access inside a vector function waits at a barrier for earlier accesses; the pipe stays occupied.
  Store once, without a barrier; `castsim expand` shows the instructions.
bank conflict: Two accesses need the same bank, or bank group, of the buffer.
  Move a tile to another address.
port: An access waits for a port of the buffer or of a unit.
  Spread loads and stores; use fewer accesses per conversion.
initiation interval: An instruction blocks its unit for more than one cycle.
  Issue instructions for other units after it.
loop turnaround: The pipe sets up a loop or jumps back to its start.
  Do more work per iteration.
serialising branch: A scalar branch or selection inside a vector function waits until all its work has left the pipe.
  Choose row lengths that need no tail.
memory latency: The pipe waits for the first bytes of a transfer.
  Use fewer and larger transfers; load the next tile while converting this one.
memory bandwidth: The pipe moves bytes as fast as the memory or the path allows.
  Cast to the narrower format earlier.
empty: The pipe has nothing to do.
  Look at the pipe that is occupied longest.
""",
        re.MULTILINE,
    )
}
"""Every cause: what it means, and what helps against it."""

_RUN = "`run`, `--report kernel`, `--what-if`"
_CAST = "`cast`, `verify`, `compare`, `compiled`"
_LOWER = "`lower`, `conform`, `graph`, `verify --lowering`"
_TARGETS = "`targets`"
_SCRATCH = "`scratch`, and tmp tiles in `run`"
_ACCURACY = "`accuracy`"
_NOTEBOOKS = "results in notebooks"

COLUMNS: Mapping[str, Mapping[str, str]] = {
    _RUN: {
        "cycles by cause": "A row per cause; each pipe's column adds up to the run.",
        "line": "Line of the program text.",
        "step": "Number of the instruction in its launch.",
        "instruction": "Formats, shape, rounding in force.",
        "pipe": "S or SPU (scalar), V or VPU (vector), MTE2 or LOAD (loads), MTE3 or STORE (stores), GLOBAL "
        "(global memory).",
        "times": "Executions.",
        "first start": "Cycle of its first start, from 0.",
        "last end": "Cycle of its last effect.",
        "cycles": "Cycles attributed to this row.",
        "pipe cycles": "Cycles its pipe spent on it, including waits.",
        "occupied": "Cycles of its pipes on it, without waits for other pipes.",
        "waits": "Cycles this instruction's pipe spends waiting for other pipes.",
        "share": "Share of the run's cycles: a line's work, or a limit's gain.",
        "evidence": "The support of these cycles: measured, fitted, a model, assumed.",
        "operations": "The operations that spend them, largest first.",
        "cycles each": "Mean cycles from start to end.",
        "share of pipe": "Share of the pipe cycles of all its lines.",
        "mostly": "The cause of most of its pipe cycles.",
        "source": "Line of the text; in `targets --diff` the source format.",
        "by cause": "Its cycles by cause.",
        "waits for": "Its longest wait.",
        "fact": "A number or choice of a target description.",
        "rejected change": "A change that `advise --why` rejected.",
        "why": "The reason the change was rejected.",
        "cause": "Why cycles were spent ([list](glossary.md#causes)).",
        "instructions behind it": "The instructions that spent the cycles, and how many.",
        "lifted": "The limit, as named for `--what-if`.",
        "change": "Number for `castsim advise --apply`.",
        "how": "How the outputs were checked: proven, or tried on this number of inputs.",
        "what": "The change and its line.",
        "gain": "Cycles saved without the limit; for advice, percent.",
        "what it means": "The limit in words.",
        "lines": "The lines that the row covers.",
        "removed": "Instructions that `unswizzle` removes.",
        "VPU operations": "Vector operations before and after.",
        "bundles": "Bundles before and after.",
        "outcome": "The result and its reason; in `cast` [how it is inexact](glossary.md#inexact), empty if exact.",
        "elements": "Numbers converted; only active lanes count.",
        "rounded": "Numbers rounded within the range.",
        "clamped": "Numbers that became the largest or smallest number.",
        "wrapped": "Numbers that became another number, usually their low bits.",
        "NaN lost": "NaNs that became a number.",
    },
    _CAST: {
        "given": "The number as typed; for tmp tiles, the program's bytes.",
        "input": "The number as typed.",
        "bits": "The code in hexadecimal.",
        "input bits": "The source's code in hexadecimal.",
        "read as": "The number that the code represents.",
        "target": "The chip or specification; `abstract` is the cast without a chip.",
        "rounding": "The mode in force.",
        "overflow": "Saturate, wrap, special (infinity or NaN). In `run`: how many became infinity or NaN.",
        "sat": "The saturation switch in force.",
        "output bits": "The code of the result.",
        "number": "The number given.",
        "element": "Bits of the narrow element.",
        "scale": "Bits of its block's scale.",
        "text": "The string of the cast.",
        "value": "The number that the code represents.",
        "ulps": "Distance from the abstract cast in units of the last place.",
        "magnitude": "The binade of the input.",
        "inputs": "Inputs tried.",
        "largest ulps": "Largest distance between two results.",
        "rejected by": "Specifications that refuse this result.",
        "codes": "Codes tried.",
        "mismatches": "Codes on which the sides differ.",
        "codes/s": "Codes per second of processor time.",
        "got": "Code of the tier under test.",
        "is": "The number that the code represents.",
        "expected": "Code of the reference.",
        "of": "Total.",
        "differ": "Codes with another result.",
        "replaced by": "The function that `lower` computes instead when it tries all codes.",
    },
    _LOWER: {
        "cast": "Source and destination format; in `run` the instruction.",
        "answer": "How the target does it ([words](tools/lowering.md)).",
        "native": "Casts by one instruction; its modes.",
        "native with options": "The same once options of the target are set.",
        "chain": "Casts by several instructions.",
        "copy": "Casts that change no bits.",
        "impossible": "Casts of a width that the target lacks.",
        "options": "Modes of the instruction and options of the target.",
        "after": "The step that gives the value.",
        "format": "The format of the value.",
        "node": "Node of the graph.",
        "operator": "The node's operator.",
        "programs": "Programs of the node.",
        "verdict": "Proven, exhaustively tried, refuted, or no mismatch on this input.",
        "claim": "The program does the cast, or a value refutes it.",
        "tried": "The inputs that the claim was tried on.",
        "wrong": "Codes that contradict the claim.",
    },
    _TARGETS: {
        "title": "The chip or specification in words.",
        "mechanism": "Strided-repeat, vector-function or vliw.",
        "architectures": "Names of the target in programs.",
        "casts": "Number of type pairs.",
        "specification": "The name for `--spec`.",
        "versions": "Known versions.",
        "since": "First version that has the cast.",
        "requires": "The extension or profile needed.",
        "when": "Condition of the rule.",
        "rule": "What results the specification accepts.",
        "from": "Source format.",
        "to": "Destination format.",
        "rounding modes": "Modes that the pair honours.",
        "default": "The mode without an attribute.",
        "fallback": "The mode that silently replaces missing ones.",
        "saturation": "Saturation without an attribute.",
        "switchable": "Whether `sat_mode` changes a result.",
        "tmp": "Whether and how the cast uses tmp.",
        "rounding asked": "The mode that the program names.",
        "saturation asked": "The value of `sat_mode`.",
        "tmp given": "Whether the cast has a tmp tile.",
        "in force": "The mode that the hardware uses.",
        "warning": "The warning that `run` prints.",
        "difference": "The property that only one target has.",
    },
    _SCRATCH: {
        "cast, saturation off": "A cast that may need tmp.",
        "term": "A part of the sizing formula.",
        "bytes": "Bytes of the part; of shapes: bytes touched.",
        "rows": "Rows of the tile; in `accuracy`, figures of the curve.",
        "cols": "Columns of the tile.",
        "stride": "Elements from row to row.",
        "formula": "Bytes by the published formula.",
        "blocks": "Bytes touched, in whole blocks of 32.",
        "shape": "Rows and columns; for an output, its extents.",
        "output": "Name of the output, in the page of a result.",
        "sha256": "Digest of its array.",
        "needed": "Bytes needed.",
    },
    _ACCURACY: {
        "path": "Code path of the vendor's kernel.",
        "counts": "Whether the figure has fill and drain.",
        "measurements": "Table of published figures.",
        "measured": "The published cycles.",
        "simulated": "The cycles of castsim.",
        "error %": "Error of the simulated cycles, or of the public model.",
        "public model": "Cycles by the vendor's public model.",
        "mean %": "Mean absolute error.",
        "median %": "Median absolute error.",
        "max %": "Largest absolute error.",
        "left out": "Figures predicted from all others (`--cross-validate`).",
        "rows were": "Whether facts were fitted to these rows.",
        "read off": "Where the figures come from: a chip, a simulator, a document.",
        "free fact": "A fact that may be fitted.",
        "fit to all rows": "Its value with no figure left out.",
        "public: mean %": "The public model's mean error.",
    },
    "`formats`": {
        "exp": "Bits of the exponent.",
        "man": "Bits of the mantissa.",
        "bias": "Exponent bias.",
        "smallest": "Smallest integer.",
        "largest": "Largest finite number.",
        "least normal": "Smallest positive normal number.",
        "subnormal": "Smallest positive subnormal number.",
        "special": "Special values: infinity, NaN.",
        "cast by": "Targets with casts of the format.",
        "also written": "Aliases.",
    },
    "`calibrate`": {
        "parameter": "The fitted number.",
        "before": "Its value before; for rows, the simulated cycles.",
        "fitted": "Its value after.",
        "+-": "One standard error.",
        "after": "Simulated cycles with the fitted values.",
        "off %": "Error of these cycles.",
    },
    "`tune`": {
        "rank": "Rank by cycles, then bytes.",
        "at least": "Lower bound of the cycles: the work of the busiest pipe alone.",
        "per element": "Cycles per element of the outputs.",
        "buffer bytes": "Bytes of the buffer that the kernel touches.",
        "bound by": "The pipe with the most work.",
        "front": "`*`: Pareto-optimal in cycles and bytes.",
        "not simulated": "Points that were only bounded.",
        "does not run": "Points at which the kernel is refused or never ends.",
        "reason": "Why the point does not run.",
    },
    "`sweep` (the Parquet file)": {
        "src, dst, rows, cols, row_stride, rounding, saturation, target": "The cast; null is the default.",
        "program, target, args.NAME, option.NAME": "The program and what it was run with.",
        "cycles": "Cycles of the cast or program; null if the point failed.",
        "busy, fill, ...": "Cycles by cause of the pipe occupied longest; they add up to `cycles`.",
        "bound_by": "The cause of most cycles; a program's waits for other pipes do not count.",
        "status": "`ok`, or `failed`.",
        "error": "Why the point failed.",
    },
    "`schema`": {
        "command": "The command that writes the document.",
        "document": "Its name.",
        "version": "Its `schema_version`.",
        "content": "Its content.",
    },
    "`diff`": {
        "cycles A": "Cycles of this cause on the first side.",
        "cycles B": "Cycles of this cause on the second side.",
        "B - A": "Negative if the second side is faster.",
        "index": "Index in the output, from 0.",
        "bits A": "The first side's code.",
        "value A": "The code as a number.",
        "bits B": "The second side's code.",
        "value B": "The code as a number.",
    },
    _NOTEBOOKS: {
        "busy": "Share of the run in which the pipe works.",
        "index": "Index of a shape in the arrays given to `estimate`.",
        "bound by": "The cause of most cycles.",
        "causes": "The cycles by cause, as a bar.",
        "operation": "The operation and how it was measured.",
        "table": "The file of the measurements.",
        "public: max %": "The public model's largest error.",
    },
}
"""Every column of the reports, by the commands that show it."""


def causes() -> str:
    """Return a section for each cause."""
    return "\n\n".join(f"### {cause}\n\n{CAUSES[cause][0]}\n*What helps*: {CAUSES[cause][1]}" for cause in Cause)


def columns() -> str:
    """Return lists of all columns."""
    parts = []
    for where, meanings in COLUMNS.items():
        lines = "\n".join(f"* {code(name)}: {meaning}" for name, meaning in meanings.items())
        parts.append(f"## {where[0].upper()}{where[1:]}\n\n{lines}\n")
    return "\n".join(parts)
