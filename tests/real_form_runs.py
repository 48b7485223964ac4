"""Running the program of a form, with time and values, and what a few lines of NumPy say of the values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from real_form_programs import NotWrittenError, program
from real_forms import Form, Written, forms, tile_form

from castsim import run
from castsim.isa.errors import CastsimError

Arrays = Mapping[str, np.ndarray]
NATIVE = {"f32": np.float32, "i32": np.int32, "f16": np.float16}
WHOLE = ("tconcat", "ttrans", "tfillpad", "tgather", "tload", "tstore", "subview", "tsetval", "tgetval", "tci")
"""Operations whose templates say the extents of all operands themselves: these run with full tiles only."""


@dataclass(frozen=True)
class Outcome:
    """What became of a form: `refusal` is the message, empty if it ran; `opaque` that it did so without values."""

    form: Form
    refusal: str = ""
    opaque: bool = False


def inputs_of(written: Written) -> dict[str, np.ndarray | str]:
    """Random inputs; numbers that name elements lie in their tile."""
    random = np.random.default_rng(7)
    found: dict[str, np.ndarray | str] = {}
    for name, kind in written.loaded.items():
        native = NATIVE.get(kind.element)
        if native is None or kind.plain is False:
            found[name] = "random:7"
            continue
        shape = written.shapes[name]
        limit = written.loaded["in0"].rows * written.loaded["in0"].cols if written.form.operation == "tgather" else 100
        low = (
            1
            if written.form.operation in ("tsqrt", "trsqrt", "tlog")
            else 0
            if written.form.operation == "tgather"
            else -100
        )
        found[name] = random.integers(low, limit, shape).astype(native)
    if "in0" not in found and any(each.startswith("%in0:") for each in written.arguments):
        found["in0"] = "random:7"
    return found


_EXPECTED: dict[str, Callable[[Arrays, Written], np.ndarray]] = {
    "tload": lambda x, _: x["in0"],
    "tstore": lambda x, _: x["in0"],
    "tmov": lambda x, _: x["in0"],
    "tadd": lambda x, _: x["in0"] + x["in1"],
    "tsub": lambda x, _: x["in0"] - x["in1"],
    "tmul": lambda x, _: x["in0"] * x["in1"],
    "tmax": lambda x, _: np.maximum(x["in0"], x["in1"]),
    "tadds": lambda x, w: x["in0"] + x["in0"].dtype.type(w.args["s1"]),
    "tsubs": lambda x, w: x["in0"] - x["in0"].dtype.type(w.args["s1"]),
    "tmuls": lambda x, w: x["in0"] * x["in0"].dtype.type(w.args["s1"]),
    "tmaxs": lambda x, w: np.maximum(x["in0"], x["in0"].dtype.type(w.args["s1"])),
    "tmins": lambda x, w: np.minimum(x["in0"], x["in0"].dtype.type(w.args["s1"])),
    "tneg": lambda x, _: -x["in0"],
    "tabs": lambda x, _: np.abs(x["in0"]),
    "tcolexpand": lambda x, w: np.broadcast_to(x["in0"][:1], w.extents["%r0"]),
    "trowexpand": lambda x, w: np.broadcast_to(x["in0"][:, :1], w.extents["%r0"]),
    "tcolexpandmul": lambda x, _: x["in0"] * x["in1"][:1],
    "trowexpandmul": lambda x, _: _by_row(x, np.multiply),
    "trowexpandsub": lambda x, _: _by_row(x, np.subtract),
    "trowmax": lambda x, _: x["in0"].max(axis=1, keepdims=True),
    "tcolmax": lambda x, _: x["in0"].max(axis=0, keepdims=True),
    "ttrans": lambda x, _: x["in0"].T,
    "tconcat": lambda x, _: np.hstack([x["in0"], x["in1"]]),
    "tgather": lambda x, _: x["in0"].ravel()[x["in1"]],
}


def _by_row(x: Arrays, function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """A tile with a vector of one element, or one block of equal use, per row."""
    full, vector = x["in0"], x["in1"]
    columns = np.arange(full.shape[1]) % vector.shape[1]
    return function(full, vector[:, columns])


def check_values(written: Written, inputs: Mapping[str, np.ndarray | str], outputs: Arrays) -> None:
    """Compare what came out with NumPy, where the operation is exact and its elements are native."""
    arrays = {name: array for name, array in inputs.items() if isinstance(array, np.ndarray)}
    rule = _EXPECTED.get(written.form.operation)
    if (
        rule is None
        or not all(array.size for array in arrays.values())
        or len(arrays) < len(written.loaded)
        or "out0" not in outputs
    ):
        return
    expected, found = rule(arrays, written), outputs["out0"]
    if found.dtype != expected.dtype or not expected.size:
        return
    np.testing.assert_array_equal(found.reshape(expected.shape), expected, err_msg=str(written.form))


def try_form(form: Form, path: Path, open_extents: str = "full") -> Outcome:
    """Write and run the program of a form; raises AssertionError where its values are wrong."""
    try:
        written = program(form, open_extents)
        path.write_text(written.text)
        if written.opaque:
            assert run(path, timing_only=True, args=written.args).cycles >= 0
            return Outcome(form, opaque=True)
        inputs = inputs_of(written)
        result = run(path, args=written.args, inputs=inputs)
    except (NotWrittenError, CastsimError) as error:
        return Outcome(form, str(error) or type(error).__name__)
    assert result.cycles > 0 or open_extents == "empty"
    check_values(written, inputs, result.outputs)
    return Outcome(form)


def opens(form: Form) -> bool:
    """Whether the program chooses the valid regions of all tiles of a form."""
    kinds = [kind for text in (*form.inputs, *form.outputs) if (kind := tile_form(text)) is not None]
    return form.operation not in WHOLE and bool(kinds) and all(kind.plain and "?" in kind.valid for kind in kinds)


@cache
def outcomes(*, of_vector_kernels: bool = True) -> tuple[Outcome, ...]:
    """What becomes of every form, its tiles full."""
    with TemporaryDirectory() as folder:
        every = forms(of_vector_kernels=of_vector_kernels)
        return tuple(try_form(form, Path(folder) / "form.pto") for form in every)


MISSING = {
    r": !pto\.tile_view<|-> !pto\.tile_view<": "views as an older assembler spelt them; no sheet describes them",
    r"memref<": "memory without a view; no sheet describes what makes it",
    r"tmov: !pto\.tile_buf<loc=": "keys of a tile type in an order that the front end refuses",
    r"vec 16x2x": "rows of 2 elements: the library takes rows of whole 32-byte blocks only",
    r"trowmax: vec f32 32x32 pad1 ->": "without a scratch tile, which older assemblers demand",
}
"""Forms that need not run, as the list of forms writes them, and why."""


def listed(text: str) -> str | None:
    """Return why a form need not run."""
    return next((reason for pattern, reason in MISSING.items() if re.search(pattern, text)), None)
