"""What is refused of programs that read and write elements, each with its place."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from execution_programs import kernel
from pto_text import VECTORS
from scalar_programs import HEAD, LENGTH, LOAD, ROW

from castsim import run
from castsim.isa.errors import CastsimError, LimitError, ReadError, TileError

OWN = VECTORS / "pto_scalars"


@pytest.mark.parametrize(
    ("body", "inputs", "message"),
    [
        ("%v = pto.load_scalar %n[%c3] : !pto.ptr<i32> -> i32", {"n": 3}, "element 3 of %n, which has 3"),
        ("%v = pto.load_scalar %n[%m] : !pto.ptr<i32> -> i32", {"n": 3}, "element -1 of %n"),
        ("%v = pto.load_scalar %t[%c16] : !pto.ptr<i32> -> i32", {}, "whose views have 16"),
        ("pto.store_scalar %k3, %n[%m] : !pto.ptr<i32>, i32", {}, "element -1 of %n"),
        ("%q = pto.addptr %n, %m : !pto.ptr<i32> -> !pto.ptr<i32>\n%v = pto.load_scalar %q[%c0] : !pto.ptr<i32> -> i32", {"n": 3}, "element -1"),
        (f"%v = pto.tgetval ins(%a, %far : {ROW}, index) outs : i32", {}, "outside the buffer"),
        ("%v = pto.load_scalar %n[%c0] : !pto.ptr<i32> -> i32", {}, "no input given"),
        ("%v = arith.divsi %k3, %k0 : i32", {}, "division by zero"),
        ("%v = pto.load_scalar %n[%c0] : !pto.ptr<i32> -> i32\n%u = arith.remsi %k3, %v : i32", {"n": 2}, "division by zero"),
    ],
)  # fmt: skip
def test_refused_with_a_place(body: str, inputs: dict[str, int], message: str, tmp_path: Path) -> None:
    more = "%m = arith.constant -1 : index\n%far = arith.constant 1000000 : index\n"
    text = kernel(HEAD + more + body, "%t: !pto.ptr<i32>, %n: !pto.ptr<i32>")
    path = tmp_path / "k.pto"
    path.write_text(text)
    arrays = {name: np.zeros(size, np.int32) for name, size in inputs.items()}
    with pytest.raises((ReadError, TileError)) as caught:
        run(path, "a5", inputs={"t": "zeros", **arrays})
    assert message in caught.value.message
    assert caught.value.span is not None
    lines = text.splitlines()
    assert lines[caught.value.span.line - 1] in body.splitlines()


@pytest.mark.parametrize(
    ("args", "message"),
    [({"z[0]": 1}, "no elements of 'z'"), ({"n[0]": 1.5}, "is i32"), ({"n[0]": 2**40}, "is i32"), ({"n[x]": 1}, "no scalar")],
)  # fmt: skip
def test_bad_elements(args: dict[str, float], message: str, tmp_path: Path) -> None:
    path = tmp_path / "k.pto"
    path.write_text(LENGTH)
    with pytest.raises(ReadError, match=message):
        run(path, "a5", args=args, timing_only=True)


def test_interlock_has_no_flags_for_the_scalar_unit() -> None:
    with pytest.raises(ReadError, match="interlock"):
        run(OWN / "scalar_offset.pto", sync="interlock", timing_only=True, args={"n": 1})


def test_a_long_loop_around_a_read_meets_the_limit(tmp_path: Path) -> None:
    text = kernel(
        f"%much = arith.constant 100000000 : index\nscf.for %i = %c0 to %much step %c1 {{\n{LOAD}\n}}",
        "%n: !pto.ptr<i32>",
    )
    path = tmp_path / "k.pto"
    path.write_text(text)
    with pytest.raises(LimitError):
        run(path, "a5", timing_only=True)


def test_own_flags_are_taken_at_their_word(tmp_path: Path) -> None:
    """A tgetval behind a load with no flag MTE2 -> S is a race."""
    flags = "pto.set_flag[<PIPE_MTE2>, <PIPE_S>, <EVENT_ID0>]\npto.wait_flag[<PIPE_MTE2>, <PIPE_S>, <EVENT_ID0>]\n"
    read = f"%v = pto.tgetval ins(%a, %c0 : {ROW}, index) outs : i32\n"
    path = tmp_path / "k.pto"
    path.write_text(kernel(f"{HEAD}{flags}{read}", "%t: !pto.ptr<i32>"))
    run(path, "a5", inputs={"t": "zeros"})
    other = flags.replace("PIPE_S", "PIPE_V")
    path.write_text(kernel(f"{HEAD}{other}{read}pto.barrier <PIPE_ALL>", "%t: !pto.ptr<i32>"))
    with pytest.raises(CastsimError, match="MTE2"):
        run(path, "a5", inputs={"t": "zeros"})
