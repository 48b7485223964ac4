"""CONVERT forms that compiler output shows and the intrinsic header lacks: text, bits, values, notices."""

from __future__ import annotations

import re

import numpy as np
import pytest
from core.machines.vliw.test_tpc_semantics_convert import grouped
from kit.tpc_machine import END, nops, ran
from kit.tpc_semantics_cases import instruction, run, samples, vector
from kit.tpc_text import GENERATIONS, dialect, plain, program, table, target
from oracle_formats import fmt
from oracle_tpc import convert, convert_lanes

from castsim.isa.errors import IllegalError
from castsim.isa.tpc.parser import canonical_text
from castsim.machines.vliw.semantics import prepare
from castsim.targets.description import with_options
from castsim.tools.tpc_binary.assembler import assemble, disassemble
from castsim.tools.tpc_binary.encoding_tables import encoding_of

ROWS = table("tpc_convert_compiler_only.csv")
INCOME = np.random.default_rng(8).integers(0, 256, (4, 256)).astype(np.uint8)
MASK = np.random.default_rng(9).integers(0, 2, 256).astype(bool)


def name_of(row: dict[str, str]) -> str:
    return "-".join(row[key] for key in ("gen", "unit", "src", "dst", "form")).replace(" ", "_")


def widths(row: dict[str, str]) -> tuple[int, int]:
    return fmt(row["src"]).bits, fmt(row["dst"]).bits


def groups(row: dict[str, str]) -> tuple[int, int]:
    """Registers of destination and source in a printed line: those its operands name, else those of all_lanes."""
    if re.search("%[DA]", row["printed_line"]):
        first, second = re.findall(r"%([DA])", row["printed_line"])
        return {"D": 2, "A": 4}[first], {"D": 2, "A": 4}[second]
    src, dst = widths(row)
    if row["form"] != "all_lanes" or src == dst:
        return 1, 1
    return (1, src // dst) if src > dst else (dst // src, 1)


def line(row: dict[str, str], predicate: str = "") -> str:
    """The printed line with registers in place of what the vendor's test hides."""
    dest, source = groups(row)
    files = {1: "S" if row["unit"] == "spu" else "V", 2: "D", 4: "A"}
    operands = re.search(r" (?:%\w+|_)(?:,|$)", row["printed_line"])
    assert operands is not None
    return f"{row['printed_line'][: operands.start()]} {files[dest]}8, {files[source]}16{predicate}"


def predicates(row: dict[str, str]) -> str:
    """The third operand of a printed line, with a register."""
    third = row["printed_line"].split(", ")[2:]
    return "" if not third else ", !SP3" if third[0].startswith("!") else ", SP3"


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_every_row_is_canonical_text_and_comes_back_from_its_bits(row: dict[str, str]) -> None:
    encoding = encoding_of(target(row["gen"]))
    text = line(row, predicates(row))
    given = f"nop; {text}; nop; nop" if row["unit"] == "spu" else f"nop; nop; {text}; nop"
    bundle = given.replace("lane_sel=0 ", "")  # the compiler prints the default in places, canonical text omits it
    assert plain(canonical_text(given, dialect(row["gen"]))) == plain(bundle)
    code = assemble(program(bundle, row["gen"]), encoding).code
    (back,) = disassemble(code, encoding).lines
    src, dst = widths(row)
    shown = bundle
    if src == dst:  # no bit holds the number of registers: they come back as the first one of each group
        shown = re.sub(r"\b[DA](8|16)\b", r"V\1", bundle)
    assert back.known
    assert plain(back.text) == plain(shown)
    assert assemble(program(back.text, row["gen"]), encoding).code == code


def lane_of(row: dict[str, str]) -> int | None:
    """The lane that the form converts, of two; None for all of them."""
    found = re.search(r"lane_sel=(\d)", row["form"])
    return None if row["form"] == "all_lanes" else int(found[1]) % 2 if found else 0


def meant(row: dict[str, str]) -> str:
    """The rounding mode: none printed is the register's, to nearest even after reset."""
    found = re.search(r" (rhne|rz)\b", row["printed_line"])
    return found[1].upper() if found else "RHNE"


@pytest.mark.parametrize("row", [row for row in ROWS if row["unit"] == "vpu"], ids=name_of)
@pytest.mark.parametrize("mask", [None, MASK], ids=["whole", "masked"])
def test_vector_values_are_those_of_the_rules(row: dict[str, str], mask: np.ndarray | None) -> None:
    dest, source = groups(row)
    given = [vector(np.roll(samples(row["src"]), shift), widths(row)[0]) for shift in range(source)]
    income = list(INCOME[:dest])
    predicate = True if mask is None else mask
    got = run(line(row), row["gen"], income=grouped(income), predicate=predicate, src_a=grouped(given))
    read, old = ([each.tobytes() for each in some] for some in (given, income))
    bits = None if mask is None else mask.tolist()
    expected = convert_lanes(
        read, old, widths(row), lane_of(row), bits, lambda code, *_: convert(code, row["src"], row["dst"], meant(row))
    )
    found = got.result if isinstance(got.result, tuple) else (got.result,)
    assert [each.tobytes() for each in found] == expected


@pytest.mark.parametrize("row", [row for row in ROWS if row["unit"] == "spu"], ids=name_of)
def test_scalar_values_are_those_of_the_rules(row: dict[str, str]) -> None:
    if row["dst"] not in target(row["gen"]).elements.formats:  # a slip of the vendor: Goya has no bf16
        with pytest.raises(IllegalError, match="goya has no scalar conversion i32 -> bf16"):
            prepare(instruction(line(row), row["gen"], "spu"), target(row["gen"]))
        return
    low = (1 << widths(row)[1]) - 1
    for code in samples(row["src"]):
        got = run(line(row), row["gen"], slot="spu", income=0, src_a=code)
        assert isinstance(got.result, int)
        assert got.result & low == convert(code, row["src"], row["dst"], meant(row))


KINDS = {"all_lanes": "compiler form", "lane_sel beyond": "lane beyond the pair", "pair absent": "compiler form"}


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_every_row_has_a_notice_of_its_kind(row: dict[str, str]) -> None:
    if row["dst"] not in target(row["gen"]).elements.formats:
        return
    found = prepare(instruction(line(row), row["gen"], row["unit"]), target(row["gen"])).notices
    kind = next(kind for start, kind in KINDS.items() if row["kind"].startswith(start))
    assert kind in [notice.kind for notice in found]
    if row["kind"].startswith("lane_sel beyond"):
        with pytest.raises(IllegalError, match="has no lane_sel"):
            strict = with_options(target(row["gen"]), {"lane_beyond_pair": "refuse"})
            prepare(instruction(line(row), row["gen"], row["unit"]), strict)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_assembling_pairs_on_one_width_says_that_no_bit_holds_them(generation: str) -> None:
    encoding = encoding_of(target(generation))
    for operands, said in (("D8, D16", True), ("V8, V16", False)):
        text = f"nop; nop; convert.f32 all_lanes target_type=int32 {operands}; nop"
        assumed = assemble(program(text, generation), encoding).assumed
        assert any("number of registers" in item for item in assumed) == said
    text = "nop; nop; convert.f32 all_lanes target_type=bf16 V8, D16; nop"
    assert assemble(program(text, "gaudi"), encoding_of(target("gaudi"))).assumed == ()


def test_mixed_groups_on_one_width_are_refused() -> None:
    head = "convert.f32 all_lanes target_type=int32"
    for text in ("A8, D16", "D8, A16"):
        with pytest.raises(IllegalError, match="has 2 registers; it needs 4"):
            prepare(instruction(f"{head} {text}"), target("gaudi2"))
    for text in ("V8, D16", "D8, V16"):  # a V names the first register of a group, as in the other all_lanes forms
        groups = prepare(instruction(f"{head} {text}"), target("gaudi2")).registers
        named = {role: [str(register) for register in group] for role, group in groups.items()}
        assert named == {"dest": ["V8", "V9"], "src_a": ["V16", "V17"]}


PROGRAM = (
    "// castsim: target greco\n// castsim: tensor 0 x in u16 [128]\n// castsim: tensor 1 y out u32 [64]\n"
    f"ld_tnsr V2, 0x0, I0; nop; nop; nop\n{nops(3)}"
    f"nop; nop; convert.u16 all_lanes target_type=uint32 D4, V2; nop\n{nops(3)}"
    f"nop; nop; nop; st_tnsr 0x1, I0, V5\n{END}"
)


@pytest.mark.parametrize("values", [True, False])
def test_a_run_warns_of_the_form_whether_or_not_it_has_values(values: bool) -> None:
    inputs = {"x": np.arange(1000, 1128, dtype=np.uint16)} if values else {}
    result = ran(PROGRAM, "greco", inputs, values=values)
    (warning,) = result.warnings
    assert re.search(r"test.tpc:8:\d+: convert: compiler form: .*u16 -> u32", warning)
    if values:
        assert result.outputs["y"].tolist() == list(range(1001, 1128, 2))
