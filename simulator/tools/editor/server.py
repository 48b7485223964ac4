"""The language server: requests of a client, and the functions that answer them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from lsprotocol import types as lsp
from lsprotocol.types import Diagnostic, DiagnosticSeverity, Position, Range
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from castsim import __version__
from castsim.commands.kernels import KernelOptions
from castsim.commands.option_parsers import options_as, scalars
from castsim.commands.outcome import CommandOutcome
from castsim.isa.dataclass import replace
from castsim.isa.errors import CastsimError, ReadError, Severity, legal_text
from castsim.targets.loader import load_target
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
        shown = sorted(findings, key=lambda finding: list(_SEVERITIES).index(finding.severity))[:MOST]
    published = [diagnostic(shown_finding, places) for shown_finding in shown]
    if len(findings) > MOST:
        text = f"{len(findings) - MOST:,} more findings; `castsim check` lists them"
        published.append(Diagnostic(_TOP, text, severity=DiagnosticSeverity.Information, source=SOURCE))
    return published


def diagnostic(finding: Finding, places: TextPlaces) -> Diagnostic:
    """Return a finding as a diagnostic; a finding about the whole text is at its beginning."""
    message = finding.message
    message += f"\nlegal: {legal_text(finding.legal, finding.message, finding.span)}" if finding.legal else ""
    message += f"\nhelp: {finding.help}" if finding.help else ""
    return Diagnostic(
        finding_range(finding, places),
        message,
        severity=_SEVERITIES[finding.severity],
        code=finding.kind,
        source=SOURCE,
    )


def finding_range(finding: Finding, places: TextPlaces) -> Range:
    """Return the range of a finding."""
    if finding.line is None or finding.column is None:
        return _TOP
    return places.range(finding.line, finding.column, finding.end_column or finding.column + 1)


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
        document = self.checker.texts.get(uri)
        return None if document is None else (self.indexes.of(uri, document.text), self.places(document))

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

    def places(self, document: Open) -> TextPlaces:
        """Return the converter from positions in a text to the client's positions."""
        return TextPlaces(document.text.lines, self.workspace.position_codec.client_num_units)

    def text(self, uri: str) -> EditedText | None:
        """Return a text as the client has it; None if its language is not supported."""
        document = self.workspace.get_text_document(uri)
        name = to_fs_path(uri) or uri
        language = LANGUAGES.get(Path(name).suffix.lower(), document.language_id)
        if language is None or language not in LANGUAGES.values():
            return None
        return EditedText(name, language, normalised(document.source), document.version or 0)

    def _publish(self, document: Open) -> None:
        uri = next(uri for uri, other_document in self.checker.texts.items() if other_document is document)
        published = diagnostics(document.findings, self.places(document))
        params = lsp.PublishDiagnosticsParams(uri, published, version=document.text.version)
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
        document = await ls.checker.whole(uri)
        return {} if document is None else {"version": document.text.version, "findings": len(document.findings)}


def _answer_words(server: CastsimServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hovered(ls: CastsimServer, params: lsp.HoverParams) -> lsp.Hover | None:
        document = ls.checker.texts.get(params.text_document.uri)
        if document is None:
            return None
        places = ls.places(document)
        line, column = places.place(params.position)
        hover_text = hover(document.text, line, column, ls.checker.settings, document.cycles)
        if hover_text is None:
            return None
        content = lsp.MarkupContent(lsp.MarkupKind.Markdown, hover_text.text)
        return lsp.Hover(content, places.range(line, hover_text.column, hover_text.end))

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=[*TRIGGERS]))
    def completed(ls: CastsimServer, params: lsp.CompletionParams) -> lsp.CompletionList:
        document = ls.checker.texts.get(params.text_document.uri)
        if document is None:
            return lsp.CompletionList(is_incomplete=False, items=[])
        places = ls.places(document)
        line, column = places.place(params.position)
        suggestions, typed = completions(document.text, line, column, ls.checker.settings)
        span = places.range(line, column - typed, column)
        return lsp.CompletionList(is_incomplete=False, items=[_item(suggestion, span) for suggestion in suggestions])


def _answer_lines(server: CastsimServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    def hinted(ls: CastsimServer, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        document = ls.checker.texts.get(params.text_document.uri)
        if document is None:
            return []
        places, asked = ls.places(document), range(params.range.start.line + 1, params.range.end.line + 2)
        return [
            lsp.InlayHint(
                places.position(hint.line, len(document.text.lines[hint.line - 1]) + 1),
                hint.label,
                tooltip=hint.about,
                padding_left=True,
            )
            for hint in document.cycles
            if hint.line in asked
        ]

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix])
    )
    async def repaired(ls: CastsimServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        document = ls.checker.texts.get(uri)
        if document is None:
            return []
        text, findings, places = document.text, document.findings, ls.places(document)
        asked = range(params.range.start.line, params.range.end.line + 1)
        actions = []
        for finding in findings:
            if finding.line is not None and finding.line - 1 in asked:
                span = finding_range(finding, places)
                given = [
                    given_diagnostic
                    for given_diagnostic in params.context.diagnostics
                    if given_diagnostic.range == span
                ]
                # A search for a chain takes seconds, in which other questions are to be answered.
                offered = await asyncio.to_thread(_repairs, text, finding, findings, ls.checker.settings)
                actions += [_action(uri, repair, given, places) for repair in offered]
        return actions


def _at(ls: CastsimServer, uri: str, position: Position) -> tuple[SymbolIndex, TextPlaces, tuple[int, int]] | None:
    named_index = ls.named(uri)
    return None if named_index is None else (*named_index, named_index[1].place(position))


def _answer_names(server: CastsimServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def defined(ls: CastsimServer, params: lsp.DefinitionParams) -> list[lsp.Location]:
        if (located := _at(ls, params.text_document.uri, params.position)) is None:
            return []
        index, places, position = located
        uri = params.text_document.uri
        return [lsp.Location(uri, range_of(occurrence, places)) for occurrence in index.definitions_for(*position)]

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def referred(ls: CastsimServer, params: lsp.ReferenceParams) -> list[lsp.Location]:
        located = _at(ls, params.text_document.uri, params.position)
        symbol = None if located is None else located[0].symbol_at(*located[2])
        if located is None or symbol is None:
            return []
        wanted = [
            occurrence
            for occurrence in symbol.occurrences
            if params.context.include_declaration or not occurrence.defines
        ]
        return [lsp.Location(params.text_document.uri, range_of(occurrence, located[1])) for occurrence in wanted]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlighted(ls: CastsimServer, params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
        located = _at(ls, params.text_document.uri, params.position)
        symbol = None if located is None else located[0].symbol_at(*located[2])
        return [] if located is None or symbol is None else highlights(symbol, located[1])


def _answer_renames(server: CastsimServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def may_rename(ls: CastsimServer, params: lsp.PrepareRenameParams) -> lsp.Range | None:
        if (located := _at(ls, params.text_document.uri, params.position)) is None:
            return None
        index, places, position = located
        try:
            _, item = renamable(index, *position)
        except ReadError as error:
            raise _refusal(error) from None
        return places.range(position[0], item.column, item.end)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def rename(ls: CastsimServer, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        if (located := _at(ls, params.text_document.uri, params.position)) is None:
            return None
        index, places, position = located
        try:
            symbol, _ = renamable(index, *position)
            edits = renamed(index, symbol, params.new_name)
        except ReadError as error:
            raise _refusal(error) from None
        return lsp.WorkspaceEdit(
            changes={
                params.text_document.uri: [lsp.TextEdit(range_of(occurrence, places), new) for occurrence, new in edits]
            }
        )


def _answer_outlines(server: CastsimServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def outlined(ls: CastsimServer, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        named_index = ls.named(params.text_document.uri)
        return [] if named_index is None else outline(*named_index)

    @server.feature(lsp.WORKSPACE_SYMBOL)
    def looked_up(ls: CastsimServer, params: lsp.WorkspaceSymbolParams) -> list[lsp.WorkspaceSymbol]:
        return [
            lsp.WorkspaceSymbol(
                lsp.Location(uri, document_symbol.selection_range), document_symbol.name, document_symbol.kind
            )
            for uri in ls.checker.texts
            if (named_index := ls.named(uri)) is not None
            for document_symbol in outline(*named_index)
            if params.query.lower() in document_symbol.name.lower()
        ]

    @server.feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)
    def folded(ls: CastsimServer, params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
        named_index = ls.named(params.text_document.uri)
        return [] if named_index is None else folding(named_index[0])

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, LEGEND)
    def coloured(ls: CastsimServer, params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        named_index = ls.named(params.text_document.uri)
        return lsp.SemanticTokens([]) if named_index is None else ls.colours.all(params.text_document.uri, *named_index)

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL_DELTA, LEGEND)
    def recoloured(
        ls: CastsimServer, params: lsp.SemanticTokensDeltaParams
    ) -> lsp.SemanticTokens | lsp.SemanticTokensDelta:
        uri = params.text_document.uri
        named_index = ls.named(uri)
        if named_index is None:
            return lsp.SemanticTokens([])
        return ls.colours.changed(uri, *named_index, params.previous_result_id)

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, LEGEND)
    def partly_coloured(ls: CastsimServer, params: lsp.SemanticTokensRangeParams) -> lsp.SemanticTokens:
        named_index = ls.named(params.text_document.uri)
        if named_index is None:
            return lsp.SemanticTokens([])
        lines = range(params.range.start.line, min(params.range.end.line + 1, len(named_index[0].lines)))
        return lsp.SemanticTokens(colours(*named_index, lines))


def _answer_edits(server: CastsimServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_SIGNATURE_HELP, lsp.SignatureHelpOptions(trigger_characters=[*OPERAND_TRIGGERS]))
    def signed(ls: CastsimServer, params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
        document = ls.checker.texts.get(params.text_document.uri)
        if document is None:
            return None
        signature_list = signatures(document.text, *ls.places(document).place(params.position), ls.checker.settings)
        units = ls.workspace.position_codec.client_num_units
        return (
            lsp.SignatureHelp([_signature(signature, units) for signature in signature_list], shown(signature_list))
            if signature_list
            else None
        )

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    async def written(ls: CastsimServer, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        document = ls.checker.texts.get(params.text_document.uri)
        if document is None:
            return []
        try:
            new = await asyncio.to_thread(formatted, document.text, ls.checker.settings)
        except CastsimError as error:
            raise _refusal(error) from None
        lines = new.split("\n")
        edit = change(document.text.lines, lines)
        if edit is None or ls.checker.texts.get(params.text_document.uri) is not document:
            return []
        last = edit.first + edit.removed
        span = Range(
            Position(edit.first, 0), ls.places(document).position(last, len(document.text.lines[last - 1]) + 1)
        )
        return [lsp.TextEdit(span, "\n".join(lines[edit.first : edit.first + edit.added]))]


def _signature(signature: ShownSignature, units: Callable[[str], int]) -> lsp.SignatureInformation:
    parameters = [
        lsp.ParameterInformation((units(signature.label[:start]), units(signature.label[:end])))
        for start, end in signature.parameters
    ]
    return lsp.SignatureInformation(signature.label, signature.about or None, parameters, signature.active)


def _refusal(error: CastsimError) -> Refused:
    where = "" if error.span is None else f"line {error.span.line}: "
    legal = f" (legal: {legal_text(error.values, error.message, error.span)})" if error.values else ""
    return Refused(f"{where}{error.message}{legal}")


def _repairs(text: EditedText, finding: Finding, findings: Sequence[Finding], settings: Settings) -> list[Repair]:
    try:
        return repairs(text, finding, findings, settings)
    except CastsimError:
        return []


def _item(item: CompletionItem, span: Range) -> lsp.CompletionItem:
    edit = lsp.TextEdit(span, item.text)
    about = lsp.MarkupContent(lsp.MarkupKind.Markdown, item.about) if item.about else None
    return lsp.CompletionItem(
        item.text, kind=_KINDS[item.kind], detail=item.detail or None, documentation=about, text_edit=edit
    )


def _action(uri: str, repair: Repair, given: list[lsp.Diagnostic], places: TextPlaces) -> lsp.CodeAction:
    edits = [lsp.TextEdit(places.range(edit.line, edit.column, edit.end), edit.text) for edit in repair.edits]
    return lsp.CodeAction(
        repair.title,
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=given,
        is_preferred=repair.preferred or None,
        edit=lsp.WorkspaceEdit(changes={uri: edits}),
    )


# The command `lsp`.


def execute(options: Namespace) -> CommandOutcome:
    """Serve an editor until it ends the session.

    Raises:
        ReadError: an option is wrong, or the target is unknown.
    """
    if options.target is not None:
        load_target(options.target)
    args, kernel = scalars(options.args), options_as(KernelOptions, options)
    serve(Settings(options.target, args, kernel.macro_texts(), tuple(map(str, kernel.header_folders()))))
    return CommandOutcome({}, lambda _: "")
