"""Bytes in common: against sets of bytes."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from castsim.execution.tree import Access, GlobalSpace, common_bytes, run_length, strided, widened


def content(access: Access) -> set[int]:
    """Return the bytes of an access, counted one by one."""
    starts = [access.start]
    for count, distance in access.runs:
        starts = [start + k * distance for start in starts for k in range(count)]
    return {start + k for start in starts for k in range(run_length(access))}


rows = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 20)), max_size=2)
touched = st.builds(lambda start, runs, size: strided("ub", start, runs, size, write=True),
                    st.integers(0, 60), rows, st.integers(1, 9))  # fmt: skip
moves = st.lists(st.tuples(st.integers(1, 5), st.integers(-30, 30)), max_size=2)


@settings(max_examples=400)
@given(touched, touched, st.integers(-40, 40), moves)
def test_common_bytes_are_those_of_the_sets(one, other, shift, moved):
    places = [shift + sum(offsets) for offsets in itertools.product(*([k * s for k in range(n)] for n, s in moved))]
    common = content(one) & {byte + place for byte in content(other) for place in places}
    found = common_bytes(one, other, shift, moved)
    assert (found is not None) == bool(common)
    assert found is None or set(range(*found)) <= common


@settings(max_examples=200)
@given(touched, st.integers(0, 6), st.integers(-25, 25))
def test_widening_is_the_union_of_all_trips(access, trips, step):
    everything = {byte + trip * step for trip in range(max(1, trips)) for byte in content(access)}
    assert content(widened(access, trips, step)) == everything


def test_rows_without_gaps_are_one_stretch():
    assert strided("ub", 32, ((4, 64),), 64, write=False) == Access("ub", 32, 32 + 4 * 64, False)
    assert strided("ub", 0, ((4, 64),), 32, write=False).runs == ((4, 64),)


def test_spaces_and_empty_accesses_have_nothing_in_common():
    full, other = Access("ub", 0, 64, True), Access(GlobalSpace.of("x"), 0, 64, True)
    assert common_bytes(full, other) is None
    assert common_bytes(full, Access("ub", 8, 8, True)) is None


def test_a_search_that_grows_too_long_gives_what_outermost_bytes_share():
    """Nested rows with distances that share no divisor: nothing in common, but that would take too long to find out."""
    odd = tuple((60, 2 * distance) for distance in (211, 223, 227, 229, 233, 239, 241, 251))
    one, other = strided("ub", 0, odd, 1, write=True), strided("ub", 1, odd, 1, write=True)
    assert common_bytes(one, other) == (1, one.end)
