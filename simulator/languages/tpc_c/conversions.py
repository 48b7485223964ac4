"""Calls that convert values: CONVERT and CONVERT_INT by name, aggregates, `as_T`; whole sequences on values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from castsim.isa.errors import CastsimError
from castsim.isa.tpc.forms import TARGET_SPELLINGS
from castsim.languages.tpc_c.code import WORD, Value, member_text
from castsim.languages.tpc_c.intrinsics import Intrinsics, Tail
from castsim.targets.description import Status
from castsim.tools.tpc_compiler.c_language import (
    BOOL,
    CLIP_FP,
    FLOAT,
    INT,
    LINEAR,
    VECTOR_BITS,
    CType,
    Group,
    IntrinsicCall,
    IntrinsicConversion,
    Mask,
    Scalar,
    Vector,
    group_of,
    intrinsics,
    rounding,
    type_named,
    words,
)
from castsim.tools.tpc_compiler.c_table import (
    ElementVector,
    HopMethod,
    Path,
    PathHop,
    bits_of,
    direct_hop,
    path_of,
    promotes,
)
from castsim.tools.tpc_compiler.cast_building import Order, build, has_all_lanes
from castsim.tools.tpc_compiler.code_generation import Sequence as Steps
from castsim.tools.tpc_compiler.code_generation import SequenceRegister as Held

AGGREGATES = re.compile(r"(?:(u?int)_)?convert_([a-z]+\d+(?:_pair_t)?)_to_([a-z]+\d+(?:_pair_t)?)")
_ROUNDINGS = "RHNE RZ RU RD SR CSR RHAZ SR_RNE"
_INTEGER_WIDTH = {"i16": "to_16", "u16": "to_16", "i8": "to_8", "u8": "to_8"}


class Conversions(Intrinsics):
    """Conversions by name and values."""

    def conversion(self, name: str, form: IntrinsicConversion, arguments: Sequence[Value], into: str | None) -> Value:
        """Return the result of a CONVERT.

        Arguments: source, [shifts,] [lane,] switches, income, predicate, polarity.
        """
        for element in (form.source, form.target):
            self.check_type(Scalar(element))
        given = list(arguments)
        self._need(name, given, 1, 8)
        wide, narrow = Scalar(form.source).bits, Scalar(form.target).bits
        scalar, every = form.unit == "s", form.form == "all"
        source = self._shape(form.source, 1 if scalar or not every else max(1, wide // narrow), scalar)
        target = self._shape(form.target, 1 if scalar or not every else max(1, narrow // wide), scalar)
        if form.form in ("x2", "x4"):
            count = 2 if form.form == "x2" else 4
            source, target = self._shape(form.source, count, False), self._shape(form.target, count, False)
        if isinstance(source, Vector) and isinstance(given[0].type, Vector):
            value = self.bits_as(given[0], source)
        else:
            value = self.converted(given[0], source)
        lane_index = 1
        shift = ""
        if form.integer:
            scalar_shift = isinstance(given[1].type, Scalar)
            shift = self.operand(self.converted(given[1], INT)) if scalar_shift else given[1].text
            lane_index = 2
        lane = None
        if self._has_lane(form, wide, narrow):
            lane = self.number(name, given[lane_index], "the lane")
            lane_index += 1
        call = IntrinsicCall(next(iter(intrinsics().values())), form.unit, form.target, form.target, form.lanewise,
                    frozenset())  # fmt: skip
        switches = f"{_ROUNDINGS} LINEAR" if form.integer else f"{_ROUNDINGS} CLIP_FP LINEAR"
        tail = self.tail(name, call, given, lane_index, target, known=switches)
        if tail.never:
            return self._kept(tail, target)
        if tail.switches & LINEAR and wide != narrow and not scalar:
            return self._ordered(name, form, value, given[1] if form.integer else value, tail, target, into)
        narrows_all = self.since("greco") or (form.source, form.target) == ("f32", "bf16")
        if every and wide > narrow and not scalar and not narrows_all:
            return self._one_by_one(form, value, shift, tail, target, into)
        head = self._head(form, lane, tail.switches)
        texts = [self.in_register(value).text, *([shift] if shift else [])]
        partly = lane is not None or (form.form == "single" and wide > narrow)
        return self._emit_text(head, tail, target, texts, into, partly=partly)

    def _ordered(
        self, name: str, form: IntrinsicConversion, value: Value, shift: Value, tail: Tail, target: CType,
        into: str | None,
    ) -> Value:  # fmt: skip
        """Return the result of an all-lanes conversion with SW_LINEAR: every element stays at its place."""
        if form.form != "all":
            end = "vb" if form.lanewise else "b"
            message = f"{name} converts one lane of its registers; SW_LINEAR applies to the order of all lanes"
            raise self.refused(message, f"v_convert_{form.integer or form.source}_to_{form.target}_all_{end}")
        if form.lanewise:
            message = f"no source documents which lanes the predicate of {name} selects with SW_LINEAR"
            raise self.refused(message, f"{name[:-2]}b, then v_{form.target}_mov_vb")
        if form.integer and not isinstance(shift.type, Scalar):
            raise self.refused(f"no source documents the lanes of the shifts of {name} with SW_LINEAR", "one shift")
        path = None
        if form.integer:
            row = self.target.integer_convert(f"convert_{form.integer}", form.target)
            mode = rounding(tail.switches) or "csr"
            hop = PathHop(HopMethod.NARROW, form.source, form.target, row, integer_rounding=mode)
            path = Path(form.source, form.target, (hop,), Status.DOCUMENTED, ())
        count = self.operand(self.converted(shift, INT)) if form.integer else ""
        result = self._in_order(value, target, tail.switches, None, path=path, shift=count)
        if not tail.predicate or tail.income is None:
            return self.in_register(result, into)
        kept = self.result(target, into, tail.income, tail.predicate, [result.text])
        self.move(kept.text, result, tail.predicate)
        return kept

    def _shape(self, element: str, count: int, scalar: bool) -> CType:
        storage = {"i4": "i8", "u4": "u8"}.get(element, element)
        return Scalar(storage) if scalar else group_of(storage, count)

    def _has_lane(self, form: IntrinsicConversion, wide: int, narrow: int) -> bool:
        """Return whether the call names a lane: the narrowing ones of vectors do, but of f32 to bf16 on the oldest."""
        if form.unit == "s" or form.form in ("all", "x2", "x4") or wide <= narrow:
            return False
        if (form.source, form.target) == ("f32", "bf16"):
            return form.form == "" and self.since("gaudib")
        return not (form.integer and form.target == "u4")

    def _head(self, form: IntrinsicConversion, lane: int | None, switches: int) -> str:
        mode = rounding(switches) or ("csr" if form.integer else "")
        lanes = [f"lane_sel={lane}"] if lane is not None else []
        every = ["all_lanes"] if form.form == "all" else ["single_lane"] if form.form == "single" else []
        if form.integer:
            width = [_INTEGER_WIDTH[form.target]] if form.integer in ("int32", "uint32") else []
            narrow = [] if form.target in ("i4", "u4") else every
            return " ".join([f"convert_{form.integer}", *lanes, *narrow, *width, *([mode] if mode else [])])
        extra = [form.form] if form.form in ("x2", "x4") else every if form.form == "all" else []
        clip = words((switches & CLIP_FP, "clip_fp"))
        middle = [*lanes, *extra, f"target_type={TARGET_SPELLINGS[form.target]}", *([mode] if mode else []), *clip]
        return " ".join([f"convert.{form.source}", *middle])

    def _one_by_one(
        self, form: IntrinsicConversion, value: Value, shift: str, tail: Tail, target: CType, into: str | None
    ) -> Value:
        """Narrow lane by lane, as the header's macro does if no form takes all lanes."""
        members = value.type.members if isinstance(value.type, Group) else ()
        result = self.temp(target)
        if tail.predicate and tail.income is not None:
            self.move(result.text, tail.income)
        single = IntrinsicConversion(form.unit, form.source, form.target, "", form.lanewise, form.integer)
        for lane in range(len(members)):
            lane_number = lane if self._has_lane(single, 2, 1) or lane else 0
            head = self._head(single, lane_number, tail.switches)
            texts = [result.text, member_text(value, lane), *([shift] if shift else [])]
            self.emit(f"{head} {', '.join(texts)}", tail.predicate)
        return self.in_register(result, into)

    # ----------------------------------------------------------------------------------------------------- aggregates

    def converted(self, value: Value, kind: CType, *, explicit: bool = False, into: str | None = None) -> Value:
        """Convert as for other types, and aggregates of equal length by value, without a cast where types promote."""
        old, new = _parts(value.type), _parts(kind)
        if len(old) != len(new) and old and new:
            if explicit or promotes(old[0].element.name, new[0].element.name):
                return self.by_value(value, kind, LINEAR, into)
        elif len(old) > 1 and explicit:
            return self.bits_as(value, kind)
        return super().converted(value, kind, explicit=explicit, into=into)

    def aggregate(self, name: str, arguments: Sequence[Value], into: str | None) -> Value | None:
        """Return the result of `convert_S_to_D(x, switches)` or of `int_convert_S_to_D(x, shift, switches)`.

        Return None for other names.
        """
        match = AGGREGATES.fullmatch(name)
        source, target = (type_named(spelling) for spelling in match.groups()[1:]) if match else (None, None)
        if match is None or not isinstance(source, Vector | Group) or not isinstance(target, Vector | Group):
            return None
        given = list(arguments)
        self._need(name, given, 1 + bool(match[1]), 2 + bool(match[1]))
        self.check_type(source)
        self.check_type(target)
        old, new = (
            _aggregate(type_text, kind) for type_text, kind in zip(match.groups()[1:], (source, target), strict=True)
        )
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
        """Convert values with equal numbers of elements, by instructions on whole registers, or linearly."""
        old, new = _parts(value.type), _parts(target)
        source, destination = elements or (old[0].element.name, new[0].element.name)
        counts = [
            len(vectors) * (512 if name[1:] == "4" else vectors[0].lanes)
            for vectors, name in ((old, source), (new, destination))
        ]
        if len({*old}) > 1 or len({*new}) > 1 or counts[0] != counts[1]:
            raise self.wrong(f"{value.type} cannot be converted to {target}: the numbers of elements differ")
        direct = direct_hop(source, destination, self.target)
        if direct is None or direct.means is not HopMethod.CONVERT:
            order = Order.LINEAR if switches & LINEAR or len(old) == len(new) else Order.SWIZZLE
            return self._in_order(value, target, switches, into, order=order)
        if len(old) == len(new) and (self.since("greco") or len(old) == 1):
            mode, result = rounding(switches), self.dest(target, into)
            every = "all_lanes " if self.since("greco") else ""
            clip = " clip_fp" if switches & CLIP_FP else ""
            words = " ".join(filter(None, (f"target_type={TARGET_SPELLINGS[destination]}", mode))) + clip
            self.emit(f"convert.{source} {every}{words} {result.text}, {value.text}")
            return result
        whole = has_all_lanes(direct) or (len(new) < len(old) and not self.since("greco"))
        if len(old) == len(new) or switches & LINEAR or not whole:
            order = Order.LINEAR if len(old) == len(new) or switches & LINEAR else Order.SWIZZLE
            return self._in_order(
                value, target, switches, into, order=order, path=path_of(source, destination, self.target)
            )
        form = IntrinsicConversion("v", source, destination, "all", False, "")
        return self._in_blocks(
            f"v_convert_{source}_to_{destination}", form, value, target, [self.const(switches, INT)], into
        )

    def _in_blocks(
        self, name: str, form: IntrinsicConversion, value: Value, target: CType, rest: list[Value], into: str | None
    ) -> Value:
        """Convert all lanes, each wide group of registers separately, to one narrow register each."""
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
            converted_block = self.conversion(name, form, [source, *rest], None)
            for part in range(count):
                text = converted_block.text if count == 1 else member_text(converted_block, part)
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
            source_vector, result_vector = (
                ElementVector(name, VECTOR_BITS // bits_of(name) * len(vectors))
                for vectors, name in ((old, path.src), (new, path.dst))
            )
            sequence = build(path, source_vector, result_vector, order, lambda hop: hop.word or word, self.target)
        except CastsimError as error:
            raise error.at(self.span()) from None
        named = self.appended(sequence, [value], " clip_fp" if switches & CLIP_FP else "", shift)
        return self._collected(sequence, named, target, into)

    def _collected(self, sequence: Steps, named: dict[int, str], target: CType, into: str | None) -> Value:
        """Return the result of a sequence that was written, moved to registers of its type."""
        result, kinds = self.temp(target), _parts(target)
        parts = [part for register in sequence.outputs[0].registers for part in register.parts]
        for index, (kind, part) in enumerate(zip(kinds, parts, strict=True)):
            text = result.text if len(kinds) == 1 else member_text(result, index)
            self.move(text, Value(kind, self.held_text(part, named)))
        return self.in_register(result, into)

    def _registers(self, sequence: Steps, values: Sequence[Value]) -> Iterator[tuple[Held, Value]]:
        """Yield the registers of a sequence's inputs with values, whose aggregates are taken apart where it does so."""
        parts = [part for value in values for part in _members(value)]
        for register in (slot for port in sequence.inputs for slot in port.registers if slot.part in (None, 0)):
            given, parts = parts[: register.size], parts[register.size :]
            whole = next((candidate for candidate in values if _members(candidate) == given), given[0])
            if register.size > 1 and whole is given[0]:
                whole = self.temp(Group(tuple(kind for argument in given for kind in _parts(argument.type))))
                for index, part in enumerate(given):
                    self.move(member_text(whole, index), part)
            yield register, whole

    def appended(
        self, sequence: Steps, given: Sequence[Value], more: str = "", shift: str = "", scalars: Sequence[Value] = ()
    ) -> dict[int, str]:
        """Append a sequence on values, conversions with `more` words, those of integers with a `shift`.

        Returns:
            The names of its registers.
        """
        changed = {step.operands[0].number for step in sequence.steps if isinstance(step.operands[0], Held)}
        named = {scalar.value.number: value.text for scalar, value in zip(sequence.scalars, scalars, strict=True)}
        for register, value in self._registers(sequence, given):
            named[register.number] = value.text
            if register.number in changed:
                named[register.number] = self.register(value.type)
                self.move(named[register.number], value)
        for step in sequence.steps:
            texts = [hex(operand & WORD) if isinstance(operand, int) else self.held_text(operand, named)
                     for operand in step.operands]  # fmt: skip
            if shift and step.head.startswith(("convert_int", "convert_uint")):
                texts[-1] = shift
            where = ""
            if step.where is not None:
                where = f"{'!' if step.inverted else ''}{self.held_text(step.where, named)}"
            self.emit(f"{step.head}{more if step.head.startswith('convert.') else ''} {', '.join(texts)}", where)
        return named

    def held_text(self, slot: Held, names: dict[int, str]) -> str:
        """Return the name in the text of a register of a sequence, a new one if it has none yet."""
        if slot.number not in names:
            kinds: dict[str, CType] = {"VP": Mask(64), "S": FLOAT, "SP": BOOL}
            names[slot.number] = self.register(kinds.get(slot.file.value, group_of("f32", slot.size)))
        text = names[slot.number]
        return text if slot.part is None or slot.size == 1 else member_text(Value(FLOAT, text), slot.part)

    # -------------------------------------------------------------------------------------------------------- values

    def retyped(self, name: str, given: Sequence[Value], into: str | None) -> Value | None:
        """Return `as_float64`, `to_bool64`, `from_bool64`: another type with the same bits; None for other names.

        Between aggregates, and with a rounding mode, the result is another type with the same values.
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
            raise self.wrong(f"{name} cannot convert {value.type} to {kind}")
        if len(old) * old[0].lanes != len(new) * new[0].lanes:
            raise self.wrong(f"{value.type} cannot be converted to {kind}: the numbers of elements differ")
        try:
            path = path_of(old[0].element.name, new[0].element.name, self.target)
        except CastsimError as error:
            raise error.at(self.span()) from None
        mode, modes = rounding(switches) or "csr", path.modes(self.target)
        if switches and mode not in modes:
            message = f"{path} on {self.generation} has no rounding mode {mode}" + ("" if modes else " or any other")
            raise self.refused(message, *(f"SW_{mode_word.upper()}" for mode_word in modes[:5]))
        return self._in_order(value, kind, switches, into, path=path)


def _parts(kind: CType) -> tuple[Vector, ...]:
    if isinstance(kind, Group):
        return tuple(member for member in kind.members if isinstance(member, Vector))
    return (kind,) if isinstance(kind, Vector) else ()


def _members(value: Value) -> list[Value]:
    parts = _parts(value.type)
    if len(parts) == 1:
        return [value]
    return [Value(kind, member_text(value, index)) for index, kind in enumerate(parts)]


def _aggregate(name: str, kind: CType) -> ElementVector:
    """Return the elements of a type by its name: vectors of four bits are held as vectors of bytes."""
    (first, *_), count = _parts(kind), len(_parts(kind))
    if "nibble" in name:
        return ElementVector("u4" if name.startswith("u") else "i4", 512 * count)
    return ElementVector(first.element.name, first.lanes * count)
