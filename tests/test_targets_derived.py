"""Targets derived from others, compared with each other, and the tables beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_output import document_of, err_of, out_of

from castsim.__main__ import main
from castsim.isa.errors import TargetDataError
from castsim.isa.formats import FORMATS, format_named
from castsim.targets import tpc_compiler
from castsim.targets.loader import load_target
from castsim.targets.tpc_compiler import BuiltinRounding, CType, c_types

SAID = 'source = "mine"\nstatus = "assumed"\n'


def derived(folder: Path, base: str, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(f'base = "{base}"\nname = "mine"\n{text}', encoding="utf-8")
    return path


def refused(path: Path) -> TargetDataError:
    with pytest.raises(TargetDataError) as caught:
        load_target(path)
    assert caught.value.exit_code == 2
    return caught.value


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
        rows = (Path(__file__).parents[1] / "targets" / "tpc_convert_goya.csv").read_text(encoding="utf-8").splitlines()
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


@pytest.mark.parametrize("base", ["x\\u0000y", "y" * 5000])
def test_bases_that_are_no_names(base: str, tmp_path: Path) -> None:
    assert "base" in refused(derived(tmp_path, base, "")).message


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
    path = Path(__file__).parents[1] / "programs" / "kernels" / f"{program}.pto"
    code = main(["run", str(path), "--timing-only", "--arg", f"{name}={text}"])
    said = capsys.readouterr().err
    assert code in (0, 2)
    assert "internal error" not in said


# ---------------------- The comparison of A2/A3 and A5 against the table of the published `pto.tcvt` page, cell by cell


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
"""  # noqa: E501 - the page's own rows

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


def test_text_lists_every_source_once(capsys):
    lines = out_of(capsys, ["targets", "--diff", "a2a3", "a5"]).splitlines()
    assert [line.split()[0] for line in lines if line.split() and line.split()[0] in FORMATS].count("f32") >= 1


@pytest.mark.parametrize(
    ("line", "words"),
    [("targets --diff a2a3 a6", "unknown target"), ("targets a5 --diff a2a3 a5", "takes nothing else")],
)
def test_wrong_input(line, words, capsys):
    assert words in err_of(capsys, line.split())


def test_changed_facts_are_shown(tmp_path, capsys):
    mine = tmp_path / "mine.toml"
    mine.write_text(
        'base = "a5"\nname = "mine"\n[timing.store_barrier]\ncycles = 99\nsource = "a guess"\nstatus = "assumed"\n'
    )
    (fact,) = document_of(capsys, "targets", "--diff", "a5", str(mine))["facts"]
    assert (fact["name"], fact["second"]["cycles"]) == ("timing.store_barrier", 99)
    assert fact["first"]["cycles"] != 99
    assert "timing.store_barrier" in out_of(capsys, ["targets", "--diff", "a5", str(mine)])
    assert "facts: the same" in out_of(capsys, ["targets", "--diff", "a5", "a5"])


# ---------------------------------------------------- CSV tables beside the targets: cells checked, what is wrong named


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
    (tmp_path / "types.csv").write_text("name,element,promotion,status,source\n" + text)
    with pytest.raises(TargetDataError, match=rf"^types\.csv: {message}"):
        tpc_compiler.csv_rows("types.csv", CType)


def test_a_cell_without_a_column_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpc_compiler, "SHIPPED", tmp_path)
    (tmp_path / "r.csv").write_text("generation,mode,build_options,status,source\ngoya,rhne,,documented,x,y\n")
    with pytest.raises(TargetDataError, match=r"^r\.csv: row 0"):
        tpc_compiler.csv_rows("r.csv", BuiltinRounding)


def test_a_table_is_read_once() -> None:
    assert c_types() is c_types()
