"""Fixed text templates around a few lines of `.pto`, written out by hand and independent of the printer."""

from __future__ import annotations

from kit.paths import VECTORS

SPECIMENS = sorted((VECTORS / "pto_specimens").glob("*.pto"))


def function(body: str, arguments: str = "", attributes: str = "") -> str:
    """A function `@f` with one statement per line of `body`."""
    head = f"attributes {attributes} " if attributes else ""
    return f"func.func @f({arguments}) {head}{{\n{body}\nreturn\n}}\n"


def key_value(
    element: str, rows: int, cols: int, valid_rows: int | str | None = None, valid_cols: int | str | None = None
) -> str:
    """A fully spelled `vec` tile type."""
    valid_rows = rows if valid_rows is None else valid_rows
    valid_cols = cols if valid_cols is None else valid_cols
    return (
        f"!pto.tile_buf<loc=vec, dtype={element}, rows={rows}, cols={cols}, v_row={valid_rows}, v_col={valid_cols}, "
        "blayout=row_major, slayout=none_box, fractal=512, pad=0>"
    )


def compact(
    element: str, rows: int, cols: int, valid_rows: int | str | None = None, valid_cols: int | str | None = None
) -> str:
    """The same type in the short form; the valid region only if given."""
    valid = "" if valid_rows is None and valid_cols is None else f", valid={valid_rows}x{valid_cols}"
    return f"!pto.tile_buf<vec, {rows}x{cols}x{element}{valid}>"


def asked(mode: str | None, saturation: str | None) -> str:
    """The attributes of a cast in braces; None and `default` are left out."""
    words = [f"rmode = #pto<round_mode {mode}>"] if mode not in (None, "default") else []
    words += [f"sat_mode = #pto<saturation_mode {saturation}>"] if saturation not in (None, "default") else []
    return f" {{{', '.join(words)}}}" if words else ""


def moved(
    name: str, tile: tuple[str, str], element: str, rows: int | str, cols: int | str, *, load: bool = True,
    dn: bool = False, typed: bool = True,
) -> list[str]:  # fmt: skip
    """All rows and columns of %name, to or from a tile (its name and type), by way of %c0 and %c1.

    A matrix of `dn` is stored by columns. The statement `pto.partition_view` may leave its result's type out.
    """
    view, part = f"!pto.tensor_view<?x?x{element}>", f"!pto.partition_tensor_view<{rows}x{cols}x{element}>"
    steps, layout = (f"%c1, %n{name}", " {layout = #pto.layout<dn>}") if dn else (f"%m{name}, %c1", "")
    size, ends = f"%n{name}, %m{name}", [f"%p{name} : {part}", f"{tile[0]} : {tile[1]}"]
    src, dst = ends if load else ends[::-1]
    return [
        f"%n{name} = arith.constant {rows} : index",
        f"%m{name} = arith.constant {cols} : index",
        f"%v{name} = pto.make_tensor_view %{name}, shape = [{size}], strides = [{steps}]{layout} : {view}",
        f"%p{name} = pto.partition_view %v{name}, offsets = [%c0, %c0], sizes = [{size}] : {view}"
        + (f" -> {part}" if typed else ""),
        f"pto.{'tload' if load else 'tstore'} ins({src}) outs({dst})",
    ]


def module(arch: str, arguments: list[str], lines: list[str], name: str = "k") -> str:
    """A module of one entry with these arguments and, behind %c0 and %c1, these lines."""
    constants = ["%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index"]
    head = f"func.func @{name}({', '.join(arguments)}) attributes {{pto.entry}} {{"
    body = "\n".join([head, *constants, *lines, "return", "}"])
    attributes = f' attributes {{pto.target_arch = "{arch}"}}' if arch else ""
    return f"module{attributes} {{\n{body}\n}}\n"


def cast_program(
    arch: str, types: list[str], tiles: list[str], extent: tuple[int, int], casts: list[str], *, even: bool = False,
    tmp: str = "",
) -> str:  # fmt: skip
    """Load %x into the first tile, cast from each to the next, by way of a tmp tile of that type, store the last in %y.

    Rows of %x and %y are as long as `extent` says, or `even` if asked for.
    """
    rows, cols = extent
    parts = {name: f"{rows}x{cols}x{kind}" for name, kind in zip("xy", (types[0], types[-1]), strict=True)}
    scratch = (", %tmp", f", {tmp}") if tmp else ("", "")
    lines = [f"%r = arith.constant {rows} : index", f"%c = arith.constant {cols} : index"]
    lines.append(f"%s = arith.constant {cols + cols % 2 if even else cols} : index")
    for name, part in parts.items():
        view = f"!pto.tensor_view<{part}>"
        lines.append(f"%v{name} = pto.make_tensor_view %{name}, shape = [%r, %c], strides = [%s, %c1] : {view}")
        where = f"%v{name}, offsets = [%c0, %c0], sizes = [%r, %c]"
        lines.append(f"%p{name} = pto.partition_view {where} : {view} -> !pto.partition_tensor_view<{part}>")
    lines += [f"%t{number} = pto.alloc_tile : {tile}" for number, tile in enumerate(tiles)]
    lines += [f"%tmp = pto.alloc_tile : {tmp}"] if tmp else []
    lines.append(f"pto.tload ins(%px : !pto.partition_tensor_view<{parts['x']}>) outs(%t0 : {tiles[0]})")
    for number, words in enumerate(casts):
        src = f"%t{number}{scratch[0]}{words} : {tiles[number]}{scratch[1]}"
        lines.append(f"pto.tcvt ins({src}) outs(%t{number + 1} : {tiles[number + 1]})")
    out = f"ins(%t{len(casts)} : {tiles[-1]}) outs(%py : !pto.partition_tensor_view<{parts['y']}>)"
    return module(
        arch, [f"%x: !pto.ptr<{types[0]}>", f"%y: !pto.ptr<{types[-1]}>"], [*lines, f"pto.tstore {out}"], "cast"
    )
