"""Quantises every token by its largest magnitude: e4m3 with a scale of f32 for each 64 channels.

castsim run programs/tilelang/quantise.py:per_token --in x=random:1 --arg num_tokens=32
"""

import tilelang
from tilelang.ascend import language as T
from tilelang.ascend.language import simd as S

GROUP = 64
MOST = 448.0


@tilelang.jit
def quantise(hidden, cores, element, rows, precision):
    """Return the kernel: rows of a tile, tiles dealt out to the cores."""
    tokens = T.dynamic("num_tokens")
    wide = T.dtype(element)
    load = "NORM" if element == "float32" else "UNPK_B16"

    @T.macro
    def loaded(buffer, row, column):
        value = S.vld(buffer[row, column], dist=load)
        return value if element == "float32" else S.vcvt(value, "float32")

    @T.prim_func
    def kernel(
        x: T.Tensor[(tokens, hidden), wide],
        y: T.Tensor[(tokens, hidden), T.float8_e4m3fn],
        scale: T.Tensor[(tokens, hidden // GROUP), T.float32],
    ):
        with T.Kernel(cores) as core:
            x_ub = T.alloc_shared((rows, hidden), wide)
            y_ub = T.alloc_shared((rows, hidden), T.float8_e4m3fn)
            scale_ub = T.alloc_shared((rows, hidden // GROUP), T.float32)
            for tile in T.Persistent([T.ceildiv(tokens, rows)], cores, core, num_stages=2):
                T.copy(x[tile * rows, 0], x_ub)
                with T.SimdVF():
                    for row in T.serial(rows):
                        for group in T.serial(hidden // GROUP):
                            value = loaded(x_ub, row, group * GROUP)
                            most = S.vmaxs(S.vdupv(S.vcmax(S.vabs(value))), 1e-4)
                            factor = S.vdiv(most, S.vdup(MOST, T.float32), precision=precision)
                            S.vsts(scale_ub[row, group], factor, dist="ONEPT_B32")
                            quotient = S.vdiv(value, factor, precision=precision)
                            S.vsts(y_ub[row, group * GROUP], S.vcvt(quotient, T.float8_e4m3fn), dist="PK4_B32")
                T.copy(y_ub, y[tile * rows, 0])
                T.copy(scale_ub, scale[tile * rows, 0])

    return kernel


def per_token(hidden=512, cores=1, element="float32", rows=8, precision=None):
    """Return the kernel for some settings."""
    return quantise.get_tir(hidden, cores, element, rows, precision)
