"""Values: exact casts between all formats, on integers."""

from simulator.numerics.cast import (
    Scale,
    cast_codes,
    code_dtype,
    round_to_integral_codes,
    scale_of,
    scaled_cast_codes,
)
from simulator.numerics.policy import (
    E8M0Rule,
    InfinityWrap,
    NanToFloat,
    NanToInteger,
    Policy,
    abstract_policy,
    legal_overflows,
    legal_roundings,
)

__all__ = [
    "E8M0Rule",
    "InfinityWrap",
    "NanToFloat",
    "NanToInteger",
    "Policy",
    "Scale",
    "abstract_policy",
    "cast_codes",
    "code_dtype",
    "legal_overflows",
    "legal_roundings",
    "round_to_integral_codes",
    "scale_of",
    "scaled_cast_codes",
]
