"""Fuzzing: hostile inputs for every reader, random programs for every engine; see docs/measured.md.

`python -m tests.fuzz` runs a campaign; `test_fuzz.py` beside this folder runs a short, deterministic part of it.
"""
