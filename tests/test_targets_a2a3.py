"""The A2/A3 description against the published tables, and what the loader refuses."""

# A row of a table of refusals stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import oracle_a2a3
import pytest
from strided_model import SIZE, repeat_shape

from castsim.isa.errors import ReadError, TargetDataError
from castsim.isa.modes import Rounding
from castsim.targets import load_target, target_for_architecture, target_names
from castsim.targets.loader import SHIPPED

A2A3 = load_target("a2a3")
SAID = 'source = "mine"\nstatus = "assumed"\n'
VECTORS = Path(__file__).parent / "vectors"
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


# ------------------------------------------------------------------------------------------------------- every target


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("a2a3*.csv")), ids=lambda path: path.name)
def test_no_row_twice(path: Path) -> None:
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    assert len({tuple(row) for row in rows}) == len(rows)
    header = rows[0]
    case = ("source_file", "case") if "source_file" in header else ("case",)
    key = case if "case" in header else tuple(header[:2])
    assert len({tuple(row[header.index(name)] for name in key) for row in rows}) == len(rows)
    assert {len(row) for row in rows} == {len(rows[0])}


def test_targets_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        A2A3.repeat.max_repeats = 1
    with pytest.raises(ValueError, match="frozen"):
        A2A3.name = "b"


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


def test_a_user_target_changes_one_fact(tmp_path: Path) -> None:
    path = write(tmp_path, f'base = "a2a3"\nname = "mine"\n[timing.vector.vconv]\ntail_cycles = 18\n{SAID}')
    mine = load_target(path)
    assert mine.name == "mine"
    assert mine.timing.vector["vconv"].tail_cycles == 18
    assert mine.timing.vector["vconv"].startup_cycles == A2A3.timing.vector["vconv"].startup_cycles
    assert mine.casts == A2A3.casts
    assert mine.model_copy(update={"name": "a2a3", "timing": A2A3.timing}) == A2A3
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
    path = changed(tmp_path, lambda text: text.replace(*change, 1))
    with pytest.raises(TargetDataError) as caught:
        load_target(path)
    message = str(caught.value)
    assert "mine.toml" in message
    for word in words:
        assert word in message, message
    assert caught.value.exit_code == 2


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
    path = write(tmp_path, f'base = "a2a3"\nname = "mine"\n{change}\n', "mine.toml")
    with pytest.raises(TargetDataError) as caught:
        load_target(path)
    errors = (caught.value, *caught.value.further)
    (error,) = [one for one in errors if "unknown key" in one.message]
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
    with pytest.raises(TargetDataError) as caught:
        load_target(with_table(tmp_path, change))
    told = "\n".join(map(str, (caught.value, *caught.value.further)))
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


@pytest.mark.parametrize("base", ['"a9"', '"gone.toml"', "3", '["a2a3"]'])
def test_bad_base(tmp_path: Path, base: str) -> None:
    with pytest.raises(TargetDataError, match=r"mine\.toml.*base") as caught:
        load_target(write(tmp_path, f'base = {base}\nname = "mine"\n'))
    assert "a2a3" in caught.value.legal


def test_cyclic_base(tmp_path: Path) -> None:
    write(tmp_path, 'base = "two.toml"\n', "one.toml")
    write(tmp_path, 'base = "three.toml"\n', "two.toml")
    for base, name in (("one", "three.toml"), ("self", "self.toml")):
        with pytest.raises(TargetDataError, match="back to itself"):
            load_target(write(tmp_path, f'base = "{base}.toml"\n', name))


@pytest.mark.parametrize("name", ["a9", "", "a2a3.csv", "../targets/a2a3", "a2a3_casts"])
def test_unknown_names_list_the_known_ones(name: str) -> None:
    with pytest.raises(ReadError, match="unknown target") as caught:
        load_target(name)
    assert "a2a3" in caught.value.legal


def test_missing_file() -> None:
    with pytest.raises(ReadError, match="does not exist"):
        load_target("nowhere.toml")
