"""Small tile programs, one for each kind of change of `castsim advise`, and the sample programs with their arguments.

The texts are made here, so that each holds the one thing that can be done better.
"""

# A sample and its arguments stay on one line.
# ruff: noqa: E501

from __future__ import annotations


def _sample(row: str) -> tuple[str, dict[str, int | float]]:
    name, *given = row.split()
    pairs = (word.split("=") for word in given)
    return name, {key: float(value) if {*value} & {*".e"} else int(value) for key, value in pairs}


SAMPLES = dict(map(_sample, """\
f32_to_i8_own_barriers.pto
a5_f32_to_e4m3fn_padded.pto
a5_f32_to_i8_by_steps.pto
bank_conflict.pto
f32_to_i32_barriers.pto
tpc_i8_f32_mediator_gaudi.tpc
f32_to_bf16_rows.pto
kernels/rms_norm_a2a3.pto eps=1e-06
kernels/rms_norm_a5.pto eps=1e-06
kernels/quantise_rows_i8_a2a3.pto
kernels/quantise_rows_i8_a5.pto
kernels/quantise_rows_fp8_a5.pto
kernels/rotary_cache_a2a3.pto position=40
kernels/rotary_cache_a5.pto position=40
kernels/softmax_prepare_a2a3.pto scale=0.125
kernels/softmax_prepare_a5.pto scale=0.125
kernels/serving/norm_quantise_a5.pto rows=20 eps=1e-06 top=448.0
kernels/serving/cache_write_i8_a2a3.pto tokens=11 capacity=16 least=0.001 slots[1]=3 slots[2]=-1 slots[9]=15
kernels/serving/combine_experts_a5.pto tokens=2 assignments=5 chosen=2 alpha=0.5 route[1]=4 route[3]=-1
kernels/serving/expert_dispatch_a2a3.pto tokens=6 experts=3 total=8 counts[0]=3 counts[2]=5 starts[1]=3 starts[2]=3 index[1]=5 weights[1]=0.5
kernels/serving/gated_activation_a5.pto rows=20 experts[0]=2 scales[2]=3.5
kernels/serving/masked_softmax_a2a3.pto count=2 blocks=3 keys=300 scale=0.125 lens[0]=200 slots[0]=2
kernels/serving/online_softmax_a5.pto batch=2 pages=5 columns=3 scale=0.125 lens[0]=300 table[0]=4
kernels/serving/rotary_gather_a2a3.pto tokens=3 heads=8 length=9 positions[0]=5 positions[2]=8
kernels/serving/topk_routing_a5.pto tokens=3 chosen=2 scale=0.5
kernels/serving/transposed_cache_a2a3.pto keys=170 pages=7 width=256 table[0]=3 table[5]=6 scales[3]=0.25
tpc_f32_i16_quantise_gaudi2.tpc
tpc_f32_exp_gaudi2.tpc
tpc_bf16_scale_linear_gaudi.tpc
""".splitlines()))  # fmt: skip
"""Sample programs, and the scalar arguments that each is run with."""

CONSTANTS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)


def kernel(body: str, arguments: str, target: str = "a3") -> str:
    """Return a program of one function; `%c8` is the constant 8 in its body."""
    lines = [
        f'module attributes {{pto.target_arch = "{target}"}} {{',
        f"  func.func @k({arguments}) attributes {{pto.entry}} {{",
    ]
    lines += [f"    %c{number} = arith.constant {number} : index" for number in CONSTANTS]
    lines += [f"    {line}" for line in body.strip().split("\n")]
    return "\n".join([*lines, "    return", "  }", "}", ""])


def pointers(**formats: str) -> str:
    return ", ".join(f"%{name}: !pto.ptr<{fmt}>" for name, fmt in formats.items())


def tile(shape: str, fmt: str, more: str = "") -> str:
    return f"!pto.tile_buf<vec, {shape}x{fmt}{more}>"


def view(name: str, pointer: str, rows: int, cols: int, fmt: str) -> str:
    return (
        f"%{name} = pto.make_tensor_view %{pointer}, shape = [%c{rows}, %c{cols}], strides = [%c{cols}, %c1] : "
        f"!pto.tensor_view<?x?x{fmt}>"
    )


def part(name: str, of: str, start: str, rows: int, cols: int, fmt: str) -> str:
    return (
        f"%{name} = pto.partition_view %{of}, offsets = [%{start}, %c0], sizes = [%c{rows}, %c{cols}] : "
        f"!pto.tensor_view<?x?x{fmt}> -> !pto.partition_tensor_view<{rows}x{cols}x{fmt}>"
    )


def alloc(name: str, kind: str) -> str:
    return f"%{name} = pto.alloc_tile : {kind}"


def load(of: str, to: str, shape: str, fmt: str) -> str:
    return f"pto.tload ins(%{of} : !pto.partition_tensor_view<{shape}x{fmt}>) outs(%{to} : {tile(shape, fmt)})"


def store(of: str, to: str, shape: str, fmt: str) -> str:
    return f"pto.tstore ins(%{of} : {tile(shape, fmt)}) outs(%{to} : !pto.partition_tensor_view<{shape}x{fmt}>)"


def cast(of: str, to: str, one: str, two: str, mode: str = "RINT") -> str:
    return f"pto.tcvt ins(%{of} {{rmode = #pto<round_mode {mode}>}} : {one}) outs(%{to} : {two})"


def binary(name: str, one: str, two: str, to: str, kind: str) -> str:
    return f"pto.{name} ins(%{one}, %{two} : {kind}, {kind}) outs(%{to} : {kind})"


def indented(*lines: str) -> str:
    return "\n".join(f"  {line}" for line in lines)


def row_loop(rows: int = 8, step: int = 8, target: str = "a3", extra: str = "") -> str:
    """Return a loop over 64 x 128 elements that loads, casts and stores `rows` rows every `step` rows."""
    shape = f"{rows}x128"
    body = [
        view("vs", "src", 64, 128, "f32"), view("vd", "dst", 64, 128, "f16"),
        alloc("a", tile(shape, "f32")), alloc("b", tile(shape, "f16")),
        f"scf.for %r = %c0 to %c64 step %c{step} {{",
        indented(
            part("p", "vs", "r", rows, 128, "f32"), part("q", "vd", "r", rows, 128, "f16"),
            load("p", "a", shape, "f32"), *([extra] if extra else []),
            cast("a", "b", tile(shape, "f32"), tile(shape, "f16")), store("b", "q", shape, "f16"),
        ),
        "}",
    ]  # fmt: skip
    return kernel("\n".join(body), pointers(src="f32", dst="f16"), target)


def sums() -> str:
    """Return a loop whose tile `s` carries a sum from trip to trip."""
    kind = tile("8x128", "f32")
    body = [
        view("vs", "src", 64, 128, "f32"), view("vd", "dst", 64, 128, "f32"),
        alloc("a", kind), alloc("s", kind),
        part("z", "vs", "c0", 8, 128, "f32"), load("z", "s", "8x128", "f32"),
        "scf.for %r = %c0 to %c64 step %c8 {",
        indented(
            part("p", "vs", "r", 8, 128, "f32"), part("q", "vd", "r", 8, 128, "f32"),
            load("p", "a", "8x128", "f32"), binary("tadd", "s", "a", "s", kind), store("s", "q", "8x128", "f32"),
        ),
        "}",
    ]  # fmt: skip
    return kernel("\n".join(body), pointers(src="f32", dst="f32"))


def fixed_load(argument: str = "g") -> str:
    """Return a loop that loads the same 8 x 128 elements of an argument in each of its trips."""
    kind = tile("8x128", "f32")
    body = [
        view("vs", "src", 64, 128, "f32"), view("vg", argument, 64, 128, "f32"), view("vd", "dst", 64, 128, "f32"),
        alloc("a", kind), alloc("w", kind),
        "scf.for %r = %c0 to %c64 step %c8 {",
        indented(
            part("p", "vs", "r", 8, 128, "f32"), part("o", "vg", "c0", 8, 128, "f32"),
            part("q", "vd", "r", 8, 128, "f32"), load("p", "a", "8x128", "f32"), load("o", "w", "8x128", "f32"),
            binary("tmul", "a", "w", "a", kind), store("a", "q", "8x128", "f32"),
        ),
        "}",
    ]  # fmt: skip
    return kernel("\n".join(body), pointers(src="f32", g="f32", dst="f32"))


def cast_by_rows(height: int = 8, step: int = 8) -> str:
    """Return a cast of a 64 x 128 tile in parts of `height` rows, one every `step` rows, by a loop."""
    wide, slim = tile("64x128", "f32"), tile("64x128", "f16")
    some = f"{height}x128"
    body = [
        view("vs", "src", 64, 128, "f32"), view("vd", "dst", 64, 128, "f16"), alloc("a", wide), alloc("b", slim),
        part("p", "vs", "c0", 64, 128, "f32"), part("q", "vd", "c0", 64, 128, "f16"), load("p", "a", "64x128", "f32"),
        f"scf.for %r = %c0 to %c64 step %c{step} {{",
        indented(
            f"%x = pto.subview %a[%r, %c0] sizes [{height}, 128] : {wide} -> {tile(some, 'f32')}",
            f"%y = pto.subview %b[%r, %c0] sizes [{height}, 128] : {slim} -> {tile(some, 'f16')}",
            cast("x", "y", tile(some, "f32"), tile(some, "f16")),
        ),
        "}", store("b", "q", "64x128", "f16"),
    ]  # fmt: skip
    return kernel("\n".join(body), pointers(src="f32", dst="f16"))


def chain(first: str, middle: str, last: str, modes: tuple[str, str], target: str = "a3") -> str:
    """Return a cast of 64 x 128 elements in two steps."""
    body = [
        view("vs", "src", 64, 128, first), view("vd", "dst", 64, 128, last),
        *(alloc(name, tile("64x128", fmt)) for name, fmt in (("a", first), ("m", middle), ("b", last))),
        part("p", "vs", "c0", 64, 128, first), part("q", "vd", "c0", 64, 128, last), load("p", "a", "64x128", first),
        cast("a", "m", tile("64x128", first), tile("64x128", middle), modes[0]),
        cast("m", "b", tile("64x128", middle), tile("64x128", last), modes[1]), store("b", "q", "64x128", last),
    ]  # fmt: skip
    return kernel("\n".join(body), pointers(src=first, dst=last), target)


def two_casts() -> str:
    """Return two independent casts, the second load behind all work of the first."""
    wide, slim = tile("32x128", "f32"), tile("32x128", "f16")
    body = [
        *(view(f"v{name}", name, 32, 128, "f32") for name in "ab"),
        *(view(f"v{name}", name, 32, 128, "f16") for name in "cd"),
        *(alloc(f"t{name}", wide) for name in "ab"), *(alloc(f"t{name}", slim) for name in "cd"),
        *(part(f"p{name}", f"v{name}", "c0", 32, 128, "f32") for name in "ab"),
        *(part(f"p{name}", f"v{name}", "c0", 32, 128, "f16") for name in "cd"),
        load("pa", "ta", "32x128", "f32"), cast("ta", "tc", wide, slim),
        f"pto.texp ins(%tc : {slim}) outs(%tc : {slim})",
        load("pb", "tb", "32x128", "f32"), cast("tb", "td", wide, slim), store("td", "pd", "32x128", "f16"),
        store("tc", "pc", "32x128", "f16"),
    ]  # fmt: skip
    return kernel("\n".join(body), pointers(a="f32", b="f32", c="f16", d="f16"))


FLAGGED = ["pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]", "pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]"]
STORED = ["pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]", "pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]"]


def flagged(before_cast: list[str], before_store: list[str]) -> str:
    """Return load, cast and store of 32 x 128 elements with these lines between them."""
    wide, slim = tile("32x128", "f32"), tile("32x128", "f16")
    body = [
        view("vs", "src", 32, 128, "f32"), view("vd", "dst", 32, 128, "f16"), alloc("a", wide), alloc("b", slim),
        part("p", "vs", "c0", 32, 128, "f32"), part("q", "vd", "c0", 32, 128, "f16"), load("p", "a", "32x128", "f32"),
        *before_cast, cast("a", "b", wide, slim), *before_store, store("b", "q", "32x128", "f16"),
        "pto.barrier <PIPE_ALL>",
    ]  # fmt: skip
    return kernel("\n".join(body), pointers(src="f32", dst="f16"))
