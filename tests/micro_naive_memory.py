"""Models of predicates, loads and stores, bit by bit; see `micro_naive`."""

from __future__ import annotations

from collections.abc import Callable

import lanes_model as model
from micro_naive import Bits, Given, Result, mask_of, of


# -------------------------------------------------------------------------------------------------------- predicates
def _first(given: Given) -> list[Result]:
    lanes = 2048 // given.one.mask
    (count,) = given.one.numbers
    return [mask_of([int(at < count) for at in range(lanes)], given.one.mask), max(count - lanes, 0)]


def _piece(given: Given) -> list[Result]:
    lanes = 2048 // given.one.mask
    piece, count = given.one.numbers
    return [mask_of([int(piece * lanes + at < count) for at in range(lanes)], given.one.mask)]


def _pattern(given: Given) -> list[Result]:
    lanes, word = 2048 // given.one.mask, given.one.word("pattern") or ""
    every, rest = range(lanes), word.removeprefix("PAT_")
    if rest.startswith("VL"):
        chosen = [at < int(rest[2:]) for at in every]
    elif rest[0] == "M":
        chosen = [at % int(rest[1:]) == 0 for at in every]
    else:
        chosen = [at < {"ALL": lanes, "ALLF": 0, "H": lanes // 2, "Q": lanes // 4}[rest] for at in every]
    return [mask_of([int(each) for each in chosen], given.one.mask)]


_RULES: dict[str, Callable[[int, int], int]] = {
    "pand": lambda x, y: x & y,
    "por": lambda x, y: x | y,
    "pxor": lambda x, y: x ^ y,
}


def _logic(given: Given) -> list[Result]:
    rule = _RULES[given.one.name]
    return [[rule(x, y) & z for x, y, z in zip(*given.masks, strict=True)]]


def _halves(given: Given) -> list[Result]:
    start = 128 * (given.one.word("half") == "HIGHER")
    (source,), found = given.masks, [0] * 256
    for at in range(128):
        if given.one.name == "ppack":
            found[start + at] = source[2 * at]
        else:
            found[2 * at] = source[start + at]
    return [found]


def _turns(given: Given) -> list[Result]:
    width = given.one.mask
    one, two = (mask[:: width // 8] for mask in given.masks)
    turns, both = [bit for pair in zip(one, two, strict=True) for bit in pair], one + two
    is_out = given.one.family == "pdintlv"
    parts = (both[::2], both[1::2]) if is_out else (turns[: len(one)], turns[len(one) :])
    return [mask_of(part, width) for part in parts]


PREDICATES: dict[str, Callable[[Given], list[Result]]] = {
    "plt": _first,
    "pltm": _piece,
    **dict.fromkeys(("pset", "pge"), _pattern),
    **dict.fromkeys(_RULES, _logic),
    "pnot": lambda given: [[(1 - x) & z for x, z in zip(*given.masks, strict=True)]],
    "psel": lambda given: [[x if z else y for x, y, z in zip(*given.masks, strict=True)]],
    **dict.fromkeys(("ppack", "punpack"), _halves),
    "pbitcast": lambda given: [given.masks[0]],
    **dict.fromkeys(("pintlv", "pdintlv"), _turns),
}
"""Models of what works on masks alone; names without the width of their lanes."""


# ------------------------------------------------------------------------------------------------------------- loads
def _mode(given: Given) -> str:
    """The distribution mode with the width that the text leaves to the type."""
    word = given.one.word("dist") or "NORM"
    if word == "NORM" and given.one.name == "vsts":
        return f"NORM_B{given.bits}"
    if word in ("SPLT2CHN", "SPLT4CHN"):
        return f"{word}_B{given.bits}"
    return "BDINTLV" if word == "BDINTLV_BLK" else word


def _load(given: Given) -> list[Result]:
    return list(model.loaded(_mode(given), given.memory, 0))


def _blocks(given: Given) -> list[Result]:
    step, start = given.one.numbers[0], 0 if given.one.updates else given.one.numbers[1]
    found = b""
    for block in range(8):
        at = 32 * (start + block * step)
        found += given.memory[at : at + 32] if any(given.masks[0][32 * block : 32 * block + 32]) else bytes(32)
    return [found]


def _image(given: Given) -> list[Result]:
    bits = [given.memory[at // 8] >> (at % 8) & 1 for at in range(512)]
    word = given.one.word("dist") or "NORM"
    return [{"NORM": bits[:256], "US": [bits[at // 2] for at in range(256)], "DS": bits[::2]}[word]]


def _gather(given: Given) -> list[Result]:
    """Lanes of the width of the offsets; elements in memory are those of the pointer, here of the result."""
    width, size = model.bits_of(given.one.other), given.bits // 8
    count = 2048 // width
    active = given.active(bits=width) if given.masks else [int(at < given.one.numbers[0]) for at in range(count)]
    found = []
    for place, bit in zip(given.lanes(0, width), active, strict=True):
        found.append(int.from_bytes(given.memory[place * size : (place + 1) * size], "little") if bit else 0)
    return [of(found, width)]


def _gather_blocks(given: Given) -> list[Result]:
    found = b""
    for block, place in enumerate(given.lanes(0, 32)[:8]):
        wanted = any(given.masks[0][32 * block : 32 * block + 32]) if given.masks else block < given.one.numbers[0]
        found += given.memory[place : place + 32] if wanted else bytes(32)
    return [found]


LOADS: dict[str, Callable[[Given], list[Result]]] = {
    **dict.fromkeys(("vlds", "vldsx2"), _load),
    "vsldb": _blocks,
    **dict.fromkeys(("plds", "pldi"), _image),
    "vldas": lambda given: [],
    "vldus": lambda given: [given.memory[:256]],
    **dict.fromkeys(("vgather2", "vgather2_bc"), _gather),
    "vgatherb": _gather_blocks,
}
"""Models of loads."""


# ------------------------------------------------------------------------------------------------------------ stores
def _store(given: Given) -> dict[int, int]:
    return model.stored(_mode(given), given.registers, given.masks[0])


def _store_blocks(given: Given) -> dict[int, int]:
    step, start = given.one.numbers[0], 0 if given.one.updates else given.one.numbers[1]
    found = {}
    for block in range(8):
        if any(given.masks[0][32 * block : 32 * block + 32]):
            for at in range(32):
                found[32 * (start + block * step) + at] = given.registers[0][32 * block + at]
    return found


def _store_image(given: Given) -> dict[int, int]:
    bits: Bits = given.masks[0][:: 2 if given.one.word("dist") == "PK" else 1]
    return {at // 8: sum(bits[at + k] << k for k in range(8)) for at in range(0, len(bits), 8)}


def _scatter(given: Given) -> dict[int, int]:
    size, count = given.bits // 8, 2048 // given.bits
    active = given.active() if given.masks else [int(at < given.one.numbers[0]) for at in range(count)]
    found = {}
    for lane, (place, bit) in enumerate(zip(given.lanes(1), active, strict=True)):
        if bit:
            for at in range(size):
                found[place * size + at] = given.registers[0][lane * size + at]
    return found


def _store_leading(given: Given) -> dict[int, int]:
    return dict(enumerate(given.registers[0][: given.one.numbers[0] * given.bits // 8]))


STORES: dict[str, Callable[[Given], dict[int, int]]] = {
    **dict.fromkeys(("vsts", "vstsx2"), _store),
    "vsstb": _store_blocks,
    **dict.fromkeys(("psts", "psti"), _store_image),
    "vscatter": _scatter,
    "vstus": _store_leading,
    "vstur": lambda given: {},  # the register AR counts nothing yet
    **dict.fromkeys(("vstas", "vstar"), lambda given: {}),
}
"""Models of stores: bytes beyond the address."""
