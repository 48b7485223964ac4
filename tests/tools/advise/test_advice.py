"""'castsim advise': every offer keeps the bits, is clean, saves cycles; what alters bits is no offer; the command."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from kit.command_output import Capture, document_of, err_of, file_of, out_of
from kit.paths import PROGRAMS
from tools.advise import advice_table
from tools.advise.advice_programs import (
    FLAGGED,
    SAMPLES,
    STORED,
    cast_by_rows,
    chain,
    fixed_load,
    flagged,
    row_loop,
    sums,
    two_casts,
)

import castsim
from castsim import check
from castsim.__main__ import main
from castsim.isa.errors import WarningKind, WarningText
from castsim.isa.formats import format_named
from castsim.isa.reading import Language, Source
from castsim.numerics.cast import cast_codes
from castsim.numerics.policy import abstract_policy
from castsim.tools.advise import equivalence
from castsim.tools.advise.advice_search import Advice
from castsim.tools.advise.equivalence import boundary_codes, original, proven, ranged_codes, warned_of
from castsim.tools.advise.suggestions import Change, SearchConfig, SuggestionEvidence
from castsim.tools.reference import schema as registry

IN_CI = ("f32_to_i8_own_barriers.pto", "a5_f32_to_e4m3fn_padded.pto", "tpc_i8_f32_mediator_gaudi.tpc")
CHOSEN = tuple(SAMPLES) if os.environ.get("CASTSIM_THOROUGH") else IN_CI


def patched(text: str, diff: str) -> str:
    """Apply a unified diff as its format says: every line of a hunk stands where its head says."""
    lines, found, place = text.splitlines(), [], 0
    for line in diff.splitlines()[2:]:
        head = re.match(r"@@ -(\d+)(?:,(\d+))? \+", line)
        if head:
            start = int(head[1]) - (head[2] != "0")
            found += lines[place:start]
            place = start
        elif line[:1] in (" ", "-"):
            assert lines[place] == line[1:]
            found += [lines[place]] if line[0] == " " else []
            place += 1
        elif line[:1] == "+":
            found.append(line[1:])
    return "\n".join([*found, *lines[place:]]) + "\n"


def write(tmp_path: Path, text: str, name: str = "kernel.pto") -> Path:
    return file_of(tmp_path / name, text)


def of_kind(advice: Advice, kind: str) -> Change | None:
    return next((one for one in advice.offers if one.change.kind == kind), None)


def offered(tmp_path: Path, text: str, kind: str, **words: object) -> Change:
    """Return the best offer of a kind for a text, verified from outside."""
    path = write(tmp_path, text)
    offer = of_kind(castsim.advise(path, **words), kind)  # type: ignore[arg-type]
    assert offer is not None
    verify(path, offer, {}, words.get("ranges"))
    return offer


def verify(path: Path, offer: Change, args: dict[str, int | float], ranges: object = None) -> None:
    """Hold an offer to what it promises, by new inputs, both engines, the checker and its own diff."""
    after = path.with_name(f"after{path.suffix}")
    after.write_text(offer.change.text)
    assert patched(path.read_text(), offer.diff) == offer.change.text
    seen = {(one.severity, one.message) for one in check(path, args=args)}
    lines = re.compile(r"line \d+|:\d+:\d+")
    assert {lines.sub("", message) for _, message in {(o.severity, o.message) for o in check(after, args=args)}} <= {
        lines.sub("", message) for _, message in seen
    }
    timed = castsim.run(path, args=args, timing_only=True).loaded
    names, deciding = timed.arguments, {read.name for read in timed.executed.decided_by}
    for seed in (20261, 20262):
        inputs: dict[str, object] = {
            name: "zeros" if name in deciding else f"random:{seed}" for name, use in names.items() if use.needs_input
        }
        if ranges:
            generator = np.random.default_rng(seed)
            inputs = {"src": generator.uniform(1, 1000, names["src"].shape).astype(np.float32)}
        one = castsim.run(path, args=args, inputs=inputs)  # type: ignore[arg-type]
        other = castsim.run(after, args=args, inputs=inputs)  # type: ignore[arg-type]
        assert {name: array.tobytes() for name, array in one.outputs.items()} == {
            name: array.tobytes() for name, array in other.outputs.items()
        }
        assert (one.cycles, other.cycles) == (offer.cycles_before, offer.cycles)
    assert castsim.run(after, args=args, timing_only=True, engine="event").cycles == offer.cycles < offer.cycles_before


# ------------------------------------------------------------------------------------------------------------- kinds


def test_what_orders_nothing_is_dropped(tmp_path: Path) -> None:
    more = ["pto.barrier <PIPE_ALL>", *FLAGGED, "pto.barrier <PIPE_V>"]
    offer = offered(tmp_path, flagged(more, ["pto.barrier <PIPE_V>", *STORED]), "drop synchronisation")
    plain = write(tmp_path, flagged(FLAGGED, STORED), "plain.pto")
    assert offer.how == "proven"
    assert offer.cycles <= castsim.run(plain, timing_only=True).cycles
    left = [line for line in offer.change.text.splitlines() if "flag" in line or "barrier" in line]
    assert len(left) < len(more) + 1 + len(STORED)
    assert left[-1].strip() == "pto.barrier <PIPE_ALL>"  # with which kernels end


def test_needed_order_is_left_alone(tmp_path: Path) -> None:
    assert of_kind(castsim.advise(write(tmp_path, flagged(FLAGGED, STORED))), "drop synchronisation") is None
    in_place = PROGRAMS / "a5_bf16_to_f16_barriers.pto"
    assert not [one for one in castsim.advise(in_place).offers if "drop" in one.change.kind]


def test_a_loop_is_double_buffered(tmp_path: Path) -> None:
    """From the second trip on, a load of 8 x 128 f32 no longer waits for the cast of the one before."""
    offer = offered(tmp_path, row_loop(), "double-buffer")
    assert offer.how == "proven"
    assert offer.change.text.count("pto.tload") == 2 * row_loop().count("pto.tload")
    before = castsim.run(tmp_path / "kernel.pto", timing_only=True, engine="event")
    after = castsim.run(tmp_path / "after.pto", timing_only=True, engine="event")
    assert after.pipes["MTE2"].causes.get("flag wait", 0) < before.pipes["MTE2"].causes["flag wait"]


def test_an_odd_number_of_trips_is_double_buffered_with_a_comparison(tmp_path: Path) -> None:
    text = (
        row_loop()
        .replace("%c0 to %c64", "%c0 to %end")
        .replace("    scf.for", "    %end = arith.constant 56 : index\n    scf.for")
    )
    offer = offered(tmp_path, text, "double-buffer")
    assert "scf.if" in offer.change.text


def test_a_carried_tile_has_no_second_copy(tmp_path: Path) -> None:
    path = write(tmp_path, sums())
    for offer in castsim.advise(path).offers:
        verify(path, offer, {})
        assert "%s_b" not in offer.change.text


@pytest.mark.parametrize("target", ["a3", "a5"])
def test_rows_are_merged(tmp_path: Path, target: str) -> None:
    """At best all 64 rows in one trip: 1 load instead of 64, each of which starts at the memory's latency."""
    text = row_loop(rows=1, step=1, target=target)
    offer = offered(tmp_path, text, "merge rows")
    whole = write(tmp_path, row_loop(rows=64, step=64, target=target), "whole.pto")
    assert offer.how == "proven"
    assert offer.cycles <= castsim.run(whole, timing_only=True, engine="event").cycles


def test_casts_of_parts_are_merged(tmp_path: Path) -> None:
    offer = offered(tmp_path, cast_by_rows(), "merge rows")
    assert offer.how == "proven"
    assert "subview" not in offer.change.text
    assert "scf.for" not in offer.change.text


def test_parts_that_overlap_or_leave_gaps_are_not_merged(tmp_path: Path) -> None:
    for number, (height, step) in enumerate(((8, 4), (4, 8))):
        text = cast_by_rows(height, step)
        path = write(tmp_path, text.replace("to %c64", "to %c32") if step < height else text, f"{number}.pto")
        try:
            advice = castsim.advise(path)
        except castsim.CastsimError:
            continue  # bytes that nothing wrote are stored
        assert of_kind(advice, "merge rows") is None


def test_strips_take_more_rows(tmp_path: Path) -> None:
    offer = offered(tmp_path, row_loop(rows=2, step=2), "resize tiles")
    size = int(re.search(r"take (\d+) rows", offer.change.title)[1])  # type: ignore[index]
    same = write(tmp_path, row_loop(rows=size, step=size), "same.pto")
    assert offer.cycles == castsim.run(same, timing_only=True, engine="event").cycles


def test_rows_that_overlap_are_not_resized(tmp_path: Path) -> None:
    """Strips of 8 rows every 4: twice as many rows every 8 would leave rows of the end out."""
    path = write(tmp_path, row_loop(rows=8, step=4).replace("to %c64", "to %c32"))
    for offer in castsim.advise(path).offers:
        verify(path, offer, {})


def test_padding_is_left_out() -> None:
    path = PROGRAMS / "a5_f32_to_e4m3fn_padded.pto"
    offer = castsim.advise(path).offers[0]
    assert (offer.change.kind, offer.how) == ("avoid padded tiles", "proven")
    assert "valid=" not in offer.change.text.split("{pto.entry}")[1]


def test_a_load_is_hoisted(tmp_path: Path) -> None:
    offer = offered(tmp_path, fixed_load(), "hoist loads")
    assert offer.how == "proven"
    runs = [castsim.run(tmp_path / name, timing_only=True) for name in ("kernel.pto", "after.pto")]
    loads = [sum(one.name.startswith("load") for one in result.timing.operations) for result in runs]
    assert loads == [16, 9]


def test_a_load_of_what_the_loop_stores_stays(tmp_path: Path) -> None:
    path = write(tmp_path, fixed_load("dst"))
    try:
        offers = castsim.advise(path).offers
    except castsim.CastsimError:
        return  # a race of its own
    assert not [one for one in offers if "hoist" in one.change.kind]


def test_a_chain_becomes_one_step_where_all_codes_agree(tmp_path: Path) -> None:
    """bf16 -> f32 keeps every number, so that f32 -> i32 rounds what bf16 -> i32 does: 65,536 codes say so."""
    offer = offered(tmp_path, chain("bf16", "f32", "i32", ("RINT", "TRUNC")), "cheaper chain of casts")
    assert offer.how == "proven"
    assert offer.change.text.count("tcvt") == 1


def test_a_chain_of_wide_elements_needs_a_range(tmp_path: Path) -> None:
    """f32 -> i32 -> f32 loses -0, NaN and what is beyond 2^31; between 1 and 1000 it only truncates."""
    text = chain("f32", "i32", "f32", ("TRUNC", "RINT"))
    assert of_kind(castsim.advise(write(tmp_path, text)), "cheaper chain of casts") is None
    offer = offered(tmp_path, text, "cheaper chain of casts", ranges={"src": (1, 1000)})
    assert offer.how == "tried"


def test_the_route_of_a_cast_without_its_tmp_tile_is_advised_where_a_range_makes_it_safe() -> None:
    """f16 -> i8 without saturation wraps with a tmp tile, and only there; within the range both paths agree."""
    path = PROGRAMS / "f16_to_i8_wrap.pto"
    assert castsim.advise(path).offers == ()
    (offer,) = castsim.advise(path, ranges={"src": (-100, 100)}).offers
    assert (offer.change.kind, offer.how) == ("other route of a cast", SuggestionEvidence.TRIED)


def test_what_is_rejected_is_named_with_its_reason() -> None:
    advice = castsim.advise(PROGRAMS / "f16_to_i8_wrap.pto")
    reasons = {one.why.partition(" cycles, ")[2] for one in advice.rejected if "tmp tile" in one.change.title}
    assert reasons == {"other bits on an input that was tried"}
    assert len(advice.rejected) + len(advice.offers) == advice.looked_at


def test_fp8_stores_of_an_a5_function_lose_their_barriers(tmp_path: Path) -> None:
    advice = castsim.advise(PROGRAMS / "kernels" / "quantise_rows_fp8_a5.pto", seconds=1)
    offer = advice.offers[0]
    assert offer.change.kind == "vector functions without store barriers"
    assert 2 * offer.cycles < 1.2 * advice.cycles
    path = write(tmp_path, offer.change.text)
    assert castsim.run(path, timing_only=True).cycles == offer.cycles


STORES = """\
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @k(%n: index) attributes {{pto.kernel}} {{
    %zero = arith.constant 0 : i64
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %step = arith.constant {step} : index
    %c512 = arith.constant 512 : index
    %u = pto.castptr %zero : i64 -> !pto.ptr<f32, ub>
    {around}
    pto.vecscope {{
      %m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
      %x = pto.vlds %u[%c0] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
      scf.for %i = %c0 to %c4 step %{by} {{
        %at = arith.muli %i, %step : index
        %here = arith.addi %at, %c512 : index
        pto.mem_bar "VST_VST"
        pto.vsts %x, %u[%here], %m : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>
      }}
    }}
    {end}
    return
  }}
}}
"""


@pytest.mark.parametrize(
    ("step", "loop", "offered"),
    [(64, False, True), (63, False, False), (0, False, False), (64, True, True), (63, True, False)],
)
def test_store_barriers_between_overlapping_stores_stay(
    step: int, loop: bool, offered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stores of 64 lanes, so many lanes apart: trips of the loop in a launch overlap, launches in a loop do not."""
    around = "scf.for %o = %c0 to %c4 step %one {" if loop else ""
    text = STORES.format(step=step, around=around, end="}" if loop else "", by="one")
    text = text.replace("    %c0 =", "    %one = arith.constant 1 : index\n    %c0 =", 1)
    monkeypatch.setattr(equivalence, "expand_source", lambda *_: text)
    source = Source(str(write(tmp_path, text)), Language.TILES, text)
    found = list(
        equivalence.without_store_barriers(equivalence.original(source, SearchConfig(target="a5", args={"n": 0})))
    )
    assert bool(found) == offered


def test_the_search_ends_in_time() -> None:
    advice = castsim.advise(PROGRAMS / "tpc_f32_i8_quantise_gaudi2.tpc", seconds=1e-6)
    assert advice.unfinished and advice.looked_at == 1


def test_operations_are_reordered_as_well_as_any_order_does(tmp_path: Path) -> None:
    text = two_casts()
    offer = offered(tmp_path, text, "reorder")
    lines = text.splitlines()
    places = [number for number, line in enumerate(lines) if re.match(r"\s+pto\.t(load|cvt|exp|store)", line)]
    needs = {1: [0], 2: [1], 6: [2], 4: [3], 5: [4]}
    orders = [
        order
        for order in permutations(range(7))
        if all(order.index(a) < order.index(b) for b in needs for a in needs[b])
    ]
    if not os.environ.get("CASTSIM_THOROUGH"):
        orders = orders[::3]
    least = offer.cycles_before
    for order in orders:
        moved = list(lines)
        for place, number in zip(places, order, strict=True):
            moved[place] = lines[places[number]]
        path = write(tmp_path, "\n".join(moved) + "\n", "order.pto")
        least = min(least, castsim.run(path, timing_only=True, engine="event", races="ignore").cycles)
    assert offer.cycles <= least


def test_assembly_is_scheduled_and_unrolled() -> None:
    advice = castsim.advise(PROGRAMS / "tpc_i8_f32_mediator_gaudi.tpc")
    assert advice.offers
    assert {one.how for one in advice.offers} == {"tried"}
    assert {one.change.kind for one in advice.offers} <= {"reschedule", "unroll"}


# ------------------------------------------------------------------------------------------------------- all offers


@pytest.mark.parametrize("name", CHOSEN)
def test_every_offer_for_the_samples_holds(tmp_path: Path, name: str) -> None:
    args = SAMPLES[name]
    path = write(tmp_path, (PROGRAMS / name).read_text(), f"kernel{Path(name).suffix}")
    for offer in castsim.advise(path, args=args).offers:
        verify(path, offer, args)


MUTATIONS = {
    "rounding": ("round_mode RINT", "round_mode FLOOR"),
    "view": ("%c0 to %c64", "%c0 to %c32"),
    "pitch": ("[%c128, %c1] : !pto.tensor_view<?x?xf32>", "[%c256, %c1] : !pto.tensor_view<?x?xf32>"),
    "target rows": ("%vd, offsets = [%r", "%vd, offsets = [%c0"),
    "source rows": ("%vs, offsets = [%r", "%vs, offsets = [%c8"),
    "value": ("tadds ins(%a, %x", "tadds ins(%a, %y"),
    "operation": ("tadds", "tmuls"),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTATIONS)
def test_nothing_is_proven_of_another_program(name: str) -> None:
    adds = "pto.tadds ins(%a, %x : !pto.tile_buf<vec, 8x128xf32>, f32) outs(%a : !pto.tile_buf<vec, 8x128xf32>)"
    scalars = "    %x = arith.constant 1.5 : f32\n    %y = arith.constant 2.5 : f32\n    scf.for"
    text = row_loop(extra=adds).replace("    scf.for", scalars)
    other = text.replace(*MUTATIONS[name])
    assert other != text
    setting = SearchConfig()
    before = original(Source("k.pto", Language.TILES, text), setting)
    same = Source("k.pto", Language.TILES, text.replace("%a ", "%first ").replace("%a,", "%first,"))
    assert proven(before, setting.loaded(same))
    assert not proven(before, setting.loaded(Source("k.pto", Language.TILES, other)))


# -------------------------------------------------------------------------------------------------------- the page


@pytest.mark.parametrize("name", ["a5_f32_to_e4m3fn_padded.pto", "f32_to_i32_barriers.pto"])
def test_the_page_tells_what_is_found_today(name: str) -> None:
    assert advice_table.rows()[name] == advice_table.row(name), "python tests advice_table"


# ------------------------------------------------------------------------------------------------------------ inputs


def test_trials_hold_all_small_codes_and_all_kinds_of_wide_ones() -> None:
    generator = np.random.default_rng(0)
    f16 = np.concatenate([boundary_codes(format_named("f16"), generator, 1024, number) for number in range(64)])
    assert set(f16.tolist()) == set(range(1 << 16))
    f32 = np.concatenate([boundary_codes(format_named("f32"), generator, 1024, number) for number in range(16)])
    values = f32.view("<f4")
    tiny = np.abs(values[(values != 0) & np.isfinite(values)])
    assert np.isnan(values).any()
    assert {np.inf, -np.inf, 0.0, 0.5, 2.5, 65504.0, 448.0} <= set(values.tolist())
    assert (tiny < 2.0**-126).any()
    assert (np.signbit(values) & (values == 0)).any()


@pytest.mark.parametrize("fmt", ["f32", "f16", "bf16", "i8", "i32"])
def test_ranges_are_kept(fmt: str) -> None:
    codes = ranged_codes(format_named(fmt), np.random.default_rng(1), 5000, (-3.5, 40.0))
    wide = format_named("f64")
    values = cast_codes(codes, format_named(fmt), wide, abstract_policy(format_named(fmt), wide)).view("<f8")
    assert values.min() >= -3.5
    assert values.max() <= 40.0
    assert 40.0 in values


def test_a_warning_that_the_program_has_already_hides_no_advice() -> None:
    loaded = original(Source("x.pto", Language.TILES, PADDED.read_text()), SearchConfig()).loaded

    def warned(*warnings: WarningText) -> frozenset[str]:
        return warned_of(replace(loaded, executed=replace(loaded.executed, warnings=warnings)))

    one, again = (
        WarningText(WarningKind.SATURATION, f"saturation ON of %{name} has no effect", f"x.pto:{line}:1")
        for name, line in (("dst", 4), ("dst_2", 9))
    )
    new = WarningText(WarningKind.ROUNDING, "rounding of %dst has no effect", "x.pto:4:1")
    assert warned(one, again) == warned(one)
    assert warned(one, new) - warned(one)


PADDED = PROGRAMS / "a5_f32_to_e4m3fn_padded.pto"
WRAP = PROGRAMS / "f16_to_i8_wrap.pto"
RANGE = ["--range", "src=-100:100", "--tries", "2"]


def test_the_document_is_what_its_schema_says(capsys: Capture) -> None:
    document = document_of(capsys, "advise", str(PADDED), "--quiet")
    jsonschema.Draft202012Validator(registry.schema_of("advise")).validate(document)
    offer = document["offers"][0]
    assert (offer["number"], offer["how"], offer["cycles"]) == (1, "proven", document["cycles"] - offer["gained"])
    assert offer["gained_percent"] == pytest.approx(100 * offer["gained"] / document["cycles"], abs=0.01)


def test_the_answer_is_a_diff_that_patch_applies(tmp_path: Path, capsys: Capture) -> None:
    if shutil.which("patch") is None:
        pytest.skip("there is no `patch`")
    kernel = write(tmp_path, row_loop())
    answer = out_of(capsys, ["advise", str(kernel)])
    cycles = castsim.advise(kernel).offers[0].cycles
    subprocess.run(["patch", str(kernel)], input=answer, text=True, check=True, capture_output=True)
    assert castsim.run(kernel, timing_only=True).cycles == cycles
    assert f"-> {cycles:,} cycles" in " ".join(answer.split())


def test_a_proven_change_is_written(tmp_path: Path) -> None:
    out = tmp_path / "faster.pto"
    assert main(["advise", str(PADDED), "--apply", "1", "-o", str(out), "--quiet"]) == 0
    assert castsim.run(out, timing_only=True).cycles < castsim.run(PADDED, timing_only=True).cycles


def test_a_change_that_is_only_tried_has_to_be_allowed(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "narrow.pto"
    words = ["advise", str(WRAP), *RANGE, "--apply", "1", "-o", str(out)]
    assert "--apply 1 --tried" in err_of(capsys, words)
    assert not out.exists()
    assert main([*words, "--tried"]) == 0
    assert out.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--apply", "9", "-o", "x.pto"], "1 to 2"),
        (["--apply", "1"], "--apply 1 -o FILE"),
        (["-o", "x.pto"], "--apply 1 -o FILE"),
        (["--apply", "0", "-o", "x.pto"], "must be a positive integer"),
        (["--range", "src=8"], "LO:HI"),
        (["--range", "src=8:1"], "--range src=1:8"),
        (["--range", "src=nan:1"], "LO:HI"),
        (["--range", "nosuch=0:1"], "no tensor argument 'nosuch'"),
        (["--in", "nosuch=zeros"], "no tensor argument 'nosuch'"),
        (["--tries", "none"], "must be a positive integer"),
        (["--apply", "1", "-o", "nosuch/folder/x.pto"], "nosuch/folder/x.pto"),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in err_of(capsys, ["advise", str(PADDED), *words])
    assert not list(tmp_path.iterdir())


def test_a_program_with_an_error_is_refused_at_its_place(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, row_loop().replace("pto.tcvt", "pto.tcvtt"))
    assert main(["advise", str(path)]) != 0
    assert f"{path}:" in capsys.readouterr().err


def test_binaries_and_graphs_are_refused(tmp_path: Path, capsys: Capture) -> None:
    binary = tmp_path / "k.bin"
    binary.write_bytes(bytes(64))
    assert main(["advise", str(binary)]) == 2
    assert "castsim disasm" in err_of(capsys, ["advise", str(PROGRAMS / "quantise_half.onnx")])


def test_names_that_steer_a_terminal_stay_text(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, "// \x1b[31m <script> \u202e\n" + row_loop())
    assert "\x1b" not in out_of(capsys, ["advise", str(path)])
