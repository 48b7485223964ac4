"""What can be seen of a target: cycles, values, refusals, bytes of code, findings. Cheap ones, one fact each.

An observation takes a target and returns something comparable; an error that castsim raises is an outcome too. None
of them repeats a fact: what `castsim targets` prints of a number is no use of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from core.execution import test_execution_transfers
from kit import a5_benchmark, engine_trees, function_works, scope_works, strided_works, work_programs
from kit.function_works import lanewise
from kit.paths import PROGRAMS, VECTORS

from castsim import cast, estimate, run
from castsim.engines import simulate
from castsim.execution.transfer_timing import SharedMemory
from castsim.execution.tree import Access, Block, GlobalSpace, Lowered, ResolvedTileOp, Tree
from castsim.isa.errors import CastsimError
from castsim.isa.formats import Saturation, format_named
from castsim.machines.mechanisms import lowerer_of
from castsim.machines.vector_function.front_end import time_scope
from castsim.machines.vector_function.launched_scope import Scope
from castsim.reports import run_cycles
from castsim.reports.run_cycles import HEADLINE
from castsim.reports.run_report import RunReport
from castsim.running.synchronisation.flags import plan
from castsim.running.synchronisation.removing import ElementListing, OperandBytes
from castsim.targets.description import lifted, with_options
from castsim.targets.loader import SHIPPED, load_target
from castsim.tools.accuracy.left_out import LeftOut, cross_validate
from castsim.tools.accuracy.measured_rows import read_table
from castsim.tools.estimate.cast_estimates import CastShape, OperandPlacement, TileCastRequest
from castsim.tools.estimate.operation_estimates import estimate_tile_operation
from castsim.tools.estimate.tile_estimates import estimate_load

ELEMENTS = VECTORS / "pto_scalars" / "element_access.pto"
"""A program whose scalar unit reads and writes elements of tiles."""
Observation = Callable[[Any], object]


def outcome(observation: Observation, target: Any) -> object:
    """Return what is seen, or the refusal."""
    try:
        return observation(target)
    except (CastsimError, ValueError, KeyError, IndexError, OverflowError) as error:
        return f"{type(error).__name__}: {error}"


# ------------------------------------------------------------------------------------------------ what all targets have


@cache
def programs(name: str) -> tuple[Path, ...]:
    """Return the sample programs of a target, small ones first."""
    found = (path for path in PROGRAMS.iterdir() if path.suffix in (".pto", ".tpc"))
    return tuple(sorted((path for path in found if _runs_on(path, name)), key=lambda path: path.stat().st_size))


def _runs_on(path: Path, name: str) -> bool:
    if path.suffix == ".tpc":
        return path.stem.endswith(f"_{name}")
    return f'"{ {"a2a3": "a3"}.get(name, name) }"' in path.read_text() or f'"{name}"' in path.read_text()


def cycles(path: Path, target: Any) -> object:
    """Cycles of a sample program."""
    return run(path, target, timing_only=path.suffix == ".pto", inputs=_inputs(path)).cycles


def _inputs(path: Path) -> dict[str, str]:
    text = path.read_text()
    return dict.fromkeys(re.findall(r"// castsim: (?:tensor|vlm) \w+ (\w+) (?!out\b)", text), "random:1")


def outputs(path: Path, target: Any) -> object:
    """Values of a sample program."""
    return sorted((name, array.tobytes()) for name, array in run(path, target, inputs=_inputs(path)).outputs.items())


def seconds(target: Any) -> object:
    """Time of a program."""
    path = programs(target.name)[0]
    return RunReport.of(run(path, target, timing_only=path.suffix == ".pto", inputs=_inputs(path)), {}).seconds


def settings(target: Any) -> object:
    """Which values an option may have."""
    return [
        (name, value, outcome(lambda chip, n=name, v=value: with_options(chip, {n: v}).option(n), target))
        for name, option in load_target(target.name).options.items()
        for value in (*option.legal, 1, 2, 3, 5, 7, 800, 801, 33)
    ]


def lifting(path: Path, limit: str, target: Any) -> object:
    """Cycles of a program with a limit lifted."""
    return cycles(path, lifted(target, limit))


def lifted_scalars(limit: str, target: Any) -> object:
    """What the scalar unit does in a program that accesses elements; a transfer may hide how long it takes."""
    return run(ELEMENTS, lifted(target, limit), timing_only=True, inputs=_inputs(ELEMENTS)).pipes["S"].causes


def scalar_unit(target: Any) -> object:
    """What the scalar unit does in such a program."""
    return run(ELEMENTS, target, timing_only=True, inputs=_inputs(ELEMENTS)).pipes["S"].causes


def shared(path: Path, cores: int, limit: str | None, target: Any) -> object:
    """Cycles of a program on one of so many cores, with a limit lifted."""
    chip = target if limit is None else lifted(target, limit)
    return run(path, chip, timing_only=True, inputs=_inputs(path), cores=cores).cycles


def shared_memory(options: Mapping[str, str], target: Any) -> object:
    """What 48 cores share, each of which loads 2 MiB: 96 MiB of an L2 cache of 128."""
    bytes_read = Access(GlobalSpace.of("x"), 0, 1 << 21, write=False)
    tree = Tree(Block((Lowered(0, Block(()), (bytes_read,)),)), (), interlocked=False)
    return SharedMemory.of(tree, with_options(target, {"cores": 48, **options}))


def launch_interval(path: Path, target: Any) -> object:
    """What the report says of a launch on two cores, which the interval bounds."""
    report = RunReport.of(run(path, target, timing_only=True, inputs=_inputs(path), cores=2), {})
    return [str(line) for line in HEADLINE.brief(report, 200)]


def launched(path: Path, args: Mapping[str, float], target: Any) -> object:
    """Cycles of a kernel beyond its pipes."""
    report = RunReport.of(run(path, target, timing_only=True, inputs={}, args=args), {})
    return run_cycles.launch_cycles(report)


def optional(path: Path, option: str, target: Any) -> object:
    """Cycles of a program, all that the option says included."""
    return target.option(option), cycles(path, target)


# ------------------------------------------------------------------------------------------------------- tile programs


def lowered_cast(src: str, dst: str, rows: int, cols: int, stride: int, saturation: str | None, target: Any) -> object:
    """What a cast issues."""
    lowerer = lowerer_of(target)
    mode = None if saturation is None else Saturation(saturation)
    request = TileCastRequest(format_named(src), format_named(dst), None, mode, saturation == "off")
    placement = OperandPlacement.of(target, lowerer, request)
    return repr(lowerer.cast(placement.cast(lowerer, CastShape(rows, stride, stride, rows, cols, cols))).body)


def by_interface(src: str, dst: str, target: Any) -> object:
    """What a cast issues that the chip has under an option only."""
    return lowered_cast(src, dst, 3, 200, 256, "off", with_options(target, {"interface_casts": "accept"}))


def started(src: str, dst: str, option: str, target: Any) -> object:
    """What a cast issues where a bit of CTRL is set when the kernel starts."""
    return lowered_cast(src, dst, 3, 100, 128, "off", with_options(target, {option: 1}))


def estimated(src: str, dst: str, rows: int, cols: int, stride: int, target: Any) -> object:
    """Cycles of a cast by closed form."""
    return estimate(src, dst, rows, cols, dst_row_stride=stride, target=target).cycles


def values(src: str, dst: str, saturation: str | None, target: Any) -> object:
    """Results of a cast."""
    x = np.array([40000, -3e9, 2.5, np.inf, -np.inf, np.nan, 1e-40, 300.7, 129, 0.1, -7], np.float32)
    codes = cast(x, "f32", src)
    return cast(codes, src, dst, target=target, saturation=saturation).tobytes()


def alone(mnemonic: str, element: str, rows: int, cols: int, runtime_valid: bool, target: Any) -> object:
    """Cycles of an operation on tiles that lie where tests have them."""
    return estimate_tile_operation(mnemonic, element, rows, cols, target=target, runtime_valid=runtime_valid).cycles


def loaded_as(convention: str, target: Any) -> object:
    """Cycles of a load as a convention counts them."""
    return estimate_load("f32", 16, 256, target=target.measured_as(convention)).cycles


def strided_issue(mnemonic: str, element: str, shape: tuple[int, int], target: Any) -> object:
    """What a vector operation issues on A2/A3."""
    return strided_works.listing(strided_works.example(mnemonic, element, *shape)), repr(
        strided_works.issued(strided_works.example(mnemonic, element, *shape), target)
    )


def strided_cycles(mnemonic: str, target: Any) -> object:
    """How long it takes."""
    return strided_works.cycles(target, strided_works.example(mnemonic))


def text_outcome(text: str, target: Any) -> object:
    """What a program that is walked issues, or why it is refused."""
    return repr(work_programs.walked(text, target).tree)


def text_values(text: str, target: Any) -> object:
    """The buffer behind a program."""
    return work_programs.computed(text, target, work_programs.noise(load_target(target.name))).tobytes()


def high_tile(address: int, target: Any) -> object:
    """Whether a tile may lie there."""
    spot = work_programs.Spot("a", "f32", 1, 8, address)
    return text_outcome(work_programs.program(work_programs.statement("trelu", [spot], spot), [spot]), target)


def many_bursts(rows: int, target: Any) -> object:
    """Whether a tile of so many rows is loaded."""
    tile = f"!pto.tile_buf<vec, {rows}x32xsi8>"
    text = test_execution_transfers.transfer("si8", [rows, 32], [32, 1], [0, 0], [rows, 32], tile, load=True)
    return text_outcome(text, target)


def transfer_cycles(pitch: int, target: Any) -> object:
    """Cycles of a load of 16 blocks of one bank group."""
    return simulate(engine_trees.singly(engine_trees.load(0, 32, bursts=16, pitch=pitch)), target).total


def lifted_transfer(limit: str, target: Any) -> object:
    """Cycles of such a load with a limit lifted."""
    return transfer_cycles(256, lifted(target, limit))


def shared_transfers(limit: str | None, target: Any) -> object:
    """Cycles of short lines and of a long one, loaded and stored, for whoever else transfers; a limit may be lifted."""
    found = []
    for others in target.options["transfer_sharing"].legal:
        chip = with_options(target, {"transfer_sharing": others})
        chip = chip if limit is None else lifted(chip, limit)
        for made, (size, bursts) in product((engine_trees.load, engine_trees.store), ((32, 1), (32, 64), (1 << 15, 1))):
            lines = replace(made(0, size, bursts=bursts), gm_pitch=1024)
            found.append(simulate(engine_trees.singly(lines), chip).total)
    return found


def flags(event: int, target: Any) -> object:
    """Whether an event id exists."""
    spot = work_programs.Spot("a", "f32", 1, 8, 0)
    pipes = f'["PIPE_V", "PIPE_MTE3", "EVENT_ID{event}"]'
    text = work_programs.program(
        f"pto.set_flag{pipes}\npto.wait_flag{pipes}".replace('"', "")
        .replace("[", "[<")
        .replace("]", ">]")
        .replace(", ", ">, <"),
        [spot],
    )
    return text_outcome(text, target)


Spot = work_programs.Spot
_ONE, _TWO, _OUT, _TMP = (Spot(name, "f32", 5, 192, at * 8192, (5, 133)) for at, name in enumerate("abdt"))


def _operation_texts() -> Iterator[str]:
    """Programs of single vector operations whose values rest on how much is touched, and in which order."""
    ones, two = [_ONE], [_ONE, _TWO]
    column = Spot("d", "f32", 8, 1, 16384, (5, 1), column=True)
    mask = Spot("m", "i8", 5, 32, 40960, (5, 17))
    for name, inputs, out in (
        ("tmov", ones, _OUT), ("tadd", two, _OUT), ("trsqrt", ones, _OUT), ("trowsum", [_ONE, _TMP], column),
        ("trowmax", [_ONE, _TMP], column), ("tcmp", two, mask), ("tdiv", two, _OUT),
    ):  # fmt: skip
        attribute = "{cmpMode = #pto<cmp ne>}" if name == "tcmp" else ""
        yield work_programs.program(work_programs.statement(name, inputs, out, attribute), [*inputs, out])
    for rows in (16, 255, 256, 257, 264):
        wide, narrow = (
            Spot("a", "f32", rows, 8, 0),
            Spot("c", "f32", -(-rows // 8) * 8, 1, 65536, (rows, 1), column=True),
        )
        out = Spot("d", "f32", rows, 8, 98304)
        yield work_programs.program(work_programs.statement("trowexpandmul", [wide, narrow], out), [wide, narrow, out])
        for size in (7680, 7936, 8192, 240, 256, 512):
            tmp = Spot("t", "i8", 1, size, 131072)
            yield work_programs.program(
                work_programs.statement("trowexpandmul", [wide, narrow, tmp], out), [wide, narrow, tmp, out]
            )
    for element, cols in (("i32", 192), ("i32", 184), ("i16", 448), ("i16", 440)):
        tmp, out = Spot("t", "f32", 1, cols, 131072), Spot("d", element, 1, 64, 0)
        operation = work_programs.statement("tci", [("s", element), tmp], out)
        yield work_programs.program(operation, [tmp, out], {"s": ("0", element)})
    for at in (188416, 188384, 196608 - 1024):
        wide = Spot("a", "f32", 16, 8, 0)
        narrow, out = Spot("c", "f32", 16, 1, 65536, column=True), Spot("d", "f32", 16, 8, at)
        yield work_programs.program(work_programs.statement("trowexpandmul", [wide, narrow], out), [wide, narrow, out])


def of_tiles(name: str) -> Iterator[tuple[str, Observation]]:
    """Observations of chips that run tile programs."""
    chip = load_target(name)
    yield "timing", scalar_unit
    for more in (0, 1):
        for limit in (None, "instant-loads", "instant-stores"):
            about = "cores" if limit is None else f"what_if.{limit}"
            yield about, partial(shared, programs(name)[0], chip.cores.count + more, limit)
    yield "launch_interval", partial(launch_interval, programs(name)[0])
    lift = "infinite-memory-bandwidth"
    for part in chip.global_memory:
        for held in ({"working_set": "resident"}, {}) if chip.shared_cache else ({},):
            seen = partial(shared_memory, {"global_memory": part, **held})
            yield from (("global_memory", seen), ("shared_cache", seen), ("frequency", seen))
            yield f"what_if.{lift}", lambda target, seen=seen: seen(lifted(target, lift))
    norm = PROGRAMS / "kernels" / f"rms_norm_{name}.pto"  # a column broadcast
    for path, args in ((programs(name)[0], {}), (norm, {"eps": 1e-6})):
        yield "kernel_launch", partial(launched, path, args)
    for mnemonic, element, cols in (("tadd", "f32", 72), ("tadd", "f16", 144), ("tmax", "f32", 200)):
        yield "estimated_tiles", partial(alone, mnemonic, element, 5, cols, False)
    top = load_target(name).memories["ub"].capacity_bytes
    for address in (16, 32, 48, 64, top - 32, top - 64, top):
        yield "memories", partial(high_tile, address)
    for event in (7, 8, 6):
        yield "pipes", partial(flags, event)
    for pitch in (256, 512, 2048):
        yield "banks", partial(transfer_cycles, pitch)
    for rows in (4095, 4096, 2048):
        yield "transfer_limits", partial(many_bursts, rows)
    for text in _operation_texts():
        yield "work values", partial(text_values, text)
        yield "work", partial(text_outcome, text)


def of_strided() -> Iterator[tuple[str, Observation]]:
    """Those of A2/A3."""
    chip = load_target("a2a3")
    for mnemonic in strided_works.MNEMONICS:
        yield "work cycles", partial(strided_cycles, mnemonic)
        for shape in ((4, 1536), (20, 192), (300, 64)):
            yield "work", partial(strided_issue, mnemonic, "f32", shape)
    for shape in ((3, 100, 4096), (300, 64, 64), (7, 200, 256)):
        for rule in chip.casts:
            for saturation in (None, "off"):
                yield "casts", partial(lowered_cast, rule.src, rule.dst, *shape, saturation)
            yield "estimates", partial(estimated, rule.src, rule.dst, *shape)
    for pair in chip.interface_casts:
        yield "casts", partial(by_interface, pair.src, pair.dst)
    for rule in chip.casts:
        for saturation in (None, "off"):
            yield "values", partial(values, rule.src, rule.dst, saturation)
    for option in (name for name in chip.options if name.endswith("_at_start")):
        yield "control", partial(started, "f16", "i8", option)
    for convention in ("issue", "complete"):
        yield "measured_conventions", lambda target, c=convention: strided_cycles("tadd", target.measured_as(c))
    yield "measured_conventions", partial(loaded_as, "transfers")
    for operations in (("TROWSUM", "TROWMAX"), ("TCOLMAX", "TADD"), ("TCVT", "TADD")):
        yield "free_facts", partial(fitted_operations, operations)


def of_functions() -> Iterator[tuple[str, Observation]]:
    """Those of A5."""
    chip = load_target("a5")
    for shape in ((1, 64, 64), (3, 320, 384), (20, 1280, 1312)):
        for rule in chip.casts:
            yield "estimates", partial(estimated, rule.src, rule.dst, *shape)
    for rule in chip.casts:
        for saturation in (None, "on", "off"):
            yield "casts", partial(lowered_cast, rule.src, rule.dst, 3, 320, 384, saturation)
            yield "values", partial(values, rule.src, rule.dst, saturation)
    yield from _of_operations(chip)
    shapes = (
        ("f32", 1, 64, 0), ("f32", 3, 320, 32), ("f32", 20, 1280, 32), ("f16", 1, 1280, 0), ("i32", 1, 64, 0),
        ("i32", 8, 1024, 0),
    )  # fmt: skip
    for fmt, rows, cols, pad in shapes:
        for rule in chip.tile_operations:
            if rule.structure in ("elementwise", "select"):
                yield "work cycles", partial(function_cycles, lanewise(rule.mnemonic, fmt, rows, cols, pad))
    for work in _reductions():
        yield "work cycles", partial(function_cycles, work)
    for pairs in (("bf16 e2m1", "e2m1 bf16"), ("f32 bf16", "bf16 f32", "e2m1 bf16", "e4m3fn f32", "bf16 e2m1")):
        yield "free_facts", partial(fitted, pairs)
    scopes = [scope_works.wide(), scope_works.dense()]
    for latency in chip.arithmetic:
        scopes += [scope_works.pair(latency, consumer) for consumer in ("vadd", "vsel", "vand")]
        scopes.append(scope_works.integers(latency))
    for scope in scopes:
        yield "launches", partial(launch_cycles, scope)


def _of_operations(chip: Any) -> Iterator[tuple[str, Observation]]:
    """Those of single operations whose valid region is known at run time, and of CTRL."""
    for option in ("reset", "hivm"):
        yield "control", partial(started_by, option)
    for row in {row.operation: row for row in a5_benchmark.benchmark() if row.cycles}.values():
        yield "work cycles", partial(a5_benchmark.simulated, row)
        yield "what_if.free-loops", lambda target, r=row: a5_benchmark.simulated(r, lifted(target, "free-loops"))
    special = "fast-special-functions"
    yield f"what_if.{special}", lambda target: alone("trsqrt", "f32", 1, 8192, False, lifted(target, special))
    for rule in chip.tile_operations:
        yield "work cycles", partial(alone, rule.mnemonic, rule.types[-1], 4, 512, True)


def started_by(controls: str, target: Any) -> object:
    """What casts issue where CTRL is as an option has it when the kernel starts."""
    return lowered_cast("f16", "i8", 3, 100, 128, "off", with_options(target, {"ctrl": controls}))


def fitted_operations(operations: tuple[str, ...], target: Any) -> object:
    """The free facts as a fit to measured rows of some operations finds them."""
    tables = [read_table(SHIPPED / each.file) for each in target.measurements]
    rows = [row for table in tables for row in table.rows if row.fitted and row.operation.upper() in operations]
    return cross_validate(
        target, replace(tables[0], rows=tuple(rows[:: 1 + len(rows) // 12])), LeftOut.OPERATION
    ).fitted


def fitted(pairs: tuple[str, ...], target: Any) -> object:
    """The free facts as a fit to some measured casts finds them."""
    table = read_table(SHIPPED / "a5_measured_casts.csv")
    rows = tuple(row for row in table.rows if f"{row.src.name} {row.dst.name}" in pairs)
    return cross_validate(target, replace(table, rows=rows), LeftOut.PAIR).fitted


def launch_cycles(scope: Scope, target: Any) -> object:
    """Cycles of a launch of vector instructions."""
    return time_scope(scope, target).cycles


def _reductions() -> Iterator[ResolvedTileOp]:
    tile, work = function_works.tile, function_works.work_of
    for fmt, per_block in (("f32", 8), ("f16", 16)):
        row, column = tile(fmt, 4, 640), tile(fmt, 4, per_block, (4, 1))
        for name in ("trowsum", "trowmax", "trowmin", "trowprod"):
            yield work(name, column, row)
        for name in ("tcolsum", "tcolmax", "tcolmin"):
            yield work(name, tile(fmt, 1, 640), row)
        yield work("tcmp", tile("i8", 1, 64), tile(fmt, 1, 64), tile(fmt, 1, 64))
        yield lanewise("tsel", fmt, 1, 640)
        yield lanewise("tdivs", "i32" if fmt == "f32" else "i16", 1, 64)
    yield lanewise("tsel", "i8", 1, 256)


def function_cycles(work: ResolvedTileOp, target: Any) -> object:
    """Cycles of a vector operation on A5, by either algorithm of division, masks split one by one or overlapped."""
    precise = with_options(target, {"division_algorithm": "high_precision", "predicate_interleave": "overlapped"})
    return function_works.work_cycles(work, target), function_works.work_cycles(work, precise)


def inserted_flags(target: Any) -> object:
    """Flags and barriers around dense results of many sizes, and of eight results of the scalar unit."""
    found = ElementListing()
    for number, size in enumerate((64, 2048, 4095, 4096, 4097, 8192, 65536)):
        one, other = (
            OperandBytes("vec", n, ((n * 10**6, n * 10**6 + size),), size) for n in (2 * number, 2 * number + 1)
        )
        found.operation("V", [], [one])
        found.operation("V", [one], [other])
    for number in range(100, 108):
        tile = OperandBytes("vec", number, ((number * 10**6, number * 10**6 + 64),))
        found.operation("S", [], [tile])
        found.operation("V", [tile], [OperandBytes("vec", 200, ((200 * 10**6, 200 * 10**6 + 64),))])
    return plan(found, target)


@cache
def observations(name: str) -> tuple[tuple[str, Observation], ...]:
    """Return all observations of a target with what they are about, the cheap ones first."""
    found: list[tuple[str, Observation]] = [
        ("frequency", seconds),
        ("options", settings),
        ("synchronisation", inserted_flags),
    ]
    found += [(f"what_if.{limit}", partial(lifted_transfer, limit)) for limit in load_target(name).what_if]
    for path in (*programs(name), ELEMENTS):
        found.append(("cycles", partial(cycles, path)))
        found += [(f"what_if.{limit}", partial(lifting, path, limit)) for limit in load_target(name).what_if]
    found += [(f"what_if.{limit}", partial(lifted_scalars, limit)) for limit in load_target(name).what_if]
    if "transfer_sharing" in load_target(name).options:
        found.append(("timing", partial(shared_transfers, None)))
        found += [(f"what_if.{limit}", partial(shared_transfers, limit)) for limit in load_target(name).what_if]
    found += [*of_tiles(name), *(of_strided() if name == "a2a3" else of_functions())]
    return tuple(found)


GROUPS = {
    "timing": ("timing", "cycles", "launches", "work cycles", "estimates", "cores"),
    "options": ("options", "casts", "values", "cycles", "work values"),
    "kernels": ("estimates", "casts", "cycles", "values"),
    "profiled_sequences": ("cycles", "estimates"),
    "arithmetic": ("work cycles", "launches"),
    "free_facts": ("free_facts",),
    "tile_operations": ("work cycles",),
    "repeat": ("work", "casts", "estimates"),
    "narrow_strides": ("casts", "estimates", "cycles"),
    "control": ("control", "casts", "values", "work"),
    "control_classes": ("casts", "values"),
    "dequantisation_scale": ("values",),
    "memories": ("memories", "casts", "cycles"),
    "banks": ("banks", "cycles", "work cycles"),
    "registers": ("casts", "cycles", "values"),
    "casts": ("casts", "estimates"),
    "scratch_sequences": ("casts", "estimates"),
    "tile_arithmetic": ("work values", "work"),
    "broadcast_scratch": ("work",),
    "unreserved_scratch": ("work",),
    "ramp_scratch": ("work",),
}
"""What is looked at first when a number of a table changes; then everything of the same name."""


def groups_of(keys: tuple[object, ...]) -> tuple[str, ...]:
    """Return which observations are about a fact."""
    first = str(keys[0])
    return (f"what_if.{keys[1]}",) if first == "what_if" else GROUPS.get(first, (first, "values", "cycles"))
