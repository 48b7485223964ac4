"""Vector functions that kernels in C++ write instruction by instruction: launches, loops, samples."""

from __future__ import annotations

import numpy as np
import pytest
from kit.ascendc_runs import KERNELS
from kit.pto_cpp_runs import KERNELS as PTO_KERNELS
from kit.pto_cpp_runs import needs_compiler

from castsim.isa.errors import CastsimError
from castsim.isa.pto import program as pto
from castsim.isa.pto.pto_parser import parse
from castsim.languages import ascendc, pto_cpp
from castsim.languages.cpp_recording import scopes
from castsim.languages.cpp_recording.scopes import Step, Trips, folded, unfolded


class Nest:
    """A random nest of loops as the steps that it issues."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)
        self.steps, self.values, self.places = [], 0, 0
        self.accumulator = self.step("start", [0], [])
        self.region(2)

    def step(self, key, numbers, reads, lanes=0):
        self.values += 1
        self.steps.append(Step(key, numbers, reads, [self.values], [lanes] * len(numbers), len(self.steps)))
        return self.values

    def region(self, depth):
        """Issue a straight piece, and a loop whose body is a region."""
        pieces = [self.piece(int(self.generator.integers(1, 4)), depth) for _ in range(2)]
        before, after = pieces
        before((), ())
        if depth:
            self.looped(depth)
        after((), ())

    def looped(self, depth):
        trips = [int(self.generator.integers(2, 6)) for _ in range(depth)]
        bodies = [self.piece(int(self.generator.integers(1, 4)), level) for level in range(depth)]
        counted = bool(self.generator.integers(2))

        def run(level, numbers):
            left = 64 * trips[level] - 13
            for trip in range(trips[level]):
                if counted:
                    self.step(("plt", level), [left], [], lanes=64)
                    left = max(left - 64, 0)
                bodies[level]((*numbers, trip), trips)
                if level + 1 < depth:
                    run(level + 1, (*numbers, trip))

        run(0, ())

    def piece(self, size, depth):
        """Return what issues some steps, with numbers that grow with those of loops."""
        self.places += 1
        place, slopes = self.places, self.generator.integers(0, 5, (size, 4)) * 32
        accumulates = bool(self.generator.integers(2))
        kinds = self.generator.integers(0, 3, size)

        def issue(numbers, _):
            last = self.accumulator
            for number in range(size):
                value = 100 * number + int(sum(slopes[number][i] * n for i, n in enumerate(numbers)))
                last = self.step((place, number), [value], [last] if kinds[number] else [])
            if accumulates:
                self.accumulator = self.step((place, "sum"), [0], [self.accumulator, last])

        del depth
        return issue


@pytest.mark.parametrize("seed", range(60))
def test_folded_loops_issue_what_was_issued(seed):
    steps = Nest(seed).steps
    found = folded(steps)
    assert list(unfolded(found)) == [(step.key, tuple(step.numbers)) for step in steps]
    assert any(isinstance(item, Trips) for item in found)


def test_a_nest_of_loops_is_found_whole():
    steps, count = [], 0
    for row in range(7):
        for column in range(5):
            count += 1
            steps.append(Step("load", [1000 * row + 64 * column], [], [count], [0], len(steps)))
            steps.append(Step("store", [1000 * row + 64 * column + 9000], [count], [], [0], len(steps)))
    (outer,) = folded(steps)
    (inner,) = outer.body
    assert (outer.trips, inner.trips, inner.slopes, outer.slopes) == (7, 5, (64, 64), (1000, 1000))


def test_a_value_of_an_early_trip_that_is_read_later_keeps_the_loop_apart():
    steps = [Step("load", [64 * trip], [], [trip + 1], [0], trip) for trip in range(4)]
    assert len(folded([*steps, Step("add", [], [2, 4], [9], [], 4)])) > 2
    (loop, _) = folded([*steps, Step("add", [], [4], [9], [], 4)])
    assert loop.trips == 4


SAMPLES = {
    "normalise_rows": ({"x": ((6, 208), np.float32)}, {"size.rows": 6, "size.cols": 208}),
    "clamp_sum": ({"x": (1000, np.float16), "z": (1000, np.float16)}, {"n": 1000, "low": -1, "high": 1}),
}
"""Samples: shapes and types of inputs, and scalar arguments."""


def given(name):
    generator = np.random.default_rng(8)
    shapes, args = SAMPLES[name]
    return {key: generator.normal(size=size).astype(kind).ravel() for key, (size, kind) in shapes.items()}, args


def sample(name):
    inputs, args = given(name)
    found = ascendc.run(KERNELS / f"{name}.cpp", "a5", inputs=inputs, args=args)
    assert not found.races
    return inputs, found


@needs_compiler
def test_rows_in_registers_with_a_structure_by_value():
    inputs, found = sample("normalise_rows")
    x = inputs["x"].reshape(6, 208)
    top = np.abs(x).max(axis=1, keepdims=True) + np.float32(1e-6)
    np.testing.assert_array_equal(found.outputs["y"].reshape(6, 208), (x / top).astype(np.float16))


@needs_compiler
def test_instructions_of_the_device_compiler():
    inputs, found = sample("clamp_sum")
    sums = (inputs["x"].astype(np.float32) + inputs["z"]).astype(np.float16)
    np.testing.assert_array_equal(found.outputs["y"], np.clip(sums, np.float16(-1), np.float16(1)))


@needs_compiler
def test_a_vector_function_between_tile_operations():
    x = np.random.default_rng(2).normal(size=512).astype(np.float32)
    found = pto_cpp.run(PTO_KERNELS / "vector_function.cpp", "a5", inputs={"in": x})
    assert not found.races
    np.testing.assert_array_equal(found.outputs["out"].ravel(), (2 * x).astype(np.float16))
    np.testing.assert_array_equal(found.outputs["more"].ravel(), x + x)


def recording(name):
    inputs, args = given(name)
    (found,) = ascendc.record(ascendc.Request(KERNELS / f"{name}.cpp", None, args, inputs, "a5"))
    return found


@needs_compiler
@pytest.mark.parametrize("name", SAMPLES)
def test_loops_are_recorded_as_loops_and_written_out_alike(name, monkeypatch):
    rolled = recording(name)
    text = rolled.pto_text()
    assert "scf.for" in text
    parse(text)  # whose checks the text passes
    monkeypatch.setattr(scopes, "folded", lambda steps: steps)
    plain = recording(name)
    assert "scf.for" not in plain.pto_text()
    outputs = [ascendc.run(KERNELS / f"{name}.cpp", "a5", inputs=given(name)[0], args=given(name)[1]).outputs["y"]]
    monkeypatch.undo()
    outputs.append(sample(name)[1].outputs["y"])
    np.testing.assert_array_equal(*outputs)


@needs_compiler
def test_instructions_have_the_lines_of_the_kernel():
    body = recording("normalise_rows").program.functions[0].body
    (launch,) = (node for node in body if isinstance(node, pto.Section))
    lines = {node.mnemonic: node.span.text for node in pto.nodes((launch,)) if isinstance(node, pto.MicroOperation)}
    assert "VF_CALL" in launch.span.text
    assert {name: lines[name].split("(")[0].strip() for name in ("vabs", "vcmax", "vdiv")} == {
        "vabs": "Reg::Abs", "vcmax": "Reg::ReduceMax", "vdiv": "Reg::Div",
    }  # fmt: skip


FUNCTIONS = """#include "kernel_operator.h"
using namespace AscendC;
__simd_vf__ inline void Fill(__ubuf__ float *y, float value) {
  MicroAPI::RegTensor<float> a;
  MicroAPI::MaskReg all = MicroAPI::CreateMask<float, MicroAPI::MaskPattern::ALL>();
  MicroAPI::Duplicate(a, value);
  MicroAPI::DataCopy(y, a, all);
}
extern "C" __global__ __aicore__ void kernel(GM_ADDR y) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, 512);
  LocalTensor<float> t = buffer.Get<float>();
  __ubuf__ float *at = (__ubuf__ float *)t.GetPhyAddr();
  %s
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  GlobalTensor<float> result;
  result.SetGlobalBuffer((__gm__ float *)y);
  DataCopy(result, t, 128);
}
"""


@needs_compiler
@pytest.mark.parametrize(
    ("calls", "launches"),
    [
        ("Fill(at, 1); Fill(at + 64, 2);", 2),
        ("VF_CALL<Fill>(at, 1.0f); asc_vf_call<Fill>(at + 64, 2.0f);", 2),
        ("__VEC_SCOPE__ { Fill(at, 1); Fill(at + 64, 2); }", 1),
        ("MicroAPI::RegTensor<float> a; for (int i = 0; i < 2; ++i) { MicroAPI::Duplicate(a, (float)(i + 1)); "
         "MicroAPI::DataCopy(at + 64 * i, a, MicroAPI::CreateMask<float>()); }", 1),
    ],
)  # fmt: skip
def test_a_function_is_a_launch(calls, launches, tmp_path):
    path = tmp_path / "kernel.cpp"
    path.write_text(FUNCTIONS % calls)
    found = ascendc.run(path, "a5")
    np.testing.assert_array_equal(found.outputs["y"], np.repeat(np.float32([1, 2]), 64))
    (recorded,) = ascendc.record(ascendc.Request(path, target="a5"))
    assert sum(isinstance(node, pto.Section) for node in recorded.program.functions[0].body) == launches


FAULTS = {
    "castsim's header lacks Addd": "MicroAPI::Addd(r, r, r, all);",
    "a mask that has no value": "MicroAPI::MaskReg none; MicroAPI::Add(r, r, r, none);",
    "is not aligned": "MicroAPI::DataCopy(r, at + 1);",
    "only instructions on vector registers": "Adds(t, t, 1.0f, 64);",
}


@needs_compiler
@pytest.mark.parametrize("words", FAULTS)
def test_faults_have_their_line(words, tmp_path):
    path = tmp_path / "kernel.cpp"
    head = "__VEC_SCOPE__ { MicroAPI::RegTensor<float> r; MicroAPI::MaskReg all = MicroAPI::CreateMask<float>(); "
    path.write_text(FUNCTIONS % f"{head}MicroAPI::Duplicate(r, 1.0f);\n{FAULTS[words]}\n}}")
    with pytest.raises(CastsimError) as caught:
        ascendc.run(path, "a5")
    assert words in caught.value.message
    assert caught.value.span.text.strip() == FAULTS[words]
