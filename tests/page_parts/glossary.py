"""The glossary: what every cause of the reports means, and every column of their tables."""

from __future__ import annotations

from collections.abc import Mapping

from castsim.timing import Cause
from page_parts.markdown import code, table

CAUSES: Mapping[Cause, tuple[str, str]] = {
    Cause.BUSY: (
        "The pipe does its own work.",
        "Less work, or work of a faster class.",
    ),
    Cause.FILL: (
        "The pipe starts from idle; its first result takes the whole pipeline.",
        "Issue vector instructions back to back; larger tiles pay it less often.",
    ),
    Cause.DRAIN: (
        "No work starts, but results are still on their way into the buffer.",
        "As for fill.",
    ),
    Cause.OPERAND_WAIT: (
        "An instruction waits for the result of an earlier one.",
        "Put independent work between the two.",
    ),
    Cause.FLAG_WAIT: (
        "A `wait_flag` waits for the `set_flag` of another pipe.",
        "Use two buffers, so that loads, casts and stores of different trips overlap.",
    ),
    Cause.BARRIER: (
        "A `pipe_barrier` waits for earlier work. On the scalar unit this is mostly the end of the "
        "kernel, and no bottleneck.",
        "Remove barriers between instructions that touch different bytes.",
    ),
    Cause.DEPENDENCE: (
        "Inside a vector function, an instruction waits for the result of another one; the pipe is occupied.",
        "Put independent work between the two, or let several chains run side by side.",
    ),
    Cause.STORE_BARRIER: (
        "Inside a vector function, an access waits at a barrier for earlier accesses; the pipe is occupied.",
        "Write a vector function that stores once and needs no barrier; `castsim expand` shows the pieces.",
    ),
    Cause.BANK_CONFLICT: (
        "Two accesses want one bank, or group of banks, of the buffer.",
        "Move a tile to another address.",
    ),
    Cause.PORT: (
        "An access waits for a port of the buffer or a unit.",
        "Spread loads and stores, or convert between widths that need fewer accesses.",
    ),
    Cause.INITIATION_INTERVAL: (
        "An instruction blocks its unit for more than one cycle.",
        "Put other work behind it.",
    ),
    Cause.LOOP_TURNAROUND: (
        "A loop is set up or turns around.",
        "Do more per trip.",
    ),
    Cause.SERIALISING_BRANCH: (
        "A scalar branch or selection inside a vector function waits until its work so far has left the pipe.",
        "Choose shapes whose rows need no tail and no branch.",
    ),
    Cause.MEMORY_LATENCY: (
        "A transfer has started; its first bytes have not arrived.",
        "Use fewer and larger transfers, or load the next tile while this one is cast.",
    ),
    Cause.MEMORY_BANDWIDTH: (
        "Bytes move as fast as memory or path allows.",
        "Move fewer bytes: cast earlier to the narrower format.",
    ),
    Cause.EMPTY: (
        "The pipe has nothing to do.",
        "Look at the pipe that is occupied meanwhile.",
    ),
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
        "cycles by cause": "A row per cause, a column per pipe, which adds up to the cycles of the run.",
        "line": "Line of the program text.",
        "step": "Number of the instruction inside a launch.",
        "instruction": "What the line does: formats, shape, rounding in force.",
        "pipe": "S or SPU (scalar), V or VPU (vector), MTE2 or LOAD (loads), MTE3 or STORE (stores), GLOBAL "
        "(global memory).",
        "times": "Executions.",
        "first start": "Cycle of its first start, from 0.",
        "last end": "Cycle of the last effect of its last execution.",
        "cycles": "Of lines: from start to end, summed over executions; lines may overlap. Elsewhere: of the row.",
        "pipe cycles": "Cycles that its pipe spent on it, waits included; they do not overlap.",
        "share": "Fraction of the run's cycles: pipe cycles of a line, gain of a limit.",
        "cycles each": "Mean cycles from start to end.",
        "share of pipe": "Fraction of the pipe cycles of all its lines.",
        "mostly": "The cause of most of its pipe cycles.",
        "source": "Line of the text; in `targets --diff` the source format.",
        "by cause": "Its cycles by cause.",
        "waits for": "Its longest wait, beside other work.",
        "fact": "Name of a number or choice of a target description.",
        "rejected change": "A change that was tried and is not offered (`advise --why`).",
        "why": "What spoke against it.",
        "cause": "Why cycles were spent ([above](#causes)).",
        "instructions behind it": "Who spent them, and how many.",
        "lifted": "The limit that is lifted, as named for `--what-if`.",
        "change": "Number for `castsim advise --apply`.",
        "how": "Why a change keeps the outputs: proven, or tried on so many inputs.",
        "what": "What a change does, and where.",
        "gain": "Cycles saved without the limit; of advice, percent saved by the change.",
        "what it means": "The limit in words.",
        "lines": "Lines that belong together.",
        "removed": "What `unswizzle` takes out.",
        "VPU operations": "Vector operations before and after.",
        "bundles": "Bundles before and after.",
        "outcome": "What became of it, and why; in `cast`: rounded, clamped, wrapped, overflow, NaN lost, or "
        "empty if exact.",
        "elements": "Numbers that a cast converted; only active lanes count.",
        "rounded": "How many changed within the range of the destination.",
        "clamped": "How many beyond the range became its largest or smallest number.",
        "wrapped": "How many beyond the range became another number, usually their low bits.",
        "NaN lost": "How many were NaN and became a number.",
    },
    _CAST: {
        "given": "The number as typed; of tmp tiles: the bytes that the program gives.",
        "input": "The number as typed.",
        "bits": "The code in hexadecimal.",
        "input bits": "The source's code in hexadecimal.",
        "read as": "The number that it stands for.",
        "target": "The chip or specification; `abstract` is the cast without a chip.",
        "rounding": "The mode in force, not always the one asked for.",
        "overflow": "Beyond the range: saturate, wrap, special (infinity or NaN). In `run`: how many became "
        "infinity or NaN.",
        "sat": "The saturation switch in force.",
        "output bits": "The code of the result.",
        "number": "The number that was given.",
        "element": "Bits of the narrow element.",
        "scale": "Bits of its block's scale.",
        "text": "The string of the cast.",
        "value": "The number that the code stands for.",
        "ulps": "Distance from the abstract cast in units of the last place.",
        "magnitude": "The binade of the input.",
        "inputs": "Inputs tried.",
        "largest ulps": "Largest distance between two results.",
        "rejected by": "Specifications that do not accept this result.",
        "codes": "Codes tried.",
        "mismatches": "Codes on which the two sides differ.",
        "codes/s": "Codes per second of processor time.",
        "got": "Code of the tier under test.",
        "is": "The number that it stands for.",
        "expected": "Code of the reference.",
        "of": "How many there are in all.",
        "differ": "How many give another result.",
        "replaced by": "What `lower` computes instead where it tries all codes.",
    },
    _LOWER: {
        "cast": "Source and destination format; in `run` the instruction.",
        "answer": "How the target does it ([words](conformance.md)).",
        "native": "Casts by one instruction, or its modes.",
        "native with options": "Casts by one instruction once options of the target are set.",
        "chain": "Casts by several instructions.",
        "copy": "Casts that change no bit.",
        "impossible": "Casts to or from elements of a width that the target lacks.",
        "options": "Modes of the instruction and options of the target.",
        "after": "The step behind which the value stands.",
        "format": "The format at that point.",
        "node": "Node of the graph.",
        "operator": "What the node computes.",
        "programs": "Programs that the node became.",
        "verdict": "What is known of its values: proven, exhaustively tried, refuted, or no mismatch met.",
        "claim": "What was claimed: a program does the cast, or a value refutes it.",
        "tried": "What the claim was tried on.",
        "wrong": "Codes that contradict the claim.",
    },
    _TARGETS: {
        "title": "The chip or specification in words.",
        "mechanism": "The machine model: strided-repeat, vector-function or vliw.",
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
        "fallback": "The mode that silently replaces missing ones.",
        "saturation": "Saturation without an attribute.",
        "switchable": "Whether `sat_mode` changes a result.",
        "tmp": "Whether and how the cast uses tmp.",
        "rounding asked": "The mode that the text names.",
        "saturation asked": "What `sat_mode` says.",
        "tmp given": "Whether it has a tmp tile.",
        "in force": "What the hardware then does.",
        "warning": "What `run` says about it.",
        "difference": "What only one of the targets has.",
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
        "shape": "Rows and columns.",
        "needed": "Bytes needed.",
    },
    _ACCURACY: {
        "path": "The code path of the vendor's kernel.",
        "counts": "Whether the published figure has fill and drain.",
        "measurements": "The table of published figures.",
        "measured": "The published cycles.",
        "simulated": "The cycles of castsim.",
        "error %": "Simulated against measured; of the public model likewise.",
        "public model": "Cycles by the vendor's public cost model.",
        "mean %": "Mean of the absolute errors.",
        "median %": "Their median.",
        "max %": "The largest absolute error.",
        "left out": "With `--cross-validate`: figures predicted from all others.",
        "rows were": "Whether facts were fitted to these rows.",
        "read off": "Where the published figures come from: a chip, a simulator, a document.",
        "free fact": "A fact that may be fitted to published figures.",
        "fit to all rows": "Its value with no figure left out.",
        "public: mean %": "The public model's mean absolute error.",
    },
    "`calibrate`": {
        "parameter": "The fitted number of the description.",
        "before": "Its value before; of rows: simulated cycles.",
        "fitted": "Its value after.",
        "+-": "One standard error.",
        "after": "Simulated cycles with the fitted values.",
        "off %": "Their error.",
    },
    "castsim tune": {
        "rank": "Place among simulated points: fewest cycles, then fewest bytes.",
        "at least": "Lower bound of the cycles: the work of each instruction alone, summed over the busiest pipe.",
        "per element": "Cycles per element of the outputs.",
        "buffer bytes": "Bytes of the range of the buffer that the kernel touches.",
        "bound by": "The pipe with most cycles of its own work.",
        "front": "`*`: Pareto-optimal in cycles and bytes among simulated points.",
        "not simulated": "Points only bounded.",
        "does not run": "Points at which the kernel is refused or never ends.",
        "reason": "Why.",
    },
    "castsim sweep (the Parquet file)": {
        "src, dst, rows, cols, row_stride, rounding, saturation, target": "The cast; null is the default.",
        "program, target, args.NAME, option.NAME": "The program and what it was run with.",
        "cycles": "Of the cast alone, or the program; null if the point failed.",
        "busy, fill, ...": "Cycles by cause of the pipe occupied longest; they add up to `cycles`.",
        "bound_by": "The cause of most cycles; of a program, waits for other pipes left out.",
        "status": "`ok`, or `failed`.",
        "error": "Why it failed.",
    },
    "castsim schema": {
        "command": "The command that writes the document.",
        "document": "Its name.",
        "version": "Its `schema_version`.",
        "content": "What it holds.",
    },
    "`castsim diff`": {
        "cycles A": "Cycles of this cause on the first side.",
        "cycles B": "On the second side.",
        "B - A": "The difference; negative if the second side is faster.",
        "index": "Place in the output, from 0.",
        "bits A": "The first side's element as a code.",
        "value A": "As a number.",
        "bits B": "The second side's element as a code.",
        "value B": "As a number.",
    },
    _NOTEBOOKS: {
        "busy": "Share of the run in which the pipe works.",
        "index": "Of a shape: its index in the arrays given to `estimate`.",
        "bound by": "The cause of most cycles.",
        "causes": "The cycles by cause, as a bar.",
        "operation": "What was measured, and how.",
        "table": "The file of the measurements.",
        "public: max %": "The public model's largest absolute error.",
    },
}
"""Every column of the reports, by the commands that show it."""


def causes() -> str:
    """Return a table of all causes."""
    rows = ((f"**{cause}**", *CAUSES[cause]) for cause in Cause)
    return table(("cause", "what it means", "what helps"), rows)


def columns() -> str:
    """Return lists of all columns."""
    parts = []
    for where, meanings in COLUMNS.items():
        lines = "\n".join(f"* {code(name)}: {meaning}" for name, meaning in meanings.items())
        parts.append(f"### Columns of {where}\n\n{lines}\n")
    return "\n".join(parts)
