"""TextMate grammars of both languages, generated from the tables of their operations into files in `docs/editors/`.

python -m castsim.reports.pages.grammars docs/editors/vscode/syntaxes   # writes them again
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from castsim.isa.pto.control_flow import HANDLERS
from castsim.isa.pto.micro_forms import ROWS
from castsim.isa.pto.statement_forms import EVENTS, PIPES, ROUND_MODES, SATURATIONS
from castsim.isa.pto.types import ELEMENTS, EXTENSIONS, LOWERED
from castsim.isa.pto.value_types import dialect_names
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, text_name
from castsim.isa.tpc.forms import TARGET_SPELLINGS, TYPES
from castsim.isa.tpc.instructions import ALIASES, FORMS

Grammar = Mapping[str, object]

FILES = {"pto": "pto.tmLanguage.json", "tpc": "tpc.tmLanguage.json"}
"""Grammar files by language."""

_COMMENT = {"name": "comment.line.double-slash", "match": "//.*$"}


def _any(words: Iterable[str]) -> str:
    """Return a pattern of words, longer ones first because the first match wins."""
    return "|".join(re.escape(word) for word in sorted(set(words), key=lambda word: (-len(word), word)))


def _rule(name: str, match: str) -> Mapping[str, str]:
    return {"name": name, "match": match}


def pto_grammar() -> Grammar:
    """Return the grammar of `.pto`."""
    names = {text_name(name) for name in VECTOR_OPERATIONS} | {*ROWS}
    names |= {name.removeprefix("pto.") for name in (*HANDLERS, *dialect_names()) if name.startswith("pto.")}
    others = {name for name in HANDLERS if re.fullmatch(r"(?:scf|arith|memref|func)\.\w+", name)}
    others |= {"func.func", "func.call", "scf.for", "scf.if", "scf.while", "scf.yield", "scf.condition"}
    elements = _any((*ELEMENTS, *EXTENSIONS, *LOWERED, "index", "i1"))
    patterns = [
        _COMMENT,
        _rule("string.quoted.double", r'"[^"\n]*"'),
        _rule("keyword.control", rf"\b(?:{_any(others)}|module|attributes|return|iter_args|to|step|else|do)\b"),
        _rule("support.function", rf"\bpto\.(?:{_any(names)})\b"),
        _rule("entity.name.function", r"\bpto\.\w+(?=\s)"),
        _rule("keyword.other", r"\b(?:ins|outs)\b"),
        _rule("constant.language", rf"\b(?:{_any((*ROUND_MODES, *SATURATIONS, *PIPES, *EVENTS))})\b"),
        _rule("entity.name.type", r"!pto\.\w+"),
        _rule("storage.type", rf"(?<![\w%@])(?:\d+x|\?x)*(?:{elements})\b"),
        _rule("variable.other", r"%[\w.$-]+(?<!-)"),
        _rule("entity.name.function", r"@[\w.$]+"),
        _rule("entity.other.attribute-name", r"#pto(?:\.\w+)?"),
        _rule("constant.numeric", r"(?<![\w%.])-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?![\w.])"),
    ]
    return {"name": "PTO", "scopeName": "source.pto", "fileTypes": ["pto"], "patterns": patterns}


def tpc_grammar() -> Grammar:
    """Return the grammar of TPC assembly."""
    mnemonics = _any({form.mnemonic for form in FORMS} | {*ALIASES, "nop"})
    switches = _any(switch.name for form in FORMS for switch in form.switches)
    words = _any(
        spelling
        for form in FORMS
        for switch in form.switches
        for _, spelling in switch.words
        if spelling.isidentifier() and spelling not in TARGET_SPELLINGS.values()
    )
    patterns = [
        _rule("comment.line.documentation", r"//\s*castsim\s*:.*$"),
        _COMMENT,
        {"name": "comment.block", "begin": r"/\*", "end": r"\*/"},
        _rule("entity.name.label", r"^\s*[A-Za-z_.$][\w.$]*\s*:"),
        _rule("support.function", rf"(?i)\b(?:{mnemonics})(?:\.(?:{_any(TYPES)}))?(?![\w=])"),
        _rule("entity.other.attribute-name", rf"(?i)\b(?:{switches})(?==)"),
        _rule("storage.type", rf"(?i)(?<==)(?:{_any((*TARGET_SPELLINGS.values(), *TARGET_SPELLINGS))})\b"),
        _rule("variable.language", r"(?i)%?\b(?:VP|SP|AD|V|S|I|D|A)\d+\b"),
        _rule("constant.language", rf"(?i)\b(?:{words})\b"),
        _rule("constant.numeric", r"(?<![\w%.])-?(?:0[xX][0-9A-Fa-f]+|0[bB][01]+|b[01]+|\d+(?:\.\d*)?)(?![\w.])"),
        _rule("punctuation.separator", r";"),
    ]
    return {"name": "TPC", "scopeName": "source.tpc", "fileTypes": ["tpc"], "patterns": patterns}


_CLASSES = {
    "comment": "comment", "keyword": "keyword", "support": "name", "entity.name.type": "type", "entity": "name",
    "storage": "type", "constant": "constant", "string": "constant", "variable.language": "type",
}  # fmt: skip
"""The beginnings of scopes, and the pages' names for the same colours."""


def page_grammar(language: str) -> tuple[tuple[str, str], ...]:
    """Return the patterns of a language for a page: the name of each pattern's matches, and the pattern."""
    grammar = pto_grammar() if language == "pto" else tpc_grammar()
    rules = [rule for rule in grammar["patterns"] if "match" in rule]  # type: ignore[attr-defined]
    kept = [
        (next((own for start, own in _CLASSES.items() if rule["name"].startswith(start)), ""), rule["match"])
        for rule in rules
    ]
    # An expression of JavaScript has its flags outside; mnemonics are written in lower case.
    return tuple((name, match.removeprefix("(?i)")) for name, match in kept if name)


def written(language: str) -> str:
    """Return the text of a grammar's file."""
    grammar = pto_grammar() if language == "pto" else tpc_grammar()
    return json.dumps(grammar, indent=2) + "\n"


if __name__ == "__main__":
    for one, file in FILES.items():
        (Path(sys.argv[1]) / file).write_text(written(one), encoding="utf-8")
