"""Binaries run as the text they were made from: values, cycles, reports; compressed bundles; what is refused."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit import tpc_programs_oracle
from kit.command_output import Capture, err_of, file_of
from kit.tpc_text import GENERATIONS, target
from makers.expected_files import PROGRAMS, SEED
from makers.tpc_expected_reports import names, target_of
from tools.tpc_binary.test_tpc_encoding import elf

from castsim import run
from castsim.__main__ import main
from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.isa.tpc.parser import parse
from castsim.running.program_runs import Result
from castsim.tools.tpc_binary.assembler import assemble
from castsim.tools.tpc_binary.encoding_tables import encoding_of

NOP = "nop; nop; nop; nop\n"
END = f"{NOP * 3}nop; halt; halt; nop\n"


def encoded(text: str, name: str) -> bytes:
    chip = target(name)
    return assemble(parse(text, chip.dialect), encoding_of(chip)).code


def issued(found: Result) -> list[tuple[Any, ...]]:
    """Everything about time, without the places in the text."""
    return [(op.pipe, op.name, op.start, op.end, dict(op.causes)) for op in found.timing.operations]


@pytest.mark.parametrize("name", names())
def test_every_sample_program_runs_alike_from_its_bytes(name: str, tmp_path: Path) -> None:
    source = PROGRAMS / f"{name}.tpc"
    code = encoded(source.read_text(), target_of(name))
    inputs = {each: f"random:{SEED}" for each, _, _ in tpc_programs_oracle.INPUTS[name]}
    text = run(source, inputs=inputs)
    for file, data in (("raw.bin", code), ("object.o", elf(code)), ("small.elf", elf(code, bits=32))):
        path = tmp_path / file
        path.write_bytes(data)
        found = run(path, inputs=inputs, declare=source)
        assert found.cycles == text.cycles
        assert {name: asdict(pipe) for name, pipe in found.pipes.items()} == {
            name: asdict(pipe) for name, pipe in text.pipes.items()
        }
        assert issued(found) == issued(text)
        assert found.outputs.keys() == text.outputs.keys()
        for output, array in text.outputs.items():
            np.testing.assert_array_equal(found.outputs[output].view(np.uint8), array.view(np.uint8))
        assert found.stale_reads is not None
        assert text.stale_reads is not None
        assert [(f.kind, f.place, f.distance, f.times) for f in found.stale_reads] == [
            (f.kind, f.place, f.distance, f.times) for f in text.stale_reads
        ]
        assert without_places([*found.warnings]) == without_places([*text.warnings])


def without_places(warnings: list[str]) -> list[str]:
    """Take out file names and line numbers."""
    return [re.sub(r"^\S+:\d+:\d+: ", "", re.sub(r"\(line \d+, ", "(", warning)) for warning in warnings]


DOUBLE = f"""// castsim: target gaudi
// castsim: tensor 0 x in i32 [64, 1]
// castsim: tensor 1 y out i32 [64, 1]
// castsim: reg I0 = [0, 0, 0, 0, 0]
// castsim: reg S3 = 3
ld_tnsr V1, 0x0, I0; nop; nop; nop
{NOP * 3}nop; nop; add.i32 V2, V1, S3; nop
nop; nop; nop; st_tnsr 0x1, I0, V2
{END}"""


def test_the_companion_beside_the_binary(tmp_path: Path) -> None:
    binary = tmp_path / "double.bin"
    binary.write_bytes(encoded(DOUBLE, "gaudi"))
    declared = "".join(line + "\n" for line in DOUBLE.splitlines() if line.startswith("//"))
    (tmp_path / "double.decl").write_text(declared)
    x = np.arange(64, dtype=np.int32)
    np.testing.assert_array_equal(run(binary, inputs={"x": x}).outputs["y"], [x + 3])
    np.testing.assert_array_equal(run(binary, inputs={"x": x}, args={"S3": 10}).outputs["y"], [x + 10])
    (tmp_path / "other.decl").write_text(declared.replace("S3 = 3", "S3 = 5"))
    found = run(binary, inputs={"x": x}, declare=tmp_path / "other.decl")
    np.testing.assert_array_equal(found.outputs["y"], [x + 5])


STORED = "// castsim: vlm 0x0 y out i32 [64]\n"
"""Programs leave their answer in S1; this brings it out."""
BRING_OUT = f"mov.i32 V1, S1; nop; nop; nop\n{NOP * 8}nop; nop; nop; st_l_v 0x0, V1\n{END}"

COMPRESSED_LOOP = f"""nop; mov.i32 S1, 0x0; nop; nop
Again:
.compressed spu_vpu ld_st
nop; add.i32 S1, S1, 0x3; nop; nop
mov.i32 S9, 0x1; nop; nop; nop
.compressed spu_vpu spu_vpu
{NOP}{NOP}{NOP}nop; cmp_less.i32 SP1, S1, 0x10; nop; nop
{NOP}nop; jmpr Again, SP1; nop; nop
{NOP}{BRING_OUT}"""
"""Adds 3 until 16 is reached: 18."""

HARDWARE_LOOP = f"""nop; mov.i32 S1, 0x0; nop; nop
nop; loop 0, 5, 1, <, Done; nop; nop
{NOP}.compressed spu_vpu ld_st
nop; add.i32 S1, S1, 0x4; nop; nop
mov.i32 S9, 0x1; nop; nop; nop
.compressed spu_vpu spu_vpu
{NOP * 2}nop; add.i32 S1, S1, 0x1; nop; nop
{NOP * 4}Done:
{BRING_OUT}"""
"""Five trips of 4 + 1: 25."""

BY_REGISTER = f"""// castsim: reg S20 = 0x60
nop; mov.i32 S1, 0x1; nop; nop
nop; jmpr S20; nop; nop
{NOP}.compressed spu_vpu spu_vpu
nop; mov.i32 S1, 0x2; nop; nop
{NOP}nop; mov.i32 S1, 0x3; nop; nop
{BRING_OUT}"""
"""From 0x20 by 0x60 to 0x80: behind the delay bundle at 0x40 and the pair at 0x60 stands the MOV of 3."""

BY_ADDRESS = BY_REGISTER.replace("S20 = 0x60", "S20 = 0x80").replace("jmpr", "jmpa")

COUNTER = f""".compressed spu_vpu spu_vpu
{NOP}nop; mov S1, PC; nop; nop
{BRING_OUT}"""
"""The second bundle of a pair lies 16 bytes behind the first."""


@pytest.mark.parametrize("name", ["greco", "gaudi2"])
@pytest.mark.parametrize(
    ("program", "answer"), [(COMPRESSED_LOOP, 18), (HARDWARE_LOOP, 25), (BY_REGISTER, 3), (BY_ADDRESS, 3)]
)
def test_addresses_with_compressed_bundles(name: str, program: str, answer: int, tmp_path: Path) -> None:
    text = file_of(tmp_path / "p.tpc", STORED + program)
    binary = tmp_path / "p.bin"
    binary.write_bytes(encoded(STORED + program, name))
    found = [run(text, name), run(binary, name, declare=text)]
    for each in found:
        np.testing.assert_array_equal(each.outputs["y"], np.full(64, answer))
    assert issued(found[0]) == issued(found[1])


def test_the_program_counter_counts_half_bundles(tmp_path: Path) -> None:
    """As text: no source gives the code of PC."""
    path = file_of(tmp_path / "p.tpc", STORED + COUNTER)
    np.testing.assert_array_equal(run(path, "greco").outputs["y"], np.full(64, 0x10))


def test_a_jump_into_the_middle_of_a_bundle(tmp_path: Path) -> None:
    """0x20 + 0x70 lies inside a bundle; so does 0x10 + 0x20, and the jump itself stands in the second of a pair."""
    for change, words in (("0x70", "jmpr to 112: not a multiple of the 32 bytes"), ("0x140000", "leaves the program")):
        text = BY_REGISTER.replace("S20 = 0x60", f"S20 = {change}")
        path = file_of(tmp_path / "p.tpc", text.replace(".compressed spu_vpu spu_vpu\n", ""))
        with pytest.raises(IllegalError, match=words):
            run(path, "greco")
    half = f".compressed spu_vpu spu_vpu\n{NOP}nop; jmpr S20; nop; nop\n{NOP}{BRING_OUT}"
    path.write_text(f"{STORED}// castsim: reg S20 = 0x20\n{half}")
    with pytest.raises(IllegalError, match="jmpr to 32: no bundle begins at 0x30"):
        run(path, "greco")


@pytest.fixture
def double(tmp_path: Path) -> Path:
    path = tmp_path / "double.bin"
    path.write_bytes(encoded(DOUBLE, "gaudi"))
    return path


def refusal(path: Path, data: bytes, **keywords: Any) -> CastsimError:
    path.write_bytes(data)
    with pytest.raises(CastsimError) as caught:
        run(path, keywords.pop("target", "gaudi"), **keywords)
    return caught.value


def test_damaged_files(double: Path) -> None:
    code = double.read_bytes()
    cut = refusal(double, code[:-7])
    assert isinstance(cut, ReadError)
    assert cut.legal == (f"{len(code) - 32} bytes", f"{len(code)} bytes")
    for data, message in (
        (code[:-7], f"{len(code) - 7} bytes are not a whole number of bundles of 32 bytes; 25 are left at"),
        (b"", "it contains no bundles"), (elf(code)[:200], "truncated"),
        (elf(code, machine=62), "ELF machine 62 is not a TPC"), (elf(code[:40]), "not a whole number of bundles"),
    ):  # fmt: skip
        assert message in refusal(double, data).message


def test_another_elf_machine_may_be_admitted(double: Path, capsys: Capture) -> None:
    declared = double.with_suffix(".decl")
    declared.write_text("".join(f"{line}\n" for line in DOUBLE.splitlines() if line.startswith("//")))
    double.write_bytes(elf(double.read_bytes(), machine=62))
    assert "legal: 0" in err_of(capsys, ["run", str(double), "--in", "x=zeros", "--quiet"])
    assert main(["run", str(double), "--in", "x=zeros", "--quiet", "--machine", "0x3e"]) == 0
    assert main(["run", str(double), "--in", "x=zeros", "--quiet", "--machine", "x"]) == 2


@pytest.mark.parametrize("name", GENERATIONS)
def test_bytes_that_are_no_bundle_are_named_with_their_offset(name: str, tmp_path: Path) -> None:
    code = bytearray(encoded(NOP * 2 + END, name))
    code[0x40:0x60] = b"\xee" * 32
    found = refusal(tmp_path / "k.bin", bytes(code), target=name)
    assert isinstance(found, IllegalError)
    assert f"the bytes at offset 0x40 (ee ee ee ee ee ee ee ee ..) are not a bundle of {name}: " in found.message
    code[0x60:0x80] = b"\xee" * 32
    assert "so are those at 1 other offsets" in refusal(tmp_path / "k.bin", bytes(code), target=name).message


def test_bits_without_a_meaning_are_told(tmp_path: Path) -> None:
    code = bytearray(encoded(NOP + END, "goya"))
    code[31] |= 0x80
    path = tmp_path / "k.bin"
    path.write_bytes(bytes(code))
    (warning, *_) = run(path, "goya").warnings
    assert "offset 0x0" in warning
    assert "unexpected encoding of unused bits" in warning


def test_companions_that_cannot_be_read(double: Path, tmp_path: Path) -> None:
    code = double.read_bytes()
    assert "does not declare a target" in refusal(double, code, target=None).message
    assert "No such file" in refusal(double, code, declare=tmp_path / "none.decl").message
    wrong = file_of(tmp_path / "wrong.decl", DOUBLE)
    found = refusal(double, code, declare=wrong)
    assert "can contain only comments" in found.message
    assert (found.span.file, found.span.line) == (str(wrong), 6)
    wrong.write_text("// castsim: tensor 0 x\n")
    assert "malformed declaration of tensor" in refusal(double, code, declare=wrong).message
    wrong.write_bytes(b"\xff\xfe")
    assert "not UTF-8 text" in refusal(double, code, declare=wrong).message
    assert "starts at its first bundle" in refusal(double, code, entry="main").message
    assert "a5 does not run .tpc programs" in refusal(double, code, target="a5").message


def test_options_of_binaries_are_refused_for_text(tmp_path: Path, capsys: Capture) -> None:
    path = file_of(tmp_path / "double.tpc", DOUBLE)
    for option in (["--declare", str(path)], ["--machine", "62"]):
        assert f"{option[0]} applies only to binaries" in err_of(capsys, ["run", str(path), "--in", "x=zeros", *option])
