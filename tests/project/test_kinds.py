"""Kinds are attributes: what something is stands in a table or a field, and is not told by how its name begins."""

from __future__ import annotations

import ast
import copy
import json
import pickle

import pytest
from kit.tpc_machine import END, chip, ran
from project.test_architecture import SOURCES, relative

from castsim.execution.tree import GlobalSpace
from castsim.isa.errors import Span, WarningKind, WarningText, of_kind
from castsim.isa.formats import Rounding, Saturation, format_named
from castsim.isa.pto.program import RoundMode, TileOperation
from castsim.isa.pto.pto_parser import parse
from castsim.isa.tpc.forms import LOADS, STORES, Family, Form, Half, MemoryOperation
from castsim.isa.tpc.instructions import FORMS, RANDOM_ROUNDINGS, forms_of, mnemonics
from castsim.isa.tpc.parser import parse as parse_assembly
from castsim.isa.tpc.program import File, Register
from castsim.machines.strided.plan import plan_cast
from castsim.machines.vliw.storage import GENERATORS, RANDOM, Registers
from castsim.targets.loader import load_target, target_names
from castsim.targets.vector_function import DistributionMode, NamedDistribution, distribution_of
from castsim.targets.vliw import VliwTarget

FRONT_ENDS = (
    "simulator/languages/ascendc/",
    "simulator/languages/cpp_recording/",
    "simulator/languages/pto_cpp/",
    "simulator/languages/tilelang/",
    "simulator/languages/tpc_c/",
)
"""Readers of whole languages."""

READERS = {
    "simulator/machines/vliw/memory_access.py": "reads words of instructions",
    "simulator/tools/tpc_assembly/asm.py": "reads names of files",
    "simulator/tools/compare/command.py": "reads names of files",
    "simulator/running/languages.py": "reads names of files",
    "simulator/commands/kernels.py": "reads names of files",
    "simulator/tools/tpc_compiler/c_language.py": "reads names of functions",
    "simulator/tools/debugger/stops.py": "reads names of values in program text",
    "simulator/tools/editor/actions.py": "reads lines of program text",
    "simulator/tools/editor/navigation.py": "reads names and words of program text",
    "simulator/tools/editor/completion.py": "reads words of program text",
    "simulator/tools/editor/symbols.py": "reads words of program text",
    "isa/pto/statement_forms.py": "reads attributes of program text",
    "isa/pto/control_flow.py": "reads names of operations, some of which are refused by their beginnings",
    "isa/pto/lexer.py": "takes the text apart",
    "isa/pto/pto_parser.py": "reads names of operations, which begin statements",
    "isa/pto/pto_scalars.py": "reads names of operations, and numbers of program text",
    "isa/pto/tile_operation_forms.py": "reads names of operations; the matrix unit's are an open list of beginnings",
    "isa/pto/strided_statements.py": "reads attributes of program text, and names in a table",
    "isa/pto/types.py": "reads types of program text",
    "simulator/languages/vmi/operations.py": "reads words of program text",
    "isa/tpc/program.py": "reads names of files, in declarations of tables",
    "targets/tpc_compiler.py": "reads names of the compiler's functions",
    "simulator/tools/expand/nests.py": "reads types of the text that it writes",
    "simulator/machines/vector_function/function_operations.py": "reads the width of lanes in names of instructions",
    "simulator/tools/tpc_compiler/builtin_calls.py": "reads names of functions, and lines of assembly",
    "simulator/machines/vliw/assembled.py": "reads names of files, and numbers of program text",
    "simulator/machines/vliw/lookup_tables.py": "reads names of functions",
    "isa/value_expressions.py": "reads names of types and numbers as users type them",
    "simulator/reports/target_template.py": "reads lines of descriptions",
    "isa/reading.py": "reads the first bytes of a file",
    "isa/dataclass.py": "reads names of types in annotations",
    "targets/validated.py": "reads names of fields and of types in annotations",
    "simulator/tools/tpc_binary/assembler.py": "reads the first bytes of a file",
    "isa/tpc/forms.py": "reads the notation of the instruction table",
    "isa/tpc/parser.py": "reads lines of program text",
    "targets/loader.py": "reads keys of descriptions; labels of measured tables",
    "targets/vector_function.py": "reads kernels, and checks what is no instruction at all",
    "simulator/__init__.py": "reads names of its own",
    "simulator/languages/fragments/__init__.py": "reads names of operations and modes as users type them",
    "simulator/machines/casting.py": "reads names of formats as users type them",
    "simulator/tools/advise/reordering.py": "reads and edits lines of program text",
    "simulator/tools/advise/advice_search.py": "reads names of scalar operations",
    "simulator/running/program_edits.py": "reads and edits lines of program text, and their ends",
    "simulator/tools/advise/suggestions.py": "reads the ends of lines",
    "simulator/tools/advise/text_edits.py": "reads names in lines of program text",
    "simulator/tools/builtins/builtin_call.py": "reads words of the command line",
    "simulator/commands/cast.py": "reads numbers of the command line",
    "simulator/tools/debugger/command.py": "reads names of files; commands as users type them",
    "simulator/commands/run.py": "reads names of files",
    "simulator/commands/run_views.py": "reads names of files",
    "simulator/commands/scratch.py": "reads names of files",
    "simulator/tools/traces/command.py": "reads names of files",
    "simulator/commands/outcome.py": "takes the end of the last line off what is printed",
    "simulator/commands/command_line.py": "reads the command line",
    "simulator/commands/option_parsers.py": "reads words of the command line",
    "simulator/tools/reference/completion.py": "reads words of the command line's parsers",
    "simulator/tools/reference/manual.py": "reads words of the command line's parsers",
    "simulator/commands/failure.py": "reads words of the command line's parsers",
    "simulator/tools/debugger/debug_adapter.py": "reads expressions as users type them",
    "simulator/tools/editor/program_slice.py": "reads lines of program text",
    "simulator/reports/pages/grammars.py": "reads names of operations",
    "simulator/tools/editor/hover.py": "reads words of program text",
    "simulator/reports/terminal.py": "takes the end of the last line off what is printed",
    "simulator/tools/notebooks/answers.py": "takes the unit off a label without one",
    "simulator/reports/pages/answer_pages.py": "forms plurals and ends of sentences; reads paths of facts",
    "simulator/tools/accuracy/page.py": "reads names of tables",
    "simulator/reports/pages/run_page.py": "reads messages that begin with their file",
    "simulator/tools/verify/report.py": "reads names of its own attributes",
    "simulator/tools/estimate/tile_estimates.py": "reads names of files",
    "targets/strided_repeat.py": "reads names of facts",
    "simulator/running/cycle_evidence.py": "reads paths of facts",
    "simulator/tools/calibrate/calibration.py": "reads names of files",
    "simulator/reports/run_report.py": "reads paths of facts",
    "simulator/reports/run_cycles.py": "reads paths of facts",
    "simulator/tools/verify/kept.py": "reads names of modules",
    "simulator/execution/input_data.py": "reads what inputs are asked for; heads of files; names as users type them",
    "simulator/running/program_loading.py": "reads what inputs are asked for; a name from the command line",
    "simulator/tools/distribution/distributing.py": "reads heads of files",
    "simulator/tools/diff/differences.py": "reads lines of program text",
    "simulator/tools/sweep/specification.py": "reads keys of specifications",
    "simulator/tools/graphs/graph_execution.py": "reads what inputs are asked for",
    "simulator/machines/mechanisms.py": "reads rounding modes as users type them",
    "simulator/tools/expand/program_writer.py": "reads words of program text",
    "simulator/machines/vector_function/instruction_scoreboard.py": "reads words of program text",
    "simulator/machines/vector_function/scope_recorder.py": "reads words of program text",
    "simulator/tools/graphs/tosa_reader.py": "reads program text",
    "simulator/machines/vliw/semantics/__init__.py": "reads mnemonics",
    "simulator/numerics/codec.py": "reads the sign of a number in text",
    "simulator/numerics/compiled/__init__.py": "reads the name of the processor",
    "simulator/tools/lowering/conformance.py": "reads numbers from text",
    "isa/pto/statement_reader.py": "reads lines of program text",
    "simulator/execution/interpreter/arguments.py": "reads names of arguments as users type them",
    "simulator/tools/lowering/steps.py": "reads switches of planned text; recorded proofs are about the file as it is",
    "simulator/tools/lowering/vector_steps.py": "reads the notation of planned operands",
    "simulator/tools/tpc_compiler/builtin_sequences.py": "reads names of builtins and functions as users type them",
    "simulator/tools/compiled/cast_comparison.py": "reads lines of LLVM IR",
    "simulator/tools/compiled/compiled_casts.py": "reads rounding modes as users type them",
    "simulator/tools/tpc_compiler/virtual_registers.py": "reads lines of program text",
    "simulator/tools/compiled/command.py": "reads names of files",
    "simulator/reports/run_findings.py": "reads lines of program text",
    "simulator/tools/check/command.py": "reads names of files",
    "simulator/tools/check/checking.py": "reads the byte order mark of a text",
    "simulator/tools/graphs/onnx_nodes.py": "reads names of ONNX's operators",
    "simulator/tools/tpc_assembly/pipelining.py": "reads names of registers",
    "simulator/tools/tpc_assembly/scheduling.py": "reads names of registers and mnemonics",
    "isa/pto/vector_operations.py": "reads mnemonics as users write them",
    "targets/description.py": "reads paths of keys",
}
"""Modules that look at how a text begins or ends, each with its reason."""

LOOKING = frozenset({"startswith", "endswith", "removeprefix", "removesuffix"})


def looks_at_text(source: str) -> bool:
    return any(word in source for word in LOOKING) and any(
        isinstance(node, ast.Attribute) and node.attr in LOOKING for node in ast.walk(ast.parse(source))
    )


def test_only_readers_look_at_how_a_text_begins_or_ends() -> None:
    found = {relative(path) for path in SOURCES if looks_at_text(path.read_text(encoding="utf-8"))}
    assert {name for name in found if not name.startswith(FRONT_ENDS)} == set(READERS)


# ------------------------------------------------------------------------------------------------ instructions of TPC

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


def test_names_of_generators_say_which_and_whether_it_steps() -> None:
    assert {draw.generator for draw in RANDOM.values()} == set(GENERATORS)
    assert {name for name, draw in RANDOM.items() if draw.steps} == set(GENERATORS)


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


def test_a_space_of_global_memory_is_its_own_type_and_the_same_text() -> None:
    space = GlobalSpace.of("x")
    assert space == "gm:x" and isinstance(space, GlobalSpace) and hash(space) == hash("gm:x")


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
