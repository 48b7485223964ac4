"""Constants, integer arithmetic, comparisons and conversions in `.pto` text."""

import pytest
from parsed_text import F32, I32, INDEX, body_of, last_of, refusal
from pto_text import function

from castsim.isa.pto.program import Arith, Compare, Constant, Convert, ScalarType
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program


# --------------------------------------------------------------------------------------------------- scalar values
@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("16 : index", 16, "index"), ("-5 : i32", -5, "i32"), ("-128 : i8", -128, "i8"), ("255 : i8", -1, "i8"),
        ("0xFF : i8", -1, "i8"), ("4294967295 : i32", -1, "i32"), ("-9223372036854775808 : i64", -(1 << 63), "i64"),
        ("true", True, "i1"), ("false : i1", False, "i1"), ("1 : i1", True, "i1"), ("-127.0 : f32", -127.0, "f32"),
        ("1.000000e+00 : f32", 1.0, "f32"), ("0.5 : f16", 0.5, "f16"), ("1e-3 : bf16", 0.001, "bf16"),
        ("0x7F800000 : f32", 0x7F800000, "f32"), ("0x7FC1 : bf16", 0x7FC1, "bf16"),
        ("0xFFF8000000000001 : f64", 0xFFF8000000000001, "f64"),
    ],
)  # fmt: skip
def test_constants(text: str, value: float, kind: str) -> None:
    node = last_of(f"%c = arith.constant {text}")
    assert node == Constant("c", value, ScalarType(kind))
    assert isinstance(node, Constant)
    assert type(node.value) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arith.constant 1 : i32", "has 1 result, 0 named"),
        ("%a, %b = arith.constant 1 : i32", "has 1 result, 2 named"),
        ("%c = arith.constant 256 : i8", "does not fit the 8 bits"),
        ("%c = arith.constant -129 : i8", "does not fit the 8 bits"),
        ("%c = arith.constant 1.0 : i32", "whole number"), ("%c = arith.constant -0x1 : i32", "whole number"),
        ("%c = arith.constant 1 : f32", "needs a decimal point"),
        ("%c = arith.constant -0x1 : f32", "does not fit the 32 bits"),
        ("%c = arith.constant 0x10000 : f16", "does not fit the 16 bits"),
        ("%c = arith.constant 1.0e999 : f64", "beyond every float type"),
        ("%c = arith.constant " + "9" * 5000 + " : index", "too long"), ("%c = arith.constant 1", "expected ':'"),
        ("%c = arith.constant true : i8", "of type i1"), ("%c = arith.constant tru : i1", "expected a number"),
        ("%c = arith.constant 1 : ui8", "signless"),
        ("%c = arith.constant 1 : !pto.ptr<f32>", "expected a scalar type"),
        ("%c = arith.constant dense<0.0> : vector<4xf32>", "dense constants"),
        ("%c:2 = arith.constant 1 : i32", "has 1 result, 2 named"),
        ("%c:0 = arith.constant 1 : i32", "a result count is 1 to 999"),
        ("%c:1x = arith.constant 1 : i32", "expected '='"),
        ("%c#0 = arith.constant 1 : i32", "a result is defined as"),
    ],
)  # fmt: skip
def test_bad_constants(text: str, message: str) -> None:
    assert message in refusal(text).message


BINARY = [
    "addi", "subi", "muli", "minsi", "maxsi", "minui", "maxui", "andi", "ori", "xori", "divsi", "divui", "remsi",
    "remui", "shli", "shrsi", "shrui",
]  # fmt: skip
PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]


@pytest.mark.parametrize("operation", BINARY)
def test_integer_arithmetic(operation: str) -> None:
    node = last_of(f"%r = arith.{operation} %a, %b : i32", "%a: i32, %b: i32")
    assert node == Arith("r", operation, ("a", "b"), I32)


@pytest.mark.parametrize("predicate", PREDICATES)
def test_comparisons(predicate: str) -> None:
    body = body_of(f"%r = arith.cmpi {predicate}, %a, %b : index\n%s = arith.xori %r, %r : i1", "%a: index, %b: index")
    assert body[0] == Compare("r", predicate, ("a", "b"), INDEX)


def test_select_takes_any_scalar() -> None:
    node = last_of("%r = arith.select %c, %a, %b : f32", "%c: i1, %a: f32, %b: f32")
    assert node == Arith("r", "select", ("c", "a", "b"), F32)


@pytest.mark.parametrize(
    ("operation", "source", "target"),
    [
        ("index_cast", "i32", "index"), ("index_cast", "index", "i64"), ("index_castui", "i32", "index"),
        ("extui", "i1", "i32"), ("extsi", "i8", "i64"), ("trunci", "i64", "i16"), ("bitcast", "f32", "i32"),
        ("bitcast", "i16", "bf16"),
    ],
)  # fmt: skip
def test_conversions(operation: str, source: str, target: str) -> None:
    node = last_of(f"%r = arith.{operation} %a : {source} to {target}", f"%a: {source}")
    assert node == Convert("r", operation, "a", ScalarType(source), ScalarType(target))


@pytest.mark.parametrize(
    ("text", "message", "legal"),
    [
        ("%r = arith.addi %i, %x : i32", "%x is defined as f32 and used as i32", "f32"),
        ("%r = arith.addi %x, %x : f32", "signless integers, not f32", "i32"),
        ("%r = arith.addi %i : i32", "expected ','", None),
        ("%r = arith.addf %i, %i : i32", "floats, not i32", "f32"),
        ("%r = arith.cmpf slt, %x, %x : f32", "unknown predicate 'slt'", "olt"),
        ("%r = arith.fptosi %x : f32 to index", "other than index", None),
        ("%r = arith.extf %x : f32 to f16", "wider", None),
        ("%r = arith.truncf %i : i32 to f16", "works on floats", None),
        ("%r = math.exp %x : f32", "no definition gives the bits", "math.sqrt"),
        ("%r = math.absi %x : f32", "signless integers", "i32"),
        ("%r = arith.mulli %i, %i : i32", "unknown operation 'arith.mulli'", "arith.muli"),
        ("%r = arith.cmpi lt, %i, %i : i32", "unknown predicate 'lt'", "slt"),
        ("%r = arith.select %i, %i, %i : i32", "%i is defined as i32 and used as i1", None),
        ("%r = arith.index_cast %i : i32 to i64", "between index and another integer", None),
        ("%r = arith.index_cast %x : f32 to index", "signless integers", None),
        ("%r = arith.trunci %i : i32 to i64", "narrower", None),
        ("%r = arith.trunci %i : i32 to i32", "narrower", None),
        ("%r = arith.extsi %i : i32 to i32", "wider", None),
        ("%r = arith.addi %x, %i : i32", "%x is defined as f32", None),
        ("%r = arith.cmpi eq, %x, %i : i32", "%x is defined as f32", None),
        ("%r = arith.cmpi eq, %i, %x : i32", "%x is defined as f32", None),
        ("%r = arith.select %b, %i, %x : i32", "%x is defined as f32", None),
        ("%r = arith.select %b, %x, %i : i32", "%x is defined as f32", None),
        ("arith.constant true", "has 1 result, 0 named", None),
        ("%r = arith.extui %i : i32 to i16", "wider", None),
        ("%r = arith.extui %n : index to i64", "takes no index", None),
        ("%r = arith.bitcast %i : i32 to f16", "keeps the width", None),
        ("%r = arith.bitcast %n : index to i64", "keeps the width", None),
        ("%r = arith.trunci %i : i64 to i32", "%i is defined as i32", None),
        ("%r = arith.trunci %i : i32, i16", "expected 'to'", None),
        ("%r = math.gamma %x : f32", "unknown operation 'math.gamma'", None),
    ],
)
def test_bad_scalar_operations(text: str, message: str, legal: str | None) -> None:
    error = refusal(text, "%i: i32, %x: f32, %n: index, %b: i1")
    assert message in error.message
    assert legal is None or legal in error.legal


ACCESSES = """%q = pto.addptr %p, %i : !pto.ptr<f32> -> !pto.ptr<f32>
%x = pto.load_scalar %q[%i] : !pto.ptr<f32> -> f32
pto.store_scalar %x, %p[%i] : !pto.ptr<f32>, f32
%y = pto.tgetval ins(%t, %i : !pto.tile_buf<vec, 8x8xf32>, index) outs : f32
pto.tsetval ins(%i, %y : index, f32) outs(%t : !pto.tile_buf<vec, 8x8xf32>)
pto.fence.barrier_all
pto.fence.barrier_all #pto.fence_scope<gm>
pto.cmo.cacheinvalid
pto.cmo.cacheinvalid %q single_cache_line : !pto.ptr<f32>
%z, %u = scf.if %b -> (f32, f32) {
scf.yield %x, %x : f32, f32
} else {
scf.yield %y, %y : f32, f32
}
%f = arith.addf %z, %u fastmath<nnan, ninf> : f32
%g = arith.cmpf olt, %f, %x : f32
%h = math.copysign %f, %x : f32
%k = math.sqrt %h : f32
%m = math.fma %k, %h, %x : f32"""
ACCESSED = "%p: !pto.ptr<f32>, %i: index, %b: i1"


def test_accesses_are_printed_as_they_are_read() -> None:
    tile = "%t = pto.alloc_tile : !pto.tile_buf<vec, 8x8xf32>\n"
    program = parse(function(tile + ACCESSES, ACCESSED), "k.pto")
    assert parse(print_program(program), "k.pto") == program
    printed = print_program(program)
    for line in ACCESSES.splitlines():
        if line.startswith(("%", "pto.")) and "fastmath" not in line and "scf" not in line:
            assert line in printed


@pytest.mark.parametrize(
    ("text", "message", "legal"),
    [
        ("%x = pto.load_scalar %p[%i] : !pto.ptr<f32> -> i32", "element type f32, not i32", "f32"),
        ("%x = pto.load_scalar %i[%i] : !pto.ptr<f32> -> f32", "%i is defined as index", None),
        ("%x = pto.load_scalar %p[%b] : !pto.ptr<f32> -> f32", "%b is defined as i1", None),
        ("pto.load_scalar %p[%i] : !pto.ptr<f32> -> f32", "has 1 result, 0 named", None),
        ("%x = pto.load_scalar %p[%i] : index -> f32", "works on pointers, not on index", "!pto.ptr<...>"),
        ("pto.store_scalar %i, %p[%i] : !pto.ptr<f32>, index", "element type f32, not index", "f32"),
        ("%q = pto.addptr %p, %i : !pto.ptr<f32> -> !pto.ptr<f16>", "keeps the type", None),
        ("%x = pto.tgetval ins(%p, %i : !pto.ptr<f32>, index) outs : f32", "works on tiles", None),
        ("pto.fence.barrier_all #pto.layout<nd>", "a fence has a scope", "#pto.fence_scope<gm>"),
        ("%x = pto.cmo.cacheinvalid %p : !pto.ptr<f32>", "has no result", None),
    ],
)
def test_bad_accesses(text: str, message: str, legal: str | None) -> None:
    error = refusal(text, ACCESSED)
    assert message in error.message
    assert legal is None or legal in error.legal
