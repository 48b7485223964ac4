"""Values: exact casts between all formats, in integer arithmetic.

`cast.cast_codes` converts code arrays under a `policy.Policy` and defines all bits; `tiers.convert_codes` does the same
in the fastest tier, `tiers.cast_array` for users' arrays. All rounding goes through `rounding.increment`.
"""
