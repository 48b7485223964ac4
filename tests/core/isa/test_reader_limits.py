"""What every reader takes at most: the largest is read, one more is refused with the limit; the page tells each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from kit.paths import ROOT

from castsim import run
from castsim.execution import input_data, run_limits
from castsim.execution.input_data import read_array
from castsim.isa import reading, value_expressions
from castsim.isa.errors import CastsimError, SourceText, Span
from castsim.isa.pto.pto_parser import parse
from castsim.isa.reading import Language, Source
from castsim.isa.tpc.parser import parse as parse_assembly
from castsim.languages.tpc_c import code, source_text
from castsim.languages.tpc_c.kernels import compiled_kernel
from castsim.machines.vliw import assembled
from castsim.running.loaded import LoadRequest
from castsim.targets import csv_tables
from castsim.targets.loader import load_target
from castsim.targets.vliw import VliwTarget
from castsim.tools.accuracy import measured_rows as measured
from castsim.tools.debugger import debug_adapter as messages
from castsim.tools.graphs.tosa_reader import read_tosa
from castsim.tools.sweep import specification as axes
from castsim.tools.sweep import specification as sweep_specification
from castsim.tools.tune import candidates as tuning_candidates

PAGE = "\n".join(
    (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("inputs-outputs.md", "fixed-limits.csv")
)
GRID = '[sweep]\nkind = "cast"\nmode = "estimate"\n[grid]\nsrc = "f32"\ndst = "f16"\ntarget = "a5"\ncols = 16\n'


@dataclass(frozen=True)
class Case:
    """A limit: `read(n, folder)` reads an input of size n; `says` is what the refusal of one more contains.

    `fact` is how the page tells the limit, `step` what one more is.
    """

    limit: int
    read: Callable[[int, Path], object]
    says: str
    fact: str
    step: int = 1


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def tile_text(body: str) -> str:
    return f"func.func @k(%p: !pto.ptr<f32>, %b: i1) attributes {{pto.entry}} {{\n{body}\nreturn\n}}\n"


def calls(depth: int) -> str:
    """`depth` functions of which each calls the next one."""
    chain = [f"func.func @f{k}() {{\nfunc.call @f{k + 1}() : () -> ()\nreturn\n}}" for k in range(depth - 1)]
    return "\n".join(["func.func @k() attributes {pto.entry} {\nfunc.call @f0() : () -> ()\nreturn\n}", *chain,
                      f"func.func @f{depth - 1}() {{\nreturn\n}}", ""])  # fmt: skip


def called(depth: int, folder: Path) -> object:
    return run(written(folder, "c.pto", calls(depth)), target="a2a3")


def target_of(folder: Path, rest: str, size: int = 0) -> object:
    return load_target(written(folder, "t.toml", f'base = "a2a3"\nname = "mine"\n{rest}'.ljust(size, "\n")))


def bases(count: int, folder: Path) -> object:
    """A chain of so many descriptions of the user's, of which the first builds on a shipped one, which has no base."""
    for number in range(count - 1):
        base = "a2a3" if number == 0 else f"b{number - 1}.toml"
        written(folder, f"b{number}.toml", f'base = "{base}"\nname = "mine"\n')
    return load_target(folder / f"b{count - 2}.toml")


def specified(folder: Path, rest: str) -> object:
    return sweep_specification.read_specification(written(folder, "s.toml", GRID + rest))


def cast_table(folder: Path, digits: int) -> object:
    head, *rows = (ROOT / "targets" / "a2a3_casts.csv").read_text(encoding="utf-8").splitlines()
    column = next(k for k, cell in enumerate(rows[0].split(",")) if cell.isdecimal())
    cells = rows[0].split(",")
    cells[column] = cells[column].zfill(digits)
    written(folder, "rows.csv", "\n".join([head, ",".join(cells), *rows[1:], ""]))
    return target_of(folder, '[casts]\ntable = "rows.csv"\nsource = "own"\nstatus = "assumed"\n')


def message(size: int) -> object:
    import io  # noqa: PLC0415 - here only

    body = b'"' + b"x" * (size - 2) + b'"' if size < 100 else b'{"a":"' + b"x" * (size - 8) + b'"}'
    return messages.Channel(io.BytesIO(b"Content-Length: %d\r\n\r\n" % size + body), io.BytesIO()).receive()


def lookup(size: int, folder: Path) -> object:
    from castsim.isa.tpc.program import TableDeclaration  # noqa: PLC0415 - here only

    path = written(folder, "t.csv", "0,1,2,3".ljust(size, "\n"))
    return assembled.declared_codes(TableDeclaration("t", False, 1, "f32", (4,), path.name), folder)


def measurements(digits: int, folder: Path) -> object:
    row = f"f32,f16,16,16,{'5'.zfill(digits)}"
    return measured.read_table(written(folder, "m.csv", f"src,dst,rows,cols,measured_cycles\n{row}\n"))


def array_header(size: int, folder: Path) -> object:
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"
    raw = text.ljust(size - 1).encode() + b"\n"
    data = b"\x93NUMPY\x02\x00" + len(raw).to_bytes(4, "little") + raw + bytes(4)
    return read_array(written(folder, "x.npy", data), "x")


def tensor(kind: str) -> object:
    cast = f"%0 = tosa.cast %arg0 : ({kind}) -> {kind}"
    text = f"func.func @main(%arg0: {kind}) -> {kind} {{\n{cast}\nreturn %0 : {kind}\n}}\n"
    return read_tosa(text, Path("m.mlir"))


def lanes(count: int) -> object:
    head = "%c0 = arith.constant 0 : index\n%l0 = arith.constant 0 : i64\n"
    pointer = "%u = pto.castptr %l0 : i64 -> !pto.ptr<f32, ub>\n"
    load = f"%v = pto.vmi.vload %u[%c0] : !pto.ptr<f32, ub> -> !pto.vmi.vreg<{count}xf32>"
    return parse(tile_text(f"{head}{pointer}pto.vecscope {{\n{load}\n}}"), "k.pto")


def of_size(size: int, folder: Path) -> object:
    with reading.file_limit(1000):
        return reading.read_bytes(written(folder, "k.pto", b"x" * size), "program")


def statements(count: int, _: Path) -> object:
    return parse(tile_text("pto.barrier <PIPE_ALL>\n" * (count - 1)), "k.pto", max_statements=20)


def nested(depth: int, _: Path) -> object:
    """Branches in each other; the function's own region is the first level."""
    return parse(tile_text("scf.if %b {\n" * (depth - 1) + "}\n" * (depth - 1)), "k.pto")


def constant(digits: int, _: Path) -> object:
    return parse(tile_text(f"%c = arith.constant 1.{'0' * (digits - 2)} : f32"), "k.pto")


def immediate(size: int, _: Path) -> object:
    target = load_target("gaudi2")
    assert isinstance(target, VliwTarget)
    return parse_assembly(f"MOV.i32 S0, {'1'.zfill(size)}\nHALT\n", target.dialect)


def dimensions(rank: int, _: Path) -> object:
    return tensor(f"tensor<{'1x' * rank}f32>")


def expression(size: int, _: Path) -> object:
    return value_expressions.Expression("rows".ljust(size), Span("s.toml", 1, 1, "rows"))


def whole_number(value: int, _: Path) -> object:
    return value_expressions.Expression(f"rows + {value - 1}", Span("s.toml", 1, 1, "rows")).value({"rows": 1})


def values(count: int, _: Path) -> object:
    text = f"1..{count}"
    return value_expressions.read_values(SourceText("--tile", text), 0, len(text))


def choices(count: int, _: Path) -> object:
    """Points of a search: 1000 values of one choice, the others of a second one."""
    assert count >= 1000
    kinds = [
        tuning_candidates.ChoiceAxis(tuning_candidates.ChoiceKind.TILE, name, tuple(range(size)))
        for name, size in (("R", 1000), ("C", count // 1000))
    ]
    return tuning_candidates.Space.of(kinds)


def kernel(body: str, before: str = "", folder: Path = Path()) -> object:
    text = f"{before}void main(tensor a, int n) {{\n  int m = n;\n  {body}\n}}\n"
    return compiled_kernel(Source(str(folder / "k.c"), Language.KERNEL, text), LoadRequest("gaudi2"))


def kernel_of_characters(count: int, folder: Path) -> object:
    """A kernel with a header, of so many characters together."""
    start = '#include "h.h"\n'
    rest = count - len(f"{start}void main(tensor a, int n) {{\n  int m = n;\n  ;\n}}\n")
    (folder / "h.h").write_text("/* ".ljust(rest - 3, "*") + "*/\n", encoding="utf-8")
    return kernel(";", start, folder)


def headers(depth: int, folder: Path) -> object:
    for number in range(depth):
        more = f'#include "h{number + 1}.h"\n' if number + 1 < depth else ""
        (folder / f"h{number}.h").write_text(more, encoding="utf-8")
    return kernel(";", '#include "h0.h"\n', folder)


def expanded(count: int, _: Path) -> object:
    """Macros that put `count` tokens in place of others: ; in place of TEN, and so on."""
    tens = "#define A ;;;;;;;;;;\n#define B " + "A " * 100 + "\n"
    return kernel("B " * (count // 1200), tens)


def trips(count: int, _: Path) -> object:
    """A loop written out: so many instructions in all."""
    return kernel("m += n; " * (count - 2))


CASES = {
    "elements of an array of C": Case(code.MOST_ELEMENTS, lambda n, _: kernel(f"__local__ int x[2][{n // 2}];"),
                                      "an array of 4098 elements exceeds the limit of 4096", "4,096 elements", step=2),
    "characters of a kernel in C": Case(source_text.MOST_BYTES, kernel_of_characters, "524288 characters",
                                        "524,288 characters"),
    "headers of C": Case(source_text.MOST_INCLUDES, headers, "more than 32 deep", "32 headers"),
    "brackets of C": Case(source_text.MOST_NESTED, lambda n, _: kernel(f"m = {'(' * (n - 1)}n{')' * (n - 1)};"),
                          "more than 100 levels deep", "100 deep"),
    "tree of C": Case(source_text.MOST_DEEP, lambda n, _: kernel(f"m = {'n + ' * (n - 4)}n;"),
                      "nested more than 300 levels deep", "300 deep"),
    "tokens of macros": Case(source_text.MOST_EXPANDED, expanded, "more than 100000 tokens", "100,000 tokens",
                             step=1200),
    "instructions of C": Case(code.MOST_INSTRUCTIONS, trips, "more than 4000 instructions", "4,000 instructions"),
    "bytes": Case(1000, of_size, "--max-file-bytes 1001", f"{reading.MAX_TEXT_BYTES >> 20} MiB"),
    "statements": Case(20, statements, "--max-statements", f"{run_limits.MAX_STATEMENTS:,}"),
    "nesting": Case(64, nested, "nested more than 64 levels deep", "64 regions"),
    "calls": Case(64, called, "calls are nested more than 64 levels deep", "64 calls"),
    "characters of a number": Case(400, constant, "too long", "400 characters"),
    "characters of an immediate": Case(64, immediate, "at most 64 characters", "64 characters"),
    "lanes": Case(1 << 16, lambda n, _: lanes(n), "1 to 65536", "65,536 lanes"),
    "bytes of a description": Case(
        csv_tables.MOST_BYTES, lambda n, f: target_of(f, "", n), "limit of 1048576 bytes", "1 MiB"
    ),
    "depth of a description": Case(
        24, lambda n, f: csv_tables.read_toml(written(f, "t.toml", "x = " + "[" * n + "]" * n + "\n")),
        "more than 24 deep", "24 levels",
    ),
    "digits of a fact": Case(
        40, lambda n, f: csv_tables.read_toml(written(f, "t.toml", f"x = {'1' * 20}.{'1' * (n - 21)}\n")),
        "more than 40 digits", "40 characters",
    ),
    "exponent of a fact": Case(
        30, lambda n, f: csv_tables.read_toml(written(f, "t.toml", f"x = 1e{n}\n")), "outside -30 .. 30", "10^30"
    ),
    "whole number of a description": Case(
        2**63 - 1, lambda n, f: csv_tables.read_toml(written(f, "t.toml", f"x = {n}\n")), "does not fit into 64 bits",
        "64 bits",
    ),
    "bases": Case(16, bases, "more than 16 descriptions", "16 descriptions"),
    "digits of a cell": Case(18, lambda n, f: cast_table(f, n), "more than 18 digits", "18 digits"),
    "digits of a measurement": Case(18, measurements, "too long for a number", "18 digits"),
    "header of an array": Case(input_data.MAX_HEADER_BYTES, array_header, "10000 are read", "10,000 bytes"),
    "bytes of a lookup table": Case(1 << 20, lookup, "more than 1048576 bytes", "1 MiB"),
    "rank of a tensor": Case(32, dimensions, "up to 32", "32 dimensions"),
    "elements of a tensor of a graph": Case(
        2**62, lambda n, _: tensor(f"tensor<{n >> 31}x{1 << 31}xf32>"), "fewer than 2^63", "2^63", step=2**62
    ),
    "characters of an expression": Case(400, expression, "longer than 400 characters", "400 characters"),
    "number in an expression": Case(2**63 - 1, whole_number, "wider than 63 bits", "63 bits"),
    "values of a list": Case(value_expressions.MOST, values, "more than 100000 values", "100,000 values"),
    "points of a search": Case(
        tuning_candidates.MOST_POINTS, choices, "more than 1000000", "1,000,000 points", step=1000
    ),
    "values of a key": Case(
        axes.MOST_VALUES, lambda n, f: specified(f, f"rows = {{ from = 1, to = {n} }}\n"), "more than 10000000",
        "10,000,000 values",
    ),
    "points of a sweep": Case(
        sweep_specification.MOST_POINTS,
        lambda n, f: specified(f, f"rows = {{ from = 1, to = {n // 1000} }}\nrow_stride = {{ from = 1, to = 1000 }}\n"),
        "more than 1000000000", "1,000,000,000 points", step=1000,
    ),
    "extent of a sweep": Case(1 << 28, lambda n, f: specified(f, f"rows = {n}\n"), "up to 268435456", "268,435,456"),
    "exclusions": Case(
        1000, lambda n, f: specified(f, "rows = 8\n" + '[[exclude]]\nwhere = "rows > 9"\n' * n),
        "more than 1000 tables", "1,000 tables",
    ),
    "message of a debugger": Case(16 << 20, lambda n, _: message(n), "up to 16777216", "16 MiB"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_largest_is_read_and_one_more_is_refused_with_the_limit(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    case.read(case.limit, tmp_path)
    with pytest.raises(CastsimError) as caught:
        case.read(case.limit + case.step, tmp_path)
    assert case.says in caught.value.render()
    assert caught.value.exit_code in (1, 2)


@pytest.mark.parametrize("name", CASES)
def test_the_page_tells_the_limit(name: str) -> None:
    limits_of_page = PAGE[PAGE.index("## Limits") :]
    assert CASES[name].fact in limits_of_page
