"""Schema of the issue rules: what the instructions of a bundle, and those of bundles near each other, may not do.

Facts: docs/reference/tpc.md section 1 (bundle conflicts) and 6.2 (issue), docs/reference/tpc.md section 6.2
(distances).
"""

from __future__ import annotations

from castsim.targets.schema import Count, Cycles, Fact, Table
from castsim.targets.vliw_stages import SlotName


class FieldOverlay(Table):
    """Two operand fields that share bits of the bundle, so that only one of them may be used."""

    first: str
    second: str


class BundleRules(Fact):
    """The combinations that one bundle may not have."""

    immediates: Count
    """Different 32-bit immediates per bundle."""
    shared_predicate: tuple[SlotName, ...]
    """Slots with one common predicate field."""
    overlays: tuple[FieldOverlay, ...]
    vector_scalar_excludes_load: bool
    """A VPU instruction with an S operand excludes LD_L_V and MOV from S to V or VP in the LOAD slot."""
    minifloat_excludes_tensor_store: bool
    """A VPU operation on f8_143 excludes ST_TNSR."""


class IssueRules(Fact):
    """Distances in bundles between instructions, as far as they are not data dependences; 0 means no rule."""

    product_write_distance: Cycles
    """From a result of the multiplier pipe, such as a float MUL, to the next write of its register."""
    multiplier_products: tuple[str, ...]
    """Mnemonics of float products of that pipe."""
    multiplier_sums: tuple[str, ...]
    """Formats whose ADD and SUB run in that pipe too."""
    forbidden_after_tensor_store: Cycles
    """Distance from ST_TNSR at which no LD_TNSR or ST_TNSR may stand."""
    tensor_half_distance: Cycles
    """From LD_TNSR_LOW to LD_TNSR_HIGH or LD_TNSR, and from LD_TNSR_HIGH to LD_TNSR_LOW."""
    random_distance: Cycles
    """Between two uses of the random generator."""
    mapped_store_to_rounding: Cycles
    """From ST_L with mmio to float arithmetic, and to conversions that take their mode from the register."""
    mapped_store_to_access: Cycles
    """From ST_L with mmio to another access of that space, of tensors or of a generator, and to a random rounding."""


class JumpRules(Fact):
    """Jumps."""

    delay_bundles: Count
    """Bundles behind a jump that run whether or not it is taken."""
    delay_slots: tuple[SlotName, ...]
    """Slots that may be used in them."""
    scalar_convert_distance: Cycles
    """No SPU CONVERT in the delay bundle of a jump or loop, nor in so many bundles before it."""
    scalar_convert_after: Cycles
    """From a jump to an SPU CONVERT."""
    halt_distance: Cycles
    """From a jump to HALT."""


class LoopRules(Fact):
    """Hardware loops; numbers count bundles."""

    delay_bundles: Count
    body_bundles: Count
    """Smallest body."""
    register_distance: Cycles
    """From a write of start, bound or step to LOOP."""
    iterator_before: Cycles
    """Bundles before LOOP in which the VPU may not read the iterator."""
    iterator_before_access: Cycles
    """Bundles before LOOP in which LD_L_V, ST_L_V and MOV of the LOAD slot may not."""
    iterator_at_end: Cycles
    """Bundles at the end of the body in which the VPU may not either."""
    target_before_end: Cycles
    """Smallest distance of a jump target from the end of the body."""
    jump_before_end: Cycles
    """Smallest distance of a jump from the end of the body."""


class EndRules(Fact):
    """The end of a program."""

    halt_slots: tuple[SlotName, ...]
    """Slots in which HALT stands together."""
    empty_after_store: Cycles
    """Empty bundles that must follow the last store; those behind HALT count."""
