"""The A2/A3 description against the published tables, what the loader refuses, targets derived from others."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import oracle_a2a3
import pytest
from kit.command_output import document_of, err_of, out_of
from kit.paths import PROGRAMS, ROOT, VECTORS
from kit.strided_model import SIZE, repeat_shape

from castsim.__main__ import main
from castsim.isa.errors import ReadError, TargetDataError
from castsim.isa.formats import Rounding, format_named
from castsim.targets import tpc_compiler
from castsim.targets.loader import SHIPPED, load_target, target_for_architecture, target_names
from castsim.targets.tpc_compiler import BuiltinRounding, CType

# A row of a table of refusals stays on one line.


A2A3 = load_target("a2a3")
SAID = 'source = "mine"\nstatus = "assumed"\n'
BITS = {"i4": 4, "i8": 8, "u8": 8, "f16": 16, "bf16": 16, "i16": 16, "f32": 32, "i32": 32, "i64": 64}


def published(name: str) -> dict[tuple[str, str], dict[str, str]]:
    with (VECTORS / name).open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = {tuple(row[end].replace("s4", "i4") for end in ("src", "dst")): row for row in rows}
    assert len(table) == len(rows) == 25
    return table


def rules() -> dict[tuple[str, str], Any]:
    return {(rule.src, rule.dst): rule for rule in A2A3.casts}


# -------------------------------------------------------------------------------------------------- published tables


def test_the_legal_pairs_are_the_published_ones() -> None:
    assert set(rules()) == set(published("a2a3_legal_pairs.csv")) == set(oracle_a2a3.legal_pairs())
    assert len(A2A3.casts) == 25


@pytest.mark.parametrize("pair", sorted(published("a2a3_legal_pairs.csv")), ids="-".join)
def test_mnemonics_and_modes(pair: tuple[str, str]) -> None:
    row, rule = published("a2a3_legal_pairs.csv")[pair], rules()[pair]
    assert rule.stem == row["mnemonic_stem"]
    assert rule.saturation_off_by_default == (row["narrowing_default_sat_off"] == "true")
    named = dict(re.findall(r"([A-Z]+)\((\w)\)", row["rounding_modes"]))
    assert {mode.name: suffix for mode, suffix in rule.suffixes.items()} == named
    assert rule.plain == ("NONE(unsuffixed)" in row["rounding_modes"])
    default = row["default_rounding"]
    if default in ("RINT", "TRUNC"):
        assert rule.fallback is Rounding[default]
    elif rule.plain or default == "deq":
        assert rule.fallback is Rounding.RINT
    else:
        assert default in ("exact", "integer narrow")
        assert rule.fallback is None


@pytest.mark.parametrize("pair", sorted(published("a2a3_repeat_config.csv")), ids="-".join)
def test_repeat_configuration(pair: tuple[str, str]) -> None:
    row, rule = published("a2a3_repeat_config.csv")[pair], rules()[pair]
    found = (rule.lanes, rule.dst_repeat_stride, rule.src_repeat_stride)
    columns = ("elems_per_repeat", "dst_repeat_stride_blocks", "src_repeat_stride_blocks")
    assert found == tuple(int(row[column]) for column in columns)
    # The derived rule of docs/reference/a2a3.md section 2.1 says the same, and so do the bytes per repeat.
    assert found == repeat_shape(*pair)
    for end, name, stride in (("dst", pair[1], found[1]), ("src", pair[0], found[2])):
        assert int(row[f"{end}_bytes_per_repeat"]) == rule.lanes * BITS[name] // 8 == 32 * stride
        assert int(row[f"storage_bytes_per_element_{end}"]) == SIZE[name]
        assert int(row[f"block_elems_{end}_for_tail_stride"]) == 32 // SIZE[name]


def test_timing_of_casts_is_that_of_the_table_of_cast_points() -> None:
    """Whole casts of r repeats less 24: the profile's line or curve, docs/reference/a2a3.md section 6.1."""
    expected = {"vconv_f322f16": (4.81, 118.2), "vconv_f322s32": (7, 134), "vconv_s322f32": (10, 137)}
    for name, (one, many) in expected.items():
        row = A2A3.timing.vector[name]
        for repeats, cycles in ((1, one), (128, many)):
            found = row.head + repeats * row.interval + row.rest(repeats) + row.tail(repeats, 12) - 12
            assert abs(found - cycles) <= 0.5, name
    assert {rule.stem for rule in A2A3.casts} <= {*A2A3.timing.vector}


def test_programs_find_it_by_architecture() -> None:
    for name in ("a3", "a2a3"):
        found = target_for_architecture(name)
        assert found.name == "a2a3"
    assert target_for_architecture("z9") is None
    assert "a2a3" in target_names()
    assert load_target("A2A3") is A2A3


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("a2a3*.csv")), ids=lambda path: path.name)
def test_no_row_twice(path: Path) -> None:
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    assert len({tuple(row) for row in rows}) == len(rows)
    header = rows[0]
    case = ("source_file", "case") if "source_file" in header else ("case",)
    key = case if "case" in header else tuple(header[:2])
    if "source" in header and "case" in header:  # measured by hand: the case is a remark, the shape tells rows apart
        key = tuple(name for name in header if name not in ("measured_cycles", "measured_high", "fitted", "source"))
    assert len({tuple(row[header.index(name)] for name in key) for row in rows}) == len(rows)
    assert {len(row) for row in rows} == {len(rows[0])}


# ------------------------------------------------------------------------------------------------------- every target


# -------------------------------------------------------------------------------------------------------------- loader


def changed(tmp_path: Path, change: Callable[[str], str], name: str = "mine.toml") -> Path:
    """A copy of the shipped description with its table beside it, its text changed."""
    (tmp_path / "a2a3_casts.csv").write_bytes((SHIPPED / "a2a3_casts.csv").read_bytes())
    text = (SHIPPED / "a2a3.toml").read_text()
    after = change(text)
    assert after != text
    path = tmp_path / name
    path.write_text(after)
    return path


def write(tmp_path: Path, text: str, name: str = "mine.toml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def derived(folder: Path, base: str, text: str) -> Path:
    return write(folder, f'base = "{base}"\nname = "mine"\n{text}')


def refused(path: Path) -> TargetDataError:
    with pytest.raises(TargetDataError) as caught:
        load_target(path)
    assert caught.value.exit_code == 2
    return caught.value


def test_a_user_target_changes_one_fact(tmp_path: Path) -> None:
    path = derived(tmp_path, "a2a3", f"[timing.vector.vconv]\ntail_cycles = 18\n{SAID}")
    mine = load_target(path)
    assert mine.name == "mine"
    assert mine.timing.vector["vconv"].tail_cycles == 18
    assert mine.timing.vector["vconv"].startup_cycles == A2A3.timing.vector["vconv"].startup_cycles
    assert mine.casts == A2A3.casts
    assert mine.model_copy(update={"name": "a2a3", "timing": A2A3.timing}).model_dump() == A2A3.model_dump()
    assert load_target(str(path)) == mine


def test_a_base_may_be_a_file(tmp_path: Path) -> None:
    write(tmp_path, f'base = "a2a3"\nname = "below"\n[frequency]\nmegahertz = 1000\n{SAID}', "below.toml")
    path = write(tmp_path, 'base = "below.toml"\nname = "above"\n[frequency]\nnote = "x"\n', "above.toml")
    loaded = load_target(path)
    assert (loaded.name, loaded.frequency.megahertz, loaded.frequency.note) == ("above", 1000, "x")


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path, 'base = "a2a3"\nname = "one"\n')
    assert load_target(path).name == "one"
    path.write_text('base = "a2a3"\nname = "two"\n')
    os.utime(path, ns=(1, 1))
    assert load_target(path).name == "two"


def test_a_changed_base_is_read_again(tmp_path: Path) -> None:
    below = write(tmp_path, f'base = "a2a3"\nname = "below"\n[frequency]\nmegahertz = 1000\n{SAID}', "below.toml")
    path = write(tmp_path, 'base = "below.toml"\nname = "above"\n', "above.toml")
    assert load_target(path).frequency.megahertz == 1000
    below.write_text(below.read_text().replace("1000", "2000"))
    assert load_target(path).frequency.megahertz == 2000


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("[frequency]", "[frequency]\nkilohertz = 3"), ("frequency.kilohertz", "unknown key")),
        (('title = "', 'colour = "red"\ntitle = "'), ("colour", "unknown key")),
        (('source = "pto-isa include/pto/costmodel arch_config.hpp"\n', ""), ("frequency.source", "missing")),
        (('[transfer_limits]\nmax_bursts = 4095\nsource = "', '[transfer_limits]\nmax_bursts = 4095\nsource = ""#'), ("transfer_limits.source",)),
        (("megahertz = 1850", "megahertz = 0"), ("frequency.megahertz", "greater than 0")),
        (("megahertz = 1850", "megahertz = 1850.5"), ("frequency.megahertz", "integer")),
        (("megahertz = 1850", 'megahertz = "1850"'), ("frequency.megahertz", "integer")),
        (("tail_cycles = 12", "tail_cycles = -1"), ("timing.vector_pipe.tail_cycles",)),
        (('table = "a2a3_vector_timing.csv"', 'table = "a2a3_vector_timing.csv"\n[timing.vector.vadd]\nrepeat_cycles = 0'), ("timing.vector.vadd",)),
        (('table = "a2a3_vector_timing.csv"', 'table = "nowhere.csv"'), ("timing.vector.table", "does not exist")),
        (("bytes_per_cycle = 85", "bytes_per_cycle = 85.365"), ("timing.store.bytes_per_cycle",)),
        (('status = "vendor-model"', 'status = "guessed"'), ("status", "documented")),
        (("allocatable_bytes = 196608", "allocatable_bytes = 200000"), ("200000 exceeds capacity_bytes 196608",)),
        (("capacity_bytes = 196608\n", "capacity_bytes = 262144\n"), ("banks hold 196608", "262144")),
        (("bank_bytes = 4096", "bank_bytes = 8192"), ("banks hold", "393216")),
        (("value = 0\nlegal = [0, 1]", "value = 2\nlegal = [0, 1]"), ("value 2", "[0, 1]")),
        (('dst = "i8"\nsteps', 'dst = "u16"\nsteps'), ("f16 -> u16", "not a legal cast")),
        (('steps = "via_i32"', 'steps = "via_i32"\nchunk_lanes = 64'), ("contradict",)),
        (('steps = "chunked_masked"\nchunk_lanes = 64', 'steps = "chunked_masked"'), ("contradict",)),
        (('mechanism = "strided-repeat"', 'mechanism = "magic"'), ("mechanism", "magic")),
        (('mechanism = "strided-repeat"', 'mechanism = ["strided-repeat"]'), ("mechanism",)),
        (('name = "a2a3"', 'name = "A 3"'), ("name",)),
        (('table = "a2a3_casts.csv"', 'table = "nowhere.csv"'), ("nowhere.csv", "does not exist")),
        (('table = "a2a3_casts.csv"', "table = 3"), ("must name a CSV file",)),
        (('table = "a2a3_casts.csv"\nsource = "pto-isa include/pto/npu/a2a3/TCvt.hpp"', 'table = "a2a3_casts.csv"'), ("casts_fact.source", "missing")),
    ],
    ids=lambda value: str(value[0])[:30] if isinstance(value, tuple) else None,
)  # fmt: skip
def test_descriptions_that_are_refused(tmp_path: Path, change: tuple[str, str], words: tuple[str, ...]) -> None:
    message = str(refused(changed(tmp_path, lambda text: text.replace(*change, 1))))
    for word in ("mine.toml", *words):
        assert word in message, message


@pytest.mark.parametrize(
    ("change", "place", "legal"),
    [
        ('[frequency]\nmegaherz = 5\nsource = "x"\nstatus = "assumed"', (4, 1), ("megahertz",)),
        ("[memories.ub]\ncapcity_bytes = 5", (4, 1), ("capacity_bytes",)),
        ("[timming]\nload = 3", (3, 2), ("timing",)),
        ("[what_iff.none]\ntitle = 3", (3, 2), ("what_if",)),
        ("bas = 3", (3, 1), ("base",)),
        ('[options.ctrl]\nvalu = 3', (4, 1), ("value",)),
        ("[casts]\nsurce = 3\ntable = \"a2a3_casts.csv\"", (4, 1), ("source",)),
        ("[transfer_limits]\nxyz = 3", (4, 1), ("max_bursts", "source", "status", "note")),
    ],
)  # fmt: skip
def test_an_unknown_key_has_its_place_and_the_keys_that_are_legal_there(
    tmp_path: Path, change: str, place: tuple[int, int], legal: tuple[str, ...]
) -> None:
    (tmp_path / "a2a3_casts.csv").write_text((SHIPPED / "a2a3_casts.csv").read_text())
    first = refused(derived(tmp_path, "a2a3", f"{change}\n"))
    (error,) = [one for one in (first, *first.further) if "unknown key" in one.message]
    assert (error.span.line, error.span.column) == place
    assert set(legal) <= set(error.legal)


def with_table(tmp_path: Path, change: Callable[[list[str]], list[str]]) -> Path:
    path = changed(tmp_path, lambda text: text + "\n")
    lines = (SHIPPED / "a2a3_casts.csv").read_text().splitlines()
    (tmp_path / "a2a3_casts.csv").write_text("\n".join(change(lines)) + "\n")
    return path


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: [*lines, lines[1]], ("twice", "f16")),
        (lambda lines: [lines[0].replace("lanes", "lances"), *lines[1:]], ("lances", "lanes")),
        (lambda lines: [lines[0].replace("stem,", ""), *[line.replace("vconv_f322f16,", "") for line in lines[1:2]]], ("stem",)),
        (lambda lines: [lines[0], lines[1].replace("rint,false", "hybrid,false")], ("fallback",)),
        (lambda lines: [lines[0], lines[1].replace(",64,", ",many,")], ("lanes",)),
        (lambda lines: [lines[0], lines[1].replace("odd=o", "odd=o;odder=x")], ("suffixes",)),
        (lambda lines: [*lines, lines[1] + ",one,cell,too,many"], ("a2a3_casts.csv",)),
        (lambda lines: [*lines, "f32,f16"], ("a2a3_casts.csv:27: stem",)),
        (lambda lines: [lines[0]], ("not a legal cast",)),
    ],
)  # fmt: skip
def test_tables_that_are_refused(
    tmp_path: Path, change: Callable[[list[str]], list[str]], words: tuple[str, ...]
) -> None:
    error = refused(with_table(tmp_path, change))
    told = "\n".join(map(str, (error, *error.further)))
    for word in words:
        assert word in told, told


@pytest.mark.parametrize("file", ["a2a3_casts.csv", "mine.toml"])
def test_files_that_are_no_text(file: str, tmp_path: Path) -> None:
    path = changed(tmp_path, lambda text: text + "\n")
    (tmp_path / file).write_bytes(b"src,dst\n\xff\xfe,f16\n" if file.endswith("csv") else b"name = '\xff'")
    with pytest.raises(TargetDataError, match=re.escape(file)):
        load_target(path)


@pytest.mark.parametrize(
    ("text", "line"), [('name = "a"\ntitle = \n', 2), ("a = 1\nb = 2\n[c\n", 3), ("x = 1\nx = 2\n", 2)]
)
def test_malformed_toml_names_the_line(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(TargetDataError, match="malformed TOML") as caught:
        load_target(write(tmp_path, text))
    assert caught.value.span.line == line
    assert caught.value.span.text == text.splitlines()[line - 1]


@pytest.mark.parametrize("base", ['"a9"', '"gone.toml"', "3", '["a2a3"]', r'"x\u0000y"', f'"{"y" * 5000}"'])
def test_bad_base(tmp_path: Path, base: str) -> None:
    with pytest.raises(TargetDataError, match=r"mine\.toml.*base") as caught:
        load_target(write(tmp_path, f'base = {base}\nname = "mine"\n'))
    assert "a2a3" in caught.value.legal


def test_cyclic_base(tmp_path: Path) -> None:
    write(tmp_path, 'base = "two.toml"\n', "one.toml")
    write(tmp_path, 'base = "three.toml"\n', "two.toml")
    for base, name in (("one", "three.toml"), ("self", "self.toml")):
        with pytest.raises(TargetDataError, match="leads to itself"):
            load_target(write(tmp_path, f'base = "{base}.toml"\n', name))


@pytest.mark.parametrize("name", ["a9", "", "a2a3.csv", "../targets/a2a3", "a2a3_casts"])
def test_unknown_names_list_the_known_ones(name: str) -> None:
    with pytest.raises(ReadError, match="unknown target") as caught:
        load_target(name)
    assert "a2a3" in caught.value.legal


def test_missing_file() -> None:
    with pytest.raises(ReadError, match="does not exist"):
        load_target("nowhere.toml")


# ------------------------------------------------------------------------------------ derived from others, and compared


@pytest.mark.parametrize(
    ("base", "table", "line", "said"),
    [
        ("a2a3", "timing.load", "startup_cycles = 100\n", "write source and status into [timing.load]"),
        ("a2a3", "timing.load", 'startup_cycles = 100\nsource = "x"\n', "write status into [timing.load]"),
        ("a2a3", "timing.vector.vconv", "tail_cycles = 15\n", "[timing.vector.vconv]"),
        ("a5", "timing.chain.latency_cycles", "vcvt = 9\n", "[timing.chain]"),
        ("gaudi2", "features.has", "masked_store = false\n", "[features]"),
        ("goya", "converts", 'table = "tpc_convert_gaudi.csv"\n', "[converts]"),
        ("greco", "options.global_latency_cycles", "value = 100\n", "[options.global_latency_cycles]"),
    ],
)
def test_a_changed_fact_needs_a_source_of_its_own(base: str, table: str, line: str, said: str, tmp_path: Path) -> None:
    if base == "goya":  # formats that its table of pairs names
        line = 'table = "few.csv"\n'
        rows = (ROOT / "targets" / "tpc_convert_goya.csv").read_text(encoding="utf-8").splitlines()
        (tmp_path / "few.csv").write_text("\n".join(rows[:-1]), encoding="utf-8")
    error = refused(derived(tmp_path, base, f"[{table}]\n{line}"))
    assert said in error.message
    assert error.span.line in (3, 4)


def test_the_same_number_needs_nothing(tmp_path: Path) -> None:
    assert load_target(derived(tmp_path, "a2a3", "[timing.load]\nstartup_cycles = 207\n")).name == "mine"


def test_what_was_said_of_the_old_number_goes(tmp_path: Path) -> None:
    row = load_target(derived(tmp_path, "a2a3", f"[timing.vector.vconv]\ntail_cycles = 15\n{SAID}")).timing.vector[
        "vconv"
    ]
    assert (row.tail_cycles, row.startup_cycles, row.source, row.status) == (15, 6, "mine", "assumed")
    assert (row.note, row.validated) == ("", False)


@pytest.mark.parametrize(
    ("base", "table", "line"),
    [
        ("a2a3", "repeat", "block_bytes = 64"),
        ("a2a3", "repeat", "repeat_bytes = 512"),
        ("a5", "registers", "block_bytes = 64"),
        ("a5", "registers", "register_bytes = 512"),
        *((base, "registers", "vector_bytes = 512") for base in ("goya", "gaudi", "gaudib", "greco", "gaudi2")),
        ("goya", "registers", "dual_group_bytes = 128"),
        ("goya", "registers", "group_bytes = 16"),
    ],
)
def test_a_number_that_the_machine_cannot_take_is_refused(base: str, table: str, line: str, tmp_path: Path) -> None:
    error = refused(derived(tmp_path, base, f"[{table}]\n{line}\n{SAID}"))
    assert f"{table}.{line.split(maxsplit=1)[0]}" in error.message
    assert "is not simulated" in error.message
    assert error.span.line == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"x = {'9' * 5000}\n", "64 bits"),
        (f"x = 0x{'f' * 40}\n", "64 bits"),
        ("x = 1e999999999\n", "exponent"),
        ("x = 1e99999999999999999999\n", "exponent"),
        ("x = nan\n", "not finite"),
        (f"x = {'[' * 3000}{']' * 3000}\n", "deep"),
        (f"x{'.a' * 3000} = 1\n", "deep"),
        (
            '[what_if.free-synchronisation]\ntitle = "x"\nset = { "timing.scalar.issue_cycles" = 1e99999999 }\n',
            "exponent",
        ),
        ('[casts]\ntable = "\\u0000"\n', "must name a CSV file"),
    ],
)
def test_absurd_values_are_refused_at_their_place(text: str, said: str, tmp_path: Path) -> None:
    error = refused(derived(tmp_path, "a2a3", text))
    assert said in error.message
    assert error.span.line >= 3


def test_a_table_with_an_absurd_cell(tmp_path: Path) -> None:
    (tmp_path / "big.csv").write_text(f"src,dst\n{'9' * 5000},f16\n", encoding="utf-8")
    error = refused(derived(tmp_path, "a2a3", f'[casts]\ntable = "big.csv"\n{SAID}'))
    assert (Path(error.span.file).name, error.span.line) == ("big.csv", 2)


@pytest.mark.parametrize("column", ["measured_cycles", "rows"])
def test_a_table_of_measurements_with_an_absurd_number(
    column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = {"op": "TCVT", "src": "f32", "dst": "f16", "rows": "4", "cols": "64", "measured_cycles": "33"}
    cells[column] = "9" * 5000
    file = tmp_path / "mine.csv"
    file.write_text(f"{','.join(cells)}\n{','.join(cells.values())}\n", encoding="utf-8")
    said = err_of(capsys, ["accuracy", "--target", "a2a3", "--data", str(file)])
    assert f"{file}:2:" in said
    assert f"{column}: 999" in said


@pytest.mark.parametrize("text", [f"0x{'f' * 4000}", f"-0x{'f' * 4000}", "1e999999999", "9" * 4000])
@pytest.mark.parametrize(("program", "name"), [("rms_norm_a2a3", "eps"), ("rotary_cache_a2a3", "position")])
def test_absurd_arguments(program: str, name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = PROGRAMS / "kernels" / f"{program}.pto"
    code = main(["run", str(path), "--timing-only", "--arg", f"{name}={text}"])
    said = capsys.readouterr().err
    assert code in (0, 2)
    assert "internal error" not in said


# ------------------------------------------------------------------------------------------------ targets compared

# Source, A2A3 destinations, A5 destinations, difference: as published.
PUBLISHED = """
FP32 | FP16, FP32 (round-only), BF16, I16, I32, I64 | FP32, FP16, BF16, I16, I32, I64, FP8_E4M3, FP8_E5M2, H8 | A5 adds FP8/H8 targets
FP16 | FP32, I32, I16, I8, U8, S4 (int4b_t) | FP32, I32, I16, I8, U8, H8 | A2A3 has S4 path; A5 has H8 path
BF16 | FP32, I32 | FP32, I32, FP16, FP4_E1M2X2, FP4_E2M1X2 | A5 adds FP16/FP4 targets
I16 | FP16, FP32 | U8, FP16, FP32, U32, I32 | A5 adds U8/U32/I32 targets
I32 | FP32, I16, I64, FP16 (deq path) | FP32, I16, U16, I64, U8 | A2A3 supports I32 -> FP16 (half, deq); A5 does not
I64 | FP32, I32 | FP32, I32 | Same
U8 | FP16 | FP16, U16 | A5 adds U16 target
I8 | FP16 | FP16, I16, I32 | A5 adds I16/I32 targets
S4 (int4b_t) | FP16 | N/A | A2A3-only
U32 | N/A | U8, U16, I16 | A5-only source type
FP8_E4M3 | N/A | FP32 | A5-only source type
FP8_E5M2 | N/A | FP32 | A5-only source type
H8 | N/A | FP32 | A5-only source type
FP4_E1M2X2 | N/A | BF16 | A5-only source type
FP4_E2M1X2 | N/A | BF16 | A5-only source type
"""

# What the words of the last column claim: types that only A2/A3 has, types that only A5 has.
CLAIMS = {
    "A5 adds FP8/H8 targets": (set(), {"e4m3fn", "e5m2", "hif8"}),
    "A2A3 has S4 path; A5 has H8 path": ({"i4"}, {"hif8"}),
    "A5 adds FP16/FP4 targets": (set(), {"f16", "e1m2", "e2m1"}),
    "A5 adds U8/U32/I32 targets": (set(), {"u8", "u32", "i32"}),
    # The page leaves out that A5 also adds U16 and U8 here; its own columns say so.
    "A2A3 supports I32 -> FP16 (half, deq); A5 does not": ({"f16"}, {"u16", "u8"}),
    "Same": (set(), set()),
    "A5 adds U16 target": (set(), {"u16"}),
    "A5 adds I16/I32 targets": (set(), {"i16", "i32"}),
}


def names(cell):
    return set() if cell == "N/A" else {format_named(part.split(" (")[0].strip()).name for part in cell.split(",")}


@pytest.fixture(scope="module")
def rows():
    return [[cell.strip() for cell in line.split(" | ")] for line in PUBLISHED.strip().splitlines()]


@pytest.fixture
def generated(capsys):
    assert main(["targets", "--diff", "a2a3", "a5", "--json", "-"]) == 0
    return {row["src"]: row for row in json.loads(capsys.readouterr().out)["rows"]}


def test_every_cell_is_the_published_one(rows, generated):
    assert len(generated) == len(rows) == 15
    for src, a2a3, a5, difference in rows:
        row = generated[names(src).pop()]
        assert set(row["first"]) == names(a2a3)
        assert set(row["second"]) == names(a5)
        if difference == "A2A3-only":
            assert row["difference"] == "a2a3 only"
        elif difference == "A5-only source type":
            assert row["difference"] == "a5 only"
        else:
            assert claimed(row["difference"]) == CLAIMS[difference]


def claimed(words):
    """Take "a2a3 adds x; a5 adds y, z" apart."""
    found = {"a2a3": set(), "a5": set()}
    for part in words.split("; ") if words != "same" else ():
        name, types = part.split(" adds ")
        found[name] = set(types.split(", "))
    return found["a2a3"], found["a5"]


def test_changed_facts_are_shown(tmp_path, capsys):
    mine = tmp_path / "mine.toml"
    mine.write_text(
        'base = "a5"\nname = "mine"\n[timing.store_barrier]\ncycles = 99\nsource = "a guess"\nstatus = "assumed"\n'
    )
    (fact,) = document_of(capsys, "targets", "--diff", "a5", str(mine))["facts"]
    assert (fact["name"], fact["second"]["cycles"]) == ("timing.store_barrier", 99)
    assert fact["first"]["cycles"] != 99
    assert "timing.store_barrier" in out_of(capsys, ["targets", "--diff", "a5", str(mine)])
    assert "Their facts are the same." in out_of(capsys, ["targets", "--diff", "a5", "a5"])


# ---------------------------------------------------------------------------------------- CSV tables beside the targets


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("float,f32,many,documented,x\n", "row 0: promotion: Input should be a valid integer"),
        ("float,f32,1,documented,x\nhalf,f16,1,rumoured,x\n", "row 1: status: Input should be"),
        ("float,f32,1,documented,\n", "row 0: source: String should have at least 1 character"),
    ],
)
def test_a_wrong_cell_is_named(text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpc_compiler, "SHIPPED", tmp_path)
    monkeypatch.setattr(tpc_compiler, "checked", lambda name: None)
    (tmp_path / CType.csv_file).write_text("name,element,promotion,status,source\n" + text)
    with pytest.raises(TargetDataError, match=rf"^tpc_c_types\.csv: {message}"):
        tpc_compiler.csv_rows.__wrapped__(CType)


def test_a_cell_without_a_column_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpc_compiler, "SHIPPED", tmp_path)
    monkeypatch.setattr(tpc_compiler, "checked", lambda name: None)
    (tmp_path / BuiltinRounding.csv_file).write_text(
        "generation,mode,build_options,status,source\ngoya,rhne,,documented,x,y\n"
    )
    with pytest.raises(TargetDataError, match=r"^tpc_builtin_rounding\.csv: row 0"):
        tpc_compiler.csv_rows.__wrapped__(BuiltinRounding)
