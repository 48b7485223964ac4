"""Derived descriptions: changed numbers need a source of their own; what no machine takes or can read is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from castsim.__main__ import main
from castsim.isa.errors import TargetDataError
from castsim.targets.loader import load_target

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
    assert error.span is not None
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
    assert error.span is not None
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
    assert error.span is not None
    assert error.span.line >= 3


@pytest.mark.parametrize("base", ["x\\u0000y", "y" * 5000])
def test_bases_that_are_no_names(base: str, tmp_path: Path) -> None:
    assert "base" in refused(derived(tmp_path, base, "")).message


def test_a_long_chain_of_bases(tmp_path: Path) -> None:
    for number in range(2000):
        (tmp_path / f"t{number}.toml").write_text(f'base = "t{number + 1}.toml"\nname = "m"\n', encoding="utf-8")
    assert "build on each other" in refused(tmp_path / "t0.toml").message


def test_a_table_with_an_absurd_cell(tmp_path: Path) -> None:
    (tmp_path / "big.csv").write_text(f"src,dst\n{'9' * 5000},f16\n", encoding="utf-8")
    error = refused(derived(tmp_path, "a2a3", f'[casts]\ntable = "big.csv"\n{SAID}'))
    assert error.span is not None
    assert (Path(error.span.file).name, error.span.line) == ("big.csv", 2)


@pytest.mark.parametrize("column", ["measured_cycles", "rows"])
def test_a_table_of_measurements_with_an_absurd_number(
    column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = {"op": "TCVT", "src": "f32", "dst": "f16", "rows": "4", "cols": "64", "measured_cycles": "33"}
    cells[column] = "9" * 5000
    file = tmp_path / "mine.csv"
    file.write_text(f"{','.join(cells)}\n{','.join(cells.values())}\n", encoding="utf-8")
    assert main(["accuracy", "--target", "a2a3", "--data", str(file)]) == 2
    said = capsys.readouterr().err
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
