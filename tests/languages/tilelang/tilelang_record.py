"""Runs the kernels of `tile-kernels` 2.1.0 that the record names, and writes docs/measured/tilelang.json.

The package's own host code calls its kernels with tensors of the CPU, and its own references in PyTorch, or a statement
of PyTorch given here, say what comes out. Nothing of the package is in this repository.

    .venv/bin/python tests tilelang_record
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from kit.paths import ROOT

from castsim import tilelang
from castsim.isa.errors import CastsimError, EngineError

RECORD = ROOT / "docs" / "measured" / "tilelang.json"
PACKAGES = {"tilelang": "0.1.15", "tile-kernels": "2.1.0"}

Outcome = list[tuple[str, Any, Any, float]]
"""Outputs of a case: name, what the kernel gave, what is expected, the relative tolerance (0: the same bits)."""


def corpus() -> Any:
    """Return the package, which asks for a device's file while it is imported, with one vector core pair."""
    real = os.path.exists
    os.path.exists = lambda path: path == "/dev/davinci_manager" or real(path)
    try:
        package = import_module("tile_kernels")
        import_module("tile_kernels.config").is_ascend()
    finally:
        os.path.exists = real
    package.config._num_sms = 1
    return package


def _random(*shape: int, seed: int = 0, scale: float = 1.0, dtype: str = "bfloat16") -> Any:
    found = torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale
    return found.to(getattr(torch, dtype))


def _reference(module: str, name: str) -> Any:
    """Return a function of the package's own references."""
    return getattr(import_module(f"tile_kernels.torch.{module}"), name)


def engram_fused_weight(tk: Any) -> Outcome:
    a, b = _random(4, 1024), _random(4, 1024, seed=1)
    return [("weight_fused", tk.engram.fused_weight(a, b), a.float() * b.float(), 0)]


def engram_gate_fwd(tk: Any) -> Outcome:
    x, kv, wh, we = _random(20, 4, 512), _random(20, 5, 512, seed=1), _random(4, 512, seed=2), _random(4, 512, seed=3)
    fused = wh.float() * we.float()
    found = import_module("tile_kernels.engram.engram_gate_fwd_kernel").engram_gate_fwd(x, kv, fused, 1e-6, 1e-6)
    wanted = _reference("engram", "engram_gate_ref")(x, kv, wh, we, 1e-6, 1e-6, save_for_backward=True)
    names = ("output", "dot", "gate_score", "rstd_x", "rstd_k")
    return [
        (name, got, want, 1e-2 if name == "output" else 1e-4)
        for name, got, want in zip(names, found, wanted, strict=True)
    ]


def engram_hash(tk: Any) -> Outcome:
    ids = torch.randint(0, 1000, (16, 3), dtype=torch.int32)
    sizes = torch.full((2, 2, 4), 97, dtype=torch.int32)
    offsets = _reference("engram", "make_offsets")(sizes)
    factors = torch.randint(1, 1 << 20, (2, 3), dtype=torch.int64)
    module = import_module("tile_kernels.engram.engram_hash_kernel")
    return [("output", module.engram_hash(ids, factors, sizes, offsets),
             _reference("engram", "engram_hash_ref")(ids, factors, sizes, offsets), 0)]  # fmt: skip


def mhc_expand_fwd(tk: Any) -> Outcome:
    x = _random(9, 1280)
    o = torch.empty(9, 4, 1280, dtype=torch.bfloat16)
    import_module("tile_kernels.mhc.expand_kernel").expand_to_mhc_fwd(x, o)
    return [("o", o, _reference("mhc", "expand_to_mhc_ref")(x, 4), 0)]


def mhc_expand_bwd(tk: Any) -> Outcome:
    o = _random(9, 4, 1280)
    x = torch.empty(9, 1280, dtype=torch.bfloat16)
    import_module("tile_kernels.mhc.expand_kernel").expand_to_mhc_bwd(o, x)
    return [("x_grad", x, o.float().sum(1).bfloat16(), 1e-2)]


def mhc_multilayer_recompute(tk: Any) -> Outcome:
    """Three layers, the last without an output; the kernel finds its tensors in tables of pointers."""
    n, mhc, hidden = 6, 4, 256
    first, pre = _random(n, mhc, hidden), [torch.rand(n, mhc) for _ in range(3)]
    out = [_random(n, hidden, seed=seed) for seed in (1, 2)]
    post, comb = [torch.rand(n, mhc) for _ in out], [torch.rand(n, mhc, mhc) for _ in out]
    layer, kept = (torch.empty(count, n, *size, hidden, dtype=first.dtype) for count, size in ((3, ()), (2, (mhc,))))
    module = import_module("tile_kernels.mhc.multilayer_recompute_kernel")
    module.mhc_multilayer_recompute(first, pre, out, post, comb, list(layer), list(kept))
    rows, residual = [], first
    for number, weights in enumerate(pre):
        rows.append((f"layer_input {number}", layer[number], (residual.float() * weights[..., None]).sum(1), 1e-2))
        if number < len(out):
            residual = _reference("mhc", "mhc_post_ref")(
                out[number][None], residual[None], post[number][None, ..., None], comb[number][None]
            )[0]
            rows.append((f"residual {number}", kept[number], residual, 2e-2))
    return [(name, got, want.to(got.dtype), tolerance) for name, got, want, tolerance in rows]


def mhc_post_fwd(tk: Any) -> Outcome:
    x, residual = _random(1, 10, 1280), _random(1, 10, 4, 1280, seed=1)
    post, comb = torch.rand(1, 10, 4, 1), torch.rand(1, 10, 4, 4)
    found = import_module("tile_kernels.mhc.post_kernel").mhc_post_fwd(x, residual, post, comb)
    return [("out", found, _reference("mhc", "mhc_post_ref")(x, residual, post, comb), 1e-2)]


def mhc_post_bwd(tk: Any) -> Outcome:
    x, residual, grad = _random(1, 6, 640), _random(1, 6, 4, 640, seed=1), _random(1, 6, 4, 640, seed=2)
    post, comb = torch.rand(1, 6, 4, 1), torch.rand(1, 6, 4, 4)
    module = import_module("tile_kernels.mhc.post_kernel")
    found = module.mhc_post_bwd(x, residual, post, comb, grad)
    own = [each.detach().float().requires_grad_() for each in (x, residual, post, comb)]
    out = own[0].unsqueeze(-2) * own[2] + torch.einsum("abmn,abmc->abnc", own[3], own[1])
    wanted = dict(zip(("x", "residual", "post", "comb"), torch.autograd.grad(out, own, grad.float()), strict=True))
    by_size = {each.numel(): name for name, each in wanted.items()}
    return [
        (by_size[each.numel()], each.reshape(-1).float(), wanted[by_size[each.numel()]].reshape(-1), 2e-2)
        for each in found
    ]


def mhc_pre_big_fuse(tk: Any) -> Outcome:
    n, hidden = 8, 512
    mul, squares = torch.randn(1, n, 24), torch.rand(1, n) * hidden
    scale, base, residual = torch.rand(3), torch.randn(24), _random(n, 4, hidden)
    post, comb, layer = torch.empty(n, 4), torch.empty(n, 16), torch.empty(n, hidden, dtype=torch.bfloat16)
    import_module("tile_kernels.mhc.pre_big_fuse_kernel").mhc_pre_big_fuse_fwd(
        mul, squares, scale, base, residual, post, comb, layer, 1e-6, 1e-6, 1e-6, 2.0, 3, n_splits=1
    )
    mixes = (mul[0] * torch.rsqrt(squares[0][:, None] / (4 * hidden) + 1e-6))[None]
    pre, own_post, own_comb = _reference("mhc", "mhc_pre_split_mixes_ref")(mixes, scale, base, 4, 2.0, 1e-6)
    own_comb = _reference("mhc", "sinkhorn_normalize_ref")(own_comb, 3, 1e-6)
    own_layer = _reference("mhc", "mhc_pre_apply_mix_ref")(residual[None].float(), pre)
    return [("post_mix", post, own_post.reshape(n, 4), 1e-4), ("comb_mix", comb, own_comb.reshape(n, 16), 1e-4),
            ("layer_input", layer, own_layer[0], 1e-2)]  # fmt: skip


def mhc_sinkhorn_fwd(tk: Any) -> Outcome:
    x = torch.randn(10, 4, 4)
    out = torch.empty(10, 4, 4)
    import_module("tile_kernels.mhc.sinkhorn_kernel").mhc_sinkhorn_fwd(x, out, 10, 1e-6)
    return [("out", out, _reference("mhc", "sinkhorn_normalize_ref")(x, 10, 1e-6), 1e-4)]


def mhc_sinkhorn_bwd(tk: Any) -> Outcome:
    x, grad = torch.randn(16, 4, 4), torch.randn(16, 4, 4)
    found = torch.empty(16, 4, 4)
    import_module("tile_kernels.mhc.sinkhorn_kernel").mhc_sinkhorn_bwd(grad, x, found, 4, 1e-6)
    own = x.double().requires_grad_()
    (wanted,) = torch.autograd.grad(_reference("mhc", "sinkhorn_normalize_ref")(own, 4, 1e-6), own, grad.double())
    return [("grad_input", found, wanted.float(), 1e-3)]


def moe_topk_gate_forward(tk: Any) -> Outcome:
    logits = torch.randn(12, 64)
    arguments = (logits, 6, False, 0, 1.0, 0, "sqrtsoftplus")
    found = import_module("tile_kernels.moe.moe_topk_gate_forward_kernel").moe_topk_gate_forward(*arguments)
    wanted = _reference("topk", "moe_topk_gate_forward")(*arguments)
    return [("topk_idx", found[0], wanted[0], 0), ("topk_weights", found[1], wanted[1], 1e-4)]


def moe_topk_gate(tk: Any) -> Outcome:
    scores = torch.rand(12, 72)
    found = import_module("tile_kernels.moe.topk_gate_kernel").topk_gate(scores, 6)
    return [("topk_idx", found, _reference("topk", "stable_topk")(scores, 6), 0)]


def quant_cast(tk: Any) -> Outcome:
    """Stochastic rounding: a result is one of the two neighbours of the exact value, and often either."""
    x = _random(70000, dtype="float32")
    found = import_module("tile_kernels.quant.cast_kernel").cast(x, torch.bfloat16, stochastic_rounding=True)
    low = (x.view(torch.int32) & -65536).view(torch.float32)
    high = ((x.view(torch.int32) & -65536) + 65536).view(torch.float32)
    up = found.float() == high
    inside = (up | (found.float() == low)).float()
    part = (x.view(torch.int32) & 65535).float() / 65536
    return [("one of two neighbours", inside, torch.ones_like(inside), 0),
            ("share that goes up", up.float().mean()[None], part.mean()[None], 1e-2)]  # fmt: skip


def quant_norm_backward(tk: Any) -> Outcome:
    x, grad, weight = _random(10, 512), _random(10, 512, seed=1), _random(512, seed=2)
    rstd = x.float().square().mean(-1).rsqrt()
    found = import_module("tile_kernels.quant.norm_backward_kernel").norm_backward(grad, x, weight, rstd)
    wanted = _reference("norm", "norm_backward_ref")(grad, x, weight, rstd)
    return [("x_grad", found[0], wanted[0], 1e-2), ("weight_grad", found[1], wanted[1], 2**-8)]


def _quantised(found: Any, wanted: Any) -> Outcome:
    return [("out", found[0].view(torch.uint8), wanted[0].view(torch.uint8), 0), ("sf", found[1], wanted[1], 0)]


def quant_per_block_cast(tk: Any) -> Outcome:
    x = _random(128, 512)
    module = import_module("tile_kernels.quant.per_block_cast_kernel")
    return _quantised(module.per_block_cast(x, "e4m3", (32, 32)), _reference("cast", "cast")(x, "e4m3", (32, 32)))


def quant_per_channel_cast(tk: Any) -> Outcome:
    x = _random(128, 512)
    module = import_module("tile_kernels.quant.per_channel_cast_kernel")
    return _quantised(module.per_channel_cast(x, "e4m3", 32), _reference("cast", "cast")(x, "e4m3", (32, 1)))


def _per_token(fmt: str, dtype: str, tokens: int, **words: bool) -> Callable[[Any], Outcome]:
    def case(tk: Any) -> Outcome:
        x = _random(tokens, 768, scale=3.0, dtype=dtype)
        module = import_module("tile_kernels.quant.per_token_cast_kernel")
        return _quantised(
            module.per_token_cast(x, fmt, 32, **words), _reference("cast", "cast")(x, fmt, (1, 32), **words)
        )

    return case


def quant_swiglu_forward(tk: Any) -> Outcome:
    x = _random(20, 1024)
    module = import_module("tile_kernels.quant.swiglu_forward_kernel")
    return [("out", module.swiglu_forward(x, "bf16"), _reference("swiglu", "swiglu_forward")(x).bfloat16(), 1e-2)]


def _rope(positions: bool, interleaved: bool) -> Callable[[Any], Outcome]:
    def case(tk: Any) -> Outcome:
        x, table = _random(12, 8, 64), torch.randn(40, 64)
        places = torch.randint(0, 40, (12,), dtype=torch.int32) if positions else None
        wanted = _reference("rope", "rotary_embedding_ref")(
            x, table[:, :32], table[:, 32:], places, interleaved=interleaved
        )
        import_module("tile_kernels.transform.rope_kernel").apply_rotary(
            x, table, positions=places, interleaved=interleaved
        )
        return [("x", x, wanted, 1e-2)]

    return case


CASES: dict[str, tuple[str, Callable[[Any], Outcome]]] = {
    "engram_fused_weight": ("engram/engram_fused_weight_asc.py", engram_fused_weight),
    "engram_gate_fwd": ("engram/engram_gate_fwd_asc.py", engram_gate_fwd),
    "engram_hash": ("engram/engram_hash_asc.py", engram_hash),
    "mhc_expand_fwd": ("mhc/expand_asc.py", mhc_expand_fwd),
    "mhc_expand_bwd": ("mhc/expand_asc.py", mhc_expand_bwd),
    "mhc_multilayer_recompute": ("mhc/multilayer_recompute_asc.py", mhc_multilayer_recompute),
    "mhc_post_fwd": ("mhc/post_asc.py", mhc_post_fwd),
    "mhc_post_bwd": ("mhc/post_asc.py", mhc_post_bwd),
    "mhc_pre_big_fuse": ("mhc/pre_big_fuse_asc.py", mhc_pre_big_fuse),
    "mhc_sinkhorn_fwd": ("mhc/sinkhorn_asc.py", mhc_sinkhorn_fwd),
    "mhc_sinkhorn_bwd": ("mhc/sinkhorn_asc.py", mhc_sinkhorn_bwd),
    "moe_topk_gate_forward": ("moe/moe_topk_gate_forward_asc.py", moe_topk_gate_forward),
    "moe_topk_gate": ("moe/topk_gate_asc.py", moe_topk_gate),
    "quant_cast": ("quant/cast_asc.py", quant_cast),
    "quant_norm_backward": ("quant/norm_backward_asc.py", quant_norm_backward),
    "quant_per_block_cast": ("quant/per_block_cast_asc.py", quant_per_block_cast),
    "quant_per_channel_cast": ("quant/per_channel_cast_asc.py", quant_per_channel_cast),
    "quant_per_token_cast": ("quant/per_token_cast_asc.py", _per_token("e4m3", "bfloat16", 33)),
    "quant_per_token_cast_f32": ("quant/per_token_cast_asc.py", _per_token("e4m3", "float32", 31)),
    "quant_per_token_cast_rounded": ("quant/per_token_cast_asc.py", _per_token("e4m3", "bfloat16", 32, round_sf=True)),
    "quant_per_token_cast_packed": (
        "quant/per_token_cast_asc.py", _per_token("e4m3", "bfloat16", 33, round_sf=True, use_packed_ue8m0=True)),
    "quant_per_token_cast_fp4": ("quant/per_token_cast_asc.py", _per_token("e2m1", "bfloat16", 1)),
    "quant_swiglu_forward": ("quant/swiglu_forward_asc.py", quant_swiglu_forward),
    "rope": ("transform/rope_asc.py", _rope(positions=False, interleaved=False)),
    "rope_positions": ("transform/rope_asc.py", _rope(positions=True, interleaved=True)),
}  # fmt: skip


def compared(outcome: Outcome) -> dict[str, str]:
    """Return how near each output is to what is expected: `equal`, the largest relative error, or `differs`."""
    found = {}
    for name, got, want, tolerance in outcome:
        assert got.shape == want.shape, f"{name}: {tuple(got.shape)} and {tuple(want.shape)}"
        if torch.equal(got, want):
            found[name] = "equal"
        else:
            a, b = got.double(), want.double()
            error = float(((a - b).abs() / (b.abs() + 1e-2 * b.abs().mean() + 1e-30)).max())
            found[name] = f"within {tolerance:g}" if 0 < error <= tolerance else f"differs by {error:.3g}"
    return found


def measured(name: str, schedule: bool = True) -> dict[str, Any]:
    """Run a case: what is said of it in the record, for one order of its statements."""
    file, case = CASES[name]
    torch.manual_seed(0)
    package = corpus()
    try:
        with tilelang.simulated(schedule=schedule) as log:
            outcome = case(package)
    except (CastsimError, EngineError) as error:
        message = str(error).splitlines()[0].replace(str(Path(package.__file__).parent) + os.sep, "")
        return {"file": file, "refused": message}
    rows = [row for each in log for row in each.functions if row.latency and row.launches]
    return {
        "file": file, "cycles": [None if each.untimed else each.cycles for each in log], "outputs": compared(outcome),
        "functions": [
            {"line": int(row.place.rpartition(":")[2]), "latency": row.latency,
             "cycles": round(row.cycles / row.launches)} for row in rows
        ],
    }  # fmt: skip


def rows(names: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run cases, each as scheduled and in the order of its source."""
    for name in names:
        start = time.time()
        found: dict[str, Any] = {}
        for order in ("scheduled", "in order"):
            try:
                found[order] = measured(name, order == "scheduled")
            except Exception as error:
                traceback.print_exc(limit=-6)
                found[order] = {"file": CASES[name][0], "fails": f"{type(error).__name__}: {error}"}
        print(f"{name}: {time.time() - start:.1f} s {found}", flush=True)
        file = found["scheduled"].pop("file")
        found["in order"].pop("file")
        yield name, {"file": file, **found}


def main(names: list[str]) -> None:
    """Run the named cases, or all, which the record then holds."""
    record = dict(rows(names or list(CASES)))
    if not names:
        RECORD.write_text(json.dumps({"packages": PACKAGES, "cases": record}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
