"""Statements `pto.strided.NAME`: values against NumPy and `castsim.cast`, cycles by their rule, refusals, expansion."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.expand_works import Case
from kit.paths import PROGRAMS

from castsim import cast, run
from castsim.isa.errors import CastsimError
from castsim.isa.formats import format_named
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.pto.strided_statements import STRIDED_ROWS
from castsim.isa.pto.types import element_spelling
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.running.loaded import LoadRequest
from castsim.tools.expand.expansion import expand

SIZE = 1 << 16
"""Bytes of the buffer that go in and out."""


def program(body: str) -> str:
    """Return a program that loads the first bytes of the buffer, runs `body`, and stores them.

    `%pNAME` such as `%f32_512` are pointers: element and byte address. `%cN` are 64-bit constants.
    """
    words = sorted(set(re.findall(r"%\w+", body)))
    lines = []
    for word in words:
        name = word[1:]
        if name[0] == "c" and name[1:].lstrip("m").isdecimal():
            value = name[1:].replace("m", "-")
            lines.append(f"{word} = arith.constant {value} : i64")
        elif "_" in name:
            element, _, address = name.rpartition("_")
            lines.append(f"%at_{name} = arith.constant {address} : i64")
            lines.append(f"{word} = pto.castptr %at_{name} : i64 -> !pto.ptr<{element_spelling(element)}, ub>")
    made = "\n    ".join([*lines, body])
    return f"""
module attributes {{pto.target_arch = "a2a3"}} {{
  func.func @k(%x: !pto.ptr<ui8, gm>, %y: !pto.ptr<ui8, gm>) attributes {{pto.kernel}} {{
    %first = arith.constant 0 : i64
    %size = arith.constant {SIZE} : i64
    %once = arith.constant 1 : i64
    %whole = pto.castptr %first : i64 -> !pto.ptr<ui8, ub>
    pto.mte_gm_ub %x, %whole, %first, %size nburst(%once, %size, %size) : !pto.ptr<ui8, gm>, !pto.ptr<ui8, ub>, i64, i64, i64, i64, i64
    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    {made}
    pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    pto.mte_ub_gm %whole, %y, %size nburst(%once, %size, %size) : !pto.ptr<ui8, ub>, !pto.ptr<ui8, gm>, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>
    return
  }}
}}
"""  # noqa: E501


def pointer(element: str, address: int) -> tuple[str, str]:
    """Return the name and the type of a pointer that `program` defines."""
    return f"%{element}_{address}", f"!pto.ptr<{element_spelling(element)}, ub>"


def statement(
    name: str,
    dst: tuple[str, int] | list[tuple[str, int]] | None,
    *sources: tuple[str, int] | str,
    more: str = "",
) -> str:
    """Return the text of a statement; pointers are (element, address), scalars are `%name : type`."""
    given = [pointer(*each) if isinstance(each, tuple) else tuple(each.split(" : ")) for each in sources]
    text = f"pto.strided.{name}"
    if given:
        text += f" ins({', '.join(name for name, _ in given)} : {', '.join(kind for _, kind in given)})"
    made = [pointer(*each) for each in (dst if isinstance(dst, list) else [dst] if dst else [])]
    if made:
        text += f" outs({', '.join(name for name, _ in made)} : {', '.join(kind for _, kind in made)})"
    return f"{text} {more}".rstrip()


def executed(tmp_path: Path, body: str, buffer: np.ndarray, **options: object) -> np.ndarray:
    """Return the bytes of the buffer after a body."""
    file = tmp_path / "k.pto"
    file.write_text(program(body))
    given = np.zeros(SIZE, np.uint8)
    raw = np.ascontiguousarray(buffer).view(np.uint8).reshape(-1)
    given[: raw.size] = raw
    found = run(file, inputs={"x": given}, **options)
    return found.outputs["y"]


def counted(count: int, body: str) -> str:
    """Return a body in count mode, between its switches."""
    return (
        f"pto.strided.set_mask_count\npto.strided.set_vector_mask ins(%c0, %c{count} : i64, i64)\n{body}\n"
        "pto.strided.set_mask_norm\npto.strided.set_vector_mask ins(%cm1, %cm1 : i64, i64)"
    )


FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
BINARY = {"vadd": np.add, "vsub": np.subtract, "vmul": np.multiply, "vmax": np.maximum, "vmin": np.minimum}
DST, ONE, TWO = 32768, 0, 16384


def noise(dtype: str, seed: int) -> np.ndarray:
    numbers = np.random.default_rng(seed).normal(size=SIZE // np.dtype(dtype).itemsize) * 8
    return numbers.astype(dtype)


def same(found: np.ndarray, wanted: np.ndarray) -> bool:
    return found.tobytes() == np.ascontiguousarray(wanted).tobytes()


@FEW
@given(st.sampled_from(sorted(BINARY)), st.sampled_from(["f4", "f2", "i2", "i4"]), st.integers(0, 3000))
def test_a_count_covers_its_elements_and_no_more(tmp_path: Path, name: str, dtype: str, count: int) -> None:
    element = {"f": "f", "i": "i"}[dtype[0]] + str(8 * int(dtype[1]))
    given_, size = noise(f"<{dtype}", count), int(dtype[1])
    body = counted(count, statement(name, (element, DST), (element, ONE), (element, TWO)))
    wanted = given_.copy()
    one, two = given_[:count], given_[TWO // size :][:count]
    wanted[DST // size :][:count] = BINARY[name](one, two)
    assert same(executed(tmp_path, body, given_), wanted)


@FEW
@given(st.integers(0, 2**64 - 1), st.integers(1, 3), st.integers(1, 2), st.integers(8, 20), st.integers(0, 16))
def test_masks_strides_and_repeats(
    tmp_path: Path, mask: int, repeats: int, block: int, stride: int, source: int
) -> None:
    given_ = noise("<f4", repeats)
    stride = max(stride, 8 * block)
    word = mask - (1 << 64) if mask >> 63 else mask
    body = f"%low = arith.constant {word} : i64\npto.strided.set_vector_mask ins(%c0, %low : i64, i64)\n"
    lists = f"blocks = [{block}, 1, 0], strides = [{stride}, {source}, 0]"
    body += statement("vadd", ("f32", DST), ("f32", ONE), ("f32", TWO), more=f"{{repeats = {repeats}, {lists}}}")
    wanted = given_.copy()
    for repeat in range(repeats):
        for lane in range(64):
            if mask >> lane & 1:
                part, inside = divmod(lane, 8)
                to = DST // 4 + repeat * stride * 8 + part * block * 8 + inside
                wanted[to] = given_[repeat * source * 8 + lane] + given_[TWO // 4 + inside]
    assert same(executed(tmp_path, body, given_), wanted)


CONVERSIONS = {name: row for name, row in STRIDED_ROWS.items() if row.function == "convert"}
MODES = {"r": "rint", "a": "round", "f": "floor", "c": "ceil", "z": "trunc", "o": "odd"}


@pytest.mark.parametrize("name", sorted(CONVERSIONS))
def test_conversions_are_casts(name: str, tmp_path: Path) -> None:
    ((to, source),) = CONVERSIONS[name].elements
    count, formats = 300, (format_named(source), format_named(to))
    bits = formats[0].storage_bits
    codes = np.random.default_rng(7).integers(0, 1 << min(bits, 63), count, dtype=np.uint64)
    if source in ("f32", "f16", "bf16"):  # numbers near the ranges of integers, halves, zeros, infinities, NaN
        near = np.array([0.5, -1.5, 2.5, 127.5, -128.5, 255.5, 32767.5, 65519.9, 3e9, np.inf, -np.inf, np.nan, -0.0])
        near = np.resize(near, 150).astype("<f4")
        codes[:150] = np.asarray(cast(near, "f32", source)).view(f"<u{bits // 8}").reshape(-1)
    if source == "i4":
        codes &= 15
        raw = (codes[0::2] | codes[1::2] << 4).astype(np.uint8)
    else:
        raw = codes.astype(f"<u{bits // 8}").view(np.uint8)
    found = executed(tmp_path, counted(count, statement(name, (to, DST), (source, ONE))), raw)
    mode = MODES.get(name[-1]) if name.removesuffix(name[-1]) in {*CONVERSIONS, *_stems()} else None
    like = codes.astype(f"<u{bits // 8}")
    if source[0] in "iu" and source != "i4":
        like = like.view(f"<{source[0]}{bits // 8}")
    if source == "i4":
        like = (like.astype(np.int8) ^ 8) - 8
    default = "rint" if _rounds(name) else None
    wanted = np.asarray(cast(like, source, to, target="a2a3", rounding=mode or default, saturation="on"))
    if to == "i4":
        nibbles = (wanted.view(np.uint8) & 15).reshape(-1, 2)
        wanted = nibbles[:, 0] | nibbles[:, 1] << 4
    assert same(found[DST:][: wanted.nbytes], wanted)


def _stems() -> set[str]:
    return {name[:-1] for name in CONVERSIONS if name[-1] in MODES and f"{name[:-1]}z" in CONVERSIONS}


def _rounds(name: str) -> bool:
    return name in _stems()


@pytest.mark.parametrize(("name", "function"), [("vcmax", np.argmax), ("vcmin", np.argmin)])
@pytest.mark.parametrize("order", ["value_index", "index_value", "value", "index"])
def test_extremes_with_their_lanes(name: str, function: object, order: str, tmp_path: Path) -> None:
    given_, lanes = noise("<f4", 3), 50
    body = f"pto.strided.set_vector_mask ins(%c{lanes} : i64)\n"
    body += statement(name, ("f32", DST), ("f32", ONE), more=f"{{order = {order}, repeats = 4}}")
    rows = given_[:256].reshape(4, 64)[:, :lanes]
    place = function(rows, axis=1).astype("<u4")  # type: ignore[operator]
    value = rows[np.arange(4), place].view("<u4")
    wanted = {"value": value, "index": place, "index_value": np.stack((place, value), 1)}
    wanted = wanted.get(order, np.stack((value, place), 1))
    found = executed(tmp_path, body, given_).view("<u4")[DST // 4 :][: wanted.size]
    assert same(found, wanted)


def test_sums_of_repeats_blocks_and_pairs(tmp_path: Path) -> None:
    given_ = np.rint(noise("<f4", 5))  # sums of small integers are exact in any order
    rows = given_[:256].reshape(4, 64)
    for name, wanted in (
        ("vcadd", rows.sum(1)), ("vcgadd", rows.reshape(-1, 8).sum(1)), ("vcgmax", rows.reshape(-1, 8).max(1)),
        ("vcgmin", rows.reshape(-1, 8).min(1)), ("vcpadd", rows.reshape(-1, 2).sum(1))
    ):  # fmt: skip
        body = statement(name, ("f32", DST), ("f32", ONE), more="{repeats = 4}")
        found = executed(tmp_path, body, given_).view("<f4")[DST // 4 :][: wanted.size]
        assert same(found, wanted), name


@pytest.mark.parametrize("mode", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_pack_bits(mode: str, tmp_path: Path) -> None:
    given_ = np.rint(noise("<f4", 9) / 4)
    given_[3] = np.nan
    one, two = given_[:192], given_[TWO // 4 :][:192]
    compared = {"eq": one == two, "ne": (one != two) & ~np.isnan(one), "lt": one < two, "le": one <= two,
                "gt": one > two, "ge": one >= two}[mode]  # fmt: skip
    body = statement(f"vcmpv_{mode}", ("u8", DST), ("f32", ONE), ("f32", TWO), more="{repeats = 3}")
    found = executed(tmp_path, body, given_)[DST:][:24]
    assert same(np.unpackbits(found, bitorder="little").astype(bool), compared)


def test_selections_by_bits_by_the_compare_mask_and_against_a_scalar(tmp_path: Path) -> None:
    given_ = noise("<f4", 11)
    bits = np.unpackbits(given_[TWO // 2 // 4 :][:8].view(np.uint8), bitorder="little").astype(bool)
    one, two = given_[:256], given_[TWO // 4 :][:256]
    place = TWO // 2
    mask = statement("set_cmpmask", None, ("u8", place))
    for text, chosen, other in (
        (statement("vsel", ("f32", DST), ("f32", ONE), ("f32", TWO), ("u8", place), more="{repeats = 4}"), bits, two),
        (
            f"{mask}\n" + statement("vsel", ("f32", DST), ("f32", ONE), ("f32", TWO), more="{repeats = 4}"),
            np.tile(bits[:64], 4), two,
        ),
        (
            f"{mask}\n" + statement("vsel", ("f32", DST), ("f32", ONE), ("u8", place), more="{repeats = 4}"),
            bits, given_[place // 4],
        ),
    ):  # fmt: skip
        found = executed(tmp_path, text, given_).view("<f4")[DST // 4 :][:256]
        assert same(found, np.where(chosen, one, other))


def test_spreads_gathers_and_keeps(tmp_path: Path) -> None:
    given_ = noise("<f4", 13)
    offsets = np.random.default_rng(1).integers(0, 1000, 64).astype("<u4") * 4
    given_[TWO // 4 :][:64] = offsets.view("<f4")
    place = DST // 4
    found = executed(tmp_path, statement("vbrcb", ("f32", DST), ("f32", ONE), more="{repeats = 2}"), given_)
    assert same(found.view("<f4")[place:][:128], np.repeat(given_[:16], 8))
    found = executed(tmp_path, statement("vgather", ("f32", DST), ("u32", TWO), ("f32", ONE)), given_)
    assert same(found.view("<f4")[place:][:64], given_[offsets // 4])
    for pattern, kept in ((1, given_[:128:2]), (2, given_[1:128:2]), (4, given_[1:128:4]), (7, given_[:128])):
        text = statement("vreducev2", ("f32", DST), ("f32", ONE), more=f"{{repeats = 2, pattern = {pattern}}}")
        assert same(executed(tmp_path, text, given_).view("<f4")[place:][: kept.size], kept)
    text = statement("vreducev2", ("f32", DST), ("f32", ONE), ("u8", 8192), more="{repeats = 2, strides = [8, 8, 1]}")
    marks = [given_[2048 + 8 * each :].view(np.uint8)[:8] for each in (0, 1)]
    bits = np.concatenate([np.unpackbits(each, bitorder="little") for each in marks]).astype(bool)
    kept = given_[:128][bits]
    assert same(executed(tmp_path, text, given_).view("<f4")[place:][: kept.size], kept)


def test_accumulating_and_scalar_instructions(tmp_path: Path) -> None:
    given_ = np.rint(noise("<f4", 17))
    given_[given_ == 0] = 4
    one, two, dst = given_[:64], given_[TWO // 4 :][:64], given_[DST // 4 :][:64]
    scalar = "%s = arith.constant 3.0 : f32\n"
    for text, wanted in (
        (statement("vmla", ("f32", DST), ("f32", ONE), ("f32", TWO)), one * two + dst),
        (statement("vmadd", ("f32", DST), ("f32", ONE), ("f32", TWO)), one * dst + two),
        (scalar + statement("vaxpy", ("f32", DST), ("f32", ONE), "%s : f32"), one * 3 + dst),
        (scalar + statement("vmuls", ("f32", DST), ("f32", ONE), "%s : f32"), one * 3),
        (scalar + statement("vector_dup", ("f32", DST), "%s : f32"), np.full(64, 3, "<f4")),
        (statement("vrec", ("f32", DST), ("f32", ONE)), np.float32(1) / one),
        (statement("vaddrelu", ("f32", DST), ("f32", ONE), ("f32", TWO)), np.maximum(one + two, 0)),
    ):
        found = executed(tmp_path, text, given_).view("<f4")[DST // 4 :][:64]
        assert same(found + 0.0, wanted + 0.0), text
    text = statement("vaddreluconv", ("f16", DST), ("f32", ONE), ("f32", TWO))
    found = executed(tmp_path, text, given_).view("<f2")[DST // 2 :][:64]
    assert same(found, np.maximum(one + two, np.float32(0)).astype("<f2"))


def cycles(tmp_path: Path, body: str, **options: object) -> int:
    file = tmp_path / "k.pto"
    file.write_text(program(body))
    return run(file, timing_only=True, **options).cycles  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "message", "column"),
    [
        (statement("vadd", ("f32", DST), ("f32", ONE)), "takes 3 operands, not 2", 35),
        (statement("vadd", ("f32", DST), ("f16", ONE), ("f32", TWO)), "has no form for these elements", 47),
        (statement("vadds", ("f32", DST), ("f32", ONE), "%c1 : i64"), "takes a scalar of f32, not i64", 41),
        (statement("vadd", ("f32", DST), ("f32", 4), ("f32", ONE)), "byte 4, which is no multiple of 32", 5),
        (statement("vabs", ("f32", DST), ("f32", ONE), more="{repeats = 256}"), "256 repeats", 5),
        (statement("vabs", ("f32", DST), ("f32", ONE), more="{repeats = -1}"), "is a whole number, not -1", None),
        (statement("vabs", ("f32", DST), ("f32", ONE), more="{strides = [8, 256]}"), "repeat stride of 256", 5),
        (statement("vabs", ("f32", DST), ("f32", ONE), more="{strides = [8]}"), "is a list of 2", None),
        (statement("vabs", ("f32", DST), ("f32", ONE), more="{pattern = 1}"), "has no attribute 'pattern'", None),
        (statement("vcmax", ("f32", DST), ("f32", ONE), more="{order = last}"), "unknown order 'last'", None),
        (statement("vreducev2", ("f32", DST), ("f32", ONE)), "chosen by a pattern or by bits", 5),
        (statement("vabs", ("f32", 196352), ("f32", ONE), more="{repeats = 4}"), "of the buffer of 196608 bytes", 5),
        (statement("vsel", ("f32", DST), ("f32", ONE), ("f32", TWO)), "no compare mask is set", 5),
        ("pto.strided.set_vector_mask ins(%c129 : i64)", "a mask of 129 lanes", 5),
        (statement("vfoo", ("f32", DST), ("f32", ONE)), "unknown operation pto.strided.vfoo", 5),
    ],
)
def test_refusals_have_line_and_column(body: str, message: str, column: int | None, tmp_path: Path) -> None:
    with pytest.raises(CastsimError, match=message) as caught:
        executed(tmp_path, body, noise("<f4", 0))
    assert caught.value.span is not None
    assert column is None or caught.value.span.column == column
    assert "pto.strided." in caught.value.span.text


def test_other_chips_refuse_them(tmp_path: Path) -> None:
    file = tmp_path / "k.pto"
    file.write_text(program(statement("vabs", ("f32", DST), ("f32", ONE))).replace('"a2a3"', '"a5"'))
    with pytest.raises(CastsimError, match=r"a5 has no pto.strided.vabs"):
        run(file, timing_only=True)


def test_every_form_prints_and_parses(tmp_path: Path) -> None:
    lines = []
    for name, row in STRIDED_ROWS.items():
        for form in row.forms:
            to, source = row.elements[0] if row.elements else ("f32", "f32")
            kinds = {"D": (to, DST), "S": (source, ONE), "B": ("u8", TWO), "O": ("u32", TWO), "R": ("u8", TWO),
                     "X": f"%x{source} : {source}", "N": "%c1 : i64", "W": "%c1 : i64", "F": "%xf16 : f16"}  # fmt: skip
            out = [kinds[letter] for letter in form[: row.destinations]]
            sources = [kinds[letter] for letter in form[row.destinations :]]
            lines.append(statement(name, out, *sources))  # type: ignore[arg-type]
    head = [
        f"%x{each} = arith.constant {one} : {each}"
        for each, one in (("f32", 1.0), ("f16", 1.0), ("i16", 1), ("i32", 1))
    ]
    text = print_program(parse(program("\n".join([*head, *lines])), "k.pto"))
    assert print_program(parse(text, "k.pto")) == text
    assert all(f"pto.strided.{name}" in text for name in STRIDED_ROWS)


def compared(file: Path, tmp_path: Path, inputs: dict[str, object], args: dict[str, float] | None = None) -> None:
    """Run a tile program and what it is expanded to: equal bytes, and cycles but for those of scalar loops."""
    made = tmp_path / "expanded.pto"
    made.write_text(expand(file, LoadRequest(args=args or {})))
    whole, again = (run(each, inputs=inputs, args=args or {}) for each in (file, made))
    assert whole.outputs.keys() == again.outputs.keys()
    assert all(same(again.outputs[name], whole.outputs[name]) for name in whole.outputs)
    assert 0 <= whole.cycles - again.cycles <= 2
    assert print_program(parse(made.read_text(), "x.pto")).splitlines() == [
        line for line in made.read_text().splitlines() if not line.lstrip().startswith("//")
    ]


SAMPLES = (
    "bank_conflict", "f16_s4_round_trip", "f16_to_i8_wrap", "f32_to_bf16_rows", "f32_to_f16", "f32_to_f16_pipelined",
    "f32_to_i16_partial", "f32_to_i32_barriers", "f32_to_i8_own_barriers", "i32_to_f16_deq", "i64_to_f32_narrow_rows",
    "kernels/quantise_rows_i8_a2a3", "measure/cast", "measure/copy", "tuning/f32_to_bf16_tiles",
)  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_expand_to_the_same(name: str, tmp_path: Path) -> None:
    file = PROGRAMS / f"{name}.pto"
    arguments = run(file, timing_only=True).loaded.arguments
    compared(file, tmp_path, {each: "random:1" for each, use in arguments.items() if use.needs_input})


OPERATIONS = (
    "tadd", "tsubs", "tneg", "tdivs", "trecip", "texp", "trsqrt", "tabs", "taxpy", "tlrelu", "tsel", "tcmp", "tcmps",
    "trowsum", "trowmax", "trowexpand", "trowexpandmul", "trowexpandexpdif", "tcolsum", "tcolmax", "tcolexpand",
    "tcolexpandsub", "tpartadd", "tmov", "texpands", "taddc", "tfusedmuladd", "tshls", "tnot", "tand",
)  # fmt: skip


@FEW
@given(
    st.sampled_from(OPERATIONS), st.integers(1, 20), st.integers(1, 12), st.integers(0, 63), st.booleans(), st.data()
)
def test_operations_expand_to_the_same(
    tmp_path: Path, name: str, rows: int, pieces: int, less: int, column: bool, data: st.DataObject
) -> None:
    element = data.draw(st.sampled_from(sorted({"f32", "f16"} if name not in ("tshls", "tnot", "tand") else {"i16"})))
    cols = 64 * pieces
    form = data.draw(st.integers(0, len(VECTOR_OPERATIONS[name].forms) - 1))
    shape = (rows, cols, rows, max(cols - less, 1))
    case = Case(name, element, shape, form, column=column and name.startswith("trowexpand") and len(name) > 10)
    file = tmp_path / "tiles.pto"
    file.write_text(case.program().replace('"a5"', '"a2a3"'))
    inputs = case.inputs(5)
    try:
        run(file, inputs=inputs)
    except CastsimError:
        return  # the form is none of this chip, or the tiles do not fit the buffer
    compared(file, tmp_path, inputs)


@pytest.mark.parametrize("pieces", [3, 4, 5, 6, 7, 9])
def test_long_rows_expand_to_the_same(pieces: int, tmp_path: Path) -> None:
    for name in ("trowsum", "trowmax"):
        case = Case(name, "f32", (3, 64 * pieces, 3, 64 * pieces - 5))
        file = tmp_path / "tiles.pto"
        file.write_text(case.program().replace('"a5"', '"a2a3"'))
        compared(file, tmp_path, case.inputs(2))


def test_what_has_cycles_alone_is_refused_where_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "tiles.pto"
    file.write_text(Case("trem", "f32", (2, 64, 2, 64)).program().replace('"a5"', '"a2a3"'))
    with pytest.raises(CastsimError, match=r"expand cannot write pto.trem: its lowering tells the cycles") as caught:
        expand(file, LoadRequest())
    assert caught.value.span is not None


def test_both_engines_agree_and_nothing_is_done_for_a_count_of_0(tmp_path: Path) -> None:
    body = counted(777, statement("vmul", ("f16", DST), ("f16", ONE), ("f16", TWO)))
    body += "\n" + statement("vcadd", ("f32", 49152), ("f32", ONE), more="{repeats = 9, strides = [2, 8]}")
    assert cycles(tmp_path, body) == cycles(tmp_path, body, engine="event")
    given_ = noise("<f4", 1)
    none = counted(0, statement("vabs", ("f32", DST), ("f32", ONE)))
    none += "\n" + statement("vabs", ("f32", DST), ("f32", ONE), more="{repeats = 0}")
    assert same(executed(tmp_path, none, given_), given_)


def test_dependent_statements_need_a_barrier(tmp_path: Path) -> None:
    first = statement("vabs", ("f32", DST), ("f32", ONE), more="{repeats = 2}")
    second = statement("vexp", ("f32", 49152), ("f32", DST), more="{repeats = 2}")
    with pytest.raises(CastsimError, match="missing barrier: vexp on V reads ub bytes 32768"):
        cycles(tmp_path, f"{first}\n{second}")
    assert cycles(tmp_path, f"{first}\npto.barrier #pto.pipe<PIPE_V>\n{second}")
    many = [text.replace("repeats = 2", "repeats = 16") for text in (first, second)]
    assert cycles(tmp_path, "\n".join(many))  # each repeat follows 16 behind the one that it reads
