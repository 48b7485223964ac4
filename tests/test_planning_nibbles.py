"""Programs of lowered casts from and to 4 bits: every element keeps its place."""

import numpy as np
import oracle
import pytest

from castsim.isa.formats import FORMATS
from castsim.numerics import array_from_codes, codes_from_array
from castsim.planning import CastRequest, plan
from castsim.running import load_text, run_loaded

PAIRS = [
    ("i4", "i8", "wrap"),
    ("u4", "u8", "wrap"),
    ("i8", "i4", "wrap"),
    ("u8", "u4", "wrap"),
    ("i4", "i16", "wrap"),
    ("u4", "f32", "special"),
    ("i16", "i4", "wrap"),
]


@pytest.mark.parametrize("target", ["greco", "gaudi2"])
@pytest.mark.parametrize(("src", "dst", "overflow"), PAIRS)
def test_the_program_alone_keeps_the_order_of_elements(src: str, dst: str, overflow: str, target: str) -> None:
    found = plan(CastRequest(src, dst, target, spec="onnx"))
    program = found.assembly
    assert program is not None
    bits = FORMATS[src].bits
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 1 << bits, program.elements).astype(oracle.storage(src))
    loaded = load_text(program.text, "lowered.tpc", program.target)
    outputs = run_loaded(loaded, {"src": array_from_codes(codes, program.source)}, stale_reads="ignore").outputs
    results = codes_from_array(outputs["dst"], program.destination).reshape(-1)
    right = oracle.cast_array(codes, src, dst, "rint", overflow)
    mask = (1 << FORMATS[dst].bits) - 1
    assert ((results & mask) == (right & mask)).all()
