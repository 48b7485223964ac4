"""Third-party definitions of our formats: array dtypes, and gfloat's format descriptions.

Source: docs/reference/formats.md section 4.
"""

from __future__ import annotations

import en_dtypes
import ml_dtypes
import numpy as np
from gfloat import Domain, FormatInfo, RoundMode
from gfloat import formats as gf

LIBRARY = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3fn": ml_dtypes.float8_e4m3fn,
    "e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "e5m2": ml_dtypes.float8_e5m2, "e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "e8m0": ml_dtypes.float8_e8m0fnu, "e3m2": ml_dtypes.float6_e3m2fn, "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn, "e1m2": en_dtypes.float4_e1m2, "hif8": en_dtypes.hifloat8,
}  # fmt: skip
"""The dtype of each float format; f8_143 and f8_152 have none (f8_152 is e5m2 with another canonical NaN)."""


def _gfloat(name: str, width: int, precision: int, bias: int, *, nans: int, nz: bool, extended: bool) -> FormatInfo:
    return FormatInfo(
        name=name, k=width, precision=precision, bias=bias, is_signed=True, has_subnormals=True, has_nz=nz,
        domain=Domain.Extended if extended else Domain.Finite, num_high_nans=nans, is_twos_complement=False,
    )  # fmt: skip


GFLOAT = {
    "f64": gf.format_info_binary64,
    "f32": gf.format_info_binary32,
    "f16": gf.format_info_binary16,
    "bf16": gf.format_info_bfloat16,
    "e4m3fn": gf.format_info_ocp_e4m3,
    "e5m2": gf.format_info_ocp_e5m2,
    "e4m3fnuz": _gfloat("e4m3fnuz", 8, 4, 8, nans=0, nz=False, extended=False),
    "e5m2fnuz": _gfloat("e5m2fnuz", 8, 3, 16, nans=0, nz=False, extended=False),
    "e8m0": gf.format_info_ocp_e8m0,
    "e3m2": gf.format_info_ocp_e3m2,
    "e2m3": gf.format_info_ocp_e2m3,
    "e2m1": gf.format_info_ocp_e2m1,
    "e1m2": _gfloat("e1m2", 4, 3, 1, nans=0, nz=True, extended=False),
    "f8_143": _gfloat("f8_143", 8, 4, 7, nans=7, nz=True, extended=True),
    "f8_152": _gfloat("f8_152", 8, 3, 15, nans=3, nz=True, extended=True),
}
GFLOAT_MODES = {
    "rint": RoundMode.TiesToEven,
    "round": RoundMode.TiesToAway,
    "floor": RoundMode.TowardNegative,
    "ceil": RoundMode.TowardPositive,
    "trunc": RoundMode.TowardZero,
}
