"""The descriptions of the five generations against the published tables and counts."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kit.tpc_text import GENERATIONS, table, target

import castsim
from castsim import cast
from castsim.__main__ import main
from castsim.isa.errors import IllegalError, ReadError, TargetDataError
from castsim.isa.formats import FORMATS, Rounding
from castsim.isa.tpc.forms import Feature
from castsim.machines.mechanisms import compute_of, lowerer_of
from castsim.targets.description import Fact, Table
from castsim.targets.loader import SHIPPED, load_target

PAIRS = table("tpc_convert_pairs.csv")
INTEGER_PAIRS = table("tpc_convert_int_pairs.csv")
SHIFT_FORMATS = {"char256": "i8", "short128": "i16", "int64": "i32", "int32_t": "i32"}


def split(cell: str) -> tuple[str, ...]:
    return tuple(cell.split(";")) if cell else ()


def number(cell: str) -> int | None:
    return int(cell) if cell else None


def checked(generation: str, published: list[dict[str, str]], found: list[tuple[Any, ...]], *read: Any) -> None:
    """Compare rows with the published ones, of which `read` gives the columns, and their rounding modes."""
    chip = target(generation)
    rows = [row for row in published if row["gen"] == generation]
    assert found == [tuple(each(row) for each in read) for row in rows]
    rounding = chip.convert_rounding if published is PAIRS else chip.integer_rounding
    for row in rows:
        assert set(split(row["rounding_modes"])) == {word.upper() for word in rounding.modes}
        assert row["default_rounding"] == rounding.default.upper()
        if published is PAIRS:
            assert row["lane_sel_min"] == ("0" if row["lane_sel_max"] else "")
            assert row["mnemonic"] == "CONVERT"


@pytest.mark.parametrize("generation", GENERATIONS)
def test_converts_are_the_published_rows(generation: str) -> None:
    found = [
        (row.unit, row.src, row.dst, row.note or "", row.lane_sel_max, row.lanes, row.switches, row.masks)
        for row in target(generation).converts
    ]
    lists = ("num_lanes_options", "switches", "vector_predicate_types")
    read = [itemgetter(name) for name in ("unit", "src", "dst", "notes")]
    read += [lambda row: number(row["lane_sel_max"]), *(lambda row, name=name: split(row[name]) for name in lists)]
    checked(generation, PAIRS, found, *read)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_integer_converts_are_the_published_rows(generation: str) -> None:
    found = [
        (row.mnemonic.upper(), row.unit, row.src, row.dst, row.lane_sel_max, row.lanes, row.shifts)
        for row in target(generation).integer_converts
    ]
    read = [itemgetter(name) for name in ("mnemonic", "unit", "src", "dst")]
    read += [lambda row: number(row["lane_sel_max"]), lambda row: split(row["num_lanes_options"])]
    read += [lambda row: tuple(SHIFT_FORMATS[kind] for kind in split(row["shift_operand_type"]))]
    checked(generation, INTEGER_PAIRS, found, *read)


def elements(row: dict[str, str]) -> tuple[str, str]:
    """What the published element counts should be, from widths and lanes alone."""
    if row["unit"] == "spu":
        return "1", "1"
    lanes = {name: 2048 // FORMATS[row[name]].bits for name in ("src", "dst")}
    ratio = max(lanes.values()) // min(lanes.values())
    if ratio == 1:
        return str(lanes["src"]), str(lanes["dst"])
    narrow, wide = max(lanes.values()), min(lanes.values())
    down = lanes["src"] < lanes["dst"]
    single = (str(wide), f"{wide} of {narrow}") if down else (f"every {ratio}-th of {narrow}", str(wide))
    group = f"{narrow} ({ratio} VRF)"
    every = (group, str(narrow)) if down else (str(narrow), group)
    forms = [
        (name, pair)
        for name, pair in (("single", single), ("all", every))
        if f"{name}_lane" in row["num_lanes_options"] or (name == "single" and not row["num_lanes_options"])
    ]
    return tuple(" / ".join(f"{name}: {pair[side]}" for name, pair in forms) for side in (0, 1))  # type: ignore[return-value]


@pytest.mark.parametrize("row", [*PAIRS, *INTEGER_PAIRS], ids=lambda row: "-".join(list(row.values())[:3]))
def test_element_counts_follow_from_widths(row: dict[str, str]) -> None:
    """The columns that the descriptions leave out hold nothing that the others do not say."""
    assert (row["elems_in"], row["elems_out"]) == elements(row)


@pytest.mark.parametrize(
    ("generation", "vector", "scalar", "integer"),
    [("goya", 18, 17, 6), ("gaudi", 23, 23, 6), ("gaudib", 25, 23, 6), ("greco", 45, 44, 8), ("gaudi2", 112, 113, 8)],
)
def test_counts_of_tpc_md_section_2_1(generation: str, vector: int, scalar: int, integer: int) -> None:
    chip = target(generation)
    assert len(chip.casts) == vector
    assert len(chip.converts) - vector == scalar
    for unit in ("vpu", "spu"):
        assert sum(row.unit == unit for row in chip.integer_converts) == integer


MEANINGS = {
    "rhne": Rounding.RINT, "rz": Rounding.TRUNC, "ru": Rounding.CEIL, "rd": Rounding.FLOOR, "rhaz": Rounding.ROUND,
    "sr": Rounding.STOCHASTIC, "sr_rne": Rounding.STOCHASTIC, "csr": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("generation", "convert", "integer"),
    [
        ("goya", "rhne0 rd1 ru2 rz4 csr5", "rhne0 rd1 ru2 sr3"),
        ("gaudi", "rhne0 rz1 ru2 rd3 sr4 csr5 rhaz6", "rhne0 rz1 ru2 rd3 sr4"),
        ("gaudib", "rhne0 rz1 ru2 rd3 sr4 csr5 rhaz6", "rhne0 rz1 ru2 rd3 sr4"),
        ("greco", "rhne0 rz1 ru2 rd3 sr4 csr5 rhaz6", "rhne0 rz1 ru2 rd3 sr4"),
        ("gaudi2", "rhne0 rz1 ru2 rd3 sr4 csr5 rhaz6 sr_rne7", "rhne0 rz1 ru2 rd3 sr4"),
    ],
)
def test_rounding_codes_of_tpc_md_section_2_3(generation: str, convert: str, integer: str) -> None:
    chip = target(generation)
    for modes, expected in ((chip.convert_rounding.modes, convert), (chip.integer_rounding.modes, integer)):
        shown = sorted((mode.code, f"{word}{mode.code}") for word, mode in modes.items())
        assert " ".join(text for _, text in shown) == expected
        assert all(mode.rounding is MEANINGS[word] for word, mode in modes.items())


@pytest.mark.parametrize(
    ("generation", "slm", "tensors", "round_address", "convert_round"),
    [
        ("goya", 1024, 8, 0x7FC, None),
        ("gaudi", 1024, 16, 0x8FC, None),
        ("gaudib", 1024, 16, 0x8FC, None),
        ("greco", 2048, 16, 0x8FC, 0xCA8),
        ("gaudi2", 16384, 16, 0xD68, 0xCA8),
    ],
)
def test_machine_of_tpc_md_sections_1_and_2_3(
    generation: str, slm: int, tensors: int, round_address: int, convert_round: int | None
) -> None:
    chip = target(generation)
    assert chip.memories["vlm"].capacity_bytes == 80 * 1024
    assert chip.small_vector_memory.capacity_bytes == 16 * 1024
    assert chip.memories["slm"].capacity_bytes == slm
    assert chip.tensors.limit == tensors
    assert chip.configuration["round"].address == round_address
    separate = chip.configuration.get("convert_round")
    assert (separate.address if separate else None) == convert_round
    files = chip.registers
    assert (files.V, files.S, files.I, files.AD, files.SP, files.VP) == (40, 36, 32, 8, 16, 16)


# docs/reference/tpc.md sections 1 and 7.1: processor definitions, and what exists from a generation on
FEATURES = {
    "goya": "two_part_address byte_product shifted_product division_step",
    "gaudi": "vector_predicated_load packed_store program_counter_move index_shift_immediate masked_compare mov_dg_all "
    "wide_accumulator typed_lookup classes biased_exponent prefetch four_division_steps",
    "gaudib": "gaudi flush_switch unpack_lane mov_dg_unpack",
    "greco": "gaudi typed_pack byte_product unpacked_load partial_half_access indexed_global_load address_element_type "
    "hardware_registers mask_moves address_moves pair_moves scalar_reseed index_compare inverted_and "
    "product_rounding lane_choice nibble_convert multi_register_convert mov_dg_pack compressed_bundles "
    "short_immediates converting_nearbyint "  # the last one: docs/reference/tpc.md section 5.2
    "multiply_add shifted_product lookup_pointer entry_options class_limit",
    "gaudi2": "greco masked_store direct_access load_in_store_slot clip_float unpack_lane mov_dg_unpack "
    "pair_arithmetic lookup_pairs special_exponent trace_events squeezed_store whole_division",
}
LOST = {"gaudi2": {"four_division_steps"}}
"""What a generation lacks that the one it is built on has."""


def features(generation: str) -> set[str]:
    found: set[str] = set()
    for word in FEATURES[generation].split():
        found |= features(word) if word in FEATURES else {word}
    return found - LOST.get(generation, set())


@pytest.mark.parametrize("generation", GENERATIONS)
def test_features(generation: str) -> None:
    assert {feature.value for feature in target(generation).dialect.features} == features(generation)
    assert set().union(*map(features, FEATURES)) == {feature.value for feature in Feature}


def facts(value: object) -> list[Fact]:
    """All facts below a loaded table."""
    found: list[Fact] = [value] if isinstance(value, Fact) else []
    below = value.values() if isinstance(value, dict) else vars(value).values() if isinstance(value, Table) else ()
    for item in below:
        found.extend(facts(item))
    return found


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_fact_has_a_source(generation: str) -> None:
    found = facts(target(generation))
    assert len(found) > 40
    assert all(fact.source.strip() for fact in found)


def test_every_shipped_table_is_used() -> None:
    readers = [*(SHIPPED / f"{generation}.toml" for generation in GENERATIONS), *SHIPPED.glob("tpc_*.py")]
    features = Path(castsim.__file__).parent
    readers += [
        path for folder in ("languages/tpc_c", "tools/tpc_compiler") for path in (features / folder).glob("*.py")
    ]
    text = "".join(path.read_text(encoding="utf-8") for path in readers)
    for path in SHIPPED.glob("tpc_*.csv"):
        assert f'"{path.name}"' in text


def mine(folder: Path, change: str, base: str = "gaudi2") -> Path:
    path = folder / "mine.toml"
    path.write_text(f'base = "{base}"\nname = "mine"\n{change}', encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("[features.has]\ntime_travel = true\n", "mine.toml: features.has.time_travel"),
        ("[bundle_rules]\nimmediates = 0\n", "mine.toml: bundle_rules.immediates"),
        ("[registers]\nX = 4\n", "mine.toml: registers.X: unknown key"),
        ("[convert_rounding]\ndefault = 'up'\n", "default 'up' is not among the modes"),
        ("[convert_rounding.modes]\nrz = { code = 0 }\n", "two modes share a code"),
        ("[elements]\nformats = ['f32']\n", "the generation has no"),
        ("[elements]\nformats = ['f33']\n", "unknown formats ['f33']"),
        ("[small_vector_memory]\ncapacity_bytes = 100000\n", "small_vector_memory is larger than memories.vlm"),
        ("[options.nan_to_integer]\nvalue = 'one'\n", "value 'one' is not among the legal ones"),
        ("[configuration.round]\naddress = -4\n", "mine.toml: configuration.round.address"),
        ("[extra]\nvalue = 1\n", "mine.toml: extra: unknown key"),
        ("[converts]\ntable = 'none.csv'\n", "converts.table 'none.csv' does not exist in the same folder"),
    ],
)
def test_a_bad_description_is_refused_by_name(change: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(TargetDataError) as caught:
        load_target(mine(tmp_path, change))
    assert message in str(caught.value)


def test_doubles_are_refused(tmp_path: Path) -> None:
    rows = (SHIPPED / "tpc_convert_goya.csv").read_text(encoding="utf-8").splitlines()
    (tmp_path / "twice.csv").write_text("\n".join([*rows, rows[1]]) + "\n", encoding="utf-8")
    with pytest.raises(TargetDataError, match="converts lists twice"):
        load_target(mine(tmp_path, '[converts]\ntable = "twice.csv"\n', "goya"))


def test_tile_programs_are_refused() -> None:
    for user in (lowerer_of, compute_of):
        with pytest.raises(IllegalError, match=r"goya has no tile instructions; it runs \.tpc programs"):
            user(target("goya"))
    # Loose elements are no tiles: one CONVERT casts them.
    assert cast(np.ones(1, np.float32), "f32", "i32", target="goya").tolist() == [1]


# ------------------------------------------------------------------------------------------------------- loose elements


SOURCE = np.array([1.5, 2.5, -0.5, 40000.0, -1e9, np.inf, -np.inf, np.nan, 1.00390625], np.float32)


@pytest.mark.parametrize("target", GENERATIONS)
def test_float_to_int_saturates_and_rounds_to_nearest_even(target):
    wanted = np.clip(np.rint(np.nan_to_num(SOURCE.astype(np.float64), nan=0.0)), -32768, 32767).astype(np.int16)
    assert cast(SOURCE, "f32", "i16", target=target).tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("mode", "function"), [("rz", np.trunc), ("rd", np.floor), ("ru", np.ceil), ("rhne", np.rint), ("trunc", np.trunc)]
)
def test_modes_by_either_name(mode, function):
    wanted = np.clip(function(np.nan_to_num(SOURCE.astype(np.float64), nan=0.0)), -(2**31), 2**31 - 1)
    got = cast(SOURCE, "f32", "i32", target="gaudi2", rounding=mode)
    assert got.tolist() == wanted.astype(np.int64).tolist()


def test_bf16_is_the_librarys_but_for_nan():
    got = cast(SOURCE.view(np.uint32), "f32", "bf16", target="gaudi")
    wanted = SOURCE.astype(ml_dtypes.bfloat16).view(np.uint16)
    finite = ~np.isnan(SOURCE)
    assert np.array_equal(got[finite], wanted[finite])
    assert got[~finite].tolist() == [0x7FFF]  # docs/reference/tpc.md section 5


def test_ties_away_exists_from_gaudi_on():
    assert cast(np.float32([2.5]), "f32", "i32", target="gaudi", rounding="rhaz").tolist() == [3]
    with pytest.raises(IllegalError, match="no rounding mode round") as error:
        cast(np.float32([2.5]), "f32", "i32", target="goya", rounding="round")
    assert "rhne" in error.value.legal


def test_what_is_refused():
    with pytest.raises(IllegalError, match="goya has no instruction f32 -> bf16") as error:
        cast(SOURCE, "f32", "bf16", target="goya")
    assert "f32 -> i16" in error.value.legal
    with pytest.raises(IllegalError, match="random generator"):
        cast(SOURCE, "f32", "bf16", target="gaudi2", rounding="sr")
    with pytest.raises(ReadError, match="unknown rounding mode 'up'"):
        cast(SOURCE, "f32", "i16", target="goya", rounding="up")


def test_command_line_takes_the_chips_words(capsys):
    assert main(["cast", "f32", "bf16", "1.00390625", "--target", "gaudi2", "--rounding", "rz", "rhaz"]) == 0
    out = capsys.readouterr().out
    assert "0x3f80" in out and "0x3f81" in out
