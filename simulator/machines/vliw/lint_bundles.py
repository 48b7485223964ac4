"""Rules within one bundle: shared fields, immediates, units that exclude each other."""

from __future__ import annotations

from collections.abc import Iterator

from castsim.isa.tpc.forms import MemoryOperation, ShortImmediates
from castsim.isa.tpc.program import File, Immediate, LabelUse, Register, Slot, TpcInstruction
from castsim.machines.vliw.findings import InstructionSite
from castsim.machines.vliw.lint_flow import Flow, LintFinding
from castsim.machines.vliw.plans import InstructionPlan

_FIELD_OF_ROLE = {"src_a": "src_a", "src_b": "src_b", "src_c": "src_c", "src_d": "src_d"}
_FIELDS_BESIDE_OPERANDS = {
    (Slot.VPU, "mov_dg.all"): ("src_c",),
    (Slot.VPU, "mov_dg.unpack"): ("src_c",),
    (Slot.VPU, "unpack"): ("src_c",),
    (Slot.VPU, "form_fp_num"): ("src_d",),
    (Slot.LOAD, "ld_l"): ("src_b",),
    (Slot.LOAD, "set_indx"): ("src_b",),
}
"""Operand fields that hold switches or masks.

Source: docs/reference/tpc.md section 1 (bundle conflicts) and 8 (fields).
"""
_TENSOR_FIELD = "src_b"
_TYPE_FIELD = "src_b"  # of a MOV in the LOAD slot
_STORED_DESTINATION = "src_c"  # the STORE slot has no destination field
_IMMEDIATE_ROLES = ("src_a", "src_b", "src_c", "src_d", "byte_mask")
_MINIFLOAT = "f8_143"
_MINIFLOAT_OPERATIONS = ("convert", "mul", "add", "sub", "mac", "madd", "nearbyint")


def slot_count(flow: Flow) -> Iterator[LintFinding]:
    """A line that leaves slots out: a slot forgotten at its beginning looks the same as one left out at its end."""
    for index, bundle in enumerate(flow.bundles):
        if bundle.written is not None and bundle.written < len(Slot):
            message = f"{bundle.written} of {len(Slot)} slots are written; those left out at the end count as nop"
            yield LintFinding("slot count", index, message, bundle.span)


def field_overlay(flow: Flow) -> Iterator[LintFinding]:
    """Two instructions need operand fields that share bits of the bundle."""
    for index, plans in enumerate(flow.plans):
        used = {f"{plan.site.slot.name.lower()}.{field}": plan for plan in plans for field in _fields(plan)}
        for overlay in flow.target.bundle_rules.overlays:
            if overlay.first in used and overlay.second in used:
                one, two = used[overlay.first], used[overlay.second]
                yield LintFinding(
                    "field overlay",
                    index,
                    f"{_name(one)} needs {overlay.first}, which shares its bits with {overlay.second} of {_name(two)}",
                    two.site.span,
                )


def immediates(flow: Flow) -> Iterator[LintFinding]:
    """More different 32-bit immediates than the bundle has fields for.

    Small ones are operand codes of their own on some generations (docs/reference/tpc.md section 8).
    """
    short = flow.target.encoding.short
    limit = flow.target.bundle_rules.immediates
    for index, plans in enumerate(flow.plans):
        values = [value for plan in plans for value in _immediates(plan.site, short=short)]
        different = list(dict.fromkeys(values))
        if len(different) > limit:
            shown = ", ".join(different)
            message = f"{len(different)} different immediates ({shown}); a bundle has room for {limit}"
            yield LintFinding("immediates", index, message, flow.bundles[index].span)


def shared_predicate(flow: Flow) -> Iterator[LintFinding]:
    """Slots with one predicate field have different predicates."""
    names = flow.target.bundle_rules.shared_predicate
    for index, plans in enumerate(flow.plans):
        inside = [plan for plan in plans if plan.site.slot.name.lower() in names]
        different = {str(plan.instruction.predicate) for plan in inside}
        if len(different) > 1:
            shown = " and ".join(f"{_name(p)} under {p.instruction.predicate or 'SP0'}" for p in inside)
            message = f"{shown}: the slots {' and '.join(names)} share one predicate"
            yield LintFinding("shared predicate", index, message, inside[-1].site.span)


def two_results(flow: Flow) -> Iterator[LintFinding]:
    """Two instructions of a bundle write one register."""
    for index, plans in enumerate(flow.plans):
        writers: dict[str, InstructionPlan] = {}
        for plan in plans:
            for cell in plan.results:
                first = writers.setdefault(cell.name, plan)
                if first is not plan:
                    message = f"{_name(first)} and {_name(plan)} write {cell.name} in one bundle"
                    yield LintFinding("two results", index, message, plan.site.span)


def loop_bundle(flow: Flow) -> Iterator[LintFinding]:
    """LOOP takes all fields of its bundle."""
    for loop in flow.loops:
        for plan in flow.plans[loop.head]:
            if plan.instruction.mnemonic != "loop":
                message = f"{_name(plan)} beside LOOP, whose fields take the whole bundle"
                yield LintFinding("loop bundle", loop.head, message, plan.site.span)


def scalar_beside_load(flow: Flow) -> Iterator[LintFinding]:
    """A VPU instruction with a scalar operand, beside a load or move that uses the same path."""
    if not flow.target.bundle_rules.vector_scalar_excludes_load:
        return
    for index in range(len(flow.bundles)):
        vector, load = flow.at(index, Slot.VPU), flow.at(index, Slot.LOAD)
        if vector is None or load is None or not _reads_scalar(vector.instruction):
            continue
        moved = load.instruction.mnemonic == "mov" and _reads_scalar(load.instruction) and load.vector
        if moved or load.memory is MemoryOperation.VECTOR_LOAD:
            message = f"{_name(vector)} has a scalar operand, which excludes {_name(load)} in the LOAD slot"
            yield LintFinding("scalar beside load", index, message, load.site.span)


def minifloat_beside_store(flow: Flow) -> Iterator[LintFinding]:
    """A VPU operation on f8_143 beside a tensor store."""
    if not flow.target.bundle_rules.minifloat_excludes_tensor_store:
        return
    for index in range(len(flow.bundles)):
        vector, store = flow.at(index, Slot.VPU), flow.at(index, Slot.STORE)
        if vector is None or store is None or store.memory is not MemoryOperation.TENSOR_STORE:
            continue
        kinds = (vector.instruction.type, vector.instruction.switch("target_type"))
        if _MINIFLOAT in kinds and vector.instruction.mnemonic in _MINIFLOAT_OPERATIONS:
            message = f"{_name(vector)} on {_MINIFLOAT} excludes {_name(store)}"
            yield LintFinding("minifloat beside store", index, message, store.site.span)


_BETWEEN_INSTRUCTIONS = (
    two_results,
    field_overlay,
    immediates,
    shared_predicate,
    scalar_beside_load,
    minifloat_beside_store,
)


def side_by_side(flow: Flow) -> bool:
    """Whether the instructions of each bundle may stand beside each other, which is what schedulers ask."""
    return not any(True for rule in _BETWEEN_INSTRUCTIONS for _ in rule(flow))


def _fields(plan: InstructionPlan) -> tuple[str, ...]:
    """Return the operand fields that an instruction occupies, as far as overlays care."""
    slot, instruction = plan.site.slot, plan.instruction
    found = list(_FIELDS_BESIDE_OPERANDS.get((slot, instruction.mnemonic), ()))
    if slot is Slot.LOAD and instruction.mnemonic == "mov" and instruction.type is not None:
        found.append(_TYPE_FIELD)
    for spec in instruction.form.operands:
        if spec.role in _FIELD_OF_ROLE:
            found.append(_FIELD_OF_ROLE[spec.role])
        elif spec.role == "tensor":
            found.append(_TENSOR_FIELD)
        elif spec.role == "dest" and slot is Slot.STORE:
            found.append(_STORED_DESTINATION)
    return tuple(found)


def _immediates(site: InstructionSite, *, short: ShortImmediates) -> Iterator[str]:
    """Yield the values that need the bundle's immediate field; a jump's label is one."""
    instruction = site.instruction
    for spec, operand in instruction.specified:
        if spec.role not in _IMMEDIATE_ROLES:
            continue
        if isinstance(operand, LabelUse):
            yield operand.name
        elif isinstance(operand, Immediate):
            fits = spec.role != "byte_mask" and operand.value < short.count(instruction.type)
            if not fits:
                yield f"{operand.value:#x}"


def _reads_scalar(instruction: TpcInstruction) -> bool:
    """Whether a source is an S register."""
    return any(
        isinstance(operand, Register) and operand.file is File.S and spec.role != "dest"
        for spec, operand in instruction.specified
    )


def _name(plan: InstructionPlan) -> str:
    return plan.instruction.mnemonic
