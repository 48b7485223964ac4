"""The text of a kernel: preprocessed by pcpp, parsed by pycparser; neither runs anything of the host.

What C does not have is put into words that it has, of the same length where there are any: `volatile` stands for
`__local__`, `restrict` for `__global__`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from castsim.isa.errors import IllegalError, ReadError, Span
from castsim.isa.reading import is_file, read_text
from castsim.tpc_compiler.tpc_c.types import GENERATIONS, names_in

# The switches of intrinsics: constants of the vendor's header, and the words of instructions that they stand for.
#
# Source: `tpc-defs.h` of the vendor's compiler, by the facts page `docs/reference/tpc.md`.

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


LOCAL, GLOBAL = "volatile", "restrict"
"""The qualifiers that stand for the address spaces."""
_OWN = {
    "goya": ("__goya__", "__dali__"), "gaudi": ("__gaudi__",), "gaudib": ("__gaudib__",),
    "greco": ("__greco__", "__goya2__"), "gaudi2": ("__gaudi2__",),
}  # fmt: skip
_INCLUDED = ("tpc-defs.h", "tpc-intrinsics.h", "tpc-special.h", "tpc_kernel_lib_interface.h")
_ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|\b(?:__inline__|__forceinline|__extension__)\b")
_SPACES = re.compile(r"\b(?:(__local__|__local)|(__global__|__global)|(volatile|restrict))\b")
_NUMBER = re.compile(r"\b((?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)(bf|BF|h|H)\b")
_ASSEMBLY = re.compile(r"\b(?:__asm__|__asm|asm)\b")
_WIDE = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)([uU]?)[lL]{1,2}([uU]?)\b")
_CONDITION = re.compile(r"passed to evaluator: '(.*)'\)")
_PLACE = re.compile(r"^(.*?):(\d+):(?:(\d+):)?\s*(.*)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A kernel as a tree: `lines` are those of the files by name, for messages."""

    file: str
    tree: Any
    lines: Mapping[str, Sequence[str]]

    def span(self, node: Any) -> Span:
        """Return the place of a node of the tree."""
        place = getattr(node, "coord", node)
        if place is None:
            return Span(self.file, 1, 1, self._line(self.file, 1))
        file, line = str(place.file or self.file), int(place.line or 1)
        return Span(file, line, max(1, int(place.column or 1)), self._line(file, line))

    def _line(self, file: str, line: int) -> str:
        held = self.lines.get(file, ())
        return held[line - 1] if 0 < line <= len(held) else ""


def macros_of(generation: str) -> dict[str, str]:
    """Return the macros that the compiler defines for a generation."""
    found = {"__TPC__": "1", "MAX_TENSORS": "16", "MAX_VLM": "81920", "MAX_SLM": "1024"}
    for name in ("gaudi", "greco", "gaudi2"):
        if GENERATIONS.index(generation) >= GENERATIONS.index(name):
            found[f"__{name}_plus__"] = "1"
    found |= dict.fromkeys(_OWN[generation], "1")
    location = 8 if found.get("__gaudi2_plus__") else 6
    found["MkRMW(dt, op, rmw, at)"] = f"((dt) | ((op) << 4) | ((at) << 7) | ((rmw) << {location}))"
    return {**found, **MACROS}


def parsed(text: str, file: str, generation: str, defines: Mapping[str, str], folders: Sequence[Path] = ()) -> Parsed:
    """Return the tree of a kernel.

    Raises:
        ReadError: a missing header, a directive or a statement that cannot be read; the libraries are not installed.
        IllegalError: inline assembly.
    """
    try:
        parsers = import_module("pycparser")
        preprocessor = import_module("pcpp")
    except ImportError:
        message = "kernels in C need the libraries pcpp and pycparser"
        raise ReadError(message, legal=("pip install 'castsim[c]'",)) from None
    lines: dict[str, Sequence[str]] = {file: text.split("\n")}
    reader = _reader(preprocessor, file, lines)
    output = _preprocessed(reader, text, file, {**macros_of(generation), **defines}, folders, lines)
    _refuse_assembly(output, file, lines)
    output = _ATTRIBUTE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), output)
    output = _SPACES.sub(_qualifier, output)
    output = _WIDE.sub(r"\1\2\3", output)
    output = _NUMBER.sub(lambda m: f"(({'bf16' if m[2].lower() == 'bf' else 'half'}){m[1]}f)", output)
    prelude = "".join(f"typedef int {name};\n" for name in names_in(output))
    parser = parsers.CParser()
    try:
        tree = parser.parse(f'{prelude}#line 1 "{file}"\n{output}', file)
    except parsers.c_parser.ParseError as error:
        raise _parse_error(_placed(str(error), parser), file, lines) from None
    except RecursionError:
        raise _parse_error("the kernel is nested too deeply", file, lines) from None
    return Parsed(file, tree, lines)


def _qualifier(found: re.Match[str]) -> str:
    if found[1]:
        return LOCAL.ljust(len(found[1]))
    return GLOBAL.ljust(len(found[2])) if found[2] else " " * len(found[3])


def _reader(library: Any, file: str, lines: dict[str, Sequence[str]]) -> Any:
    """Return a preprocessor that keeps pragmas and turns complaints into errors; `lines` gathers those of headers."""
    action, output_directive = library.Action, library.OutputDirective

    class Reader(library.Preprocessor):  # type: ignore[misc]  # the library carries no types
        def on_error(self, file: str, line: int, message: str) -> None:
            condition = _CONDITION.search(message)
            text = f"the condition of #if cannot be evaluated: {condition[1]}" if condition else message.strip()
            raise ReadError(text, span=_span(file, line, 1, lines))

        def on_directive_unknown(self, directive: Any, toks: Any, ifpassthru: Any, precedingtoks: Any) -> Any:
            if directive.value == "error":
                self.on_error(directive.source, directive.lineno, f"#error {''.join(each.value for each in toks)}")
            return True if directive.value == "warning" else None

        def on_directive_handle(self, directive: Any, toks: Any, ifpassthru: Any, precedingtoks: Any) -> Any:
            if directive.value == "pragma":
                raise output_directive(action.IgnoreAndPassThrough)
            if directive.value == "include" and not any(each.value.strip() for each in toks):
                span = _span(directive.source, directive.lineno, 1, lines)
                raise ReadError("#include names no header", span=span, legal=('#include "FILE.h"',))
            return super().on_directive_handle(directive, toks, ifpassthru, precedingtoks)

        def on_include_not_found(self, is_malformed: bool, is_system: bool, curdir: str, name: str) -> None:
            if name.strip('"<>') in _INCLUDED:
                raise output_directive(action.IgnoreAndRemove)
            at = self.lastdirective
            span = _span(at.source if at else file, at.lineno if at else 1, 1, lines)
            legal = ("a file beside the kernel", "-I FOLDER")
            raise ReadError(f"header '{name}' is not found", span=span, legal=legal)

        def on_file_open(self, is_system_include: bool, includepath: str) -> Any:
            if not is_file(Path(includepath)):
                raise FileNotFoundError(includepath)
            found = read_text(includepath, "header")
            lines[includepath] = found.split("\n")
            return io.StringIO(found)

    reader = Reader()
    reader.line_directive = "#line"
    return reader


def _preprocessed(
    reader: Any,
    text: str,
    file: str,
    macros: Mapping[str, str],
    folders: Sequence[Path],
    lines: Mapping[str, Sequence[str]],
) -> str:
    for name, value in macros.items():
        reader.define(f"{name} {value}")
    for folder in (Path(file).parent, *folders):
        reader.add_path(str(folder))
    try:
        reader.parse(text, file)
        out = io.StringIO()
        reader.write(out)
    except ReadError:
        raise
    except RecursionError:
        raise ReadError("headers or macros are nested too deeply", span=_span(file, 1, 1, lines)) from None
    return out.getvalue()


def _span(file: str, line: int, column: int, lines: Mapping[str, Sequence[str]]) -> Span:
    held = lines.get(file, ())
    return Span(file, max(line, 1), max(column, 1), held[line - 1] if 0 < line <= len(held) else "")


def _refuse_assembly(text: str, file: str, lines: Mapping[str, Sequence[str]]) -> None:
    number, current = 1, file
    for line in text.split("\n"):
        directive = re.match(r'#line (\d+)(?: "(.*)")?', line)
        if directive:
            number, current = int(directive[1]), directive[2] or current
            continue
        found = _ASSEMBLY.search(line)
        if found and not line.lstrip().startswith("#"):
            message = "inline assembly is not supported in C kernels"
            legal = ("an intrinsic", "a kernel in TPC assembly (.tpc)")
            raise IllegalError(message, span=_span(current, number, found.start() + 1, lines), legal=legal)
        number += 1


def _placed(message: str, parser: Any) -> str:
    """Return a message of the parser with the place of the token that it stopped at, where it names none."""
    if _PLACE.match(message):
        return message
    tokens = [each for each in getattr(getattr(parser, "_tokens", None), "_buffer", ()) if each is not None]
    if not tokens:
        return message
    last, text = tokens[-1], message.rpartition(": ")[2]
    where = (
        f"the text ends behind '{last.value}'" if "end of input" in text else f"{text.lower()} before '{last.value}'"
    )
    return f"{last.filename}:{last.lineno}:{last.column}: this is not C, {where}"


def _parse_error(message: str, file: str, lines: Mapping[str, Sequence[str]]) -> ReadError:
    found = _PLACE.match(message)
    if found is None:
        return ReadError(message, span=_span(file, 1, 1, lines))
    text = found[4].strip()
    if text.startswith("before:"):
        text = f"this is not C, before '{text[7:].strip()}'"
    elif text.startswith("Comments"):
        text = "the comment is not closed"
    return ReadError(text or "this is not C", span=_span(found[1] or file, int(found[2]), int(found[3] or 1), lines))
