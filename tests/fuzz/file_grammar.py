"""Random target descriptions, tables, `.npy` files, fragments of the command line and records."""

from __future__ import annotations

import json
import struct
from functools import cache
from random import Random

from fuzz import seeds

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


def record(rng: Random) -> bytes:
    """A record of which some values were replaced by others."""
    return json.dumps(changed(rng, seeds.records())).encode()


def result(rng: Random) -> bytes:
    """The result of a run, likewise."""
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
