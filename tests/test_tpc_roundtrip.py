"""Printing then reading is the identity, over every row of the instruction table; garbage is refused in order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tpc_random_instructions import some_instruction
from tpc_text import GENERATIONS, dialect

from castsim.isa.errors import CastsimError
from castsim.isa.tpc import (
    FORMS,
    Bundle,
    LabelDefinition,
    Slot,
    TpcProgram,
    available,
    canonical_text,
    mnemonics,
    parse,
    print_program,
)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_row_of_the_table_in_every_slot(generation: str) -> None:
    language, source = dialect(generation), random.Random(20)
    rows = [form for form in FORMS if available(form, language)]
    for form in rows:
        for slot in map(Slot, form.slots):
            for _ in range(6):
                bundle = Bundle(**{slot.name.lower(): some_instruction(form, language, source)})
                before = TpcProgram((), (bundle, LabelDefinition("end")))
                text = print_program(before)
                assert parse(text, language) == before, text
                assert canonical_text(text, language) == text


@pytest.mark.parametrize("generation", GENERATIONS)
def test_full_bundles(generation: str) -> None:
    language, source = dialect(generation), random.Random(21)
    rows = [form for form in FORMS if available(form, language)]
    choices = {slot: [form for form in rows if slot in form.slots] for slot in Slot}
    for _ in range(300):
        slots = {
            slot.name.lower(): some_instruction(source.choice(choices[slot]), language, source)
            for slot in Slot
            if source.random() < 0.8
        }
        before = TpcProgram((), (Bundle(**slots), LabelDefinition("end")))
        assert parse(print_program(before), language) == before


def test_every_pattern_is_used_by_some_generation() -> None:
    languages = [dialect(generation) for generation in GENERATIONS]
    used = {form.pattern() for form in FORMS if any(available(form, language) for language in languages)}
    assert used == {form.pattern() for form in FORMS}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_mnemonics_of_the_published_opcode_table(generation: str) -> None:
    """The instructions of docs/reference/tpc.md section 7.1 that not every generation has."""
    language = dialect(generation)
    found = {form.mnemonic for form in FORMS if available(form, language)}
    missing = set(mnemonics()) - found
    classes = {"fclass", "calc_fp_special"}
    typed, parts = {"lookup_1c", "lookup_2c"}, {"lookup_c0", "lookup_c1c2"}
    from_gaudi2 = {"event", "st_tnsr_sqz", "st_tnsr_s", "udiv"}
    bytes_only = {"convert_int8", "convert_uint8"}
    expected = {
        "goya": {"mov_dg.all", "mov_dg.pack", "mov_dg.unpack", "madd", "prefetch", "udiv_4step"}
        | bytes_only | classes | typed | from_gaudi2,
        "gaudi": {"mov_dg.pack", "mov_dg.unpack", "madd", "msac", "udiv_step"} | bytes_only | parts | from_gaudi2,
        "gaudib": {"mov_dg.pack", "madd", "msac", "udiv_step"} | bytes_only | parts | from_gaudi2,
        "greco": {"mov_dg.unpack", "udiv_step"} | parts | from_gaudi2,
        "gaudi2": {"udiv_step", "udiv_4step"} | parts,
    }  # fmt: skip
    assert missing == expected[generation]


PIECES = (
    *("convert.f32", "mov_dg", "all", "add.i32", "mov", "mov.i32", "ld_tnsr", "jmpr", "loop", "halt", "nop", "end"),
    *("V0", "D2", "%S3", "I1", "SP0", "!VP3", "S30", "LFSR", ",", ";", "||", "|", "{", "}", ":", "=", "!", "<=", "%"),
    *("0x7b", "-1", "1.5", "i16_5", "99999999999", "b00010", "lane_sel=3", "rhne", "target_type=int8", "partial"),
    *("//", "/*", "*/", "castsim:", "tensor", "[64]", ".", ".text", "..", "\n", "\t", "\x00", "ünï"),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14), st.sampled_from(GENERATIONS))
def test_garbage_is_refused_or_read(pieces: list[str], generation: str) -> None:
    text = " ".join(pieces)
    try:
        found = parse(text, dialect(generation))
    except CastsimError as error:
        assert error.span is not None
        assert error.render()
    else:
        assert parse(print_program(found), dialect(generation)) == found


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_refused_or_read(text: str) -> None:
    try:
        parse(text, dialect("gaudi2"))
    except CastsimError as error:
        assert error.span is not None


def test_long_texts_take_linear_time() -> None:
    line = "ld_l_v V1, 0x100; nop; convert.f32 target_type=int32 V4, V5; nop  // castsim is quick /* */\n"
    assert len(parse(line * 3000, dialect("gaudi2")).bundles) == 3000
    assert parse("/* */ " * 20000 + " " * 20000, dialect("gaudi2")).items == ()
