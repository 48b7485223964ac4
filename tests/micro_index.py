"""Programs for the micro cases of the vendor's index, written from the facts there: operations, types, arguments.

A case's text is not free; what it does with its operations is not known here. Each program uses all operations of its
case on the types of its arguments, loads what the case loads and stores what each operation yields.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from castsim.isa.pto.micro_forms import ROWS

FACTS = Path(__file__).parent / "vectors" / "micro_index.csv"
BITS = {"f32": 32, "f16": 16, "bf16": 16, "si64": 64} | {f"{s}{n}": n for s in ("i", "ui") for n in (8, 16, 32)}
NAMES = {"f8E4M3FN": "e4m3fn", "f8E5M2": "e5m2", "!pto.hif8": "hif8", "si64": "i64"}
EIGHT_BITS = ("f8E4M3FN", "f8E5M2", "!pto.hif8", "!pto.f4E1M2x2", "!pto.f4E2M1x2")
RESULTS = 1 << 17
"""The byte of the buffer from which on results lie."""


@dataclass(frozen=True)
class Case:
    """A case: its name, operations beside the frame, arguments as element, count and use (`i`, `o`)."""

    name: str
    operations: tuple[str, ...]
    arguments: tuple[tuple[str, int, str], ...]

    @property
    def room(self) -> int:
        """Bytes of the buffer for each argument, and for each result."""
        return max(4096, *(count * bits_of(element) // 8 for element, count, _ in self.arguments))

    @property
    def elements(self) -> list[str]:
        """Elements of what is read, each once."""
        return list(dict.fromkeys(element for element, _, use in self.arguments if "i" in use))


@cache
def cases() -> tuple[Case, ...]:
    """All micro cases of the index."""
    found = []
    for line in FACTS.read_text().splitlines()[3:]:
        name, operations, arguments = line.split(",")
        parts = (each.split(":") for each in arguments.split())
        found.append(Case(name, tuple(operations.split()), tuple((e, int(n), use) for e, n, use in parts)))
    return tuple(found)


def bits_of(element: str) -> int:
    return BITS.get(element, 8)


def vreg(element: str) -> str:
    return f"!pto.vreg<{2048 // bits_of(element)}x{element}>"


def mask(width: int) -> str:
    return f"!pto.mask<b{min(32, width)}>"


@dataclass
class Writer:
    """The text of a program as it grows: constants and pointers, the body of its scope."""

    case: Case
    head: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    count: int = 0
    stored: int = 0
    used: set[str] = field(default_factory=set)
    before: list[str] = field(default_factory=list)
    """Statements of the scope that stand before its loop."""
    carried: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    """What the loop hands on: name -> where it begins, what it becomes, its type."""

    def name(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def constant(self, value: int, kind: str) -> str:
        name = f"%{kind}_{value}"
        line = f"{name} = arith.constant {value} : {kind}"
        if line not in self.head:
            self.head.append(line)
        return name

    def pointer(self, byte: int, element: str) -> str:
        name = f"%p{byte}_{element.replace('!pto.', '')}"
        line = f"{name} = pto.castptr {self.constant(byte, 'i64')} : i64 -> !pto.ptr<{element}, ub>"
        if line not in self.head:
            self.head.append(line)
        return name

    def emit(self, operation: str, operands: str, kinds: str, *results: str) -> list[str]:
        """Add a statement; return the names of its results."""
        names = [self.name() for _ in results]
        self.used.add(operation)
        left = f"{', '.join(names)} = " if names else ""
        arrow = f" -> {', '.join(results)}" if kinds and results else ", ".join(results)
        self.body.append(f"{left}pto.{operation} {operands} : {kinds}{arrow}")
        return names

    def mask_for(self, width: int) -> str:
        """A predicate of lanes of a width, by an operation that the case has."""
        width = min(32, width)
        names = [name for name in self.case.operations if ROWS.get(name) and ROWS[name].width == width]
        for name in names:
            if name.startswith("plt"):
                rest = f"%rest{width}"
                found, less = self.emit(name, rest, "i32", mask(width), "i32")
                self.carried[rest] = self.constant(1000, "i32"), less, "i32"
                return found
            if name.startswith(("pset", "pge")):
                word = '"PAT_ALL"' if name.startswith("pset") else '"PAT_VL8"'
                return self.emit(name, word, "", mask(width))[0]
        return self.emit(f"pset_b{width}", '"PAT_ALL"', "", mask(width))[0]

    def load(self, number: int, element: str, mode: str = "") -> str:
        """A register of the number-th argument that is read, seen as an element."""
        sources = [at for at, (_, _, use) in enumerate(self.case.arguments) if "i" in use]
        pointer = self.pointer(self.case.room * sources[number % len(sources)], element)
        written = f' {{dist = "{mode}"}}' if mode else ""
        operands = f"{pointer}[{self.constant(0, 'index')}]{written}"
        return self.emit("vlds", operands, f"!pto.ptr<{element}, ub>", vreg(element))[0]

    def place(self, element: str) -> str:
        """A pointer to the next result."""
        self.stored += 1
        return self.pointer(RESULTS + self.case.room * (self.stored - 1), element)

    def store(self, value: str, element: str, mode: str = "", width: int = 0) -> None:
        where, governor = self.place(element), self.mask_for(width or bits_of(element))
        mode = mode or ("NORM_B32" if bits_of(element) == 64 else "")
        written = f' {{dist = "{mode}"}}' if mode else ""
        operands = f"{value}, {where}[{self.constant(0, 'index')}], {governor}{written}"
        kinds = f"{vreg(element)}, !pto.ptr<{element}, ub>, {mask(width or bits_of(element))}"
        self.emit("vsts", operands, kinds)

    def store_mask(self, value: str, width: int) -> None:
        name = "psti" if "psti" in self.case.operations else "psts"
        element = "ui8" if name == "psti" else "ui32"
        where, zero = self.place(element), self.constant(0, "index")
        kinds = f"{mask(width)}, !pto.ptr<{element}, ub>, index"
        self.emit(name, f'{value}, {where}[{zero}], "NORM"', kinds)


# ------------------------------------------------------------------------------------------------ what operations do


def _elementwise(writer: Writer, name: str, element: str) -> None:
    kind, registers = vreg(element), 2 if "V V" in ROWS[name].forms[0] else 1
    governor = writer.mask_for(bits_of(element))
    values = [writer.load(number, element) for number in range(registers)]
    word = ', "R"' if name == "vtrc" else ""
    kinds = ", ".join([kind] * registers + [mask(bits_of(element))])
    (found,) = writer.emit(name, f"{', '.join([*values, governor])}{word}", kinds, kind)
    writer.store(found, element)


def _carries(writer: Writer, name: str) -> None:
    kind, governor = vreg("ui32"), writer.mask_for(32)
    taken = [governor] * (2 if name.endswith("s") else 1)
    values = [writer.load(number, "ui32") for number in (0, 1)]
    kinds = ", ".join([kind] * 2 + [mask(32)] * len(taken))
    total, carry = writer.emit(name, ", ".join((*values, *taken)), kinds, kind, mask(32))
    writer.store(total, "ui32")
    writer.store_mask(carry, 32)


def _cast(writer: Writer, value: str, src: str, dst: str, words: str) -> str:
    written = f" {{{words}}}" if words else ""
    governor = writer.mask_for(bits_of(src))
    kinds = f"{vreg(src)}, {mask(bits_of(src))}"
    return writer.emit("vcvt", f"{value}, {governor}{written}", kinds, vreg(dst))[0]


def _convert(writer: Writer, name: str) -> None:
    del name
    kinds = {element for element, _, _ in writer.case.arguments}
    if "ui8" in kinds:
        for element in EIGHT_BITS:
            to_wide(writer, element)
    elif "si64" in kinds:
        found = _cast(writer, writer.load(0, "si64"), "si64", "f32", 'rnd = "R", part = "EVEN"')
        writer.store(found, "f32", "PK_B64", 32)
    elif "vor" in writer.case.operations:
        halves = [
            _cast(writer, writer.load(0, "f32"), "f32", "f16", f'rnd = "R", sat = "SAT", part = "{part}"')
            for part in ("EVEN", "ODD")
        ]
        governor, kind = writer.mask_for(16), vreg("f16")
        (both,) = writer.emit("vor", f"{', '.join(halves)}, {governor}", f"{kind}, {kind}, {mask(16)}", kind)
        writer.store(both, "f16")
    else:
        writer.store(_cast(writer, writer.load(0, "f16", "UNPK_B16"), "f16", "f32", 'part = "EVEN"'), "f32")


def to_wide(writer: Writer, element: str) -> None:
    """From 8 bits to the wide format and back, all parts."""
    is_pair = "f4" in element
    wide = "bf16" if is_pair else "f32"
    rounding = "A" if "hif8" in element else "R"
    back = f'rnd = "{rounding}"' + ("" if is_pair else ', sat = "SAT"')
    for part in range(4):
        value = writer.load(0, element)
        number = _cast(writer, value, element, wide, f'part = "P{part}"')
        writer.store(_cast(writer, number, wide, element, f'{back}, part = "P{part}"'), element)


def _gather(writer: Writer, name: str) -> None:
    """Bytes are the offsets, so that random ones stay within the table."""
    (few,) = writer.emit("vzunpack", f'{writer.load(1, "ui8")}, "LOWER"', vreg("ui8"), vreg("ui16"))
    (offsets,) = writer.emit("vzunpack", f'{few}, "LOWER"', vreg("ui16"), vreg("ui32"))
    table = writer.pointer(0, "f32")
    kinds = f"!pto.ptr<f32, ub>, {vreg('ui32')}, {mask(32)}"
    (found,) = writer.emit(name, f"{table}, {offsets}, {writer.mask_for(32)}", kinds, vreg("f32"))
    writer.store(found, "f32")


def _squeeze(writer: Writer, name: str) -> None:
    governor, kind = writer.mask_for(32), vreg("f32")
    (found,) = writer.emit(name, f"{writer.load(0, 'f32')}, {governor}", f"{kind}, {mask(32)}", kind)
    if "vstur" not in writer.case.operations:
        writer.store(found, "f32")
        return
    where = writer.place("f32")
    pointer, zero = writer.name(), writer.constant(0, "index")
    writer.body.append(f"{pointer} = pto.addptr {where}, {zero} : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>")
    writer.used |= {"addptr", "init_align", "sprclr", "vstur", "vstar"}
    writer.before += ['pto.sprclr "AR"', "%first = pto.init_align : !pto.align"]
    writer.carried["%align"] = "%first", "%left", "!pto.align"
    kinds = "!pto.align, !pto.vreg<64xf32>, !pto.ptr<f32, ub>"
    writer.body.append(f'%left = pto.vstur %align, {found}, {pointer}, "POST_UPDATE" : {kinds} -> !pto.align')
    writer.body.append(f"pto.vstar %left, {pointer} : !pto.align, !pto.ptr<f32, ub>")


def _unpack(writer: Writer, name: str) -> None:
    sign = "i" if name == "vsunpack" else "ui"
    half = writer.constant(1, "index")
    kinds = f"{vreg(f'{sign}16')}, index"
    (found,) = writer.emit(name, f"{writer.load(0, f'{sign}16')}, {half}", kinds, vreg(f"{sign}32"))
    writer.store(found, f"{sign}32")


def _pairs(writer: Writer, name: str) -> None:
    del name
    where, zero, kind = writer.pointer(0, "f32"), writer.constant(0, "index"), vreg("f32")
    pointer = "!pto.ptr<f32, ub>"
    for bits in (8, 32):  # the name of the case says b8 and f32
        even, odd = writer.emit("vldsx2", f'{where}[{zero}], "DINTLV_B{bits}"', f"{pointer}, index", kind, kind)
        target, governor = writer.place("f32"), writer.mask_for(32)
        kinds = f"{kind}, {kind}, {pointer}, index, {mask(32)}"
        writer.emit("vstsx2", f'{even}, {odd}, {target}[{zero}], "INTLV_B{bits}", {governor}', kinds)


def _predicates(writer: Writer, name: str) -> None:
    width = ROWS[name].width or 32
    governor = writer.mask_for(width)
    kind = mask(width)
    if name in ("ppack", "punpack"):
        other = mask(16)
        source, result = (kind, other) if name == "ppack" else (other, kind)
        value = writer.mask_for(32 if name == "ppack" else 16)
        (found,) = writer.emit(name, f'{value}, "LOWER"', source, result)
        writer.store_mask(found, 16 if name == "ppack" else 32)
    elif name in ("psel", "pnot"):
        count = 3 if name == "psel" else 2
        kinds = ", ".join([kind] * count)
        writer.store_mask(writer.emit(name, ", ".join([governor] * count), kinds, kind)[0], 32)
    elif name == "pintlv_b16":
        for found in writer.emit(name, f"{governor}, {governor}", f"{kind}, {kind}", kind, kind):
            writer.store_mask(found, 16)
    else:
        words = ("PAT_VL1", "PAT_VL128", "PAT_ALL") if name.startswith(("pge", "pset")) else ()
        for word in words:
            writer.store_mask(writer.emit(name, f'"{word}"', "", kind)[0], width)


def _loaded_predicates(writer: Writer, name: str) -> None:
    where, zero = writer.pointer(0, "ui8"), writer.constant(0, "index")
    (found,) = writer.emit(name, f'{where}[{zero}], "NORM"', "!pto.ptr<ui8, ub>, index", mask(8))
    kind = vreg("ui8")
    values = [writer.load(number, "ui8") for number in (0, 0)]
    (chosen,) = writer.emit("vsel", f"{', '.join(values)}, {found}", f"{kind}, {kind}, {mask(8)}", kind)
    writer.store(chosen, "ui8")


_OWN = {
    "vcvt": _convert,
    "vgather2": _gather,
    "vsqz": _squeeze,
    **dict.fromkeys(("vaddc", "vsubc", "vaddcs", "vsubcs"), _carries),
    **dict.fromkeys(("vsunpack", "vzunpack"), _unpack),
    "vldsx2": _pairs,
    **dict.fromkeys(("pldi", "plds"), _loaded_predicates),
    **dict.fromkeys(("ppack", "punpack", "psel", "pnot", "pintlv_b16"), _predicates),
}
_ELSEWHERE = ("kernel", "aicore", "set_loop1_stride_ubtoout", "set_loop2_stride_ubtoout")


def program(case: Case) -> str:
    """The text of a case's program."""
    writer = Writer(case)
    if "vlds" in case.operations and "vsts" in case.operations:
        writer.store(writer.load(0, case.elements[0]), case.elements[0])
    for name in case.operations:
        if name in _OWN:
            _OWN[name](writer, name)
        elif name in ROWS and ROWS[name].elements:
            fitting = [
                each for each in case.elements if NAMES.get(each, each.replace("ui", "u")) in ROWS[name].elements
            ]
            for element in fitting:
                _elementwise(writer, name, element)
    for name in case.operations:
        if name.startswith(("pset", "pge", "plt")) and name not in writer.used:
            if name.startswith("plt"):
                writer.store_mask(writer.mask_for(ROWS[name].width or 32), ROWS[name].width or 32)
            else:
                _predicates(writer, name)
    return _framed(writer)


def _framed(writer: Writer) -> str:
    """Arguments, transfers and flags around the scope."""
    case = writer.case
    mark = "pto.aicore" if "aicore" in case.operations else "pto.kernel"
    names = ", ".join(f"%arg{at}: !pto.ptr<{element}, gm>" for at, (element, _, _) in enumerate(case.arguments))
    zero, one = writer.constant(0, "i64"), writer.constant(1, "i64")
    scope = [f"  {line}" for line in (*writer.before, *_looped(writer))]
    moves, out, written = [], [], 0
    for at, (element, count, use) in enumerate(case.arguments):
        size = count * bits_of(element) // 8
        length, kinds = writer.constant(size, "i64"), f"!pto.ptr<{element}, gm>, !pto.ptr<{element}, ub>"
        places = [case.room * at] if "i" in use else []
        if "o" in use:
            written += 1
            places.append(RESULTS + case.room * (written - 1))
            out.append(_copied_out(writer, at, element, places[-1], length))
        for place in places:
            moves.append(
                f"pto.mte_gm_ub %arg{at}, {writer.pointer(place, element)}, {zero}, {length} "
                f"nburst({one}, {length}, {length}) : {kinds}, i64, i64, i64, i64, i64"
            )
    flags = [f'pto.{verb}_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]' for verb in ("set", "wait")]
    back = [f"pto.{verb}_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]" for verb in ("set", "wait")]
    lines = [*writer.head, *moves, *flags, "pto.vecscope {", *scope, "}", *back, *out]
    attributes = 'pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>'
    text = "\n".join(f"    {line}" for line in [*lines, "pto.barrier #pto.pipe<PIPE_ALL>", "return"])
    entry = case.name.rpartition("/")[2].replace("-", "_").replace("@", "_")
    return (
        f"module attributes {{{attributes}}} {{\n  func.func @{entry}_kernel({names}) attributes {{{mark}}} {{\n"
        f"{text}\n  }}\n}}\n"
    )


def _looped(writer: Writer) -> list[str]:
    """The body, twice if it hands anything on, as counts of lanes are."""
    if not writer.carried:
        return writer.body
    first = ", ".join(f"{name} = {start}" for name, (start, _, _) in writer.carried.items())
    kinds = ", ".join(kind for _, _, kind in writer.carried.values())
    zero, one, two = (writer.constant(number, "index") for number in (0, 1, 2))
    return [
        f"%end:{len(writer.carried)} = scf.for %i = {zero} to {two} step {one} iter_args({first}) -> ({kinds}) {{",
        *(f"  {line}" for line in writer.body),
        f"  scf.yield {', '.join(last for _, last, _ in writer.carried.values())} : {kinds}",
        "}",
    ]


def _copied_out(writer: Writer, at: int, element: str, place: int, length: str) -> str:
    zero, one, pointer = writer.constant(0, "i64"), writer.constant(1, "i64"), writer.pointer(place, element)
    kinds = f"!pto.ptr<{element}, ub>, !pto.ptr<{element}, gm>"
    if "set_loop1_stride_ubtoout" not in writer.case.operations:
        return f"pto.mte_ub_gm {pointer}, %arg{at}, {length} nburst({one}, {length}, {length}) : {kinds}" + ", i64" * 4
    strides = "\n    ".join(f"pto.set_loop{n}_stride_ubtoout {length}, {length} : i64, i64" for n in (1, 2))
    copied = f"pto.copy_ubuf_to_gm {pointer}, %arg{at}, {zero}, {one}, {length}, {zero}, {length}, {length}"
    return f"{strides}\n    {copied} : {kinds}" + ", i64" * 6
