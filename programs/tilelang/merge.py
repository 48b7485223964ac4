"""What no single instruction does: lanes that are kept, arrays of registers, a loop that ends by a value."""

import tilelang
from tilelang.ascend import language as T
from tilelang.ascend.language import simd as S


@tilelang.jit
def clamped(rows, halvings):
    """Lanes above a row's limit become the limit, doubled in steps; the others stay."""

    @T.prim_func
    def kernel(
        x: T.Tensor[(rows, 256), T.float32], limit: T.Tensor[(8,), T.float32], y: T.Tensor[(rows, 256), T.float32]
    ):
        with T.Kernel(1) as _:
            x_ub = T.alloc_shared((rows, 256), T.float32)
            y_ub = T.alloc_shared((rows, 256), T.float32)
            limit_ub = T.alloc_shared((8,), T.float32)
            T.copy(x, x_ub)
            T.copy(limit, limit_ub)
            with T.SimdVF():
                top = S.vld(limit_ub[0], dist="BRC_B32")
                kept = S.alloc_local((4,), T.float32)
                for row in T.serial(rows):
                    for part in T.unroll(4):
                        kept[part] = S.vld(x_ub[row, part * 64])
                    for part in T.unroll(4):
                        above = S.vcmp(kept[part], top, op="gt")
                        kept[part] = S.vadd(top, top, above, mode="MODE_MERGING")
                    step = T.alloc_var(T.int32, init=1)
                    while step < halvings:
                        for part in T.unroll(4):
                            kept[part] = S.vmuls(kept[part], 0.5)
                        step = step * 2
                    for part in T.unroll(4):
                        S.vsts(y_ub[row, part * 64], kept[part])
            T.copy(y_ub, y)

    return kernel


def clamp_rows(rows=4, halvings=4):
    """Return the kernel."""
    return clamped.get_tir(rows, halvings)
