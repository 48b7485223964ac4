"""A second calculator of TPC distances, straight from docs/reference/tpc.md section 6.1 and the published tables.

Nothing of castsim is used here. A result or operand is a dictionary: gen, slot, opcode, operand, file, flags (the
columns of tpc_stages.csv that are 1) and, where it counts, acc_fp32, dest (number of the destination register), type
(format name), lfsr (the generator's state that a conversion steps).
"""

from __future__ import annotations

import csv
from functools import cache
from typing import Any

from kit.paths import VECTORS

STAGE = {"d1": -1, "d2": 0, **{f"e{n}": n for n in range(1, 14)}}
NUMBER = {"goya": 1, "gaudi": 2, "gaudib": 2, "greco": 3, "gaudi2": 4}
TABLE = {"goya": "goya", "gaudi": "gaudi", "gaudib": "gaudi", "greco": "greco", "gaudi2": "gaudi2"}
"""GaudiB's table is Gaudi's."""
FLAGS = ("is_float", "is_f16", "is_f8", "irf_dest", "vector_pipe", "two_s_dest", "x2")

Operand = dict[str, Any]
Key = tuple[str, int, str, str, frozenset[str]]


@cache
def rows(gen: str) -> dict[Key, tuple[int, str]]:
    with (VECTORS / "tpc_stages.csv").open(newline="", encoding="utf-8") as file:
        found = {}
        for row in csv.DictReader(file):
            if row["gen"] == TABLE[gen]:
                flags = frozenset(flag for flag in FLAGS if row[flag] == "1")
                key = (row["slot"], int(row["opcode"]), row["operand"], row["register_file"], flags)
                assert key not in found
                found[key] = STAGE[row["stage"]], row["entry_port"]
        return found


@cache
def ports(gen: str) -> dict[str, int]:
    with (VECTORS / "tpc_entry_ports.csv").open(newline="", encoding="utf-8") as file:
        return {row["entry_port"]: STAGE[row["stage"]] for row in csv.DictReader(file) if row["gen"] == TABLE[gen]}


def row_of(gen: str, operand: Operand) -> tuple[int, str] | None:
    """The row; where the tables have none for f16 or f8, or for floats at all, the one without (predicates, ABS)."""
    flags = frozenset(operand["flags"])
    narrow = {"is_f16", "is_f8", "x2"}
    for less in (frozenset(), frozenset(narrow), frozenset({*narrow, "is_float"})):
        key = (operand["slot"], operand["opcode"], operand["operand"], operand["file"], flags - less)
        if key in rows(gen):
            return rows(gen)[key]
    return None


def distance(gen: str, producer: Operand, consumer: Operand) -> int:
    """Rules 1 to 9 in their order; rule 1 is tpc_latency.csv's row of a write to the seed."""
    if producer["operand"] in ("dst_vpu_lfsr", "dst_spu_lfsr"):
        return 4
    written, read = row_of(gen, producer), row_of(gen, consumer)
    if read is None or (written is None and not producer.get("lfsr")):
        return 4
    p = 3 if producer.get("lfsr") or written is None else written[0]
    c, s = read[0], ports(gen)[read[1]]
    if consumer["file"] == "I" and not (_on_producer_list(gen, producer) and _on_consumer_list(gen, consumer)):
        c = 0
    if s > p:
        latency = max(1, s - c + 1)
    else:
        latency = max(1, p - c + 1)
        masks = producer["file"] == consumer["file"] == "VP"
        if gen == "gaudi2" and _is(consumer, "store", 7, 8, 9) and masks and p - c + 1 == 0:
            latency = 0
    if gen == "gaudi2" and _is(consumer, "store", 24) and consumer["operand"] != "predicate":
        latency = 12 if producer["opcode"] == 40 else 7
    if _is(producer, "load", 7, 9) and "x2" not in producer["flags"]:
        latency += 1
    if NUMBER[gen] >= 3:
        latency = _from_greco(producer, consumer, p, latency)
    return _accumulators(gen, producer, consumer, latency) if NUMBER[gen] >= 2 else latency


def _is(operand: Operand, slot: str, *opcodes: int) -> bool:
    return operand["slot"] == slot and operand["opcode"] in opcodes


def _on_producer_list(gen: str, producer: Operand) -> bool:
    shifts = (19, 20) if NUMBER[gen] >= 2 else ()
    return _is(producer, "spu", 2, 3, 8, 39, *shifts) or _is(producer, "load", 4, 5) or _is(producer, "store", 4)


def _on_consumer_list(gen: str, consumer: Operand) -> bool:
    shifts = (19, 20) if NUMBER[gen] >= 2 else ()
    return consumer["slot"] in ("load", "store") or _is(consumer, "spu", 1, 2, 3, 8, 39, *shifts)


FAMILIES = (("load", (12,)), ("load", (13,)), ("store", (6,)), ("load", (14, 15, 16)), ("store", (7, 8, 9)))


def _from_greco(producer: Operand, consumer: Operand, p: int, latency: int) -> int:
    """Rules 7 and 8; rule 7 is asked for address registers, which are of one file."""
    if consumer["operand"] == "src_a" and producer["file"] == consumer["file"]:
        for slot, opcodes in FAMILIES:
            if _is(producer, slot, *opcodes) and _is(consumer, slot, *opcodes):
                latency = 1
    product = _is(consumer, "spu", 0) or _is(consumer, "vpu", 0, 55)
    accumulates = product and "is_float" not in consumer["flags"] and consumer["operand"] == "src_c"
    if accumulates and producer["slot"] == consumer["slot"] and p in (4, 5, 6, 11):
        latency -= 1
    return latency


def _accumulators(gen: str, producer: Operand, consumer: Operand, latency: int) -> int:
    """Rule 9."""
    narrow = {"is_f16", "is_f8", "x2"}
    product = _is(consumer, "spu", 0) or _is(consumer, "vpu", 0, 55)
    takes = consumer["operand"] == "src_c" and product and "is_float" in consumer["flags"]
    sums = consumer["operand"] == "src_a" and consumer["slot"] in ("spu", "vpu") and consumer["opcode"] in (2, 3)
    takes = takes or (sums and bool(narrow & set(consumer["flags"])))
    if not takes:
        return latency
    passes = producer["operand"] == "dst" and (
        ((_is(producer, "spu", 0, 1) or _is(producer, "vpu", 0, 1, 55)) and "is_float" in producer["flags"])
        or (
            producer["slot"] in ("spu", "vpu")
            and producer["opcode"] in (2, 3)
            and bool(narrow & set(producer["flags"]))
        )
    )
    if not passes:
        late = _is(producer, "vpu", 44, 45, 46, 50, 49, 51)
        scalar = _is(producer, "spu", 40) or (_is(producer, "spu", 38) and "two_s_dest" in producer["flags"])
        return latency + 1 if late or (scalar and consumer["slot"] == "spu") else latency
    if latency != 5:
        return latency
    same_acc = bool(producer.get("acc_fp32")) == bool(consumer.get("acc_fp32"))
    same_f16 = ("is_f16" in producer["flags"]) == ("is_f16" in consumer["flags"])
    modulo = {"f8_143": 4, "f8_152": 4, "f16": 2, "bf16": 2}.get(consumer.get("type", ""), 0)
    same_place = modulo == 0 or producer.get("dest", 0) % modulo == consumer.get("dest", 0) % modulo
    near = (
        consumer["slot"] == "spu"
        or (consumer["slot"] == "vpu" and same_place)
        or not (producer.get("acc_fp32") or consumer.get("acc_fp32"))
    )
    return 4 if same_acc and same_f16 and near else 6
