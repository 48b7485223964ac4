"""Calls that convert values: CONVERT and CONVERT_INT by name, and the conversions of whole aggregates."""

from __future__ import annotations

import re
from collections.abc import Sequence

from castsim.tpc_c.arithmetic import type_word
from castsim.tpc_c.code import Value, member_text
from castsim.tpc_c.intrinsics import Intrinsics, Tail
from castsim.tpc_c.switches import CLIP_FP, LINEAR, rounding, words
from castsim.tpc_c.table import Call, Conversion, intrinsics
from castsim.tpc_c.types import INT, CType, Group, Scalar, Vector, group_of, type_named

_AGGREGATES = re.compile(r"convert_([a-z]+\d+(?:_pair_t)?)_to_([a-z]+\d+(?:_pair_t)?)")
_INTEGER_WIDTH = {"i16": "to_16", "u16": "to_16", "i8": "to_8", "u8": "to_8"}


class Conversions(Intrinsics):
    """Conversions by name and values."""

    def conversion(self, name: str, found: Conversion, arguments: Sequence[Value], into: str | None) -> Value:
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
            value = self.converted(given[0], source, explicit=isinstance(source, Group))
        place = 1
        shift = ""
        if found.integer:
            shift = self._shifts(given[1])
            place = 2
        lane = None
        if self._has_lane(found, wide, narrow):
            lane = self.number(name, given[place], "the lane")
            place += 1
        call = Call(next(iter(intrinsics().values())), found.unit, found.target, found.target, found.lanewise,
                    frozenset())  # fmt: skip
        tail = self.tail(name, call, given, place, target)
        if tail.never:
            return self._kept(tail, target)
        if every and wide > narrow and not scalar and not self._all_lanes(found):
            return self._one_by_one(found, value, shift, tail, target, into)
        head = self._head(found, lane, tail.switches)
        texts = [self.in_register(value).text, *([shift] if shift else [])]
        partly = lane is not None or (found.form == "single" and wide > narrow)
        found_value = self.result(
            target, into, tail.income if partly or tail.predicate else None, tail.predicate, texts
        )
        self.emit(f"{head} {', '.join((found_value.text, *texts))}", tail.predicate)
        return found_value

    def _shape(self, element: str, count: int, scalar: bool) -> CType:
        held = {"i4": "i8", "u4": "u8"}.get(element, element)
        return Scalar(held) if scalar else group_of(held, count)

    def _shifts(self, value: Value) -> str:
        if isinstance(value.type, Scalar):
            return self.operand(self.converted(value, INT))
        return value.text

    def _has_lane(self, found: Conversion, wide: int, narrow: int) -> bool:
        """Whether the call names a lane: the narrowing ones of vectors do, but of f32 to bf16 on the oldest."""
        if found.unit == "s" or found.form in ("all", "x2", "x4") or wide <= narrow:
            return False
        if (found.source, found.target) == ("f32", "bf16"):
            return found.form == "" and self.since("gaudib")
        return not (found.integer and found.target == "u4")

    def _all_lanes(self, found: Conversion) -> bool:
        """Whether the generation has the form that narrows all lanes."""
        return self.since("greco") or (found.source, found.target) == ("f32", "bf16")

    def _head(self, found: Conversion, lane: int | None, switches: int) -> str:
        mode = rounding(switches)
        lanes = [f"lane_sel={lane}"] if lane is not None else []
        every = ["all_lanes"] if found.form == "all" else ["single_lane"] if found.form == "single" else []
        if found.integer:
            width = [_INTEGER_WIDTH[found.target]] if found.integer in ("int32", "uint32") else []
            narrow = [] if found.target in ("i4", "u4") else every
            return " ".join([f"convert_{found.integer}", *lanes, *narrow, *width, *([mode] if mode else [])])
        extra = [found.form] if found.form in ("x2", "x4") else every if found.form == "all" else []
        clip = words((switches & CLIP_FP, "clip_fp"))
        middle = [*lanes, *extra, f"target_type={type_word(found.target)}", *([mode] if mode else []), *clip]
        return " ".join([f"convert.{found.source}", *middle])

    def _one_by_one(
        self, found: Conversion, value: Value, shift: str, tail: Tail, target: CType, into: str | None
    ) -> Value:
        """Narrow lane by lane, as the header's macro does where no form takes all lanes."""
        members = value.type.members if isinstance(value.type, Group) else ()
        result = self.temp(target)
        if tail.predicate and tail.income is not None:
            self.move(result.text, tail.income)
        single = Conversion(found.unit, found.source, found.target, "", found.lanewise, found.integer)
        for lane in range(len(members)):
            lane_number = lane if self._has_lane(single, 2, 1) or lane else 0
            head = self._head(single, lane_number, tail.switches)
            texts = [result.text, member_text(value, lane), *([shift] if shift else [])]
            self.emit(f"{head} {', '.join(texts)}", tail.predicate)
        return self.in_register(result, into)

    # ----------------------------------------------------------------------------------------------------- aggregates

    def aggregate(self, name: str, arguments: Sequence[Value], into: str | None) -> Value | None:
        """Return the result of `convert_S_to_D(x, switches)`, None if the name is no such function."""
        match = _AGGREGATES.fullmatch(name)
        if match is None:
            return None
        source, target = type_named(match[1]), type_named(match[2])
        if not isinstance(source, Vector | Group) or not isinstance(target, Vector | Group):
            return None
        self._need(name, list(arguments), 1, 2)
        switches = self.number(name, arguments[1], "the switches") if len(arguments) > 1 else 0
        self.check_type(source)
        self.check_type(target)
        return self.by_value(self.converted(arguments[0], source), target, switches, into)

    def by_value(self, value: Value, target: CType, switches: int, into: str | None) -> Value:
        """Convert values of equal numbers of elements; in linear order only if the order of lanes does not change."""
        old, new = _parts(value.type), _parts(target)
        if len({*old}) > 1 or len({*new}) > 1 or old[0].lanes * len(old) != new[0].lanes * len(new):
            raise self.wrong(f"{value.type} cannot be converted to {target}: other numbers of elements")
        one, two = old[0].element.name, new[0].element.name
        found = Conversion("v", one, two, "all" if len(old) != len(new) else "", False, "")
        if len(old) != len(new) and switches & LINEAR:
            message = f"SW_LINEAR from {value.type} to {target} needs a rearrangement that castsim does not write"
            raise self.refused(message, "without SW_LINEAR: even and odd elements apart")
        if len(old) == len(new) and len(old) > 1:
            result = self.temp(target)
            mode = rounding(switches)
            for index in range(len(old)):
                head = f"convert.{one} target_type={type_word(two)}{' ' + mode if mode else ''}"
                self.emit(f"{head} {member_text(result, index)}, {member_text(value, index)}")
            return self.in_register(result, into)
        return self.conversion(f"v_convert_{one}_to_{two}", found, [value, self.const(switches & ~LINEAR, INT)], into)


def _parts(kind: CType) -> tuple[Vector, ...]:
    return kind.members if isinstance(kind, Group) else (kind,) if isinstance(kind, Vector) else ()
