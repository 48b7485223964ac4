"""Fixed text templates around a few lines of `.pto`, written out by hand and independent of the printer."""

from __future__ import annotations

from pathlib import Path

VECTORS = Path(__file__).parent / "vectors"
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
