"""What `castsim lsp` answers on names: definition, rename, outline, colours, signatures; and how it formats."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator

import pytest
from kit.lsp_client import Editor, applied, session, uri
from kit.paths import PROGRAMS
from lsprotocol import types as lsp
from pycparser import CParser, c_ast
from pygls.exceptions import JsonRpcException

from castsim.isa.errors import ReadError
from castsim.isa.pto import pto_parser
from castsim.isa.pto import statement_reader as reader
from castsim.isa.tpc.parser import has_virtual_registers, parse
from castsim.isa.tpc.program import GROUPED, Immediate, LabelUse, Register
from castsim.machines.vliw import chosen_target
from castsim.tools.editor.actions import formatted
from castsim.tools.editor.completion import shown, signatures
from castsim.tools.editor.navigation import LEGEND, CIndex, _edit, _packed
from castsim.tools.editor.program_slice import EditedText, Settings
from castsim.tools.editor.symbols import AssemblyIndex, SymbolKind, TileIndex
from castsim.tools.tpc_compiler.c_language import names_in

TILES, ASSEMBLY = sorted(PROGRAMS.rglob("*.pto")), sorted(PROGRAMS.rglob("*.tpc"))
KERNELS = sorted((PROGRAMS / "tpc_c").glob("*.c"))
SAMPLE = {
    "tile": PROGRAMS / "f32_to_f16_pipelined.pto",
    "micro": PROGRAMS / "micro" / "masked_tail.pto",
    "tpc": PROGRAMS / "tpc_f32_i16_quantise_gaudi2.tpc",
    "c": PROGRAMS / "tpc_c" / "cast_f32_bf16.c",
}

# -------------------------------------------------------------------------------- the index against the readers


def place(text: str, offset: int) -> tuple[int, int]:
    """Return line and column, from 1, of an offset."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def test_the_index_resolves_values_as_the_reader_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader's scope is asked for every use; where it finds the definition, the index has to."""
    uses: set[tuple[int, int]] = set()
    find = reader.NameScope.find

    def noted(self: reader.NameScope, name: str, start: int) -> reader.Definition:
        found = find(self, name, start)
        uses.add((start, found.start))
        return found

    monkeypatch.setattr(reader.NameScope, "find", noted)
    monkeypatch.setattr(reader.NameScope, "are", lambda *_: False)  # no short cuts around `find`
    monkeypatch.setattr(reader.NameScope, "defined", lambda *_: None)
    count = 0
    for path in TILES:
        uses.clear()
        text = path.read_text(encoding="utf-8")
        pto_parser.parse(text)
        index = TileIndex(text.split("\n"))
        for use, definition in uses:
            symbol = index.symbol_at(*place(text, use))
            assert symbol is not None, (path.name, place(text, use))
            assert [(one.line, one.column) for one in symbol.definitions] == [place(text, definition)], path.name
            assert place(text, use) in [(one.line, one.column) for one in symbol.occurrences], path.name
            count += 1
    assert count > 3000


KERNEL = """\
/* a comment
 over lines */ __local__ float64 table[4];
#define TWICE(a) ((a) + (a))
enum mode { SLOW, FAST = 3 };
typedef struct { float64 a, b; int n[2]; } pair_of;
struct of_tag { int q; };
static inline float64 helper(float64 a, int n);
float64 helper(float64 a,
               int n)
{
    if (n > 0) { int n = 3; a = a * n; }
    else a = -a;
    for (int i = 0, k = 2; i < n; i++)
        for (int j = 0; j < i; ++j)
            a += j * k;
    int i = n, *p = &i, q[3] = {1, 2, i}; unsigned int z = FAST;
    pair_of two = {a, a}; two.a = a; struct of_tag s; s.q = (int)two.n[0];
    do { int w = i; } while (i-- > 0);
    switch (i) { case SLOW: i = 1; break; default: { int v = 2; i = v; } }
    return a;
}
void main(tensor x) {
    for (int d = 0; d < 4; d++) { float64 v = helper(table[d], d); }
    if (1) for (int e = 0; e < 2; e++) if (e) table[e] = 0; else table[0] = e;
    int e = 3, f;
    f = e;
}
"""


def of_c(text: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield the place of each use of a name that a kernel declares, and that of its declaration, as pycparser reads it.

    Of functions and labels of a type only the names of variables are followed.
    """
    plain = re.sub(r"/\*.*?\*/|(?://|#)[^\n]*", lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.DOTALL)
    plain = re.sub(r"__(?:local|global)__|inline", lambda found: " " * len(found[0]), plain)
    types = "".join(f"typedef int {name};" for name in names_in(plain))
    scopes: list[dict[str, tuple[int, int]]] = [{}]

    def walk(node: c_ast.Node) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        if isinstance(node, c_ast.ID):
            declared = next((one[node.name] for one in reversed(scopes) if node.name in one), None)
            if declared is not None:
                yield (node.coord.line, node.coord.column), declared
            return
        if isinstance(node, c_ast.Struct | c_ast.StructRef):
            yield from walk(node.name) if isinstance(node, c_ast.StructRef) else ()
            return
        own = isinstance(node, c_ast.FuncDef | c_ast.For | c_ast.Compound)
        scopes.extend([{}] * own)
        if isinstance(node, c_ast.FuncDef):
            for one in node.decl.type.args.params:
                scopes[-1] = {**scopes[-1], one.name: (one.coord.line, one.coord.column)}
            yield from walk(node.body)
        else:
            if isinstance(node, c_ast.Enumerator) or (isinstance(node, c_ast.Decl) and node.name):
                if isinstance(getattr(node, "type", None), c_ast.FuncDecl):
                    return
                scopes[-1] = {**scopes[-1], node.name: (node.coord.line, node.coord.column)}
            for _, each in node.children():
                yield from walk(each)
        if own:
            scopes.pop()

    yield from walk(CParser().parse(f'{types}\n#line 1 "k.c"\n{plain}', "k.c"))


def test_the_index_of_c_resolves_names_as_pycparser_does() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in KERNELS} | {"all its forms": KERNEL}
    count = 0
    for name, text in texts.items():
        lines = text.split("\n")
        index = CIndex(lines)
        for use, definition in of_c(text):
            assert [(one.line, one.column) for one in index.definitions_for(*use)] == [definition], (name, use)
            count += 1
        for number in range(len(lines)):  # while a line is typed
            spoilt = [*lines[:number], lines[number][: len(lines[number]) // 2], *lines[number + 1 :]]
            later, fresh = CIndex(spoilt, index), CIndex(spoilt)
            for line in range(len(lines)):
                assert [one for one, _ in later.items(line)] == [one for one, _ in fresh.items(line)], (name, number)
    assert count > 300
    macro = CIndex(KERNEL.split("\n")).symbol_at(3, KERNEL.split("\n")[2].index("a) (") + 1)
    assert macro is not None and [one.column for one in macro.occurrences] == [15, 20, 26]


def registers_of(operand: Register) -> list[str]:
    whole, many = GROUPED.get(operand.file, (operand.file, 1))
    return [f"{whole}{operand.index + n}" for n in range(many)]


def test_the_index_names_registers_labels_and_tensors_as_the_reader_does() -> None:
    count = 0
    for path in ASSEMBLY:
        text = path.read_text(encoding="utf-8")
        if has_virtual_registers(text):
            continue
        index = AssemblyIndex(text.split("\n"))
        for bundle in parse(text, chosen_target(text, path.name, None).dialect).bundles:
            wanted: Counter[tuple[str, bool]] = Counter()
            for instruction in filter(None, bundle.slots):
                for spec, operand in zip(instruction.form.operands, instruction.operands, strict=True):
                    if isinstance(operand, Register):
                        wanted.update((name, spec.role == "dest") for name in registers_of(operand))
                    elif isinstance(operand, LabelUse):
                        wanted[operand.name, False] += 1
                    elif isinstance(operand, Immediate) and spec.role == "tensor":
                        wanted[f"tensor {operand.value}", False] += 1
                if instruction.predicate is not None:
                    wanted[str(instruction.predicate.register), False] += 1
            items = index.lines[bundle.span.line - 1].items
            got = Counter(
                (one.name, one.defines) for one in items if one.kind is not SymbolKind.LABEL or not one.defines
            )
            assert got == wanted, (path.name, bundle.span.line)
            count += 1
    assert count > 800


def test_an_index_made_of_an_earlier_one_is_as_one_made_anew() -> None:
    for path, make in ((SAMPLE["tile"], TileIndex), (SAMPLE["micro"], TileIndex), (SAMPLE["tpc"], AssemblyIndex)):
        lines = path.read_text(encoding="utf-8").split("\n")
        index = make(lines)
        for number in range(len(lines)):
            spoilt = [*lines[:number], lines[number][: len(lines[number]) // 2], *lines[number + 1 :]]
            index = make(spoilt, index)
            fresh = make(spoilt)
            for line in range(len(lines)):
                got, wanted = [[item for item, _ in one.items(line)] for one in (index, fresh)]
                assert got == wanted, (path.name, number, line)


def test_what_reaches_a_register_comes_from_above_and_around_the_loop() -> None:
    text = [
        "nop; mov.i32 S1, 0x0; mov.f32 V1, 0x0; nop",
        "nop; loop 0, 8, 1, <, End; nop; nop",
        "nop; nop; add.f32 V2, V1, V3; nop",
        "nop; nop; mov.f32 V1, V2; nop",
        "End:",
        "nop; nop; mov.f32 V4, V1; nop",
    ]
    index = AssemblyIndex(text)

    def lines(number: int, word: str) -> list[int]:
        return [one.line for one in index.definitions_for(number, text[number - 1].index(word) + 1)]

    assert lines(3, "V1") == [1, 4]
    assert lines(6, "V1") == [4]
    assert lines(3, "V2") == [3]
    assert lines(2, "End") == [5]


# ------------------------------------------------------------------------------------------- through a client

QUESTIONS = [
    # sample, text at the cursor, lines of the definitions, lines of all occurrences
    ("tile", "%r0, %half : index", [25], [25, 26, 27, 29]),
    ("tile", "%slim1 : !pto.tile_buf<vec, 16x512xf16>)\n      pto.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID1>]", [20],
     [20, 44, 51]),
    ("tile", "@f32_to_f16_pipelined(", [4], [4]),
    ("micro", "%left : i32", [20], [20, 21]),
    ("micro", "%rest : i32", [21], [21, 25]),
    ("micro", "%ux[%i]", [14], [14, 16, 22]),
    ("tpc", "End; nop", [31], [9, 31]),
    ("tpc", "V1, S0; nop", [15], [15, 19]),
    ("tpc", "0x1, I1, V4", [5], [5, 26]),
    ("c", "at[0] += 64", [11], [11, 13, 14, 15, 16, 17]), ("c", "pair.v2", [12], [12, 13, 15, 17]),
    ("c", "y)", [3], [3, 17]),
]  # fmt: skip


def position(text: str, word: str) -> lsp.Position:
    line, column = place(text, text.index(word))
    return lsp.Position(line - 1, column)  # behind the first character


def test_definition_references_and_highlight() -> None:
    async def work(one: Editor) -> None:
        client = one.client
        for sample in SAMPLE.values():
            one.open(sample.as_uri(), sample.read_text(encoding="utf-8"))
        for name, word, definitions, lines in QUESTIONS:
            text, document = SAMPLE[name].read_text(encoding="utf-8"), lsp.TextDocumentIdentifier(SAMPLE[name].as_uri())
            at = position(text, word)
            found = await client.text_document_definition_async(lsp.DefinitionParams(document, at))
            assert [each.range.start.line + 1 for each in found] == definitions, word  # type: ignore[union-attr]
            for declared, wanted in ((True, lines), (False, [line for line in lines if line not in definitions])):
                context = lsp.ReferenceContext(include_declaration=declared)
                used = await client.text_document_references_async(lsp.ReferenceParams(context, document, at))
                assert [each.range.start.line + 1 for each in used or ()] == wanted, word
            shown = await client.text_document_document_highlight_async(lsp.DocumentHighlightParams(document, at))
            writes = [each.range.start.line + 1 for each in shown or () if each.kind == lsp.DocumentHighlightKind.Write]
            assert writes == definitions, word

    session(work)


TEN = """func.func @k(%n: index) {
  %c1 = arith.constant 1 : index
  %a = arith.addi %c1, %c1 : index
  scf.for %i = %c1 to %n step %c1 {
    %b = arith.addi %i, %c1 : index
    %d = arith.muli %b, %c1 : index
    %e = arith.addi %c1, %d : index
    %f = arith.addi %c1, %e : index
    %g = arith.addi %f, %c1 : index
  }
  return
}
func.func @other() {
  %c1 = arith.constant 2 : index
  return
}
"""


def test_rename() -> None:

    async def work(one: Editor) -> None:
        client = one.client
        assembly = SAMPLE["tpc"].read_text(encoding="utf-8")
        one.open(uri("ten.pto"), TEN)
        one.open(uri("t.tpc"), assembly)
        kernel = SAMPLE["c"].read_text(encoding="utf-8")
        one.open(uri("k.c"), kernel)

        async def renamed(name: str, text: str, word: str, new: str) -> str:
            document, at = lsp.TextDocumentIdentifier(uri(name)), position(text, word)
            place = await client.text_document_prepare_rename_async(lsp.PrepareRenameParams(document, at))
            assert isinstance(place, lsp.Range)
            edit = await client.text_document_rename_async(lsp.RenameParams(document, at, new))
            assert edit is not None and edit.changes is not None
            return applied(text, [*edit.changes[uri(name)]])

        first, second = TEN.split("func.func @other")
        assert first.count("%c1") == 10
        wanted = first.replace("%c1", "%one") + "func.func @other" + second
        for new in ("one", "%one"):
            assert await renamed("ten.pto", TEN, "%c1, %d", new) == wanted
        assert await renamed("ten.pto", TEN, "%i,", "row") == TEN.replace("%i ", "%row ").replace("%i,", "%row,")
        assert await renamed("t.tpc", assembly, "V1, S0", "v30") == assembly.replace("V1,", "V30,")
        assert await renamed("t.tpc", assembly, "End;", "done") == assembly.replace("End", "done")
        assert await renamed("t.tpc", assembly, "x in f32", "source") == assembly.replace("x in f32", "source in f32")
        assert await renamed("k.c", kernel, "row}", "line") == kernel.replace("row", "line")
        for name, text, word, new, said in (
            ("ten.pto", TEN, "arith.addi", "x", "a keyword"),
            ("ten.pto", TEN, "%c1, %d", "n", "already exists in line 1"),
            ("ten.pto", TEN, "%c1, %d", "b", "already exists in line 5"),
            ("ten.pto", TEN, "%b, %c1", "a b", "cannot be a name"),
            ("t.tpc", assembly, "mul.f32", "x", "a keyword"),
            ("t.tpc", assembly, "V1, S0", "V4", "already exists in line"),
            ("t.tpc", assembly, "V1, S0", "S7", "not in the same register file as V1"),
            ("t.tpc", assembly, "0x1, I1, V4", "x", "by number"),
            ("k.c", kernel, "row}", "float64", "cannot be a name"),
            ("k.c", kernel, "row}", "column", "already exists in line 9"),
            ("k.c", kernel, "get_index_space_offset", "x", "is not defined"),
        ):
            document, at = lsp.TextDocumentIdentifier(uri(name)), position(text, word)
            with pytest.raises(JsonRpcException, match=said):
                await client.text_document_rename_async(lsp.RenameParams(document, at, new))
        undefined = TEN.replace("%d, ", "%nope, ").replace("%c1, %d", "%c1, %nope")
        one.change(uri("ten.pto"), None, undefined)
        with pytest.raises(JsonRpcException, match="%nope is not defined"):
            asked = lsp.PrepareRenameParams(lsp.TextDocumentIdentifier(uri("ten.pto")), position(undefined, "%nope"))
            await client.text_document_prepare_rename_async(asked)

    session(work)


OUTLINES = {
    "tile": ["@f32_to_f16_pipelined", "  %src", "  %dst", "  %vsrc", "  %vdst", "  %wide0", "  %wide1", "  %slim0",
             "  %slim1", "  scf.for %r0 = %c0 to %rows step %step"],
    "micro": ["@masked_tail", "  %x", "  %y", "  %ux", "  %uy", "  pto.vecscope",
              "    %end = scf.for %i = %c0 to %n step %step iter_args(%left = %"],
    "tpc": ["x", "y", "S0", "I0", "I1", "loop 0, 8, 1, <, End", "End"],
    "c": ["main", "  x", "  y"],
}  # fmt: skip
FOLDS = {"tile": {(3, 60), (4, 59), (25, 52)}, "micro": {(3, 33), (4, 32), (19, 26), (20, 25)}, "tpc": {(9, 30)},
         "c": {(3, 19), (7, 18), (9, 17)}}  # fmt: skip


def names(found: object, indent: str = "") -> list[str]:
    return [
        text
        for one in found or ()  # type: ignore[attr-defined]
        for text in (f"{indent}{one.name}", *names(one.children, indent + "  "))
    ]


def test_outline_folding_workspace_and_colours() -> None:
    async def work(one: Editor) -> None:
        client = one.client
        for sample in SAMPLE.values():
            one.open(sample.as_uri(), sample.read_text(encoding="utf-8"))
        for name, path in SAMPLE.items():
            document, lines = lsp.TextDocumentIdentifier(path.as_uri()), path.read_text(encoding="utf-8").split("\n")
            outline = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document))
            assert names(outline) == OUTLINES[name]
            folds = await client.text_document_folding_range_async(lsp.FoldingRangeParams(document))
            blocks = {(each.start_line + 1, each.end_line + 1) for each in folds or () if each.kind is None}
            assert blocks == FOLDS[name]
            colours = await client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(document))
            words = decoded([*colours.data], lines)
            assert COLOURED[name] <= words.items()
            # an edit changes what is sent of them in one piece
            one.change(path.as_uri(), lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0)), "// new\n")
            asked = lsp.SemanticTokensDeltaParams(document, colours.result_id or "")
            delta = await client.text_document_semantic_tokens_full_delta_async(asked)
            assert isinstance(delta, lsp.SemanticTokensDelta)
            data = [*colours.data]
            for edit in delta.edits:
                data[edit.start : edit.start + edit.delete_count] = edit.data or []
            whole = await client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(document))
            assert whole is not None and data == [*whole.data] and len(delta.edits) == 1
        found = await client.workspace_symbol_async(lsp.WorkspaceSymbolParams("MASKED"))
        assert [each.name for each in found or ()] == ["@masked_tail"]

    session(work)


COLOURED = {
    "tile": {((4, "%src"), ("parameter", 1)), ((15, "%src"), ("parameter", 0)), ((17, "%wide0"), ("variable", 1)),
             ((44, "pto.tcvt"), ("function", 0)), ((44, "!pto.tile_buf<vec, 16x512xf32>"), ("type", 0)),
             ((44, "#pto<round_mode ODD>"), ("enumMember", 0))},
    "micro": {((20, "%left"), ("variable", 1)), ((22, "pto.vlds"), ("function", 0)), ((23, '"Z"'), ("string", 0))},
    "tpc": {((15, "V1"), ("variable", 1)), ((19, "V1"), ("variable", 0)), ((9, "loop"), ("function", 0)),
            ((31, "End"), ("label", 1)), ((21, "rhne"), ("enumMember", 0)), ((11, "0x0"), ("number", 0))},
    "c": {((3, "void"), ("type", 0)), ((3, "x"), ("variable", 1)), ((7, "for"), ("keyword", 0)),
          ((11, "int5"), ("type", 0)), ((13, "v_f32_ld_tnsr_b"), ("function", 0)),
          ((17, "SW_RHNE"), ("enumMember", 0))},
}  # fmt: skip


def decoded(data: list[int], lines: list[str]) -> dict[tuple[int, str], tuple[str, int]]:
    """Return colour and modifiers by line and word, as the legend names them."""
    found, line, start = {}, 0, 0
    for place in range(0, len(data), 5):
        down, right, length, kind, modifiers = data[place : place + 5]
        line, start = line + down, right + (0 if down else start)
        found[line + 1, lines[line][start : start + length]] = str(LEGEND.token_types[kind]), modifiers
    return found


def test_an_edit_of_colours_turns_the_old_ones_into_the_new() -> None:
    words: list[list[int]] = [[], [0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11, 0, 0, 0, 0, 1]]
    chosen = random.Random(1)
    for _ in range(2000):
        old = [chosen.choice(words) for _ in range(chosen.randrange(7))]
        new = [*old[: chosen.randrange(len(old) + 1)], *chosen.choices(words, k=chosen.randrange(3)), *old[-2:]]
        data, edit = _packed(old, 0, 0), _edit(old, new)
        if edit is not None:
            data[edit.start : edit.start + edit.delete_count] = edit.data or []
        assert data == _packed(new, 0, 0), (old, new)


# ------------------------------------------------------------------------------------------- signatures, format

SIGNATURES = [
    ("k.pto", "    pto.tadd ins(%a, ", "pto.tadd ins(%tile, %tile) outs(%tile)", "%tile", 1),
    ("k.pto", "    pto.tadd ins(%a, %b : T, T) outs(%", "pto.tadd ins(%tile, %tile) outs(%tile)", "%tile", 2),
    ("k.pto", "    pto.tsel ins(%m, %a, %b, ", "pto.tsel ins(%mask, %tile, %tile, %tmp) outs(%tile)", "%tmp", 3),
    ("k.pto", "    %v = pto.vadd %a, %b, ", "%r = pto.vadd %a, %b, %c : ", "%c", 2),
    ("k.pto", "    pto.vsts %h, %uy[%i], ", "pto.vsts %a, %b[%c], %d", "%d", 3),
    ("k.pto", "    pto.set_flag[<PIPE_V>, ", "pto.set_flag[<producer>", "<consumer>", 1),
    ("k.tpc", "nop; nop; mul.f32 V2, ", "mul.TYPE V, V, V|S|imm", "V", 1),
    ("k.tpc", "nop; add.i32 b00010 I0, ", "add.TYPE mask, I, I|S|imm, I", "I|S|imm", 2),
]


@pytest.mark.parametrize(("name", "typed", "label", "operand", "active"), SIGNATURES)
def test_signatures_tell_which_operand_is_typed(name: str, typed: str, label: str, operand: str, active: int) -> None:
    head = "// castsim: target gaudi2\n" if name.endswith("tpc") else "func.func @k() {\n"
    found = signatures(EditedText(name, name[2:], head + typed), 2, len(typed) + 1, Settings())
    (own,) = [one for one in found if one.label.startswith(label)]
    start, end = own.parameters[own.active]
    assert (own.active, own.label[start:end]) == (active, operand)
    assert found[shown(found)].active < len(found[shown(found)].parameters)


def comments(text: str) -> list[str]:
    return [line[line.index("//") :].rstrip() for line in text.split("\n") if "//" in line]


def test_formatting_keeps_programs_and_comments() -> None:
    for path in (*TILES, *ASSEMBLY):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".tpc" and has_virtual_registers(text):
            continue
        language = path.suffix[1:]
        found = formatted(EditedText(path.name, language, text), Settings())
        assert comments(found) == comments(text), path.name
        wild = "\n".join(f"{' ' * (n % 7)}{line.strip()} " for n, line in enumerate(found.split("\n")))
        if language == "pto":
            assert pto_parser.parse(found) == pto_parser.parse(text), path.name
            assert formatted(EditedText(path.name, language, wild), Settings()) == found, path.name


def test_formatting_gathers_statements_and_refuses_what_it_cannot_read() -> None:
    ragged = """func.func @k(%n: index) {
      %c1 = arith.constant   1 : index // one
  %t = pto.alloc_tile
       : !pto.tile_buf<vec, 16x64xf32>
  scf.for %i = %c1   to %n step %c1 {
  // inside
  pto.texp ins(%t : !pto.tile_buf<vec, 16x64xf32>)
    outs(%t : !pto.tile_buf<vec, 16x64xf32>)
  } return
}"""
    assert (
        formatted(EditedText("k.pto", "pto", ragged.replace("} return", "}\n return")), Settings())
        == """func.func @k(%n: index) {
  %c1 = arith.constant 1 : index  // one
  %t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
  scf.for %i = %c1 to %n step %c1 {
    // inside
    pto.texp ins(%t : !pto.tile_buf<vec, 16x64xf32>) outs(%t : !pto.tile_buf<vec, 16x64xf32>)
  }
  return
}"""
    )
    for name, text in (
        ("k.pto", ragged.replace("arith.constant", "arith.konstant")),
        ("k.tpc", "// castsim: target gaudi2\nnop; nopp"),
        ("k.c", "void main() {}"),
    ):
        with pytest.raises(ReadError):
            formatted(EditedText(name, name[2:], text), Settings())

    async def refused(one: Editor) -> str:
        one.open(uri("k.pto"), ragged.replace("arith.constant", "arith.konstant"))
        document = lsp.TextDocumentIdentifier(uri("k.pto"))
        with pytest.raises(JsonRpcException) as error:
            options = lsp.FormattingOptions(tab_size=2, insert_spaces=True)
            await one.client.text_document_formatting_async(lsp.DocumentFormattingParams(document, options))
        return str(error.value)

    assert "line 2: unknown operation 'arith.konstant'" in session(refused)
