"""Distances of all pairs against a second calculator on the published stage tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import product
from typing import Any

import published_latency
import pytest
from published_latency import Operand
from tpc_operands import Place, described, places
from tpc_text import GENERATIONS, table, target

from castsim.machines.vliw.stage_latency import operand_key
from castsim.targets.vliw_latency import Latencies, OperandKey, RowMark

MARKS = {
    "is_float": RowMark.FLOAT, "is_f16": RowMark.F16, "is_f8": RowMark.F8, "irf_dest": RowMark.INDEX,
    "vector_pipe": RowMark.VECTOR, "two_s_dest": RowMark.PAIR, "x2": RowMark.X2,
}  # fmt: skip
LEAST_PAIRS = {"goya": 30_000, "gaudi": 30_000, "gaudib": 50_000, "greco": 60_000, "gaudi2": 100_000}


def by_registers(generation: str, found: Iterable[Place]) -> dict[str, list[tuple[OperandKey, Operand]]]:
    """What concerns the same registers, as castsim and as the tables name it; equals of both are one."""
    groups: dict[str, dict[tuple[object, ...], tuple[OperandKey, Operand]]] = defaultdict(dict)
    chip = target(generation)
    for place in found:
        key, operand = operand_key(chip, place.slot, place.instruction, place.role, place.file), described(place)
        names = (operand[name] for name in ("slot", "opcode", "operand", "file", "flags"))
        groups[place.read.removesuffix("_ro")][key, *names] = key, operand
    return {read: list(group.values()) for read, group in groups.items()}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_pair_of_every_instruction_is_at_the_distance_of_the_tables(generation: str) -> None:
    latencies, every = target(generation).latencies, list(places(generation))
    results = by_registers(generation, (place for place in every if place.role == "dest"))
    operands = by_registers(generation, (place for place in every if place.role != "dest"))
    assert {"V", "S", "I", "AD", "SP", "VP"} <= results.keys() & operands.keys()
    wrong, compared = [], 0
    for registers in results.keys() & operands.keys():
        for (producer, given), (consumer, read) in product(results[registers], operands[registers]):
            distance = latencies.latency(producer, consumer).distance
            compared += 1
            if distance != published_latency.distance(generation, given, read):
                wrong.append((given, read, distance))
    assert wrong == []
    assert compared > LEAST_PAIRS[generation]


def key_of(operand: dict[str, Any]) -> OperandKey:
    marks = frozenset(MARKS[flag] for flag in operand["flags"])
    names = ("slot", "opcode", "operand", "file")
    return OperandKey(
        *(operand[name] for name in names), marks, acc_fp32=operand.get("acc_fp32", False), index=operand.get("dest", 0)
    )


def rows_as_operands(generation: str) -> list[dict[str, Any]]:
    names = ("slot", "opcode", "operand", "file", "flags")
    return [dict(zip(names, key, strict=True)) for key in published_latency.rows(generation)]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_pair_of_rows_is_at_the_distance_of_the_tables(generation: str) -> None:
    """The whole tables, with the instructions that castsim does not have."""
    latencies = target(generation).latencies
    results, operands = defaultdict(list), defaultdict(list)
    for operand in rows_as_operands(generation):
        is_result, file = operand["operand"].startswith("dst"), operand["file"]
        place = operand["operand"].partition("_")[2].removesuffix("_ro") if file == "hw" else file
        (results if is_result else operands)[place].append((operand, key_of(operand)))
    wrong = []
    for place in results:
        for (given, producer), (read, consumer) in product(results[place], operands[place]):
            distance = latencies.latency(producer, consumer).distance
            if distance != published_latency.distance(generation, given, read):
                wrong.append((given, read, distance))
    assert wrong == []


ACCUMULATORS = [
    {"slot": slot, "opcode": 0, "file": file, "flags": {"is_float", *narrow, *({"vector_pipe"} & pipe)}, "type": kind}
    for slot, file, pipe in (("vpu", "V", {"vector_pipe"}), ("spu", "S", set()))
    for kind, narrow in (("f32", ()), ("bf16", ()), ("f16", ("is_f16",)), ("f8_143", ("is_f8",)))
]


@pytest.mark.parametrize("generation", GENERATIONS[1:])
def test_accumulators_pass_by_destination_and_width(generation: str) -> None:
    """Rule 9b, whose cases castsim's own instructions do not reach: MAC with and without acc_fp32."""
    latencies, seen = target(generation).latencies, set()
    for first, second in product(ACCUMULATORS, ACCUMULATORS):
        if first["slot"] != second["slot"]:
            continue
        for wide, wide_too, dest, other in product((False, True), (False, True), range(5), (0, 1)):
            if (wide and first["type"] == "f32") or (wide_too and second["type"] == "f32"):
                continue
            flags = frozenset(first["flags"]) - {"vector_pipe"}
            given = {**first, "operand": "dst", "flags": flags, "acc_fp32": wide, "dest": dest}
            read = {**second, "operand": "src_c", "acc_fp32": wide_too, "dest": other}
            expected = published_latency.distance(generation, given, read)
            assert latencies.latency(key_of(given), key_of(read)).distance == expected, (given, read)
            seen.add(expected)
    assert seen == {4, 6}


# docs/reference/tpc.md section 6.1, last table, and section 1's own examples: producer, consumer, operand, distance.
ADD16 = {"slot": "vpu", "opcode": 2, "operand": "dst", "file": "V", "flags": {"is_float", "is_f16"}}
MUL16 = {**ADD16, "opcode": 1}
ADD8 = {**ADD16, "flags": {"is_float", "is_f8"}}
VALUE = {"slot": "vpu", "opcode": 1, "operand": "src_a", "file": "V", "flags": {"is_float", "is_f16", "vector_pipe"}}
SUM_A = {**VALUE, "opcode": 2}
SUM_B = {**SUM_A, "operand": "src_b"}
SCALAR = {"slot": "spu", "opcode": 8, "operand": "dst", "file": "S", "flags": set()}
LOCAL = {"slot": "store", "opcode": 5, "operand": "src_c", "file": "S", "flags": set()}
GLOBAL = {**LOCAL, "opcode": 6}
MAC_PAIR = {**ADD16, "opcode": 0, "flags": {"is_float"}, "acc_fp32": True, "type": "bf16", "dest": 6}
MAC_INTO_PAIR = {**MAC_PAIR, "operand": "src_c", "flags": {"is_float", "vector_pipe"}}
MAC_F32 = {**MAC_PAIR, "acc_fp32": False, "type": "f32"}
FROM_GAUDIB = ("gaudib", "greco", "gaudi2")


@pytest.mark.parametrize(
    ("generations", "producer", "consumer", "distance"),
    [
        (FROM_GAUDIB, ADD16, VALUE, 6),
        (FROM_GAUDIB, ADD16, SUM_B, 6),
        (FROM_GAUDIB, ADD16, SUM_A, 4),
        (FROM_GAUDIB, MUL16, SUM_A, 4),
        (FROM_GAUDIB, {**MUL16, "opcode": 3}, {**SUM_A, "opcode": 3}, 4),
        (("gaudi2",), ADD8, {**VALUE, "flags": {"is_float", "is_f8", "vector_pipe"}}, 6),
        (("gaudi2",), {**ADD8, "flags": {"is_float", "x2"}}, {**SUM_A, "flags": {"is_float", "x2", "vector_pipe"}}, 4),
        (GENERATIONS, SCALAR, LOCAL, 7),
        (GENERATIONS, SCALAR, GLOBAL, 7),
        (("gaudi", "gaudib", "greco", "gaudi2"), MAC_PAIR, MAC_INTO_PAIR, 4),
        (("gaudi", "gaudib", "greco", "gaudi2"), MAC_F32, MAC_INTO_PAIR, 6),
    ],
)
def test_the_corrected_distances(
    generations: tuple[str, ...], producer: dict[str, Any], consumer: dict[str, Any], distance: int
) -> None:
    for generation in generations:
        found = target(generation).latencies.latency(key_of(producer), key_of(consumer))
        assert found.distance == distance, (generation, found)
        assert published_latency.distance(generation, producer, consumer) == distance


def test_the_shipped_tables_are_the_published_ones() -> None:
    for generation in GENERATIONS:
        chip = target(generation)
        shipped = {
            (row.slot, row.opcode, row.operand, row.register_file, row.marks): (row.stage, row.entry_port or "")
            for row in chip.stages
        }
        published = {
            (slot, opcode, operand, file, frozenset(MARKS[flag] for flag in flags)): (
                stage, "" if operand.startswith("dst") and port == "" else port,
            )
            for (slot, opcode, operand, file, flags), (stage, port) in published_latency.rows(generation).items()
        }  # fmt: skip
        assert shipped == published
        assert {port.name: port.stage for port in chip.entry_ports} == published_latency.ports(generation)
    assert len(table("tpc_stages.csv")) == sum(len(target(name).stages) for name in GENERATIONS if name != "gaudib")


def test_every_decision_names_its_rule() -> None:
    """All rules decide somewhere; the last step is the one that counts."""
    decided = set()
    for generation in GENERATIONS:
        latencies: Latencies = target(generation).latencies
        keys = [key_of(operand) for operand in rows_as_operands(generation)]
        operands = [key for key in keys if not key.operand.startswith("dst")]
        for producer in (key for key in keys if key.operand == "dst" and key.file in ("V", "I", "AD", "VP", "S")):
            for consumer in (key for key in operands if key.file == producer.file):
                found = latencies.latency(producer, consumer)
                assert found.rule is found.steps[-1]
                decided.add(found.rule.name)
    everywhere = {"PORT", "STAGES", "INDEX_BYPASS", "MASKED_STORE", "EVENT", "LOOKUP", "ADDRESS_INCREMENT"}
    assert decided == everywhere | {"INTEGER_ACCUMULATOR", "LATE_ACCUMULATOR", "FORWARDED_ACCUMULATOR"}
