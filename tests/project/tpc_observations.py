"""What can be seen of a chip that runs bundles: distances, findings, code, values, refusals, cycles.

As in number_observations.py, none of them repeats a fact; here most are about many facts at once.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache, partial
from typing import Any

from kit.tpc_machine import END, assembled, nops, ran, timed
from kit.tpc_operands import Place, places
from kit.tpc_random_instructions import some_instruction
from kit.tpc_semantics_cases import SPELLED, instruction, samples, state, vector
from kit.tpc_text import dialect, target
from project.number_observations import Observation, cycles, lifting, outcome, outputs, programs, seconds, settings
from project.tpc_rule_texts import early_texts, lint_texts
from tools.tpc_assembly.test_latency_command import SPACED
from tools.tpc_binary.test_tpc_encoding import elf

from castsim.isa.formats import format_named
from castsim.isa.tpc.instructions import FORMS, available
from castsim.isa.tpc.parser import parse
from castsim.isa.tpc.program import Bundle, Immediate, LabelUse, Slot, TpcInstruction
from castsim.machines.vliw.latency_bound import SlottedInstruction, pair_distance
from castsim.machines.vliw.semantics import PreparedInstruction, prepare
from castsim.machines.vliw.semantics.operands import OperandValues
from castsim.machines.vliw.stage_latency import operand_key
from castsim.targets.description import lifted, with_options
from castsim.targets.loader import load_target
from castsim.targets.vliw import VliwTarget
from castsim.targets.vliw_latency import OperandKey, RowKey
from castsim.tools.tpc_binary.assembler import program_bytes
from castsim.tools.tpc_binary.bundle_encoding import encode_bundle
from castsim.tools.tpc_binary.encoding_tables import encoding_of
from castsim.tools.tpc_lint.lint_checking import lint


def seen(observation: Observation, chip: VliwTarget) -> object:
    """What is seen, or what kind of refusal: the words of a message may name a limit that decides nothing."""
    found = outcome(observation, chip)
    return found.partition(":")[0] if isinstance(found, str) else found


# ---------------------------------------------------------------------------------------------------------- distances


@cache
def every_place(name: str) -> tuple[Place, ...]:
    """Results and operands of all instructions of a generation, also of sums of pairs, each once."""
    found: dict[OperandKey, Place] = {}
    for place in places(name):
        forms = [place.instruction]
        if any(switch.name == "x2" for switch in place.instruction.form.switches):
            forms.append(replace(place.instruction, switches=(("x2", 1),)))
        for form in forms:
            found.setdefault(
                _key(load_target(name), replace(place, instruction=form)), replace(place, instruction=form)
            )
    return tuple(found.values())


def _key(chip: Any, place: Place) -> OperandKey:
    return operand_key(chip, place.slot, place.instruction, place.role, place.file)


@cache
def rows_read(name: str) -> frozenset[RowKey]:
    """The rows of the stage table that instructions read; the vendor's table has others, of what castsim lacks."""
    chip = target(name)
    keys = [_key(chip, place) for place in every_place(name)]
    keys += [replace(key, operand=operand, file="hw") for key in keys for operand in _generators(key)]
    found = [chip.latencies.row(key) for key in keys]
    return frozenset(row.key for row in found if row is not None)


def _generators(key: OperandKey) -> tuple[str, ...]:
    return ("src_spu_lfsr",) if key.slot == "spu" else ("src_vpu_lfsr",)


def distances(chip: VliwTarget) -> object:
    """Distances of every result from the operands that are read first and last, and the other way round."""
    groups: dict[str, tuple[list[OperandKey], list[OperandKey]]] = {}
    for place in every_place(chip.name):
        groups.setdefault(place.read.removesuffix("_ro"), ([], []))[place.role != "dest"].append(_key(chip, place))
    found = []
    for results, operands in groups.values():
        made, read = _probes(chip, results), _probes(chip, operands)
        found += [chip.latencies.latency(one, other).distance for one in results for other in read]
        found += [chip.latencies.latency(one, other).distance for one in made for other in operands]
    return found


def _probes(chip: VliwTarget, keys: list[OperandKey]) -> list[OperandKey]:
    """One of each stage, entry port and slot, by the shipped tables: they are the same whatever is changed."""
    latencies, found = target(chip.name).latencies, {}
    for key in keys:
        row = latencies.row(key)
        found.setdefault((key.slot, key.file, row and row.stage, row and row.entry_port), key)
    return list(found.values())


def spacings(chip: VliwTarget) -> object:
    """Distances that are allowed between instructions of which issue rules tell."""
    return [seen(partial(_allowed, one, other), chip) for _, one, other, _ in SPACED]


def _allowed(producer: str, consumer: str, chip: VliwTarget) -> object:
    bundles = [parse(text, chip.dialect).bundles[0] for text in (producer, consumer)]
    first, second = (
        next(SlottedInstruction(slot, each) for slot, each in zip(Slot, bundle.slots, strict=True) if each is not None)
        for bundle in bundles
    )
    found = pair_distance(chip, first, second)
    return None if found is None else (found.minimum, [found.allows(distance) for distance in range(12)])


# ----------------------------------------------------------------------------------------------------------- findings


def findings(text: str, chip: VliwTarget) -> object:
    """Rules that a program violates, and where."""
    program = assembled(text, chip)
    return [(finding.rule, finding.bundle) for finding in lint(program.program, chip)]


def early(text: str, chip: VliwTarget) -> object:
    """Reads that come too early, and what comes out."""
    found = ran(text, chip, {"x": "random:1"} if " x in " in text else {})
    stale = [(str(find.kind), find.reader.bundle, find.writer and find.writer.bundle) for find in found.stale_reads]
    return stale, [array.tobytes() for array in found.outputs.values()]


# --------------------------------------------------------------------------------------------------------------- code


@cache
def instructions(name: str) -> tuple[tuple[str, TpcInstruction], ...]:
    """Random instructions of every form in every slot."""
    language, source, found = dialect(name), random.Random(7), []
    for form in FORMS:
        if available(form, language):
            for slot in form.slots:
                for _ in range(8):
                    made = some_instruction(form, language, source)
                    operands = tuple(Immediate(64) if isinstance(each, LabelUse) else each for each in made.operands)
                    found.append((Slot(slot).name.lower(), replace(made, operands=operands)))
    return tuple(found)


def code(chip: VliwTarget) -> object:
    """Bytes of instructions, in full and compressed bundles."""
    encoding = encoding_of(chip)
    return [
        seen(lambda _, bundle=bundle, half=half: encode_bundle(bundle, encoding, half), chip)
        for bundle in (Bundle(**{slot: made}) for slot, made in instructions(chip.name))
        for half in (None, *encoding.halves)
    ]


def short_code(chip: VliwTarget) -> object:
    """Bytes of bundles with more immediates than one."""
    texts = [
        f"ld_l_v V0, 0x100; add.{element} S1, S2, {value}; nop; nop"
        for element in ("i32", "u32")
        for value in (0, 1, 7, 8, 13, 14, 15, 16, 30)
    ]
    return [
        seen(lambda _, t=text: encode_bundle(parse(t, chip.dialect).bundles[0], encoding_of(chip)), chip)
        for text in texts
    ]


def object_file(chip: VliwTarget) -> object:
    """Whether an object file is one of the chip's."""
    return program_bytes(elf(bytes(32), machine=0), encoding_of(chip).machines)


# ------------------------------------------------------------------------------------------------- values and refusals


def registers(chip: VliwTarget) -> object:
    """Which register numbers exist."""
    lines = [f"nop; mov.i32 S{n}, S1; nop; nop" for n in range(20, 41)]
    lines += [f"nop; nop; mov V{n}, V1; nop" for n in range(30, 45)]
    lines += [f"nop; set_indx I{n}, b00001, S1; nop; nop" for n in range(20, 36)]
    lines += [f"gen_addr AD{n}, 0x0, I1; nop; nop; nop" for n in range(12)]
    lines += [f"nop; mov SP{n}, S1; nop; nop" for n in range(10, 20)]
    lines += [f"nop; nop; mov VP{n}, VP1; nop" for n in range(10, 20)]
    return [seen(partial(_read, line), chip) for line in lines]


def _read(line: str, chip: VliwTarget) -> object:
    parse(line, chip.dialect)
    return None


def nested(depth: int, chip: VliwTarget) -> object:
    """Loops inside each other, whose iterators are stored."""
    head = "".join(f"nop; loop {level}, 20, 9, <, E{level}; nop; nop\n{nops(9)}" for level in range(depth))
    stores = "".join(f"nop; nop; nop; st_l {4 * n:#x}, S{n}\n" for n in range(30, 36))
    tail = "".join(f"{nops(9)}E{level}:\n{nops(9)}" for level in reversed(range(depth)))
    show = f"ld_l S1, {4 * 32:#x}; nop; nop; nop\n{nops(9)}{shown('S1')}"
    return early(f"{OUT}{head}{stores}{tail}{nops(9)}{show}{END}", chip)


OUT = "// castsim: tensor 0 y out f32 [64, 2]\n// castsim: reg I0 = [0, 0, 0, 0, 0]\n"


def shown(register: str) -> str:
    """Bundles that write a register into the output."""
    moved = f"nop; nop; mov.i32 V0, {register}; nop\n{nops(9)}" if register != "V0" else ""
    return f"{moved}nop; nop; nop; st_tnsr 0x0, I0, V0\n"


def local(memory: str, address: int, chip: VliwTarget) -> object:
    """Whether local memory has an address."""
    place = "S1, 0x0" if chip.name == "goya" else "S1"
    store = f"st_l {address:#x}, S1" if memory == "slm" else f"st_l_v {place}, V0"
    return early(f"// castsim: reg S1 = {address}\nnop; nop; nop; {store}\n{END}", chip)


def small(address: int, chip: VliwTarget) -> object:
    """The same of vector memory where tables take the rest of it."""
    return local("vlm", address, with_options(chip, {"vlm_size": "small"}))


def many_tensors(number: int, chip: VliwTarget) -> object:
    """Whether a program may have a tensor of that number."""
    return early(f"// castsim: tensor {number} y out f32 [64]\n{END}", chip)


USES = (
    "nop; nop; convert.f32 target_type=int32 V0, V1; nop",
    "nop; mov.i32 S5, S_LFSR; nop; nop", "nop; nop; mov V0, LFSR; nop",
    "nop; nop; convert.f32 lane_sel=0 target_type=f8_143 rhne V0, V1; nop",
    "nop; nop; add.f16 V0, V1, V1; nop",
)  # fmt: skip


def mapped(name: str, chip: VliwTarget) -> object:
    """What a register of the configuration space has when a program starts, and what a word there changes."""
    register = target(chip.name).configuration[name]
    address = register.address or 0x538
    found = [early(f"{OUT}ld_l mmio S4, {address:#x}; nop; nop; nop\n{nops(9)}{shown('S4')}{END}", chip)]
    start = f"nop; nop; mov.i32 V1, {0x00400001:#x}; nop\n{nops(9)}"
    if name == "round":
        start = start.replace(f"{0x00400001:#x}", "0x40200000")  # 2.5
    for use in USES:
        again = f"{use}\n{nops(9)}" if "LFSR" in use else ""
        end = shown("S5" if "S5" in use else "V0")
        for word in (None, 1, 2, 0x80000057):
            store = "" if word is None else f"nop; nop; nop; st_l mmio {address:#x}, S3\n{nops(9)}"
            head = f"{OUT}// castsim: reg S3 = {word or 0}\n{start}{store}"
            found.append(seen(partial(early, f"{head}{again}{use}\n{nops(9)}{end}{END}"), chip))
    return found


def conversions(chip: VliwTarget) -> object:
    """Legal lanes of conversions."""
    shipped, found = target(chip.name), []
    for row in (*shipped.converts, *shipped.compiler_converts):
        for lane in range(6):
            text = f"convert.{row.src} lane_sel={lane} target_type={SPELLED[row.dst]} rhne {_file(row)}0, {_file(row)}4"
            found.append(seen(partial(_legal, text, row.unit), chip))
    for row in shipped.integer_converts:
        for lane in range(6):
            found.append(seen(partial(_legal, _integer(row, lane, "rhne", "0x0"), row.unit), chip))
    return found


def _file(row: Any) -> str:
    return "V" if row.unit == "vpu" else "S"


def _integer(row: Any, lane: int, mode: str, shift: str) -> str:
    width = f"to_{format_named(row.dst).bits}" if "32" in row.mnemonic else ""
    chosen = "" if "8" in row.mnemonic or row.unit == "spu" else f"lane_sel={lane}"
    return f"{row.mnemonic} {chosen} {mode} {width} {_file(row)}1, {_file(row)}4, {shift}"


def _legal(text: str, slot: str, chip: VliwTarget) -> object:
    return [notice.kind for notice in _prepared(text, slot, chip).notices]


def _prepared(text: str, slot: str, chip: VliwTarget) -> PreparedInstruction:
    return prepare(instruction(text, chip.name, slot), chip)


def shifted(chip: VliwTarget) -> object:
    """Results of conversions of integers whose shift has more than 8 bits."""
    found = []
    for row in target(chip.name).integer_converts:
        for shift in (0, 0xFE, 0xFFFE, 0xFFFFFFFE, 0x100, 0x10000FD, 0xFF, 0x80, 0x7F, 0x8000FFFC, 0x3FE, 0x1FD):
            bits = format_named(row.src).bits
            held = {"src_a": vector(samples(row.src), bits), "src_b": vector([shift % (1 << bits)], bits)}
            if row.unit == "spu":
                held = {"src_a": 0x1234, "src_b": shift}
            text = _integer(row, 0, "rhne", f"{_file(row)}2")
            found.append(seen(partial(_computed, text, row.unit, held, {}), chip))
    return found


def rounded(chip: VliwTarget) -> object:
    """Results of conversions that take their rounding from the register, by the code there."""
    register = "convert_round" if "convert_round" in chip.configuration else "round"
    held = {"src_a": vector(samples("f32"), 32)}
    return [
        seen(
            partial(
                _computed, f"convert.f32 target_type=int32 csr {'V0'}, V4", "vpu", held, {register: code, "round": code}
            ),
            chip,
        )
        for code in range(8)
    ]


def _computed(text: str, slot: str, held: Any, configuration: dict[str, int], chip: VliwTarget) -> object:
    effects = _prepared(text, slot, chip)(OperandValues(held, None, True), state(configuration))
    return (
        effects.result.tobytes() if effects.result is not None and hasattr(effects.result, "tobytes") else repr(effects)
    )


def jumping(lift: bool, chip: VliwTarget) -> object:
    """Cycles of a program that jumps, with jumps made free."""
    text = f"nop; jmpr L; nop; nop\n{nops(4)}L:\n{END}"
    return timed(text, lifted(chip, "free-jumps") if lift else chip).total


def loading(limit: str, options: tuple[tuple[str, int], ...], chip: VliwTarget) -> object:
    """Cycles of a row of loads from far memory, with a limit lifted."""
    load = "".join(f"ld_tnsr V{n}, 0x0, I0; nop; nop; nop\n" for n in range(40))
    text = f"// castsim: tensor 0 x in f32 [64, 64]\n// castsim: reg I0 = [0, 0, 0, 0, 0]\n{load}{END}"
    far = with_options(chip, dict(options))
    return timed(text, lifted(far, limit) if limit else far).total


# ---------------------------------------------------------------------------------------------------------------- all


@cache
def observations(name: str) -> tuple[tuple[str, Observation], ...]:
    """Return all observations of a chip with what they are about, the cheap ones first."""
    found: list[tuple[str, Observation]] = [("options", settings), ("registers", registers), ("stages", distances)]
    found.append(("bundle_distances", spacings))
    found += [("encoding", code), ("encoding", short_code), ("object_files", object_file)]
    found += [("converts", conversions), ("integer_shift", shifted), ("modes", rounded)]
    found += [("memories", partial(local, "vlm", at)) for at in (81920 - 256, 81920, 128, 0)]
    size = target(name).memories["slm"].capacity_bytes
    found += [("memories", partial(local, "slm", at)) for at in (size - 4, size, 2, 1)]
    found += [("small_vector_memory", partial(small, at)) for at in (16384 - 256, 16384)]
    found += [("tensors", partial(many_tensors, number)) for number in (6, 7, 8, 14, 15, 16)]
    found += [("registers", partial(nested, depth)) for depth in (1, 3, 4, 5)]
    found += [(f"configuration.{register}", partial(mapped, register)) for register in target(name).configuration]
    found += [("rules", partial(findings, text)) for text in lint_texts(name)]
    found += [("early", partial(early, text)) for text in early_texts(name)]
    found.append(("frequency", seconds))
    far = (("global_latency_cycles", 200),)
    found += [
        ("options", partial(loading, "", ())),
        ("options", partial(loading, "", far)),
        ("options", partial(jumping, False)),
    ]
    found += [("what_if.free-jumps", partial(jumping, True))]
    found += [(f"what_if.{limit}", partial(loading, limit, far)) for limit in target(name).what_if if "glob" in limit]
    for path in programs(name):
        found.append(("cycles", partial(cycles, path)))
        found.append(("cycles", partial(outputs, path)))
        found += [(f"what_if.{limit}", partial(lifting, path, limit)) for limit in target(name).what_if]
    return tuple((group, partial(seen, observation)) for group, observation in found)


GROUPS = {
    "latency_rules": ("early", "stages"), "stages": ("stages",), "entry_ports": ("stages",),
    "distances": ("early", "rules", "stages"), "bundle_rules": ("rules",), "issue_rules": ("rules", "cycles"),
    "jump_rules": ("rules", "early"), "loop_rules": ("rules", "early", "registers"), "end_rules": ("rules",),
    "encoding_fields": ("encoding",), "placements": ("encoding",),
    "compiler_converts": ("converts",), "integer_converts": ("converts",), "convert_rounding": ("modes", "encoding"),
    "integer_rounding": ("encoding",), "global_memory": ("cycles",),
}  # fmt: skip
"""What is looked at when a number of a table changes; otherwise what has the name of the table."""


def groups_of(keys: tuple[object, ...]) -> tuple[str, ...]:
    """Return which observations are about a fact."""
    first = str(keys[0])
    return (f"{first}.{keys[1]}",) if first in ("what_if", "configuration") else GROUPS.get(first, (first,))
