"""Casts between element types: one vector function that loads, converts once or twice, and stores.

castsim run programs/tilelang/casts.py:f32_to_e4m3 --in x=random:1 --arg n=128
"""

import tilelang
from tilelang.ascend import language as T
from tilelang.ascend.language import simd as S


@tilelang.jit
def cast(n, path, load, store, lanes):
    """Convert n elements along a path of element types, so many of them in each register."""
    src, dst = T.dtype(path[0]), T.dtype(path[-1])

    @T.prim_func
    def kernel(x: T.Tensor[(n,), src], y: T.Tensor[(n,), dst]):
        with T.Kernel(1) as _:
            x_ub = T.alloc_shared((n,), src)
            y_ub = T.alloc_shared((n,), dst)
            T.copy(x, x_ub)
            with T.SimdVF():
                for i in T.serial(n // lanes):
                    value = S.vld(x_ub[i * lanes], dist=load)
                    for element in path[1:]:
                        value = S.vcvt(value, element)
                    S.vsts(y_ub[i * lanes], value, dist=store)
            T.copy(y_ub, y)

    return kernel


def f32_to_e4m3(n):
    """64 elements a register, of whose results every fourth byte is stored."""
    return cast.get_tir(n, ("float32", "float8_e4m3fn"), "NORM", "PK4_B32", 64)


def bf16_to_e4m3(n):
    """By way of f32: the unit has this conversion only of f32."""
    return cast.get_tir(n, ("bfloat16", "float32", "float8_e4m3fn"), "UNPK_B16", "PK4_B32", 64)


def e2m1_to_bf16(n):
    """Two elements a byte."""
    return cast.get_tir(n, ("float4_e2m1fn", "bfloat16"), "UNPK4_B8", "NORM_B16", 128)
