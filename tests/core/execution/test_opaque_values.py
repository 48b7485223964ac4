"""What opaque operations leave: placeholders in time, elements that are not computed in outputs."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from castsim import run
from castsim.__main__ import main
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program

ACC = "!pto.tile_buf<acc, 16x64xf32, blayout=col_major, slayout=row_major, fractal=1024>"
VEC = "!pto.tile_buf<vec, 16x64xf32>"
HALF = "!pto.tile_buf<vec, 16x64xbf16>"
INDEX = "!pto.tile_buf<vec, 16x64xi32>"
TARGETS = ("a2a3", "a5")


def view(name: str, element: str = "f32") -> str:
    kind = f"!pto.tensor_view<?x?x{element}>"
    return (
        f"%v{name} = pto.make_tensor_view %{name}, shape = [%c16, %c64], strides = [%c64, %c1] : {kind}\n"
        f"%p{name} = pto.partition_view %v{name}, offsets = [%c0, %c0], sizes = [%c16, %c64] : {kind} -> !pto.partition_tensor_view<16x64x{element}>\n"
    )


def move(name: str, tile: str, *, load: bool, element: str = "f32") -> str:
    part, kind = f"!pto.partition_tensor_view<16x64x{element}>", f"!pto.tile_buf<vec, 16x64x{element}>"
    if load:
        return f"pto.tload ins(%p{name} : {part}) outs({tile} : {kind})\n"
    return f"pto.tstore ins({tile} : {kind}) outs(%p{name} : {part})\n"


def program(body: str, *, unknown: str = "", further: str = "") -> str:
    """A kernel with tiles %t (loaded from x), %u (from the accumulator, or as `unknown` says), %r, %h, %i."""
    origin = unknown or f"pto.tmov ins(%a : {ACC}) outs(%u : {VEC})\n"
    constants = "\n".join(f"%c{value} = arith.constant {value} : index" for value in (0, 1, 2, 3, 8, 16, 64))
    return f"""func.func @k(%x: !pto.ptr<f32>, %w: !pto.ptr<f32>, %y: !pto.ptr<f32>, %z: !pto.ptr<f32>{further}) attributes {{pto.entry}} {{
{constants}
{view("x")}{view("w")}{view("y")}{view("z")}%a = pto.alloc_tile : {ACC}
%t = pto.alloc_tile : {VEC}
%u = pto.alloc_tile : {VEC}
%r = pto.alloc_tile : {VEC}
%h = pto.alloc_tile : {HALF}
%i = pto.alloc_tile : {INDEX}
%j = pto.alloc_tile : {INDEX}
%row = pto.alloc_tile : !pto.tile_buf<vec, 16x1xf32, blayout=col_major>
%tmp = pto.alloc_tile : {VEC}
{move("x", "%t", load=True)}{origin}{body}return
}}
"""


def into_part(mnemonic: str, place: str, rows: int, cols: int) -> str:
    """An operation on equal parts of %u and %t that leaves its result in that of %t."""
    part = f"!pto.tile_buf<vec, {rows}x{cols}xf32>"
    subviews = "".join(
        f"%{new} = pto.subview %{old}[{place}] sizes [{rows}, {cols}] : {VEC}\n"
        for new, old in (("s", "u"), ("s2", "t"))
    )
    ins = f"%s : {part}" if mnemonic == "tmov" else f"%s, %s2 : {part}, {part}"
    return f"{subviews}pto.{mnemonic} ins({ins}) outs(%s2 : {part})\n"


def two(mnemonic: str, first: str = "%t", second: str = "%part", out: str = "%r") -> str:
    return f"pto.{mnemonic} ins({first}, {second} : {VEC}, {VEC}) outs({out} : {VEC})\n"


STORED = move("y", "%r", load=False)
ROW = "!pto.tile_buf<vec, 16x1xf32, blayout=col_major>"
LINE = "!pto.tile_buf<vec, 1x64xf32>"
BODIES = {
    "beside": two("tadd", second="%t") + STORED,
    "all": two("tadd", second="%u") + STORED,
    "copy": f"pto.tmov ins(%u : {VEC}) outs(%r : {VEC})\n" + STORED,
    "part": into_part("tadd", "%c2, %c8", 8, 16) + two("tmul", second="%t") + STORED,
    "cast": (
        into_part("tmov", "%c2, %c0", 8, 64)
        + f"pto.tcvt ins(%t : {VEC}) outs(%h : {HALF})\npto.tcvt ins(%h : {HALF}) outs(%r : {VEC})\n{STORED}"
    ),
    "rows": (
        into_part("tadd", "%c3, %c8", 1, 8)
        + f"pto.trowmax ins(%t, %tmp : {VEC}, {VEC}) outs(%row : {ROW})\n"
        + f"pto.trowexpandmul ins(%t, %row, %tmp : {VEC}, {ROW}, {VEC}) outs(%r : {VEC})\n{STORED}"
    ),
    "columns": (
        into_part("tadd", "%c3, %c8", 1, 8)
        + f"%line = pto.subview %r[%c0, %c0] sizes [1, 64] : {VEC}\npto.tcolmax ins(%t : {VEC}) outs(%line : {LINE})\n"
        + f"pto.tcolexpand ins(%line : {LINE}) outs(%t : {VEC})\n{move('y', '%t', load=False)}"
    ),
    "overwritten": two("tadd", second="%u") + two("tmul", second="%t") + STORED,
    "through memory": (
        move("y", "%u", load=False)
        + move("y", "%r", load=True)
        + two("tmax", second="%r")
        + move("z", "%r", load=False)
    ),
    "indices": (
        f"pto.tcvt ins(%u : {VEC}) outs(%i : {INDEX})\n"
        f"pto.tgather ins(%t, %i, %j : {VEC}, {INDEX}, {INDEX}) outs(%r : {VEC})\n{STORED}"
    ),
    "loop": (
        f"scf.for %k = %c0 to %c16 step %c1 {{\n{into_part('tmax', '%k, %c0', 1, 64)}}}\n" + move("y", "%t", load=False)
    ),
}
KNOWN = f"{move('w', '%u', load=True)}"


def saved(folder: Path, text: str) -> Path:
    path = folder / "k.pto"
    path.write_text(text)
    return path


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", BODIES)
def test_only_what_the_unknown_cannot_change_is_computed(name: str, target: str, tmp_path: Path):
    """The same program with two different contents in place of the unknown: what differs is not computed, and what is
    said to be computed is what both have.
    """
    random = np.random.default_rng(5)
    x = random.integers(0, 9, (16, 64)).astype(np.float32)
    found = run(saved(tmp_path, program(BODIES[name])), target, inputs={"x": x})
    loaded = saved(tmp_path, program(BODIES[name], unknown=KNOWN))
    others = [
        run(
            loaded, target, inputs={"x": x, "w": (sign * random.integers(lowest, 64, (16, 64))).astype(np.float32)}
        ).outputs
        for sign, lowest in ((1, 20), (1, 0), (1 if name == "indices" else -1, 10))
    ]
    assert {*found.outputs, *found.partial} == {*others[0]}
    for output, first in others[0].items():
        differs = np.logical_or.reduce([other[output] != first for other in others])
        if output in found.outputs:
            assert not differs.any()
            np.testing.assert_array_equal(found.outputs[output], first)
            continue
        partial = found.partial[output]
        assert not (differs & partial.computed).any()
        np.testing.assert_array_equal(partial.values[partial.computed], first[partial.computed])


def expected_mask(name: str) -> np.ndarray:
    """Which elements of y are not computed, by hand."""
    mask, everything = np.zeros((16, 64), bool), slice(None)
    places = {"part": np.s_[2:10, 8:24], "cast": np.s_[2:10], "rows": np.s_[3], "columns": np.s_[:, 8:16]}
    places |= dict.fromkeys(("all", "copy", "indices", "loop"), everything)
    if name in places:
        mask[places[name]] = True
    return mask


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", [name for name in BODIES if name != "through memory"])
def test_the_unknown_spreads_by_elements(name: str, target: str, tmp_path: Path):
    found = run(saved(tmp_path, program(BODIES[name])), target, inputs={"x": "random:1"})
    mask = np.zeros((16, 64), bool) if "y" in found.outputs else ~found.partial["y"].computed
    np.testing.assert_array_equal(mask, expected_mask(name))


# ----------------------------------------------------------------------------------------------------- the command


def test_partial_outputs_are_written_on_demand_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path, out = saved(tmp_path, program(BODIES["part"] + move("z", "%t", load=False))), tmp_path / "o"
    command = ["run", str(path), "--target", "a2a3", "--in", "x=random:1", "--out", str(out)]
    assert main(command) == 1
    told = capsys.readouterr()
    text = " ".join(told.out.split())
    assert "128 of 1,024 elements are not computed, the first at [2, 8]" in text
    assert told.err.startswith("error: output y: 128 of 1024 elements depend on opaque operations")
    assert main([*command, "--json", "-"]) == 1
    errors = json.loads(capsys.readouterr().out)["errors"]
    assert [each["message"].split(":")[0] for each in errors] == ["output y", "output z"]
    assert "--partial" in errors[0]["legal"]
    assert "--partial" in text
    assert not [*out.iterdir()]
    assert main([*command, "--partial", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert "errors" not in document
    (first, _) = document["outputs_not_computed"]
    assert (first["name"], first["elements"], first["first"]) == ("y", 128, [2, 8])
    computed = np.load(first["computed_file"])
    assert (~computed).sum() == 128
    assert not np.load(first["file"])[~computed].any()


def test_partial_needs_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = saved(tmp_path, program(BODIES["all"]))
    assert main(["run", str(path), "--target", "a5", "--timing-only", "--partial"]) == 2
    assert "--partial" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------- the time

PRODUCT = f"""scf.for %k = %c0 to %c3 step %c1 {{
pto.tmatmul ins(%a, %a : {ACC}, {ACC}) outs(%a : {ACC})
}}
pto.tmov ins(%a : {ACC}) outs(%u : {VEC})
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("cycles", [(0, 0), (700, 0), (1, 1), (5000, 300), (0, 40)])
def test_placeholders_take_what_they_are_said_to(cycles: tuple[int, int], target: str, tmp_path: Path):
    """Three products in a row, then a move: the chain is as much longer as they are, if they outlast all else."""
    path = saved(tmp_path, program(PRODUCT + BODIES["all"]))
    named = {"tmatmul": cycles[0], "tmov": cycles[1]}
    runs = [run(path, target, timing_only=True, opaque=named, engine=engine) for engine in ("fast", "event")]
    assert runs[0].cycles == runs[1].cycles
    assert {name: pipe.causes for name, pipe in runs[0].pipes.items()} == {
        name: pipe.causes for name, pipe in runs[1].pipes.items()
    }
    found = runs[0].placeholders
    assert found is not None
    uses = {(use.name, use.pipe): (use.executions, use.cycles) for use in found.uses}
    assert uses == {("tmatmul", "M"): (3, cycles[0]), ("tmov", "FIX"): (2, cycles[1])}
    assert found.without == run(path, target, timing_only=True).cycles
    assert found.resting == runs[0].cycles - found.without
    if cycles[0] >= 700:
        longer = run(path, target, timing_only=True, opaque={**named, "tmatmul": cycles[0] + 100})
        assert longer.cycles == runs[0].cycles + 300


def test_report_names_what_rests_on_placeholders(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = saved(tmp_path, program(PRODUCT + BODIES["all"]))
    command = ["run", str(path), "--target", "a2a3", "--timing-only", "--opaque", "tmatmul=5000"]
    assert main([*command, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)["placeholders"]
    plain = run(path, "a2a3", timing_only=True).cycles
    assert found["cycles_without_them"] == plain
    assert {each["op"]: each["cycles_each"] for each in found["operations"]} == {"tmatmul": 5000, "tmov": 0}
    assert main(command) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"at least {plain:,} cycles; {sum(each['executions'] for each in found['operations'])} operations" in text
    assert f"are not modelled; --opaque adds {found['cycles_resting_on_them']:,} of" in text
    assert "the total omits the time of tmov" in text


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("tmatmul", "--opaque"),
        ("tmatmul=x", "not a number of cycles"),
        ("tmatmul=-1", "not a number of cycles"),
        ("tmatmull=4", "is not in the program"),
        ("tadd=4", "pto.tadd is modelled"),
    ],
)
def test_bad_placeholders(typed: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = saved(tmp_path, program(PRODUCT + BODIES["all"]))
    assert main(["run", str(path), "--target", "a5", "--timing-only", "--opaque", typed]) in (1, 2)
    error = capsys.readouterr().err
    assert message in error
    if "=4" in typed:
        assert "--opaque tmatmul=CYCLES" in error


def test_what_is_known_but_not_modelled_may_be_taken_for_a_placeholder(tmp_path: Path):
    body = f"pto.tsubc ins(%t, %t : {VEC}, {VEC}) outs(%r : {VEC})\n{STORED}" + move("z", "%t", load=False)
    path = saved(tmp_path, program(body))
    with pytest.raises(IllegalError, match=r"pto\.tsubc is not modelled") as caught:
        run(path, "a5", timing_only=True)
    assert caught.value.span is not None
    assert any("--opaque tsubc=CYCLES" in legal for legal in caught.value.legal)
    found = run(path, "a5", inputs={"x": "random:1"}, opaque={"tsubc": 100})
    assert [*found.partial] == ["y"]
    assert [*found.outputs] == ["z"]


# ----------------------------------------------------------------------------------------------- what decides paths


def test_an_element_that_is_not_computed_is_not_read(tmp_path: Path):
    body = (
        f"%n = pto.tgetval ins(%u, %c3 : {VEC}, index) outs : f32\npto.store_scalar %n, %y[%c0] : !pto.ptr<f32>, f32\n"
    )
    path = saved(tmp_path, program(body))
    with pytest.raises(IllegalError, match=r"is unknown: it depends on pto\.tmov") as caught:
        run(path, "a2a3", inputs={"x": "random:1"})
    assert caught.value.span is not None
    assert caught.value.span.text.startswith("%n = pto.tgetval")
    assert run(path, "a2a3", timing_only=True).cycles
    from_memory = move("y", "%u", load=False) + "%n = pto.load_scalar %y[%c3] : !pto.ptr<f32> -> f32\n"
    with pytest.raises(IllegalError, match="element 3 of %y is unknown"):
        run(saved(tmp_path, program(from_memory)), "a5", inputs={"x": "random:1"})


QUEUE = f"""%b = pto.reserve_buffer {{name = "q", size = 8192, location = #pto.address_space<vec>, auto = true}} -> i32
pto.aiv_initialize_pipe {{dir_mask = 1, slot_size = 8192}} (c2v_consumer_buf = %b : i32)
%q = pto.tpop_from_aic {{split = 1}} -> {VEC}
pto.tadd ins(%t, %q : {VEC}, {VEC}) outs(%r : {VEC})
pto.tpush_to_aic(%r : {VEC}) {{
  split = 1
}}
pto.tfree_from_aic {{split = 1}}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_queues_between_cores(target: str, tmp_path: Path):
    path = saved(tmp_path, program(QUEUE + STORED + move("z", "%t", load=False)))
    found = run(path, target, inputs={"x": "random:1"})
    assert [*found.partial] == ["y"]
    assert not found.partial["y"].computed.any()
    assert [*found.outputs] == ["z"]
    assert run(path, target, timing_only=True, opaque={"tpop_from_aic": 90000}).cycles > 90000


@pytest.mark.parametrize("target", TARGETS)
def test_what_goes_to_another_core_waits_for_what_makes_it(target: str, tmp_path: Path):
    path = saved(tmp_path, program(QUEUE + STORED))
    operations = run(path, target, timing_only=True).timing.operations
    (push,) = (each for each in operations if each.name == "tpush_to_aic")
    made = max(each.end for each in operations if "add" in each.name)
    assert push.end >= made > 0


@pytest.mark.parametrize("broken", ["\n  (", " (\n    "])
def test_operands_of_a_queue_may_stand_on_the_next_line(broken: str):
    """As printers of the vendor's compiler write them."""
    there = QUEUE.replace(" (c2v", f"{broken}c2v")
    assert there != QUEUE
    assert parse(program(there)).functions[0].body == parse(program(QUEUE)).functions[0].body


def test_operations_between_cores_are_printed_as_they_are_read():
    read = parse(program(QUEUE))
    assert parse(print_program(read)) == read


def test_a_path_that_rests_on_another_core(tmp_path: Path):
    head = "%n = arith.index_cast %b : i32 to index\nscf.for %k = %c0 to %n step %c1 {\n"
    body = QUEUE + head + two("tadd", second="%t") + "}\n"
    path = saved(tmp_path, program(body + move("y", "%t", load=False)))
    told = "%b of reserve_buffer is unknown, but decides the path"
    with pytest.raises(IllegalError, match=told) as caught:
        run(path, "a2a3", inputs={"x": "random:1"})
    assert caught.value.span is not None
    timed = run(path, "a2a3", timing_only=True)
    assert any("%b of reserve_buffer" in warning and "taken as 0" in warning for warning in timed.warnings)


def test_results_of_operations_between_cores_need_types():
    with pytest.raises(ReadError, match="the types of its results are missing"):
        parse(program("%b = pto.reserve_buffer {size = 4}\n"))
    with pytest.raises(ReadError, match="nothing"):
        parse(program("pto.tpush_to_aic(%nothing)\n"))


# ------------------------------------------------- random kernels with loops in which vector and matrix work take turns


MAT = "!pto.tile_buf<mat, 16x64xf32, blayout=col_major, slayout=row_major>"
UNKNOWN = f"pto.tmov ins(%a : {ACC}) outs(%{{}} : {VEC})\n"
LINES = {
    "product": lambda pick: f"pto.tmatmul ins(%a, %a : {ACC}, {ACC}) outs(%a : {ACC})\n",
    "unknown": lambda pick: UNKNOWN.format(pick("utr")),
    "sum": lambda pick: two(pick(["tadd", "tmax"]), f"%{pick('utr')}", f"%{pick('utr')}", f"%{pick('utr')}"),
    "store": lambda pick: move(pick("yz"), f"%{pick('utr')}", load=False),
    "load": lambda pick: move(pick("xyz"), f"%{pick('utr')}", load=True),
    "away": lambda pick: f"pto.tmov ins(%{pick('utr')} : {VEC}) outs(%m : {MAT})\n",
    "matrix load": lambda pick: f"pto.tload ins(%px : !pto.partition_tensor_view<16x64xf32>) outs(%m : {MAT})\n",
}


def lines(source: random.Random, depth: int = 0) -> str:
    """A few random statements, some of them loops."""
    found = ""
    for _ in range(source.randint(2, 5)):
        kind = source.choice([*LINES, *(["loop"] if depth < 2 else [])])
        if kind == "loop":
            head = f"scf.for %k{source.getrandbits(40)} = %c0 to %c{source.choice([0, 1, 2, 3, 8])} step %c1"
            found += f"{head} {{\n{lines(source, depth + 1)}}}\n"
        else:
            found += LINES[kind](source.choice)
    return found


def kernel(seed: int) -> str:
    """A kernel whose tiles all have been loaded before."""
    loaded = move("x", "%u", load=True) + move("x", "%r", load=True)
    return program(f"%m = pto.alloc_tile : {MAT}\n" + loaded + lines(random.Random(seed)), unknown=KNOWN)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("seed", range(12))
def test_engines_agree_and_inserted_flags_suffice(seed: int, target: str, tmp_path: Path):
    text, path = kernel(seed), tmp_path / "k.pto"
    path.write_text(text)
    cycles = {name: 77 * (seed % 4) for name in ("tmatmul", "tmov") if f"pto.{name}" in text}
    for sync in ("insert", "barriers", "interlock"):
        fast, event = (
            run(path, target, timing_only=True, opaque=cycles, sync=sync, engine=engine) for engine in ("fast", "event")
        )
        assert fast.cycles == event.cycles
        assert {name: pipe.causes for name, pipe in fast.pipes.items()} == {
            name: pipe.causes for name, pipe in event.pipes.items()
        }


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("seed", range(12, 36))
def test_what_is_computed_does_not_rest_on_the_unknown(seed: int, target: str, tmp_path: Path):
    """The same kernel with loads in place of what gives the unknown, twice with other contents."""
    text, path, plain = kernel(seed), tmp_path / "k.pto", tmp_path / "plain.pto"
    path.write_text(text)
    for tile in "utr":
        text = text.replace(UNKNOWN.format(tile), move("w", f"%{tile}", load=True))
    plain.write_text(text)
    random_numbers = np.random.default_rng(seed)
    inputs = {name: random_numbers.integers(-9, 9, (16, 64)).astype(np.float32) for name in "xwyz"}
    needed = {name: array for name, array in inputs.items() if f"tload ins(%p{name} " in path.read_text()}
    found = run(path, target, inputs=needed)
    others = []
    for w in (inputs["w"], inputs["w"] + 100):
        others.append(run(plain, target, inputs={**inputs, "w": w}).outputs)
    for name, first in others[0].items():
        partial = found.partial.get(name)
        computed = np.ones(first.shape, bool) if partial is None else partial.computed
        values = found.outputs[name] if partial is None else partial.values
        np.testing.assert_array_equal(values[computed], first[computed])
        assert not (others[0][name] != others[1][name])[computed].any()
