"""Values: exact casts between all formats, on integers.

`cast_codes` converts code arrays under a `Policy` and defines all bits; `convert_codes` does the same in the fastest
tier, `cast_array` for users' arrays. Everything that rounds goes through `rounding.increment`.
"""

from castsim.numerics.arrays import (
    FormatLike,
    array_from_codes,
    cast_array,
    codes_from_array,
    codes_of_out,
    finish_out,
    format_name,
    is_codes,
    native_dtype,
    pack_codes,
    unpack_codes,
)
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import (
    ChainStep,
    Scale,
    cast_chain,
    cast_codes,
    e8m0_flags,
    round_to_integral_codes,
    scale_of,
    scaled_cast_codes,
)
from castsim.numerics.codec import (
    Encoded,
    codes_from_strings,
    decode_to_float64,
    encode_value,
    parse_number,
    strings_from_codes,
    value_of,
)
from castsim.numerics.policy import (
    E8M0Rule,
    InfinityWrap,
    NanToFloat,
    NanToInteger,
    Policy,
    abstract_policy,
    check_policy,
    legal_overflows,
    legal_roundings,
)
from castsim.numerics.tiers import Tier, convert_codes

__all__ = [
    "ChainStep",
    "E8M0Rule",
    "Encoded",
    "FormatLike",
    "InfinityWrap",
    "NanToFloat",
    "NanToInteger",
    "Policy",
    "Scale",
    "Tier",
    "abstract_policy",
    "array_from_codes",
    "cast_array",
    "cast_chain",
    "cast_codes",
    "check_policy",
    "code_dtype",
    "codes_from_array",
    "codes_from_strings",
    "codes_of_out",
    "convert_codes",
    "decode_to_float64",
    "e8m0_flags",
    "encode_value",
    "finish_out",
    "format_name",
    "is_codes",
    "legal_overflows",
    "legal_roundings",
    "native_dtype",
    "pack_codes",
    "parse_number",
    "round_to_integral_codes",
    "scale_of",
    "scaled_cast_codes",
    "strings_from_codes",
    "unpack_codes",
    "value_of",
]
