"""The A5 description against the published table of code variants; what A5 refuses and what it warns of."""

from __future__ import annotations

import csv
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import oracle_a5
import pytest
from kit.a5_cases import A5, SPAN, UB, Shape, check, lowerer, make_cast, source_codes, tile
from kit.paths import ROOT, VECTORS

from castsim.execution.tree import Part, TileCast, TileTransfer
from castsim.isa.errors import IllegalError, TargetDataError, TileError
from castsim.isa.formats import Saturation, format_named
from castsim.isa.pto.program import RoundMode, TileType
from castsim.isa.pto.value_types import MicroOperation
from castsim.machines.casting import cast, cast_on_target
from castsim.machines.mechanisms import no_such_pair
from castsim.targets.description import with_options
from castsim.targets.loader import SHIPPED, load_target
from castsim.targets.vector_function import KernelText, VectorFunctionTarget, instruction_text, parse_instruction

TARGET = load_target("a5")
assert isinstance(TARGET, VectorFunctionTarget)
with (VECTORS / "a5_pairs.csv").open(encoding="utf-8", newline="") as _file:
    TABLE = list(csv.DictReader(_file))
NAMES = {
    "fp32": "f32", "fp16": "f16", "bf16": "bf16", "s8": "i8", "u8": "u8", "s16": "i16", "u16": "u16", "s32": "i32",
    "u32": "u32", "s64": "i64", "e4m3": "e4m3fn", "e5m2": "e5m2", "hif8": "hif8", "e1m2x2": "e1m2", "e2m1x2": "e2m1",
}  # fmt: skip
WHEN = {"always": "always", "sat ON": "saturation_on", "sat OFF": "saturation_off"}
IDS = [f"{row['src']}-{row['dst']}-{row['variant']}-{row['when']}" for row in TABLE]
REGISTER = 256
PREDICATE_OPERATIONS = ("plt", "pset", "punpack")


def kernel_of(row: dict[str, str]) -> KernelText:
    key = (NAMES[row["src"]], NAMES[row["dst"]], row["variant"], WHEN[row["when"]])
    found = [v.kernel for v in TARGET.variants if (v.src, v.dst, v.variant, v.when) == key]
    assert len(found) == 1
    return TARGET.kernels.texts[found[0]]


def family(line: MicroOperation) -> str:
    return line.mnemonic.partition("_b")[0]


def test_all_variants_of_all_pairs() -> None:
    assert len(TABLE) == len(TARGET.variants) == 141
    assert len(TARGET.casts) == len({(row["src"], row["dst"]) for row in TABLE}) == 45
    assert {variant.kernel for variant in TARGET.variants} == set(TARGET.kernels.texts)


@pytest.mark.parametrize("row", TABLE, ids=IDS)
def test_kernel_does_what_the_table_says(row: dict[str, str]) -> None:
    kernel = kernel_of(row)
    (load,) = (line for line in kernel.trip if line.mnemonic in ("vlds", "vldsx2"))
    stores = [line for line in kernel.trip if line.mnemonic == "vsts"]
    converts = [line for line in kernel.trip if line.mnemonic in ("vcvt", "vtrc")]
    assert kernel.elements == int(row["elems_per_iter"])
    assert load.word("dist") == row["load_dist"]
    assert len(load.results) == int(row["vregs_loaded"])
    assert {line.word("dist") for line in stores} == {row["store_dist"]}
    assert len(stores) == int(row["n_stores"])
    assert len(converts) == int(row["n_vcvt"])
    assert sum(family(line) in PREDICATE_OPERATIONS for line in kernel.trip) == int(row["n_pred_ops_per_iter"])
    src, dst = NAMES[row["src"]], NAMES[row["dst"]]
    assert kernel.elements * oracle_a5.size(dst) // 8 == int(row["stored_bytes_per_iter_full"])
    assert kernel.elements * oracle_a5.size(src) // 8 == int(row["load_bytes_per_iter"])


@pytest.mark.parametrize("row", TABLE, ids=IDS)
def test_converts_and_other_operations_are_those_of_the_table(row: dict[str, str]) -> None:
    kernel = kernel_of(row)
    converts = [line for line in kernel.trip if line.mnemonic in ("vcvt", "vtrc")]
    for line, text in zip(converts, row["convert_sequence"].split(";"), strict=True):
        words = text.split()
        assert words[0].split("(")[0] == line.mnemonic
        assert [word for word in words if word.startswith("PART_")] == [
            f"PART_{word}" for key, word in line.attributes if key == "part"
        ]
        steps = [word.split("->") for word in words if "->" in word]
        assert [NAMES[name] for step in steps for name in step] == [
            kind.element for kind in (*line.operand_types, *line.result_types)
        ]
    trip = {line.mnemonic for line in kernel.trip}
    for word in ("vor", "vintlv", "vselr", "mem_bar", "vand"):
        assert (word in trip) == (word in row["other_vector_ops"] or word in row["store_predicate"].split("masks ")[-1])
    assert ("select" in trip) == ("scalar select" in row["store_predicate"])


@pytest.mark.parametrize("row", TABLE, ids=IDS)
def test_setup_is_that_of_the_table(row: dict[str, str]) -> None:
    kernel = kernel_of(row)
    wanted = [word.split()[0].split("_")[0] for word in row["setup_ops"].split(";") if word.strip()]
    fills = "zero-fill" in wanted[-1:] or any(word.startswith("zero-fill") for word in wanted)
    wanted = [word for word in wanted if not word.startswith("zero-fill")]
    if "vdup" in row["other_vector_ops"]:
        wanted.append("vdup")  # listed among the other operations of the one kernel with a mask
    got = [family(line) for line in kernel.setup]
    if fills and "hoisted" in row["exec_predicate"] and "plt" not in wanted:
        wanted.append("plt")  # the table says it in the column of the execution predicate only
    assert sorted(got) == sorted(wanted)
    assert bool(kernel.fill) == fills
    hoisted = [line for line in kernel.setup if family(line) == "plt"]
    stated = row["exec_predicate"]
    for line in hoisted if "hoisted" in stated else ():
        assert f"{line.mnemonic}({line.word('take')})" in stated
    assert bool(kernel.row) == ("once per row" in stated)


@pytest.mark.parametrize("row", TABLE, ids=IDS)
def test_rounding_control_and_default_are_those_of_the_table(row: dict[str, str]) -> None:
    (rule,) = (each for each in TARGET.casts if (each.src, each.dst) == (NAMES[row["src"]], NAMES[row["dst"]]))
    kind = {"exact": "exact", "none": "integer", "fixed R": "fixed", "fixed A": "fixed"}
    assert rule.rounding == kind.get(row["round_source"], "user")
    if rule.rounding == "fixed":
        assert rule.fallback == {"fixed R": "rint", "fixed A": "round"}[row["round_source"]]
    assert ("odd" in rule.suffixes) == ("ODD" in row["round_source"])
    writes = TARGET.control_classes[rule.control].writes
    values = {"one": "1", "zero": "0", "saturation_off": "(sat OFF)"}
    stated = ";".join(f"{write.bit}={values[write.value]}" for write in writes) or "none"
    assert stated == row["ctrl_bits"]
    assert rule.saturation_off_by_default == (row["default_sat"] == "OFF")


def test_machine_facts() -> None:
    """Sections 1 and 8 of the sheet."""
    ub = TARGET.memories["ub"]
    assert (ub.capacity_bytes, ub.allocatable_bytes, ub.alignment_bytes) == (262_144, 253_952, 32)
    assert TARGET.registers.register_bytes == REGISTER
    banks = TARGET.banks
    assert (banks.groups, banks.banks_per_group, banks.bank_bytes, banks.reads_per_group) == (8, 2, 16_384, 2)


def test_facts_that_the_published_model_shares_are_its() -> None:
    """Values of its table, rounded; forwarding and port cycles are the vendor model's."""
    t = TARGET.timing
    values = [
        t.loads.post_update_cycles, t.loads.second_load_cycles, t.chain.latency_cycles["vcvt"],
        t.memory_floor["two_loads"].start_cycles, t.memory_floor["two_loads"].trip_cycles,
        t.memory_path.trip_cycles,
        t.division.trip_cycles["f32"], t.division.trip_cycles["f16"], t.division.overlap_cycles,
        t.special_function.port_cycles["f32"], t.special_function.port_cycles["f16"], t.chain.forwarding_cycles,
        TARGET.arithmetic["vsqrt"].latency_32, TARGET.arithmetic["vsqrt"].latency_16,
    ]  # fmt: skip
    assert [float(value) for value in values] == [
        1, 1, 7.5, 38.5, 2.06, 1.33, 346.7, 170, 8, 4, 8, 3, 17, 22,
    ]  # fmt: skip


def test_constants_around_the_chain_are_those_of_the_published_model() -> None:
    """Start-up, load, store and drain around a chain of one instruction: 48 and its latency, 2 less without a loop."""
    t = TARGET.timing
    around = t.launch.startup_cycles + t.access.load_cycles + t.access.store_cycles + t.launch.drain_cycles
    assert around + t.loops.setup_cycles - 2 * t.chain.forwarding_cycles == 48
    assert t.loops.setup_cycles == 2


@pytest.mark.parametrize(
    "text",
    [
        "v0 = vlds SIDEWAYS", "v0 = vlds DINTLV_B16", "vsts NORM_B32 v0", "v1 = vcvt v0 p0 PART_MIDDLE",
        "v1 = vfly v0", "p = plt n", "p = plt_b16 n lose 3", "mem_bar VLD_VLD", "",
    ],
)  # fmt: skip
def test_lines_that_are_no_instruction(text: str) -> None:
    with pytest.raises(ValueError, match=r"register instruction|has|not understood"):
        parse_instruction(text)


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("v0, v1 = vlds DINTLV_B32", ("vldsx2", ("0",), ("v0", "v1"), {"dist": "DINTLV_B32"})),
        ("vsts PK_B16 v2 p +256", ("vsts", ("v2", "-1", "p"), (), {"dist": "PK_B16", "offset": "256"})),
        ("v1 = vcvt v0 p PART_ODD", ("vcvt", ("v0", "p"), ("v1",), {"part": "ODD"})),
        ("p = plt_b8 n take 64", ("plt_b8", ("n",), ("p",), {"take": "64"})),
        ("p = plt_b16 n", ("plt_b16", ("n",), ("p",), {"take": "128"})),
        ("s = select 64 tail", ("select", ("tail",), ("s",), {"full": "64"})),
        ("v1 = vmuls_b16 v0 4", ("vmuls", ("v0",), ("v1",), {"number": "4"})),
    ],
)
def test_a_line_is_an_operation_of_the_micro_level(text: str, operation: tuple[object, ...]) -> None:
    line = parse_instruction(text)
    assert (line.mnemonic, line.operands, line.results, dict(line.attributes)) == operation
    assert instruction_text(line) == text


def test_the_lines_of_the_shipped_kernels_are_shown_as_they_are_written() -> None:
    written = tomllib.loads((SHIPPED / "a5.toml").read_text())["kernels"]["texts"]
    assert written
    for name, kernel in written.items():
        for part in ("setup", "row", "trip"):
            for line in kernel.get(part, ()):
                assert instruction_text(parse_instruction(line)) == line, name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('[control_classes.untouched]\nsource = ""\nstatus = "documented"\nwrites = []', "source"),
        ('[kernels.texts.narrow_32_16]\ntrip = ["vsts NORM_B32 v9 p"]', "reads 'v9'"),
        ("[kernels.texts.narrow_32_16]\nelements = 0", "elements"),
        ('[variant_choice]\ncontiguous = ["1D"]', "different numbers of kinds"),
        ("[memories.ub]\ncapacity_bytes = 300000", "banks hold 262144"),
        ("[options.ctrl_60_at_start]\nvalue = 2", "not among the legal ones"),
        ("[control]\nnan_kept = 51", "ctrl_51_at_start is missing"),
    ],
)
def test_bad_descriptions_are_refused_in_a_sentence(tmp_path: Path, change: str, message: str) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(f'base = "a5"\nname = "odd"\n{change}\n', encoding="utf-8")
    with pytest.raises(TargetDataError, match=message):
        load_target(path)


def test_variant_table_must_be_complete(tmp_path: Path) -> None:
    rows = (ROOT / "targets" / "a5_variants.csv").read_text(encoding="utf-8").splitlines()
    (tmp_path / "few.csv").write_text("\n".join(rows[:-1]), encoding="utf-8")
    path = tmp_path / "few.toml"
    path.write_text(
        'base = "a5"\nname = "few"\n[variants]\ntable = "few.csv"\nsource = "a test"\nstatus = "assumed"\n',
        encoding="utf-8",
    )
    with pytest.raises(TargetDataError, match="e2m1 -> bf16: 0 variants 2D_no_post_update"):
        load_target(path)


FULL = Shape(2, 256, 2, 256)


def warnings(src: str, dst: str, mode: str | None = None, saturation: str | None = None, **options: int | str) -> str:
    return "\n".join(lowerer(**options).cast(make_cast(src, dst, FULL, mode, saturation)).warnings)


@pytest.mark.parametrize(
    ("src", "dst", "detour"),
    [("f32", "i8", "f32 -> f16 -> i8"), ("f32", "u8", "f32 -> f16 -> u8"), ("i32", "f16", "i32 -> f32 -> f16")],
)
def test_illegal_pairs_name_the_legal_ones_and_a_detour(src: str, dst: str, detour: str) -> None:
    with pytest.raises(IllegalError, match=f"a5 has no cast {src} -> {dst}; from {src} it has: ") as caught:
        cast(np.zeros(3, np.float32 if src == "f32" else np.int32), src, dst, target=A5)
    assert detour in caught.value.message
    assert detour in caught.value.legal


def test_sources_without_any_cast() -> None:
    with pytest.raises(IllegalError, match="a5 has no cast from i4; it casts from: f32, f16, bf16"):
        lowerer().cast(make_cast("i4", "f16", FULL))


def test_modes_in_vain() -> None:
    assert warnings("f32", "e4m3fn", "floor") == "rounding FLOOR is ignored: f32 -> e4m3fn always rounds RINT"
    assert warnings("f32", "e4m3fn", "rint") == warnings("f32", "e4m3fn", "none") == warnings("f32", "e4m3fn") == ""
    assert warnings("f16", "hif8", "rint") == "rounding RINT is ignored: f16 -> hif8 always rounds ROUND"
    assert warnings("f16", "hif8", "round") == ""
    assert warnings("bf16", "f32", "round") == "rounding ROUND has no effect: bf16 -> f32 never rounds"
    assert warnings("i32", "i16", "ceil") == "rounding CEIL has no effect: i32 -> i16 never rounds"
    assert "ODD becomes TRUNC: f32 -> i32 has RINT, ROUND" in warnings("f32", "i32", "odd")
    assert "ODD becomes RINT" in warnings("f32", "bf16", "odd")
    assert warnings("f32", "f16", "odd") == ""


def test_saturation_in_vain() -> None:
    for src, dst in (("f32", "e4m3fn"), ("f16", "hif8"), ("bf16", "e2m1"), ("f16", "f32"), ("i16", "u32")):
        assert warnings(src, dst, None, "off").startswith(f"saturation OFF has no effect: {src} -> {dst}")
    for src, dst in (("f32", "e4m3fn"), ("f16", "hif8"), ("bf16", "e2m1"), ("i16", "u32")):
        assert warnings(src, dst, None, "on") == ""  # it clamps as ON asks, whatever it is that does it
    assert "saturation ON has no effect" in warnings("f16", "f32", None, "on")
    assert "saturation ON has no effect" in warnings("f32", "e4m3fn", None, "on", ctrl_60_at_start=0)
    assert "saturation OFF has no effect" in warnings("f32", "f16", None, "off")
    assert warnings("f32", "f16", None, "on") == ""
    assert "saturation ON has no effect" in warnings("bf16", "f16", None, "on", ctrl_60_at_start=0)
    assert warnings("bf16", "f16", None, "on") == ""
    assert warnings("f32", "i32", None, "off") == warnings("i64", "i32", None, "on") == ""
    assert "saturation OFF" in warnings("f32", "i32", None, "off", control_writes="suppressed")


def test_a_tmp_tile_is_ignored_with_a_warning() -> None:
    plain = make_cast("f32", "i16", FULL)
    with_tmp = replace(plain, tmp=tile("tmp", "i32", Shape(1, 8, 1, 8), 0))  # too small, and over the source
    lowered = lowerer().cast(with_tmp)
    assert lowered.warnings == ("the tmp tile is ignored: casts on a5 need no scratch",)
    assert lowered.accesses == lowerer().cast(plain).accesses


def refused(cast_: TileCast, message: str) -> None:
    with pytest.raises(TileError, match=message) as caught:
        lowerer().cast(cast_)
    assert caught.value.span == SPAN


def test_tiles_that_do_not_fit() -> None:
    refused(make_cast("f32", "f16", Shape(2, 20, 2, 20)), "%src: 20 x f32 is 80 bytes per line, not a multiple of 32")
    refused(make_cast("bf16", "e2m1", Shape(2, 32, 2, 32)), "%dst: 32 x e2m1 is 16 bytes per line")
    refused(make_cast("f32", "f16", FULL, places=(16, 4096)), "%src starts at byte 16, which is not 32-byte aligned")
    refused(make_cast("f32", "f16", FULL, places=(0, UB - 32)), "the buffer has 262144")
    refused(make_cast("f32", "f16", FULL, places=(0, 1024)), "%dst .* partly overlaps its source %src")
    refused(make_cast("f16", "f32", FULL, places=(0, 0)), "partly overlaps")
    odd = make_cast("f32", "f16", FULL)
    refused(replace(odd, dst=replace(odd.dst, valid_cols=128)), "valid region of %src is 2 x 256, of %dst 2 x 128")
    column = replace(odd.src, type=replace(odd.src.type, block_layout="col_major", rows=8))
    refused(replace(odd, src=replace(column, type=replace(column.type, rows=64))), "col_major; tcvt takes row_major")


def test_the_zero_fill_and_its_neighbours() -> None:
    refused(make_cast("bf16", "e2m1", FULL, places=(0, 0)), "%dst is cleared before %src is read")
    small = Shape(1, 64, 1, 64)
    refused(
        make_cast("bf16", "e2m1", small, places=(0, UB - 64)), "the zero fill of %dst writes bytes 262080 .. 262335"
    )
    # Destination in front of its source: the fill reaches the source before it is read.
    hit = lowerer().cast(make_cast("bf16", "e2m1", small, places=(32, 0)))
    assert "writes 224 bytes past the end of %dst, the first 128 bytes of %src among them" in hit.warnings[0]
    assert hit.shortcut is None
    assert max(access.end for access in hit.accesses if access.write) == 256


def test_an_odd_last_column_of_4_bits_is_dropped_with_a_warning() -> None:
    odd = lowerer(zero_fill_last_store="limited").cast(make_cast("bf16", "e2m1", Shape(2, 64, 2, 33)))
    assert odd.warnings == ("%dst has 33 valid columns: the other half of the last byte becomes 0",)
    assert lowerer().cast(make_cast("e2m1", "bf16", Shape(2, 64, 2, 33))).warnings == ()


def test_narrowing_in_place_runs_and_says_so() -> None:
    lowered = check(make_cast("f32", "e4m3fn", FULL, places=(0, 0)), source_codes("f32", "e4m3fn"))
    assert "narrowed in place" in lowered.warnings[0]


def transfer(tile_pad: int, element: str) -> TileTransfer:
    kind = TileType("vec", element, 2, 16, 2, 16, pad=tile_pad)
    made = replace(tile("t", element, Shape(2, 16, 2, 16), 0), type=kind)
    part = Part("x", format_named(element), 0, (1, 1, 1, 2, 16), (32, 32, 32, 16, 1), "nd")
    return TileTransfer(made, part, True, SPAN)


def test_64_bit_loads_are_padded_with_zero_or_not_at_all() -> None:
    for pad in (2, 3):
        with pytest.raises(TileError, match="i64 can be padded only with zero"):
            lowerer().transfer(transfer(pad, "i64"))
    lowerer().transfer(transfer(1, "i64"))
    lowerer().transfer(transfer(3, "f32"))


def test_elementwise_reports_what_was_in_force() -> None:
    codes = np.zeros(3, np.uint32)
    asked = cast_on_target(
        codes, format_named("f32"), format_named("i16"), A5, rounding="odd", saturation=Saturation.OFF, scratch=True
    )
    assert (asked.rounding, asked.saturation, asked.overflow.value) == ("trunc", "off", "wrap")
    assert len(asked.warnings) == 2
    assert RoundMode.ODD.name in asked.warnings[0]
    for start, overflow in ((1, "saturate"), (0, "special")):
        chip = with_options(A5, {"ctrl_60_at_start": start})
        found = cast_on_target(codes, format_named("f32"), format_named("hif8"), chip)
        assert (found.rounding, found.overflow.value) == ("round", overflow)


def test_elementwise_takes_any_shape() -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3) - 0.5
    assert cast(values, "f32", "f16", target="a5").tolist() == values.tolist()
    assert cast(np.float32(2.5), "f32", "i32", target="a5").item() == 2
    assert cast(np.zeros((0, 4), np.float32), "f32", "f16", target="a5").shape == (0, 4)


@pytest.mark.parametrize(
    ("pairs", "src", "dst", "said", "unsaid"),
    [
        # i8 is exact in f16: i8 -> f16 -> i4 rounds nowhere; u8 has no negative numbers.
        ([("i8", "f16"), ("i8", "u8"), ("f16", "i4"), ("u8", "i4")], "i8", "i4", "i8 -> f16 -> i4 (the first", "u8 ->"),
        # Through u8 nothing of f16 is left; through f32 everything is.
        ([("bf16", "u8"), ("bf16", "f32"), ("u8", "f16"), ("f32", "f16")], "bf16", "f16", "-> f32 -> f16", "-> u8 ->"),
        (
            [("f32", "f16"), ("f32", "i4"), ("f16", "i8"), ("i4", "i8")], "f32", "i8", "f16 -> i8 (rounds twice)",
            "i4 ->",
        ),
    ],
)  # fmt: skip
def test_detours_keep_values(pairs: list[tuple[str, str]], src: str, dst: str, said: str, unsaid: str) -> None:
    error = no_such_pair("chip", pairs, src, dst)
    assert said in error.message
    assert unsaid not in error.message
