"""The readers that are fuzzed: how each takes bytes, what must hold of what it has read, its seeds and its modules.

A new reader is a row of `READERS`, and a grammar in `grammars` if it has one.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from zlib import crc32

from castsim.isa.errors import CastsimError
from fuzz import assembly_grammar, file_grammar, graph_grammar, seeds, study_grammar, study_readers, tile_grammar
from fuzz.study_readers import file

Grammar = Callable[[Random], bytes]
ROOT = seeds.ROOT


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader under test.

    `modules` are patterns of the files whose lines count as its coverage. `placed`: every refusal has a place.
    """

    read: Callable[[bytes], None]
    seeds: Callable[[], tuple[bytes, ...]]
    grammar: Grammar
    modules: tuple[str, ...]
    text: bool = True
    placed: bool = False


def _text(data: bytes, name: str) -> str:
    """Return what a reader of text files gets: not every input is text."""
    from castsim.isa.reading import read_text  # noqa: PLC0415 - only for text

    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return read_text(file(name, data), "program")


def read_tiles(data: bytes) -> None:
    """Parse, and what is printed is read as the same program."""
    from castsim.isa.pto.pto_parser import parse  # noqa: PLC0415
    from castsim.isa.pto.pto_printer import print_program  # noqa: PLC0415

    program = parse(_text(data, "k.pto"), "k.pto")
    printed = print_program(program)
    again = parse(printed, "k.pto")
    assert again == program, "printing and reading gives another program"
    assert print_program(again) == printed, "printing is not idempotent"


def check_tiles(data: bytes) -> None:
    """All that `castsim check` does with a `.pto` text: reading, walking, lowering."""
    from castsim.tools.check.checking import check_text  # noqa: PLC0415

    for finding in check_text("k.pto", _text(data, "k.pto")):
        assert finding.message


def read_assembly(data: bytes) -> None:
    """Parse in the language of the newest generation; the canonical text is its own canonical text."""
    from castsim.isa.tpc.parser import canonical_text, parse, print_program  # noqa: PLC0415

    language = assembly_grammar.dialect_of(data)
    text = _text(data, "k.tpc")
    program = parse(text, language)
    printed = print_program(program)
    assert parse(printed, language) == program, "printing and reading gives another program"
    assert canonical_text(canonical_text(text, language), language) == canonical_text(text, language)


def read_binary(data: bytes) -> None:
    """Disassemble; the text assembles to the same bytes."""
    from castsim.isa.tpc.parser import parse  # noqa: PLC0415
    from castsim.tools.tpc_binary.assembler import assemble, disassemble, program_bytes  # noqa: PLC0415

    names = assembly_grammar.GENERATIONS
    name = "gaudi2" if data[:4] == b"\x7fELF" else names[crc32(data) % len(names)]
    target, encoding = assembly_grammar.encoded(name)
    code = program_bytes(data, tuple(encoding.machines))
    text = disassemble(code, encoding).text()
    try:
        again = assemble(parse(text, target.dialect), encoding).code
    except CastsimError as error:
        raise AssertionError(f"what was disassembled does not assemble: {error.message}") from error
    assert again == code, "what was disassembled assembles to other bytes"


def read_onnx(data: bytes) -> None:
    """Read a model."""
    from castsim.tools.graphs.onnx_reader import read_onnx as read  # noqa: PLC0415

    read(file("m.onnx", data))  # what goes wrong is raised


def read_tosa(data: bytes) -> None:
    """Read a graph."""
    from castsim.tools.graphs.tosa_reader import read_tosa as read  # noqa: PLC0415

    read(_text(data, "m.mlir"), Path("m.mlir"))  # what goes wrong is raised


def read_target(data: bytes) -> None:
    """Load a description of a target."""
    from castsim.targets.loader import load_target  # noqa: PLC0415

    assert load_target(file("t.toml", data)).name


def read_npy(data: bytes) -> None:
    """Map an array, and take its bytes as an input."""
    from castsim.execution.input_data import input_bytes, read_array  # noqa: PLC0415
    from castsim.isa.formats import FORMATS  # noqa: PLC0415

    array = read_array(file("x.npy", data), "x")
    array.tobytes()  # every element is read
    for name in ("f32", "i8"):
        with suppress(CastsimError):
            input_bytes(array, "x", FORMATS[name])


def read_fragment(data: bytes) -> None:
    """Read what `run -e` takes; the program it stands for is read as well."""
    from castsim.isa.pto.pto_parser import parse  # noqa: PLC0415
    from castsim.languages.fragments.fragments import whole  # noqa: PLC0415
    from castsim.targets.loader import load_target  # noqa: PLC0415

    found = whole(_text(data, "e"), load_target(("a5", "a2a3")[len(data) % 2]))
    parse(found.source.text, "e")


def read_record(data: bytes) -> None:
    """Read a record of proofs, of numbers as well as of lowerings; what is read can be written and read again."""
    from castsim.tools.verify.lowering import LoweringRecord  # noqa: PLC0415
    from castsim.tools.verify.running import VerificationRecord  # noqa: PLC0415

    path = file("r.json", data)
    kind = LoweringRecord if b'"castsim lowering record"' in data else VerificationRecord
    found = kind.load(path)
    again = kind.of_document(json.loads(found.text()))
    assert again.text() == found.text()


def read_result(data: bytes) -> None:
    """Read the result of a run as a side of `castsim diff`; it does not differ from itself."""
    from castsim.tools.diff.comparing import difference_document, recorded_side  # noqa: PLC0415
    from castsim.tools.diff.differences import difference  # noqa: PLC0415

    for values in (False, True):
        side = recorded_side(data, "r.json", values=values)
        found = difference(side, side)
        assert found.cycles_a == found.cycles_b
        json.dumps(difference_document(found), allow_nan=False)


def read_messages(data: bytes) -> None:
    """Read messages of a debugger's client until they end."""
    from castsim.tools.debugger.debug_adapter import Channel  # noqa: PLC0415

    messages = Channel(io.BytesIO(data), io.BytesIO())
    while messages.receive() is not None:
        pass


def read_csv(data: bytes) -> None:
    """Read a table of observed differences."""
    from castsim.targets.loader import load_target  # noqa: PLC0415

    file("rows.csv", data)
    load_target(file("table.toml", file_grammar.TABLE_TARGET))


_PTO, _TPC, _SWEEPS = "isa/pto", "isa/tpc", "simulator/tools/sweep"
_EXECUTION, _GRAPHS = "simulator/execution", "simulator/tools/graphs"
_MICRO = tuple(f"simulator/execution/interpreter/{name}.py" for name in ("micro_interpreter", "vector_unit"))
READERS: dict[str, Reader] = {
    "tile": Reader(read_tiles, lambda: seeds.files(".pto"), tile_grammar.tile, (f"{_PTO}/*.py",)),
    "tile-checked": Reader(
        check_tiles, lambda: seeds.files(".pto"), tile_grammar.tile,
        ("simulator/tools/check/checking.py", f"{_EXECUTION}/interpreter/*.py", "simulator/running/sync*/*.py"),
    ),
    "micro": Reader(read_tiles, seeds.micro, tile_grammar.micro, (f"{_PTO}/micro_*.py",)),
    "micro-checked": Reader(
        check_tiles, seeds.micro, tile_grammar.micro, (*_MICRO, f"{_PTO}/micro_*.py")
    ),
    "vmi": Reader(read_tiles, seeds.logical, tile_grammar.logical, ("simulator/languages/vmi/[co]*.py",)),
    "tpc": Reader(read_assembly, lambda: seeds.files(".tpc"), assembly_grammar.text, (f"{_TPC}/*.py",)),
    "binary": Reader(
        read_binary, seeds.binaries, assembly_grammar.binary,
        ("simulator/tools/tpc_binary/*.py",), text=False,
    ),
    "elf": Reader(
        read_binary, assembly_grammar.elf_seeds, assembly_grammar.elf,
        ("simulator/tools/tpc_binary/assembler.py",), text=False,
    ),
    "onnx": Reader(
        read_onnx, lambda: seeds.files(".onnx"), graph_grammar.onnx, (f"{_GRAPHS}/onnx_*.py",), text=False
    ),
    "tosa": Reader(read_tosa, lambda: seeds.files(".mlir"), graph_grammar.tosa, (f"{_GRAPHS}/tosa_*.py",)),
    "target": Reader(
        read_target, file_grammar.target_seeds, file_grammar.target,
        ("targets/loader.py", "targets/csv_tables.py", "targets/loader.py", "targets/description.py"),
    ),
    "table": Reader(
        read_csv, file_grammar.table_seeds, file_grammar.table, ("targets/csv_tables.py", "targets/tpc_compiler.py")
    ),
    "npy": Reader(read_npy, seeds.arrays, file_grammar.npy, ("simulator/execution/input_data.py",), text=False),
    "fragment": Reader(
        read_fragment, file_grammar.fragment_seeds, file_grammar.fragment,
        ("simulator/languages/fragments/fragments.py",),
    ),
    "record": Reader(
        read_record, seeds.records, file_grammar.record, ("simulator/tools/verify/running.py",
                                                          "simulator/tools/verify/lowering.py"),
    ),
    "result": Reader(
        read_result, seeds.results, file_grammar.result,
        ("simulator/tools/diff/comparing.py", "simulator/tools/diff/differences.py"),
    ),
    "trace": Reader(
        study_readers.read_trace, study_grammar.trace_seeds, study_grammar.trace,
        ("simulator/tools/traces/command.py",),
    ),
    "sweep": Reader(
        study_readers.read_sweep, study_grammar.sweep_seeds, study_grammar.sweep,
        (f"{_SWEEPS}/specification.py", f"{_SWEEPS}/points.py", "isa/value_expressions.py",
         "isa/value_expressions.py"),
    ),
    "sweep-rows": Reader(
        study_readers.read_rows, study_grammar.rows_seeds, study_grammar.rows,
        (f"{_SWEEPS}/points.py", f"{_SWEEPS}/results.py", "simulator/tools/sweep/page.py"),
        text=False,
    ),
    "sweep-ledger": Reader(
        study_readers.read_sweep_ledger, study_grammar.sweep_ledger_seeds, study_grammar.sweep_ledger,
        ("simulator/tools/distribution/distributing.py",), text=False,
    ),
    "tune-ledger": Reader(
        study_readers.read_tune_ledger, study_grammar.tune_ledger_seeds, study_grammar.tune_ledger,
        ("simulator/tools/tune/studies.py",), text=False,
    ),
    "measurements": Reader(
        study_readers.read_measurements, study_grammar.measurements_seeds, study_grammar.measurements,
        ("simulator/tools/accuracy/measured_rows.py",),
    ),
    "lookup-table": Reader(
        study_readers.read_lookup_table, lambda: (b"0,1,2,3,4,5,6,7", b"0x0\n" * 8), study_grammar.lookup_table,
        ("simulator/machines/vliw/lookup_tables.py",),
    ),
    "messages": Reader(
        read_messages, lambda: (b'Content-Length: 20\r\n\r\n{"seq": 1, "a": "bc"}',), file_grammar.messages,
        ("simulator/tools/debugger/debug_adapter.py",),
    ),
}  # fmt: skip
"""Every reader by its name."""
