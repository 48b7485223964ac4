"""Loops, conditions and regions in `.pto` text."""

import pytest
from parsed_text import F32, I32, body_of, last_of, refusal

from castsim.isa.errors import ReadError
from castsim.isa.pto.program import Arith, Barrier, Constant, For, If, Pipe, Section, Yield
from castsim.isa.pto.pto_parser import parse


# -------------------------------------------------------------------------------------------------------- control
def test_a_loop_with_carried_values() -> None:
    node = last_of(
        "%r:2 = scf.for %i = %a to %b step %s iter_args(%x = %a, %y = %k) -> (i32, f32) : i32 {\n"
        "%z = arith.addi %x, %i : i32\nscf.yield %z, %y : i32, f32 }\n%u = arith.addi %r#0, %r : i32",
        "%a: i32, %b: i32, %k: f32, %s: i32",
    )
    assert node == Arith("u", "addi", ("r#0", "r#0"), I32)
    loop = body_of(
        "%p, %q = scf.for %i = %a to %b step %s iter_args(%x = %a, %y = %k) -> (i32, f32) : i32 {\n"
        "scf.yield %x, %y : i32, f32 }",
        "%a: i32, %b: i32, %k: f32, %s: i32",
    )[0]
    assert loop == For(
        "i", "a", "b", "s", (Yield(("x", "y"), (I32, F32)),), ("x", "y"), ("a", "k"), ("p", "q"), (I32, F32), I32
    )


def test_a_single_result_may_be_numbered_in_its_uses() -> None:
    body = (
        "%r:1 = scf.if %c -> (i32) { scf.yield %a : i32 } else { scf.yield %a : i32 }\n%s = arith.addi %r#0, %r : i32"
    )
    assert last_of(body, "%c: i1, %a: i32") == Arith("s", "addi", ("r", "r"), I32)


def test_conditions() -> None:
    node = last_of("scf.if %c {\n pto.barrier <PIPE_V>\n scf.yield\n} else {\n}", "%c: i1")
    assert node == If("c", (Barrier(Pipe.V),))


@pytest.mark.parametrize("kind", ["section.vector", "section.cube"])
def test_sections(kind: str) -> None:
    assert last_of(f"pto.{kind} {{ pto.barrier <PIPE_V> }}") == Section(kind, (Barrier(Pipe.V),))


def test_names_end_with_their_region_and_may_return_after_it() -> None:
    body = "scf.if %c { %x = arith.constant 1 : i32 } else { %x = arith.constant 2 : i32 }\n%x = arith.constant 3 : i32"
    assert last_of(body, "%c: i1") == Constant("x", 3, I32)


@pytest.mark.parametrize(
    ("text", "message", "legal"),
    [
        ("scf.for %i = %n to %n step %n { scf.yield %n : index }", "returns 0 values, its region yields 1", None),
        ("%r = scf.for %i = %n to %n step %n iter_args(%x = %n) -> (index) { }", "returns 1 values", None),
        ("%r = scf.for %i = %n to %n step %n iter_args(%x = %n) -> (index) { scf.yield %k : i32 }", "differ", None),
        (
            "%r = scf.for %i = %n to %n step %n iter_args(%x = %n) -> (i32) { scf.yield %k : i32 }",
            "%n is defined",
            None,
        ),
        ("%r = scf.for %i = %n to %n step %n iter_args(%x = %n) -> (i32, i32) { }", "1 values carried with 2", None),
        ("%r = scf.for %i = %n to %n step %n { }", "has 0 results, 1 named", None),
        ("scf.for %n = %n to %n step %n { }", "redefinition of %n", None),
        ("scf.for %i = %k to %k step %k { }", "%k is defined as i32 and used as index", None),
        ("scf.for %i = %k to %k step %k : f32 { }", "counts in integers", "i32"),
        ("scf.for %i = %n upto %n step %n { }", "expected 'to', found 'upto'", "to"),
        ("scf.for %i = %n to %n stp %n { }", "expected 'step', found 'stp'", "step"),
        ("scf.for %i = %n to %n step %n iterargs(%x = %n) { }", "expected 'iter_args'", None),
        ("%z = arith.constant 0 : index\nscf.for %i = %n to %n step %z { }", "must be positive, not 0", None),
        ("scf.for %i = %n to %n step %n { }\n%u = arith.addi %i, %i : index", "%i is not defined", None),
        ("scf.for %i = %n to %n step %n { return }", "return is not allowed", None),
        ("pto.vecscope { scf.yield }", "scf.yield is not allowed", None),
        ("scf.if %k { }", "%k is defined as i32 and used as i1", None),
        ("%r = scf.if %c -> (i32) { scf.yield %k : i32 }", "expected 'else'", None),
        ("%r = scf.if %c -> (i32) { scf.yield %k : i32 } else { }", "yields 0", None),
        ("scf.if %c { scf.yield\npto.barrier <PIPE_V> }", "nothing can follow scf.yield", None),
        ("scf.while %c { }", "expected ':'", None),
        ("scf.condition(%c)", "scf.condition is not allowed", None),
        ("scf.fro %i = %n to %n step %n { }", "unknown operation 'scf.fro'", "scf.for"),
        ("%x = scf.for %i = %n to %n step %n { }\n", "has 0 results", None),
        ("^bb0:", "block ^bb0", None),
        ("%x:2 = scf.if %c -> (i32) { scf.yield %k : i32 } else { scf.yield %k : i32 }", "1 result, 2 named", None),
    ],
)
def test_bad_control(text: str, message: str, legal: str | None) -> None:
    error = refusal(text, "%n: index, %k: i32, %c: i1")
    assert message in error.message
    assert legal is None or legal in error.legal


@pytest.mark.parametrize("region", ["pto.vecscope", "pto.section.vector", "scf.if %c", "scf.for %i = %n to %n step %n"])
def test_no_value_leaves_its_region(region: str) -> None:
    body = f"{region} {{ %x = arith.constant 1 : index }}\n%y = arith.addi %x, %x : index"
    assert "%x is not defined" in refusal(body, "%c: i1, %n: index").message


def test_names_of_result_groups_end_with_their_region_too() -> None:
    group = "%g:2 = scf.if %c -> (i32, i32) { scf.yield %k, %k : i32, i32 } else { scf.yield %k, %k : i32, i32 }"
    body = f"scf.if %c {{ {group} }}\n%g = arith.addi %k, %k : i32\n%h = arith.addi %g, %g#0 : i32"
    assert last_of(body, "%c: i1, %k: i32") == Arith("h", "addi", ("g", "g"), I32)


def test_a_missing_yield_is_shown_at_the_brace_that_ends_the_region() -> None:
    span = refusal("%r = scf.if %c -> (i32) { pto.barrier <PIPE_V> } else { }", "%c: i1").span
    assert span is not None
    assert span.text[span.column - 1 :] == "} else { }"


def test_a_written_truth_value_is_a_condition() -> None:
    assert last_of("%t = arith.constant true\nscf.if %t { }") == If("t", ())


def test_regions_one_after_the_other_do_not_count_as_nested() -> None:
    assert len(body_of("pto.vecscope { }\n" * 200)) == 200


def test_absurd_nesting_is_refused_and_does_not_break_the_reader() -> None:
    assert "nested more than" in refusal("pto.vecscope {" * 3000).message
    with pytest.raises(ReadError, match="nested more than"):
        parse("module attributes {a = " + "[" * 3000)
    assert isinstance(last_of("pto.vecscope {" * 60 + "}" * 60), Section)
