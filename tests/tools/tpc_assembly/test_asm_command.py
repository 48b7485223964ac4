"""`castsim asm` and `castsim disasm`: listings, files, standard input, refusals."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from kit.command_output import Capture, document_of, file_of, refusal
from kit.tpc_bundles import packed
from kit.tpc_text import dialect
from tools.tpc_binary.test_tpc_encoding import GOLDEN, elf

from castsim.__main__ import main
from castsim.isa.errors import IllegalError
from castsim.isa.tpc.parser import parse, print_program
from castsim.targets.loader import load_target
from castsim.tools.tpc_binary.assembler import assemble
from castsim.tools.tpc_binary.encoding_tables import encoding_of

KERNEL = """// castsim: target gaudi2
// castsim: reg S0 = 1
  ld_tnsr V1, 0, I1; nop; NOP; nop   // a load
Loop:
{
  CONVERT.F32 V3, V1, BF16, RNE
  add.i32 neg S1, S1, 1
}
nop; jmpr Loop, SP1; nop; nop

nop; halt; halt; nop
"""


def shown(capsys: Capture, *argv: str) -> str:
    assert main(argv) == 0, capsys.readouterr().err
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    path = file_of(tmp_path / "kernel.tpc", KERNEL)
    return str(path)


def test_the_listing_has_address_bytes_and_text(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "k.tpc").write_text("".join(f"{text}\n" for text in GOLDEN))
    lines = shown(capsys, "asm", str(tmp_path / "k.tpc"), "--target", "goya").splitlines()
    assert len(lines) == len(GOLDEN)
    for number, (line, text) in enumerate(zip(lines, GOLDEN, strict=True)):
        head, _, rest = line.partition(": ")
        assert int(head, 16) == 32 * number
        assert rest.endswith(f"  {text}")
        assert bytes.fromhex(rest.removesuffix(text)) == bytes.fromhex(GOLDEN[text]).ljust(32, b"\0")


def test_through_a_file_and_back(kernel: str, tmp_path: Path, capsys: Capture) -> None:
    binary, text = tmp_path / "k.bin", tmp_path / "again.tpc"
    summary = shown(capsys, "asm", kernel, "--out", str(binary))
    assert f"{binary}: 4 bundles for gaudi2, 128 bytes" in summary
    assert summary.splitlines()[-2:] == ["positions that no source states:", "  add (SPU): neg"]
    shown(capsys, "disasm", str(binary), "--target", "gaudi2", "--out", str(text))
    first, second = (parse(path.read_text(), dialect("gaudi2")) for path in (Path(kernel), text))
    assert print_program(second).replace("L_20", "Loop") == print_program(first).replace("// castsim: reg S0 = 1\n", "")
    shown(capsys, "asm", str(text), "--out", str(tmp_path / "again.bin"))
    assert (tmp_path / "again.bin").read_bytes() == binary.read_bytes()


def test_canonical_text_line_by_line(kernel: str, tmp_path: Path, capsys: Capture) -> None:
    expected = [
        "// castsim: target gaudi2",
        "// castsim: reg S0 = 0x1",
        "ld_tnsr V1, 0x0, I1; nop; nop; nop",
        "Loop:",
        "nop; add.i32 neg S1, S1, 0x1; convert.f32 target_type=bf16 rhne V3, V1; nop",
        *[""] * 3,
        "nop; jmpr Loop, SP1; nop; nop",
        "",
        "nop; halt; halt; nop",
    ]
    lines = shown(capsys, "asm", kernel, "--text").splitlines()
    assert len(lines) == len(KERNEL.splitlines())
    assert [line for line in lines if "reg" not in line] == [line for line in expected if "reg" not in line]
    out = str(tmp_path / "canonical.tpc")
    assert document_of(capsys, "asm", kernel, "--text", "--out", out)["output"] == out
    assert Path(out).read_text().splitlines() == lines


def test_json(kernel: str, tmp_path: Path, capsys: Capture) -> None:
    found = json.loads(shown(capsys, "asm", kernel, "--json", "-"))
    keys = ["schema_version", "file", "target", "bundles", "size_bytes", "code", "facts_assumed", "output"]
    assert list(found) == keys
    assert (found["bundles"], found["size_bytes"], found["facts_assumed"]) == (4, 128, ["add (SPU): neg"])
    unknown = packed("gen34_256", vpu__opcode=0x21)
    (tmp_path / "k.bin").write_bytes(bytes.fromhex(found["code"]) + unknown)
    read = json.loads(shown(capsys, "disasm", str(tmp_path / "k.bin"), "--target", "gaudi2", "--json", "-"))
    assert [line["address"] for line in read["lines"]] == [0, 32, 64, 96, 128]
    assert [line["known"] for line in read["lines"]] == [True] * 4 + [False]
    assert read["unknown_bundles"] == 1
    assert "".join(line["code"] for line in read["lines"]) == found["code"] + unknown.hex()
    text = json.loads(shown(capsys, "asm", kernel, "--text", "--json", "-"))
    assert text["text"].startswith("// castsim: target gaudi2\n")


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(KERNEL.encode())))
    code = json.loads(shown(capsys, "asm", "-", "--json", "-"))["code"]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(bytes.fromhex(code))))
    assert "jmpr L_20, SP1" in shown(capsys, "disasm", "-", "--target", "gaudi2")


def test_unknown_bytes_are_counted(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "k.bin").write_bytes(packed("gen12_256") + packed("gen12_256", vpu__opcode=0x21))
    text = shown(capsys, "disasm", str(tmp_path / "k.bin"), "--target", "goya")
    assert "(unknown)  // unknown: VPU opcode 0x21 is not an instruction of goya" in text
    assert text.endswith("unknown: 1 of 2 lines are not bundles of goya\n")
    source = shown(capsys, "disasm", str(tmp_path / "k.bin"), "--target", "goya", "--text")
    assert source.splitlines()[0] == "// castsim: target goya"
    assert ".byte 0x3f, 0x00, 0x00, 0x00, 0x00, 0x08, 0x01" in source


def test_object_files(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "k.o"
    path.write_bytes(elf(packed("gen12_256", spu__opcode=0x20, vpu__opcode=0x20), machine=4660))
    assert "halt; halt" in shown(capsys, "disasm", str(path), "--target", "goya", "--machine", "0x1234")
    code, message = refusal(capsys, "disasm", str(path), "--target", "goya")
    assert code == 2
    assert "ELF machine 4660 is not a TPC; --machine accepts another number\n  legal: 0" in message


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        ("asm nowhere.tpc --target goya", 2, "program 'nowhere.tpc': No such file"),
        ("asm KERNEL --target nowhere", 2, "unknown target 'nowhere'"),
        (
            "asm KERNEL --target a2a3",
            1,
            "a2a3 has no TPC assembly\n  help: --target gaudi, --target gaudi2, --target gaudib, ",
        ),
        ("asm LATER --target goya", 1, "later.tpc:1:6: goya has no mov S, PC"),
        ("asm BINARY --target goya", 2, "is not UTF-8 text; is it a binary?"),
        ("asm PLAIN", 2, "declares no target; choose one with --target"),
        ("asm PLAIN --target goya --out nowhere/k.bin", 2, "--out nowhere/k.bin: No such file"),
        ("asm CLASH", 1, "clash.tpc:2:28: a bundle can hold one 32-bit immediate, not both 0x4 and 0x3"),
        ("disasm nowhere.bin --target goya", 2, "program 'nowhere.bin': No such file"),
        ("disasm BINARY", 2, "required: --target"),
        ("disasm BINARY --target goya", 2, "33 bytes are not a whole number of bundles of 32 bytes; 1 are left at"),
        ("disasm BINARY --target goya --machine many", 2, "--machine many: not a number"),
        ("disasm BINARY --target goya --machine 1_0", 2, "--machine 1_0: not a number"),
        ("disasm BINARY --target goya --machine -1", 2, "--machine -1: not an ELF machine number"),
        ("disasm BINARY --target goya --machine 0x10000", 2, "legal: 0 to 65535, 0x0 to 0xffff"),
    ],
)
def test_refusals(argv: str, code: int, message: str, kernel: str, tmp_path: Path, capsys: Capture) -> None:
    files = {"KERNEL": kernel, **{name: str(tmp_path / name.lower()) for name in ("BINARY", "PLAIN")}}
    files["LATER"] = str(tmp_path / "later.tpc")
    Path(files["LATER"]).write_text("nop; mov S4, PC; nop; nop\n")
    files["CLASH"] = str(tmp_path / "clash.tpc")
    Path(files["BINARY"]).write_bytes(b"\xff" * 33)
    Path(files["PLAIN"]).write_text("nop; nop; nop; nop\n")
    Path(files["CLASH"]).write_text("// castsim: target goya\nnop; add.i32 S1, S2, 3;    add.i32 V1, V2, 4; nop\n")
    found, text = refusal(capsys, *(files.get(word, word) for word in argv.split()))
    assert found == code
    assert message in text


@pytest.mark.parametrize("options", [(), ("--target", "a5"), ("--target", "goya")])
@pytest.mark.parametrize("command", ["asm", "lint", "unswizzle"])
def test_other_languages_than_assembly_are_sent_to_their_command(
    command: str, options: tuple[str, ...], capsys: Capture
) -> None:
    for file, use in (("kernel.pto", "tile program 'kernel.pto'"), ("model.onnx", "`castsim graph`")):
        code, err = refusal(capsys, command, file, *options)
        assert code == 2
        assert err.startswith(f"error: castsim {command} takes TPC assembly; ")
        assert use in err
        assert "legal: a .tpc file, a .s file" in err


def test_a_target_without_the_language_names_those_that_have_it(kernel: str, capsys: Capture) -> None:
    for command in ("run", "lint", "unswizzle"):
        code, err = refusal(capsys, command, kernel, "--target", "a5")
        assert code == 1
        legal = ", ".join(f"--target {name}" for name in ("gaudi", "gaudi2", "gaudib", "goya", "greco"))
        assert err == f"error: a5 does not run .tpc programs\n  help: {legal}\n"


@pytest.mark.parametrize("command", ["asm", "disasm"])
def test_what_was_read_is_not_replaced(command: str, kernel: str, tmp_path: Path, capsys: Capture) -> None:
    binary = str(tmp_path / "k.bin")
    shown(capsys, "asm", kernel, "--out", binary)
    file = kernel if command == "asm" else binary
    before = Path(file).read_bytes()
    for option in ("--out", "--json"):
        code, err = refusal(capsys, command, file, "--target", "gaudi2", option, file)
        assert code == 2
        assert f"{option} " in err
        assert "would overwrite" in err
        assert Path(file).read_bytes() == before


def test_an_instruction_without_a_known_opcode_is_refused_with_its_place() -> None:
    encoding = encoding_of(load_target("gaudi2"))
    program = parse("nop; halt; halt; nop\n", load_target("gaudi2").dialect, "a.tpc")
    fewer = {key: code for key, code in encoding.opcodes.items() if "halt" not in key[1].lower()}
    assert len(fewer) < len(encoding.opcodes)
    with pytest.raises(IllegalError, match="has no known opcode") as caught:
        assemble(program, replace(encoding, opcodes=fewer))
    assert caught.value.span.line == 1
