"""The glossary: what every cause of the reports means, and every column of their tables."""

from __future__ import annotations

from collections.abc import Mapping

from castsim.timing import Cause
from page_parts.markdown import code, table

CAUSES: Mapping[Cause, tuple[str, str]] = {
    Cause.BUSY: ("The pipe does the work that it is there for.", "Give it less work, or work of a faster class."),
    Cause.FILL: (
        "The pipe starts from idle: its first result needs the head of the pipeline first.",
        "Issue vector instructions back to back; larger tiles pay it less often.",
    ),
    Cause.DRAIN: (
        "No work starts, but results are still on their way into the buffer.",
        "The same as for fill.",
    ),
    Cause.OPERAND_WAIT: (
        "The next instruction waits for a result that an earlier one has not finished.",
        "Put independent work between the two.",
    ),
    Cause.FLAG_WAIT: (
        "The pipe has reached a `wait_flag` whose `set_flag` another pipe has not reached.",
        "Use two buffers, so that loads, casts and stores of different trips overlap.",
    ),
    Cause.BARRIER: (
        "The pipe waits at a `pipe_barrier` for earlier work to end. On the scalar unit this is mostly the end "
        "of the kernel, and no bottleneck.",
        "Remove barriers between instructions that touch different bytes.",
    ),
    Cause.DEPENDENCE: (
        "Inside a vector function, an instruction waits for a result of another one of the same function. The pipe is "
        "occupied meanwhile.",
        "Put independent work between the two, or let several chains run side by side.",
    ),
    Cause.STORE_BARRIER: (
        "Inside a vector function, an access waits at a barrier of the function until earlier accesses have ended. The "
        "pipe is occupied meanwhile.",
        "Pack the results in a vector function of your own that stores once and needs no barrier; `castsim expand` "
        "shows the pieces.",
    ),
    Cause.BANK_CONFLICT: (
        "Two accesses want one bank, or one group of banks, of the buffer.",
        "Move a tile to another address.",
    ),
    Cause.PORT: (
        "An access waits for a port of the buffer or of a unit that another access holds.",
        "Spread loads and stores, or convert between widths that need fewer accesses.",
    ),
    Cause.INITIATION_INTERVAL: (
        "An instruction blocks its unit for more than one cycle after it has started.",
        "Put other work of the bundle or scope behind it.",
    ),
    Cause.LOOP_TURNAROUND: (
        "A loop is set up, or turns around to the next trip.",
        "Do more per trip.",
    ),
    Cause.SERIALISING_BRANCH: (
        "A scalar branch or selection inside a vector function waits until the function's work so far has left the "
        "pipe.",
        "Choose shapes whose rows need no tail, so that the branch goes away.",
    ),
    Cause.MEMORY_LATENCY: (
        "A transfer has started and its first bytes have not arrived.",
        "Use fewer and larger transfers, or load the next tile while this one is cast.",
    ),
    Cause.MEMORY_BANDWIDTH: (
        "Bytes move as fast as the memory or path allows.",
        "Move fewer bytes: cast earlier to the narrower format.",
    ),
    Cause.EMPTY: (
        "The pipe has nothing to do: no instruction has been issued to it, or all of its work is done.",
        "Nothing: look at the pipe that is occupied meanwhile.",
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
        "cycles by cause": "A row per cause, a column per pipe; every column adds up to the cycles of the run.",
        "line": "Line of the program text.",
        "step": "Number of the instruction inside a launch that the text does not spell out.",
        "instruction": "What the line does: formats, shape, the rounding mode in force.",
        "pipe": "S or SPU (scalar), V or VPU (vector), MTE2 or LOAD (loads), MTE3 or STORE (stores), GLOBAL (global "
        "memory).",
        "times": "Executions.",
        "first start": "Cycle of its first start, from 0.",
        "last end": "Cycle by which its last execution has had its last effect.",
        "cycles": "Of lines: from start to end, summed over executions; lines may overlap. Elsewhere: cycles of the "
        "row.",
        "pipe cycles": "Cycles that its pipe spent on it, waits included; these do not overlap.",
        "share": "Fraction of the cycles of the run: pipe cycles of a line, gain of a limit.",
        "cycles each": "Mean cycles from start to end.",
        "share of pipe": "Fraction of the pipe cycles of all lines of the pipe.",
        "mostly": "The cause of most of its pipe cycles.",
        "source": "The line of the text; of `targets --diff`: the source format.",
        "by cause": "Its cycles by cause.",
        "waits for": "Its longest wait, beside other work.",
        "fact": "A number or choice of a target description, by its name there.",
        "rejected change": "Of `advise --why`: a change that was tried and is not offered.",
        "why": "Of `advise --why`: what spoke against it.",
        "cause": "Why cycles were spent, see above.",
        "instructions behind it": "Who spent them, and how many.",
        "lifted": "The limit that is lifted: a name for `--what-if`.",
        "change": "The number of a change, for `castsim advise --apply`.",
        "how": "Why a change keeps the outputs: proven, or tried on so many inputs.",
        "what": "What a change does, and where.",
        "gain": "Cycles saved without the limit; of advice, by the change, in percent.",
        "what it means": "The limit in words.",
        "lines": "Lines of the text that belong together.",
        "removed": "What `unswizzle` takes out.",
        "VPU operations": "Vector operations before and after.",
        "bundles": "Bundles before and after.",
        "outcome": "What became of it, and why; in `cast`: rounded, clamped, wrapped, overflow or NaN lost; empty if "
        "exact.",
        "elements": "Numbers that a cast converted, over all executions; only active lanes count.",
        "rounded": "How many became another number within the range of the destination.",
        "clamped": "How many were beyond the range and became its largest or smallest number.",
        "wrapped": "How many were beyond the range and became another number, usually their low bits.",
        "NaN lost": "How many were NaN and became a number.",
    },
    _CAST: {
        "given": "The number as it was typed; of tmp tiles: the bytes that the program gives.",
        "input": "The number as it was typed.",
        "bits": "The code in hexadecimal.",
        "input bits": "The code of the source format in hexadecimal.",
        "read as": "The number that this code stands for.",
        "target": "`abstract` is the cast without a chip; otherwise the chip, or the specification.",
        "rounding": "The mode in force, which may differ from the one asked for.",
        "overflow": "Policy beyond the range: saturate, wrap, special (infinity or NaN). In `run`: how many numbers "
        "became infinity or NaN.",
        "sat": "The saturation switch in force.",
        "output bits": "The code of the result.",
        "number": "The number that was given.",
        "element": "The narrow element in bits.",
        "scale": "The scale of its block in bits.",
        "text": "The string of the cast.",
        "value": "The number that the code stands for.",
        "ulps": "Distance from the abstract cast, in units of the last place.",
        "magnitude": "The binade of the input.",
        "inputs": "How many were tried.",
        "largest ulps": "The largest distance between two results.",
        "rejected by": "Specifications that do not accept this result.",
        "codes": "Codes that were tried.",
        "mismatches": "Codes for which the two sides differ.",
        "codes/s": "Codes per second of processor time.",
        "got": "The code that the tier under test gives.",
        "is": "The number that this code stands for.",
        "expected": "The code that the reference gives.",
        "of": "How many there are in all.",
        "differ": "How many give another result.",
        "replaced by": "What `lower` computes instead of the instruction where it tries all codes.",
    },
    _LOWER: {
        "cast": "Source and destination format; in `run` the instruction.",
        "answer": "How the target does it: see [conformance](conformance.md) for the words.",
        "native": "Casts by one instruction as it stands, or with its modes.",
        "native with options": "Casts by one instruction once options of the target are set.",
        "chain": "Casts that several instructions do.",
        "copy": "Casts that change no bit.",
        "impossible": "Casts for which the target has no elements of that width.",
        "options": "Modes of the instruction, and options of the target.",
        "after": "The step behind which the value stands.",
        "format": "The format at that point.",
        "node": "Node of the graph.",
        "operator": "What the node computes.",
        "programs": "Programs that the node became.",
        "verdict": "What is known of the node's values: proven, exhaustively tried, refuted, or no mismatch met.",
        "claim": "What was claimed of the cast: a program does it, or a value refutes it.",
        "tried": "What the claim was tried on.",
        "wrong": "Codes for which the claim does not hold.",
    },
    _TARGETS: {
        "title": "The chip or the specification in words.",
        "mechanism": "The machine model: strided-repeat, vector-function or vliw.",
        "architectures": "Names by which a program asks for the target.",
        "casts": "How many type pairs it converts.",
        "specification": "The name for `--spec`.",
        "versions": "Versions that are known.",
        "since": "The version from which on it has the cast.",
        "requires": "The extension or profile that it needs.",
        "when": "The condition under which the rule holds.",
        "rule": "What results the specification accepts.",
        "from": "Source format.",
        "to": "Destination format.",
        "rounding modes": "Modes that the pair has of its own.",
        "default": "The mode without an attribute.",
        "fallback": "The mode that silently replaces those that the pair lacks.",
        "saturation": "What saturation is without an attribute.",
        "switchable": "Whether `sat_mode` changes a result.",
        "tmp": "Whether, and how, the cast uses a tmp tile.",
        "rounding asked": "The mode that the text names.",
        "saturation asked": "What `sat_mode` says.",
        "tmp given": "Whether the cast has a tmp tile.",
        "in force": "What the hardware then does.",
        "warning": "What `run` says about it.",
        "difference": "What one of the two targets has and the other lacks.",
    },
    _SCRATCH: {
        "cast, saturation off": "A cast of the target that may need a tmp tile.",
        "term": "A part of the sizing formula.",
        "bytes": "Bytes that the part needs; of shapes: bytes really touched.",
        "rows": "Rows of the tile; of `accuracy`: figures of the curve.",
        "cols": "Columns of the tile.",
        "stride": "Elements from row to row.",
        "formula": "Bytes by the published formula.",
        "blocks": "Bytes touched, in whole blocks of 32.",
        "shape": "Rows and columns.",
        "needed": "Bytes that the tmp tile needs.",
    },
    _ACCURACY: {
        "path": "The code path of the vendor's kernel.",
        "counts": "What the published figure counts: with or without fill and drain.",
        "measurements": "The table of published figures.",
        "measured": "The published cycles.",
        "simulated": "The cycles of castsim.",
        "error %": "Simulated against measured; of the public model likewise.",
        "public model": "The cycles by the vendor's public cost model.",
        "mean %": "Mean of the absolute errors.",
        "median %": "Median of the absolute errors.",
        "max %": "The largest absolute error; of the public model likewise.",
        "left out": "With `--cross-validate`: the figures that were predicted from all others.",
        "rows were": "Whether facts of the target were fitted to these rows.",
        "read off": "What the published figures were read off: a chip, a simulator, a document.",
        "free fact": "A fact of the description that may be fitted to published figures.",
        "fit to all rows": "Its value where no figure is left out.",
        "public: mean %": "Mean of the public model's absolute errors.",
    },
    "`calibrate`": {
        "parameter": "The number of the description that is fitted.",
        "before": "Its value before; of rows: the simulated cycles.",
        "fitted": "Its value after.",
        "+-": "One standard error.",
        "after": "The simulated cycles with the fitted values.",
        "off %": "Error of these cycles.",
    },
    "castsim tune": {
        "rank": "Place among the simulated points: fewest cycles first, of equals fewest bytes.",
        "at least": "A lower bound of the cycles: the work of each instruction alone, summed over the busiest pipe.",
        "per element": "Cycles for each element of the outputs.",
        "buffer bytes": "Size of the range of the tile buffer that the kernel touches.",
        "bound by": "The pipe that spends most cycles on work of its own, waiting left out.",
        "front": "`*`: Pareto-optimal; no simulated point has fewer cycles or bytes and no more of the other.",
        "not simulated": "Points that were bounded only.",
        "does not run": "Points at which the kernel is refused, or never ends.",
        "reason": "Why.",
    },
    "castsim sweep (the Parquet file)": {
        "src, dst, rows, cols, row_stride, rounding, saturation, target": "The cast of the point; null: the default.",
        "program, target, args.NAME, option.NAME": "The program of the point, and what it was run with.",
        "cycles": "Cycles of the cast alone, or of the program; null if the point failed.",
        "busy, fill, ...": "Cycles of each cause on the pipe that is occupied longest; they add up to `cycles`.",
        "bound_by": "The cause of most cycles; of a program, the largest one other than waiting for another pipe.",
        "status": "`ok`, or `failed`.",
        "error": "Why it failed.",
    },
    "castsim schema": {
        "command": "the command that writes the document",
        "document": "its name",
        "version": "its `schema_version`",
        "content": "its contents in a sentence",
    },
    "`castsim diff`": {
        "cycles A": "Cycles of this cause on the first side.",
        "cycles B": "Cycles of this cause on the second side.",
        "B - A": "How many more cycles the second side spends; negative if fewer.",
        "index": "Where in the output the element stands, from 0.",
        "bits A": "The element of the first side as a code of its format.",
        "value A": "The number that this code stands for.",
        "bits B": "The element of the second side as a code of its format.",
        "value B": "The number that this code stands for.",
    },
    _NOTEBOOKS: {
        "busy": "Share of the run in which the pipe works.",
        "index": "Of a shape: its index in the arrays that were given to `estimate`.",
        "bound by": "The cause of most cycles.",
        "causes": "The cycles by cause, as a bar.",
        "operation": "The operation that was measured, and how.",
        "table": "The file of the measurements.",
        "public: max %": "The largest absolute error of the public model.",
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
