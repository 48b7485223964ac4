"""Kinds are attributes: what something is stands in a table or a field, and is not told by how its name begins."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from kit.tpc_machine import END, chip, ran

from castsim.isa.errors import Span, WarningKind, WarningText, of_kind
from castsim.isa.formats import Saturation, format_named
from castsim.isa.pto.program import RoundMode, TileOperation
from castsim.isa.pto.pto_parser import parse
from castsim.machines.strided.plan import plan_cast
from castsim.targets.loader import load_target
from castsim.targets.vector_function import DistributionMode, NamedDistribution, distribution_of

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
