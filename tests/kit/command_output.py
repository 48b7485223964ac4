"""What a command prints, run in the process of the test."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from castsim.__main__ import main

Capture = pytest.CaptureFixture[str]


def file_of(path: Path, text: str) -> Path:
    """Write a file for a command, and return it."""
    path.write_text(text, encoding="utf-8")
    return path


def out_of(capsys: Capture, words: Sequence[str], code: int = 0) -> str:
    """Return the output of a command that ends with this code."""
    found = main(words)
    out, err = capsys.readouterr()
    assert found == code, err
    return out


def ended(capsys: Capture, *words: str) -> tuple[int, str, str]:
    """Return the exit code of a command, its output and what it says of errors."""
    code = main(words)
    return (code, *capsys.readouterr())


def answer_of(capsys: Capture, *words: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the JSON of a command."""
    code, out, _ = ended(capsys, *words, "--json", "-")
    return code, json.loads(out)


def err_of(capsys: Capture, words: Sequence[str], code: int = 2) -> str:
    """Return what a command that ends with this code says of errors."""
    found = main(words)
    err = capsys.readouterr().err
    assert found == code, err
    return err


def document_of(capsys: Capture, *words: str, code: int = 0) -> dict[str, Any]:
    """Return the JSON of a command."""
    document: dict[str, Any] = json.loads(out_of(capsys, [*words, "--json", "-"], code))
    return document


def refusal(capsys: Capture, *words: str) -> tuple[int, str]:
    """Return the exit code and the message of a refusal, which is all that is printed, and no traceback."""
    code = main(words)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert "Traceback" not in err
    return code, err
