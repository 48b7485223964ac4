"""The same cast by other libraries, each writing to an array it has already; those of arrays return it.

torch is measured in a process of its own: its threads and others' disturb each other.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.cases import Case
from benchmarks.timing import Run
from castsim.isa.formats import Codes, Format, IntFormat, Overflow, Rounding
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import native_dtype
from castsim.numerics.tiers import Tier, convert_codes


def castsim(case: Case, codes: Codes) -> Run:
    src, dst = case.formats
    policy, tier, out = case.policy, Tier(case.tier), np.empty(codes.shape, code_dtype(dst))
    words = None
    if policy.rounding is Rounding.STOCHASTIC:
        words = np.random.default_rng(2).integers(0, 1 << 32, codes.shape, dtype=np.uint32)
    return lambda: convert_codes(codes, src, dst, policy, random=words, tier=tier, out=out)


def copy(case: Case, codes: Codes) -> Run:
    """Return a copy that reads and writes as many bytes in all as the cast does."""
    moved = (codes.dtype.itemsize + code_dtype(case.formats[1]).itemsize) * codes.size // 2
    source, target = np.ones(moved, np.uint8), np.empty(moved, np.uint8)
    return lambda: np.copyto(target, source)


def _dtype(fmt: Format, library: str) -> np.dtype[Any] | None:
    if library == "en_dtypes":
        import en_dtypes  # noqa: PLC0415 - only where it is a contestant

        names = {"hif8": "hifloat8", "e1m2": "float4_e1m2", "f32": None, "f16": None}
        name = names.get(fmt.name, "")
        return np.dtype(getattr(en_dtypes, name)) if name else native_dtype(fmt) if name is None else None
    return native_dtype(fmt)


def _library_of(case: Case) -> str | None:
    src, dst = case.formats
    names = [fmt.name for fmt in (src, dst)]
    if "hif8" in names or "e1m2" in names:
        return "en_dtypes"
    dtypes = [native_dtype(fmt) for fmt in (src, dst)]
    if any(dtype is None for dtype in dtypes):  # not `in`: a dtype equal to None is float64
        return None
    return "numpy" if all(dtype is not None and dtype.isbuiltin == 1 for dtype in dtypes) else "ml_dtypes"


def array_library(case: Case, codes: Codes) -> tuple[str, Run] | None:
    """Return NumPy with or without the dtypes of another library, and its cast; None if it has no such pair."""
    library = _library_of(case)
    if library is None or (library == "en_dtypes" and find_spec("en_dtypes") is None):
        return None
    src, dst = (_dtype(fmt, library) for fmt in case.formats)
    if src is None or dst is None:
        return None
    out = np.empty(codes.shape, dst)
    values = codes.view(src)
    destination = case.formats[1]
    if src.kind == "f" and isinstance(destination, IntFormat) and case.policy.overflow is Overflow.SATURATE:
        return library, _round_clip_cast(values, out, destination)

    def run() -> np.ndarray:
        with np.errstate(invalid="ignore"):
            np.copyto(out, values, casting="unsafe")
        return out

    return library, run


def _round_clip_cast(values: np.ndarray, out: np.ndarray, dst: IntFormat) -> Run:
    between = np.empty_like(values)

    def run() -> np.ndarray:
        np.rint(values, out=between)
        np.clip(between, dst.minimum, dst.maximum, out=between)
        np.copyto(out, between, casting="unsafe")
        return out

    return run


_ONNX = {
    "f32": 1, "u8": 2, "i8": 3, "u16": 4, "i16": 5, "i32": 6, "i64": 7, "bool": 9, "f16": 10, "f64": 11, "u32": 12,
    "u64": 13, "bf16": 16, "e4m3fn": 17, "e4m3fnuz": 18, "e5m2": 19, "e5m2fnuz": 20,
}  # fmt: skip
"""Element types of TensorProto.DataType."""


def onnxruntime(case: Case, codes: Codes) -> Run | None:
    """Return ONNX Cast on one thread, input and output bound."""
    src, dst = case.formats
    if src.name not in _ONNX or dst.name not in _ONNX or not (find_spec("onnxruntime") and find_spec("onnx")):
        return None
    import onnxruntime as ort  # noqa: PLC0415
    from onnx import helper  # noqa: PLC0415

    float8 = {"saturate": 0} if dst.name.startswith(("e4m3", "e5m2")) else {}
    node = helper.make_node("Cast", ["x"], ["y"], to=_ONNX[dst.name], **float8)
    ends = [
        helper.make_tensor_value_info(name, _ONNX[fmt.name], [codes.size]) for name, fmt in (("x", src), ("y", dst))
    ]
    graph = helper.make_graph([node], "cast", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        arrays = [codes.view(_onnx_storage(src)), np.empty(codes.size, _onnx_storage(dst))]
        bound = [
            ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, _ONNX[fmt.name])
            for array, fmt in zip(arrays, (src, dst), strict=True)
        ]
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", bound[0])
        binding.bind_ortvalue_output("y", bound[1])
        session.run_with_iobinding(binding)
    except Exception:  # the library has no kernel for the pair, and says so by many kinds of errors
        return None
    return lambda: session.run_with_iobinding(binding)


def _onnx_storage(fmt: Format) -> np.dtype[Any]:
    native = native_dtype(fmt)
    return native if native is not None and native.isbuiltin == 1 else code_dtype(fmt)


_TORCH = {
    "f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16", "e4m3fn": "float8_e4m3fn",
    "e5m2": "float8_e5m2", "i8": "int8", "u8": "uint8", "i16": "int16", "i32": "int32", "i64": "int64",
}  # fmt: skip


def torch(case: Case, codes: Codes) -> Run | None:
    """Return torch's copy between tensors on one thread; integers are rounded and clamped first."""
    src, dst = case.formats
    if src.name not in _TORCH or dst.name not in _TORCH:
        return None
    import torch as library  # noqa: PLC0415

    library.set_num_threads(1)
    signed = codes.view(np.dtype(f"i{codes.dtype.itemsize}"))
    values = library.from_numpy(signed).view(getattr(library, _TORCH[src.name]))
    out = library.empty(codes.size, dtype=getattr(library, _TORCH[dst.name]))
    to_integer = not isinstance(src, IntFormat) and isinstance(dst, IntFormat)
    between = library.empty_like(values) if to_integer else values

    def run() -> None:
        if to_integer:
            library.round(values, out=between)
            between.clamp_(dst.minimum, dst.maximum)
        out.copy_(between)

    try:
        run()
    except RuntimeError:  # no such pair, or a limit that the source's type does not hold
        return None
    return run


def contestants(case: Case, codes: Codes, *, only_torch: bool) -> dict[str, Run]:
    """Return what runs side by side: castsim, a copy, and whoever has the pair in its own nearest mode."""
    found = {"castsim": castsim(case, codes), "copy": copy(case, codes)}
    others: dict[str, Callable[[], Run | None]] = {"onnxruntime": lambda: onnxruntime(case, codes)}
    if only_torch:
        others = {"torch": lambda: torch(case, codes)}
    elif (library := array_library(case, codes)) is not None:
        found[library[0]] = library[1]
    for name, make in others.items():
        if (run := make()) is not None:
            found[name] = run
    return found
