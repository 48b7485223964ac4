"""`castsim debug --dap`: a session of an editor, over standard input and output and over a port."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.cli_programs import LOOP, TCVT, TLOAD, TSTORE, written
from kit.paths import PROGRAMS
from tools.debugger.debug_programs import Client

from castsim.commands.option_parsers import scalar
from castsim.isa.errors import ReadError
from castsim.tools.debugger.command import kernel_of
from castsim.tools.debugger.debug_adapter import Channel, Session

VALUES = (np.arange(256, dtype=np.float32).reshape(4, 64) - 100) / 4


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", VALUES)
    return Path(written(tmp_path))


@contextmanager
def adapter(*words: str) -> Iterator[Client]:
    with subprocess.Popen(
        [sys.executable, "-m", "castsim", "debug", "--dap", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        yield Client(process.stdin, process.stdout)
        process.stdin.close()
        assert process.wait(60) == 0
        assert process.stdout.read() == b""


def stop(client: Client) -> tuple[str, int]:
    """Why the program has stopped, and in which line."""
    event = client.event("stopped", "terminated")
    assert event["event"] == "stopped", event
    assert event["body"]["threadId"] == client.body("threads")["threads"][0]["id"]
    (frame,) = client.body("stackTrace", threadId=event["body"]["threadId"])["stackFrames"]
    return event["body"]["reason"], frame["line"]


def test_a_session_over_standard_input_and_output(kernel: Path) -> None:
    inputs = {"x": str(kernel.parent / "x.npy")}
    with adapter() as client:
        assert client.body("initialize", adapterID="castsim", linesStartAt1=True)["supportsStepBack"] is True
        launch = client.send("launch", program=str(kernel), **{"in": inputs})
        client.event("initialized")
        placed = client.body("setBreakpoints", source={"path": str(kernel)},
                             breakpoints=[{"line": 1}, {"line": TSTORE, "condition": "slim[3,63] > 38"}])  # fmt: skip
        assert [(each["verified"], each["line"]) for each in placed["breakpoints"]] == [(True, TLOAD), (True, TSTORE)]
        client.body("setExceptionBreakpoints", filters=[])
        client.body("configurationDone")
        assert launch == 2
        assert stop(client) == ("breakpoint", TLOAD)
        client.body("stepIn", threadId=1)
        assert stop(client) == ("step", TCVT)
        client.body("stepBack", threadId=1)
        assert stop(client) == ("step", TLOAD)
        client.body("continue", threadId=1)
        assert stop(client) == ("breakpoint", TSTORE)
        look_at_variables(client)
        look_at_expressions(client)
        client.body("reverseContinue", threadId=1)
        assert stop(client) == ("breakpoint", TLOAD)
        client.body("next", threadId=1)
        assert stop(client) == ("step", TCVT)
        client.body("setBreakpoints", source={"path": str(kernel)}, breakpoints=[])
        client.body("continue", threadId=1)
        assert client.event("exited")["body"] == {"exitCode": 0}
        client.event("terminated")
        client.body("disconnect")


def look_at_variables(client: Client) -> None:
    (frame,) = client.body("stackTrace", threadId=1)["stackFrames"]
    assert re.fullmatch(rf"line {frame['line']}: \w+ .* on \w+, cycle \d+", frame["name"])
    scopes = {each["name"]: each["variablesReference"] for each in client.body("scopes", frameId=frame["id"])["scopes"]}
    assert set(scopes) == {"Locals", "Tiles", "Tensors", "Memory", "Pipes"}
    tiles = {each["name"]: each for each in client.body("variables", variablesReference=scopes["Tiles"])["variables"]}
    assert set(tiles) == {"wide", "slim"}
    assert tiles["slim"]["indexedVariables"] == 4
    rows = client.body("variables", variablesReference=tiles["slim"]["variablesReference"], start=1, count=2)[
        "variables"
    ]
    assert [row["name"] for row in rows] == ["[1]", "[2]"]
    page = client.body("variables", variablesReference=rows[0]["variablesReference"], start=10, count=5)["variables"]
    assert [each["name"] for each in page] == [f"[{n}]" for n in range(10, 15)]
    want = VALUES.astype(np.float16)[1, 10:15]
    assert [each["value"] for each in page] == [f"{float(v)!r} (0x{int(v.view('u2')):04x})" for v in want]
    assert page[0]["evaluateName"] == "slim[1,10]"
    pipes = client.body("variables", variablesReference=scopes["Pipes"])["variables"]
    assert {"V", "MTE2", "MTE3"} <= {each["name"] for each in pipes}


def look_at_expressions(client: Client) -> None:
    half = VALUES.astype(np.float16)
    code = int(half[3, 7].view("u2"))
    assert (
        client.body("evaluate", expression="slim[3,7]", frameId=1)["result"] == f"{float(half[3, 7])!r} (0x{code:04x})"
    )
    assert client.body("evaluate", expression="print slim[3,7] as u16")["result"] == f"{code} (0x{code:04x})"
    assert len(client.body("evaluate", expression="slim[0,0:3]")["result"].splitlines()) == 3
    whole = client.body("evaluate", expression="slim")
    assert whole["variablesReference"] > 0 and whole["result"] == "f16 [4, 64]"
    assert client.body("evaluate", expression="slim[3,7] is nan")["result"] == "false"
    refused = client.ask("evaluate", expression="nobody[0]")
    assert not refused["success"] and "nobody" in refused["message"]


def test_a_session_over_a_port(kernel: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "castsim", "debug", str(kernel), "--in", "x=zeros", "--dap", "--port", "0"],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        found = re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", process.stderr.readline())
        assert found is not None
        with socket.create_connection(("127.0.0.1", int(found[1])), 60) as taken, taken.makefile("rwb") as stream:
            client = Client(stream, stream)
            client.body("initialize")
            client.body("launch")  # all of it stands on the command line
            client.body("configurationDone")
            assert stop(client) == ("entry", TLOAD)
            client.body("disconnect")
        assert process.wait(60) == 0


def answers(*requests: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """What a session sends for some requests."""
    sent = BytesIO()
    client = Client(sent, BytesIO())
    for command, arguments in requests:
        client.send(command, **arguments)
    got = BytesIO()
    Session(Channel(BytesIO(sent.getvalue()), got), scalar, kernel=kernel_of).run()
    reader = Client(BytesIO(), BytesIO(got.getvalue()))
    found = []
    while reader.source.tell() < len(got.getvalue()):
        found.append(reader.read())
    assert [each["seq"] for each in found] == list(range(1, len(found) + 1))
    return found


def events(found: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [each["body"] for each in found if each["type"] == "event" and each["event"] == name]


def start(path: Path, **more: Any) -> tuple[str, dict[str, Any]]:
    return "launch", {"program": str(path), "in": {"x": "zeros"}, **more}


def test_breakpoints_before_the_program_is_there(kernel: Path) -> None:
    found = answers(
        ("initialize", {"linesStartAt1": False}),
        ("setBreakpoints", {"source": {"path": str(kernel)}, "breakpoints": [{"line": TCVT - 1}, {"line": 9999}]}),
        ("configurationDone", {}), start(kernel), ("stackTrace", {"threadId": 1}),
    )  # fmt: skip
    (early,) = [each["body"]["breakpoints"] for each in found if each.get("command") == "setBreakpoints"]
    assert [each["verified"] for each in early] == [False, False]
    changed = [each["breakpoint"] for each in events(found, "breakpoint")]
    assert [(each["id"], each["verified"]) for each in changed] == [(early[0]["id"], True), (early[1]["id"], False)]
    assert "no operation at or after" in changed[1]["message"]
    (stopped,) = events(found, "stopped")
    assert (stopped["reason"], stopped["hitBreakpointIds"]) == ("breakpoint", [early[0]["id"]])
    assert found[-1]["body"]["stackFrames"][0]["line"] == TCVT - 1


@pytest.mark.parametrize(
    ("more", "reasons"), [({}, ["entry"]), ({"stopOnEntry": True}, ["entry"]), ({"stopOnEntry": False}, [])]
)
def test_where_it_begins(more: dict[str, Any], reasons: list[str], kernel: Path) -> None:
    found = answers(("initialize", {}), start(kernel, **more), ("configurationDone", {}))
    assert [each["reason"] for each in events(found, "stopped")] == reasons
    assert len(events(found, "terminated")) == 1 - len(reasons)


def test_function_breakpoints_are_cycles_and_conditions(tmp_path: Path) -> None:
    kernel = Path(written(tmp_path, LOOP))
    names = ["cycle 300", "if slim[0,0] > 1", "pipe V is busy", "nonsense"]
    found = answers(
        ("initialize", {}), start(kernel, stopAtEnd=True),
        ("setFunctionBreakpoints", {"breakpoints": [{"name": name} for name in names]}), ("configurationDone", {}),
        ("setFunctionBreakpoints", {"breakpoints": []}), ("continue", {"threadId": 1}), ("stepBack", {"threadId": 1}),
    )  # fmt: skip
    placed = next(each["body"]["breakpoints"] for each in found if each.get("command") == "setFunctionBreakpoints")
    assert [each["verified"] for each in placed] == [True, True, True, False]
    assert [each["reason"] for each in events(found, "stopped")] == ["breakpoint", "pause", "step"]
    assert events(found, "terminated") == []


def test_arguments_as_the_command_line_has_them(tmp_path: Path) -> None:
    """An object, or NAME=VALUE; 3 rows of the loop in place of 4."""
    text = LOOP.replace("%y: !pto.ptr<f16>)", "%y: !pto.ptr<f16>, %n: index)").replace("to %rows step", "to %n step")
    kernel = Path(written(tmp_path, text))
    counts = set()
    for arg in ({"n": 3}, {"n": "0x3"}, ["n=3"], "n=3"):
        launch = ("launch", {"program": str(kernel), "in": ["x=zeros"], "arg": arg})
        found = answers(("initialize", {}), launch, ("configurationDone", {}))
        counts.add(events(found, "stopped")[0].get("description", ""))
        found = answers(("initialize", {}), launch, ("configurationDone", {}), ("next", {}), ("stepOut", {}))
        counts.add(events(found, "stopped")[-1]["description"].partition(": ")[0].partition(", ")[2])
    assert sorted(counts)[-1] == "operation 13 of 13"  # loop, arithmetic, load, cast: three times, and the store
    assert len(counts) == 2


def test_step_out_stops_at_breakpoints_and_says_where(tmp_path: Path) -> None:
    kernel, lines = Path(written(tmp_path, LOOP)), LOOP.split("\n")
    load = next(number for number, line in enumerate(lines, 1) if "pto.tload" in line)
    broken = ("setBreakpoints", {"source": {"path": str(kernel)}, "breakpoints": [{"line": load}]})
    watched = ("setFunctionBreakpoints", {"breakpoints": [{"name": "if cycle >= 300"}]})
    seen = {}
    for placed in (broken, watched, ("threads", {})):
        begin = (("initialize", {}), start(kernel, stopOnEntry=True), ("configurationDone", {}))
        moves = (("stepIn", {}), placed, ("stepOut", {}), ("stackTrace", {}))
        found = answers(*begin, *moves)
        stopped, frame = events(found, "stopped")[-1], found[-1]["body"]["stackFrames"][0]
        assert stopped["description"].startswith(f"line {frame['line']}, operation ")
        assert frame["name"].startswith(f"line {frame['line']}: ")
        seen[placed[0]] = stopped["reason"], frame["line"], bool(stopped["hitBreakpointIds"])
    assert seen["setBreakpoints"] == ("breakpoint", load, True)
    assert seen["setFunctionBreakpoints"][::2] == ("breakpoint", True)
    assert seen["threads"][0] == "step"
    assert seen["threads"][1] > load


def moved(path: Path, moves: list[str], **more: Any) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line and locals behind each move from the entry."""
    requests: list[tuple[str, dict[str, Any]]] = [("initialize", {}), start(path, **more), ("configurationDone", {})]
    for move in moves:
        look = (("scopes", {}), ("variables", {"variablesReference": 1}), ("stackTrace", {}))
        requests += [(move, {}), *look]
    bodies: dict[str, dict[str, Any]] = {}
    for each in answers(*requests):
        if each["type"] == "response":
            bodies[each["command"]] = each["body"]
            if each["command"] == "stackTrace":
                assert bodies["scopes"]["scopes"][0]["name"] == "Locals"
                values = {one["name"]: one["value"] for one in bodies["variables"]["variables"]}
                yield bodies["stackTrace"]["stackFrames"][0]["line"], values


def test_step_over_stays_in_the_trip_and_locals_have_its_scalars(tmp_path: Path) -> None:
    kernel = Path(written(tmp_path, LOOP))
    lines = LOOP.split("\n")
    head = next(n for n, line in enumerate(lines, 1) if "scf.for" in line)
    variable = lines[head - 1].split("%")[1].split(" ")[0]
    found = list(moved(kernel, ["next"] * 5 + ["stepOut"]))
    assert [line for line, _ in found[:-1]] == [head + 1, head + 2, head + 3, head, head + 1]
    assert found[-1][0] > head + 3
    assert [values[f"%{variable}"] for _, values in found[:-1]] == ["0", "0", "0", "1", "1"]
    assert f"%{variable}" not in found[-1][1]


def test_locals_follow_carried_values_of_vector_programs() -> None:
    path = PROGRAMS / "micro" / "masked_tail.pto"
    loads = [n for n, line in enumerate(path.read_text().split("\n"), 1) if "pto.vlds" in line]
    found = [values for line, values in moved(path, ["next"] * 19) if line == loads[0]]
    assert [one["%i"] for one in found] == ["0", "64", "128", "192"]
    assert [one.get("%left") for one in found] == ["200", None, None, None]
    assert {one["%far"] for one in found} == {"8192"}


def test_memory_is_shown_and_nothing_is_changed(kernel: Path) -> None:
    np.save(kernel.parent / "x.npy", VALUES)
    reads = [{"offset": 4, "count": 12}, {"count": 0}, {"offset": VALUES.nbytes - 4, "count": 9}]
    found = answers(
        ("initialize", {}), start(kernel, **{"in": {"x": str(kernel.parent / "x.npy")}}), ("configurationDone", {}),
        *(("readMemory", {"memoryReference": "x", **each}) for each in reads),
        ("readMemory", {"memoryReference": "nobody", "count": 4}),
        ("setVariable", {"variablesReference": 1, "name": "x", "value": "3"}),
    )  # fmt: skip
    *memory, nobody, changed = [each for each in found if each["type"] == "response"][3:]
    data = VALUES.tobytes()
    assert [b64decode(each["body"]["data"]) for each in memory] == [data[4:16], b"", data[-4:]]
    assert memory[2]["body"]["unreadableBytes"] == 5
    assert "nobody" in nobody["message"] and not nobody["success"]
    assert not changed["success"] and "cannot change values of a recorded run" in changed["message"]


def test_a_kernel_in_c_is_launched_with_its_tensors() -> None:
    path = PROGRAMS / "tpc_c" / "cast_f32_bf16.c"
    given = {"in": {"x": "zeros"}, "target": "gaudi2", "tensor": {"x": "f32[64,16]", "y": "bf16[64,16]"}}
    launch = {"program": str(path), **given, "index-space": "1,16"}
    found = answers(("initialize", {}), ("launch", launch), ("configurationDone", {}), ("scopes", {}),
                    ("variables", {"variablesReference": 1}))  # fmt: skip
    (entry,) = events(found, "stopped")
    assert entry["reason"] == "entry", found
    assert {each["name"] for each in found[-1]["body"]["variables"]} >= {"x", "y"}
    refused = answers(("initialize", {}), ("launch", {**launch, "index-space": "x"}))
    assert "1 to 5 positive numbers" in refused[2]["message"]
    elsewhere = answers(("initialize", {}), ("launch", {**launch, "program": str(PROGRAMS / "f32_to_f16.pto")}))
    assert not elsewhere[2]["success"] and ".c" in elsewhere[2]["body"]["error"]["format"]


def test_registers_and_bundles() -> None:
    found = answers(
        ("initialize", {}), start(PROGRAMS / "tpc_f32_exp_goya.tpc"), ("configurationDone", {}),
        ("scopes", {"frameId": 1}), ("variables", {"variablesReference": 2}), ("evaluate", {"expression": "S0"}),
    )  # fmt: skip
    bodies = {each["command"]: each.get("body") for each in found if each["type"] == "response"}
    assert [each["name"] for each in bodies["scopes"]["scopes"]] == ["Tensors", "Registers", "Memory", "Pipes"]
    registers = {each["name"]: each for each in bodies["variables"]["variables"]}
    assert registers["V0"]["indexedVariables"] == 64
    assert registers["S0"]["value"] == "0 (0x00000000)" == bodies["evaluate"]["result"]


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("launch", {}), ("launch", {"program": "nowhere.pto"}), ("launch", {"program": 3}), ("dance", {}),
        ("next", {}), ("stackTrace", {}), ("evaluate", {"expression": "x"}), ("variables", {"variablesReference": 77}),
        ("launch", {"program": "P", "in": ["x"]}), ("launch", {"program": "P", "arg": {"a": "b"}}),
        ("launch", {"program": "P", "engine": "slow"}), ("initialize", {"linesStartAt1": "yes"}),
        ("setBreakpoints", {"source": {"path": "P"}, "breakpoints": 3}),
    ],
)  # fmt: skip
def test_what_is_refused_ends_nothing(command: str, arguments: dict[str, Any], kernel: Path) -> None:
    given = {key: str(kernel) if value == "P" else value for key, value in arguments.items()}
    found = answers((command, given), ("threads", {}))
    responses = [each for each in found if each["type"] == "response"]
    assert [each["success"] for each in responses] == [False, True]
    assert "internal" not in responses[0]["message"]


@pytest.mark.parametrize(
    "data",
    [
        b"hello\r\n\r\n", b"Content-Length: x\r\n\r\n", b"Content-Length: 99999999999\r\n\r\n",
        b"Content-Length: 2\r\n\r\n[]", b"Content-Length: 3\r\n\r\n{{{", b"Content-Length: 3\r\n\r\n\xff\xfe\xff",
    ],
)  # fmt: skip
def test_streams_that_are_no_protocol(data: bytes) -> None:
    with pytest.raises(ReadError):
        Session(Channel(BytesIO(data), BytesIO()), scalar).run()
    Session(Channel(BytesIO(b"Content-Length: 30\r\n\r\n{}"), BytesIO()), scalar).run()  # cut short: the editor is gone
