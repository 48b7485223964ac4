"""The vendor's functions that are not one instruction: descriptors, coordinates, special functions, reductions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from castsim.isa.errors import CastsimError
from castsim.isa.tpc.forms import TARGET_SPELLINGS
from castsim.machines.vliw.lookup_tables import computed_by
from castsim.targets.description import Status
from castsim.targets.tpc_compiler import ChainReading, descriptors_of, function_tables
from castsim.tpc_compiler.c_table import ElementVector, HopMethod, Path, PathHop, bits_of, direct_hop, matched, path_of, promotes
from castsim.tpc_compiler.cast_building import Order, build
from castsim.tpc_compiler.code_generation import Sequence as Steps
from castsim.tpc_compiler.code_generation import SequenceRegister as Held
from castsim.tpc_compiler.compiled_casts import SourceForm, prepared
from castsim.tpc_compiler.special_function_bodies import FUNCTIONS, OPERANDS, SequenceWriter
from castsim.tpc_compiler.tpc_c.code import VOID_VALUE, WORD, Value, member_text
from castsim.tpc_compiler.tpc_c.intrinsics import Intrinsics, Tail
from castsim.tpc_compiler.tpc_c.language import (
    BOOL,
    CACHE_WORDS,
    CLIP_FP,
    FLOAT,
    INDEX,
    INT,
    LINEAR,
    LUT_POINTER,
    ROUNDING,
    SCALARS,
    UNSIGNED,
    VECTOR_BITS,
    CType,
    Group,
    Index,
    IntrinsicCall,
    IntrinsicConversion,
    Mask,
    Pointer,
    Scalar,
    Vector,
    call_named,
    group_of,
    intrinsics,
    near,
    rounding,
    type_named,
    vector_of,
    words,
)

# Calls that convert values: CONVERT and CONVERT_INT by name, and the conversions of whole aggregates.

_AGGREGATES = re.compile(r"(?:(u?int)_)?convert_([a-z]+\d+(?:_pair_t)?)_to_([a-z]+\d+(?:_pair_t)?)")
_ROUNDINGS = "RHNE RZ RU RD SR CSR RHAZ SR_RNE"
_INTEGER_WIDTH = {"i16": "to_16", "u16": "to_16", "i8": "to_8", "u8": "to_8"}


class Conversions(Intrinsics):
    """Conversions by name and values."""

    def conversion(self, name: str, found: IntrinsicConversion, arguments: Sequence[Value], into: str | None) -> Value:
        """Return the result of a CONVERT.

        Arguments: source, [shifts,] [lane,] switches, income, predicate, polarity.
        """
        for element in (found.source, found.target):
            self.check_type(Scalar(element))
        given = list(arguments)
        self._need(name, given, 1, 8)
        wide, narrow = Scalar(found.source).bits, Scalar(found.target).bits
        scalar, every = found.unit == "s", found.form == "all"
        source = self._shape(found.source, 1 if scalar or not every else max(1, wide // narrow), scalar)
        target = self._shape(found.target, 1 if scalar or not every else max(1, narrow // wide), scalar)
        if found.form in ("x2", "x4"):
            count = 2 if found.form == "x2" else 4
            source, target = self._shape(found.source, count, False), self._shape(found.target, count, False)
        if isinstance(source, Vector) and isinstance(given[0].type, Vector):
            value = self.bits_as(given[0], source)
        else:
            value = self.converted(given[0], source)
        place = 1
        shift = ""
        if found.integer:
            scalar_shift = isinstance(given[1].type, Scalar)
            shift = self.operand(self.converted(given[1], INT)) if scalar_shift else given[1].text
            place = 2
        lane = None
        if self._has_lane(found, wide, narrow):
            lane = self.number(name, given[place], "the lane")
            place += 1
        call = IntrinsicCall(next(iter(intrinsics().values())), found.unit, found.target, found.target, found.lanewise,
                    frozenset())  # fmt: skip
        switches = f"{_ROUNDINGS} LINEAR" if found.integer else f"{_ROUNDINGS} CLIP_FP LINEAR"
        tail = self.tail(name, call, given, place, target, known=switches)
        if tail.never:
            return self._kept(tail, target)
        if tail.switches & LINEAR and wide != narrow and not scalar:
            return self._ordered(name, found, value, given[1] if found.integer else value, tail, target, into)
        narrows_all = self.since("greco") or (found.source, found.target) == ("f32", "bf16")
        if every and wide > narrow and not scalar and not narrows_all:
            return self._one_by_one(found, value, shift, tail, target, into)
        head = self._head(found, lane, tail.switches)
        texts = [self.in_register(value).text, *([shift] if shift else [])]
        partly = lane is not None or (found.form == "single" and wide > narrow)
        return self._emit_text(head, tail, target, texts, into, partly=partly)

    def _ordered(
        self, name: str, found: IntrinsicConversion, value: Value, shift: Value, tail: Tail, target: CType,
        into: str | None,
    ) -> Value:  # fmt: skip
        """Return the result of an all-lanes conversion with SW_LINEAR: every element stays at its place."""
        if found.form != "all":
            end = "vb" if found.lanewise else "b"
            message = f"{name} converts one lane of its registers; SW_LINEAR asks for the order of all of them"
            raise self.refused(message, f"v_convert_{found.integer or found.source}_to_{found.target}_all_{end}")
        if found.lanewise:
            message = f"which lanes the predicate of {name} means with SW_LINEAR is in no source"
            raise self.refused(message, f"{name[:-2]}b, then v_{found.target}_mov_vb")
        if found.integer and not isinstance(shift.type, Scalar):
            raise self.refused(f"which lanes the shifts of {name} mean with SW_LINEAR is in no source", "one shift")
        path = None
        if found.integer:
            row = self.target.integer_convert(f"convert_{found.integer}", found.target)
            mode = rounding(tail.switches) or "csr"
            hop = PathHop(HopMethod.NARROW, found.source, found.target, row, integer_rounding=mode)
            path = Path(found.source, found.target, (hop,), Status.DOCUMENTED, ())
        count = self.operand(self.converted(shift, INT)) if found.integer else ""
        result = self._in_order(value, target, tail.switches, None, path=path, shift=count)
        if not tail.predicate or tail.income is None:
            return self.in_register(result, into)
        kept = self.result(target, into, tail.income, tail.predicate, [result.text])
        self.move(kept.text, result, tail.predicate)
        return kept

    def _shape(self, element: str, count: int, scalar: bool) -> CType:
        held = {"i4": "i8", "u4": "u8"}.get(element, element)
        return Scalar(held) if scalar else group_of(held, count)

    def _has_lane(self, found: IntrinsicConversion, wide: int, narrow: int) -> bool:
        """Whether the call names a lane: the narrowing ones of vectors do, but of f32 to bf16 on the oldest."""
        if found.unit == "s" or found.form in ("all", "x2", "x4") or wide <= narrow:
            return False
        if (found.source, found.target) == ("f32", "bf16"):
            return found.form == "" and self.since("gaudib")
        return not (found.integer and found.target == "u4")

    def _head(self, found: IntrinsicConversion, lane: int | None, switches: int) -> str:
        mode = rounding(switches) or ("csr" if found.integer else "")
        lanes = [f"lane_sel={lane}"] if lane is not None else []
        every = ["all_lanes"] if found.form == "all" else ["single_lane"] if found.form == "single" else []
        if found.integer:
            width = [_INTEGER_WIDTH[found.target]] if found.integer in ("int32", "uint32") else []
            narrow = [] if found.target in ("i4", "u4") else every
            return " ".join([f"convert_{found.integer}", *lanes, *narrow, *width, *([mode] if mode else [])])
        extra = [found.form] if found.form in ("x2", "x4") else every if found.form == "all" else []
        clip = words((switches & CLIP_FP, "clip_fp"))
        middle = [*lanes, *extra, f"target_type={TARGET_SPELLINGS[found.target]}", *([mode] if mode else []), *clip]
        return " ".join([f"convert.{found.source}", *middle])

    def _one_by_one(
        self, found: IntrinsicConversion, value: Value, shift: str, tail: Tail, target: CType, into: str | None
    ) -> Value:
        """Narrow lane by lane, as the header's macro does where no form takes all lanes."""
        members = value.type.members if isinstance(value.type, Group) else ()
        result = self.temp(target)
        if tail.predicate and tail.income is not None:
            self.move(result.text, tail.income)
        single = IntrinsicConversion(found.unit, found.source, found.target, "", found.lanewise, found.integer)
        for lane in range(len(members)):
            lane_number = lane if self._has_lane(single, 2, 1) or lane else 0
            head = self._head(single, lane_number, tail.switches)
            texts = [result.text, member_text(value, lane), *([shift] if shift else [])]
            self.emit(f"{head} {', '.join(texts)}", tail.predicate)
        return self.in_register(result, into)

    # ----------------------------------------------------------------------------------------------------- aggregates

    def converted(self, value: Value, kind: CType, *, explicit: bool = False, into: str | None = None) -> Value:
        """As for other types; aggregates of as many values by their values, without a cast where types promote."""
        old, new = _parts(value.type), _parts(kind)
        if len(old) != len(new) and old and new:
            if explicit or promotes(old[0].element.name, new[0].element.name):
                return self.by_value(value, kind, LINEAR, into)
        elif len(old) > 1 and explicit:
            return self.bits_as(value, kind)
        return super().converted(value, kind, explicit=explicit, into=into)

    def aggregate(self, name: str, arguments: Sequence[Value], into: str | None) -> Value | None:
        """Return the result of `convert_S_to_D(x, switches)`, of `int_convert_S_to_D(x, shift, switches)` likewise.

        None if the name is no such function.
        """
        match = _AGGREGATES.fullmatch(name)
        source, target = (type_named(each) for each in match.groups()[1:]) if match else (None, None)
        if match is None or not isinstance(source, Vector | Group) or not isinstance(target, Vector | Group):
            return None
        given = list(arguments)
        self._need(name, given, 1 + bool(match[1]), 2 + bool(match[1]))
        self.check_type(source)
        self.check_type(target)
        old, new = (_aggregate(each, kind) for each, kind in zip(match.groups()[1:], (source, target), strict=True))
        integer = match[1] or ""
        if new.bits == 4:  # CONVERT_INT alone makes four bits
            integer = "uint" if old.element.startswith("u") else "int"
        if integer:
            whole = f"{integer}{old.bits}"
            form = IntrinsicConversion("v", old.element, new.element, "all", False, whole)
            if old.elements != new.elements or (old.element.startswith("i") == integer.startswith("u")):
                raise self.wrong(f"{name}: {source} cannot be converted to {target}")
            rest = given[1:] if match[1] else [self.const(0, INT), *given[1:]]
            return self._in_blocks(name, form, self.converted(given[0], source), target, rest, into)
        switches = self.switches(name, given[1], f"{_ROUNDINGS} CLIP_FP LINEAR") if len(given) > 1 else 0
        return self.by_value(self.converted(given[0], source), target, switches, into, (old.element, new.element))

    def by_value(
        self, value: Value, target: CType, switches: int, into: str | None, elements: tuple[str, str] | None = None
    ) -> Value:
        """Convert values of equal numbers of elements, by instructions on whole registers, or linearly."""
        old, new = _parts(value.type), _parts(target)
        one, two = elements or (old[0].element.name, new[0].element.name)
        counts = [len(each) * (512 if name[1:] == "4" else each[0].lanes) for each, name in ((old, one), (new, two))]
        if len({*old}) > 1 or len({*new}) > 1 or counts[0] != counts[1]:
            raise self.wrong(f"{value.type} cannot be converted to {target}: other numbers of elements")
        direct = direct_hop(one, two, self.target)
        if direct is None or direct.means is not HopMethod.CONVERT:
            order = Order.LINEAR if switches & LINEAR or len(old) == len(new) else Order.SWIZZLE
            return self._in_order(value, target, switches, into, order=order)
        if len(old) == len(new) and (self.since("greco") or len(old) == 1):
            mode, found = rounding(switches), self.dest(target, into)
            every = "all_lanes " if self.since("greco") else ""
            clip = " clip_fp" if switches & CLIP_FP else ""
            words = " ".join(filter(None, (f"target_type={TARGET_SPELLINGS[two]}", mode))) + clip
            self.emit(f"convert.{one} {every}{words} {found.text}, {value.text}")
            return found
        if len(old) == len(new) or switches & LINEAR:
            return self._in_order(value, target, switches, into, path=path_of(one, two, self.target))
        form = IntrinsicConversion("v", one, two, "all", False, "")
        return self._in_blocks(f"v_convert_{one}_to_{two}", form, value, target, [self.const(switches, INT)], into)

    def _in_blocks(
        self, name: str, form: IntrinsicConversion, value: Value, target: CType, rest: list[Value], into: str | None
    ) -> Value:
        """Convert all lanes, every wide group of registers by itself: one narrow register each."""
        old, new = _parts(value.type), _parts(target)
        blocks = min(len(old), len(new))
        if blocks == 1:
            return self.conversion(name, form, [value, *rest], into)
        result = self.temp(target)
        for block in range(blocks):
            size, count = len(old) // blocks, len(new) // blocks
            source = Value(old[0], member_text(value, block))
            if size > 1:
                source = self.temp(Group(old[:size]))
                for part in range(size):
                    self.move(member_text(source, part), Value(old[0], member_text(value, block * size + part)))
            found = self.conversion(name, form, [source, *rest], None)
            for part in range(count):
                text = found.text if count == 1 else member_text(found, part)
                self.move(member_text(result, block * count + part), Value(new[0], text))
        return self.in_register(result, into)

    def _in_order(
        self, value: Value, target: CType, switches: int, into: str | None, *, order: Order = Order.LINEAR,
        path: Path | None = None, shift: str = "",
    ) -> Value:  # fmt: skip
        """Convert as the compiler does for casts, by a path and in an order: every element stays at its place."""
        old, new = _parts(value.type), _parts(target)
        word = rounding(switches) or "csr"
        try:
            path = path or path_of(old[0].element.name, new[0].element.name, self.target)
            one, two = (ElementVector(name, VECTOR_BITS // bits_of(name) * len(each)) for each, name in
                        ((old, path.src), (new, path.dst)))  # fmt: skip
            sequence = build(path, one, two, order, lambda hop: hop.word or word, self.target)
        except CastsimError as error:
            raise error.at(self.span()) from None
        named = self.appended(sequence, [value], " clip_fp" if switches & CLIP_FP else "", shift)
        found = self.temp(target)
        for place, held in enumerate(sequence.outputs[0].registers):
            text = found.text if len(new) == 1 else member_text(found, place)
            self.move(text, Value(new[place], self.held_text(held, named)))
        return self.in_register(found, into)

    def _registers(self, sequence: Steps, values: Sequence[Value]) -> Iterator[tuple[Held, Value]]:
        """Yield the registers of a sequence's inputs with values, whose aggregates are taken apart where it does so."""
        parts = [part for value in values for part in self._members(value)]
        for held in (each for port in sequence.inputs for each in port.registers):
            whole = next((each for each in values if each.type == Group((parts[0].type,) * held.size)), None)
            given, parts = parts[: held.size], parts[held.size :]
            if held.size == 1:
                yield held, given[0]
            elif whole is not None and member_text(whole, 0) == given[0].text:
                yield held, whole
            else:
                group = self.temp(group_of(given[0].type.element.name, held.size))
                for place, part in enumerate(given):
                    self.move(member_text(group, place), part)
                yield held, group

    @staticmethod
    def _members(value: Value) -> list[Value]:
        kinds = value.type.members if isinstance(value.type, Group) else ()
        return [Value(kind, member_text(value, place)) for place, kind in enumerate(kinds)] or [value]

    def appended(
        self, sequence: Steps, given: Sequence[Value], more: str = "", shift: str = "", scalars: Sequence[Value] = ()
    ) -> dict[int, str]:
        """Write a sequence on values, conversions with `more` words, those of integers by a `shift`.

        Returns:
            What its registers are called.
        """
        changed = {step.operands[0].number for step in sequence.steps if isinstance(step.operands[0], Held)}
        named = {scalar.value.number: value.text for scalar, value in zip(sequence.scalars, scalars, strict=True)}
        for held, value in self._registers(sequence, given):
            named[held.number] = value.text
            if held.number in changed:
                named[held.number] = self.register(value.type)
                self.move(named[held.number], value)
        for step in sequence.steps:
            texts = [hex(each & WORD) if isinstance(each, int) else self.held_text(each, named)
                     for each in step.operands]  # fmt: skip
            if shift and step.head.startswith(("convert_int", "convert_uint")):
                texts[-1] = shift
            where = ""
            if step.where is not None:
                where = f"{'!' if step.inverted else ''}{self.held_text(step.where, named)}"
            self.emit(f"{step.head}{more if step.head.startswith('convert.') else ''} {', '.join(texts)}", where)
        return named

    def held_text(self, held: Held, names: dict[int, str]) -> str:
        """Return what a register of a sequence is called in the text, a new name if it has none yet."""
        if held.number not in names:
            kinds: dict[str, CType] = {"VP": Mask(64), "S": FLOAT, "SP": BOOL}
            names[held.number] = self.register(kinds.get(held.file.value, group_of("f32", held.size)))
        text = names[held.number]
        return text if held.part is None or held.size == 1 else member_text(Value(FLOAT, text), held.part)


def _parts(kind: CType) -> tuple[Vector, ...]:
    if isinstance(kind, Group):
        return tuple(each for each in kind.members if isinstance(each, Vector))
    return (kind,) if isinstance(kind, Vector) else ()


def _aggregate(name: str, kind: CType) -> ElementVector:
    """Return the elements of a type by its name: vectors of four bits are held as vectors of bytes."""
    (first, *_), count = _parts(kind), len(_parts(kind))
    if "nibble" in name:
        return ElementVector("u4" if name.startswith("u") else "i4", 512 * count)
    return ElementVector(first.element.name, first.lanes * count)


_PAD_TYPES = {"float": "f32", "int": "i32", "uint": "u32", "short": "i16", "ushort": "u16", "char": "i8",
              "uchar": "u8", "bf16": "bf16", "half": "f16"}  # fmt: skip
_DESCRIPTOR = re.compile(r"(?:__builtin_)?(get|set)_(dim_size|dim_stride|pad_value)(?:_(\w+))?")
_REDUCE = re.compile(r"v_(f32|bf16|i32|u32|i16|u16|i8|u8|f16)_reduce_(?:nolut_)?(max|min|add)")
_PRIVATE = ("v_sigmoid_f32", "sigmoid_f32")
"""Functions whose instructions are public in no source that may be used."""
_SEMAPHORE = {"goya": 0x808, "gaudi": 0x908, "gaudib": 0x908, "greco": 0xDB4, "gaudi2": 0xD74}
_LANES = {"V_LANE_ID_32": "u32", "V_LANE_ID_16": "u16", "V_LANE_ID_8": "u8"}
_PREFETCH_STRIDE = 0x38


class Library(Conversions):
    """Functions by name and values."""

    blocked: list[CastsimError]
    """Why the kernel cannot run, though it is read and its types are right."""
    tables: dict[str, tuple[int, int]]
    """The look-up tables that the kernel reads: function id and values of an entry by name."""
    rounded: set[str]
    """Those without which a run can do: functions of the library alone read them."""

    def called(self, name: str, arguments: Sequence[Value], into: str | None = None) -> Value:
        """Return the result of a function of the vendor.

        Raises:
            ReadError: no such function, or arguments that it does not take.
            IllegalError: the generation lacks it.
        """
        own = self._own().get(name)
        if own is not None:
            return own(name, list(arguments), into)
        found = call_named(name)
        if isinstance(found, IntrinsicConversion):
            return self.conversion(name, found, arguments, into)
        if found is not None:
            switches = arguments[2].const if len(arguments) > 2 and arguments[2].known else 0
            # By pointer, a look-up takes its table from a register: a tensor that set_lut has bound.
            if found.row.shape == "lookup" and not int(switches or 0) & LUT_POINTER:
                self._note_table(found.element, arguments, pairs=found.row.operation in ("lookup_2c", "lookup_c1c2"))
            return self.intrinsic(name, found, arguments, into)
        for attempt in (self.aggregate, self._same_bits, self._descriptor, self._reduced, self._function):
            result = attempt(name, arguments, into)
            if result is not None:
                return result
        raise self.wrong(f"function is used but not defined: {name}", *near(name, self.known()))

    def known(self) -> list[str]:
        """Return names of functions that are no intrinsics."""
        return [*self._own(), *_PRIVATE, *FUNCTIONS, "get_dim_size", "get_dim_stride"]

    def is_function(self, name: str) -> bool:
        """Whether the vendor has a function of this name, as far as names tell."""
        patterns = (_DESCRIPTOR, _REDUCE)
        return (
            name in self._own() or call_named(name) is not None
            or name in _PRIVATE or name in FUNCTIONS or f"v_{name}" in FUNCTIONS
            or any(each.fullmatch(name) for each in patterns) or name.startswith(("as_", "to_bool", "from_bool"))
        )  # fmt: skip

    def _own(self) -> dict[str, Callable[[str, list[Value], str | None], Value]]:
        return {
            "get_index_space_offset": lambda name, given, into: Value(INDEX, "%i.index_space_offset"),
            "get_index_space_size": lambda name, given, into: Value(INDEX, "%i.index_space_size"),
            "gen_addr": self._generated, "prefetch": self._prefetched, "set_indx": self._set_index,
            "mov_irf_dim": self._dimension, "prmt_indx": self._permuted, "cache_flush": self._plain,
            "cache_invalidate": self._plain, "aso": self._plain, "read_lane_id_4b_b": self._lane_numbers,
            "read_lane_id_2b_b": self._lane_numbers, "read_lane_id_1b_b": self._lane_numbers,
            "get_tensor_hwpref_stride": self._prefetch_stride,
            **dict.fromkeys(("set_lut_32", "set_lut_64", "set_lut_128", "set_lut_256"), self._bind),
            "get_semaphore_value": self._semaphore, "set_semaphore_value": self._semaphore,
            "s_div_fast_f32": self._division,
            "u32_udiv_4step": self._steps, "u16_udiv_4step": self._steps, "u8_udiv_4step": self._steps,
        }  # fmt: skip

    def named_value(self, name: str) -> Value | None:
        """Return the value of a name that is preloaded, None if it is none."""
        if name in _LANES:
            return self._lanes(_LANES[name], None)
        if name in ("LFSR", "LFSR_NO_CHANGE"):
            found = self.temp(vector_of("u32"))
        elif name in ("S_LFSR", "S_LFSR_NO_CHANGE"):
            found = self.temp(UNSIGNED)
        else:
            return None
        self.emit(f"mov{'.u32' if name.startswith('S') else ''} {found.text}, {name}")
        return found

    # ------------------------------------------------------------------------------------------------- coordinates

    def _lanes(self, element: str, into: str | None) -> Value:
        kind = vector_of(element)
        found = self.dest(kind, into)
        self.emit(f"mov {found.text}, V_LANE_ID_{Scalar(element).bits}")
        return found

    def _lane_numbers(self, name: str, given: list[Value], into: str | None) -> Value:
        return self._lanes({"4": "u32", "2": "u16", "1": "u8"}[name.split("_")[-2][0]], into)

    def _rest(self, name: str, given: list[Value], place: int) -> str | None:
        """Return predicate and polarity from an argument on as a text, None if it is known to be false."""
        self._need(name, given, 0, place + 2)
        if len(given) <= place:
            return ""
        found, inverted = self.truth(given[place])
        polarity = bool(self.number(name, given[place + 1], "the polarity")) if len(given) > place + 1 else False
        if found.known:
            return "" if bool(found.const) != polarity else None
        return self.predicate_text(found, inverted=inverted != polarity)

    def _generated(self, name: str, given: list[Value], into: str | None) -> Value:
        self._need(name, given, 2, 6)
        if not isinstance(given[0].type, Index):
            raise self.wrong(f"the coordinates of {name} are int5, not {given[0].type}")
        kind = Pointer(INT, "global")
        predicate = self._rest(name, given, 4)
        income = given[3] if len(given) > 3 and isinstance(given[3].type, Pointer) else None
        if predicate is None:
            return income or self.temp(kind)
        texts = [self.tensor(name, given[1], "LD_TNSR_ID_REG"), given[0].text]
        found = self.result(kind, into, income if predicate else None, predicate, texts)
        self.emit(f"gen_addr {found.text}, {texts[0]}, {texts[1]}", predicate)
        return found

    def _prefetched(self, name: str, given: list[Value], into: str | None) -> Value:
        self._need(name, given, 1, 4)
        predicate = self._rest(name, given, 2)
        if not self.since("gaudi"):
            raise self.refused(f"{name} is not available on {self.generation}; from gaudi on")
        if predicate is not None:
            self.emit(f"prefetch {self.address(given[0])}", predicate)
        return VOID_VALUE

    def _plain(self, name: str, given: list[Value], into: str | None) -> Value:
        predicate = self._rest(name, given, 1)
        switches = self.number(name, given[0], "the switches") if given else 0
        words = []
        if name == "aso":
            words = [word for bit, word in ((1 << 8, "dec"), (2 << 8, "vpu")) if switches & bit]
        elif name == "cache_invalidate":
            words = [word for bit, word in CACHE_WORDS if switches & bit]
        if predicate is not None:
            self.emit(" ".join([name, *words, predicate]).strip())
        return VOID_VALUE

    def _set_index(self, name: str, given: list[Value], into: str | None) -> Value:
        """`set_indx(value, income, mask, switches, predicate, polarity)`."""
        self._need(name, given, 3, 6)
        predicate = self._rest(name, given, 4)
        if predicate is None:
            return given[1]
        mask = self.number(name, given[2], "the mask") & 31
        high = ["high"] if len(given) > 3 and self.number(name, given[3], "the switches") & (1 << 4) else []
        text = self.operand(self.converted(given[0], INT))
        found = self.result(INDEX, into, self.converted(given[1], INDEX), predicate, [text])
        self.emit(f"{' '.join(['set_indx', *high])} {found.text}, b{mask:05b}, {text}", predicate)
        return found

    def _dimension(self, name: str, given: list[Value], into: str | None) -> Value:
        """`mov_irf_dim(coordinates, dimension, switches, income, predicate, polarity)`."""
        self._need(name, given, 2, 6)
        predicate = self._rest(name, given, 4)
        number = self.number(name, given[1], "the dimension")
        income = self.converted(given[3], INT) if len(given) > 3 else None
        if predicate is None:
            return income or self.temp(INT)
        found = self.result(INT, into, income if predicate else None, predicate, [])
        self.emit(f"mov_irf_dim {hex(number)} {found.text}, {given[0].text}", predicate)
        return found

    def _permuted(self, name: str, given: list[Value], into: str | None) -> Value:
        self._need(name, given, 2, 6)
        predicate = self._rest(name, given, 4)
        income = given[3] if len(given) > 3 else None
        if predicate is None:
            return income or given[0]
        order = self.in_register(self.converted(given[1], INT))
        found = self.result(INDEX, into, income if predicate else None, predicate, [given[0].text])
        self.emit(f"prmt_indx {found.text}, {given[0].text}, {order.text}", predicate)
        return found

    def _division(self, name: str, given: list[Value], into: str | None) -> Value:
        """`s_div_fast_f32(x, y, 1 / y)`: the quotient, its residual, and the corrected quotient."""
        self._need(name, given, 3, 3)
        x, y, inverse = (self.in_register(self.converted(each, FLOAT)) for each in given)
        quotient, rest = self.temp(FLOAT), self.temp(FLOAT)
        self.emit(f"mul.f32 {quotient.text}, {x.text}, {inverse.text}")
        self.move(rest.text, x)
        self.emit(f"mac.f32 neg {rest.text}, {y.text}, {quotient.text}")
        self.emit(f"mac.f32 {quotient.text}, {rest.text}, {inverse.text}")
        return quotient

    def _steps(self, name: str, given: list[Value], into: str | None) -> Value:
        raise self.refused(f"{name} is not offered as a call", "the operators / and % of unsigned numbers")

    # --------------------------------------------------------------------------------------------------- descriptors

    def _descriptor(self, name: str, given: Sequence[Value], into: str | None) -> Value | None:
        match = _DESCRIPTOR.fullmatch(name)
        if match is None or (match[2] != "pad_value" and match[3]):
            return None
        place = descriptors_of(self.target)
        assert place is not None
        setting, dimensions = match[1] == "set", match[2] != "pad_value"
        self._need(name, list(given), 1 + dimensions + setting, 1 + dimensions + setting)
        tensor = self.number(name, given[0], "the tensor")
        offset = 8
        kind: Scalar = UNSIGNED
        if dimensions:
            dimension = self.converted(given[1], INT)
            if not dimension.known:
                raise self.wrong(f"the dimension of {name} must be a constant")
            number = int(dimension.const or 0)
            if not 0 <= number < 5:
                raise self.wrong(f"{name}: there is no dimension {number}", "0 .. 4")
            offset = 0x10 + place.dimension_bytes * number + 4 * (match[2] == "dim_stride")
            kind = INT if match[2] == "dim_size" else UNSIGNED
        else:
            kind = Scalar(_PAD_TYPES.get(match[3] or "int", "i32"))
        address = place.base + place.descriptor_bytes * tensor + offset
        if not setting:
            found = self.dest(kind, into)
            self.emit(f"ld_l mmio {found.text}, {hex(address)}")
            return found
        value = self.in_register(self.converted(given[-1], kind))
        if kind.bits < 32:
            raise self.refused(f"{name} of a narrow type is not offered", "set_pad_value_int with the value repeated")
        self.emit(f"st_l mmio {hex(address)}, {value.text}")
        return VOID_VALUE

    def _prefetch_stride(self, name: str, given: list[Value], into: str | None) -> Value:
        self._need(name, given, 1, 1)
        if not self.since("gaudi2"):
            raise self.refused(f"{name} is not available on {self.generation}; from gaudi2 on")
        place = descriptors_of(self.target)
        assert place is not None
        found = self.dest(UNSIGNED, into)
        number = self.number(name, given[0], "the tensor")
        address = place.base + place.descriptor_bytes * number + _PREFETCH_STRIDE
        self.emit(f"ld_l mmio {found.text}, {hex(address)}")
        return found

    def _semaphore(self, name: str, given: list[Value], into: str | None) -> Value:
        address = _SEMAPHORE[self.generation]
        if name.startswith("set"):
            self._need(name, given, 1, 1)
            value = self.in_register(self.converted(given[0], UNSIGNED))
            self.emit(f"st_l mmio {hex(address)}, {value.text}")
            return VOID_VALUE
        self._need(name, given, 0, 0)
        found = self.dest(UNSIGNED, into)
        self.emit(f"ld_l mmio {found.text}, {hex(address)}")
        return found

    def _bind(self, name: str, given: list[Value], into: str | None) -> Value:
        """`set_lut_256(tensor)`: the address in its descriptor becomes the base of tables of so many entries."""
        self._need(name, given, 1, 1)
        low, place = self.target.configuration.get(f"table_base_{name[8:]}_low"), descriptors_of(self.target)
        if low is None or low.address is None or place is None:
            raise self.refused(f"{name} is not available on {self.generation}; from gaudi2 on")
        if name != "set_lut_256":
            self.note(f"{name}: where its base stands is assumed; no public source states it")
        descriptor = place.base + place.descriptor_bytes * self.number(name, given[0], "the tensor")
        for offset in (0, 4):
            word = self.temp(UNSIGNED)
            self.emit(f"ld_l mmio {word.text}, {hex(descriptor + offset)}")
            self.emit(f"st_l mmio {hex(low.address + offset)}, {word.text}")
        return VOID_VALUE

    # -------------------------------------------------------------------------------------------------------- values

    def _same_bits(self, name: str, given: Sequence[Value], into: str | None) -> Value | None:
        """`as_float64`, `to_bool64`, `from_bool64`: another type of the same bits, or by value: between aggregates, in
        a mode.
        """
        kind: CType | None = None
        if name.startswith(("to_bool", "from_bool")):
            lanes = int(name.rpartition("bool")[2] or 0)
            kind = Mask(256) if name.startswith("from") else Mask(lanes)
            if lanes not in (64, 128, 256):
                return None
        elif name.startswith("as_"):
            kind = type_named(name[3:])
        if kind is None:
            return None
        self._need(name, list(given), 1, 2)
        value = given[0]
        if len(given) > 1:
            return self._in_mode(name, value, kind, self.switches(name, given[1], _ROUNDINGS), into)
        same = isinstance(value.type, type(kind)) or (isinstance(value.type, Vector) and isinstance(kind, Vector))
        if isinstance(kind, Group) or isinstance(value.type, Group):
            return self.by_value(value, kind, LINEAR, into)
        if isinstance(kind, Scalar) and isinstance(value.type, Scalar) and kind.bits == value.type.bits:
            return self.bits_as(value, kind)
        if not same:
            raise self.wrong(f"{name} does not take {value.type}")
        if isinstance(kind, Vector) and isinstance(value.type, Vector) and kind != value.type:
            self.note(f"{name}: the same bits; with a rounding mode as second argument it converts the values")
        return self.bits_as(value, kind)

    def _in_mode(self, name: str, value: Value, kind: CType, switches: int, into: str | None) -> Value:
        """`as_float64(x, SW_RZ)`: the values in another type, in order; a mode that the pair lacks is refused."""
        if isinstance(kind, Scalar) and isinstance(value.type, Scalar) and BOOL not in (kind, value.type):
            if direct_hop(value.type.name, kind.name, self.target, "spu") is None:
                raise self.refused(f"{self.generation} has no instruction from {value.type} to {kind}")
            form = IntrinsicConversion("s", value.type.name, kind.name, "", False, "")
            return self.conversion(name, form, [self.in_register(value), self.const(switches, INT)], into)
        old, new = _parts(value.type), _parts(kind)
        if not old or not new:
            raise self.wrong(f"{name} converts no {value.type} to {kind}")
        pair = (ElementVector(each[0].element.name, each[0].lanes * len(each)) for each in (old, new))
        mode = ROUNDING[switches >> 16] or "csr"
        try:
            source, target = matched(*pair, self.target)
            cast = prepared(source, target, self.target, form=SourceForm.AS, rounding=mode if switches else None,
                            reading=ChainReading.COMPILER, order=Order.LINEAR)  # fmt: skip
        except CastsimError as error:
            raise error.at(self.span()) from None
        return self._in_order(value, kind, switches, into, path=cast.path)

    def _note_table(self, element: str, given: Sequence[Value], *, pairs: bool) -> None:
        number = given[1].const if len(given) > 1 and given[1].known else None
        if number is None:
            raise self.refused("a look-up whose table is not a constant is not supported")
        known = next((each for each in function_tables() if each.function(self.target) == number), None)
        self.rounded = self.rounded - {known.table if known is not None else ""}
        name = known.table if known is not None else f"lut{int(number)}"
        columns = 3 if pairs or known is not None else 1
        old = self.tables.get(name, (int(number), 0))
        self.tables[name] = (int(number), max(columns, old[1]))

    def _function(self, name: str, given: Sequence[Value], into: str | None) -> Value | None:
        """A function of the library, from the instructions that are public."""
        wanted = name.removeprefix("__builtin_")
        wanted = wanted if wanted in FUNCTIONS else f"v_{wanted}"
        kind = vector_of("f32")
        if name in _PRIVATE:
            self.blocked.append(self.refused(f"{name}: its instructions are not public", "v_exp_f32, v_reciprocal_f32"))
            return self.dest(kind, into)
        if wanted not in FUNCTIONS:
            return None
        count = len(OPERANDS.get(wanted, ("x",)))
        self._need(name, list(given), count, count)
        known = {each.table: each for each in function_tables()}
        writer = SequenceWriter(self.target, {table: each.function(self.target) for table, each in known.items()})
        inputs = tuple(writer.sequence.input(f"x{place}", "f32")[0] for place in range(count))
        result = FUNCTIONS[wanted](writer, inputs)
        for table in writer.tables:
            function = known[table].function(self.target)
            if table not in self.tables:
                self.tables[table], self.rounded = (function, known[table].columns), {*self.rounded, table}
            text = f"{name}: correctly rounded, not the chip's, unless --in {table}=FILE gives its table, not public"
            self.note(text)
            operands = (*inputs, *inputs)[:2]
            result = writer.do(f"rounded.f32 {computed_by(wanted)}", *operands, result, function)
        named = self.appended(writer.sequence, [self.in_register(self.converted(each, kind)) for each in given])
        return self.in_register(Value(kind, self.held_text(result, named), temp=True), into)

    # ---------------------------------------------------------------------------------------------------- reductions

    def _reduced(self, name: str, given: Sequence[Value], into: str | None) -> Value | None:
        """All lanes combined, in every lane: dual groups first, then groups and lanes by shuffles.

        Maxima and minima are the same in any order; sums follow this order, which no public source states.
        """
        match = _REDUCE.fullmatch(name)
        if match is None:
            return None
        self._need(name, list(given), 1, 1)
        element = match[1]
        kind, bits = vector_of(element), Scalar(match[1]).bits
        total = self.converted(given[0], kind)
        if not self.since("gaudi"):
            raise self.refused(f"{name} is not available on {self.generation}; from gaudi on")
        if match[2] == "add" and kind.element.is_float:
            self.note(f"{name}: the order of the sum is assumed; no public source states it")
        for order in ((2, 3, 0, 1), (1, 0, 3, 2)):
            other = self.temp(kind)
            self.move(other.text, total)
            groups = " ".join(f"sdg{d}={source}" for d, source in enumerate(order))
            self.emit(f"mov_dg.all {groups} weg0=3 weg1=3 weg2=3 weg3=3 {other.text}, {total.text}, 0xffffffff")
            total = self._joined(match[2], element, total, other)
        directions = self._directions(bits)
        group = 256 // bits
        for step in (0x20, *(group >> place for place in range(1, group.bit_length()))):
            pattern, other = self.temp(directions.type), self.temp(kind)
            enable = sum(0x80 << place for place in range(0, bits, 8))
            word = f"i{bits}"
            code = self.immediate(self.const(step | enable, Scalar(word)), Scalar(word))
            self.emit(f"xor.{word} {pattern.text}, {directions.text}, {code}")
            self.move(other.text, total)
            self.emit(f"shuffle.{element} {other.text}, {total.text}, {pattern.text}")
            total = self._joined(match[2], element, total, other)
        return self.in_register(total, into)

    def _joined(self, word: str, element: str, one: Value, two: Value) -> Value:
        found = self.temp(one.type)
        self.emit(f"{word}.{element} {found.text}, {one.text}, {two.text}")
        return found

    def _directions(self, bits: int) -> Value:
        """Return for each lane the direction of a shuffle that changes nothing: element, group in bit 5."""
        lane = self._lanes(f"u{bits}", None)
        element, group, found = (self.temp(lane.type) for _ in range(3))
        word, inside = f"i{bits}", 256 // bits
        self.emit(f"and.{word} {element.text}, {lane.text}, {hex(inside - 1)}")
        self.emit(f"and.{word} {group.text}, {lane.text}, {hex(inside)}")
        if inside < 0x20:
            wide = self.temp(lane.type)
            self.emit(f"shl.{word} {wide.text}, {group.text}, {hex((0x20 // inside).bit_length() - 1)}")
            group = wide
        self.emit(f"or.{word} {found.text}, {element.text}, {group.text}")
        return found
