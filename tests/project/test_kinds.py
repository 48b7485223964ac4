"""Kinds are attributes: what something is stands in a table or a field, and is not told by how its name begins."""

from __future__ import annotations

import ast
import copy
import json
import pickle

import pytest
from kit.tpc_machine import END, chip, ran
from project.test_rooms import SOURCES, relative

from castsim.isa.errors import Span, WarningKind, WarningText, of_kind
from castsim.isa.formats import Rounding, Saturation, format_named
from castsim.isa.pto.program import RoundMode, TileOperation
from castsim.isa.pto.pto_parser import parse
from castsim.isa.tpc.forms import LOADS, STORES, Family, Form, Half, MemoryOperation
from castsim.isa.tpc.instructions import FORMS, RANDOM_ROUNDINGS, forms_of, mnemonics
from castsim.isa.tpc.parser import parse as parse_assembly
from castsim.isa.tpc.program import File, Register
from castsim.machines.strided.plan import plan_cast
from castsim.machines.vliw.storage import Registers
from castsim.targets.loader import load_target, target_names
from castsim.targets.vector_function import DistributionMode, NamedDistribution, distribution_of
from castsim.targets.vliw import VliwTarget

FRONT_ENDS = ("ascendc", "cpp_recording", "pto_cpp", "tilelang", "tpc_c")
"""Readers of whole languages."""

READERS = """
isa: dataclass reading value_expressions
isa/pto: control_flow lexer pto_parser pto_scalars statement_forms statement_reader strided_statements
    tile_operation_forms types vector_operations
isa/tpc: forms parser program
simulator: __init__
simulator/commands: cast command_line failure kernels option_parsers outcome run run_views scratch
simulator/execution: input_data
simulator/execution/interpreter: arguments
simulator/languages/fragments: __init__
simulator/languages/vmi: operations
simulator/machines: casting mechanisms
simulator/machines/vector_function: function_operations instruction_scoreboard scope_recorder
simulator/machines/vliw: assembled lookup_tables memory_access
simulator/machines/vliw/semantics: __init__
simulator/numerics: codec
simulator/numerics/compiled: __init__
simulator/reports: cycle_evidence run_cycles run_findings run_report target_template terminal
simulator/reports/pages: answer_pages grammars run_page
simulator/running: languages program_edits program_loading
simulator/tools/accuracy: command
simulator/tools/advise: advice_search reordering suggestions
simulator/tools/builtins: builtin_call
simulator/tools/calibrate: calibration
simulator/tools/check: checking command
simulator/tools/compare: command
simulator/tools/compiled: cast_comparison command compiled_casts
simulator/tools/debugger: command debug_adapter stops
simulator/tools/diff: differences
simulator/tools/distribution: distributing
simulator/tools/editor: actions completion hover navigation program_slice symbols
simulator/tools/estimate: tile_estimates
simulator/tools/expand: nests program_writer
simulator/tools/graphs: graph_execution onnx_nodes tosa_reader
simulator/tools/lowering: conformance steps vector_steps
simulator/tools/notebooks: answers presentation
simulator/tools/reference: completion manual
simulator/tools/sweep: specification
simulator/tools/tpc_assembly: asm pipelining scheduling
simulator/tools/tpc_binary: assembler
simulator/tools/tpc_compiler: builtin_calls builtin_sequences c_language virtual_registers
simulator/tools/traces: command
simulator/tools/verify: kept
targets: description loader strided_repeat tpc_compiler validated vector_function
"""
"""Modules, by folder, that look at how a text begins or ends: they read programs, options, names of files or facts."""

LOOKING = frozenset({"startswith", "endswith", "removeprefix", "removesuffix"})


def looks_at_text(source: str) -> bool:
    return any(word in source for word in LOOKING) and any(
        isinstance(node, ast.Attribute) and node.attr in LOOKING for node in ast.walk(ast.parse(source))
    )


def test_only_readers_look_at_how_a_text_begins_or_ends() -> None:
    folders = (line.split(": ") for line in READERS.replace("\n    ", " ").strip().splitlines())
    allowed = {f"{folder}/{name}.py" for folder, names in folders for name in names.split()}
    looking = {relative(path) for path in SOURCES if looks_at_text(path.read_text(encoding="utf-8"))}
    languages = tuple(f"simulator/languages/{name}/" for name in FRONT_ENDS)
    assert {name for name in looking if not name.startswith(languages)} == allowed


MEMORY = {
    "ld_l": MemoryOperation.SCALAR_LOAD, "st_l": MemoryOperation.SCALAR_STORE, "ld_l_v": MemoryOperation.VECTOR_LOAD,
    "st_l_v": MemoryOperation.VECTOR_STORE, "gen_addr": MemoryOperation.ADDRESS, "ld_g": MemoryOperation.ELEMENT_LOAD,
    "st_g": MemoryOperation.ELEMENT_STORE, "ld_tnsr": MemoryOperation.TENSOR_LOAD,
    "st_tnsr": MemoryOperation.TENSOR_STORE, "cache_flush": MemoryOperation.CACHE,
    "cache_invalidate": MemoryOperation.CACHE,
}  # fmt: skip
"""What the vendor's names of memory instructions stand for (docs/reference/tpc.md section 7.1), halves aside."""


def vliw_targets() -> list[VliwTarget]:
    return [target for target in map(load_target, target_names()) if isinstance(target, VliwTarget)]


def whole(form: Form) -> str:
    """Return the mnemonic without the word for a half."""
    return form.mnemonic if form.half is None else form.mnemonic[: -len(f"_{form.half.value}")]


def test_rows_say_what_they_do_with_memory() -> None:
    for form in FORMS:
        assert form.memory is MEMORY.get(whole(form)), form.mnemonic
    halves = {name for name in mnemonics() if name.rpartition("_")[2] in ("low", "high")}
    assert halves == {form.mnemonic for form in FORMS if form.half is not None}
    assert {form.half for form in forms_of("st_l_v_high")} == {Half.HIGH}


def test_loads_have_a_destination_and_stores_have_none() -> None:
    for form in FORMS:
        roles = {spec.role for spec in form.operands}
        if form.memory in LOADS:
            assert "dest" in roles, form.mnemonic
        if form.memory in STORES:
            assert "dest" not in roles and "src_c" in roles, form.mnemonic


def test_families_are_those_of_the_targets() -> None:
    conversions = {"convert"} | {row.mnemonic for target in vliw_targets() for row in target.integer_converts}
    assert {form.mnemonic for form in FORMS if form.family is Family.CONVERSION} == conversions
    by_family = {family: {form.mnemonic for form in FORMS if form.family is family} for family in Family}
    conditions = {"eq", "neq", "less", "leq", "grt", "geq"}
    assert by_family[Family.COMPARISON] == {f"cmp_{condition}" for condition in conditions}
    assert by_family[Family.SELECTION] == {f"sel_{condition}" for condition in conditions}
    assert by_family[Family.PAIR_SELECTION] == {f"sel2_{condition}" for condition in conditions - {"eq", "neq"}}
    assert by_family[Family.ROUNDING] == {"nearbyint"}
    moves = {"pack", "unpack", "mov_dg", "mov_dg.all", "mov_dg.pack", "mov_dg.unpack", "mov_g"}
    assert by_family[Family.LANE_MOVE] == moves


def test_a_mnemonic_is_one_kind_of_instruction() -> None:
    for mnemonic in mnemonics():
        assert len({(form.memory, form.half, form.family) for form in forms_of(mnemonic)}) == 1, mnemonic


def test_the_random_rounding_modes_are_those_that_targets_call_stochastic() -> None:
    tables = [table for target in vliw_targets() for table in (target.convert_rounding, target.integer_rounding)]
    words = {word for table in tables for word, mode in table.modes.items() if mode.rounding is Rounding.STOCHASTIC}
    assert words == set(RANDOM_ROUNDINGS)


@pytest.mark.parametrize(
    ("text", "draws"),
    [
        ("convert.f32 target_type=bf16 sr V1, V0", True),
        ("convert.f32 target_type=bf16 sr_rne V1, V0", True),
        ("convert.f32 target_type=bf16 rhne V1, V0", False),
        ("convert.f32 target_type=bf16 csr V1, V0", False),
        ("convert_int32 sr to_16 V1, V0, 0", True),
        ("convert_int32 rhne to_16 V1, V0, 0", False),
        ("nearbyint.f32 sr V1, V0", True),
        ("add.f32 V1, V0, V2", False),
    ],
)
def test_an_instruction_draws_by_its_rounding(text: str, draws: bool) -> None:
    (bundle,) = parse_assembly(f"nop; nop; {text}; nop\n", chip("gaudi2").dialect).bundles
    assert bundle.vpu is not None and bundle.vpu.draws is draws


def test_registers_know_their_file() -> None:
    for target in vliw_targets():
        registers = Registers(target)
        for file in (File.V, File.S, File.I, File.AD, File.SP, File.VP):
            (cell,) = registers.cells(Register(file, 1))
            assert (cell.file, cell.name) == (file, f"{file}1")
        assert {cell.file for cell in registers.cells(Register(File.D, 2))} == {File.V}


# ------------------------------------------------------------------------------------------------ instructions of TPC


# ------------------------------------------------------------------------------------------------ instructions of PTO


def test_operations_of_the_matrix_unit_are_told_by_the_reader() -> None:
    tile = "!pto.tile_buf<vec, 16x64xf32>"
    names = {"tmatmul": True, "tmatmul.acc": True, "timg2col": True, "tadd": False, "tmov": False}
    for name, expected in names.items():
        operands = f"ins(%a, %a : {tile}, {tile})" if name == "tadd" else f"ins(%a : {tile})"
        text = (
            "module {\n  func.func @main() {\n"
            f"    %a = pto.alloc_tile : {tile}\n    pto.{name} {operands} outs(%a : {tile})\n"
            "    return\n  }\n}\n"
        )
        (found,) = [node for node in parse(text).functions[0].body or () if isinstance(node, TileOperation)]
        assert found.of_matrix_unit is expected, name


def test_distributions_are_a_mode_and_a_width() -> None:
    assert distribution_of("NORM") == NamedDistribution(DistributionMode.NORM, None)
    assert distribution_of("DINTLV_B32") == NamedDistribution(DistributionMode.DINTLV, 32)
    assert distribution_of("PK4_B32") == NamedDistribution(DistributionMode.PK4, 32)
    assert distribution_of("BLK").mode is DistributionMode.BLK
    with pytest.raises(ValueError, match="NOMODE"):
        distribution_of("NOMODE_B8")


# ----------------------------------------------------------------------------------------------------------- warnings


def test_a_warning_is_its_text_with_kind_and_place() -> None:
    warning = WarningText(WarningKind.SCRATCH, "tmp is short", Span("a.pto", 3, 5))
    assert warning == f"{Span('a.pto', 3, 5)}: tmp is short"
    assert json.dumps([warning]) == json.dumps([str(warning)])
    for other in (warning, copy.deepcopy(warning), pickle.loads(pickle.dumps(warning))):
        assert (other.kind, other.text, other.place) == (WarningKind.SCRATCH, "tmp is short", Span("a.pto", 3, 5))
    assert WarningText(WarningKind.COLUMN, "gone").at("a5") == "a5: gone"


def test_plans_are_asked_for_warnings_by_kind() -> None:
    target = load_target("a2a3")
    f32, f16 = format_named("f32"), format_named("f16")
    plan = plan_cast(target, f32, f16, RoundMode.ODD, None, scratch=False)  # type: ignore[arg-type]
    assert not of_kind(plan.warnings, WarningKind.ROUNDING, WarningKind.SATURATION)
    wide = plan_cast(target, f32, format_named("i32"), RoundMode.ODD, Saturation.OFF, scratch=False)  # type: ignore[arg-type]
    assert [each.kind for each in wide.warnings] == [WarningKind.ROUNDING, WarningKind.SATURATION]
    assert of_kind(wide.warnings, WarningKind.SATURATION) == wide.warnings[1:]


def test_warnings_of_an_assembly_program_have_kinds() -> None:
    found = ran("nop; nop; nop; nop\n", chip("gaudi2"))
    assert [each.kind for each in found.warnings] == [WarningKind.NO_HALT]
    short = ran("nop; nop\n" + END, chip("gaudi2"))
    assert [each.kind for each in short.warnings] == [WarningKind.SHORT_BUNDLE]
    assert "test.tpc:1" in str(short.warnings[0].place)
