"""Random arrays, models, records, and files of studies: tables of results, ledgers, traces, measured cycles."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from fuzz import seeds
from fuzz.study_readers import ABOUT

_TARGETS = ("a2a3", "a5", "gaudi2", "goya", "exact")
TABLE_TARGET = b'base = "a2a3"\nname = "mine"\n[casts]\ntable = "rows.csv"\nsource = "own"\nstatus = "assumed"\n'


def target_seeds() -> tuple[bytes, ...]:
    """Short descriptions: those of the hostile files, and one for each shipped target."""
    own = tuple(f'base = "{name}"\nname = "mine"\n'.encode() for name in _TARGETS)
    return (*own, *(each for each in seeds.files(".toml") if len(each) < 2048))


@cache
def _rows() -> tuple[str, ...]:
    return tuple((seeds.ROOT / "targets" / "a2a3_casts.csv").read_text(encoding="utf-8").splitlines())


def table_seeds() -> tuple[bytes, ...]:
    return ("\n".join(_rows()).encode(),)


def record(rng: Random) -> bytes:
    """A record of which some values were replaced by others."""
    return json.dumps(changed(rng, seeds.records())).encode()


def result(rng: Random) -> bytes:
    return json.dumps(changed(rng, seeds.results())).encode()


def changed(rng: Random, documents: tuple[bytes, ...]) -> object:
    """Return a document of which some values were replaced by others."""
    held = json.loads(rng.choice([each for each in documents if each.rstrip().endswith(b"}")]))
    for _ in range(rng.randint(0, 3)):
        node = held
        while isinstance(node, dict | list) and node:
            key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
            if rng.random() < 0.5 or not isinstance(node[key], dict | list):
                node[key] = rng.choice((None, 0, -1, "x", [], {}, 1e308, True, 10**25, "\x00", [[]], {"a": 1}))
                break
            node = node[key]
    return held


_OPERATORS = (
    "Cast", "QuantizeLinear", "DequantizeLinear", "Add", "Mul", "Clip", "CastLike", "DynamicQuantizeLinear", "Sub",
    "Div", "Relu", "Identity", "Reshape", "Constant", "Max", "Min", "Abs", "Neg", "Round", "Floor", "Ceil", "Softmax",
    "If",
)  # fmt: skip
_INPUTS = {"CastLike": 2, "QuantizeLinear": 2, "DequantizeLinear": 2, "Add": 2, "Sub": 2, "Mul": 2, "Div": 2}


def onnx(rng: Random) -> bytes:
    """A model of a few nodes over values that mostly exist."""
    from onnx import helper  # noqa: PLC0415 - only for models

    shape = [rng.choice((1, 2, 4, 64)) for _ in range(rng.choice((0, 1, 2, 2, 3)))]
    known, nodes = ["x", "s"], []
    for number in range(rng.randint(1, 4)):
        name = rng.choice(_OPERATORS[:6] if rng.random() < 0.9 else _OPERATORS)
        given = [
            rng.choice([*known, "", "nowhere"] if rng.random() < 0.1 else known)
            for _ in range(_INPUTS.get(name, 1) if rng.random() < 0.95 else 3)
        ]
        more: dict[str, object] = {}
        if name == "Cast" or rng.random() < 0.1:
            more["to" if name == "Cast" else "axis"] = rng.choice(
                (1, 2, 3, 6, 10, 16, 17) if name == "Cast" else (0, 1, -1, 99)
            )
        if rng.random() < 0.05:
            more[rng.choice(("saturate", "block_size", "alpha", "odd"))] = rng.choice((0, 1, -1, 2.5, "text", [1, 2]))
        nodes.append(helper.make_node(name, given, [f"y{number}"], name=rng.choice(("", f"n{number}")), **more))
        known.append(f"y{number}")
    value = helper.make_tensor_value_info
    kinds = (1,) * 30 + (2, 3, 6, 10, 16, 17, 0, 200)
    constant = helper.make_tensor("s", 1, [], [rng.choice((0.5, 0.0, -1.0, float("inf"), 1e30))])
    graph = helper.make_graph(
        nodes, "g", [value("x", rng.choice(kinds), shape)], [value(known[-1], rng.choice(kinds), shape)], [constant]
    )
    opset = helper.make_opsetid(
        rng.choice(("",) * 15 + ("ai.onnx.ml",)), rng.choice((21,) * 9 + (13, 19, 23, 24, 25, 1, 6, 999))
    )
    return bytes(
        helper.make_model(graph, opset_imports=[opset], ir_version=rng.choice((10,) * 20 + (3, 99))).SerializeToString()
    )


if TYPE_CHECKING:
    import pyarrow as pa

_PROGRAM = str(seeds.ROOT / "programs" / "tuning" / "f32_to_bf16_tiles.pto")
_WHERE = (
    "rows * cols > 4096", "rows == 8", "cols % rows == 0 and rows > 1", "min(rows, cols) < 16", "src == 'f32'", "1",
    "rows / 2", "rows // (cols - 64)", "rows ** 9", "x > 1", "args.R * args.C > 64", "not", "rows.cols", "src < rows",
    "(" * 90 + "rows" + ")" * 90, "9" * 300 + " > rows", "rows if cols else 1", "__import__('os')", "-" * 300 + "rows",
)  # fmt: skip


def sweep_seeds() -> tuple[bytes, ...]:
    """The specifications among the sample programs, and the first of them with conditions of all kinds."""
    own = [each.replace(b"../tuning", str(seeds.ROOT / "programs" / "tuning").encode())
           for each in seeds.files(".toml", seeds.ROOT / "programs" / "sweeps")]  # fmt: skip
    return (*own, *(own[0] + f'\n[[exclude]]\nwhere = "{where}"\n'.encode() for where in _WHERE))


@cache
def _swept() -> tuple[bytes, ...]:
    """The results of two sweeps as the product writes them, with fewer causes and a shorter head: a mutation is to hit
    something.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - an extra

    import castsim  # noqa: PLC0415 - only for results

    grids = (
        {"sweep": {"kind": "cast", "mode": "estimate"},
         "grid": {"src": ["f32", "f16"], "dst": ["f32", "i8"], "rows": [8, 16], "cols": [16, 64], "target": "a5"}},
        {"sweep": {"kind": "program", "mode": "simulate"},
         "grid": {"program": _PROGRAM, "target": "a2a3", "args.R": [8, 16], "args.C": [256, 512]}},
    )  # fmt: skip
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number, grid in enumerate(grids):
            path = Path(folder) / f"{number}.parquet"
            castsim.sweep(grid, path, workers=1)
            table = pq.read_table(path)
            names = table.column_names
            first = names.index("cycles")
            short = table.select([*names[: first + 3], *names[-3:]]).replace_schema_metadata({"castsim_sweep": "1"})
            found.append(_parquet(short, Random(number)))
    return tuple(found)


def rows_seeds() -> tuple[bytes, ...]:
    return _swept()


def _parquet(table: pa.Table, rng: Random) -> bytes:
    import pyarrow.parquet as pq  # noqa: PLC0415 - an extra

    out = io.BytesIO()
    compression = rng.choice(("zstd", "snappy", "none", "gzip"))
    pq.write_table(table, out, compression=compression, row_group_size=rng.choice((1, 3, 1000)))
    return out.getvalue()


def _chunk(number: int, data: bytes) -> bytes:
    """A chunk of a ledger; the form is said in `castsim.tools.distribution.distributing`."""
    digest = hashlib.blake2b(number.to_bytes(8, "little") + data, digest_size=16).digest()
    return struct.pack("<4sQQ16s", b"\nCHK", number, len(data), digest) + data


@cache
def _packed() -> bytes:
    import pyarrow as pa  # noqa: PLC0415 - an extra

    sink = io.BytesIO()
    batch = pa.record_batch({"rows": [1, 2], "status": ["ok", "failed"]})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _head(rng: Random | None = None, work: str = "sweep") -> bytes:
    about: object = ABOUT
    if rng and rng.random() < 0.3:
        about = rng.choice(
            ({}, [], None, "x", {**ABOUT, "program": "2"}, {"specification": None}, [["specification", 1]])
        )
    version = rng.choice((2, 2, 2, 1, "2", None, True)) if rng else 2
    return json.dumps({"castsim_ledger": version, "of": work, "about": about}).encode() + b"\n"


def sweep_ledger(rng: Random) -> bytes:
    """A ledger with chunks, of which some are cut off, damaged, or hold what is no table."""
    found = _head(rng) if rng.random() < 0.9 else rng.choice((b"", b"\n", b"[" * 5000 + b"\n", b'{"castsim_ledger"'))
    for _ in range(rng.choice((0, 1, 2, 3))):
        data = _packed() if rng.random() < 0.8 else rng.choice((b"", b"x", _packed()[:-9], _packed() * 2, bytes(64)))
        found += _chunk(rng.choice((0, 1, 2, 3, 2**64 - 1)), data)
    return found[: rng.randrange(len(found) + 1)] if rng.random() < 0.3 else found


def sweep_ledger_seeds() -> tuple[bytes, ...]:
    return (_head() + _chunk(0, _packed()) + _chunk(1, _packed()), _head())


_ROW = {"simulated": True, "choices": {"R": 8}, "at_least": 3, "buffer_bytes": 64, "elements": 8, "cycles": 9,
        "bound_by": "V", "outputs": {"x": "0" * 64}, "reason": ""}  # fmt: skip


def tune_ledger_seeds() -> tuple[bytes, ...]:
    rows = (_ROW, {**_ROW, "simulated": False, "choices": {"R": 16}})
    pieces = (_chunk(number, json.dumps(row).encode()) for number, row in enumerate(rows))
    return (b"".join((_head(work="tune"), *pieces)),)


@cache
def trace_seeds() -> tuple[bytes, ...]:
    from castsim.__main__ import main  # noqa: PLC0415 - only for traces

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.json"
        assert (
            main(
                [
                    "run",
                    str(seeds.ROOT / "programs" / "f32_to_f16.pto"),
                    "--timing-only",
                    "--trace",
                    str(path),
                    "--quiet",
                ]
            )
            == 0
        )
        held = json.loads(path.read_bytes())
    held["traceEvents"] = held["traceEvents"][:20]
    return (json.dumps(held).encode(),)


def trace(rng: Random) -> bytes:
    """A trace of which some values were replaced by others."""

    return json.dumps(changed(rng, trace_seeds())).encode()


@cache
def _tables() -> tuple[tuple[str, ...], ...]:
    """The first rows of the shipped tables of measurements."""
    names = ("a5_measured_casts", "a5_measured_scopes", "a2a3_measured_casts", "a2a3_measured_operations")
    return tuple(
        tuple((seeds.ROOT / "targets" / f"{name}.csv").read_text(encoding="utf-8").splitlines()[:6]) for name in names
    )


def measurements_seeds() -> tuple[bytes, ...]:
    return tuple("\n".join(table).encode() for table in _tables())
