"""Files that are read or written, and what they hold: bounded, refused by name and option, never raw on a terminal."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from kit.forked_commands import Commands, forked_commands
from kit.paths import PROGRAMS, ROOT, VECTORS
from rich.text import Text

from castsim import run
from castsim.__main__ import kept_interrupts, main
from castsim.commands.feature import feature_of
from castsim.execution.input_data import MAX_HEADER_BYTES, random_codes, read_array
from castsim.files import file_names, is_coloured, whole_file
from castsim.isa.errors import IllegalError, ReadError, Span, escaped
from castsim.isa.formats import FORMATS
from castsim.isa.reading import file_limit, read_bytes, read_text
from castsim.reports.bars import bars
from castsim.reports.terminal import rendered, table

Capture = pytest.CaptureFixture[str]


# ------------------------------------------------------------------------------------------------------------- reading
def test_a_file_over_the_limit_is_refused_with_the_option(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "a.pto"
    with path.open("wb") as file:
        file.truncate((16 << 20) + 1)  # sparse
    for command in (["run"], ["lint"], ["asm"], ["graph", "--target", "a5"], ["accuracy", "--target", "a5", "--data"]):
        name = path if command[0] in ("run", "accuracy") else path.with_suffix(".tpc" if len(command) == 1 else ".mlir")
        if name != path:
            os.link(path, name) if not name.exists() else None
        assert main([*command, str(name)]) == 2
        assert f"--max-file-bytes {(16 << 20) + 1}" in capsys.readouterr().err, command


def test_the_option_raises_the_limit_and_lowers_it(capsys: Capture) -> None:
    program = str(ROOT / "programs/f32_to_f16.pto")
    assert main(["run", program, "--timing-only", "--quiet", "--max-file-bytes", "1000000"]) == 0
    assert main(["--max-file-bytes", "100", "run", program, "--timing-only"]) == 2
    assert "over the limit of 100" in capsys.readouterr().err
    with file_limit(100), pytest.raises(ReadError, match="over the limit of 100"):
        run(program, timing_only=True)
    assert run(program, timing_only=True).cycles > 0
    for text in ("0", "-1", "x", "9" * 19):
        assert main(["run", program, "--timing-only", f"--max-file-bytes={text}"]) == 2


def test_devices_and_pipes_are_read_up_to_the_limit(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="more than 16777216 bytes"):
        read_bytes("/dev/zero", "program")
    with pytest.raises(ReadError, match="directory"):
        read_bytes(tmp_path, "program")
    with pytest.raises(ReadError, match="null"):
        read_bytes("a\0b", "program")
    reader, writer = os.pipe()
    os.write(writer, b"some text")
    os.close(writer)
    assert read_text(f"/dev/fd/{reader}", "program") == "some text"
    os.close(reader)


def test_standard_input_has_the_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b"x" * 101)

    monkeypatch.setattr(sys, "stdin", Stdin())
    with file_limit(100), pytest.raises(ReadError, match="more than 100 bytes"):
        read_bytes("-", "program")


# --------------------------------------------------------------------------------------------------------------- .npy
def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    raw = header.encode("latin-1")
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(raw)) + raw + data


def described(descr: str = "'<f4'", shape: str = "(4,)", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


@pytest.mark.parametrize(
    "header",
    [
        described("'V0'", "(-1,)"), described("'V0'", "(4, 64)"), described("'|S0'"), described("()"), described("[]"),
        described("'<f4'", "(-4,)"), described("'<f4'", f"({2**64},)"), described("'<f4'", "(1e3,)"),
        described("'<f4'", "(4,), 'shape': (4,)"), described("'<f4'", "4"), described("'<f4'", "(" * 900 + ")" * 900),
        described("-" * 3000 + "1"), described("'O'"), described("'<f4'", "(5,)"), described("'<f4'", "(4,)", "1"),
        described("'" + "f" * 5000 + "'"), described("[('a', '<f4')]"), described("'<f4,<f4'"), described("'<f999999'"),
        "lambda: 1", "{}", "", "{'descr': '<f4'}", described("'<f4'", f"({'1,' * 100})"),
        described("'<f4'", f"(0, {10**17}, {10**17})"), described("'<f4'", "(9" + "9" * 5000 + ",)"),
    ],
)  # fmt: skip
def test_headers_that_are_refused(header: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(npy(header, bytes(16)))
    with pytest.raises(ReadError, match="input 'x'") as caught:
        read_array(path, "x")
    assert caught.value.exit_code == 2


def test_the_length_of_a_header_is_capped(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(npy(described() + " " * MAX_HEADER_BYTES, bytes(16), 2))
    with pytest.raises(ReadError, match="header of"):
        read_array(path, "x")


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f2", "|b1", "|i1", "<u8", "<c8", "<U4", "|V2"])
@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (0,), (2, 0, 3), (2, 3, 4)])
def test_what_numpy_writes_is_read(dtype, shape, version, tmp_path) -> None:
    path = tmp_path / "x.npy"
    for order in ("C", "F"):
        array = np.zeros(shape, dtype, order)
        array.reshape(-1).view(np.uint8)[:] = 1 if array.flags.c_contiguous and array.size else 0
        with path.open("wb") as file:
            np.lib.format.write_array(file, array, version)
        found = read_array(path, "x")
        wanted = np.load(path)
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert np.asarray(found).tobytes() == wanted.tobytes()


def test_pipes_and_devices_are_no_arrays() -> None:
    with pytest.raises(ReadError, match="regular file"):
        read_array(Path("/dev/zero"), "x")


def test_random_without_a_seed_is_told_of_seeds(capsys: Capture) -> None:
    assert main(["run", str(ROOT / "programs/f32_to_f16.pto"), "--in", "src=random"]) == 2
    assert "src=random:0" in capsys.readouterr().err
    assert main(["run", str(ROOT / "programs/f32_to_f16.pto"), "--in", "src=nothing"]) == 2
    assert "random:SEED" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["f32", "f16", "e2m1", "i8", "u16", "i64", "bool", "i4"])
def test_numbers_drawn_in_pieces_are_those_drawn_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fmt = FORMATS[name]
    at_once = random_codes(np.random.default_rng(3), fmt, (7, 1111))
    monkeypatch.setattr("castsim.execution.input_data._DRAWN_AT_ONCE", 101)
    assert (random_codes(np.random.default_rng(3), fmt, (7, 1111)) == at_once).all()


# ------------------------------------------------------------------------------------------------------------- writing
def test_partial_files_have_a_recognisable_name_and_nobody_changes_the_umask(tmp_path, monkeypatch) -> None:
    path = tmp_path / "out.json"
    real = os.umask
    mask = real(0o027)
    try:
        monkeypatch.setattr(os, "umask", lambda _: pytest.fail("the umask is the whole process's"))
        with whole_file(path) as file:
            (partial,) = tmp_path.iterdir()
            assert partial.name.startswith(".out.json.castsim-")
            assert partial.suffix == ".partial"
            file.write(b"x")
    finally:
        real(mask)
    assert path.stat().st_mode & 0o777 == 0o640
    with whole_file(tmp_path / ("n" * 250)) as file:
        file.write(b"x")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["n" * 250, "out.json"]


@pytest.mark.parametrize(
    "names",
    [
        ("a/b", "a_b"), ("x", "X"), ("..", "."), ("a\0b", "a_b"), ("CON", "con_"), ("é", "e\u0301"), ("%y", "y"),
        ("a", "A", "a_2", "A_2"), ("n" * 400, "n" * 401), ("ﬁ", "fi"),
    ],
)  # fmt: skip
def test_outputs_never_share_a_file(names: tuple[str, ...]) -> None:
    found = file_names(names)
    assert list(found) == list(names)
    assert len({name.casefold() for name in found.values()}) == len(names)
    for name in found.values():
        assert name.encode("ascii", "ignore") or name
        assert not set(name) & {"/", "\\", "\0", ":"}
        assert not name.startswith(".")
        assert len(name.encode()) < 250
        assert name.partition(".")[0].casefold() != "con"


# ---------------------------------------------------------------------------------------------------------- interrupts
def test_an_interrupt_during_compilation_is_not_lost() -> None:
    """LLVM calls back through ctypes, which drops exceptions; a module that is called numba does so here."""
    import ctypes  # noqa: PLC0415

    body = """
def compiling(back):
    back()
    return "compiled"
"""
    module: dict[str, object] = {"__name__": "numba.core.compiler"}
    exec(body, module)
    back = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGINT))
    usual = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    reached = []
    try:
        with pytest.raises(KeyboardInterrupt), kept_interrupts():
            compiling = module["compiling"]
            assert callable(compiling)
            reached.append(compiling(back))
            for _ in range(1000):
                time.sleep(0.01)
            pytest.fail("the interrupt was lost")
    finally:
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.signal(signal.SIGINT, usual)
    assert reached == ["compiled"]


def test_an_input_of_a_binary_without_declarations(tmp_path: Path, capsys: Capture) -> None:
    binary = tmp_path / "k.bin"
    source = str(ROOT / "programs/tpc_f32_i32_pipelined_goya.tpc")
    assert main(["asm", source, "--out", str(binary), "--quiet"]) == 0
    assert main(["run", str(binary), "--target", "goya", "--in", "x=random:0"]) == 2
    error = capsys.readouterr().err
    assert "--declare FILE" in error
    assert "// castsim: tensor 0 x" in error


def test_refusals_are_of_the_kinds_that_callers_catch() -> None:
    assert issubclass(IllegalError, ValueError)
    with pytest.raises(ReadError), file_limit(0):
        pass


STEERING = [
    *(chr(n) for n in (*range(9), *range(0xB, 0x20), *range(0x7F, 0xA0))),
    *"\u061c\u200e\u200f\u202e\u2066\u2069",
]


class Stream(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize("character", STEERING)
def test_every_character_that_steers_is_escaped_and_no_other(character: str) -> None:
    shown = escaped(f"é{character}日\t\n")
    assert character not in shown
    assert shown == f"é{character.encode('unicode_escape').decode()}日\t\n".replace("\\r", "\\x0d")
    assert escaped(shown) == shown


def test_errors_are_escaped_everywhere() -> None:
    span = Span("a\x1b[2J.pto", 3, 5, "ab\x9bc\u202edef", 2)
    error = ReadError("no '\x1b]0;title\x07'", span=span, legal=("x\x7f", "y"))
    shown = error.render()
    assert not any(character in shown for character in STEERING)
    _, source, caret, legal = shown.split("\n")
    assert source == "  ab\\x9bc\\u202edef"
    assert caret.index("^") == source.index("\\u202e")  # column 5 is that character
    assert caret.count("^") == len("\\u202ed")
    assert legal == "  legal: x\\x7f, y"


@pytest.mark.parametrize("column", [1, 99, 5_000, 9_999, 10_000, 10_001])
def test_long_lines_are_cut_around_the_caret(column: int) -> None:
    text = "".join(chr(ord("a") + n % 26) for n in range(10_000))
    _, source, caret = ReadError("bad", span=Span("f", 1, column, text, 50_000)).render().split("\n")
    assert len(source) <= 2 + 200 + 6
    assert len(caret) <= len(source) + 1
    place = caret.index("^")
    assert column > len(text) or source[place:].startswith(text[column - 1 : column + 3])
    assert source.startswith("  ...") == (column > 101)
    assert source.endswith("...") == (column < 9_900)


def test_reports_are_escaped_but_keep_their_colours() -> None:
    made = table("name")
    made.add_row("[bold red]x[/nope] \x1b[31m\x9b\u202e")
    for terminal in (False, True):
        shown = rendered(made, Stream(terminal))
        assert "[bold red]x[/nope] \\x1b[31m\\x9b\\u202e" in shown
    assert "\x1b" in rendered(Text("warning", style="bold red"), Stream(True)) or not is_coloured(Stream(True))


def test_titles_of_progress_are_plain_text() -> None:
    shown = bars()
    task = shown.add_task("[bold]x[/nope]\x1b[2J\n\x07", total=1)
    text = shown.columns[0](shown.tasks[task])
    assert isinstance(text, Text)
    assert text.plain == "[bold]x[/nope]\\x1b[2J \\x07"
    assert not text.spans


def test_json_on_standard_output_is_json_without_controls(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "a.toml"
    path.write_text('base = "a2a3"\ntitle = "x\\u001b[31m\\u007f\\u009b\\u202e"\n', encoding="utf-8")
    main(["targets", str(path), "--json", "-"])
    out = capsys.readouterr().out
    assert not any(character in out for character in STEERING)
    held = json.loads(out)
    assert "x\x1b[31m\x7f\x9b\u202e" in (str(value) if isinstance(value, str) else "" for value in held.values())


def test_a_name_of_a_file_is_escaped_in_errors(capsys: Capture) -> None:
    assert main(["run", "no\x1b[31m.pto"]) == 2
    assert "no\\x1b[31m.pto" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variables", "terminal", "coloured"),
    [
        ({}, False, False), ({}, True, True), ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, False, False), ({"FORCE_COLOR": ""}, False, False),
        ({"CLICOLOR_FORCE": "1"}, False, True), ({"CLICOLOR_FORCE": "0"}, False, False),
        ({"CLICOLOR": "0"}, True, False), ({"CLICOLOR": "1"}, False, False), ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True), ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
    ],
)  # fmt: skip
def test_colour(variables: dict[str, str], terminal: bool, coloured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in rendered(Text("x", style="bold"), Stream(terminal))) == coloured


HOSTILE = VECTORS / "hostile"
PROGRAM = PROGRAMS / "f32_to_f16.pto"
THOROUGH = os.environ.get("CASTSIM_THOROUGH") == "1"
QUICK_BYTES = 4096
SLOW = ("empty10.pto", "empty12.pto", "empty20.pto", "empty40.pto", "if1e+18.pto")
"""Programs that differ from others by their length alone."""

CPU_SECONDS = 10
MEMORY_BYTES = 1 << 30

STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    ".pto": (("run", "FILE", "--timing-only"), ("run", "FILE", "--in", "src=random:0")),
    ".tpc": (("run", "FILE", "--in", "x=random:0"), ("lint", "FILE")),
    ".toml": (("targets", "FILE"), ("run", str(PROGRAM), "--timing-only", "--target", "FILE")),
    ".csv": (("accuracy", "--target", "a5", "--data", "FILE"),),
    ".npy": (("run", str(PROGRAM), "--in", "src=FILE"),),
    ".mlir": (("graph", "FILE", "--target", "a5", "--in", "a=random:0"), ("run", "FILE", "--target", "gaudi2")),
    ".onnx": (("graph", "FILE", "--target", "a5", "--in", "INPUT=random:0", "--out", "OUT"),),
}
"""Commands by the suffix of the file that they are given."""

FILES = sorted(path for path in HOSTILE.iterdir() if path.suffix in COMMANDS)
CASES = [(path, command) for path in FILES for command in COMMANDS[path.suffix]]


def input_of(path: Path) -> str:
    """The name of the first input of a model, x where it cannot be told."""
    onnx = pytest.importorskip("onnx")
    model = onnx.load_model_from_string(path.read_bytes())
    return model.graph.input[0].name if model.graph.input else "x"


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    names = ("run", "lint", "targets", "accuracy", "graph")
    with forked_commands([found.module for name in names if (found := feature_of(name))] + ["onnx"]) as found:
        yield found


def judge(commands: Commands, argv: list[str], tmp_path: Path) -> tuple[int, str]:
    """Run a command as a process of its own; return its exit code and all that it printed."""
    ended = commands.run(argv, tmp_path / "heard", 2 * CPU_SECONDS)
    code, text = ended.code, ended.text
    assert code in (0, 1, 2), (code, text[-500:])
    assert ended.seconds < CPU_SECONDS
    assert ended.bytes < MEMORY_BYTES
    assert not STEERS.search(text), STEERS.findall(text)[:5]
    assert "internal error" not in text
    assert "Traceback" not in text
    return code, text


def check(commands: Commands, path: Path, command: tuple[str, ...], tmp_path: Path) -> None:
    words = {"FILE": str(path), "OUT": str(tmp_path / "out")}
    if "INPUT=random:0" in command:
        words["INPUT=random:0"] = f"{input_of(path)}=random:0"
    argv = [word.replace("FILE", str(path)) if "=" in word else words.get(word, word) for word in command]
    argv = [words.get(word, word) for word in argv]
    code, text = judge(commands, argv, tmp_path)
    if code:
        reason = re.search(r"^error: (.+)", text, re.MULTILINE)
        # What was read and found wanting says so in its report; all else is an error with a reason.
        assert reason or code == 1, text[:500]
        assert all(len(line) < 2000 or "legal:" in line or "error:" in line for line in text.split("\n"))


@pytest.mark.parametrize(
    ("path", "command"),
    [
        pytest.param(
            path, command, id=f"{path.name}-{command[0]}{number}",
            marks=() if path.stat().st_size <= QUICK_BYTES and path.name not in SLOW else pytest.mark.skipif(
                not THOROUGH, reason="CASTSIM_THOROUGH=1 also runs the larger and slower files"
            ),
        )
        for number, (path, command) in enumerate(CASES)
    ],
)  # fmt: skip
def test_a_hostile_file_does_no_harm(commands: Commands, path: Path, command: tuple[str, ...], tmp_path: Path) -> None:
    check(commands, path, command, tmp_path)


def _parts(base: str) -> tuple[str, str, str]:
    """The text before the first load, the text from there, and the line of the cast."""
    cut = base.index("    pto.tload")
    rest = base[cut:]
    return base[:cut], rest, next(line for line in rest.split("\n") if "tcvt" in line)


def _deep_branches(base: str) -> str:
    head, rest, _ = _parts(base)
    return head + "    scf.if %b {\n" * 10_000 + rest


def _deep_loops(base: str) -> str:
    head, rest, _ = _parts(base)
    loops = "".join(f"    scf.for %i{k} = %c0 to %n step %c1 {{\n" for k in range(10_000))
    return head + "    %n = arith.constant 2 : index\n" + loops + "    }\n" * 10_000 + rest


def _long_line(base: str) -> str:
    return base.replace("    return", "    bad " + "x" * 10**7)


def _many_arguments(base: str) -> str:
    more = "".join(f", %a{i}: !pto.ptr<f16>" for i in range(100_000))
    return base.replace("%dst: !pto.ptr<f16>", "%dst: !pto.ptr<f16>" + more)


def _many_casts(base: str) -> str:
    cast = _parts(base)[2]
    return base.replace(cast, "\n".join([cast] * 10**5))


def _many_constants(base: str) -> str:
    head, rest, _ = _parts(base)
    return head + "".join(f"    %k{i} = arith.constant {i} : index\n" for i in range(10**6)) + rest


def _many_functions(_: str) -> str:
    return "module {\n" + "".join(f"func.func @f{i}() {{ return }}\n" for i in range(100_000)) + "}\n"


LARGE: dict[str, Callable[[str], str]] = {
    "lines.pto": _many_constants, "tcvt1e5.pto": _many_casts, "deep10000.pto": _deep_branches,
    "deepfor.pto": _deep_loops, "longline.pto": _long_line, "args100000.pto": _many_arguments,
    "funcs.pto": _many_functions,
}  # fmt: skip
"""How each is made from the text of the program, by file name."""


@pytest.mark.skipif(not THOROUGH, reason="CASTSIM_THOROUGH=1 makes the large files")
@pytest.mark.parametrize("name", LARGE)
def test_a_large_hostile_program_does_no_harm(commands: Commands, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(LARGE[name](PROGRAM.read_text(encoding="utf-8")), encoding="utf-8")
    for command in COMMANDS[".pto"]:
        check(commands, path, command, tmp_path)


def test_each_kind_of_file_is_there() -> None:
    assert {path.suffix for path in FILES} == set(COMMANDS)
    assert len(FILES) > 80
