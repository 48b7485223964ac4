"""Wrong programs for `castsim check`; what is wrong stands between « and », which are taken out first."""

from __future__ import annotations

import re

_F32, _F16, _I8 = (f"!pto.tile_buf<vec, 16x64x{kind}>" for kind in ("f32", "f16", "i8"))
_HEAD = f"""module attributes {{pto.target_arch = "a3"}} {{
  func.func @k(%x: !pto.ptr<f32>, %n: index) attributes {{pto.kernel}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %a = pto.alloc_tile : {_F32}
    %b = pto.alloc_tile : {_F32}
    %h = pto.alloc_tile : {_F16}
    %q = pto.alloc_tile : {_I8}
"""
_TAIL = """
    return
  }
}
"""


def _tiles(*lines: str) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    for short, kind in (("F32", _F32), ("F16", _F16), ("I8", _I8)):
        body = re.sub(rf"\b{short}\b", kind, body)
    return _HEAD + body + _TAIL


_ADD = "pto.tadd ins(%a, %b : F32, F32) outs(%b : F32)"

TILES = {
    "unknown operation": _tiles("«pto.frobnicate» %a", _ADD),
    "two unknown operations": _tiles("«arith.constnt» 1 : index", _ADD, "«scf.fro» %a"),
    "undefined operand": _tiles("pto.tadd ins(%a, «%zz» : F32, F32) outs(%b : F32)"),
    "undefined operand is told once": _tiles(
        "pto.tadd ins(%a, «%zz» : F32, F32) outs(%b : F32)", "pto.tmul ins(%a, %zz : F32, F32) outs(%b : F32)"
    ),
    "two undefined operands": _tiles(
        "pto.tadd ins(%a, «%y1» : F32, F32) outs(%b : F32)", "pto.tmul ins(%a, «%y2» : F32, F32) outs(%b : F32)"
    ),
    "what follows from an error is not told": _tiles(
        "%t = pto.alloc_tile : !pto.tile_buf<vec, 16x64x«f33»>",
        "pto.tadd ins(%t, %b : F32, F32) outs(%b : F32)",
        "%u = pto.treshape %t : F32 -> F32",
        "pto.tadd ins(%u, %b : F32, F32) outs(%b : F32)",
    ),
    "type unlike the definition": _tiles("pto.tadd ins(%a, %h : F32, «F32») outs(%b : F32)", _ADD),
    "a wrong mode before unknown operations": _tiles(
        "pto.tcvt ins(%a {rmode = «#pto<round_mode NEAREST>»} : F32) outs(%h : F16)",
        "«pto.tfoo» ins(%a : F32) outs(%b : F32)",
        "scf.for %i = %c0 to %c16 step %c1 {",
        "  «pto.tbar» ins(%a : F32) outs(%b : F32)",
        "}",
        "«pto.tcvt» ins(%a {rmode = #pto<round_mode RINT>} : F32) outs(%q : I8)",
    ),
    "an undefined name before what the chip lacks": _tiles(
        "%m = arith.addi «%zz», %c1 : index",
        "%o = arith.muli %m, %c16 : index",
        "%v = pto.make_tensor_view %x, shape = [%c16, %o], strides = [%o, %c1] : !pto.tensor_view<?x?xf32>",
        "%p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %o]"
        " : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<16x64xf32>",
        "pto.tload ins(%p : !pto.partition_tensor_view<16x64xf32>) outs(%a : F32)",
        "pto.tadd ins(%a, %b : F32, F32) outs(%b : F32)",
        "«pto.tcvt» ins(%a {rmode = #pto<round_mode RINT>} : F32) outs(%q : I8)",
        "pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <«EVENT_ID99»>]",
        "pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID1>]",
        "«pto.tfoo» ins(%a : F32) outs(%b : F32)",
    ),
    "missing outs": _tiles("pto.tadd ins(%a, %b : F32, F32) «out»(%b : F32)", _ADD),
    "unclosed bracket": _tiles("pto.tadd ins(%a, %b : F32, F32 «outs»(%b : F32)", "«pto.tfoo» %a"),
    "a sign that begins nothing": _tiles("«$»", _ADD, "«~»"),
    "a sign within a statement": _tiles("pto.tadd ins(%a, «?» : F32, F32) outs(%b : F32)", "«arith.foo» %c1"),
    "a string without an end": _tiles('pto.set_flag[«"»PIPE_V, x]', _ADD),
    "redefinition": _tiles("«%a» = arith.constant 2 : index", "«%b» = arith.constant 2 : index"),
    "an unknown type": _tiles("%k = arith.constant 2 : «indx»", "%m = arith.addi %k, %k : index"),
    "head of a loop": _tiles(
        "scf.for %i = %c0 to «%m» step %c1 {", "  pto.tadd ins(%a, «%zz» : F32, F32) outs(%b : F32)", f"  {_ADD}", "}"
    ),
    "head of a loop, its variable used": _tiles(
        "scf.for %i = %c0 «upto» %n step %c1 {", "  %j = arith.addi %i, %c1 : index", "  «pto.tfoo» %j", "}", "«bad»"
    ),
    "body of a loop": _tiles("scf.for %i = %c0 to %n step %c1 {", "  «pto.tfoo»", "  «pto.tbar»", "}", "«pto.tbaz»"),
    "condition of another type": _tiles("scf.if «%c0» {", "  «pto.tfoo»", "} else {", "  «pto.tbar»", "}"),
    "loop in a loop": _tiles(
        "scf.for %i = %c0 to %n step %c1 {", "  scf.for %j = %c0 to %n step «%z» {", "    «pto.tfoo»", "  }",
        "  «pto.tbar»", "}",
    ),
    "a yield that is missing": _tiles(
        "%r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c0) -> (index) {", "  %t = arith.addi %s, «%w» : index",
        "  scf.yield %t : index", "}", "%u = arith.addi %r, %c1 : index",
    ),
    "negative step": _tiles("%z = arith.constant 0 : index", "scf.for %i = %c0 to %n step «%z» {", "}", "«oops»"),
    "casts of different shapes": _tiles(
        "%s = pto.alloc_tile : !pto.tile_buf<vec, 8x64xf16>",
        "«pto.tcvt» ins(%a : F32) outs(%s : !pto.tile_buf<vec, 8x64xf16>)", "«pto.tfoo»",
    ),
    "an unknown rounding mode": _tiles(
        "pto.tcvt ins(%a {rmode = «#pto<round_mode UPWARDS>»} : F32) outs(%h : F16)", "«pto.tfoo»"
    ),
    "results that nothing has": _tiles("«%r» = pto.tadd ins(%a, %b : F32, F32) outs(%b : F32)", "«pto.tfoo»"),
    "several statements in a line": _tiles(f"«pto.tfoo» {_ADD} «pto.tbar»"),
    "function that does not return": _HEAD.replace("16x64", "16x64") + "  «}»\n}\n",
    "head of a function": (
        "func.func @k(%x: !pto.ptr<f32>, %y «!pto.ptr<f32>») {\n  %k = arith.constant 0 : «idx»\n  return\n}\n"
        "func.func @l() {\n  «pto.tfoo»\n  return\n}\n"
    ),
    "two functions": (
        "func.func @k() {\n  «pto.tfoo»\n  return\n}\n"
        "func.func @l() {\n  %x = arith.constant «x» : index\n  return\n}\n"
    ),
    "function of a name that is taken": "func.func @k() {\n  return\n}\nfunc.func «@k»() {\n  return\n}\n",
    "no function": "«hello» world\n",
    "a file that ends": "func.func @k() {\n  %c = arith.constant 0 : index\n«»",
    "cast that the target lacks": _tiles("«pto.tcvt» ins(%h : F16) outs(%d : F64)".replace("%d : F64", "%e : F64"))
    .replace("    %q", '    %e = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf64>\n    %q')
    .replace("F64", "!pto.tile_buf<vec, 16x64xf64>"),
    "three casts, two of them lacking": _tiles(
        "«pto.tcvt» ins(%q : I8) outs(%a : F32)", "pto.tcvt ins(%a : F32) outs(%h : F16)",
        "«pto.tcvt» ins(%q : I8) outs(%b : F32)",
    ),
    "in a loop and behind it": _tiles(
        "scf.for %i = %c0 to %c16 step %c1 {", "  «pto.tcvt» ins(%q : I8) outs(%a : F32)", "}",
        "«pto.tcvt» ins(%q : I8) outs(%b : F32)",
    ),
    "in a loop whose trips an argument tells": _tiles(
        "scf.for %i = %c0 to %n step %c1 {", "  «pto.tcvt» ins(%q : I8) outs(%a : F32)", "}",
    ),
    "an operation that the target lacks for a type": _tiles(
        "«pto.texp» ins(%q : I8) outs(%q : I8)", "pto.texp ins(%a : F32) outs(%b : F32)"
    ),
}  # fmt: skip
"""Tile programs for A2/A3."""

_MICRO = """module attributes {pto.target_arch = "a5"} {
  func.func @k(%x: !pto.ptr<f32, gm>) attributes {pto.kernel} {
    %c0 = arith.constant 0 : index
    %c0_i64 = arith.constant 0 : i64
    %p = pto.castptr %c0_i64 : i64 -> !pto.ptr<f32, ub>
    pto.vecscope {
      %m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
      %v = pto.vlds %p[%c0] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
BODY
    }
    return
  }
}
"""


def _micro(*lines: str) -> str:
    return _MICRO.replace("BODY", "\n".join(f"      {line}" for line in lines))


_VREG = "!pto.vreg<64xf32>"

MICRO = {
    "an unknown instruction": _micro("%w = «pto.vfoo» %v : X -> X", "«pto.vbar»"),
    "a register that nothing defines": _micro(
        f"%w = pto.vadd %v, «%z», %m : {_VREG}, {_VREG}, !pto.mask<b32> -> {_VREG}"
    ),
    "a register of too many lanes": _micro("%w = pto.vlds %p[%c0] : !pto.ptr<f32, ub> -> !pto.vreg<«65xf32»>", "«x»"),
    "an unknown pattern": _micro('%k = pto.pset_b32 «"PAT_ALLES"» : !pto.mask<b32>', "«pto.vbar»"),
    "a mask of another width": _micro(
        '%k = pto.pset_b16 "PAT_ALL" : !pto.mask<b16>',
        f"%w = pto.vadd %v, %v, %k : {_VREG}, {_VREG}, «!pto.mask<b16>» -> {_VREG}", "«pto.vbar»",
    ),
    "results of which one is taken": _micro(
        f'%a, «%v» = pto.vldsx2 %p[%c0], "DINTLV_B32" : !pto.ptr<f32, ub>, index -> {_VREG}, {_VREG}',
        f"%w = pto.vadd %v, %a, %m : {_VREG}, {_VREG}, !pto.mask<b32> -> {_VREG}", "«pto.vbar»",
    ),
}  # fmt: skip
"""Programs of vector instructions."""

ASSEMBLY = {
    "unknown instructions": "// castsim: target gaudi2\n«bogus» V1\nmov V1, V2\n«bagel» V2\n",
    "an unknown declaration": "// castsim: target gaudi2\n// castsim: «tensr 0 x in f32 [64]»\n«bogus» V1\n",
    "two declarations": (
        "// castsim: target gaudi2\n// castsim: «tensor 0 x f32 [64]»\n// castsim: «vlm q y f32 [64]»\nhalt\n"
    ),
    "registers that do not exist": "// castsim: target gaudi2\nmul.f32 V1, V2, «V900»\nmul.f32 V1, «V77», V2\n",
    "two slots of a bundle": "// castsim: target gaudi2\n«bogus» S1; nop; «bagel» V1; nop\n",
    "a bundle in braces": "// castsim: target gaudi2\n{ mov V1, V2\n  «bogus» V3\n  «bagel» V4\n}\n«bagel» V5\n",
    "braces in each other": "// castsim: target gaudi2\n{ mov V1, V2; «{»\n}\n«bogus» V5\n",
    "a label twice": "// castsim: target gaudi2\nl:\nmov V1, V2\n«l»:\n«bogus»\n",
    "labels that nothing defines": "// castsim: target gaudi2\nl:\n«jmpr» m\nmov V1, V2\n«jmpr» k\n",
    "another generation's": "// castsim: target goya\nmov V1, V2\n«convert.bf16» target_type=fp32 V1, V2\n",
}
"""Assembly."""

TOSA = {
    "operators": """func.func @main(%x: tensor<4xf32>) -> tensor<4xi8> {
  %0 = «tosa.foo» %x : (tensor<4xf32>) -> tensor<4xf16>
  %1 = tosa.cast %0 : (tensor<4xf16>) -> tensor<4xi8>
  %2 = «tosa.bar» %x : (tensor<4xf32>) -> tensor<4xf16>
  return %1 : tensor<4xi8>
}
""",
    "operands": """func.func @main(%x: tensor<4xf32>) -> tensor<4xi8> {
  %0 = tosa.cast «%y» : (tensor<4xf32>) -> tensor<4xf16>
  %1 = tosa.cast «%z» : (tensor<4xf16>) -> tensor<4xi8>
  return %1 : tensor<4xi8>
}
""",
}
"""TOSA text."""


def unmarked(text: str) -> tuple[str, set[tuple[int, int, int]]]:
    """Return a text without its marks, and line, column and end column of what they enclose."""
    places = set()
    lines = []
    for number, marked in enumerate(text.split("\n"), 1):
        line = marked
        while "«" in line:
            start = line.index("«")
            end = line.index("»") - 1
            line = line.replace("«", "", 1).replace("»", "", 1)
            places.add((number, start + 1, max(end, start + 1) + 1 if end == start else end + 1))
        lines.append(line)
    return "\n".join(lines), places
