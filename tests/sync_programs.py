"""Small kernels for inserted synchronisation: tiles x, w, z, a, b of 16 x 128 f32, y in f16, r a column, t scratch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from castsim.execution.synchronisation.flags import SynchronisedFunction, insert
from castsim.isa.pto import program as nodes
from castsim.isa.pto.pto_parser import parse
from castsim.machines.mechanisms import lowerer_of
from castsim.targets import load_target

A3, A5 = load_target("a2a3"), load_target("a5")
WIDE, SLIM, COLUMN = "vec, 16x128xf32", "vec, 16x128xf16", "vec, 16x1xf32, blayout=col_major"
TILES = {**dict.fromkeys("xwzabt", WIDE), "y": SLIM, "r": COLUMN}
VIEW, PART = "!pto.tensor_view<16x128x{0}>", "!pto.partition_tensor_view<16x128x{0}>"

HEAD = """func.func @k(%p: !pto.ptr<f32>, %q: !pto.ptr<f32>, %s: !pto.ptr<f32>, %h: !pto.ptr<f16>, %n: index, %c: i1)
    attributes {pto.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  %one = arith.constant 1.0 : f32
"""


def kind(tile: str) -> str:
    return f"!pto.tile_buf<{TILES[tile]}>"


def kernel(body: str) -> str:
    """The program whose statements are written as in `tload p x`, `for 0 {`, `if {`, `else {`, `}`."""
    lines = [HEAD]
    for name, element in (("p", "f32"), ("q", "f32"), ("s", "f32"), ("h", "f16")):
        view, part = VIEW.format(element), PART.format(element)
        lines.append(
            f"  %v{name} = pto.make_tensor_view %{name}, shape = [%c16, %c128], strides = [%c128, %c1] : {view}"
        )
        sizes = "offsets = [%c0, %c0], sizes = [%c16, %c128]"
        lines.append(f"  %part_{name} = pto.partition_view %v{name}, {sizes} : {view} -> {part}")
    lines += [f"  %{name} = pto.alloc_tile : {kind(name)}" for name in TILES]
    lines += [statement(number, line.split()) for number, line in enumerate(body.strip().splitlines()) if line.strip()]
    return "\n".join([*lines, "  return", "}", ""])


def statement(number: int, words: Sequence[str]) -> str:
    match words:
        case ["for", first, "{"]:
            return f"  scf.for %i{number} = %c{first} to %n step %c1 {{"
        case ["if", "{"]:
            return "  scf.if %c {"
        case ["else", "{"]:
            return "  } else {"
        case ["}"]:
            return "  }"
        case ["tload", part, tile]:
            return f"  pto.tload ins(%part_{part} : {PART.format('f32')}) outs(%{tile} : {kind(tile)})"
        case ["tstore", tile, part]:
            element = "f16" if tile == "y" else "f32"
            return f"  pto.tstore ins(%{tile} : {kind(tile)}) outs(%part_{part} : {PART.format(element)})"
        case ["tcvt", src, dst]:
            return f"  pto.tcvt ins(%{src} : {kind(src)}) outs(%{dst} : {kind(dst)})"
        case [("tadds" | "tmuls") as name, src, dst]:
            return f"  pto.{name} ins(%{src}, %one : {kind(src)}, f32) outs(%{dst} : {kind(dst)})"
        case ["texpands", dst]:
            return f"  pto.texpands ins(%one : f32) outs(%{dst} : {kind(dst)})"
        case [name, *sources, dst]:
            types = ", ".join(map(kind, sources))
            return f"  pto.{name} ins({', '.join(f'%{each}' for each in sources)} : {types}) outs(%{dst} : {kind(dst)})"
    raise AssertionError(words)


def inserted(text: str, target=A3) -> SynchronisedFunction:
    """The plan of the only function of a program."""
    return insert(parse(text, "k.pto").functions[0], lowerer_of(target), target)


def listing(body: str, target=A3) -> list[str]:
    """The operations, loops, branches and inserted lines (with `+`) of a kernel, from the first of them on."""
    return list(_lines(inserted(kernel(body), target).function.body or ()))


def _lines(body: Sequence[nodes.Operation]) -> Iterator[str]:
    for node in body:
        match node:
            case nodes.SetFlag() | nodes.WaitFlag():
                word = "set" if isinstance(node, nodes.SetFlag) else "wait"
                yield f"+ {word} {node.src[5:]}->{node.dst[5:]} #{node.event}"
            case nodes.Barrier():
                yield f"+ barrier {node.pipe[5:]}"
            case nodes.Tcvt():
                yield "tcvt"
            case nodes.TileOperation():
                yield node.mnemonic
            case nodes.For():
                yield "for"
                yield from _lines(node.body)
                yield "end"
            case nodes.If():
                yield "if"
                yield from _lines(node.then_body)
                yield from ["else", *_lines(node.else_body)] if node.else_body else []
                yield "end"
