"""The folders that tests read."""

from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
VECTORS = TESTS / "vectors"
PROGRAMS = ROOT / "programs"
