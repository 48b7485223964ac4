"""`castsim check`: all errors of a file in one pass, at places told by hand, none that only follows from another."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.check_cases import ASSEMBLY, MICRO, TILES, TOSA, unmarked
from kit.command_output import Capture, document_of, err_of, out_of
from kit.paths import PROGRAMS, ROOT

from castsim.__main__ import main
from castsim.isa.errors import Severity
from castsim.tools.check.checking import check, check_text, files_of

CASES = [
    *((f"{name}.pto", text) for name, text in (TILES | MICRO).items()),
    *((f"{name}.tpc", text) for name, text in ASSEMBLY.items()),
    *((f"{name}.mlir", text) for name, text in TOSA.items()),
]
DELIBERATE = "tpc_f32_i32_pipelined_stale_goya.tpc"
"""The sample that shows what stale reads are."""

SAMPLES = sorted(
    path for suffix in ("pto", "tpc", "mlir") for path in PROGRAMS.rglob(f"*.{suffix}") if path.name != DELIBERATE
)


@pytest.mark.parametrize(("name", "marked"), CASES, ids=[name for name, _ in CASES])
def test_every_error_is_found_where_it_is_and_no_other(name: str, marked: str) -> None:
    text, places = unmarked(marked)
    found = [one for one in check_text(name, text) if one.severity is Severity.ERROR]
    assert {(one.line, one.column, one.end_column) for one in found} == places, [one.message for one in found]
    assert all(one.message and one.kind and one.file == name for one in found)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_samples_have_no_errors(path: Path) -> None:
    assert [one.message for one in check(path) if one.severity is Severity.ERROR] == []


def test_the_stale_sample_is_found_stale() -> None:
    findings = check(PROGRAMS / DELIBERATE)
    assert {one.kind for one in findings} == {"stale read"}
    assert all(len(repr(one)) < 200 and "\n" not in repr(one) for one in findings)


def test_targets_are_checked_key_by_key(tmp_path: Path) -> None:
    path = tmp_path / "chip.toml"
    path.write_text('base = "a2a3"\n\n[frequency]\nmegahertz = "fast"\nstatas = "documented"\n', encoding="utf-8")
    found = check(path)
    assert {one.exit_code for one in found} == {2}
    assert {(one.line, one.column) for one in found} >= {(4, 1), (5, 1)}


def test_what_cannot_be_read_or_holds_no_function_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("hello")
    for name in ("missing.pto", ".", "x.txt"):
        assert [(one.line, one.exit_code) for one in check(tmp_path / name)] == [(None, 2)]
    for text in ("", "// nothing\n", "module {\n}\n"):
        found = check_text("empty.pto", text)
        assert [(one.severity, one.message) for one in found] == [("error", "no function to run")]


def written(folder: Path, name: str, marked: str) -> str:
    path = folder / name
    path.write_text(unmarked(marked)[0], encoding="utf-8")
    return str(path)


LEGAL = "func.func @k() {\n  return\n}\n"
REFUSED, MALFORMED = TILES["three casts, two of them lacking"], TILES["no function"]


@pytest.mark.parametrize(
    ("texts", "code"),
    [((LEGAL,), 0), ((REFUSED,), 1), ((MALFORMED,), 2), ((LEGAL, REFUSED), 1), ((REFUSED, MALFORMED, LEGAL), 2)],
)
def test_the_highest_exit_code_counts(texts: tuple[str, ...], code: int, tmp_path: Path) -> None:
    files = [written(tmp_path, f"{number}.pto", text) for number, text in enumerate(texts)]
    assert main(["check", *files]) == code


def test_json_has_the_keys_that_are_documented(tmp_path: Path, capsys: Capture) -> None:
    file = written(tmp_path, "k.pto", TILES["an unknown type"])
    document = document_of(capsys, "check", file, code=2)
    assert list(document) == ["schema_version", "findings"]
    (finding,) = document["findings"]
    assert list(finding) == [
        "severity", "kind", "message", "file", "line", "column", "end_column", "help", "legal",
    ]  # fmt: skip
    assert (finding["severity"], finding["file"], finding["legal"]) == ("error", file, ["index"])
    assert json.loads(out_of(capsys, ["check", file, "--format", "json"], 2)) == document


def test_columns_are_code_points(tmp_path: Path) -> None:
    first, second = check_text("k.pto", "func.func @k() {\n  //\U0001f600\n  \U0001f600 pto.tfoo\n  return\n}\n")
    assert (first.line, first.column, first.end_column) == (3, 3, 4)
    assert (second.line, second.column, second.end_column) == (3, 5, 13)


def test_annotations_of_github_escape_and_their_titles_say_what_is_wrong(tmp_path: Path, capsys: Capture) -> None:
    file = written(tmp_path, "a,b:c.pto", TILES["undefined operand"])
    (line,) = out_of(capsys, ["check", file, "--format", "github"], 2).splitlines()
    assert re.match(
        r"::error file=.*a%2Cb%3Ac\.pto,line=10,col=22,.*title=castsim%3A %25zz is not defined here::", line
    )
    assert line.partition("::error ")[2].partition("::")[2].startswith("%25zz is not defined here")


def test_sarif_is_well_formed(tmp_path: Path, capsys: Capture) -> None:
    """The properties that SARIF 2.1.0 requires (3.13, 3.14, 3.27, 3.28 to 3.30), with URIs escaped."""
    file = written(tmp_path, "a b.pto", TILES["two functions"])
    document = json.loads(out_of(capsys, ["check", file, str(tmp_path / "none.pto"), "--format", "sarif"], 2))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert run["columnKind"] == "unicodeCodePoints"
    assert len(run["results"]) == 3
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        place = result["locations"][0]["physicalLocation"]
        assert " " not in place["artifactLocation"]["uri"]
        if "region" in place:
            assert 0 < place["region"]["startColumn"] < place["region"]["endColumn"]


def test_race_is_an_error_and_names_what_is_missing(tmp_path: Path) -> None:
    text = (PROGRAMS / "f32_to_f16_pipelined.pto").read_text(encoding="utf-8")
    lines = text.split("\n")
    flag = next(number for number, line in enumerate(lines) if "pto.wait_flag" in line and "MTE2" in line)
    found = check_text("k.pto", "\n".join(lines[:flag] + lines[flag + 1 :]))
    assert any(one.exit_code == 1 for one in found)


def test_run_shows_all_errors(tmp_path: Path, capsys: Capture) -> None:
    file = written(tmp_path, "k.pto", TILES["body of a loop"])
    assert err_of(capsys, ["run", file, "--timing-only"]).count("error: ") == 3


TEXTS = [(path.name, path.read_text(encoding="utf-8")) for path in SAMPLES if path.suffix != ".mlir"]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(TEXTS), st.data())
def test_broken_samples_give_findings_inside_of_the_file(sample: tuple[str, str], data: st.DataObject) -> None:
    name, text = sample
    words = text.split(" ")
    place = data.draw(st.integers(0, len(words) - 1))
    change = data.draw(st.sampled_from(["drop", "double", "swap", "cut"]))
    if change == "drop":
        del words[place]
    elif change == "double":
        words.insert(place, words[place])
    elif change == "swap":
        other = data.draw(st.integers(0, len(words) - 1))
        words[place], words[other] = words[other], words[place]
    else:
        del words[place:]
    broken = " ".join(words)
    lines = broken.split("\n")
    for one in check_text(name, broken):
        assert one.line is None or (one.file == name and 1 <= one.line <= len(lines))
        if one.line is not None and one.column is not None and one.end_column is not None:
            assert 1 <= one.column < one.end_column <= len(lines[one.line - 1]) + 2


UNKNOWN_VALUES = """func.func @k(
    %p: !pto.ptr<i32>, %q: !pto.ptr<i32>, %y: !pto.ptr<f32>, %n: index
) attributes {pto.entry} {
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c8 = arith.constant 8 : index
%c64 = arith.constant 64 : index
%vp = pto.make_tensor_view %p, shape = [%c8, %c8], strides = [%c8, %c1] : !pto.tensor_view<?x?xi32>
%i = pto.load_scalar %p[%c64] : !pto.ptr<i32> -> i32
%ix = arith.index_cast %i : i32 to index
%j = pto.load_scalar %q[%ix] : !pto.ptr<i32> -> i32
%jx = arith.index_cast %j : i32 to index
%yy = pto.addptr %y, %jx : !pto.ptr<f32> -> !pto.ptr<f32>
%vy = pto.make_tensor_view %yy, shape = [%c8, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
%big = arith.cmpi sgt, %jx, %c8 : index
scf.if %big {
%d = arith.addi %jx, %c1 : index
}
scf.for %k = %c0 to %c8 step %c1 {
%r = arith.remsi %k, %n : index
%o = arith.addi %r, %jx : index
%b = pto.load_scalar %q[%o] : !pto.ptr<i32> -> i32
}
return
}
"""


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_what_uses_a_value_left_out_as_unknown_is_left_out(target: str) -> None:
    found = check_text("k.pto", UNKNOWN_VALUES, target=target)
    assert [(one.severity, one.kind) for one in found] == [(Severity.NOTE, "not checked")]


def test_an_unknown_operation_hides_no_undefined_name() -> None:
    lines = "%t = pto.alloc_tile : T\n  pto.frobnicate ins(%t, %no : T, T) outs(%nor : T)"
    text = f"func.func @k() {{\n  {lines}\n  return\n}}\n"
    found = check_text("k.pto", text.replace("T", "!pto.tile_buf<vec, 16x64xf32>"))
    assert [one.message for one in found] == [
        "unknown operation pto.frobnicate", "%no is not defined here", "%nor is not defined here",
    ]  # fmt: skip
    found = check_text(
        "k.pto", "func.func @k() {\n  %a = pto.vfrob %b, %c : index\n  pto.use %a : index\n  return\n}\n"
    )
    assert [one.message.partition(" ")[0] for one in found if one.line == 2] == ["unknown", "%b", "%c"]
    assert not [one for one in found if "%a" in one.message]


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_source_line_is_cut_at_the_width_of_the_terminal(
    columns: int, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    blanks = " " * 30
    file = written(tmp_path, "k.pto", TILES["undefined operand"].replace("%zz", f"{blanks}%zz{blanks}// {'x' * 200}"))
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = out_of(capsys, ["check", file], 2).splitlines()
    (number,) = (number for number, line in enumerate(lines) if "%zz" in line and not line.startswith(file))
    assert len(lines[number]) <= columns
    assert lines[number].rstrip().endswith("...")
    start = lines[number].index("%zz")
    assert lines[number + 1].rstrip() == f"{' ' * start}^^^"


def test_the_hook_takes_every_language_of_kernels() -> None:
    hook = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    pattern = next(line.partition("files: ")[2] for line in hook.splitlines() if "files: " in line)
    assert all(re.search(pattern, name) for name in ("a/k.pto", "k.tpc", "k.c"))
    assert not re.search(pattern, "k.cc")


WITHOUT_TMP = """module attributes {pto.target_arch = "a5"} {
  func.func @k() attributes {pto.entry} {
    %x = arith.constant 1.0 : f32
    %a = pto.alloc_tile : !pto.tile_buf<vec, 32x64xf32>
    %m = pto.alloc_tile : !pto.tile_buf<vec, 32x1xf32, blayout=col_major>
    pto.texpands ins(%x : f32) outs(%a : !pto.tile_buf<vec, 32x64xf32>)
    pto.trowmax ins(%a : !pto.tile_buf<vec, 32x64xf32>) outs(%m : !pto.tile_buf<vec, 32x1xf32, blayout=col_major>)
    return
  }
}
"""


CAST = """func.func @main(%a: tensor<4xi32>) -> tensor<4xi8> {
  %0 = tosa.cast %a : (tensor<4xi32>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}
"""


def test_check_takes_the_option_that_its_help_names(tmp_path: Path, capsys: Capture) -> None:

    file = written(tmp_path, "k.pto", WITHOUT_TMP)
    cure = re.search("help: (--toolchain .*)", out_of(capsys, ["check", file], 2))
    assert cure is not None
    assert main(["check", file, *cure[1].split()]) == 0
    assert main(["check", file, "--toolchain", "2026-08"]) == 0
    assert "2026-08" in err_of(capsys, ["check", file, "--toolchain", "1999"])


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("k.pto", WITHOUT_TMP, ["--toolchain", "2026-07"]),
        ("k.tpc", "// castsim: target gaudi2\nnop; nop; nop; nop\nnop; halt; halt; nop\n", []),
        ("k.c", "void main(tensor x) { int5 i = {0}; }\n", ["--target", "gaudi2"]),
        ("my.toml", 'base = "a2a3"\nname = "mine"\n', []),
        ("k.mlir", CAST, []),
    ],
)  # fmt: skip
def test_a_byte_order_mark_is_no_part_of_a_text(name: str, text: str, words: list[str], tmp_path: Path) -> None:

    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    before = main(["check", str(file), *words])
    file.write_text(text, encoding="utf-8-sig")
    assert main(["check", str(file), *words]) == before == 0
    if name.endswith((".pto", ".tpc", ".c")):
        assert check_text(name, "\ufeff" + text) == check_text(name, text)


def test_a_folder_means_the_files_in_it(tmp_path: Path, capsys: Capture) -> None:
    folder, kernel = tmp_path / "kernels", (PROGRAMS / "f32_to_f16.pto").read_text()
    for name, text in {
        "b.pto": kernel, "a/z.tpc": "broken", "a/c.PTO": kernel, "notes.md": "", "a/sweep.toml": "[sweep]",
        ".git/x.pto": "no",
        "chip.toml": 'base = "a5"\nname = "chip"\n', "cut.toml": "[", ".hidden.pto": "no",
    }.items():  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "a" / "loop").symlink_to(folder, target_is_directory=True)
    walk = files_of([str(folder), str(folder / "b.pto")])
    assert [Path(one).relative_to(folder).as_posix() for one in walk.files] == [
        "b.pto", "chip.toml", "cut.toml", "a/c.PTO", "a/z.tpc",
    ]  # fmt: skip
    assert [Path(one).relative_to(folder).as_posix() for one in walk.skipped] == ["notes.md", "a/sweep.toml"]
    shown = out_of(capsys, ["check", str(folder)], 2)
    assert shown.startswith("2 errors in 5 files.\n")
    assert "\nskipped 2 files of no kind that castsim checks:" in shown
    assert shown.count(str(folder / "notes.md")) == 1
    found = {Path(one["file"]).name for one in document_of(capsys, "check", str(folder), code=2)["findings"]}
    assert found == {"cut.toml", "z.tpc"}
    (tmp_path / "empty").mkdir()
    assert "no file in" in err_of(capsys, ["check", str(tmp_path / "empty")])
