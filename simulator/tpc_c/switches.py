"""The switches of intrinsics: constants of the vendor's header, and the words of instructions that they stand for.

Source: `tpc-defs.h` of the vendor's compiler, by the facts page `docs/reference/tpc.md`.
"""

from __future__ import annotations

SAT, NEG, NEG_ZP, CLIP_FP, LINEAR, LUT_POINTER = 1, 2, 1 << 6, 1 << 20, 1 << 24, 1 << 3
ROUNDING = ("rhne", "rz", "ru", "rd", "sr", "", "rhaz", "sr_rne")
"""Words of rounding modes by number; the mode of the register prints none."""

_NUMBERS = {
    "SW_SAT": SAT, "SW_NEG": NEG, "SW_NEG_ZP": NEG_ZP, "SW_MASK_EQ_ZERO": 1, "SW_ACC_FP32": 1 << 2,
    "SW_RHNE": 0, "SW_RZ": 1 << 16, "SW_RU": 2 << 16, "SW_RD": 3 << 16, "SW_SR": 4 << 16, "SW_CSR": 5 << 16,
    "SW_RHAZ": 6 << 16, "SW_SR_RNE": 7 << 16, "SW_CLIP_FP": CLIP_FP, "SW_LINEAR": LINEAR,
    "SW_UNPACK": 1 << 4, "SW_UNPCK_16_TO_32": 0, "SW_UNPCK_8_TO_16": 1 << 1, "SW_UNPCK_8_TO_32": 2 << 1,
    "SW_UNPCK_4_TO_8": 3 << 1, "SW_PACK": 1 << 2, "SW_PCK_32_TO_16": 0, "SW_PCK_16_TO_8": 1 << 4,
    "SW_PCK_32_TO_8": 2 << 4, "SW_PCK_8_TO_4": 3 << 4, "SW_GROUP_0": 0, "SW_GROUP_1": 1 << 8, "SW_STRIDE_2": 0,
    "SW_STRIDE_4": 1 << 9, "SW_GROUP_HALF_0": 0, "SW_GROUP_HALF_1": 1 << 10,
    **{f"SW_UNPACK_LANE_{n}": n << 11 for n in range(4)},
    "SW_WR_LOWER_GROUP": 1 << 12, "SW_WR_UPPER_GROUP": 1 << 13,
    **{f"SW_WR_LOWER_GROUP{d}": 1 << (16 + 2 * d) for d in range(4)},
    **{f"SW_WR_UPPER_GROUP{d}": 1 << (17 + 2 * d) for d in range(4)},
    "SW_PACK21": 0, "SW_PACK41": 1 << 2, "SW_GROUP0_EN": 1, "SW_GROUP1_EN": 2,
    **{f"SW_DUAL_GROUP{d}_EN": 1 << (2 + d) for d in range(4)},
    "SW_BV32": 0, "SW_BV16": 1, "SW_BV8_0": 2, "SW_BV8_1": 3, "SW_UPPER_HALF": 4, "SW_LUT_PTR": 8, "SW_X2": 16,
    "SW_SBCD": 32, "SW_ADD_BIAS": 1 << 8, "SW_FORCE_SIGN0": 2 << 8, "SW_FORCE_SIGN1": 4 << 8,
    "SW_EXP_IS_NUM": 8 << 8, "SW_SIGN_LSB": 16 << 8, "SW_LUT_TANH": 1 << 13, "SW_LUT_SQRT_RSQRT": 2 << 13,
    "SW_LUT_SIN_COS": 3 << 13, "SW_LUT_LOG": 4 << 13, "SW_MMIO": 1, "SW_LOCK": 2, "SW_UNLOCK": 2, "SW_DEC": 1 << 8,
    "SW_VPU": 2 << 8, "SW_UPPER32": 4, "SW_UPPER16": 4, "SW_COUNT_ZEROS": 0, "SW_COUNT_ONES": 1, "SW_FIND_ZERO": 0,
    "SW_FIND_ONE": 1, "SW_LSB": 0, "SW_MSB": 2, "SW_BIASED": 1, "SW_RHU": 2, "SW_DIRECT": 0, "SW_RHAZ_RS": 1 << 3,
    "SW_IRF44_HIGH": 1 << 4, "SW_SB": 1, "SW_ANDN": 2, "SW_FP16_FTZ_IN": 1, "SW_X2_CONVERT": 1 << 3,
    "SW_NORMALIZE_AB": 0, "SW_NORMALIZE_C": 4, "SW_KEEP_RS": 1 << 3,
    "SW_KEEP_RS_FOR_ADD": 1 << 4, "SW_L0CS": 1 << 5, "SW_D": 1 << 1, "SW_LU": 1 << 2, "SW_RST_LU": 1 << 3,
    "SW_RST_D_PREF": 1 << 4,
    "e_round_half_ne": 0, "e_round_zero": 1, "e_round_up": 2, "e_round_down": 3, "e_stochastic_rounding": 4,
    "e_round_default": 5, "e_no_negation": 0, "e_with_negation": 1, "e_no_saturation": 0, "e_saturation": 1,
    "e_group_0": 0, "e_group_1": 1, "e_every_second_element": 0, "e_every_forth_element": 1, "e_lower_half_group": 0,
    "e_higher_half_group": 1, "e_fp_recip": 0, "e_fp_rsqrt": 1, "e_fp_sqrt": 2, "e_fp_log": 3, "e_fp_exp": 4,
    "e_fp_tanh": 5, "e_fp_div": 6, "e_fp_pow": 7, "e_rmw_int8": 0, "e_rmw_int16": 1, "e_rmw_int32": 2,
    "e_rmw_uint8": 3, "e_rmw_uint16": 4, "e_rmw_uint32": 5, "e_rmw_bf16": 6, "e_rmw_fp32": 7, "e_rmw_add": 0,
    "e_rmw_sub": 1, "e_rmw_min": 2, "e_rmw_max": 3, "e_rmw_max_0_add": 4, "e_rmw_set": 0, "e_rmw_atomic": 1,
    "e_tnsr_dt_srf": 0, "e_tnsr_dt_desc": 1, "e_func_variant_default": 0, "e_func_variant_tanh": 1,
    "e_func_variant_sqrt_rsqrt": 2, "e_func_variant_sin_cos": 3, "e_func_variant_log": 4, "e_fp32_sin_cos": 130,
    "e_fp32_tanh": 128, "e_fp32_rsqrt": 129, "e_fp32_log2": 131, "e_fp32_sqrt": 132, "e_fp32_rcp": 133,
    "e_fp32_pow2": 256,
}  # fmt: skip
"""No source states the numbers of KEEP_RS_FOR_ADD, L0CS and the words of CACHE_INVALIDATE: kernels name them."""
CACHE_WORDS = ((1, "sb"), (1 << 1, "d"), (1 << 2, "lu"), (1 << 3, "rst_lu"), (1 << 4, "rst_d_pref"))
MACROS = {
    **{name: str(value) for name, value in _NUMBERS.items()},
    "RMW_DT_INT8": "0", "RMW_DT_INT16": "1", "RMW_DT_INT32": "2", "RMW_DT_UINT8": "3", "RMW_DT_UINT16": "4",
    "RMW_DT_UINT32": "5", "RMW_DT_BF16": "6", "RMW_DT_FP32": "7", "RMW_DT_FP16": "8", "RMW_DT_FP8_152": "9",
    "MkWr(l, u)": "(((l) << 12) | ((u) << 13))",
    "MkWrA(a, b, c, d)": "(((a) << 16) | ((b) << 18) | ((c) << 20) | ((d) << 22))",
    "VERSION2DEC(a, b, c)": "(((((a) * 100) + (b)) * 100) + (c))", "__TPC_DROP_VERSION": "VERSION2DEC(1, 16, 0)",
    "RMW_OP_ADD": "0", "RMW_OP_SUB": "1", "RMW_OP_MIN": "2", "RMW_OP_MAX": "3", "RMW_OP_MAX_0_ADD": "4",
}  # fmt: skip
"""The constants of the header that are macros here, with their texts."""


def rounding(switches: int) -> str:
    """Return the word of the rounding mode, empty for that of the register."""
    return ROUNDING[switches >> 16 & 7]


def words(*named: tuple[bool | int, str]) -> list[str]:
    """Return the words of which the condition holds."""
    return [word for holds, word in named if holds and word]


_PLAIN: dict[str, tuple[tuple[int, str], ...]] = {
    "add": ((2, "neg"),),
    "sub": ((2, "neg"),),
    "and": ((2, "andn"),),
    "mac": ((NEG, "neg"), (NEG_ZP, "neg_zp")),
    "madd": ((NEG, "neg"), (NEG_ZP, "neg_zp")),
    "mul": ((NEG, "neg"), (8, "keep_rs"), (16, "keep_rs_for_add")),
    "ash": ((1, "st"), (2, "rhu"), (8, "rhaz_rs")),
    "cmp_eq": ((1, "mask_eq_zero"),),
    "sel_eq": ((1, "mask_eq_zero"),),
    "extract_exp": ((1, "biased"),),
    "fclass": ((1, "limit"),),
    "form_fp_num": (
        (1 << 8, "exp_add_bias"), (2 << 8, "force_sign0"), (4 << 8, "force_sign1"), (8 << 8, "exp_is_num"),
        (16 << 8, "sign_lsb"),
    ),
}  # fmt: skip
"""Words by the bits that ask for them."""
_ON_INTEGERS = {"add": (1, "st"), "sub": (1, "st"), "mac": (1, "st"), "madd": (1, "st"), "mul": (4, "upper32")}


def words_of(mnemonic: str, element: str, switches: int) -> list[str]:
    """Return the words of an instruction that its switches ask for, those of conversions and accesses left out."""
    bit, word = _ON_INTEGERS.get(mnemonic, (0, ""))
    if "f" in element and word:
        word = "fp16_ftz_in" if mnemonic in ("mac", "madd") else ""
    found = words((switches & bit, word)) + words(*((switches & each, name) for each, name in _PLAIN.get(mnemonic, ())))
    if mnemonic == "msac":
        found = words((switches & 2, "rhu"), (True, "normalize_c" if switches & 4 else "normalize_ab"))
    elif mnemonic in ("popcnt", "find_first"):
        start = [] if mnemonic == "popcnt" else ["start_msb" if switches & 2 else "start_lsb"]
        found = [f"set={switches & 1}", *start]
    elif mnemonic == "nearbyint":
        found = words((True, rounding(switches)))
    elif mnemonic in ("pack", "unpack"):
        half = [f"group_half={switches >> 10 & 1}"] if mnemonic == "unpack" else []
        found = [f"source_group={switches >> 8 & 1}", f"element_stride={4 if switches & 1 << 9 else 2}", *half]
    return found
