"""Every form of an operation that public kernels contain is read and run on the target that uses it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from real_form_runs import opens, outcomes, try_form
from real_forms import forms

MISSING = {
    r": !pto\.tile_view<|-> !pto\.tile_view<": "views as an older assembler spelt them; no sheet describes them",
    r"memref<": "memory without a view; no sheet describes what makes it",
    r"tmov: !pto\.tile_buf<loc=": "keys of a tile type in an order that the front end refuses",
    r"tstore: vec 16x2x|tquant\.mx: ": "rows of 2 elements: the library takes rows of whole 32-byte blocks only",
    r"f8E8M0": "an element type that no operation of the vector unit takes",
    r"taxpy: vec f16 .* -> vec f32": "no source says how the products of f16 are rounded in f32",
    r"tcolargmin: |tconcatidx: ": "not modelled yet",
    r"trowmax: vec f32 32x32 pad1 ->": "without a scratch tile, which older assemblers demand",
    r"trowexpand: vec f32 8x1 valid \?x\? colmajor": "not modelled yet: of a column",
}
"""Forms that need not run, as the list of forms writes them, and why."""


def listed(text: str) -> str | None:
    """Return why a form need not run."""
    return next((reason for pattern, reason in MISSING.items() if re.search(pattern, text)), None)


def test_every_form_runs_or_is_listed():
    refused = {str(each.form): each.refusal for each in outcomes() if each.refusal}
    assert {text: refusal for text, refusal in refused.items() if listed(text) is None} == {}


def test_few_occurrences_are_listed():
    every = sum(form.occurrences for form in forms())
    assert (len(forms()), every) == (1847, 14955)  # the list of forms, and no other
    missing = sum(each.form.occurrences for each in outcomes() if each.refusal)
    assert missing <= 0.03 * every


def test_what_has_no_values_is_work_of_the_matrix_unit():
    """Only forms with tiles of other units, or with boxes, run without values."""
    for each in outcomes():
        if each.opaque:
            assert re.search(r"\b(mat|acc|left|right|bias|scaling) |box:|slayout=", str(each.form)), each.form


CHOSEN = tuple(form for form in forms() if opens(form))


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("open_extents", ["ragged", "empty"])
def test_valid_regions_known_when_the_program_runs(open_extents: str, number: int, tmp_path: Path):
    """A tile that is not full, or holds nothing at all, runs as a full one does."""
    for form in CHOSEN[number::8]:
        found = try_form(form, tmp_path / "form.pto", open_extents)
        assert not found.refusal or listed(str(form)), f"{form}: {found.refusal}"
