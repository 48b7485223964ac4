"""A short, deterministic part of the fuzz campaign (`python -m tests.fuzz`), and what it has found so far."""

from __future__ import annotations

import json
import os
from random import Random

import pytest
from fuzz import engines, seeds
from fuzz.judging import DefectError, HangError, judge
from fuzz.mutation import MOST_BYTES, Mutator
from fuzz.readers import READERS, ROOT
from fuzz.record import Record
from fuzz.rounds import Coverage, Round
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from castsim.__main__ import main
from castsim.isa.errors import ReadError

THOROUGH = os.environ.get("CASTSIM_THOROUGH") == "1"
INPUTS = 5000 if THOROUGH else 40
SECONDS = 600.0 if THOROUGH else 0.5
"""Time after which no further input of a reader is tried: what is slow here must not make the suite slow."""

NEEDED = {"onnx": "onnx", "sweep-rows": "pyarrow", "sweep-ledger": "pyarrow"}
"""Packages of extras that readers need."""


def ready(name: str) -> None:
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])


@pytest.mark.parametrize("name", READERS)
def test_a_reader_bears_whatever_comes(name: str) -> None:
    ready(name)
    reader = READERS[name]
    tally = Round(reader, f"short {name}", Coverage(reader.modules)).run(INPUTS, SECONDS, limit=30)
    assert tally.inputs
    assert not tally.found, [(one.kind, one.detail, one.data[:500]) for one in tally.found]


@pytest.mark.parametrize(
    ("name", "path"), [pytest.param(name, path, id=path.name) for name in READERS for path in seeds.regressions(name)]
)
def test_what_was_found_stays_mended(name: str, path) -> None:
    ready(name)
    judge(READERS[name].read, path.read_bytes(), placed=READERS[name].placed, seconds=30)


@pytest.mark.parametrize("name", [name for name in READERS if name not in NEEDED])
@settings(
    max_examples=200 if THOROUGH else 5, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink),
)  # fmt: skip
@given(rng=st.randoms(use_true_random=False))
def test_grammars_under_hypothesis(name: str, rng: Random) -> None:
    reader = READERS[name]
    if reader.grammar is None:
        data = Mutator(rng, reader.seeds(), text=reader.text).mutated(rng.choice(reader.seeds()))
    else:
        data = reader.grammar(rng)
    judge(reader.read, data, placed=reader.placed, seconds=30)


@pytest.mark.parametrize("name", engines.MECHANISMS)
def test_engines_and_tiers_agree(name: str) -> None:
    if name == "casts-compiled":
        pytest.importorskip("numba")
    for number in range(200 if THOROUGH else 6):
        assert engines.difference(name, number) is None, number


def test_the_frame_finds_what_it_is_there_for() -> None:
    def hang(_: bytes) -> None:
        while True:
            pass

    def fall(_: bytes) -> None:
        raise KeyError("x")

    def steer(_: bytes) -> None:
        raise ReadError("")

    for read, kind in ((hang, "hang"), (fall, "KeyError"), (steer, "message")):
        with pytest.raises(DefectError) as caught:
            judge(read, b"", seconds=0.2)
        assert caught.value.kind == kind
    assert issubclass(HangError, BaseException)
    assert not issubclass(HangError, Exception)


def test_the_same_seed_makes_the_same_inputs_and_none_is_too_long() -> None:
    def first(name: str) -> bytes:
        return Round(READERS[name], "same", Coverage(READERS[name].modules)).one()

    for name in ("tile", "npy"):
        assert first(name) == first(name)
    mutator = Mutator(Random(1), [b"x" * MOST_BYTES], text=False)
    assert all(len(mutator.mutated(b"x" * MOST_BYTES)) <= MOST_BYTES for _ in range(50))


def test_every_reader_has_modules() -> None:
    patterns = [pattern for reader in READERS.values() for pattern in reader.modules]
    assert [pattern for pattern in patterns if not list(ROOT.glob(pattern))] == []


def test_coverage_counts_lines_of_functions() -> None:
    reader = READERS["npy"]
    coverage = Coverage(reader.modules)
    Round(reader, "lines", coverage).run(64, 5.0)
    totals = coverage.totals()
    assert 0 < totals["lines_reached"] < totals["lines_in_all"]
    assert totals["edges_reached"] >= totals["lines_reached"]


@pytest.mark.parametrize(
    "head", ["func.func @d{}(%x: !pto.ptr<f16nd<vector>}} {{\n", "func.func @d{}() {{\n%a = pto.x\n"]
)
def test_functions_that_are_never_closed_take_no_longer_the_more_there_are(head: str) -> None:
    """Found as a text of 51 heads that took 1.3 s: each was read to the end of the text."""
    text = "".join(head.format(number) for number in range(3000))
    judge(READERS["tile"].read, text.encode(), seconds=10)


@pytest.mark.parametrize("words", [["--trace", "{}.json"], ["--html", "{}"], ["--json", "{}"], ["--target", "{}.toml"]])
def test_a_name_longer_than_any_file_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Found as the name of a table in a description of a target."""
    named = [word.format("n" * 300) for word in words]
    assert main(["run", str(seeds.ROOT / "programs" / "f32_to_f16.pto"), "--timing-only", *named]) == 2
    assert "internal error" not in capsys.readouterr().err


def test_engines_of_today_were_compared_on_the_programs_of_the_record() -> None:
    """Program k is that of seed 5,000,000 + k: some from all over the record are compared anew."""
    record = json.loads((seeds.ROOT / "docs" / "measured" / "fuzz.json").read_text(encoding="utf-8"))["engines"]
    again = {name: record[name]["again"] for name in ("strided-repeat", "vector-function", "vector-scopes")}
    assert sum(one["programs"] for one in again.values()) >= 100_000
    for name, one in again.items():
        assert one["differences"] == 0
        for number in range(0, one["programs"], one["programs"] // (100 if THOROUGH else 4)):
            assert engines.difference(name, number) is None, (name, number)


def test_records_add_up_inputs_and_take_the_longer_count_of_programs() -> None:
    one, other = Record(1), Record(2)
    one.reader("tile")["inputs"], other.reader("tile")["inputs"] = 3, 4
    one.reader("tile")["longest_seconds"], other.reader("tile")["longest_seconds"] = 0.5, 0.2
    one.engine("casts")["programs"], other.engine("casts")["programs"] = 7, 5
    other.engine("vliw")["programs"] = 9
    one.merge(other)
    assert (one.reader("tile")["inputs"], one.reader("tile")["longest_seconds"]) == (7, 0.5)
    assert (one.engine("casts")["programs"], one.engine("vliw")["programs"]) == (7, 9)
    with pytest.raises(AssertionError, match="same seed"):
        one.merge(Record(1, {"tile": {}}))


@pytest.mark.parametrize(("mechanism", "number"), [("strided-repeat", 97860), ("vector-function", 61900)])
def test_a_pipe_goes_on_when_what_it_waits_for_has_ended(mechanism: str, number: int) -> None:
    """Found as 108,180 cycles for 108,137: V was served late, and waited for an instruction that had ended before.

    The other is a deadlock that the mended engine could not explain: what the pipe waited for ended, and was forgotten
    before the pipe looked again, so that it seemed to have ended long ago.
    """
    assert engines.difference(mechanism, number) is None


def test_behind_skipped_trips_accesses_stand_where_those_trips_have_moved_them() -> None:
    """A loop whose accesses all move by 256 bytes: its first load behind the skipped trips waits for one execution."""
    assert engines.difference("vector-function", 700860) is None
