"""The order of operands of every operation of TileLang's register dialect, as the package of TileLang defines it.

`tests/vectors/tilelang_simd.csv` holds these definitions; `python tests tilelang_simd` reads them from the package.
Calls are put together by it, translated, run and compared with NumPy, also where TileLang is not installed. All
operands differ, and models name them as the package names its parameters.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from languages.tilelang.tilelang_simd import TABLE, committed, rows

import castsim
from castsim.isa.errors import IllegalError
from castsim.languages.tilelang.registers import VectorTranslator
from castsim.languages.tilelang.scalars import FunctionText, TextValue, mask, pointer, register

DEFINED = {row["operation"]: row for row in committed()}
LANES = np.arange(64)
MASK = LANES < 8
UB, IN, OUT = "!pto.ptr<ui8, ub>", 4096, 2048
ZEROING = "MODE_ZEROING"
KINDS = {"f32": np.float32, "i32": np.int32, "ui32": np.uint32}


class IntImm(NamedTuple):
    value: int
    dtype: str = "int32"


class Translator(VectorTranslator):
    """A translator of single calls: mutable registers are those of the test, memory is the buffer's."""

    def __init__(self) -> None:
        self.text, self.cells, self.variables, self.globals = FunctionText(), {}, {}, {}

    def read(self, key: Any) -> Any:
        return self.cells[key]

    def place_of(self, index: Any) -> int:
        return int(index.value)

    def base(self, data: Any) -> TextValue:
        return self.text.once(f"pto.castptr {self.text.constant(data, 'i64').name} : i64 -> {UB}", UB)


def call(name: str, dtype: str, *given: Any) -> Any:
    return SimpleNamespace(op=SimpleNamespace(name=name), dtype=dtype, args=given, annotations=None)


def access(data: Any, element: str, offset: int = 0) -> Any:
    kind = {"f32": "float32", "i32": "int32", "ui32": "uint32"}[element]
    return call("tirx.tvm_access_ptr", "handle", SimpleNamespace(dtype=kind), data, IntImm(offset))


class Model(NamedTuple):
    """What an operation makes of its parameters, with the type of the registers that it takes.

    `result` is the type of what it returns where that is another one; `words` are parameters that are no registers.
    """

    model: Callable[..., Any]
    element: str = "f32"
    result: str = ""
    words: dict[str, Any] = {}  # noqa: RUF012 - a constant
    tolerance: float = 0


def by_lane(model: Callable[..., Any], element: str = "f32", **more: Any) -> Model:
    taken = inspect.signature(model).parameters
    return Model(lambda **at: np.where(MASK, model(**{name: at[name] for name in taken}), 0), element, **more)


def two(function: Callable[..., Any], element: str = "f32") -> Model:
    return by_lane(lambda src0, src1: function(src0, src1), element)  # noqa: PLW0108 - names of parameters


def one(function: Callable[..., Any], element: str = "f32", **more: Any) -> Model:
    return by_lane(lambda src: function(src), element, **more)  # noqa: PLW0108 - as above


def scaled(function: Callable[..., Any], element: str = "f32", scalar: float = 3) -> Model:
    return by_lane(
        lambda src, scalar: function(src, scalar),  # noqa: PLW0108 - as above
        element,
        words={"scalar": scalar},
    )


def first(value: Any) -> Any:
    return np.concatenate([np.atleast_1d(value), np.zeros(64 - np.size(value), np.asarray(value).dtype)])


def groups(function: Callable[..., Any], start: float = 0) -> Model:
    return Model(lambda src: first(function(np.where(MASK, src, start).reshape(8, 8), 1)))


MODELS: dict[str, Model] = {
    "vadd": two(np.add), "vsub": two(np.subtract), "vmul": two(np.multiply), "vdiv": two(np.divide),
    "vmax": two(np.maximum), "vmin": two(np.minimum), "vand": two(np.bitwise_and, "i32"),
    "vor": two(np.bitwise_or, "i32"), "vxor": two(np.bitwise_xor, "i32"),
    "vshl": two(np.left_shift, "ui32"), "vshr": two(np.right_shift, "ui32"),
    "vabsdif": two(lambda a, b: np.abs(a - b)),
    "vexpdif": by_lane(lambda src0, src1: np.exp((src0 - src1).astype(np.float64)), tolerance=1e-6),
    "vprelu": two(lambda a, b: np.where(a >= 0, a, a * b)),
    "vlrelu": by_lane(lambda src, alpha: np.where(src >= 0, src, alpha * src), words={"alpha": 0.25}),
    "vmula": by_lane(lambda dst, src0, src1: dst + src0 * src1),
    "vmadd": by_lane(lambda dst, src0, src1: dst * src0 + src1),
    "vaxpy": by_lane(lambda dst, src, scalar: src * np.float32(scalar) + dst, words={"scalar": 3.0}),
    "vadds": scaled(np.add), "vmuls": scaled(np.multiply), "vmaxs": scaled(np.maximum), "vmins": scaled(np.minimum),
    "vshls": scaled(np.left_shift, "ui32"), "vshrs": scaled(np.right_shift, "ui32"),
    "vabs": one(np.abs), "vneg": one(np.negative), "vrelu": one(lambda a: np.maximum(a, 0)),
    "vnot": one(np.invert, "i32"),
    "vexp": one(lambda a: np.exp(a.astype(np.float64)), tolerance=1e-6),
    "vln": one(lambda a: np.log(a.astype(np.float64)), "f32", tolerance=1e-6),
    "vsqrt": one(lambda a: np.sqrt(a.astype(np.float64)), "f32", tolerance=1e-6),
    "vaddc": by_lane(lambda src0, src1: src0 + src1, "i32"), "vsubc": by_lane(lambda src0, src1: src0 - src1, "i32"),
    "vaddcs": by_lane(lambda src0, src1, carrysrcp: src0 + src1 + carrysrcp, "i32"),
    "vsubcs": by_lane(lambda src0, src1, carrysrcp: src0 - src1 - 1 + carrysrcp, "i32"),
    "vmull": by_lane(lambda src0, src1: src0.astype(np.int64) * src1 & 0xFFFFFFFF, "ui32"),
    "vsel": Model(lambda src0, src1, mask: np.where(mask, src0, src1)),
    "vselr": Model(lambda src, index: src[index]),
    "vcmp": Model(lambda src0, src1, mask: (src0 > src1) & mask, result="mask", words={"op": "gt"}),
    "vcmps": Model(lambda src, scalar, mask: (src > scalar) & mask, result="mask", words={"op": "gt", "scalar": 3.0}),
    "vintlv": Model(lambda src0, src1: np.stack([src0, src1], 1).reshape(-1)[:64]),
    "vdintlv": Model(lambda src0, src1: np.concatenate([src0, src1])[::2]),
    "vdup": by_lane(lambda src: np.full(64, src), words={"src": 3.0}),
    "vdupv": by_lane(lambda src: np.full(64, src[-1]), words={"pos": "POS_HIGHEST"}),
    "vci": Model(lambda index: index + LANES, "i32", words={"index": 3, "order": "INC_ORDER"}),
    "vcadd": Model(lambda src: first(src[MASK].sum())), "vcmax": Model(lambda src: first(src[MASK].max())),
    "vcmin": Model(lambda src: first(src[MASK].min())), "vcgadd": groups(np.sum), "vcgmax": groups(np.max, -np.inf),
    "vcgmin": groups(np.min, np.inf), "vcpadd": Model(lambda src: first(np.where(MASK, src, 0).reshape(32, 2).sum(1))),
    "vsqz": Model(lambda src: first(src[MASK])),
    "vusqz": Model(lambda mask: np.cumsum(mask) - mask, "i32"),
    "pand": Model(lambda src0, src1, mask: src0 & src1 & mask, result="mask"),
    "por": Model(lambda src0, src1, mask: (src0 | src1) & mask, result="mask"),
    "pxor": Model(lambda src0, src1, mask: (src0 ^ src1) & mask, result="mask"),
    "pnot": Model(lambda src, mask: ~src & mask, result="mask"),
    "psel": Model(lambda src0, src1, mask: np.where(mask, src0, src1), result="mask"),
    "pset": Model(lambda: LANES < 16, result="mask", words={"elem_width": IntImm(32), "dist": "PAT_VL16"}),
    "pge": Model(lambda: LANES < 16, result="mask", words={"elem_width": IntImm(32), "dist": "PAT_VL16"}),
    "update_mask": Model(lambda: LANES < 5, result="mask", words={"value": IntImm(5), "width": IntImm(32)}),
    "pintlv": Model(lambda src0, src1: np.stack([src0, src1], 1).reshape(-1)[:64], result="mask",
                    words={"width": IntImm(32)}),
    "pdintlv": Model(lambda src0, src1: np.concatenate([src0, src1])[::2], result="mask", words={"width": IntImm(32)}),
    "vld": Model(lambda addr: addr[:64], words={"addr": IN, "dist": "NORM"}),
    "vsts": by_lane(lambda src: src, result="memory", words={"addr": OUT, "dist": "NORM_B32"}),
    "vgather2": by_lane(lambda base, index: base[index], words={"base": IN}),
    "vscatter": Model(lambda src, index: np.where(np.isin(LANES, index[MASK]), src[np.argsort(index)], 0),
                      result="memory", words={"base": OUT}),
}  # fmt: skip
"""Operations by their parameters; registers, masks and numbers of which a model names none are not given to it."""

ELSEWHERE = (
    "vcvt", "vpack", "vunpack", "ppack", "punpack", "vld2", "vsstb", "vgatherb", "pld", "pst", "pair_get", "mem_bar",
)  # fmt: skip
"""Operations with one operand besides pointers and words, which `test_tilelang_operations.py` tries."""

REFUSED = ("dhistv2", "chistv2")
"""Operations that castsim has no instruction for."""


def registers(element: str) -> Any:
    """Return the lanes of four registers: three with numbers that all differ, one with indices."""
    numbers = np.random.default_rng(7).permutation(192)
    if element == "f32":
        numbers = (numbers - 90.5) / 4
    elif element == "ui32":
        numbers[64:128] %= 29
    index = np.random.default_rng(8).permutation(64)
    return np.concatenate([numbers.astype(KINDS[element]), index.astype(np.uint32).view(KINDS[element])]).reshape(4, 64)


def loaded(translator: Translator, number: int, element: str) -> TextValue:
    at, kind = translator.pointed(translator.base(IN), element, "ub"), pointer(element, "ub")
    offset = translator.text.constant(64 * number, "index").name
    return translator.text.one(f"pto.vlds {at.name}[{offset}] : {kind} -> {register(element)}", register(element))


def operands(translator: Translator, name: str, model: Model) -> tuple[list[Any], dict[str, Any]]:
    """Return what is passed to an operation, in the order of the table, and by name what its model takes."""
    given: list[Any] = []
    values: dict[str, Any] = {}
    lanes = registers(model.element)
    for parameter in DEFINED[name]["passed"].split():
        number = {"src": 0, "src0": 0, "src1": 1, "dst": 2, "index": 3}.get(parameter, 0)
        if parameter in model.words:
            value = model.words[parameter]
            values[parameter] = lanes.reshape(-1) if value == IN else getattr(value, "value", value)
            given.append(access(value, model.element) if value in (IN, OUT) else value)
        elif parameter == "mode":
            given.append(ZEROING)
        elif parameter == "mask":
            values[parameter] = MASK
            given.append(translator.text.one('pto.pset_b32 "PAT_VL8" : !pto.mask<b32>', mask(32)))
        elif parameter == "carrysrcp" or name[0] == "p":
            values[parameter] = lanes[number] > lanes[2]
            every, compared = translator.every(32), (loaded(translator, n, model.element) for n in (number, 2))
            given.append(translator.put("vcmp", [*compared, every, "gt"]))
        elif parameter == "dst":
            values[parameter] = lanes[number]
            given.append(access("accumulator", model.element))
            translator.cells["accumulator", 0] = loaded(translator, number, model.element)
        else:
            values[parameter] = lanes[number].view(np.uint32) if parameter == "index" else lanes[number]
            given.append(loaded(translator, number, "ui32" if parameter == "index" else model.element))
    return given, values


def program_of(name: str, model: Model) -> tuple[str, dict[str, Any]]:
    """Return a program that applies an operation once, and what its model takes."""
    translator = Translator()
    text, result = translator.text, model.result or model.element
    element = model.element if result in ("mask", "memory") else result
    with text.region() as region:
        given, values = operands(translator, name, model)
        dtype = {"f32": "float32x64", "i32": "int32x64", "ui32": "uint32x64"}[element]
        found = translator.operation(call(f"tl.simd.{name}", "boolx256" if result == "mask" else dtype, *given))
        found = translator.cells.get(("accumulator", 0), found)
        if isinstance(found, tuple):
            found = (
                next(value for value in found if value.kind.startswith("!pto.vreg")) if result != "mask" else found[0]
            )
        if result == "mask":
            chosen = translator.masked(found, 32)
            found = translator.put("vsel", [loaded(translator, 0, element), loaded(translator, 1, element), chosen])
        if result != "memory":
            at = translator.pointed(translator.base(OUT), element, "ub")
            translator.put("vsts", [found, at, text.constant(0, "index"), translator.every(32), ""])
    text.enclose("pto.vecscope {", region)
    (scope,) = text.regions
    zero, single, size, part, into, out = (text.constant(n, "i64").name for n in (0, 1, 1024, 256, IN, OUT))
    kinds = "i64, i64, i64, i64, i64"
    gm = (pointer(model.element, "gm"), pointer(element, "gm"))
    ub = (pointer(model.element, "ub"), pointer(element, "ub"))
    head = [
        f"%in = pto.castptr {into} : i64 -> {ub[0]}", f"%out = pto.castptr {out} : i64 -> {ub[1]}",
        f"pto.mte_gm_ub %x, %in, {zero}, {size} nburst({single}, {size}, {size}) : {gm[0]}, {ub[0]}, {kinds}",
        f"pto.mte_gm_ub %zeros, %out, {zero}, {part} nburst({single}, {part}, {part}) : {gm[1]}, {ub[1]}, {kinds}",
        'pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]', 'pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]',
    ]  # fmt: skip
    end = [
        'pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]', 'pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]',
        f"pto.mte_ub_gm %out, %y, {part} nburst({single}, {part}, {part}) : {ub[1]}, {gm[1]}, {kinds[5:]}",
        "pto.barrier #pto.pipe<PIPE_ALL>", "return",
    ]  # fmt: skip
    body = "\n".join([*text.heads(), *head, *(line for line, _ in scope.lines), *end])
    return (
        'module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {\n'
        f"func.func @kernel(%x: {gm[0]}, %zeros: {gm[1]}, %y: {gm[1]}) attributes {{pto.kernel}} {{\n{body}\n}}\n}}\n"
    ), values


def outcome(model: Model, values: dict[str, Any]) -> Any:
    """Return what the model makes of its operands: the lanes that the program stores."""
    known = {name: value for name, value in values.items() if name in inspect.signature(model.model).parameters}
    taken = inspect.signature(model.model).parameters
    found = model.model(**(values if any(at.kind is at.VAR_KEYWORD for at in taken.values()) else known))
    lanes = registers(model.element)
    return np.where(found, lanes[0], lanes[1]) if model.result == "mask" else found


@pytest.mark.parametrize("name", MODELS)
def test_operands_are_taken_in_the_order_of_the_package(name: str, tmp_path: Path) -> None:
    model = MODELS[name]
    text, values = program_of(name, model)
    (tmp_path / "kernel.pto").write_text(text, encoding="utf-8")
    wanted = np.asarray(outcome(model, values))
    kind = KINDS.get(model.result, KINDS[model.element])
    given = {"x": registers(model.element).reshape(-1), "zeros": np.zeros(64, kind)}
    result = castsim.run(tmp_path / "kernel.pto", inputs=given).outputs["y"].view(kind)
    if model.tolerance:
        np.testing.assert_allclose(result, wanted, rtol=model.tolerance)
    else:
        np.testing.assert_array_equal(result, wanted.astype(kind))


def test_the_table_is_that_of_the_package() -> None:
    if importlib.util.find_spec("tilelang") is None:
        pytest.skip("the extra tilelang")
    assert committed() == rows(), f"{TABLE.name} is not what tilelang defines: python tests tilelang_simd"


def test_every_operation_of_the_table_is_tried() -> None:
    assert {*MODELS, *ELSEWHERE, *REFUSED} == set(DEFINED)
    assert not {*MODELS} & {*ELSEWHERE, *REFUSED}


@pytest.mark.parametrize("name", REFUSED)
def test_operations_without_an_instruction_are_refused_by_name(name: str) -> None:
    with pytest.raises(IllegalError, match=f"T.simd.{name}"):
        Translator().operation(call(f"tl.simd.{name}", "void"))
