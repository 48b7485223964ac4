"""Descriptors of tensors in the configuration space, bounds that LOOP latches, jumps to the end of a loop body."""

from __future__ import annotations

import numpy as np
import pytest

from castsim.isa.errors import IllegalError
from castsim.machines.vliw.assembled import assemble, execute
from castsim.machines.vliw.findings import StaleReadKind
from castsim.targets import load_target
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.scheduling import schedule

# docs/reference/tpc.md section 3.1: base + size * tensor + 0x10 + e * dimension, the stride 4 behind.
PLACES = {
    "goya": (0x400, 0x4C, 0xC), "gaudi": (0x400, 0x38, 8), "gaudib": (0x400, 0x38, 8), "greco": (0, 0x38, 8),
    "gaudi2": (0, 0x50, 8),
}  # fmt: skip
HEAD = """// castsim: target {name}
// castsim: tensor 0 x in f32 [64, 3, 5]
// castsim: tensor 1 y out i32 [64, 4]
// castsim: reg %i.c = [0, 0, 0, 0, 0]
"""


def target_named(name: str) -> VliwTarget:
    found = load_target(name)
    assert isinstance(found, VliwTarget)
    return found


def ran(text: str, name: str, **inputs: np.ndarray) -> np.ndarray:
    target = target_named(name)
    program = assemble(schedule(text, "t.tpc", target).text, "t.tpc", target, {})
    found = execute(program, inputs, values=True, checked=True, max_bundles=10**6)
    assert not [each for each in found.stale_reads if each.kind is not StaleReadKind.SAME_BUNDLE]
    return np.asarray(found.outputs["y"])


@pytest.mark.parametrize("name", PLACES)
def test_sizes_and_strides_are_read_where_the_compiler_reads_them(name: str) -> None:
    base, size, step = PLACES[name]
    offsets = [0x10, 0x10 + step, 0x10 + 2 * step, 0x10 + 2 * step + 4]
    lines = []
    for row, offset in enumerate(offsets):
        lines += [f"ld_l mmio %s.w, {hex(base + offset)}", "mov.i32 %v.w, %s.w", f"set_indx %i.c, b00010, {row}"]
        lines += ["st_tnsr 0x1, %i.c, %v.w"]
    text = HEAD.format(name=name) + "\n".join([*lines, "halt\n"])
    found = ran(text, name, x=np.zeros((5, 3, 64), np.float32))
    assert found[:, 0].tolist() == [64, 3, 5, 64 * 3]
    second = text.replace(hex(base + 0x10), hex(base + size + 0x10))
    assert ran(second, name, x=np.zeros((5, 3, 64), np.float32))[0, 0] == 64


@pytest.mark.parametrize("word", ["0xf0", "0x9998"])
def test_a_word_that_is_not_modelled_is_refused_with_its_address(word: str) -> None:
    load = f"ld_l mmio %s.w, {word}\nmov.i32 %v.w, %s.w\nst_tnsr 0x1, %i.c, %v.w\nhalt\n"
    text = HEAD.format(name="gaudi2") + load
    with pytest.raises(IllegalError, match=word):
        ran(text, "gaudi2", x=np.zeros((5, 3, 64), np.float32))


@pytest.mark.parametrize("name", ["gaudi", "gaudi2"])
def test_a_body_may_overwrite_the_bound_and_jump_over_the_loop_that_ends_it(name: str) -> None:
    base, _, step = PLACES[name]
    text = HEAD.format(name=name) + (
        f"ld_l mmio %s.n, {hex(base + 0x10 + step)}\nmov.i32 %v.t, 0x0\n"
        "loop 0, %s.n, 1, <, End\n"
        "mov.i32 %s.n, 0x0\n"
        "cmp_eq.i32 %sp.p, S32, 0x1\n"
        "jmpr Over, %sp.p\n"
        "loop 0, 5, 1, <, Inner\nadd.i32 %v.t, %v.t, 0x1\nInner:\n"
        "Over:\nEnd:\nst_tnsr 0x1, %i.c, %v.t\n"
        "mov.i32 %v.t, %s.n\nset_indx %i.c, b00010, 1\nst_tnsr 0x1, %i.c, %v.t\nhalt\n"
    )
    found = ran(text, name, x=np.zeros((5, 3, 64), np.float32))
    assert found[0, 0] == 10  # three trips, the middle one jumps over
    assert found[1, 0] == 0
