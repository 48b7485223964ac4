"""Random target descriptions, tables, `.npy` files, fragments of the command line and records."""

from __future__ import annotations

import json
import re
import struct
from functools import cache
from random import Random

from fuzz import seeds

_TARGETS = ("a2a3", "a5", "gaudi2", "goya", "exact")
_VALUES = (
    "0", "1", "-1", "1.5", '"x"', "true", "[]", "[1, 2]", "{}", "1e400", "nan", "99999999999999999999", "0x10", '""',
    "1979-05-27", '"\\u0000"', "{ value = 3, source = \"measured\" }", "[[1]]", "1e-400", "1_000",
)  # fmt: skip
TABLE_TARGET = b'base = "a2a3"\nname = "mine"\n[casts]\ntable = "rows.csv"\nsource = "own"\nstatus = "assumed"\n'


@cache
def _keys(name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the tables of a shipped description, each with its keys."""
    text = (seeds.ROOT / "targets" / f"{name}.toml").read_text(encoding="utf-8")
    parts = re.split(r"^\[+([^\]]+)\]+.*$", text, flags=re.MULTILINE)
    heads = ["", *parts[1::2]]
    return tuple(
        (head, tuple(re.findall(r"^([\w.\"-]+) *=", body, re.MULTILINE)))
        for head, body in zip(heads, parts[::2], strict=True)
    )


def target(rng: Random) -> bytes:
    """A description that builds on a shipped one and sets some of its keys to something."""
    base = rng.choice(_TARGETS)
    lines = [f'base = "{base}"' if rng.random() < 0.95 else "", 'name = "mine"']
    for head, keys in rng.sample(_keys(base), min(len(_keys(base)), rng.randint(0, 3))):
        if head:
            lines.append(f"[{head}]" if rng.random() < 0.95 else f"[[{head}]]")
        lines += [f"{key} = {rng.choice(_VALUES)}" for key in rng.sample(keys, min(len(keys), rng.randint(0, 3)))]
    return "\n".join([*lines, ""]).encode()


def target_seeds() -> tuple[bytes, ...]:
    """Short descriptions: those of the hostile files, and one for each shipped target."""
    own = tuple(f'base = "{name}"\nname = "mine"\n'.encode() for name in _TARGETS)
    return (*own, *(each for each in seeds.files(".toml") if len(each) < 2048))


@cache
def _rows() -> tuple[str, ...]:
    return tuple((seeds.ROOT / "targets" / "a2a3_casts.csv").read_text(encoding="utf-8").splitlines())


def table(rng: Random) -> bytes:
    """A table of casts with cells of other kinds."""
    head, *rows = _rows()
    lines = [row.split(",") for row in (head, *rows)]
    for _ in range(rng.choice((0, 0, 1))):
        lines.insert(rng.randrange(1, len(lines)), rng.choice(lines))
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        line = rng.choice(lines)
        line[rng.randrange(len(line))] = rng.choice(("", "x", '"', '"a,b"', "-1", "1e9", "\x00", "f99", "9" * 30))
    return "\n".join([*(",".join(line) for line in lines), ""]).encode()


def table_seeds() -> tuple[bytes, ...]:
    """The beginning of the shipped table."""
    return ("\n".join(_rows()).encode(),)


def npy(rng: Random) -> bytes:
    """A header of the format with fields of any kind, and elements or not."""
    description = (
        rng.choice(("<f4", ">f8", "|u1", "<i8"))
        if rng.random() < 0.7
        else rng.choice(
            ("<f4", ">f8", "|u1", "<i8", "|O", "|V0", "<U3", "<c16", "f4,i4", "?", "<M8[s]", "x" * 30, "|S0")
        )
    )
    few = rng.random() < 0.7
    extents = (
        [rng.choice((0, 1, 2, 3)) for _ in range(rng.choice((0, 1, 2)))]
        if few
        else [rng.choice((0, 1, 2, 3, 64, 1 << 31, 1 << 62, 10**30)) for _ in range(rng.choice((0, 1, 1, 2, 3, 40)))]
    )
    shape = "(" + "".join(f"{each}, " for each in extents) + ")"
    order = rng.choice(("True", "False", "False") if few else ("None", "0", "False"))
    fields = [f"'descr': '{description}'", f"'fortran_order': {order}", f"'shape': {shape}"]
    if rng.random() < 0.1:
        fields.insert(rng.randrange(4), rng.choice(fields))
    head = "{" + ", ".join(fields) + ", }"
    if rng.random() < 0.1:
        head = "(" * rng.choice((1, 100, 5000)) + head
    raw = head.encode() + b" " * rng.randrange(64) + b"\n"
    version = rng.choice((1, 1, 1, 2, 3, 0, 9))
    count = len(raw) if rng.random() < 0.9 else rng.randrange(1 << 16)
    length = struct.pack("<H" if version == 1 else "<I", count % (1 << 16 if version == 1 else 1 << 32))
    return b"\x93NUMPY" + bytes([version, 0]) + length + raw + rng.randbytes(rng.choice((0, 4, 16, 256, 256, 256)))


_FORMATS = (
    "f32", "f16", "bf16", "e4m3fn", "e5m2", "i8", "u8", "i16", "i32", "i64", "hif8", "e2m1", "f8_143@7", "x9", "",
)  # fmt: skip


def fragment(rng: Random) -> bytes:
    """Casts and operations in the short form of the command line."""
    parts, odd = [], rng.random() < 0.3
    for _ in range(rng.choice((1, 1, 2, 3))):
        shape = "16x64"
        if odd:
            shape = f"{rng.choice((1, 16, 128, 0, 10**12))}{rng.choice('xx*')}{rng.choice((1, 64, 512, -3))}"
        if rng.random() < 0.7:
            words = rng.sample(
                ("rint", "floor", "sat", "nosat", "tmp", "odd", "RINT", "???")[: 8 if odd else 4],
                rng.choice((0, 0, 1, 2)),
            )
            src, dst = (_FORMATS, _FORMATS) if odd else (_FORMATS[:1], _FORMATS[1:5])
            parts.append(f"tcvt {rng.choice(src)} -> {rng.choice(dst)} {shape} {' '.join(words)}")
        else:
            name = rng.choice(("tadds", "tadd", "texp", "tmuls", "trowmax", "tcvt", "tload", "")[: 8 if odd else 4])
            parts.append(f"{name} {rng.choice(_FORMATS)} {shape} {rng.choice(('', '2', '-0.5', '1e99', 'nan', 'x'))}")
    return rng.choice(("; ", ";", "\n", ";;")).join(parts).encode()


def fragment_seeds() -> tuple[bytes, ...]:
    """Fragments as the help shows them."""
    return (b"tcvt f32 -> e4m3fn 16x512 sat", b"tcvt f32 -> i8 16x512 rint sat tmp; tcvt i8 -> f16 16x512",
            b"texp f32 16x64; tadds f32 16x64 2")  # fmt: skip


def record(rng: Random) -> bytes:
    """A record of which some values were replaced by others."""
    return json.dumps(changed(rng, seeds.records())).encode()


def result(rng: Random) -> bytes:
    """The result of a run, likewise."""
    return json.dumps(changed(rng, seeds.results())).encode()


def messages(rng: Random) -> bytes:
    """Messages to a debugger, with headers of which some are wrong."""
    found = b""
    for _ in range(rng.randint(1, 4)):
        body = rng.choice(
            (b'{"seq": 1, "type": "request", "command": "initialize"}', b"[]", b"{", b"\xff", b"1e999", b"")
        )
        size = len(body) if rng.random() < 0.8 else rng.choice((0, 1, -1, 10**20, 1 << 31))
        head = rng.choice((b"Content-Length: %d", b"content-length:%d", b"Content-Length: %d\r\nX: y", b"X%d"))
        found += head % size + rng.choice((b"\r\n\r\n", b"\r\n\r\n", b"\n\n", b"\n")) + body
    return found


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
