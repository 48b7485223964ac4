"""The glossary: what every cause of the reports means, and every column of their tables."""

from __future__ import annotations

import re
from collections.abc import Mapping

from castsim.execution.timing import Cause
from page_parts.markdown import code

CAUSES = {
    Cause(found[1]): (found[2], found[3])
    for found in re.finditer(
        r"^(\S.*?): (.*)\n  (.*)$",
        """\
busy: The pipe does its own work.
  Less work, or work of a faster class.
fill: The pipe starts from idle; its first result takes the whole pipeline.
  Issue vector instructions back to back; use larger tiles.
drain: No work starts; results are on their way into the buffer.
  As for fill.
operand wait: An instruction waits for the result of an earlier one.
  Put independent work between the two.
flag wait: A `wait_flag` waits for the `set_flag` of another pipe.
  Use two buffers, so that trips overlap.
barrier: A `pipe_barrier` waits for earlier work; on the scalar unit mostly the end of the kernel, no bottleneck.
  Remove barriers between instructions that touch different bytes.
dependence: Operand wait inside a vector function; the pipe is occupied.
  As for operand wait, or let several chains run side by side.
store barrier: Inside a vector function, an access waits at a barrier for earlier accesses; the pipe is occupied.
  Store once, without a barrier; `castsim expand` shows the pieces.
bank conflict: Two accesses want one bank, or group of banks, of the buffer.
  Move a tile to another address.
port: An access waits for a port of the buffer or a unit.
  Spread loads and stores; convert between widths with fewer accesses.
initiation interval: An instruction blocks its unit for more than one cycle.
  Put other work behind it.
loop turnaround: A loop is set up or turns around.
  Do more per trip.
serialising branch: A scalar branch or selection inside a vector function waits until its work has left the pipe.
  Choose shapes whose rows need no tail and no branch.
memory latency: The first bytes of a transfer have not arrived.
  Use fewer and larger transfers; load the next tile while this one is cast.
memory bandwidth: Bytes move as fast as memory or path allows.
  Cast earlier to the narrower format.
empty: The pipe has nothing to do.
  Look at the occupied pipe.
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
        "last end": "Of its last effect.",
        "cycles": "Of the row.",
        "pipe cycles": "Cycles its pipe spent on it, waits included; they do not overlap.",
        "work": "Cycles its pipe works for it.",
        "waits": "Cycles its pipe waits for others, for it.",
        "share": "Part of the run's cycles: work of a line, gain of a limit.",
        "cycles each": "Mean cycles from start to end.",
        "share of pipe": "Part of the pipe cycles of all its lines.",
        "mostly": "The cause of most of its pipe cycles.",
        "source": "Line of the text; in `targets --diff` the source format.",
        "by cause": "Its cycles by cause.",
        "waits for": "Its longest wait, beside other work.",
        "fact": "A number or choice of a target description.",
        "rejected change": "Tried and not offered (`advise --why`).",
        "why": "What spoke against it.",
        "cause": "Why cycles were spent ([above](#causes)).",
        "instructions behind it": "Who spent them, and how many.",
        "lifted": "The limit, as named for `--what-if`.",
        "change": "Number for `castsim advise --apply`.",
        "how": "Why outputs stay: proven, or tried on so many inputs.",
        "what": "What changes, and where.",
        "gain": "Cycles saved without the limit; of advice, percent.",
        "what it means": "The limit in words.",
        "lines": "Lines that belong together.",
        "removed": "What `unswizzle` takes out.",
        "VPU operations": "Vector operations before and after.",
        "bundles": "Bundles before and after.",
        "outcome": "What became of it, and why; in `cast` [how it is inexact](#other-words), empty if exact.",
        "elements": "Numbers converted; only active lanes count.",
        "rounded": "How many changed within the range.",
        "clamped": "How many became its largest or smallest number.",
        "wrapped": "How many became another number, usually their low bits.",
        "NaN lost": "How many were NaN and became a number.",
    },
    _CAST: {
        "given": "The number as typed; of tmp tiles: the program's bytes.",
        "input": "The number as typed.",
        "bits": "The code in hexadecimal.",
        "input bits": "The source's code in hexadecimal.",
        "read as": "The number that it stands for.",
        "target": "The chip or specification, or `abstract`, without a chip.",
        "rounding": "The mode in force, whatever was asked for.",
        "overflow": "Saturate, wrap, special (infinity or NaN). In `run`: how many became infinity or NaN.",
        "sat": "The saturation switch in force.",
        "output bits": "The code of the result.",
        "number": "The number given.",
        "element": "Bits of the narrow element.",
        "scale": "Bits of its block's scale.",
        "text": "The string of the cast.",
        "value": "The number that the code stands for.",
        "ulps": "Distance from the abstract cast in units of the last place.",
        "magnitude": "The binade of the input.",
        "inputs": "Inputs tried.",
        "largest ulps": "Largest distance between two results.",
        "rejected by": "Specifications that refuse this result.",
        "codes": "Codes tried.",
        "mismatches": "Codes on which the sides differ.",
        "codes/s": "Codes per second of processor time.",
        "got": "Code of the tier under test.",
        "is": "The number that it stands for.",
        "expected": "Code of the reference.",
        "of": "How many there are in all.",
        "differ": "How many give another result.",
        "replaced by": "What `lower` computes instead when trying all codes.",
    },
    _LOWER: {
        "cast": "Source and destination format; in `run` the instruction.",
        "answer": "How the target does it ([words](conformance.md)).",
        "native": "Casts by one instruction, or its modes.",
        "native with options": "The same once options of the target are set.",
        "chain": "By several instructions.",
        "copy": "Without a change of bits.",
        "impossible": "Of a width that the target lacks.",
        "options": "Modes of the instruction and options of the target.",
        "after": "The step behind which the value stands.",
        "format": "The format at that point.",
        "node": "Node of the graph.",
        "operator": "What the node computes.",
        "programs": "Programs of the node.",
        "verdict": "Its values are proven, exhaustively tried, refuted, or met no mismatch.",
        "claim": "A program does the cast, or a value refutes it.",
        "tried": "What the claim was tried on.",
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
        "rounding modes": "Modes of the pair's own.",
        "default": "The mode without an attribute.",
        "fallback": "What silently replaces missing modes.",
        "saturation": "Saturation without an attribute.",
        "switchable": "Whether `sat_mode` changes a result.",
        "tmp": "Whether and how the cast uses tmp.",
        "rounding asked": "The mode that the text names.",
        "saturation asked": "What `sat_mode` says.",
        "tmp given": "Whether it has a tmp tile.",
        "in force": "What the hardware then does.",
        "warning": "What `run` says about it.",
        "difference": "What only one target has.",
    },
    _SCRATCH: {
        "cast, saturation off": "A cast that may need tmp.",
        "term": "A part of the sizing formula.",
        "bytes": "Bytes of the part; of shapes: bytes touched.",
        "rows": "Rows of the tile; in `accuracy` figures of the curve.",
        "cols": "Columns of the tile.",
        "stride": "Elements from row to row.",
        "formula": "Bytes by the published formula.",
        "blocks": "Bytes touched, in whole blocks of 32.",
        "shape": "Rows and columns; of an output, its extents.",
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
        "error %": "Simulated against measured; of the public model likewise.",
        "public model": "Cycles by the vendor's public model.",
        "mean %": "Mean absolute error.",
        "median %": "Their median.",
        "max %": "The largest absolute error.",
        "left out": "Figures predicted from all others (`--cross-validate`).",
        "rows were": "Whether facts were fitted to these rows.",
        "read off": "Where figures come from: a chip, a simulator, a document.",
        "free fact": "A fact that may be fitted.",
        "fit to all rows": "Its value with no figure left out.",
        "public: mean %": "The public model's mean error.",
    },
    "`calibrate`": {
        "parameter": "The fitted number.",
        "before": "Its value before; of rows: simulated cycles.",
        "fitted": "Its value after.",
        "+-": "One standard error.",
        "after": "Simulated cycles with the fitted values.",
        "off %": "Their error.",
    },
    "`tune`": {
        "rank": "Place by cycles, then bytes.",
        "at least": "Lower bound of the cycles: work of the busiest pipe's instructions alone.",
        "per element": "Cycles per element of the outputs.",
        "buffer bytes": "Bytes of the buffer's range that the kernel touches.",
        "bound by": "The pipe with most work.",
        "front": "`*`: Pareto-optimal in cycles and bytes.",
        "not simulated": "Points only bounded.",
        "does not run": "Points at which it is refused or never ends.",
        "reason": "Why.",
    },
    "`sweep` (the Parquet file)": {
        "src, dst, rows, cols, row_stride, rounding, saturation, target": "The cast; null is the default.",
        "program, target, args.NAME, option.NAME": "The program and what it was run with.",
        "cycles": "Of the cast or program; null if the point failed.",
        "busy, fill, ...": "Cycles by cause of the pipe occupied longest; they add up to `cycles`.",
        "bound_by": "The cause of most cycles, without a program's waits for other pipes.",
        "status": "`ok`, or `failed`.",
        "error": "Why it failed.",
    },
    "`schema`": {
        "command": "The command that writes the document.",
        "document": "Its name.",
        "version": "Its `schema_version`.",
        "content": "What it holds.",
    },
    "`diff`": {
        "cycles A": "Cycles of this cause on the first side.",
        "cycles B": "On the second side.",
        "B - A": "Negative if the second side is faster.",
        "index": "Place in the output, from 0.",
        "bits A": "The first side's code.",
        "value A": "As a number.",
        "bits B": "The second side's code.",
        "value B": "As a number.",
    },
    _NOTEBOOKS: {
        "busy": "Share of the run at work.",
        "index": "Of a shape: its index in the arrays given to `estimate`.",
        "bound by": "The cause of most cycles.",
        "causes": "The cycles by cause, as a bar.",
        "operation": "What was measured, and how.",
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
        parts.append(f"### {where[0].upper()}{where[1:]}\n\n{lines}\n")
    return "\n".join(parts)
