"""Random specifications of sweeps, tables of their results, ledgers, traces and tables of measured cycles."""

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

if TYPE_CHECKING:
    import pyarrow as pa

_PROGRAM = str(seeds.ROOT / "programs" / "tuning" / "f32_to_bf16_tiles.pto")
_RANGES = (
    "8", "[8, 16]", '"8..64"', '"8..64:8"', '"8..64*2"', "{ from = 8, to = 64, step = 8 }",
    "{ from = 1, to = 9, times = 2 }",
)  # fmt: skip
_ODD = (
    "0", "-1", "1.5", '"x"', "true", "[]", "{}", "1e400", "nan", "1979-05-27", "9223372036854775807", "[[8]]", '[""]',
    '"8..1"', '"8..9:0"', '"1..9999999999999999999"', '"1..100000*1"', "[8, 8, 8]", '"default"',
    "{ from = -9223372036854775808, to = 9223372036854775807 }", "{ from = 1, to = 9, step = 0 }",
    "{ from = 1, to = 1000000000, times = 2 }", "[{ from = 1, to = 3 }, 7]",
)  # fmt: skip
_FORMATS = ("f32", "f16", "bf16", "i8", "e4m3fn", "hif8")
_WHERE = (
    "rows * cols > 4096", "rows == 8", "cols % rows == 0 and rows > 1", "min(rows, cols) < 16", "src == 'f32'", "1",
    "rows / 2", "rows // (cols - 64)", "rows ** 9", "x > 1", "args.R * args.C > 64", "not", "rows.cols", "src < rows",
    "(" * 90 + "rows" + ")" * 90, "9" * 300 + " > rows", "rows if cols else 1", "__import__('os')", "-" * 300 + "rows",
)  # fmt: skip


def sweep(rng: Random) -> bytes:
    """A specification: most of its values can be, some cannot."""
    kind = rng.choice(("cast", "cast", "program"))
    mode = "simulate" if kind == "program" else rng.choice(("estimate", "simulate"))
    odd = rng.random() < 0.5

    def number() -> str:
        return rng.choice(_ODD if odd and rng.random() < 0.3 else _RANGES)

    def words(legal: tuple[str, ...]) -> str:
        if odd and rng.random() < 0.2:
            return rng.choice(_ODD)
        found = [f'"{rng.choice(legal)}"' for _ in range(rng.choice((1, 1, 2, 3)))]
        return found[0] if len(found) == 1 else f"[{', '.join(found)}]"

    lines = ["[sweep]", f'kind = "{kind}"', f'mode = "{mode}"', "[grid]", f"target = {words(('a2a3', 'a5', 'gaudi2'))}"]
    if kind == "cast":
        lines += [f"src = {words(_FORMATS)}", f"dst = {words(_FORMATS)}", f"rows = {number()}", f"cols = {number()}"]
        extra = (f"row_stride = {number()}", f"rounding = {words(('rint', 'floor', 'odd'))}",
                 f"saturation = {words(('on', 'off', 'default'))}")  # fmt: skip
    else:
        lines.append(f"program = {words((_PROGRAM, 'nothing.pto') if odd else (_PROGRAM,))}")
        extra = (f"args.R = {number()}", f"args.C = {number()}", f"option.vector_head = {words(('idle', 'always'))}")
    lines += [each for each in extra if rng.random() < 0.4]
    if odd and rng.random() < 0.3:
        lines.insert(
            rng.randrange(len(lines)),
            rng.choice(("x = 1", "[grid]", "rows = 8", "[sweep.x]", "[[grid]]", '"" = 1', "kind = 1")),
        )
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        lines += ["[[exclude]]", f'where = "{rng.choice(_WHERE)}"' if rng.random() < 0.7 else f"rows = {number()}"]
    return "\n".join([*lines, ""]).encode()


def sweep_seeds() -> tuple[bytes, ...]:
    """The specifications among the sample programs."""
    return tuple(each.replace(b"../tuning", str(seeds.ROOT / "programs" / "tuning").encode())
                 for each in seeds.files(".toml", seeds.ROOT / "programs" / "sweeps"))  # fmt: skip


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
    """Tables of results."""
    return _swept()


def _parquet(table: pa.Table, rng: Random) -> bytes:
    import pyarrow.parquet as pq  # noqa: PLC0415 - an extra

    out = io.BytesIO()
    compression = rng.choice(("zstd", "snappy", "none", "gzip"))
    pq.write_table(table, out, compression=compression, row_group_size=rng.choice((1, 3, 1000)))
    return out.getvalue()


def rows(rng: Random) -> bytes:
    """A table of results of which columns and values were replaced by others."""
    import pyarrow as pa  # noqa: PLC0415 - an extra
    import pyarrow.parquet as pq  # noqa: PLC0415 - an extra

    table = pq.read_table(io.BytesIO(rng.choice(_swept())))
    if rng.random() < 0.3:
        table = table.slice(0, rng.choice((0, 1, 2)))
    count = table.num_rows
    for _ in range(rng.choice((0, 1, 1, 2))):
        place = rng.randrange(table.num_columns)
        name = table.column_names[place]
        match rng.randrange(5):
            case 0:
                table = table.remove_column(place)
            case 1:
                table = table.append_column(rng.choice((name, "x", "")), table.column(place))
            case 2:
                values = [rng.choice((0, -1, 1, 2**62, 7, None)) for _ in range(count)]
                table = table.set_column(place, name, pa.array(values, pa.int64()))
            case 3:
                texts = [rng.choice(("", "ok", "x" * 300, "\x1b[2J", None)) for _ in range(count)]
                table = table.set_column(place, name, pa.array(texts, pa.string()))
            case _:
                other = rng.choice((
                    pa.array([0.5] * count), pa.array([float("nan")] * count), pa.nulls(count),
                    pa.array([[1]] * count, pa.list_(pa.int8())), pa.array([b"\xff"] * count, pa.binary()),
                    pa.array([{"a": 1}] * count, pa.struct([("a", pa.int8())])), pa.array([True] * count),
                ))  # fmt: skip
                table = table.set_column(place, name, other)
    if rng.random() < 0.1:
        table = table.replace_schema_metadata(rng.choice(({}, {"castsim_sweep": "2"}, {"castsim_sweep": "1"})))
    return _parquet(table, rng)


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
    """A ledger of two chunks, and an empty one."""
    return (_head() + _chunk(0, _packed()) + _chunk(1, _packed()), _head())


_ROW = {"simulated": True, "choices": {"R": 8}, "at_least": 3, "buffer_bytes": 64, "elements": 8, "cycles": 9,
        "bound_by": "V", "outputs": {"x": "0" * 64}, "reason": ""}  # fmt: skip
_JSON_VALUES = (None, 0, -1, "x", [], {}, 1e308, True, 10**25, [["R", 8]], {"a": 1}, {"R": []}, "ab", 1.5)


def tune_ledger(rng: Random) -> bytes:
    """A ledger of which some values were replaced by others, and whose end is cut off."""
    found = _head(rng if rng.random() < 0.2 else None, "tune")
    for number in range(rng.choice((0, 1, 2, 4))):
        row: dict[str, object] = {**_ROW, "choices": {"R": rng.choice((8, 16, "x"))}}
        for _ in range(rng.choice((0, 0, 1, 1, 2))):
            row[rng.choice(list(row))] = rng.choice(_JSON_VALUES)
        if rng.random() < 0.1:
            del row[rng.choice(list(row))]
        text = json.dumps(row) if rng.random() < 0.9 else rng.choice(("[" * 5000, "{", "[]", "1e999", "\x00"))
        found += _chunk(number, text.encode())
    return found[: rng.randrange(len(found))] if rng.random() < 0.2 else found


def tune_ledger_seeds() -> tuple[bytes, ...]:
    """A ledger of two rows."""
    rows = (_ROW, {**_ROW, "simulated": False, "choices": {"R": 16}})
    pieces = (_chunk(number, json.dumps(row).encode()) for number, row in enumerate(rows))
    return (b"".join((_head(work="tune"), *pieces)),)


@cache
def trace_seeds() -> tuple[bytes, ...]:
    """A trace, as the product writes it."""
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
    from fuzz.file_grammar import changed  # noqa: PLC0415 - imports more than the others need

    return json.dumps(changed(rng, trace_seeds())).encode()


_CELLS = (
    "", "0", "1", "-1", "1.5", "x", "9" * 30, '"', '"1,2"', "f32", "true", "dn", "1D", "16777216", "\x00", "TADD",
    "vadd a",
)  # fmt: skip


@cache
def _tables() -> tuple[tuple[str, ...], ...]:
    """The first rows of the shipped tables of measurements."""
    names = ("a5_measured_casts", "a5_measured_scopes", "a2a3_measured_casts", "a2a3_measured_operations")
    return tuple(
        tuple((seeds.ROOT / "targets" / f"{name}.csv").read_text(encoding="utf-8").splitlines()[:6]) for name in names
    )


def measurements(rng: Random) -> bytes:
    """A table of measured cycles with cells of other kinds."""
    head, *held = rng.choice(_tables())
    lines = [row.split(",") for row in (head, *rng.sample(held, min(len(held), rng.randint(0, 3))))]
    for _ in range(rng.choice((0, 1, 1, 2))):
        line = rng.choice(lines)
        line[rng.randrange(len(line))] = rng.choice(_CELLS)
    return "\n".join([*(",".join(line) for line in lines), ""]).encode()


def measurements_seeds() -> tuple[bytes, ...]:
    """The first rows of each shipped table."""
    return tuple("\n".join(table).encode() for table in _tables())


def lookup_table(rng: Random) -> bytes:
    """Eight numbers, or others."""
    words = (
        "0", "1", "-1", "0.5", "1e30", "nan", "inf", "0x7f", "0x", "1_0", "x", "", '"', "9" * 40, "1e999999", "\x00",
    )  # fmt: skip
    likely = rng.random() < 0.6
    cells = [
        rng.choice(words[:4] if likely else words) for _ in range(8 if rng.random() < 0.8 else rng.choice((0, 1, 7, 9)))
    ]
    return rng.choice((",", "\n", ", ")).join(cells).encode()
