"""The README and the site: code blocks run, what pages are made of is complete, the strict build passes."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import importlib.util
import inspect
import io
import json
import os
import re
import shlex
import sys
from itertools import pairwise
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from kit.command_output import out_of
from kit.paths import PROGRAMS, ROOT
from makers import pictures
from makers.generated_pages import GENERATED, filled, pages
from makers.page_parts import FILES, MADE
from project.built_site import built_site

import castsim
from castsim.__main__ import main
from castsim.commands import feature as features
from castsim.commands.shared_options import OptionParser
from castsim.execution.timing import Cause
from castsim.isa.pto.micro_forms import ROWS
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.isa.tpc.instructions import mnemonics
from castsim.languages.vmi.operations import LEGACY, VMI_ROWS
from castsim.reports.pairs import pair_rows
from castsim.targets.loader import load_target, target_names
from castsim.tools.debugger.command import PROMPT
from castsim.tools.graphs import graph_execution
from castsim.tools.lowering.samples import all_codes

DOCS = ROOT / "docs"
OTHERWISE = {"measured.md": "campaigns of hours", "pytest-plugin.md": "test_pytest_plugin", "editors": "editors"}
"""Pages and folders whose code blocks are not run here, and why."""
PAGES = sorted(
    path for path in DOCS.rglob("*.md") if {path.relative_to(DOCS).as_posix(), path.parent.name}.isdisjoint(OTHERWISE)
)
NAMES = [path.relative_to(DOCS).as_posix() for path in PAGES if "\n```" in GENERATED.sub("", path.read_text())]
BLOCK = re.compile(r"(?:^<!-- (exit \d|setup) -->\n)?^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
needs_mkdocs = pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="needs the extra `docs`")


@pytest.fixture(scope="module")
def made():
    """Return the generators of the pages by their names."""
    return MADE


def some_codes(fmt):
    found = all_codes(fmt)
    return found if found is None or found.size <= 256 else found[::37]


def printed(source, names):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(source, "page", "exec"), names)
    return out.getvalue().splitlines()


def said(source):
    return [line.rsplit("  # ", 1)[1] for line in source.splitlines() if line.startswith("print(") and "  # " in line]


@pytest.mark.parametrize("page", NAMES)
def test_every_code_block_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(graph_execution, "all_codes", some_codes)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "programs").symlink_to(PROGRAMS)
    names = {}
    for mark, language, options, text in BLOCK.findall(GENERATED.sub("", (DOCS / page).read_text())):
        title = re.search(r'title="([\w.]+)"', options)
        if title:
            (tmp_path / title[1]).write_text(text)
        elif mark == "setup":
            assert text in (ROOT / "README.md").read_text()  # `.ci/run` executes that line
        elif language == "text":
            continue
        elif language == "console":
            for line in text.splitlines():
                typed, _, given = line.partition(" < ")
                if given:
                    monkeypatch.setattr(sys, "stdin", io.StringIO(Path(given).read_text()))
                typed, _, into = typed.partition(" > ")
                words = shlex.split(typed)
                assert words[0] == "castsim"
                capsys.readouterr()
                assert main(words[1:]) == int(mark.removeprefix("exit ") or 0), line
                if into:
                    Path(into).write_text(capsys.readouterr().out)
        else:
            assert language == "python", f"a block of {language or 'no language'} is not tried"
            assert printed(text, names)[-len(said(text)) or None :] == said(text)
    capsys.readouterr()


def test_messages_of_the_page_by_messages_are_said(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    sections = re.split(r"^## ", (DOCS / "how-to" / "troubleshooting.md").read_text(), flags=re.MULTILINE)[1:]
    assert len(sections) > 5
    for section in sections:
        [line] = re.findall(r"^castsim (.*)", section, re.MULTILINE)
        main(shlex.split(line))
        assert section.splitlines()[0] in "".join(capsys.readouterr()), line


def test_every_generated_part_is_shown(made):
    assert {name for path in pages() for name in GENERATED.findall(path.read_text())} == made.keys()


@pytest.mark.parametrize("page", [path.relative_to(DOCS).as_posix() for path in pages()])
def test_generated_parts_stand_in_the_pages_as_they_are_now(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    assert text == filled(text), "python tests generated_pages writes them anew"
    assert all(len(match[0].splitlines()) > 4 for match in GENERATED.finditer(text))


@pytest.mark.parametrize("name", FILES)
def test_data_files_are_as_they_are_now_and_linked(name):
    path = DOCS / "reference" / name
    assert path.read_text(encoding="utf-8") == FILES[name](), "python tests generated_pages writes them anew"
    assert any(f"]({name})" in page.read_text(encoding="utf-8") for page in path.parent.glob("*.md"))


def test_generated_parts_are_complete(made):
    commands, tiles = made["commands"](), made["tile-operations"]()
    micro, logical, assembly = (
        FILES[name]() for name in ("micro-operations.csv", "micro-logical.csv", "tpc-instructions.csv")
    )
    assert all(f"| `{name}` |" in commands for name in features.COMMANDS)
    assert all(f"`{operation.name}`" in tiles for operation in VECTOR_OPERATIONS.values())
    assert all(f"\npto.{name}," in micro for name in ROWS)
    assert all(f"\npto.vmi.{name}," in logical or name in LEGACY for name in VMI_ROWS)
    assert all(re.search(rf'^"?{re.escape(name)}[ .,]', assembly, re.MULTILINE) for name in mnemonics())
    options, explained = made["target-options"](), FILES["target-options.csv"]()
    for name in (name for target in target_names() for name in load_target(target).options):
        assert f"`{name}`" in options and f",{name}," in explained
    assert all(f"### castsim.{name}\n" in made["api"]() for name in castsim.__all__ if name != "__version__")


def test_all_pages_together_stay_short():
    every = (ROOT / "README.md", *DOCS.rglob("*.md"))
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in every) <= 55_000


WORDY = re.compile(
    r"\b([Ss]o that|[Ww]hoever|[Ss]omebody|(is|are) told|each its own|As for|Others:|The other side:|"
    r"stands (in|below|behind|beside))\b"
)
"""Phrases for which plain English has a shorter one."""


@pytest.mark.parametrize(
    "path", [*sorted(DOCS.rglob("*.md")), *ROOT.glob("*.md")], ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_pages_use_plain_words(path):
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert [match[0] for match in WORDY.finditer(" ".join(text.split()))] == []


def headings(path):
    """Yield the headings of the tables that a module of reports makes."""
    tree = ast.parse(path.read_text())
    tuples = {
        node.targets[0].id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple) and isinstance(node.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "table":
            for part in (inner for argument in node.args for inner in ast.walk(argument)):
                found = tuples.get(part.id) if isinstance(part, ast.Name) else part
                texts = found.elts if isinstance(found, ast.Tuple) else [found]
                yield from (
                    text.value.removeprefix(">")
                    for text in texts
                    if isinstance(text, ast.Constant) and isinstance(text.value, str)
                )


def test_the_glossary_defines_every_cause_and_column(made):
    causes, columns = made["causes"](), made["columns"]()
    assert all(f"### {cause}\n" in causes for cause in Cause)
    found = {text.strip() for path in (ROOT / "simulator").rglob("*.py") for text in headings(path)} - {""}
    assert len(found) > 60  # the search itself works
    missing = sorted(text for text in found if f"* `{text}`: " not in columns)
    assert not missing, f"tests/makers/page_parts/glossary.py does not define the columns {missing}"


def told(owner):
    """Return the fields below which a class says what they are, and the keys of a document, which have a meaning."""
    body = ast.parse(inspect.getsource(owner)).body[0].body
    pairs = [(first, second) for first, second in pairwise(body) if isinstance(first, ast.AnnAssign)]
    keys = {field.name for field in dataclasses.fields(owner) if getattr(field.metadata.get("json"), "text", "")}
    return keys | {first.target.id for first, second in pairs if isinstance(second, ast.Expr)}


def fields(owner):
    return [field.name for field in dataclasses.fields(owner)] if dataclasses.is_dataclass(owner) else []


def members(owner):
    for name, found in vars(owner).items():
        if not name.startswith("_") and (inspect.isfunction(found) or isinstance(found, property)):
            yield name, found


@pytest.mark.parametrize("name", [name for name in castsim.__all__ if name != "__version__"])
def test_every_public_name_has_a_docstring(name):
    found = getattr(castsim, name)
    assert inspect.getdoc(found)
    if inspect.isclass(found):
        assert all(inspect.getdoc(member) for _, member in members(found))
        text = inspect.getdoc(found)
        assert [field for field in fields(found) if field not in text and field not in told(found)] == []


FUNCTIONS = [name for name in castsim.__all__ if inspect.isfunction(getattr(castsim, name))]


UNITS = {"rows": "elements", "row_stride": "elements", "limit": "bytes", "x": "elements", "array": "shape"}
"""Parameters that have a unit or a shape, which their functions state."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_say_what_they_take_and_return_and_refuse(name):
    found = getattr(castsim, name)
    text, parameters = inspect.getdoc(found), inspect.signature(found).parameters
    taken = text.partition("Args:\n")[2].partition("Raises:")[0]
    told_of = {word for line in re.findall(r"^    (\w[\w, ]*):", taken, re.M) for word in line.split(", ")}
    assert set(parameters) <= told_of
    assert all(UNITS[each] in taken for each in parameters if each in UNITS)
    assert "Raises:\n" in text or not parameters
    assert "Returns:\n" in text or text.startswith("Return") or inspect.isgeneratorfunction(inspect.unwrap(found))


@pytest.mark.parametrize("name", [name for name in castsim.__all__ if inspect.isclass(getattr(castsim, name))])
def test_methods_of_results_say_what_they_return(name):
    for member, found in members(getattr(castsim, name)):
        text = inspect.getdoc(found)
        assert text[0].isupper() and text.rstrip().endswith((".", ":")) and len(text.split()) > 4, member
        if member in ("cycles", "pipes"):
            assert "cycles" in text.lower(), member


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return built_site(tmp_path_factory)


@needs_mkdocs
@pytest.mark.parametrize("words", ["saturation", "tmp", "stale read"])
def test_search_finds(site, words):
    index = json.loads((site / "search" / "search_index.json").read_text())
    found = {
        entry["location"].partition("#")[0]
        for entry in index["docs"]
        if words in f"{entry['title']} {entry['text']}".lower()
    }
    assert "glossary.html" in found and len(found) > 3
    assert (site / "search" / "search_index.js").read_text().startswith("var __index = ")  # the search of files on disk


@needs_mkdocs
def test_casts_at_a_glance_show_every_cast_of_every_chip(site):
    """Ties of casts that round to nearest, and what is beyond the range, are those of NumPy and ml_dtypes."""
    text = (site / "assets" / "casts.js").read_text(encoding="utf-8")
    chips = json.loads(text[text.index("CHIPS = ") + 8 :].rstrip(";\n"))
    assert [chip["name"] for chip in chips] == list(target_names())
    kinds = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3fn": ml_dtypes.float8_e4m3fn, "f32": np.float32}
    compared = 0
    for chip in chips:
        rows = pair_rows(load_target(chip["name"]))
        assert [(cast["src"], cast["dst"]) for cast in chip["casts"]] == [(row.src, row.dst) for row in rows]
        for cast in chip["casts"]:
            src, dst = kinds.get(cast["src"]), kinds.get(cast["dst"])
            nearest = cast["default"] in ("rint", "csr")
            for given, bits, _, made, outcome, _ in cast["results"]["default"] if src and dst and nearest else ():
                array = np.array([int(bits, 16)], f"u{np.dtype(src).itemsize}").view(src)
                assert float(array[0]) == pytest.approx(float(given), rel=1e-11, nan_ok=True)
                if outcome in ("exact", "rounded") and given != "nan":  # payloads of NaN differ
                    whole = np.rint(array) if src is dst else array  # f32 -> f32 of Ascend rounds to integers
                    exact = whole.astype(dst).view(f"u{np.dtype(dst).itemsize}")[0]
                    assert int(made, 16) == exact, (chip["name"], cast["src"], cast["dst"], given)
                    compared += 1
    assert compared > 100


@needs_mkdocs
def test_the_site_opens_from_disk(site):
    pages = [*site.rglob("*.html")]
    assert len(pages) > 30
    for page in pages:
        text = page.read_text()
        loaded = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="([^"]+)"', text)
        assert not [target for target in loaded if re.match(r"(?:https?:)?//", target)], page.name
        if page.name != "404.html":
            assert all((page.parent / target.partition("?")[0]).exists() for target in loaded), page.name


@needs_mkdocs
def test_every_public_name_is_on_the_page_of_python(site):
    text = (site / "api.html").read_text()
    assert all(f'id="castsim{name.lower()}"' in text for name in castsim.__all__ if name != "__version__")


@needs_mkdocs
def test_the_page_of_the_command_line_explains_every_option(site):
    text = (site / "cli.html").read_text()
    for feature in features.shipped_features():
        name = feature.name
        parser = OptionParser(prog=name, add_help=False)
        feature.declare(parser)
        for action in parser._actions:
            anchor = f"{name}-{(action.option_strings or [action.dest])[-1].strip('-')}"
            assert re.search(rf'<dt id="{re.escape(anchor)}">.*?</dt>\s*<dd>\w?[^<]{{3,}}\.</dd>', text), anchor


@needs_mkdocs
def test_pages_of_the_root_folder_are_on_the_site(site):
    assert "Rules that tests enforce" in (site / "contributing.html").read_text()
    assert 'href="security.html"' in (site / "changes.html").read_text()
    assert max(len((ROOT / name).read_text().split()) for name in ("CONTRIBUTING.md", "CHANGELOG.md")) < 900


THOROUGH = "CASTSIM_THOROUGH" in os.environ
README = (ROOT / "README.md").read_text()
KERNELS = (ROOT / "docs" / "how-to" / "kernel-author.md").read_text()
SETUP = re.findall(r"<!-- setup: (\w+) -->\n```console\n(.*?)\n```", README, re.DOTALL)


def commands(text):
    """Return the lines of a page's console blocks that call castsim."""
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("castsim ")]


COMMANDS = commands(README)
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_set_up_lines_are_the_ones_that_ci_runs():
    assert [name for name, _ in SETUP] == ["run", "docs", "test"]
    script = (ROOT / ".ci" / "run").read_text()
    for name, line in SETUP:
        assert line.startswith("python3 -m venv") and "\n" not in line
        assert f"readme_line {name}" in script


def test_the_first_command_runs_on_the_shipped_tensor(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    words = shlex.split(SETUP[0][1].split("castsim ", 1)[1])
    words[words.index("--out") + 1] = str(tmp_path)
    printed = iter(out_of(capsys, words).splitlines())
    shown = re.search(r"```text\n(.*?)```", README, re.DOTALL)[1].splitlines()
    assert len(shown) >= 12
    assert all(line in printed for line in shown)  # each of them behind the one before
    assert (tmp_path / "dst.npy").is_file()


def test_the_printed_session_of_the_debugger_is_what_it_says(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    shown = re.search(r"<!-- session -->\n```text\n(.*?)```", KERNELS, re.DOTALL)[1].splitlines()
    typed = [line.removeprefix(PROMPT) for line in shown if line.startswith(PROMPT)]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join([*typed, "quit", ""])))
    words = re.search(r"`castsim (debug [^`]*)`", KERNELS)[1].split()
    assert out_of(capsys, words).splitlines() == [line for line in shown if not line.startswith(PROMPT)]


def test_the_picture_is_small_and_of_the_run_as_it_is_now(tmp_path):
    png = (pictures.ASSETS / "run-page.png").read_bytes()
    assert len(png) < 150_000
    assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == pictures.SIZE
    assert pictures.RUN[1] in README
    assert pictures.description(png) == pictures.said_first(tmp_path / "page.html"), "python tests pictures"


@pytest.mark.parametrize("command", COMMANDS)
def test_command_runs(command, monkeypatch, capsys, tmp_path):
    if not THOROUGH:  # nodes of graphs that read 16 bits are tried on some codes
        monkeypatch.setattr(graph_execution, "all_codes", some_codes)
    monkeypatch.chdir(ROOT)
    words = [str(tmp_path / word) if word == "report.html" else word for word in shlex.split(command)[1:]]
    assert out_of(capsys, words).strip()


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_prints_what_it_says(example, monkeypatch):
    monkeypatch.chdir(ROOT)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(example, "README.md", "exec"), {})
    said = [line.rsplit("#", 1)[1].rsplit(":", 1)[-1].strip() for line in example.splitlines() if "#" in line]
    printed = out.getvalue().splitlines()
    assert said
    assert printed[: len(said)] == said


def test_it_is_three_screens_and_links():
    assert len(README.splitlines()) <= 190
    links = re.findall(r"\]\(([^)#]+)(#[^)]*)?\)", README)
    assert len(links) > 15
    assert not [path for path, _ in links if not (ROOT / path).is_file()]


def test_prose_is_at_most_450_words():
    """Prose is what stands outside code blocks, tables and comments."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->|^\|[^\n]*$", "", README, flags=re.MULTILINE | re.DOTALL)
    assert 200 < len(text.split()) <= 450
