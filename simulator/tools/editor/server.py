"""The language server: requests of a client, and the functions that answer them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from lsprotocol import types as lsp
from lsprotocol.types import Diagnostic, DiagnosticSeverity, Position, Range
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from castsim import __version__
from castsim.isa.dataclass import replace
from castsim.isa.errors import CastsimError, ReadError, Severity, legal_text
from castsim.tools.check.checking import Finding
from castsim.tools.editor.actions import Repair, formatted, repairs
from castsim.tools.editor.checker import Checker, Open
from castsim.tools.editor.completion import (
    OPERAND_TRIGGERS,
    TRIGGERS,
    CompletionItem,
    ShownSignature,
    completions,
    shown,
    signatures,
)
from castsim.tools.editor.hover import hover
from castsim.tools.editor.navigation import (
    LEGEND,
    Colours,
    Indexes,
    colours,
    folding,
    highlights,
    outline,
    range_of,
    renamable,
    renamed,
)
from castsim.tools.editor.program_slice import EditedText, Settings, TextPlaces, change, normalised
from castsim.tools.editor.symbols import SymbolIndex

if sys.platform == "linux":
    import fcntl

# Findings as the diagnostics of an editor.

SOURCE = "castsim"
"""Source that diagnostics name."""

MOST = 500
"""Maximum number of diagnostics shown for a text; errors come first."""

_SEVERITIES = {
    Severity.ERROR: DiagnosticSeverity.Error,
    Severity.WARNING: DiagnosticSeverity.Warning,
    Severity.NOTE: DiagnosticSeverity.Information,
}
_TOP = Range(Position(0, 0), Position(0, 0))


def diagnostics(findings: Sequence[Finding], places: TextPlaces) -> list[Diagnostic]:
    """Return findings as diagnostics; beyond `MOST`, the last one gives the number of those left out."""
    shown = findings
    if len(findings) > MOST:
        shown = sorted(findings, key=lambda one: list(_SEVERITIES).index(one.severity))[:MOST]
    found = [diagnostic(one, places) for one in shown]
    if len(findings) > MOST:
        text = f"{len(findings) - MOST:,} more findings; `castsim check` lists them"
        found.append(Diagnostic(_TOP, text, severity=DiagnosticSeverity.Information, source=SOURCE))
    return found


def diagnostic(found: Finding, places: TextPlaces) -> Diagnostic:
    """Return a finding as a diagnostic; a finding about the whole text is at its beginning."""
    message = found.message
    message += f"\nlegal: {legal_text(found.legal, found.message, found.span)}" if found.legal else ""
    message += f"\nhelp: {found.help}" if found.help else ""
    return Diagnostic(
        finding_range(found, places), message, severity=_SEVERITIES[found.severity], code=found.kind, source=SOURCE
    )


def finding_range(found: Finding, places: TextPlaces) -> Range:
    """Return the range of a finding."""
    if found.line is None or found.column is None:
        return _TOP
    return places.range(found.line, found.column, found.end_column or found.column + 1)


CHECKED = "castsim/checked"
"""Request with `{"uri": ...}`; answered when the last version of that text has been checked and timed completely."""

LANGUAGES = {".pto": "pto", ".tpc": "tpc", ".s": "tpc", ".c": "c"}
"""Languages by suffix; a text without a suffix is in the language that the client names."""

MOST_BYTES = 16 << 20
"""Maximum number of bytes of a message: far more than any kernel has, few enough to store several times."""

_LONGEST_HEADER = 4096
_WIDEST_PIPE = 1 << 20

_KINDS = {
    "operation": lsp.CompletionItemKind.Function,
    "type": lsp.CompletionItemKind.Struct,
    "mode": lsp.CompletionItemKind.EnumMember,
    "register": lsp.CompletionItemKind.Variable,
    "value": lsp.CompletionItemKind.Variable,
    "word": lsp.CompletionItemKind.Keyword,
}


class Refused(JsonRpcException):
    """A request that fails for a reason that the user can remedy."""

    CODE = lsp.LSPErrorCodes.RequestFailed.value


class CastsimServer(LanguageServer):
    """A language server for the open texts of one client."""

    def __init__(self, settings: Settings) -> None:
        super().__init__("castsim", __version__)
        self.checker = Checker(self._publish, self._refresh, self._log)
        self.checker.settings = settings
        self.indexes, self.colours = Indexes(), Colours()
        self.received = b""
        """The last message."""

    def named(self, uri: str) -> tuple[SymbolIndex, TextPlaces] | None:
        """Return the symbol index of an open text, with its positions; None if it is not open."""
        known = self.checker.texts.get(uri)
        return None if known is None else (self.indexes.of(uri, known.text), self.places(known))

    def report_server_error(self, error: Exception, source: object) -> None:
        """Report defects to the client; a malformed request gets its answer here, others have one already."""
        if source is JsonRpcException and isinstance(error, JsonRpcException):
            self._answer_malformed()
        elif not isinstance(error, Refused | JsonRpcInvalidParams):
            self._log(f"{type(error).__name__}: {error}")

    def _answer_malformed(self) -> None:
        """Answer the last request, whose parameters do not fit its method; notifications have no answer."""
        try:
            request = json.loads(self.received)
        except (ValueError, RecursionError):
            return
        number = request.get("id") if isinstance(request, dict) and "method" in request else None
        if isinstance(number, int | str):
            refused = JsonRpcInvalidParams(f"invalid parameters of {request['method']}")
            self.protocol._send_response(number, error=refused.to_response_error())

    def places(self, known: Open) -> TextPlaces:
        """Return the converter from positions in a text to the client's positions."""
        return TextPlaces(known.text.lines, self.workspace.position_codec.client_num_units)

    def text(self, uri: str) -> EditedText | None:
        """Return a text as the client has it; None if its language is not supported."""
        document = self.workspace.get_text_document(uri)
        name = to_fs_path(uri) or uri
        language = LANGUAGES.get(Path(name).suffix.lower(), document.language_id)
        if language is None or language not in LANGUAGES.values():
            return None
        return EditedText(name, language, normalised(document.source), document.version or 0)

    def _publish(self, known: Open) -> None:
        uri = next(uri for uri, each in self.checker.texts.items() if each is known)
        found = diagnostics(known.findings, self.places(known))
        params = lsp.PublishDiagnosticsParams(uri, found, version=known.text.version)
        self.text_document_publish_diagnostics(params)

    def _refresh(self) -> None:
        workspace = self.client_capabilities.workspace
        if workspace is not None and workspace.inlay_hint is not None and workspace.inlay_hint.refresh_support:
            self.workspace_inlay_hint_refresh(None)

    def _log(self, message: str) -> None:
        self.window_log_message(lsp.LogMessageParams(lsp.MessageType.Error, message))


def serve(settings: Settings) -> None:
    """Serve a client on standard input and output until it ends the session."""
    server = server_of(settings)
    log = logging.getLogger("pygls")  # clients are told of defects by messages; standard error is for people
    log.addHandler(logging.NullHandler())
    log.propagate = False
    try:
        # pygls closes what it writes to at the end, and the command still has to flush its own.
        answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        _widen(answers.fileno())
        server.start_io(_Bounded(sys.stdin.buffer, server), answers)  # type: ignore[arg-type]  # what pygls reads of it is there
    finally:
        server.checker.end()


def _widen(pipe: int) -> None:
    """Enlarge a pipe to take large answers whole, if the system supports it."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _WIDEST_PIPE)


class _Bounded:
    """Standard input that limits the memory that a message can make the server reserve."""

    def __init__(self, source: BinaryIO, server: CastsimServer) -> None:
        self._source, self._server = source, server

    def readline(self) -> bytes:
        """Return a line of a header, or the beginning of one that is too long."""
        return self._source.readline(_LONGEST_HEADER)

    def read(self, size: int) -> bytes:
        """Return a message.

        Raises:
            ReadError: the message is too long.
        """
        if size > MOST_BYTES:
            raise ReadError(f"a message of {size} bytes", legal=(f"up to {MOST_BYTES} bytes",))
        self._server.received = self._source.read(size)
        return self._server.received


def server_of(settings: Settings) -> CastsimServer:
    """Return a server with all its request handlers."""
    server = CastsimServer(settings)
    _follow_texts(server)
    _answer_words(server)
    _answer_lines(server)
    _answer_names(server)
    _answer_renames(server)
    _answer_outlines(server)
    _answer_edits(server)
    return server


def _texts(defines: object) -> dict[str, str]:
    """Return macros as an editor gives them; values that are not text are converted."""
    return {str(name): str(text) for name, text in defines.items()} if isinstance(defines, dict) else {}


def _follow_texts(server: CastsimServer) -> None:
    @server.feature(lsp.INITIALIZE)
    def initialize(ls: CastsimServer, params: lsp.InitializeParams) -> None:
        given = params.initialization_options
        if isinstance(given, dict):
            settings = ls.checker.settings
            args, defines, folders = given.get("args"), given.get("defines"), given.get("folders")
            ls.checker.settings = replace(
                settings,
                target=given.get("target") or settings.target,
                args={**settings.args, **(args if isinstance(args, dict) else {})},
                defines={**settings.defines, **_texts(defines)},
                folders=(*settings.folders, *(map(str, folders) if isinstance(folders, list) else ())),
            )

    @server.feature(lsp.SHUTDOWN)
    def leaving(ls: CastsimServer, _: object) -> None:
        ls.checker.end()

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(ls: CastsimServer, params: lsp.DidOpenTextDocumentParams) -> None:
        uri = params.text_document.uri
        if (text := ls.text(uri)) is not None:
            ls.checker.open(uri, text)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(ls: CastsimServer, params: lsp.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        if (text := ls.text(uri)) is not None:
            ls.checker.edit(uri, text)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(ls: CastsimServer, params: lsp.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        ls.checker.close(uri)
        ls.indexes.forget(uri)
        ls.colours.forget(uri)
        ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    @server.feature(CHECKED)
    async def checked(ls: CastsimServer, params: object) -> dict[str, int]:
        uri = getattr(params, "uri", None)
        if not isinstance(uri, str):
            raise JsonRpcInvalidParams(f"invalid parameters of {CHECKED}: it takes the uri of a text")
        known = await ls.checker.whole(uri)
        return {} if known is None else {"version": known.text.version, "findings": len(known.findings)}


def _answer_words(server: CastsimServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hovered(ls: CastsimServer, params: lsp.HoverParams) -> lsp.Hover | None:
        known = ls.checker.texts.get(params.text_document.uri)
        if known is None:
            return None
        places = ls.places(known)
        line, column = places.place(params.position)
        found = hover(known.text, line, column, ls.checker.settings, known.cycles)
        if found is None:
            return None
        content = lsp.MarkupContent(lsp.MarkupKind.Markdown, found.text)
        return lsp.Hover(content, places.range(line, found.column, found.end))

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=[*TRIGGERS]))
    def completed(ls: CastsimServer, params: lsp.CompletionParams) -> lsp.CompletionList:
        known = ls.checker.texts.get(params.text_document.uri)
        if known is None:
            return lsp.CompletionList(is_incomplete=False, items=[])
        places = ls.places(known)
        line, column = places.place(params.position)
        found, typed = completions(known.text, line, column, ls.checker.settings)
        place = places.range(line, column - typed, column)
        return lsp.CompletionList(is_incomplete=False, items=[_item(one, place) for one in found])


def _answer_lines(server: CastsimServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    def hinted(ls: CastsimServer, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        known = ls.checker.texts.get(params.text_document.uri)
        if known is None:
            return []
        places, asked = ls.places(known), range(params.range.start.line + 1, params.range.end.line + 2)
        return [
            lsp.InlayHint(
                places.position(one.line, len(known.text.lines[one.line - 1]) + 1),
                one.label,
                tooltip=one.about,
                padding_left=True,
            )
            for one in known.cycles
            if one.line in asked
        ]

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix])
    )
    async def repaired(ls: CastsimServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        known = ls.checker.texts.get(uri)
        if known is None:
            return []
        text, findings, places = known.text, known.findings, ls.places(known)
        asked = range(params.range.start.line, params.range.end.line + 1)
        found = []
        for finding in findings:
            if finding.line is not None and finding.line - 1 in asked:
                place = finding_range(finding, places)
                given = [one for one in params.context.diagnostics if one.range == place]
                # A search for a chain takes seconds, in which other questions are to be answered.
                offered = await asyncio.to_thread(_repairs, text, finding, findings, ls.checker.settings)
                found += [_action(uri, one, given, places) for one in offered]
        return found


def _at(ls: CastsimServer, uri: str, position: Position) -> tuple[SymbolIndex, TextPlaces, tuple[int, int]] | None:
    found = ls.named(uri)
    return None if found is None else (*found, found[1].place(position))


def _answer_names(server: CastsimServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def defined(ls: CastsimServer, params: lsp.DefinitionParams) -> list[lsp.Location]:
        if (found := _at(ls, params.text_document.uri, params.position)) is None:
            return []
        index, places, place = found
        uri = params.text_document.uri
        return [lsp.Location(uri, range_of(one, places)) for one in index.definitions_for(*place)]

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def referred(ls: CastsimServer, params: lsp.ReferenceParams) -> list[lsp.Location]:
        found = _at(ls, params.text_document.uri, params.position)
        symbol = None if found is None else found[0].symbol_at(*found[2])
        if found is None or symbol is None:
            return []
        wanted = [one for one in symbol.occurrences if params.context.include_declaration or not one.defines]
        return [lsp.Location(params.text_document.uri, range_of(one, found[1])) for one in wanted]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlighted(ls: CastsimServer, params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
        found = _at(ls, params.text_document.uri, params.position)
        symbol = None if found is None else found[0].symbol_at(*found[2])
        return [] if found is None or symbol is None else highlights(symbol, found[1])


def _answer_renames(server: CastsimServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def may_rename(ls: CastsimServer, params: lsp.PrepareRenameParams) -> lsp.Range | None:
        if (found := _at(ls, params.text_document.uri, params.position)) is None:
            return None
        index, places, place = found
        try:
            _, item = renamable(index, *place)
        except ReadError as error:
            raise _refusal(error) from None
        return places.range(place[0], item.column, item.end)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def rename(ls: CastsimServer, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        if (found := _at(ls, params.text_document.uri, params.position)) is None:
            return None
        index, places, place = found
        try:
            symbol, _ = renamable(index, *place)
            edits = renamed(index, symbol, params.new_name)
        except ReadError as error:
            raise _refusal(error) from None
        return lsp.WorkspaceEdit(
            changes={params.text_document.uri: [lsp.TextEdit(range_of(one, places), new) for one, new in edits]}
        )


def _answer_outlines(server: CastsimServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def outlined(ls: CastsimServer, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        found = ls.named(params.text_document.uri)
        return [] if found is None else outline(*found)

    @server.feature(lsp.WORKSPACE_SYMBOL)
    def looked_up(ls: CastsimServer, params: lsp.WorkspaceSymbolParams) -> list[lsp.WorkspaceSymbol]:
        return [
            lsp.WorkspaceSymbol(lsp.Location(uri, one.selection_range), one.name, one.kind)
            for uri in ls.checker.texts
            if (found := ls.named(uri)) is not None
            for one in outline(*found)
            if params.query.lower() in one.name.lower()
        ]

    @server.feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)
    def folded(ls: CastsimServer, params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
        found = ls.named(params.text_document.uri)
        return [] if found is None else folding(found[0])

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, LEGEND)
    def coloured(ls: CastsimServer, params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        found = ls.named(params.text_document.uri)
        return lsp.SemanticTokens([]) if found is None else ls.colours.all(params.text_document.uri, *found)

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL_DELTA, LEGEND)
    def recoloured(
        ls: CastsimServer, params: lsp.SemanticTokensDeltaParams
    ) -> lsp.SemanticTokens | lsp.SemanticTokensDelta:
        uri = params.text_document.uri
        found = ls.named(uri)
        if found is None:
            return lsp.SemanticTokens([])
        return ls.colours.changed(uri, *found, params.previous_result_id)

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, LEGEND)
    def partly_coloured(ls: CastsimServer, params: lsp.SemanticTokensRangeParams) -> lsp.SemanticTokens:
        found = ls.named(params.text_document.uri)
        if found is None:
            return lsp.SemanticTokens([])
        lines = range(params.range.start.line, min(params.range.end.line + 1, len(found[0].lines)))
        return lsp.SemanticTokens(colours(*found, lines))


def _answer_edits(server: CastsimServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_SIGNATURE_HELP, lsp.SignatureHelpOptions(trigger_characters=[*OPERAND_TRIGGERS]))
    def signed(ls: CastsimServer, params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
        known = ls.checker.texts.get(params.text_document.uri)
        if known is None:
            return None
        found = signatures(known.text, *ls.places(known).place(params.position), ls.checker.settings)
        units = ls.workspace.position_codec.client_num_units
        return lsp.SignatureHelp([_signature(one, units) for one in found], shown(found)) if found else None

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    async def written(ls: CastsimServer, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        known = ls.checker.texts.get(params.text_document.uri)
        if known is None:
            return []
        try:
            new = await asyncio.to_thread(formatted, known.text, ls.checker.settings)
        except CastsimError as error:
            raise _refusal(error) from None
        lines = new.split("\n")
        edit = change(known.text.lines, lines)
        if edit is None or ls.checker.texts.get(params.text_document.uri) is not known:
            return []
        last = edit.first + edit.removed
        place = Range(Position(edit.first, 0), ls.places(known).position(last, len(known.text.lines[last - 1]) + 1))
        return [lsp.TextEdit(place, "\n".join(lines[edit.first : edit.first + edit.added]))]


def _signature(found: ShownSignature, units: Callable[[str], int]) -> lsp.SignatureInformation:
    parameters = [
        lsp.ParameterInformation((units(found.label[:start]), units(found.label[:end])))
        for start, end in found.parameters
    ]
    return lsp.SignatureInformation(found.label, found.about or None, parameters, found.active)


def _refusal(error: CastsimError) -> Refused:
    where = "" if error.span is None else f"line {error.span.line}: "
    legal = f" (legal: {legal_text(error.values, error.message, error.span)})" if error.values else ""
    return Refused(f"{where}{error.message}{legal}")


def _repairs(text: EditedText, finding: Finding, findings: Sequence[Finding], settings: Settings) -> list[Repair]:
    try:
        return repairs(text, finding, findings, settings)
    except CastsimError:
        return []


def _item(found: CompletionItem, place: Range) -> lsp.CompletionItem:
    edit = lsp.TextEdit(place, found.text)
    about = lsp.MarkupContent(lsp.MarkupKind.Markdown, found.about) if found.about else None
    return lsp.CompletionItem(
        found.text, kind=_KINDS[found.kind], detail=found.detail or None, documentation=about, text_edit=edit
    )


def _action(uri: str, found: Repair, given: list[lsp.Diagnostic], places: TextPlaces) -> lsp.CodeAction:
    edits = [lsp.TextEdit(places.range(one.line, one.column, one.end), one.text) for one in found.edits]
    return lsp.CodeAction(
        found.title,
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=given,
        is_preferred=found.preferred or None,
        edit=lsp.WorkspaceEdit(changes={uri: edits}),
    )
