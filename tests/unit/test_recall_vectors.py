"""The table of vectors that grows at its end."""

import numpy as np
import pytest

from shepherd_memory.recall.vectors import COPIED_AT_ONCE, Vectors


def rows(count: int, first: int = 0, width: int = 3) -> np.ndarray:
    return np.arange(first, first + count * width, dtype=np.float32).reshape(count, width)


def test_without_rows_it_is_empty() -> None:
    assert (len(Vectors()), Vectors().width, Vectors().table.shape) == (0, 0, (0, 0))


@pytest.mark.parametrize("count", [1, 5, COPIED_AT_ONCE, 2 * COPIED_AT_ONCE + 1])
def test_rows_are_added_at_its_end(count: int) -> None:
    both = Vectors().with_rows(rows(count)).with_rows(rows(2, first=7))
    assert len(both) == count + 2
    np.testing.assert_array_equal(both.table, np.concatenate([rows(count), rows(2, first=7)]))


def test_a_row_more_copies_nothing() -> None:
    few = Vectors().with_rows(rows(5))
    assert np.shares_memory(few.table, few.with_rows(rows(1)).table)


def test_it_grows_beyond_its_room() -> None:
    grown = Vectors().with_rows(rows(1))
    for number in range(500):
        grown = grown.with_rows(rows(1, first=number))
    np.testing.assert_array_equal(grown.table[1:, 0], np.arange(500))


def test_one_that_grew_leaves_the_one_before_it_as_it_was() -> None:
    before = Vectors().with_rows(rows(5))
    before.with_rows(rows(1, first=100))
    np.testing.assert_array_equal(before.table, rows(5))


def test_two_that_grow_from_the_same_rows_do_not_write_over_each_other() -> None:
    before = Vectors().with_rows(rows(5))
    one, other = before.with_rows(rows(1, first=100)), before.with_rows(rows(1, first=200))
    assert (one.table[-1, 0], other.table[-1, 0]) == (100, 200)
    np.testing.assert_array_equal(other.table[:5], rows(5))


def test_what_it_has_room_for_is_counted() -> None:
    table = Vectors().with_rows(rows(5))
    assert table.bytes > table.table.nbytes
