"""Execution of a node's programs with a record of them, and judgement of their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from castsim.execution.run_limits import DEFAULT_LIMITS, Limits
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Codes, Format, IntFormat
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import array_from_codes, codes_from_array, value_of
from castsim.reports.documents import Keys, apart, derived, record, says
from castsim.reports.numbers import bits_text
from castsim.reports.schemas.keys import Bits, Cycles, Elements, Name, Scalar
from castsim.running.acceptance import AcceptanceSets, is_nan
from castsim.running.loaded import LoadedProgram
from castsim.running.program_loading import load_text
from castsim.running.program_runs import computed, run_loaded
from castsim.tools.graphs.graph_kernels import (
    F32,
    WRITING,
    Chip,
    Converted,
    KeptValue,
    KernelValue,
    NodeKernel,
    NodeText,
)
from castsim.tools.graphs.model import GraphTensor
from castsim.tools.lowering.demand import Verdict, decimal_text
from castsim.tools.lowering.lowering_answers import Answer, Setting, options_text, with_options_named
from castsim.tools.lowering.planner import Plan
from castsim.tools.lowering.proof import Method
from castsim.tools.lowering.steps import Chain

# Judging results: element by element against the reference, or against what a specification accepts.

Mask = NDArray[np.bool_]


def number_of(code: int, fmt: Format) -> str:
    """Return a code as the shortest number that identifies it."""
    value = value_of(code, fmt)
    return "-0" if isinstance(value, float) and value == 0 else decimal_text(value)


def _witness_text(witness: WrongElement) -> str:
    """Return a wrong element in words: its index, its sources, the actual and the expected value."""
    location = f"[{', '.join(map(str, witness.index))}]"
    sources = ", ".join(f"{number_of(code, fmt)} ({fmt.name} {bits_text(code, fmt)})" for fmt, code in witness.sources)
    came = f"{number_of(witness.result, witness.format)} ({witness.result_bits})"
    text = f"{location}: " + (f"from {sources}: " if sources else "") + came
    if witness.expected is None:
        return f"{text}, which the specification does not accept"
    return f"{text} instead of {number_of(witness.expected, witness.format)} ({witness.expected_bits})"


class WitnessSource(Keys):
    """An element from which a wrong one was computed."""

    format: str = says("Name of its format.", lambda pair: pair[0])
    bits: Bits = says("Its code.", lambda pair: bits_text(pair[1], pair[0]))


@record
class WrongElement(Keys, title="Witness"):
    """A wrong element."""

    index: tuple[int, ...] = says("Index of the element.")
    sources: tuple[tuple[Format, int], ...] = apart()
    """Formats and codes of the elements that determine it."""
    source_elements: Sequence[WitnessSource] = derived("The elements that determine it.", "sources", key="sources")
    format: Format = apart()
    result: int = apart()
    result_bits: Bits = derived("Its code.", lambda own: bits_text(own.result, own.format))
    expected: int | None = apart()
    expected_bits: Bits | None = derived(
        "The right code; null if a set of results is right.",
        lambda own: None if own.expected is None else bits_text(own.expected, own.format),
    )
    text: str = derived("The difference in words.", _witness_text)


def _no_mask() -> Mask:
    return np.zeros(0, np.bool_)


@record
class OutputComparison(Keys, title="Comparison"):
    """Comparison of results with expected values."""

    output: str = says("Name of the tensor.")
    against: str = says("The reference of the comparison.")
    elements: Elements = says("Number of compared elements.")
    undefined: Elements = says("Number of elements for which any result is valid.")
    wrong: Elements = says("Number of wrong elements.")
    passed: Elements = says(
        "Number of elements that differ from the reference but are accepted: left open, or zeros of another sign.",
        default=0,
    )
    because: tuple[str, ...] = says(
        "For wrong outputs: the nodes before them with accepted differences, which may explain them.",
        key="because_of_nodes",
        default=(),
    )
    witness: WrongElement | None = says("The first wrong element; null if there is none.", default=None)
    sets: bool = apart(default=False)
    """Whether the elements were compared with sets of a specification, whose label is `against`."""
    right: Mask = apart(default_factory=_no_mask, compare=False)
    open: Mask = apart(default_factory=_no_mask, compare=False)
    """Which right elements have other right results besides the reference."""

    @property
    def specified(self) -> int:
        """Number of elements with a specified result."""
        return self.elements - self.undefined


def against_reference(
    output: str,
    result: GraphTensor,
    expected: GraphTensor,
    sources: list[GraphTensor | None],
    undefined: Mask,
    *,
    either_zero: bool = False,
    against: str = "reference evaluator",
) -> OutputComparison:
    """Compare bits; all NaNs are equal, and with `either_zero` zeros of both signs are too."""
    fmt = result.format
    nan = is_nan(result.codes, fmt) & is_nan(expected.codes, fmt)
    equal = (result.codes == expected.codes) | nan
    right = equal | undefined
    if either_zero and not isinstance(fmt, IntFormat):
        numbers = [tensor.array.astype(np.float64) for tensor in (result, expected)]
        right |= (numbers[0] == 0) & (numbers[1] == 0)
    comparison = _comparison(output, against, result, right, undefined, sources, expected)
    return replace(comparison, passed=int((right & ~equal).sum()), open=right & (undefined | ~equal))


def against_sets(
    output: str, result: GraphTensor, sets: AcceptanceSets, sources: list[GraphTensor | None], against: str
) -> OutputComparison:
    """Compare with the sets of a specification; a witness names the accepted code if there is only one."""
    right = sets.contains(result.codes)
    single = GraphTensor(result.format, np.where(sets.single, sets.lowest, 0)) if sets.single.any() else None
    comparison = _comparison(output, against, result, right, sets.anything, sources, single)
    witness = comparison.witness
    if witness is not None and not sets.single[witness.index]:
        witness = replace(witness, expected=None)
    return replace(comparison, witness=witness, sets=True)


def _comparison(
    output: str,
    against: str,
    result: GraphTensor,
    right: Mask,
    undefined: Mask,
    sources: list[GraphTensor | None],
    expected: GraphTensor | None,
) -> OutputComparison:
    wrong = int((~right).sum())
    witness = None
    if wrong:
        index = tuple(
            int(coordinate) for coordinate in np.unravel_index(int(np.argmin(right.reshape(-1))), right.shape)
        )
        sources_text = [
            (tensor.format, int(np.broadcast_to(tensor.codes, right.shape)[index]))
            for tensor in sources
            if tensor is not None and _fits(tensor.shape, right.shape)
        ]
        code = None if expected is None else int(expected.codes[index])
        witness = WrongElement(index, tuple(sources_text), result.format, int(result.codes[index]), code)
    return OutputComparison(
        output, against, right.size, int(undefined.sum()), wrong, witness=witness, right=right, open=undefined & right
    )


def _fits(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, whole) == whole
    except ValueError:
        return False


# The verdicts on a node: stronger than that a run met no difference only where something proves more.


class NodeVerdict(StrEnum):
    """The verdict on a node."""

    PROVEN = "proven"
    """Its cast is proven for every source code, by an argument."""
    TRIED = "exhaustively tried"
    """Every code of its inputs was tried."""
    UNCHANGED = "no data changes"
    """It changes no code."""
    NO_MISMATCH = "no mismatch on this input"
    """The run showed no difference, which says nothing about other inputs."""
    DIFFERS = "differs"
    """There is a counterexample, in the run, the proof, or the trial of all codes."""
    NOT_JUDGED = "not judged"
    """It ran without a reference for its results."""
    NOT_RUN = "not run"
    """It was not run."""

    @property
    def certain(self) -> bool:
        """Whether no input can give a wrong result."""
        return self in (NodeVerdict.PROVEN, NodeVerdict.TRIED, NodeVerdict.UNCHANGED)


def verdict_of_plan(plan: Plan) -> NodeVerdict:
    """Return the verdict that follows from the proof of a node's lowered cast."""
    if plan.verdict is Verdict.DIFFERS:
        return NodeVerdict.DIFFERS
    if plan.evidence is None or not plan.evidence.proves:
        return NodeVerdict.NO_MISMATCH
    return NodeVerdict.TRIED if plan.evidence.method is Method.EXHAUSTIVE else NodeVerdict.PROVEN


if TYPE_CHECKING:
    from castsim.running.loaded import LoadedProgram


# Running the programs of kernels on their target.


def run_program(
    program: NodeText,
    inputs: Mapping[str, Codes],
    name: str,
    engine: str | None,
    timed: dict[str, tuple[LoadedProgram, int]],
    limits: Limits = DEFAULT_LIMITS,
) -> tuple[dict[str, Codes], int]:
    """Run a program on flat codes of one length, padded with zeros to whole tiles.

    Returns codes by output, and the program's total cycles, with loads and stores.

    `timed` are tile programs by text that ran before on the same target and engine, with their cycles, which do not
    depend on values: similar nodes share them.

    Raises:
        ReadError: the engine is unknown.
        IllegalError, TileError: the target refuses the program.
        EngineError: the run reaches the cycle limit.
        LimitError: the walk exceeds `limits`.
    """
    size = next(iter(inputs.values())).size
    arrays = {
        key: array_from_codes(_filled(inputs[key], fmt, program.elements), fmt) for key, fmt in program.inputs.items()
    }
    if program.text in timed:
        loaded, cycles = timed[program.text]
        outputs_computed = computed(loaded, arrays, limits)
    else:
        fresh = load_text(program.text, f"{name}{program.suffix}", program.target, limits)
        result = run_loaded(fresh, arrays, engine=engine, limits=limits)
        outputs_computed, cycles = dict(result.outputs), result.cycles
        if fresh.tree is not None:
            timed[program.text] = fresh, cycles
    outputs = {
        key: codes_from_array(outputs_computed[key], fmt).reshape(-1)[:size] for key, fmt in program.outputs.items()
    }
    return outputs, cycles


def _filled(codes: Codes, fmt: Format, elements: int) -> Codes:
    whole = np.zeros(elements, code_dtype(fmt))
    whole[: codes.size] = codes
    return whole


_BYTE = 8


def _run_command(stage: KernelRun) -> str:
    """Return the command that runs a program; FILE if it was not written."""
    options = f" {options_text(stage.settings)}" if stage.settings else ""
    inputs = "".join(f" --in {name}=random:{seed}" for seed, name in enumerate(stage.program.inputs))
    return f"castsim run {'FILE' if stage.file is None else quote(str(stage.file))}{options}{inputs}"


@record
class KernelRun(Keys, title="NodeProgram"):
    """A program of a node."""

    title: str = says("Description of the program.")
    instructions: tuple[str, ...] = says("Its instructions.")
    program: NodeText = apart()
    cycles: Cycles = says("Its cycles, including loads and stores.")
    elements: Elements = says("Number of elements of the tensor.")
    elements_with_filling: Elements = derived(
        "Number of elements after padding to whole tiles or registers.", "program.elements"
    )
    tiles: int = derived("Number of tiles or registers.", "program.tiles")
    settings: Setting = apart()
    options: Mapping[Name, Scalar] = derived(
        "The target options that the program needs.", lambda own: dict(own.settings)
    )
    file: Path | None = says("The output file; null if none was written.", default=None)
    run: str = derived("The command that runs it.", _run_command)


@dataclass
class GraphKernelRunner:
    """Runner of kernels on a chip that stores the runs and remarks."""

    chip: Chip
    name: str
    engine: str | None = None
    limits: Limits = DEFAULT_LIMITS
    stages: list[KernelRun] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    timed: dict[str, tuple[LoadedProgram, int]] = field(default_factory=dict)
    """Tile programs that already ran on this chip and engine; the nodes of a graph share them."""
    timeless: bool = False
    """Whether only outputs are wanted: then no program runs if its instructions suffice."""

    def run(self, kernel: NodeKernel, inputs: Mapping[str, Codes], answered: Answer | None = None) -> dict[str, Codes]:
        """Run a kernel on flat codes of one length; return the codes of its outputs.

        `answered` supplies the target options of a planned chain.

        Raises:
            IllegalError, TileError: the target has no program for it.
        """
        size = next(iter(inputs.values())).size
        target, settings = self.chip.target, self.chip.given
        if answered is not None:
            target, settings = answered.plan.target, answered.settings
        if self.timeless and (values := WRITING.of(target).outputs(kernel, target, inputs)) is not None:
            return values
        program = WRITING.of(target).program(kernel, target, max(size, 1))
        program = replace(program, text=with_options_named(program.text, settings))
        outputs, cycles = run_program(program, inputs, self.name, self.engine, self.timed, self.limits)
        words = tuple(_words(instruction) for instruction in kernel.instructions)
        self.stages.append(KernelRun(kernel.title, words, program, cycles, size, settings))
        return outputs

    def remark(self, text: str) -> None:
        """Add a distinct remark about the node."""
        if text not in self.remarks:
            self.remarks.append(text)

    # ------------------------------------------------------------------------------------------------ kernels of one

    def unary(self, title: str, fmt: Format) -> tuple[NodeKernel, KernelValue]:
        """Return a new kernel with its input `src`."""
        kernel = NodeKernel(title)
        return kernel, kernel.input("src", fmt)

    def finish(
        self, kernel: NodeKernel, value: KernelValue, codes: Codes, fmt: Format, answered: Answer | None = None
    ) -> Codes:
        """Name the value `dst`, run the kernel and return the codes of `fmt`, in the shape of the input."""
        kernel.output("dst", value)
        given = {"src": codes.reshape(-1).astype(code_dtype(kernel.inputs[0].format))}
        results = self.run(kernel, given, answered)["dst"]
        return results.astype(code_dtype(fmt)).reshape(codes.shape)

    def through(
        self, title: str, codes: Codes, fmt: Format, chain: Chain, dst: Format, answered: Answer | None = None
    ) -> Codes:
        """Apply a chain to codes."""
        kernel, value = self.unary(title, fmt)
        return self.finish(kernel, kernel.convert(value, chain), codes, dst, answered)

    def unpacked(self, codes: Codes, fmt: Format) -> tuple[Codes, Format]:
        """Return codes in the format used for computing with them."""
        if (byte := self.computed_as(fmt)) == fmt:
            return codes, fmt
        if self.chip.lacks(fmt):
            self.remark(
                f"{self.chip.target.name} has no instruction for elements of {fmt.name}, so `castsim lower` has none: "
                "here each takes a byte, unpacked before the program and packed after it, without cycles"
            )
            sign = 1 << (fmt.bits - 1) if isinstance(fmt, IntFormat) and fmt.signed else 0
            return (codes.astype(np.uint8) ^ np.uint8(sign)) - np.uint8(sign), byte
        return self.through(f"{fmt.name} to {byte.name}", codes, fmt, self.integers(fmt, byte), byte), byte

    def packed(self, codes: Codes, fmt: Format, dst: Format) -> Codes:
        """Convert the result of `unpacked` back to the narrower format."""
        if fmt == dst:
            return codes
        if self.chip.lacks(dst):
            self.unpacked(codes[:0], dst)  # for its remark
            return (codes & ((1 << dst.bits) - 1)).astype(code_dtype(dst))
        chain = self.integers(fmt, dst, *_limits(dst))
        return self.through(f"{fmt.name} to {dst.name}", codes, fmt, chain, dst)

    def computed_as(self, dst: Format) -> Format:
        """Return the format of arithmetic on a format: for narrower integers it may be bytes."""
        if dst.bits >= _BYTE or not isinstance(dst, IntFormat) or dst.boolean:
            return dst
        if not (self.chip.writing.NIBBLES_AS_BYTES or self.chip.lacks(dst)):
            return dst
        return FORMATS["i8" if dst.signed else "u8"]

    # -------------------------------------------------------------------------------------------------- conversions

    def integers(self, src: Format, dst: Format, low: int | None = None, high: int | None = None) -> Chain:
        """Return a chain that is exact on integers, by default on all of the source.

        Raises:
            IllegalError: the target has none.
        """
        least, most = _limits(src) if low is None or high is None else (low, high)
        chain = self.chip.integers(src, dst, least, most)
        if chain is None:
            raise self._no_cast(src, dst, f"exact {src.name} -> {dst.name} of {least} to {most}")
        return chain

    def _no_cast(self, src: Format, dst: Format, cast: str) -> IllegalError:
        name, lacking = self.chip.target.name, [fmt.name for fmt in (src, dst) if self.chip.lacks(fmt)]
        reason = f": {name} has no instruction for elements of {' and '.join(lacking)}" if lacking else ""
        return IllegalError(f"{name} has no {cast}{reason}")

    def widened(self, kernel: NodeKernel, value: KernelValue) -> KernelValue:
        """Return a value as f32: exact for all formats of up to 16 bits, rounded to nearest for i32.

        Raises:
            IllegalError: the target has no such cast.
        """
        fmt = value.format
        if fmt == F32:
            return value
        if isinstance(fmt, IntFormat) and fmt.bits <= 16:
            chain = self.chip.integers(fmt, F32, *_limits(fmt))
            if chain is None and not fmt.signed and fmt.bits >= _BYTE:
                return self._from_signed(kernel, value, fmt)
        else:
            chain = self.chip.numbers(fmt, F32)
        if chain is None:
            raise self._no_cast(fmt, F32, f"exact {fmt.name} -> f32")
        return kernel.convert(value, chain)

    def narrowed(self, kernel: NodeKernel, value: KernelValue, dst: Format, low: int, high: int) -> KernelValue:
        """Convert an f32 that is an integer from `low` to `high` to an integer format.

        Raises:
            IllegalError: the target has no such cast.
        """
        chain = self.chip.integers(F32, dst, low, high)
        assert isinstance(dst, IntFormat)
        if chain is None and not dst.signed and not self.chip.lacks(dst):
            signed = FORMATS[f"i{dst.bits}"]
            over = clamped(kernel, kernel.combine("add", value, f32(-signed.maximum)), 0.0, 1.0)  # type: ignore[union-attr]
            lowered = kernel.combine("add", value, kernel.combine("mul", over, f32(-(1 << dst.bits))))
            back = self.integers(F32, signed, *_limits(signed))
            return kernel.convert(kernel.convert(lowered, back), self.chip.reread(signed, dst))
        if chain is None:
            raise self._no_cast(F32, dst, f"exact f32 -> {dst.name} of {low} to {high}")
        return kernel.convert(value, chain)

    def rounded(self, kernel: NodeKernel, value: KernelValue, dst: Format) -> KernelValue:
        """Return an f32 as a float format, or as i32, rounded to nearest, ties to even, within its range.

        Raises:
            IllegalError: the target has no such cast.
        """
        if dst == F32:
            return value
        chain = self.chip.numbers(F32, dst)
        if chain is None:
            raise self._no_cast(F32, dst, f"f32 -> {dst.name} rounded to nearest")
        return kernel.convert(value, chain)

    def bounded(self, kernel: NodeKernel, value: KernelValue, low: int | None, high: int | None) -> KernelValue:
        """Return a value between two bounds, codes of its format; NaN is kept if the target can keep it.

        If the lower bound exceeds the upper one, the result is the upper one.
        """
        extremes_value = extremes(kernel, value, low, high)
        return extremes_value if extremes_value == value else self.nan_kept(kernel, extremes_value, value, value)

    def nan_kept(
        self, kernel: NodeKernel, bounded: KernelValue, origin: KernelValue, tested: KernelValue
    ) -> KernelValue:
        """Return a bounded value, with NaN restored if maximum and minimum have lost it.

        `tested` is the same number as `origin` in a format that the target can compare.
        """
        chip = self.chip
        if isinstance(origin.format, IntFormat):
            return bounded
        lost = chip.nan_loss(tested.format)
        if not lost and tested.format != origin.format and chip.narrowing_loses_nan(origin.format):
            lost = f"{chip.target.name} makes NaN a number in the cast back to {origin.format.name}"
        if not lost:
            return bounded
        view = chip.selected_as(origin.format)
        if view is None or not chip.has("cmp", tested.format):
            self.remark(f"{lost}, and it has no comparison and selection of {origin.format.name}: NaN becomes a bound")
            return bounded
        self.remark(f"{lost}: a comparison of the elements with themselves and a selection put NaN back")
        return kernel.keep_nan(bounded, origin, tested, view)

    def _from_signed(self, kernel: NodeKernel, value: KernelValue, fmt: IntFormat) -> KernelValue:
        """Read an unsigned integer as the signed one, and add 2**bits where that is negative."""
        signed = FORMATS[f"i{fmt.bits}"]
        chain = (*self.chip.reread(fmt, signed), *self.integers(signed, F32))
        number = kernel.convert(value, chain)
        negative = clamped(kernel, kernel.combine("mul", number, f32(-1.0)), 0.0, 1.0)
        return kernel.combine("add", number, kernel.combine("mul", negative, f32(1 << fmt.bits)))


def clamped(kernel: NodeKernel, value: KernelValue, low: float | None, high: float | None) -> KernelValue:
    """Return an f32 between two bounds; None means no bound."""
    if low is not None:
        value = kernel.combine("max", value, f32(low))
    return value if high is None else kernel.combine("min", value, f32(high))


def extremes(kernel: NodeKernel, value: KernelValue, low: int | None, high: int | None) -> KernelValue:
    """Return a value between two bounds, codes of its format.

    The constant is the first operand, so a machine that keeps the second operand keeps NaN.
    """
    for function, bound in (("max", low), ("min", high)):
        if bound is not None:
            value = kernel.combine(function, value, bound, backwards=True)
    return value


def f32(number: float) -> int:
    """Return the f32 code of a number, rounded to nearest."""
    return int(np.float32(number).view(np.uint32))


def _limits(fmt: Format) -> tuple[int, int]:
    assert isinstance(fmt, IntFormat)
    return fmt.minimum, fmt.maximum


def _words(instruction: Any) -> str:
    if isinstance(instruction, Converted):
        return instruction.step.label
    if isinstance(instruction, KeptValue):
        return f"cmp eq {instruction.tested.format.name}, sel {instruction.view.name}"
    second = instruction.second
    if instruction.function == "shl":
        return f"shl {instruction.first.format.name} {second}"
    operand = "" if isinstance(second, KernelValue) else f" {number_of(second, instruction.first.format)}"
    return f"{instruction.function} {instruction.first.format.name}{operand}"
