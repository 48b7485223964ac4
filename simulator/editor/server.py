"""The language server: what a client asks, and who answers it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from castsim import __version__
from castsim.checking import Finding
from castsim.editor.actions import repairs
from castsim.editor.checker import Checker, Open
from castsim.editor.completion import TRIGGERS, Completed, completions
from castsim.editor.diagnostics import diagnostics, range_of
from castsim.editor.document import Settings, Text, normalised
from castsim.editor.hover import hover
from castsim.editor.positions import Places
from castsim.editor.repair import Repair
from castsim.isa.errors import CastsimError, ReadError

CHECKED = "castsim/checked"
"""A request with `{"uri": ...}`; answered when the last version of that text has been checked as a whole, and timed."""

LANGUAGES = {".pto": "pto", ".tpc": "tpc", ".s": "tpc", ".c": "c"}
"""Languages by suffix; a text without one is in the language that the client names."""

MOST_BYTES = 64 << 20
"""Bytes of a message: a text of the size that castsim reads, escaped as JSON."""

_LONGEST_HEADER = 4096

_KINDS = {
    "operation": lsp.CompletionItemKind.Function,
    "type": lsp.CompletionItemKind.Struct,
    "mode": lsp.CompletionItemKind.EnumMember,
    "register": lsp.CompletionItemKind.Variable,
    "value": lsp.CompletionItemKind.Variable,
    "word": lsp.CompletionItemKind.Keyword,
}


class CastsimServer(LanguageServer):
    """A server of the open texts of one client."""

    def __init__(self, settings: Settings) -> None:
        super().__init__("castsim", __version__)
        self.checker = Checker(self._publish, self._refresh, self._log)
        self.checker.settings = settings

    def places(self, known: Open) -> Places:
        """Return what turns the places of a text into the client's."""
        return Places(known.text.lines, self.workspace.position_codec.client_num_units)

    def text(self, uri: str) -> Text | None:
        """Return a text as the client has it; None if it is in no language that is served."""
        document = self.workspace.get_text_document(uri)
        name = to_fs_path(uri) or uri
        language = LANGUAGES.get(Path(name).suffix.lower(), document.language_id)
        if language is None or language not in LANGUAGES.values():
            return None
        return Text(name, language, normalised(document.source), document.version or 0)

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
    try:
        # pygls closes what it writes to at the end, and the command still has to flush its own.
        answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        server.start_io(_Bounded(sys.stdin.buffer), answers)  # type: ignore[arg-type]  # what pygls reads of it is there
    finally:
        server.checker.end()


class _Bounded:
    """Standard input, of which no message makes the server reserve more memory than a text can need."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source

    def readline(self) -> bytes:
        """Return a line of a header, or what is read of one that is too long."""
        return self._source.readline(_LONGEST_HEADER)

    def read(self, size: int) -> bytes:
        """Return a message.

        Raises:
            ReadError: it is too long.
        """
        if size > MOST_BYTES:
            raise ReadError(f"a message of {size} bytes", legal=(f"up to {MOST_BYTES} bytes",))
        return self._source.read(size)


def server_of(settings: Settings) -> CastsimServer:
    """Return a server with all that it answers."""
    server = CastsimServer(settings)
    _follow_texts(server)
    _answer_words(server)
    _answer_lines(server)
    return server


def _follow_texts(server: CastsimServer) -> None:
    @server.feature(lsp.INITIALIZE)
    def initialize(ls: CastsimServer, params: lsp.InitializeParams) -> None:
        given = params.initialization_options
        if isinstance(given, dict):
            settings = ls.checker.settings
            args = given.get("args")
            ls.checker.settings = replace(
                settings,
                target=given.get("target") or settings.target,
                args={**settings.args, **(args if isinstance(args, dict) else {})},
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
        ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    @server.feature(CHECKED)
    async def checked(ls: CastsimServer, params: object) -> dict[str, int]:
        known = await ls.checker.whole(getattr(params, "uri", ""))
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
        found = completions(known.text, line, column, ls.checker.settings)
        return lsp.CompletionList(is_incomplete=False, items=[_item(one, line, column, places) for one in found])


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
                place = range_of(finding, places)
                given = [one for one in params.context.diagnostics if one.range == place]
                # A search for a chain takes seconds, in which other questions are to be answered.
                offered = await asyncio.to_thread(_repairs, text, finding, findings, ls.checker.settings)
                found += [_action(uri, one, given, places) for one in offered]
        return found


def _repairs(text: Text, finding: Finding, findings: Sequence[Finding], settings: Settings) -> list[Repair]:
    try:
        return repairs(text, finding, findings, settings)
    except CastsimError:
        return []


def _item(found: Completed, line: int, column: int, places: Places) -> lsp.CompletionItem:
    edit = lsp.TextEdit(places.range(line, column - found.typed, column), found.text)
    about = lsp.MarkupContent(lsp.MarkupKind.Markdown, found.about) if found.about else None
    return lsp.CompletionItem(
        found.text, kind=_KINDS[found.kind], detail=found.detail or None, documentation=about, text_edit=edit
    )


def _action(uri: str, found: Repair, given: list[lsp.Diagnostic], places: Places) -> lsp.CodeAction:
    edits = [lsp.TextEdit(places.range(one.line, one.column, one.end), one.text) for one in found.edits]
    return lsp.CodeAction(
        found.title,
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=given,
        is_preferred=found.preferred or None,
        edit=lsp.WorkspaceEdit(changes={uri: edits}),
    )
