"""The vendor's functions that are not one instruction: descriptors, coordinates, special functions, reductions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from castsim.isa.errors import CastsimError
from castsim.languages.tpc_c.code import VOID_VALUE, WORD, Value
from castsim.languages.tpc_c.conversions import AGGREGATES, Conversions
from castsim.languages.tpc_c.intrinsics import register_type
from castsim.machines.vliw.lookup_tables import computed_by
from castsim.targets.tpc_compiler import descriptors_of, function_tables, library_functions
from castsim.tools.tpc_compiler.builtin_sequences import build as build_builtin
from castsim.tools.tpc_compiler.builtin_sequences import find_builtin
from castsim.tools.tpc_compiler.c_language import (
    FLOAT,
    INDEX,
    INT,
    LUT_POINTER,
    SCALARS,
    UNSIGNED,
    CType,
    Group,
    Index,
    IntrinsicCall,
    IntrinsicConversion,
    Pointer,
    Scalar,
    TensorType,
    call_named,
    constants,
    intrinsics,
    near,
    type_named,
    vector_of,
)
from castsim.tools.tpc_compiler.special_function_bodies import FUNCTIONS, OPERANDS, SequenceWriter

_DESCRIPTOR = re.compile(r"(?:__builtin_)?(get|set)_(dim_size|dim_stride|pad_value)(?:_(\w+))?")
_UDIV = re.compile(r"(?:s_)?(u32|u16|u8)_(udiv(?:_4?step)?)")
_LFSR = re.compile(r"(s_)?(read|write)_lfsr(_no_change)?(?:_v?b)?")
_HELPER = re.compile(r"(?:__builtin_)?cast_\w+")
_REDUCE = re.compile(r"v_(f32|bf16|i32|u32|i16|u16|i8|u8|f16)_reduce_(?:nolut_)?(max|min|add)")
_PRIVATE = ("v_sigmoid_f32", "sigmoid_f32")
"""Functions whose instructions are public in no source that may be used."""
_SEMAPHORE = {"goya": 0x808, "gaudi": 0x908, "gaudib": 0x908, "greco": 0xDB4, "gaudi2": 0xD74}
_LANES = {"V_LANE_ID_32": "u32", "V_LANE_ID_16": "u16", "V_LANE_ID_8": "u8"}
_PREFETCH_STRIDE = 0x38


class Library(Conversions):
    """Functions by name and values."""

    blocked: list[CastsimError]
    """The reason why the kernel cannot run, though it is parsed and its types are correct."""
    tables: dict[str, tuple[int, int]]
    """The look-up tables that the kernel reads: function id and values of an entry by name."""
    rounded: set[str]
    """Tables that a run can do without: only functions of the library read them."""

    def called(self, name: str, arguments: Sequence[Value], into: str | None = None) -> Value:
        """Return the result of a function of the vendor.

        Raises:
            ReadError: there is no such function, or it does not take these arguments.
            IllegalError: the generation lacks the function.
        """
        own = self._own().get(name.removeprefix("__builtin_"))
        if own is not None:
            return own(name, list(arguments), into)
        function = call_named(name)
        if isinstance(function, IntrinsicConversion):
            return self.conversion(name, function, arguments, into)
        if function is not None:
            switches = self.whole(arguments[2]) if len(arguments) > 2 and arguments[2].known else 0
            # By pointer, a look-up takes its table from a register: a tensor that set_lut has bound.
            if function.row.shape == "lookup" and not switches & LUT_POINTER:
                self._note_table(
                    function.element, arguments, pairs=function.row.operation in ("lookup_2c", "lookup_c1c2")
                )
            return self.intrinsic(name, function, arguments, into)
        for attempt in (
            self.aggregate, self.retyped, self._descriptor, self._reduced, self._division_steps, self._random,
            self._helper, self._function,
        ):  # fmt: skip
            result = attempt(name, arguments, into)
            if result is not None:
                return result
        if "ld_g_inc" in name or "st_g_inc" in name:
            message = f"{name} is not supported: no public source documents how far it advances its address"
            raise self.refused(message, f"{name.replace('_inc', '')} of gen_addr(coordinates, tensor)")
        if any(row.name == name.removeprefix("__builtin_") for row in library_functions()):
            raise self.refused(f"{name}: its instructions are not public", "v_exp_f32, v_reciprocal_f32")
        raise self.wrong(f"undefined function: {name}", *near(name, self.known()))

    def known(self) -> list[str]:
        """Return the names of functions that are not intrinsics."""
        return [*self._own(), *_PRIVATE, *FUNCTIONS, "get_dim_size", "get_dim_stride"]

    def is_function(self, name: str) -> bool:
        """Return whether the vendor has a function of this name, judging by names."""
        patterns = (_DESCRIPTOR, _REDUCE, AGGREGATES, _UDIV, _LFSR, _HELPER)
        return (
            name in self._own() or call_named(name) is not None
            or name in _PRIVATE or name in FUNCTIONS or f"v_{name}" in FUNCTIONS
            or any(pattern.fullmatch(name) for pattern in patterns) or name.startswith(("as_", "to_bool", "from_bool"))
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
            **dict.fromkeys((f"read_lane_id_{n}b_vb" for n in (1, 2, 4)), self._lane_numbers),
            "s_div_fast_f32": self._division, "event": self._event, "get_addr": self._words_of_address,
            "update_addr": self._address_of_words, "get_csr_value": self._configured, "set_csr_value": self._configured,
        }  # fmt: skip

    def named_value(self, name: str) -> Value | None:
        """Return the value of a preloaded name, None for another name."""
        if name in _LANES:
            return self._lanes(_LANES[name], None)
        if name in ("LFSR", "LFSR_NO_CHANGE"):
            result = self.temp(vector_of("u32"))
        elif name in ("S_LFSR", "S_LFSR_NO_CHANGE"):
            result = self.temp(UNSIGNED)
        else:
            return None
        self.emit(f"mov{'.u32' if name.startswith('S') else ''} {result.text}, {name}")
        return result

    # ------------------------------------------------------------------------------------------------- coordinates

    def _lanes(self, element: str, into: str | None) -> Value:
        kind = vector_of(element)
        result = self.dest(kind, into)
        self.emit(f"mov {result.text}, V_LANE_ID_{Scalar(element).bits}")
        return result

    def _lane_numbers(self, name: str, given: list[Value], into: str | None) -> Value:
        bits = 8 * int(name.split("_")[-2][0])
        return self._moved(name, register_type("v", f"u{bits}"), f"V_LANE_ID_{bits}", given, into)

    def _moved(self, name: str, kind: CType, source: str, given: Sequence[Value], into: str | None) -> Value:
        """Move from a register of the machine: `(income, predicate, polarity)`."""
        lanewise = name.endswith("_vb")
        call = IntrinsicCall(intrinsics()["mov"], "v", "u32", "u32", lanewise, frozenset())
        tail = self.tail(name, call, [self.const(0, INT), *given], 0, kind)
        head = "mov.u32" if isinstance(kind, Scalar) else "mov"
        return self._emit_text(head, tail, kind, [source], into)

    def _random(self, name: str, given: Sequence[Value], into: str | None) -> Value | None:
        """`read_lfsr_b(income, ..)`, `write_lfsr_b(value, ..)`; see `_no_change`."""
        match = _LFSR.fullmatch(name)
        if match is None:
            return None
        kind = register_type("s" if match[1] else "v", "u32")
        register = "S_LFSR" if match[1] else "LFSR"
        if match[2] == "read":
            return self._moved(name, kind, f"{register}{'_NO_CHANGE' if match[3] else ''}", given, into)
        self._need(name, list(given), 1, 4)
        predicate = self._rest(name, list(given), 2, 1)
        if predicate is not None:
            self.emit(f"mov {register}, {self._wide(self._vector(given[0], kind), kind).text}", predicate)
        return VOID_VALUE

    def _rest(self, name: str, given: list[Value], index: int, switches: int, legal: str = "") -> str | None:
        """Return predicate and polarity from an argument on as a text, None if it is known to be false.

        The argument at `switches` may have those in `legal`.
        """
        self._need(name, given, 0, index + 2)
        if len(given) > switches:
            self.switches(name, given[switches], legal)
        if len(given) <= index:
            return ""
        predicate, inverted = self.truth(given[index])
        polarity = bool(self.number(name, given[index + 1], "the polarity")) if len(given) > index + 1 else False
        if predicate.known:
            return "" if bool(predicate.const) != polarity else None
        return self.predicate_text(predicate, inverted=inverted != polarity)

    def _generated(self, name: str, given: list[Value], into: str | None) -> Value:
        self._need(name, given, 2, 6)
        if not isinstance(given[0].type, Index):
            raise self.wrong(f"the coordinates of {name} must be int5, not {given[0].type}")
        kind = Pointer(INT, "global")
        predicate = self._rest(name, given, 4, 2)
        income = given[3] if len(given) > 3 and isinstance(given[3].type, Pointer) else None
        if predicate is None:
            return income or self.temp(kind)
        texts = [self.tensor(name, given[1], "LD_TNSR_ID_REG"), given[0].text]
        result = self.result(kind, into, income if predicate else None, predicate, texts)
        self.emit(f"gen_addr {result.text}, {texts[0]}, {texts[1]}", predicate)
        return result

    def _prefetched(self, name: str, given: list[Value], into: str | None) -> Value:
        self._need(name, given, 1, 4)
        predicate = self._rest(name, given, 2, 1)
        if not self.since("gaudi"):
            raise self.refused(f"{name} is not available on {self.generation}; from gaudi on")
        if predicate is not None:
            self.emit(f"prefetch {self.address(given[0])}", predicate)
        return VOID_VALUE

    def _plain(self, name: str, given: list[Value], into: str | None) -> Value:
        legal = {"aso": "INC DEC VPU", "cache_invalidate": "SB D LU RST_LU RST_D_PREF"}.get(name, "")
        predicate = self._rest(name, given, 1, 0, legal)
        bits = self.whole(given[0]) if given else 0
        words = [word.lower() for word in legal.split() if bits & constants()[f"SW_{word}"]]
        if predicate is not None:
            self.emit(" ".join([name, *words, predicate]).strip())
        return VOID_VALUE

    def _event(self, name: str, given: list[Value], into: str | None) -> Value:
        """`event(number, switches, predicate, polarity)`: a trace event, without any effect on values."""
        self._need(name, given, 1, 4)
        predicate = self._rest(name, given, 2, 1, "VPU")
        if not self.since("gaudi2"):
            raise self.refused(f"{name} is not available on {self.generation}; from gaudi2 on")
        unit = "vpu" if len(given) > 1 and given[1].const else "spu"
        if predicate is not None:
            self.emit(f"event {unit} {self.operand(self.converted(given[0], INT))}", predicate)
        return VOID_VALUE

    def _words_of_address(self, name: str, given: list[Value], into: str | None) -> Value:
        """`get_addr(pointer)`: the two words of an address of global memory."""
        self._need(name, given, 1, 5)
        return self._between(name, given, Group((UNSIGNED, UNSIGNED)), self.address(given[0]), into)

    def _address_of_words(self, name: str, given: list[Value], into: str | None) -> Value:
        """`update_addr(words)`: the address that two words are."""
        self._need(name, given, 1, 5)
        words = Group((UNSIGNED, UNSIGNED))
        if given[0].type != words:
            raise self.wrong(f"{name} takes {words}, not {given[0].type}", "get_addr(pointer)")
        return self._between(name, given, Pointer(INT, "global"), given[0].text, into)

    def _between(self, name: str, given: list[Value], kind: CType, text: str, into: str | None) -> Value:
        self.note(f"{name}: taken for a move between an address and two words; no public source states its arguments")
        predicate = self._rest(name, given, 3, 1)
        income = self.converted(given[2], kind) if len(given) > 2 else None
        if predicate is None:
            return income or self.temp(kind)
        result = self.result(kind, into, income if predicate else None, predicate, [text])
        self.emit(f"mov {result.text}, {text}", predicate)
        return result

    def _configured(self, name: str, given: list[Value], into: str | None) -> Value:
        """`get_csr_value(address)`, `set_csr_value(address, value)`: a word of the configuration space."""
        setting = name.startswith("set")
        self._need(name, given, 1 + setting, 1 + setting)
        self.note(f"{name}: taken for an access to the configuration space; no public source states its arguments")
        return self._configuration(self.converted(given[0], UNSIGNED), given[1] if setting else None, UNSIGNED, into)

    def _configuration(self, address: Value, value: Value | None, kind: CType, into: str | None) -> Value:
        """Store a word in the configuration space, or load one if no value is given."""
        if value is None:
            result = self.dest(kind, into)
            self.emit(f"ld_l mmio {result.text}, {self.operand(address)}")
            return result
        self.emit(f"st_l mmio {self.operand(address)}, {self.in_register(value).text}")
        return VOID_VALUE

    def _set_index(self, name: str, given: list[Value], into: str | None) -> Value:
        """`set_indx(value, income, mask, switches, predicate, polarity)`."""
        self._need(name, given, 3, 6)
        predicate = self._rest(name, given, 4, 3, "IRF44_HIGH")
        if predicate is None:
            return given[1]
        mask = self.number(name, given[2], "the mask") & 31
        high = ["high"] if len(given) > 3 and self.number(name, given[3], "the switches") & (1 << 4) else []
        text = self.operand(self.converted(given[0], INT))
        result = self.result(INDEX, into, self.converted(given[1], INDEX), predicate, [text])
        self.emit(f"{' '.join(['set_indx', *high])} {result.text}, b{mask:05b}, {text}", predicate)
        return result

    def _dimension(self, name: str, given: list[Value], into: str | None) -> Value:
        """`mov_irf_dim(coordinates, dimension, switches, income, predicate, polarity)`."""
        self._need(name, given, 2, 6)
        predicate = self._rest(name, given, 4, 2)
        number = self.number(name, given[1], "the dimension")
        income = self.converted(given[3], INT) if len(given) > 3 else None
        if predicate is None:
            return income or self.temp(INT)
        result = self.result(INT, into, income if predicate else None, predicate, [])
        self.emit(f"mov_irf_dim {hex(number)} {result.text}, {given[0].text}", predicate)
        return result

    def _permuted(self, name: str, given: list[Value], into: str | None) -> Value:
        self._need(name, given, 2, 6)
        predicate = self._rest(name, given, 4, 2)
        income = given[3] if len(given) > 3 else None
        if predicate is None:
            return income or given[0]
        order = self.in_register(self.converted(given[1], INT))
        result = self.result(INDEX, into, income if predicate else None, predicate, [given[0].text])
        self.emit(f"prmt_indx {result.text}, {given[0].text}, {order.text}", predicate)
        return result

    def _division(self, name: str, given: list[Value], into: str | None) -> Value:
        """`s_div_fast_f32(x, y, 1 / y)`: the quotient, its residual, and the corrected quotient."""
        self._need(name, given, 3, 3)
        x, y, inverse = (self.in_register(self.converted(value, FLOAT)) for value in given)
        quotient, rest = self.temp(FLOAT), self.temp(FLOAT)
        self.emit(f"mul.f32 {quotient.text}, {x.text}, {inverse.text}")
        self.move(rest.text, x)
        self.emit(f"mac.f32 neg {rest.text}, {y.text}, {quotient.text}")
        self.emit(f"mac.f32 {quotient.text}, {rest.text}, {inverse.text}")
        return quotient

    def _division_steps(self, name: str, given: Sequence[Value], into: str | None) -> Value | None:
        """Steps of a division, `u32_udiv_4step(divisor, step, switches, income, ..)`, or all, `u32_udiv(a, b, ..)`.

        The pair holds quotient and remainder; before the first step the dividend is in its first number.
        """
        match = _UDIV.fullmatch(name)
        if match is None:
            return None
        generations = {"udiv_step": ("goya",), "udiv_4step": ("gaudi", "gaudib", "greco"), "udiv": ("gaudi2",)}
        if self.generation not in generations[match[2]]:
            suffix = next(suffix for suffix, chips in generations.items() if self.generation in chips)
            legal = f"{match[1]}_{suffix}"
            raise self.refused(f"{name} is not available on {self.generation}", legal, "the operators / and %")
        kind, whole = Scalar(match[1]), match[2] == "udiv"
        pair = Group((kind, kind))
        call = IntrinsicCall(intrinsics()["mov"], "s", match[1], match[1], False, frozenset())
        tail = self.tail(name, call, list(given), 2, pair)
        if tail.income is None and not whole:
            raise self.wrong(f"{name} needs the pair from the previous step", f"{name}(divisor, step, 0, pair)")
        first = self.in_register(self.converted(given[0], kind))
        if whole:
            texts = [first.text, self.operand(self.converted(given[1], kind))]
            return self._emit_text(f"udiv.{match[1]}", tail, pair, texts, into)
        step = hex(self.number(name, given[1], "the step"))
        if match[2] == "udiv_step":
            return self._emit_text(f"udiv_step.{match[1]}", tail, pair, [first.text, step], into, partly=True)
        return self._emit_text(f"udiv_4step.{match[1]} {step}", tail, pair, [first.text], into, partly=True)

    # --------------------------------------------------------------------------------------------------- descriptors

    def _descriptor(self, name: str, given: Sequence[Value], into: str | None) -> Value | None:
        match = _DESCRIPTOR.fullmatch(name)
        if match is None or (match[2] != "pad_value" and match[3]):
            return None
        setting, dimensions = match[1] == "set", match[2] != "pad_value"
        self._need(name, list(given), 1 + dimensions + setting, 1 + dimensions + setting)
        if not dimensions:
            word = SCALARS.get(match[3] or "int")
            if word is None:
                raise self.wrong(f"undefined function: {name}", *near(name, self.known()))
            kind = Scalar(word)
            address = self._in_descriptor(name, given[0], self.const(8, INT))
            return self._configuration(address, self._padding(given[-1], kind) if setting else None, kind, into)
        layout = descriptors_of(self.target)
        assert layout is not None
        dimension, stride = self.converted(given[1], INT), match[2] == "dim_stride"
        if dimension.known and not 0 <= int(dimension.const or 0) < 5:
            raise self.wrong(f"{name}: there is no dimension {int(dimension.const or 0)}", "0 .. 4")
        first = self.const(0x10 + 4 * stride, INT)
        offset = self.binary("+", self.binary("*", dimension, self.const(layout.dimension_bytes, INT)), first)
        kind = UNSIGNED if stride else INT
        value = self.converted(given[-1], kind) if setting else None
        return self._configuration(self._in_descriptor(name, given[0], offset), value, kind, into)

    def _in_descriptor(self, name: str, tensor: Value, offset: Value) -> Value:
        """Return the address of a word in the descriptor of a tensor whose number may be unknown."""
        layout = descriptors_of(self.target)
        assert layout is not None
        if not isinstance(tensor.type, Scalar | TensorType):
            raise self.wrong(f"the tensor of {name} must be a tensor or its number, not {tensor.type}")
        size = self.const(layout.descriptor_bytes, INT)
        start = self.binary("+", self.const(layout.base, INT), offset)
        return self.binary("+", start, self.binary("*", self.converted(tensor, INT), size))

    def _padding(self, value: Value, kind: Scalar) -> Value:
        """Return a pad value in every part of a word."""
        pad = self.converted(value, kind)
        if kind.bits == 32:
            return pad
        word = self.const(self.bits(pad.const or 0, kind), UNSIGNED) if pad.known else self.bits_as(pad, UNSIGNED)
        if not pad.known:
            word = self.binary("&", word, self.const((1 << kind.bits) - 1, UNSIGNED))
        return self.binary("*", word, self.const(WORD // ((1 << kind.bits) - 1), UNSIGNED))

    def _prefetch_stride(self, name: str, given: list[Value], into: str | None) -> Value:
        self._need(name, given, 1, 1)
        if not self.since("gaudi2"):
            raise self.refused(f"{name} is not available on {self.generation}; from gaudi2 on")
        address = self._in_descriptor(name, given[0], self.const(_PREFETCH_STRIDE, INT))
        return self._configuration(address, None, UNSIGNED, into)

    def _semaphore(self, name: str, given: list[Value], into: str | None) -> Value:
        setting = name.startswith("set")
        self._need(name, given, setting, setting)
        value = self.converted(given[0], UNSIGNED) if setting else None
        return self._configuration(self.const(_SEMAPHORE[self.generation], UNSIGNED), value, UNSIGNED, into)

    def _bind(self, name: str, given: list[Value], into: str | None) -> Value:
        """`set_lut_256(tensor)`: the address in its descriptor becomes the base of tables of so many entries."""
        self._need(name, given, 1, 1)
        low, layout = self.target.configuration.get(f"table_base_{name[8:]}_low"), descriptors_of(self.target)
        if low is None or low.address is None or layout is None:
            raise self.refused(f"{name} is not available on {self.generation}; from gaudi2 on")
        if name != "set_lut_256":
            self.note(f"{name}: the address of its base is assumed; no public source states it")
        descriptor = layout.base + layout.descriptor_bytes * self.number(name, given[0], "the tensor")
        for offset in (0, 4):
            word = self.temp(UNSIGNED)
            self.emit(f"ld_l mmio {word.text}, {hex(descriptor + offset)}")
            self.emit(f"st_l mmio {hex(low.address + offset)}, {word.text}")
        return VOID_VALUE

    # ----------------------------------------------------------------------------------------------------- functions

    def _note_table(self, element: str, given: Sequence[Value], *, pairs: bool) -> None:
        number = given[1].const if len(given) > 1 and given[1].known else None
        if number is None:
            raise self.refused("a look-up whose table is not a constant is not supported")
        entry = next((table for table in function_tables() if table.function(self.target) == number), None)
        self.rounded = self.rounded - {entry.table if entry is not None else ""}
        name = entry.table if entry is not None else f"lut{int(number)}"
        columns = 3 if pairs or entry is not None else 1
        old = self.tables.get(name, (int(number), 0))
        self.tables[name] = (int(number), max(columns, old[1]))

    def _helper(self, name: str, given: Sequence[Value], into: str | None) -> Value | None:
        """A cast helper of the vendor's table, such as cast_f32_to_u8_lin_order, with or without `__builtin_`."""
        if _HELPER.fullmatch(name) is None:
            return None
        try:
            row = find_builtin(name, self.target)
            built = build_builtin(row, self.target)
        except CastsimError as error:
            raise error.at(self.span()) from None
        result, _, rest = row.signature.rstrip(")").partition(" (")
        kinds = [type_named(spelling.strip()) for spelling in rest.split(",")]
        self._need(name, list(given), len(kinds), len(kinds))
        values = [
            self.in_register(self.converted(value, kind)) for value, kind in zip(given, kinds, strict=True) if kind
        ]
        scalars = [value for value in values if isinstance(value.type, Scalar)]
        named = self.appended(
            built.sequence, [operand for operand in values if operand not in scalars], scalars=scalars
        )
        target = type_named(result)
        assert target is not None
        return self._collected(built.sequence, named, target, into)

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
        entries = {entry.table: entry for entry in function_tables()}
        writer = SequenceWriter(self.target, {table: entry.function(self.target) for table, entry in entries.items()})
        inputs = tuple(writer.sequence.input(f"x{index}", "f32")[0] for index in range(count))
        result = FUNCTIONS[wanted](writer, inputs)
        for table in writer.tables:
            function = entries[table].function(self.target)
            if table not in self.tables:
                self.tables[table], self.rounded = (function, entries[table].columns), {*self.rounded, table}
            text = f"{name} is correctly rounded, unlike the chip's, unless --in {table}=FILE gives its table"
            self.note(text)
            operands = (*inputs, *inputs)[:2]
            result = writer.do(f"rounded.f32 {computed_by(wanted)}", *operands, result, function)
        named = self.appended(writer.sequence, [self.in_register(self.converted(value, kind)) for value in given])
        return self.in_register(Value(kind, self.held_text(result, named), temp=True), into)

    # ---------------------------------------------------------------------------------------------------- reductions

    def _reduced(self, name: str, given: Sequence[Value], into: str | None) -> Value | None:
        """Return all lanes combined, in every lane: dual groups first, then groups and lanes by shuffles.

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
        for step in (0x20, *(group >> shift for shift in range(1, group.bit_length()))):
            pattern, other = self.temp(directions.type), self.temp(kind)
            enable = sum(0x80 << bit for bit in range(0, bits, 8))
            word = f"i{bits}"
            code = self.immediate(self.const(step | enable, Scalar(word)), Scalar(word))
            self.emit(f"xor.{word} {pattern.text}, {directions.text}, {code}")
            self.move(other.text, total)
            self.emit(f"shuffle.{element} {other.text}, {total.text}, {pattern.text}")
            total = self._joined(match[2], element, total, other)
        return self.in_register(total, into)

    def _joined(self, word: str, element: str, left: Value, right: Value) -> Value:
        result = self.temp(left.type)
        self.emit(f"{word}.{element} {result.text}, {left.text}, {right.text}")
        return result

    def _directions(self, bits: int) -> Value:
        """Return for each lane the direction of a shuffle that changes nothing: element, group in bit 5."""
        lane = self._lanes(f"u{bits}", None)
        element, group, directions = (self.temp(lane.type) for _ in range(3))
        word, inside = f"i{bits}", 256 // bits
        self.emit(f"and.{word} {element.text}, {lane.text}, {hex(inside - 1)}")
        self.emit(f"and.{word} {group.text}, {lane.text}, {hex(inside)}")
        if inside < 0x20:
            wide = self.temp(lane.type)
            self.emit(f"shl.{word} {wide.text}, {group.text}, {hex((0x20 // inside).bit_length() - 1)}")
            group = wide
        self.emit(f"or.{word} {directions.text}, {element.text}, {group.text}")
        return directions
