"""AscendC kernels: the library of calls on tensors for the recorder of kernels in C++.

The header (`include/`) has the names of the vendor's library; queues become flags, calls instructions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import ReadError, closest
from castsim.languages.ascendc.record_making import AscendMaker, InstructionLockstep
from castsim.languages.cpp_recording import recording
from castsim.languages.cpp_recording.host_compiler import (
    Candidate,
    CppKernel,
    Library,
    blanked,
    entry_of,
    for_host,
    local_texts,
    with_entries_of_macros,
)
from castsim.languages.cpp_recording.recording import CppRecording, Dialect, Request, check_names

__all__ = ["ASCENDC", "CppRecording", "Request", "record", "record_all", "run"]

LIBRARY = Library(
    title="AscendC",
    headers=Path(__file__).parent / "include",
    main="castsim_ascendc.hpp",
    names=(
        *(f"kernel_{name}.h" for name in (
            "operator", "basic_intf", "tensor", "utils", "common", "log", "event", "type", "macros", "tpipe",
            "vec_intf", "check",
        )),
        "kernel_tiling/kernel_tiling.h", "register/tilingdata_base.h", "register/op_def_registry.h", "acl/acl.h",
        "tiling/tiling_api.h", "lib/matmul_intf.h",
    ),
    prefix=(
        "lib/", "adv_api/", "basic_api/", "kernel_tiling/", "register/", "tiling/", "ascendc/", "kernel_operator_",
        "kernel_struct_", "std/", "utils/std/",
    ),
    architectures={
        False: "__CCE_AICORE__=220 __NPU_ARCH__=2201 __DAV_C220__ __DAV_C220_VEC__ __DAV_VEC__ ASCENDC_CPU_DEBUG_OFF",
        True: "__CCE_AICORE__=310 __NPU_ARCH__=3510 __DAV_C310__ __DAV_C310_VEC__ __DAV_VEC__ ASCENDC_CPU_DEBUG_OFF",
    },
    silent=(
        "__global__ __aicore__ AICORE __gm__ __ubuf__ __cbuf__ __ca__ __cb__ __cc__ __fbuf__ __biasbuf__ __in__ "
        "__out__ __inout__ __force_inline__ __vector__ __cube__ __aiv__"
    ),
    own=r"[A-Z]\w{3,}",
)  # fmt: skip


def _prepared(request: Request, text: str, a5: bool) -> tuple[Request, CppKernel]:
    shown = with_entries_of_macros(text)
    entry, function = entry_of(shown, request.entry, str(request.file))
    defined = {macro.partition("=")[0] for macro in request.macros}
    for name in re.findall(r"\bORIG_DTYPE_\w+", re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)):
        if name not in defined:
            raise ReadError(
                f"{request.file}: {name} is defined by an operator's build", legal=(f"-D {name}=DT_FLOAT16",)
            )
    names = function.parameters
    file, host = request.file.resolve(), for_host(text)
    folders = tuple(path.resolve() for path in request.folders)
    tiling = tiled(request, shown, function, folders)
    own = [name for name in request.args if name == "tiling_key" or name in tiling.fields]
    plain = {name: value for name, value in request.args.items() if name not in own}
    check_names(Request(request.file, args=plain, inputs=request.inputs), entry, names)
    key = request.args.get("tiling_key")  # which directives compare, too
    macros = (*request.macros, *tiling.macros, *(() if key is None else (f"TILING_KEY_VAR={int(key)}ULL",)))
    return request, CppKernel(
        file, launching(host) if a5 else host, entry, names, LIBRARY, folders, macros, a5,
        before=tiling.statements, ahead=tiling.ahead,
    )  # fmt: skip


def launching(text: str) -> str:
    """Return a text whose `__simd_vf__` functions are a launch each, also where no VF_CALL calls them."""
    for head in reversed(list(re.finditer(r"\b__simd_vf__\b[^;{}]*\)\s*\{", blanked(text)))):
        text = f"{text[: head.end()]} castsim::Scope castsim_launch;{text[head.end() :]}"
    return text


# Tiling structures: which one a kernel takes, what is given of it, and the C++ that fills it.

_MACRO = re.compile(r"\bBEGIN_TILING_DATA_DEF\s*\(\s*(\w+)\s*\)(.*?)\bEND_TILING_DATA_DEF\b\s*;?", re.DOTALL)
_MACRO_FIELD = re.compile(r"\bTILING_DATA_FIELD_DEF(?:_ARR|_STRUCT)?\s*\(([^()]*)\)")
_LIKELY = re.compile(r"\bstruct\s+(?:alignas\s*\(\s*\d+\s*\)\s*)?(\w*[Tt]iling\w*)\s*\{")
_REGISTERED = re.compile(r"\bREGISTER_TILING_DATA_CLASS\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)")
_NAMED = re.compile(
    r"\b(?:GET_TILING_DATA_WITH_STRUCT|GET_TILING_DATA_PTR_WITH_STRUCT|REGISTER_TILING_DEFAULT|GET_TILING_DATA_MEMBER)\s*\(\s*([\w:]+)"
)
_POINTER = re.compile(r"\bGET_TILING_DATA\w*\s*\([^();]*?(\w+)\s*\)")
_PLAIN = r"\bstruct\s+(?:alignas\s*\(\s*\d+\s*\)\s*)?{}\s*(?:final\s*)?\{{"
_FIELD = re.compile(r"[A-Za-z_]\w*(?:\[\d+\])*(?:\.[A-Za-z_]\w*(?:\[\d+\])*)*")
_HOST_FOLDERS = ("", "op_host", "../op_host", "../../op_host", "../host", "../tiling")
_SHOWN = 12
"""Fields that a warning lists."""


@dataclass(frozen=True, slots=True)
class Structure:
    """A structure: its name in C++, its fields, those with a value of their own, and macro text that declares it."""

    name: str
    fields: tuple[str, ...]
    defaulted: frozenset[str] = frozenset()
    declared: str = ""


@dataclass(frozen=True, slots=True)
class Tiling:
    """The C++ text that fills a tiling structure; `fields` are the arguments that set its fields."""

    fields: frozenset[str] = frozenset()
    ahead: str = ""
    statements: str = ""
    macros: tuple[str, ...] = ()


def tiled(request: Request, text: str, function: Candidate, folders: Sequence[Path]) -> Tiling:
    """Return the text that fills the structure of a kernel; empty if the kernel takes none.

    Raises:
        ReadError: the structure is unknown, or it has no such field.
    """
    shown = blanked(text)
    parameter, kind = _parameter(shown, function)
    prefix = "tiling" if not kind else parameter
    given = {name: value for name, value in request.args.items() if name.startswith((f"{prefix}.", "tiling."))}
    if parameter is None or (not given and not kind and not _POINTER.search(shown)):
        return Tiling()
    if (
        kind in ("", None)
        and not given
        and request.structure is None
        and not _NAMED.search(shown)
        and not re.search(r"\bGET_TILING_DATA\s*\(", shown)
    ):
        return Tiling()
    structure = _structure(request, text, shown, function, folders, kind)
    lines = []
    for name, value in given.items():
        field = name.partition(".")[2]
        if not _FIELD.fullmatch(field):
            raise ReadError(f"--arg {name}: not a field", legal=(f"--arg {prefix}.FIELD=VALUE",))
        plain = re.split(r"[.\[]", field)[0]
        if structure.fields and plain not in structure.fields:
            near = closest(plain, structure.fields, everything_up_to=5)
            raise ReadError(
                f"--arg {name}: {structure.name} has no field {plain}",
                legal=[f"--arg {prefix}.{candidate}=VALUE" for candidate in near],
            )
        words = repr(int(value) if isinstance(value, bool) else value)
        lines.append(f'castsim::fill_field(value.{field}, "{name}", "{words}");')
    set_fields = {re.split(r"[.\[]", name.partition(".")[2])[0] for name in given}
    left = [
        candidate
        for candidate in structure.fields
        if candidate not in set_fields and candidate not in structure.defaulted
    ]
    if left:
        more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
        what = f"fields of {structure.name} that are not given are 0: {', '.join(left[:_SHOWN])}{more}"
        lines.append(f'castsim::note(castsim::NOWHERE, "{what}");')
    position = function.parameters.index(parameter)
    ends = (
        f"castsim::structures[{position}] = &value;" if kind else f"castsim::publish({position}, &value, sizeof value);"
    )
    statements = f"castsim::prepared = [] {{ static {structure.name} value{{}}; {' '.join(lines)} {ends} }};"
    return Tiling(frozenset(given), structure.declared, statements, (f"CASTSIM_TILING_STRUCT={structure.name}",))


def _parameter(shown: str, function: Candidate) -> tuple[str | None, str]:
    """Return the parameter that passes a structure, and its type if it is passed by value."""
    plain = function.name.rpartition("::")[2]
    head = re.search(rf"\b{plain}\s*\(([^(){{}};]*)\)\s*\{{", shown)
    for part in head[1].split(",") if head else ():
        words = re.search(r"^\s*(?:const\s+)?([A-Za-z_][\w:]*)\s*&?\s*(\w+)\s*$", part)
        if words and re.search(rf"\bstruct\s+{words[1].rpartition(':')[2]}\b", shown):
            return words[2], words[1]
    named = [parameter for parameter in _POINTER.findall(shown) if parameter in function.parameters]
    likely = [parameter for parameter in function.parameters if "tiling" in parameter.lower()]
    candidates = named or likely[-1:]
    return candidates[0] if candidates else None, ""


def _structure(
    request: Request, text: str, shown: str, function: Candidate, folders: Sequence[Path], kind: str
) -> Structure:
    """Return the structure named on the command line, by the kernel, or by the host's headers.

    Raises:
        ReadError: no structure is named, or several are.
    """
    texts = list(_texts(request.file, text, folders))
    macros: dict[str, Structure] = {}
    for _, content, included in texts:
        for name, body in _MACRO.findall(_uncommented(content)):
            fields = tuple(re.split(r"\s*,\s*", declaration.strip())[-1] for declaration in _MACRO_FIELD.findall(body))
            space = "optiling::" if included and re.search(r"\bnamespace\s+optiling\b", content) else ""
            declared = (
                "" if included else f"BEGIN_TILING_DATA_DEF({name}){' '.join(body.split())} END_TILING_DATA_DEF;\n"
            )
            macros[name] = Structure(space + name, fields, frozenset(), declared)
    asked = request.structure or kind or next(iter(_NAMED.findall(shown)), None)
    if asked is None:
        plain = function.name.rpartition("::")[2].replace("_", "").lower()
        registered = {own.lower(): struct for _, content, _ in texts for own, struct in _REGISTERED.findall(content)}
        likely = [name for _, content, own in texts for name in _LIKELY.findall(_uncommented(content)) if own]
        others = [name for name in macros if name not in registered.values()]
        asked = registered.get(plain) or next((names[0] for names in (likely, others) if len(names) == 1), None)
        if asked is None:
            names = list(dict.fromkeys((*likely, *others)))
            what = f"{len(names)} tiling structures could be meant" if names else "its tiling structure was not found"
            legal = [f"--tiling-struct {name}" for name in names[:5]]
            raise ReadError(f"{request.file}: {what}", legal=legal or ("--tiling-struct NAME", "-I FOLDER"))
    own = asked.rpartition("::")[2]
    if own in macros:
        # What a structure nests is declared ahead of it.
        ahead = "".join(macro.declared for macro in macros.values())
        return replace(macros[own], declared=ahead)
    for _, content, _ in texts:
        body = _body(_uncommented(content), own)
        if body is not None:
            return _plain(asked, body)
    return Structure(asked, ())


def _texts(file: Path, text: str, folders: Sequence[Path]) -> Iterator[tuple[Path, str, bool]]:
    """Yield the kernel's text, the local headers that it includes, and the host's headers of tilings."""
    seen = set()
    for path, content in local_texts(file, text, folders):
        seen.add(path.resolve())
        yield path, content, True
    for folder in (*(file.parent / folder_name for folder_name in _HOST_FOLDERS), *folders):
        for header in sorted(folder.glob("*tiling*.h")) if folder.is_dir() else ():
            if header.resolve() not in seen:
                seen.add(header.resolve())
                yield header, header.read_text(encoding="utf-8", errors="replace"), False


def _uncommented(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)


def _body(text: str, name: str) -> str | None:
    """Return what is between the brackets of a plain structure."""
    head = re.search(_PLAIN.format(re.escape(name)), text)
    if head is None:
        return None
    depth = 1
    for brace in re.finditer(r"[{}]", text[head.end() :]):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return text[head.end() : head.end() + brace.start()]
    return None


def _plain(name: str, body: str) -> Structure:
    fields: list[str] = []
    defaulted: set[str] = set()
    for statement in re.sub(r"\{[^{}]*\}", "{}", body).split(";"):
        if "(" in statement or re.search(r"\b(?:static|using|typedef|struct|enum|union)\b", statement):
            continue
        typed = re.match(
            r"\s*(?:(?:const|unsigned|signed|volatile)\s+)*[A-Za-z_][\w:]*(?:<[^<>]*>)?[\s&*]+(.*)",
            statement,
            re.DOTALL,
        )
        for part in typed[1].split(",") if typed else ():
            named = re.match(r"\s*([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*(=|\{)?", part)
            if named:
                fields.append(named[1])
                defaulted |= {named[1]} if named[2] else set()
    return Structure(name, tuple(fields), frozenset(defaulted))


ASCENDC = Dialect(AscendMaker, InstructionLockstep, _prepared)
record = partial(recording.record, ASCENDC)
record_all = partial(recording.record_all, ASCENDC)
run = partial(recording.run, ASCENDC)
