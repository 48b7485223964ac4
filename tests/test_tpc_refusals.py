"""TPC declarations, and what the parser refuses: where, and with which alternatives."""

from __future__ import annotations

import pytest
from tpc_text import program

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.tpc import (
    File,
    Register,
    RegisterDeclaration,
    TargetDeclaration,
    TensorDeclaration,
    VlmDeclaration,
    print_program,
    target_named_in,
)

# ----------------------------------------------------------------------------------------------------- declarations


def test_declarations() -> None:
    text = """// castsim: target gaudi2
// castsim: tensor 0 x in f32 [64, 1024]
//castsim: tensor 1 y out bfloat16 [64,1024]
// castsim: reg S0 = 128
// castsim: reg I3 = [0, -64, 0, 0, 0]
// castsim: reg SP2 = 1
// castsim: reg AD1 = 0x100000000
nop  // castsim: vlm 0x100 z f32 [64]
// castsim: vlm 1024 w out f8_143@11 [256]
"""
    found = program(text)
    assert found.declarations == (
        TargetDeclaration("gaudi2"),
        TensorDeclaration(0, "x", "in", "f32", (64, 1024)),
        TensorDeclaration(1, "y", "out", "bf16", (64, 1024)),
        RegisterDeclaration(Register(File.S, 0), (128,)),
        RegisterDeclaration(Register(File.I, 3), (0, -64, 0, 0, 0)),
        RegisterDeclaration(Register(File.SP, 2), (1,)),
        RegisterDeclaration(Register(File.AD, 1), (0x100000000,)),
        VlmDeclaration(0x100, "z", "in", "f32", (64,)),
        VlmDeclaration(1024, "w", "out", "f8_143@11", (256,)),
    )
    assert found.target == target_named_in(text) == "gaudi2"
    assert program(print_program(found)) == found
    assert target_named_in("nop") is program("nop").target is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("// castsim: tensr 0 x in f32 [64]", "unknown declaration 'tensr'"),
        ("// castsim: tensor x in f32 [64]", "malformed declaration of tensor"),
        ("// castsim: tensor 0 x f32 [64]", "a tensor needs a direction"),
        ("// castsim: tensor 0 x in f33 [64]", "unknown format 'f33'"),
        ("// castsim: tensor 0 x in f32 []", "a shape is a list of positive sizes"),
        ("// castsim: tensor 0 x in f32 [0]", "a shape is a list of positive sizes"),
        ("// castsim: tensor 0 x in f32 [1,1,1,1,1,1]", "at most 5 dimensions"),
        ("// castsim: tensor 0 x in f32 [1]\n// castsim: tensor 0 y in f32 [1]", "tensor 0 is declared twice"),
        ("// castsim: tensor 0 x in f32 [1]\n// castsim: vlm 0 x f32 [1]", "name x is declared twice"),
        ("// castsim: target a\n// castsim: target b", "the target is declared twice"),
        ("// castsim: reg S99 = 1", "there is no register S99"),
        ("// castsim: reg V1 = 1", "V1 cannot be given a start value"),
        ("// castsim: reg Q1 = 1", "Q1 cannot be given a start value"),
        ("// castsim: reg I1 = 1", "I1 takes [c0, c1, c2, c3, c4]"),
        ("// castsim: reg S1 = [1]", "S1 takes one number"),
        ("// castsim: reg SP1 = 2", "'2' is not a value for SP1"),
        ("// castsim: reg S1 = abc", "'abc' is not a value for S1"),
        ("// castsim: reg S1 = 4294967296", "does not fit in 32 bits"),
        ("// castsim: reg AD1 = 99999999999999999999", "is not an address"),
        ("// castsim: reg S1 = 1\n// castsim: reg %S1 = 2", "register S1 is declared twice"),
    ],
)
def test_bad_declarations(text: str, message: str) -> None:
    with pytest.raises(ReadError) as caught:
        program(text)
    assert message in str(caught.value)
    assert caught.value.span is not None


# ------------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("text", "generation", "message", "legal"),
    [
        ("frobnicate V1", "goya", "unknown instruction 'frobnicate'", None),
        ("convrt.f32 V1, V2", "goya", "unknown instruction 'convrt.f32'", "convert"),
        ("dbg S1", "goya", "dbg is known but not modelled", None),
        ("convert.f32 V0, V1, INT8; nop; nop; nop", "goya", "cannot go in the LOAD slot", "VPU"),
        ("nop; nop; nop; ld_l_v V1, S1", "gaudi", "cannot go in the STORE slot", "LOAD"),
        ("nop; nop; add.i32 S1, S2, S3; nop", "goya", "cannot go in the VPU slot", "SPU"),
        ("nop; nop; add.i32 V1, S2, S3; nop", "goya", "operand 2 of add cannot be S2", "a register V"),
        ("nop; nop; nop; nop; nop", "goya", "a bundle has 4 slots", "STORE"),
        ("nop; ; nop; nop", "goya", "the SPU slot is empty", "nop"),
        ("{ convert.f32 V0, V1, INT8 || add.i32 V1, V2, V3 }", "goya", "no slot of the bundle is left for add", "VPU"),
        ("{ nop", "goya", "the bundle is not closed", "}"),
        ("{ { nop } }", "goya", "bundles cannot be nested", None),
        ("{ nop } nop", "goya", "nothing may follow a bundle", None),
        ("nop }", "goya", "a brace stands alone", None),
        ("/* nop", "goya", "the comment is not closed", "*/"),
        ("nop SP1", "goya", "nop takes neither operands nor a predicate", None),
        ("add.i32 V40, V1, V2", "goya", "there is no register V40", None),
        ("convert.i32 D3, V1, FP32", "goya", "there is no register D3; goya has D0, D2 .. D38", None),
        ("convert.i32 A38, V1, FP32", "goya", "there is no register A38; goya has A0, A4 .. A36", None),
        ("mov SP16, S1", "goya", "there is no register SP16", None),
        ("convert.f32 V0, V1", "goya", "convert needs target_type", "int8"),
        ("convert V0, V1, INT8", "goya", "needs a type suffix", "f32"),
        ("add.f33 V0, V1, V2", "goya", "unknown type suffix '.f33'", "f32"),
        ("convert.f32 V0, V1, INT8, FOO", "goya", "'FOO' is not a switch or operand of convert", "lane_sel=0|1|2|3"),
        ("convert.f32 V0, V1, INT8, FOO", "goya", "'FOO' is not a switch or operand of convert", "rhne|rz|ru|rd|csr"),
        ("convert.f32 V0, V1, INT8, LANE=1", "goya", "has no switch 'lane='", "lane_sel"),
        ("convert_int32 all_lanes=1 V1, D2, S3", "greco", "has no switch 'all_lanes='", "num_lanes"),
        ("convert.f32 V0, V1, INT8, LANE_SEL=4", "goya", "lane_sel cannot be 4", "3"),
        ("convert.f32 V0, V1, INT8, LANE_SEL=x", "goya", "lane_sel cannot be x", "3"),
        ("convert.f32 V0, V1, INT8, BF16", "goya", "target_type is set twice", None),
        ("convert.f32 V0, V1, INT8, LANE_SEL=", "goya", "a value must follow 'LANE_SEL='", None),
        ("convert.f32 V0, S1, INT8", "goya", "operand 2 of convert cannot be S1", "a register V"),
        ("convert.f32 V0 V1, INT8", "goya", "expected ',' before this operand", ","),
        ("convert.f32 V0,, V1, INT8", "goya", "expected an operand before this comma", None),
        ("convert.f32 V0, V1, INT8,", "goya", "an operand must follow this comma", None),
        ("convert.f32 V0, INT8", "goya", "convert needs 2 operands, found 1", "a register V"),
        ("add.i32 V0, V1, V2, V3", "goya", "add has no such operand", "SP0 .. 15"),
        ("add.i32 S0, S1, S2, VP1", "goya", "cannot be predicated by VP1", "!SP0 .. 15"),
        ("add.i32 V0, V1, V2, SP1, SP2", "goya", "nothing may follow the predicate", None),
        ("add.i32 V0, V1, !V2", "goya", "operand 3 of add cannot be !V2", None),
        ("add.i32 V0, V1, V2, !", "goya", "a predicate register must follow '!'", None),
        ("halt SP1", "goya", "halt cannot be predicated by SP1", None),
        ("jmpr nowhere", "goya", "label 'nowhere' is not defined", None),
        ("a: nop\njmpr b", "goya", "label 'b' is not defined", "a"),
        ("a: nop\na: nop", "goya", "label 'a' is defined twice, first in line 1", None),
        ("loop S1, S2, S3, ~, e\ne:", "goya", "'~' is not a switch or operand of loop", None),
        ("set_indx I1, b0001, S1", "goya", "'b0001' is not a switch or operand of set_indx", None),
        ("mov 0x8 VP1, S1", "goya", "operand 1 of mov cannot be 0x8", "0 .. 7"),
        ("mov I1, I2", "goya", "operand 1 of mov cannot be I1", "a dimension mask such as b00010"),
        ("convert_int32 all_lanes lane_sel=1 V1, D2, S3", "greco", "lane_sel goes only with num_lanes", None),
    ],
)
def test_what_cannot_be_read(text: str, generation: str, message: str, legal: str | None) -> None:
    with pytest.raises(ReadError) as caught:
        program(text, generation)
    assert message in caught.value.message
    assert caught.value.span is not None
    if legal is not None:
        assert legal in caught.value.legal


@pytest.mark.parametrize(
    ("text", "generation", "message", "legal"),
    [
        ("ld_l_v V1, 0x100", "goya", "goya has no ld_l_v", "ld_l_v V|VP, S, S|imm"),
        ("ld_l_v V1, S1, 0x100", "gaudi", "gaudi has no ld_l_v", "ld_l_v V|VP, S|imm"),
        ("mov_dg.all V1, V2, 1", "goya", "goya has no mov_dg.all", None),
        ("mov_dg.unpack V1, V2, 1", "greco", "greco has no mov_dg.unpack", None),
        ("convert_int8 V1, D2, S1", "gaudi", "gaudi has no convert_int8", None),
        ("convert.f32 V0, V1, BF16, RHAZ", "goya", "goya has no rounding mode rhaz", "rhne"),
        ("convert.f32 V0, V1, BF16, SR_RNE", "greco", "greco has no rounding mode sr_rne", "rhaz"),
        ("convert_int32 V0, V1, S2, RZ", "goya", "goya has no rounding mode rz", "sr"),
        ("convert.f32 V0, V1, BF16, CLIP_FP", "greco", "greco has no switch clip_fp", "x2"),
        ("convert.i32 D0, D2, FP32, X2", "gaudi", "gaudi has no switch x2", "target_type"),
        ("ld_tnsr V4, 0x0, I3, VP1", "goya", "cannot be predicated by VP1", None),
        ("mov VP1, V2", "gaudi", "gaudi has no mov VP, V", None),
        ("mov M1, S2", "gaudi", "gaudi has no mov", None),
        ("nop; nop; nop; ld_tnsr V4, 0x0, I3", "greco", "cannot go in the STORE slot", None),
        ("mul.i8 A4, V2, V3", "gaudi", "gaudi has no mul.TYPE A", None),
    ],
)
def test_what_a_generation_lacks(text: str, generation: str, message: str, legal: str | None) -> None:
    with pytest.raises((IllegalError, ReadError)) as caught:
        program(text, generation)
    assert message in caught.value.message
    if legal is not None:
        assert legal in caught.value.legal
