"""The test oracle: exact, slow, and independent of everything it judges (it imports nothing from the product).

`decode` and `cast` treat one code with rational arithmetic, `cast_array` whole arrays of up to 16-bit codes in
seconds; `oracle_a2a3` adds one chip's rules.
"""

from oracle_array import cast_array, is_nan, storage
from oracle_formats import FLOATS, INTS, Float, Int, Value, codebook, codes, decode, fmt
from oracle_scalar import HIF8_MODES, MODES, OVERFLOWS, Policy, Refused, cast, check, defaults, round_to_integral
from oracle_tosa import apply_scale

__all__ = [
    "FLOATS", "HIF8_MODES", "INTS", "MODES", "OVERFLOWS", "Float", "Int", "Policy", "Refused", "Value",
    "apply_scale", "cast", "cast_array", "check", "codebook", "codes", "decode", "defaults", "fmt", "is_nan",
    "round_to_integral", "storage",
]  # fmt: skip
