"""Every form of an operation that public kernels contain is read and run on the target that uses it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from campaigns import real_kernels
from kit.measured_record import document, read
from kit.real_form_runs import forms, listed, opens, outcomes, try_form

CHOSEN = tuple(form for form in forms() if opens(form))


def test_every_form_runs_or_is_listed():
    """One test, as all of it looks at the same runs."""
    every = sum(form.occurrences for form in forms())
    assert (len(forms()), every) == (1847, 14955)  # the list of forms, and no other
    refused = {str(each.form): each.refusal for each in outcomes() if each.refusal}
    assert {text: refusal for text, refusal in refused.items() if listed(text) is None} == {}
    assert sum(each.form.occurrences for each in outcomes() if each.refusal) <= 0.03 * every
    for each in outcomes():
        if each.opaque:  # tiles of other units, or boxes
            assert re.search(r"\b(mat|acc|left|right|bias|scaling) |box:|slayout=", str(each.form)), each.form
    assert read(real_kernels.RECORD) == document(real_kernels.page()), "python tests real_kernels writes it anew"


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("open_extents", ["ragged", "empty"])
def test_valid_regions_known_when_the_program_runs(open_extents: str, number: int, tmp_path: Path):
    """A tile that is not full, or holds nothing at all, runs as a full one does."""
    for form in CHOSEN[number::8]:
        found = try_form(form, tmp_path / "form.pto", open_extents)
        assert not found.refusal or listed(str(form)), f"{form}: {found.refusal}"
