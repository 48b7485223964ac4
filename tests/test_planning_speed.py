"""Answers come in time: CPU seconds, so that what else the machine does matters little."""

import os

import pytest
from benchmarks.answers import ASKED, ask, markdown

THOROUGH = os.environ.get("CASTSIM_THOROUGH") == "1"
NARROW = [asked for asked in ASKED if asked.split()[0] in ("f16", "bf16", "i16")]
PROCESSORS = os.cpu_count() or 1


@pytest.mark.parametrize("asked", NARROW if THOROUGH else NARROW[:2])
def test_sources_of_16_bits_without_numba(asked: str) -> None:
    answer = ask(asked, numba=False)
    assert "all 65536 codes" in answer.how
    if THOROUGH:  # seconds are for who asks for them: a second of an idle machine is two of a busy one, or more
        assert answer.cpu < 2


@pytest.mark.skipif(not THOROUGH, reason="CASTSIM_THOROUGH=1: minutes")
@pytest.mark.parametrize("asked", ASKED)
def test_every_answer_with_numba(asked: str) -> None:
    pytest.importorskip("numba")
    assert ask(asked, numba=True).cpu < 10 * PROCESSORS


def test_the_table_holds_what_was_asked() -> None:
    answer = ask("u8 f16 --target a5", numba=True)
    assert f"| u8 f16 --target a5 | with | {answer.cpu:.2f} |" in markdown([answer])
    assert "all 256 codes of u8" in answer.how
