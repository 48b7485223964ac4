"""What each combination of `micro_combinations` yields, lane by lane, from docs/reference/micro.md alone.

Registers are `bytes` of 256, masks lists of 256 bits. A model returns what the operation yields in the order of the
text, or, as a dictionary, the bytes that it stores beyond its address.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import oracle
from core.machines.vector_function import lanes_elements as el
from core.machines.vector_function.micro_combinations import Combination, scalar_code
from kit import lanes_model as model

BINARY = {
    "vadd": el.add,
    "vsub": el.sub,
    "vmul": el.mul,
    "vmax": lambda a, b, name: el.extreme(a, b, name, largest=True),
    "vmin": lambda a, b, name: el.extreme(a, b, name, largest=False),
    "vaddrelu": lambda a, b, name: el.relu(el.add(a, b, name), name),
    "vsubrelu": lambda a, b, name: el.relu(el.sub(a, b, name), name),
    "vand": lambda a, b, _: a & b,
    "vor": lambda a, b, _: a | b,
    "vxor": lambda a, b, _: a ^ b,
    "vdiv": el.div,
    "vprelu": el.leaky,
}
UNARY = {
    "vabs": el.absolute,
    "vneg": el.negated,
    "vrelu": el.relu,
    "vnot": lambda a, name: a ^ ((1 << model.bits_of(name)) - 1),
    "vsqrt": el.sqrt,
    "vrec": lambda a, name: el.div(el.rounded(Fraction(1), name), a, name),
    "vrsqrt": lambda a, name: el.div(el.rounded(Fraction(1), name), el.sqrt(a, name), name),
}
SCALAR = {"vadds": "vadd", "vmuls": "vmul", "vmaxs": "vmax", "vmins": "vmin", "vlrelu": "vprelu"}


Bits = list[int]
Result = bytes | Bits | int


@dataclass(frozen=True)
class Given:
    one: Combination
    registers: tuple[bytes, ...]
    masks: tuple[Bits, ...]
    memory: bytes
    """What lies at the address and behind; for accesses with a moved pointer, at the pointer itself."""
    address: int

    @property
    def bits(self) -> int:
        return model.bits_of(self.one.element)

    def lanes(self, number: int = 0, bits: int | None = None) -> list[int]:
        width = bits or self.bits
        return [model.lane(self.registers[number], at, width) for at in range(2048 // width)]

    def active(self, number: int = -1, bits: int | None = None) -> list[int]:
        return self.masks[number][:: (bits or self.bits) // 8] if self.masks else [1] * (2048 // (bits or self.bits))


def of(values: list[int], bits: int) -> bytes:
    return b"".join((value & ((1 << bits) - 1)).to_bytes(bits // 8, "little") for value in values)


def governed(given: Given, values: list[int], bits: int | None = None) -> bytes:
    """Lanes without mask bit are 0."""
    width = bits or given.bits
    return of([value if bit else 0 for value, bit in zip(values, given.active(bits=width), strict=True)], width)


def mask_of(lanes: list[int], width: int) -> Bits:
    return [lanes[at // (width // 8)] if at % (width // 8) == 0 else 0 for at in range(256)]


def _binary(given: Given) -> list[Result]:
    a, b, element = given.lanes(0), given.lanes(1), given.one.element
    return [governed(given, [BINARY[given.one.name](x, y, element) for x, y in zip(a, b, strict=True)])]


def _unary(given: Given) -> list[Result]:
    return [governed(given, [UNARY[given.one.name](x, given.one.element) for x in given.lanes()])]


def _with_scalar(given: Given) -> list[Result]:
    element, function = given.one.element, BINARY[SCALAR[given.one.name]]
    return [governed(given, [function(x, scalar_code(element), element) for x in given.lanes()])]


def _shift(given: Given) -> list[Result]:
    element, name = given.one.element, given.one.name
    amounts = [given.one.numbers[0]] * (2048 // given.bits) if name.endswith("s") else given.lanes(1)
    pairs = zip(given.lanes(), amounts, strict=True)
    return [governed(given, [el.shift(name[1:4], x, n, element) for x, n in pairs])]


def _near(given: Given) -> list[Result]:
    """Exponential and logarithm, of which one unit more or less is right."""
    function = {"vexp": "exp", "vln": "ln"}[given.one.name]
    element = given.one.element
    found = [el.transcendental(function, x, element) for x in given.lanes()]
    return [governed(given, [el.nan(element) if x is None else x for x in found])]


def _fused(given: Given) -> list[Result]:
    a, b, element = given.lanes(0), given.lanes(1), given.one.element
    if given.one.name == "vaxpy":
        values = [el.fused(y, x, scalar_code(element), element) for x, y in zip(a, b, strict=True)]
    elif given.one.name == "vmadd":  # a * b + c
        values = [el.fused(z, x, y, element) for x, y, z in zip(a, b, given.lanes(2), strict=True)]
    else:
        values = [el.fused(z, x, y, element) for z, x, y in zip(a, b, given.lanes(2), strict=True)]
    return [governed(given, values)]


def _difference(given: Given) -> list[Result]:
    """exp(x - m), of 16 bits from even or odd lanes; one unit more or less is right."""
    element, first = given.one.element, int(given.one.word("part") == "ODD")
    step = 32 // given.bits
    pairs = list(zip(given.lanes(0), given.lanes(1), given.active(), strict=True))[first * (step > 1) :: step]
    return [of([_exponential(x, m, element) if bit else 0 for x, m, bit in pairs], 32)]


def _exponential(x: int, m: int, element: str) -> int:
    values = [oracle.decode(code, element) for code in (x, m)]
    if any(value.kind != "finite" for value in values):
        found = oracle.decode(el.sub(x, m, element), element)
        if found.kind == "nan":
            return el.nan("f32")
        return 0 if found.negative else el.infinity("f32", negative=False)
    exact = el.exact(values[0]) - el.exact(values[1])
    if abs(exact) > 2000:
        return 0 if exact < 0 else el.infinity("f32", negative=False)
    return el.rounded(Fraction(el.CONTEXT.exp(el.decimal(exact))), "f32")


def _carry(given: Given) -> list[Result]:
    """The carry of a subtraction says that nothing was borrowed, as the option is shipped."""
    subtracts = "sub" in given.one.name
    taken = given.active(0) if given.one.name.endswith("cs") else [int(subtracts)] * 64
    lanes = zip(given.lanes(0), given.lanes(1), taken, strict=True)
    totals = [x - y - (1 - c) if subtracts else x + y + c for x, y, c in lanes]
    over = [int((0 <= t < 1 << 32) == subtracts) & bit for t, bit in zip(totals, given.active(), strict=True)]
    return [governed(given, totals), mask_of(over, 32)]


def _long(given: Given) -> list[Result]:
    element = given.one.element
    pairs = zip(given.lanes(0), given.lanes(1), strict=True)
    exact = [el.number(x, element) * el.number(y, element) for x, y in pairs]
    return [governed(given, exact), governed(given, [value >> 32 for value in exact])]


def _compare(given: Given) -> list[Result]:
    element, word = given.one.element, given.one.word("cmp") or ""
    a = given.lanes()
    b = given.lanes(1) if given.one.name == "vcmp" else [scalar_code(element)] * len(a)
    found = [int(el.compare(word, x, y, element)) & bit for x, y, bit in zip(a, b, given.active(), strict=True)]
    return [mask_of(found, given.bits)]


def _reduce(given: Given) -> list[Result]:
    """Neighbours in pairs, each step rounded; a block without active lanes has the neutral value."""
    name, element, result = given.one.name, given.one.element, given.one.other
    function, parts = name[-3:], 8 if name[2] == "g" else 1
    start = neutral(function, result)
    values = [x if bit else None for x, bit in zip(given.lanes(), given.active(), strict=True)]
    wide = [start if x is None else x if result == element else el.low(el.number(x, element), result) for x in values]
    size = len(wide) // parts
    found = [BINARY[f"v{function}"](start, tree(function, wide[k * size : (k + 1) * size], result), result)
             for k in range(parts)]  # fmt: skip
    bits = model.bits_of(result)
    return [of(found + [0] * (2048 // bits - parts), bits)]


def _pairs(given: Given) -> list[Result]:
    a, bits = given.lanes(), given.active()
    pairs = [[x for x, bit in zip(a[k : k + 2], bits[k : k + 2], strict=True) if bit] for k in range(0, len(a), 2)]
    zero = 1 << given.bits - 1  # beside an inactive lane a number is added to -0, which makes one NaN of all
    sums = [BINARY["vadd"](pair[0], pair[1] if pair[1:] else zero, given.one.element) if pair else 0 for pair in pairs]
    return [of(sums + [0] * len(sums), given.bits)]


def neutral(function: str, element: str) -> int:
    if function == "add":
        return 0
    if el.is_integer(element):
        row = oracle.fmt(element)
        return el.low(row.low if function == "max" else row.high, element)
    return el.infinity(element, negative=function == "max")


def tree(function: str, values: list[int], element: str) -> int:
    while len(values) > 1:
        values = [BINARY[f"v{function}"](values[k], values[k + 1], element) for k in range(0, len(values), 2)]
    return values[0]


def _convert(given: Given) -> list[Result]:
    one, data = given.one, given.registers[0]
    words = {kind: one.word(kind) for kind in ("rnd", "sat", "part")}
    rounding = "R" if one.element[0] in "iu" and words["rnd"] else words["rnd"]  # the option as it is shipped
    return [model.vcvt(data, one.element, one.other, words["part"], given.masks[0], rounding, words["sat"])]


def _scaled_conversion(given: Given) -> list[Result]:
    """The product is rounded before its conversion, as the option is shipped."""
    one = given.one
    product = of([BINARY["vmul"](x, scalar_code("f32"), "f32") for x in given.lanes()], 32)
    words = one.word("part"), given.masks[0], one.word("rnd") or "R", one.word("sat") or "NOSAT"
    return [model.vcvt(product, "f32", "f16", *words)]


def _truncate(given: Given) -> list[Result]:
    return [model.vtrc(given.registers[0], given.one.element, given.masks[0], given.one.word("rnd") or "")]


def _select(given: Given) -> list[Result]:
    triples = zip(given.lanes(0), given.lanes(1), given.active(), strict=True)
    return [of([x if bit else y for x, y, bit in triples], given.bits)]


def _by_number(given: Given) -> list[Result]:
    values = given.lanes()
    return [of([values[at] for at in given.lanes(1)], given.bits)]


def _interleave(given: Given) -> list[Result]:
    a, b = given.lanes(0), given.lanes(1)
    turns = [x for pair in zip(a, b, strict=True) for x in pair]
    both = a + b
    low, high = (turns[: len(a)], turns[len(a) :]) if given.one.name == "vintlv" else (both[::2], both[1::2])
    return [of(low, given.bits), of(high, given.bits)]


def _everywhere(given: Given) -> list[Result]:
    count = 2048 // given.bits
    if given.registers:
        value = given.lanes()[-1 if given.one.word("position") == "HIGHEST" else 0]
    else:
        value = scalar_code(given.one.element)
    return [governed(given, [value] * count)]


def _ramp(given: Given) -> list[Result]:
    element, base = given.one.element, scalar_code(given.one.element)
    sign = -1 if given.one.word("order") == "DESC" else 1
    if el.is_integer(element):
        return [of([base + sign * at for at in range(2048 // given.bits)], given.bits)]
    start = el.exact(oracle.decode(base, element))
    return [of([el.rounded(start + sign * at, element) for at in range(2048 // given.bits)], given.bits)]


def _pack(given: Given) -> list[Result]:
    narrow = of(given.lanes(), given.bits)
    kept = b"".join(narrow[at : at + given.bits // 16] for at in range(0, 256, given.bits // 8))
    return [kept + bytes(128) if given.one.word("half") == "LOWER" else bytes(128) + kept]


def _unpack(given: Given) -> list[Result]:
    half = given.one.numbers[0] if given.one.word("half") is None else int(given.one.word("half") == "HIGHER")
    values = given.lanes()
    chosen = values[half * len(values) // 2 : (half + 1) * len(values) // 2]
    if given.one.name == "vsunpack":
        chosen = [x - (1 << given.bits) if x >> (given.bits - 1) else x for x in chosen]
    return [of(chosen, 2 * given.bits)]


def _squeeze(given: Given) -> list[Result]:
    kept = [x for x, bit in zip(given.lanes(), given.active(), strict=True) if bit]
    return [of(kept + [0] * (2048 // given.bits - len(kept)), given.bits)]


def _count_below(given: Given) -> list[Result]:
    seen = given.active()
    return [of([sum(seen[:at]) for at in range(len(seen))], given.bits)]


def _move(given: Given) -> list[Result]:
    return [governed(given, given.lanes())]


REGISTERS: dict[str, Callable[[Given], list[Result]]] = {
    **dict.fromkeys(BINARY, _binary), **dict.fromkeys(UNARY, _unary), **dict.fromkeys(SCALAR, _with_scalar),
    **dict.fromkeys(("vshl", "vshr", "vshls", "vshrs"), _shift), **dict.fromkeys(("vexp", "vln"), _near),
    **dict.fromkeys(("vmula", "vmadd", "vaxpy"), _fused), "vexpdif": _difference, "vmull": _long,
    "vmulscvt": _scaled_conversion,
    **dict.fromkeys(("vaddc", "vsubc", "vaddcs", "vsubcs"), _carry), **dict.fromkeys(("vcmp", "vcmps"), _compare),
    **dict.fromkeys(("vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin"), _reduce), "vcpadd": _pairs,
    "vcvt": _convert, "vtrc": _truncate, "vsel": _select, "vselr": _by_number, "vci": _ramp, "vpack": _pack,
    **dict.fromkeys(("vintlv", "vdintlv"), _interleave), **dict.fromkeys(("vbr", "vdup"), _everywhere),
    **dict.fromkeys(("vsunpack", "vzunpack"), _unpack), "vsqz": _squeeze, "vusqz": _count_below, "vmov": _move,
    "vbitcast": lambda given: [given.registers[0]], **dict.fromkeys(("init_align", "mem_bar", "sprclr"), lambda _: []),
}  # fmt: skip
"""Models of what works on registers."""


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


_RULES: dict[str, Callable[[int, int], int]] = {"pand": operator.and_, "por": operator.or_, "pxor": operator.xor}


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
    "plt": _first, "pltm": _piece, **dict.fromkeys(("pset", "pge"), _pattern), **dict.fromkeys(_RULES, _logic),
    "pnot": lambda given: [[(1 - x) & z for x, z in zip(*given.masks, strict=True)]],
    "psel": lambda given: [[x if z else y for x, y, z in zip(*given.masks, strict=True)]],
    **dict.fromkeys(("ppack", "punpack"), _halves), "pbitcast": lambda given: [given.masks[0]],
    **dict.fromkeys(("pintlv", "pdintlv"), _turns),
}  # fmt: skip
"""Models of what works on masks alone; names without the width of their lanes."""


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
    **dict.fromkeys(("vlds", "vldsx2"), _load), "vsldb": _blocks, **dict.fromkeys(("plds", "pldi"), _image),
    "vldas": lambda given: [], "vldus": lambda given: [given.memory[:256]],
    **dict.fromkeys(("vgather2", "vgather2_bc"), _gather), "vgatherb": _gather_blocks,
}  # fmt: skip
"""Models of loads."""


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
    **dict.fromkeys(("vsts", "vstsx2"), _store), "vsstb": _store_blocks, "vscatter": _scatter,
    **dict.fromkeys(("psts", "psti"), _store_image), "vstus": _store_leading,
    **dict.fromkeys(("vstas", "vstar", "vstur"), lambda given: {}),  # the register AR counts nothing yet
}  # fmt: skip
"""Models of stores: bytes beyond the address."""
