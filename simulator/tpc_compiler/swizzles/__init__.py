"""Lane moves that element-wise work does not need: found by following every byte, removed, proven to change nothing."""

from castsim.tpc_compiler.swizzles.elimination import BlockResult, Elimination, eliminate

__all__ = ["BlockResult", "Elimination", "eliminate"]
