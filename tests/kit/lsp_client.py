"""A client of `castsim lsp` over standard input and output, for tests and the benchmark."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

Got = TypeVar("Got")

LONGEST = 120.0
"""Seconds after which an answer is given up."""


@dataclass
class Editor:
    """An editor: texts by URI, diagnostics as they come, each with its version."""

    client: LanguageClient
    published: list[lsp.PublishDiagnosticsParams] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    versions: dict[str, int] = field(default_factory=dict)

    def open(self, uri: str, text: str, language: str | None = None) -> None:
        self.versions[uri] = 1
        kind = language or uri.rpartition(".")[2]
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, kind, 1, text)))

    def change(self, uri: str, place: lsp.Range | None, text: str) -> int:
        """Replace a range, or everything; return the version."""
        self.versions[uri] += 1
        change: Any = (
            lsp.TextDocumentContentChangeWholeDocument(text)
            if place is None
            else lsp.TextDocumentContentChangePartial(place, text)
        )
        which = lsp.VersionedTextDocumentIdentifier(self.versions[uri], uri)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(which, [change]))
        return self.versions[uri]

    def close(self, uri: str) -> None:
        self.client.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri)))

    async def checked(self, uri: str) -> list[lsp.Diagnostic]:
        """Return the diagnostics of the last version, checked as a whole."""
        await asyncio.wait_for(self.client.protocol.send_request_async("castsim/checked", {"uri": uri}), LONGEST)
        return list(next(one.diagnostics for one in reversed(self.published) if one.uri == uri))

    async def of_version(self, uri: str, version: int) -> lsp.PublishDiagnosticsParams:
        """Return the first diagnostics of a version."""

        async def found() -> lsp.PublishDiagnosticsParams:
            while True:
                for one in self.published:
                    if (one.uri, one.version) == (uri, version):
                        return one
                self.news.clear()
                await self.news.wait()

        return await asyncio.wait_for(found(), LONGEST)

    async def hover(self, uri: str, line: int, character: int) -> str:
        params = lsp.HoverParams(lsp.TextDocumentIdentifier(uri), lsp.Position(line, character))
        found = await asyncio.wait_for(self.client.text_document_hover_async(params), LONGEST)
        return "" if found is None else str(found.contents.value)  # type: ignore[union-attr]

    async def completions(self, uri: str, line: int, character: int) -> list[lsp.CompletionItem]:
        params = lsp.CompletionParams(lsp.TextDocumentIdentifier(uri), lsp.Position(line, character))
        found = await asyncio.wait_for(self.client.text_document_completion_async(params), LONGEST)
        assert isinstance(found, lsp.CompletionList)
        return list(found.items)

    async def hints(self, uri: str, lines: int) -> list[lsp.InlayHint]:
        place = lsp.Range(lsp.Position(0, 0), lsp.Position(lines, 0))
        params = lsp.InlayHintParams(lsp.TextDocumentIdentifier(uri), place)
        return list(await asyncio.wait_for(self.client.text_document_inlay_hint_async(params), LONGEST) or ())

    async def actions(self, uri: str, diagnostic: lsp.Diagnostic) -> list[lsp.CodeAction]:
        context = lsp.CodeActionContext([diagnostic])
        params = lsp.CodeActionParams(lsp.TextDocumentIdentifier(uri), diagnostic.range, context)
        found = await asyncio.wait_for(self.client.text_document_code_action_async(params), LONGEST)
        return [one for one in found or () if isinstance(one, lsp.CodeAction)]


@asynccontextmanager
async def editor(
    *arguments: str, options: dict[str, Any] | None = None, encodings: Any = None
) -> AsyncIterator[Editor]:
    """Start `castsim lsp` with arguments, and end it afterwards."""
    client = LanguageClient("tests", "1")
    found = Editor(client)

    @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def published(params: lsp.PublishDiagnosticsParams) -> None:
        found.published.append(params)
        found.news.set()

    @client.feature(lsp.WINDOW_LOG_MESSAGE)
    def logged(params: lsp.LogMessageParams) -> None:
        raise AssertionError(params.message)

    await client.start_io(sys.executable, "-m", "castsim", "lsp", *arguments)
    general = lsp.GeneralClientCapabilities(position_encodings=encodings)
    await asyncio.wait_for(
        client.initialize_async(
            lsp.InitializeParams(lsp.ClientCapabilities(general=general), initialization_options=options)
        ),
        LONGEST,
    )
    client.initialized(lsp.InitializedParams())
    try:
        yield found
    finally:
        await asyncio.wait_for(client.shutdown_async(None), LONGEST)
        client.exit(None)
        await asyncio.wait_for(client.stop(), LONGEST)


def applied(text: str, edits: list[lsp.TextEdit]) -> str:
    """Return a text with edits, columns taken for code points."""
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda one: (one.range.start.line, one.range.start.character), reverse=True):
        start, end = edit.range.start, edit.range.end
        assert start.line == end.line
        line = lines[start.line]
        lines[start.line] = line[: start.character] + edit.new_text + line[end.character :]
    return "\n".join(lines)


def session(work: Callable[[Editor], Awaitable[Got]], *arguments: str, **more: object) -> Got:
    """Return what a session with one editor gives."""

    async def whole() -> Got:
        async with editor(*arguments, **more) as found:  # type: ignore[arg-type]
            return await work(found)

    return asyncio.run(whole())


def uri(name: str) -> str:
    return (Path("/kernels") / name).as_uri()
