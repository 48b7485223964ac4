"""`castsim targets`: the list, one target, one pair."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import pytest
from kit.command_output import document_of, out_of

import castsim
from castsim.__main__ import main
from castsim.isa.formats import FORMATS, format_named
from castsim.reports.pages.answer_pages import target_page
from castsim.reports.pages.blocks import Folded, Page, PageTable
from castsim.reports.pairs import pair_detail, pair_rows
from castsim.reports.target_template import _inside, key_text, template
from castsim.targets.description import Table, TargetHeader, with_options
from castsim.targets.loader import load_target, target_names


def tables(page: Page) -> Iterator[PageTable]:
    for section in page.sections:
        for block in section.blocks:
            for inner in block.blocks if isinstance(block, Folded) else (block,):
                if isinstance(inner, PageTable):
                    yield inner


Capture = pytest.CaptureFixture[str]


def document(capsys: Capture, *argv: str) -> dict[str, Any]:
    return document_of(capsys, "targets", *argv)


def text(capsys: Capture, *argv: str) -> str:
    return out_of(capsys, ["targets", *argv])


def test_the_list_has_every_shipped_target(capsys: Capture) -> None:
    rows = document(capsys)["targets"]
    assert [row["name"] for row in rows] == list(target_names())
    for row in rows:
        assert list(row) == ["name", "title", "mechanism", "languages", "architectures", "casts"]
        assert row["casts"] == len(load_target(row["name"]).casts)
        assert all(str(row[key]) in text(capsys) for key in ("name", "title", "mechanism"))


@pytest.mark.parametrize("name", target_names())
def test_one_target_lists_all_it_knows(name: str, capsys: Capture) -> None:
    target = load_target(name)
    found, shown = document(capsys, name), text(capsys, name)
    assert [(row["src"], row["dst"]) for row in found["pairs"]] == [(rule.src, rule.dst) for rule in target.casts]
    assert [option["name"] for option in found["options"]] == list(target.options)
    for option in found["options"]:
        assert option["name"] in shown and str(option["meaning"])[:30] in " ".join(shown.split())
        assert option["value"] in option["legal"]
    cells = {cell for table in tables(target_page(found)) for row in table.rows for cell in row}
    for fact in found["facts"]:
        assert list(fact) == ["name", "status", "value", "source", "note"]
        assert fact["source"]
        assert {fact["source"], fact["status"]} <= cells
    assert {f"memories.{memory}" for memory in target.memories} <= {fact["name"] for fact in found["facts"]}
    assert max(map(len, shown.splitlines())) <= 100


def test_the_pairs_of_a2a3(capsys: Capture) -> None:
    """Rows of the published table (docs/reference/a2a3.md sections 1 and 3.2), copied by hand."""
    pairs = {(row["src"], row["dst"]): row for row in document(capsys, "a2a3")["pairs"]}
    five = ["rint", "round", "floor", "ceil", "trunc"]
    assert len(pairs) == 25
    assert pairs["f32", "f16"] == {
        "src": "f32", "dst": "f16", "modes": [*five, "odd"], "default": "rint", "fallback": "rint",
        "saturation": "none: inf", "switchable": "never", "scratch": None,
    }  # fmt: skip
    assert pairs["f16", "i8"] == {
        "src": "f16", "dst": "i8", "modes": five, "default": "rint", "fallback": "trunc",
        "saturation": "off", "switchable": "always", "scratch": "chunked_masked",
    }  # fmt: skip
    assert (pairs["bf16", "f32"]["modes"], pairs["bf16", "f32"]["default"]) == ([], None)  # exact
    assert [pair for pair, row in pairs.items() if row["saturation"] == "off"] == [
        ("f32", "i16"), ("f16", "i16"), ("f16", "i8"), ("f16", "u8"), ("i32", "i16"), ("i64", "i32"),
    ]  # fmt: skip


def test_one_pair_in_full(capsys: Capture) -> None:
    found = document(capsys, "a2a3", "half", "s8")
    mnemonics = {row["requested"]: (row["in_force"], row["mnemonic"]) for row in found["mnemonics"]}
    assert mnemonics == {
        "default": ("rint", "vconv_f162s8r"), "none": ("trunc", "vconv_f162s8z"), "rint": ("rint", "vconv_f162s8r"),
        "round": ("round", "vconv_f162s8a"), "floor": ("floor", "vconv_f162s8f"), "ceil": ("ceil", "vconv_f162s8c"),
        "trunc": ("trunc", "vconv_f162s8z"), "odd": ("trunc", "vconv_f162s8z"),
    }  # fmt: skip
    assert {(row["requested"], row["scratch"]): row["in_force"] for row in found["saturation_modes"]} == {
        ("default", False): "off", ("default", True): "off", ("on", False): "on", ("on", True): "on",
        ("off", False): "off", ("off", True): "off",
    }  # fmt: skip
    assert {each["name"]: each["value"] for each in found["configuration"]} == {
        "lanes_per_repeat": 128, "dst_repeat_stride_blocks": 4, "src_repeat_stride_blocks": 8,
        "max_repeats": 255, "repeat_stride_field_bits": 12,
    }  # fmt: skip
    steps = [step for step in found["scratch_sequence"]["operations"] if step.startswith("v")]
    # int32, int16 in place, the low byte kept, then through f16 to int8 (docs/reference/a2a3.md section 3.4)
    assert steps == [
        "vconv_f162s32r", "vconv_s322s16", "vector_dup", "vand", "vconv_s162f16", "vconv_f162s8z"
    ]  # fmt: skip
    shown = text(capsys, "a2a3", "f16", "i8")
    assert all(mnemonic in shown for _, mnemonic in mnemonics.values())
    assert "rounding ODD becomes TRUNC" in shown


def test_instructions_with_a_narrow_stride_field(capsys: Capture) -> None:
    configuration = document(capsys, "a2a3", "i32", "f16")["configuration"]
    assert {"name": "repeat_stride_field_bits", "value": 8} in configuration
    assert document(capsys, "a2a3", "f32", "f16")["scratch_sequence"] is None


@pytest.mark.parametrize(
    ("options", "src", "dst", "words"),
    [
        # docs/reference/a5.md section 4: CTRL[60] = 0 leaves fp8 and HiF8 to their instruction, which does not saturate
        ({"ctrl_60_at_start": 0}, "f32", "e4m3fn", "none: NaN"),
        ({"ctrl_60_at_start": 0}, "f32", "e5m2", "none: inf"),
        ({"ctrl_60_at_start": 0}, "f32", "hif8", "none: inf"),
        ({"ctrl_60_at_start": 1, "ctrl_48_at_start": 0}, "f32", "e4m3fn", "clamps"),
        ({"ctrl_60_at_start": 1, "ctrl_48_at_start": 0}, "f32", "hif8", "clamps"),
        ({}, "f16", "f32", "not needed"),
        ({}, "i16", "u32", "clamps"),
        ({}, "f32", "i16", "off"),
        ({}, "f32", "i32", "on"),
    ],
)
def test_saturation_is_what_happens_under_the_options(
    options: dict[str, int], src: str, dst: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chip = with_options(load_target("a5"), options)
    (row,) = (row for row in pair_rows(chip) if (row.src, row.dst) == (src, dst))
    assert row.saturation == words
    assert row.switchable == ("always" if words in ("on", "off") else "never")
    detail = pair_detail(chip, format_named(src), format_named(dst))
    assert {each.in_force for each in detail.saturation_modes if each.requested == "default"} == {words}
    given = [f"--option={name}={value}" for name, value in options.items()]
    assert main(["cast", src, dst, "1", "--target", "a5", *given, "--json", "-"]) == 0
    assert {each["saturation"] for each in json.loads(capsys.readouterr().out)["results"]} == {words}


@pytest.mark.parametrize(("bit", "warned"), [(1, 0), (0, 1)])
def test_asking_for_saturation_where_results_clamp_is_no_matter_of_warning(
    bit: int, warned: int, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["cast", "f32", "e4m3fn", "480", "--target", "a5", "--saturation", "on", "--json", "-"]
    assert main([*argv, f"--option=ctrl_60_at_start={bit}", "--option=ctrl_48_at_start=0"]) == 0
    assert len(json.loads(capsys.readouterr().out)["warnings"]) == warned


@pytest.mark.parametrize("name", target_names())
def test_a_template_is_the_chip_itself(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets", "--template", name]) == 0
    text = capsys.readouterr().out
    chip = tmp_path / "chip.toml"
    chip.write_text(text)
    assert load_target(chip) == load_target(name)  # every table and number
    assert load_target(name).name in text.splitlines()[0]
    changed = text.replace(f'\nname = "{name}"\n', '\nname = "mine"\n')
    chip.write_text(changed)
    assert load_target(chip).name == "mine"
    assert load_target(chip).options == load_target(name).options


def test_every_key_of_a_template_has_a_comment() -> None:
    load_target("a5"), load_target("a2a3"), load_target("gaudi2")
    models = [model for model in _below(TargetHeader) if model.__module__.startswith("castsim")]
    assert len(models) >= 3
    for model in models:
        for key in model.model_fields:
            assert key_text(model, key) or _inside(model, key) is not None, (model, key)
    lines = template("a5").splitlines()
    for key in ("name", "megahertz", "source", "capacity_bytes", "startup_cycles", "note"):
        first = next(number for number, line in enumerate(lines) if line.startswith(f"{key} = "))
        assert lines[first - 1].startswith("# "), key
    status = " ".join(line.removeprefix("# ") for line in lines).partition("status = ")[0]
    assert "vendor-model: An assumption of the vendor's own cost model" in status


def _below(model: type[Table]) -> Iterator[type[Table]]:
    for each in model.__subclasses__():
        yield each
        yield from _below(each)


def test_the_formats_have_the_limits_of_their_documents(capsys: Capture) -> None:
    """Against ml_dtypes and NumPy; hif8, f8_143 and integers against their documents (docs/reference/formats.md)."""
    assert main(["formats", "--json", "-"]) == 0
    listed = {each["name"]: each for each in json.loads(capsys.readouterr().out)["formats"]}
    assert listed.keys() == FORMATS.keys()
    for name, entry in listed.items():
        fmt = FORMATS[name]
        if fmt.dtype is None or entry["kind"] == "integer":
            continue
        info = ml_dtypes.finfo(fmt.dtype)
        assert (entry["bits"], entry["largest"]) == (info.bits, float(info.max))
        assert entry["smallest_normal"] == float(info.smallest_normal)
        if name != "e8m0":
            assert (entry["exponent_bits"], entry["mantissa_bits"]) == (info.nexp, info.nmant)
            assert entry["smallest_subnormal"] == float(info.smallest_subnormal)
    hif8, e8m0, u16 = (listed[name] for name in ("hif8", "e8m0", "u16"))
    assert [hif8[key] for key in ("largest", "smallest_normal", "smallest_subnormal")] == [2.0**15, 2.0**-15, 2.0**-22]
    assert (e8m0["smallest_subnormal"], e8m0["nan"], e8m0["infinities"]) == (None, True, False)
    assert (u16["smallest"], u16["largest"], u16["bias"], u16["nan"]) == (0, 65535, None, False)
    assert listed["e5m2"]["targets"] == ["a5"]
    assert {"fp16", "half", "float16"} <= set(listed["f16"]["aliases"])
    for name, entry in listed.items():
        assert {format_named(alias).name for alias in entry["aliases"]} <= {name}


def test_formats_are_asked_for_by_name(capsys: Capture) -> None:
    assert [each.name for each in castsim.formats("e4m3", "F8_143@11")] == ["e4m3fn", "f8_143@11"]
    assert main(["formats", "half"]) == 0
    shown = capsys.readouterr().out
    assert "65504" in shown and "fp16" in shown and "e4m3fn" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert main(["formats", "half", "f99"]) == 2
    assert "unknown format 'f99'" in capsys.readouterr().err
