"""Ids as groups are shown them: a permutation for each user and group, which tells of no order and no gap."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shepherd_memory.storage.group_ids import MAX_SHOWN_ID, GroupIds, StoredId, holds_ids

KEY, OTHER_KEY = b"k" * 32, b"l" * 32
GROUP, OTHER = GroupIds(KEY), GroupIds(OTHER_KEY)

ids = st.integers(1, MAX_SHOWN_ID)


@given(ids)
@example(1)
@example(MAX_SHOWN_ID)
@example(GROUP._decipher(0))
def test_each_id_has_one_name_and_each_name_one_id(row_id: int) -> None:
    shown = GROUP.shown_id(row_id)
    assert 0 < shown <= MAX_SHOWN_ID < 2**53
    assert GROUP.given_id(shown) == row_id
    assert GROUP.shown_id(GROUP.given_id(row_id)) == row_id


def test_no_row_is_called_so_in_two_groups() -> None:
    shown = {GROUP.shown_id(one) for one in range(1, 10_001)}
    assert not any(OTHER.shown_id(one) in shown for one in range(1, 10_001))


@pytest.mark.parametrize("number", [0, -1, MAX_SHOWN_ID + 1, 2**63 - 1, 2**80])
def test_what_can_be_no_id_of_a_row_stays_as_it_is(number: int) -> None:
    assert GROUP.shown_id(number) == GROUP.given_id(number) == number


def test_main_is_shown_ids_as_they_are() -> None:
    assert [GroupIds().shown_id(one) for one in (1, 2, 17)] == [1, 2, 17]
    assert [GroupIds().given_id(one) for one in (1, 2, 17)] == [1, 2, 17]


def test_what_is_shown_tells_nothing_of_order_and_gaps() -> None:
    shown = [GROUP.shown_id(one) for one in range(1, 20_001)]
    assert len(set(shown)) == len(shown)
    rises = sum(after > before for before, after in pairwise(shown))
    assert abs(rises / len(shown) - 0.5) < 0.01
    for bit in range(52):
        share = sum(one >> bit & 1 for one in shown) / len(shown)
        assert abs(share - 0.5) < 0.02, bit
    # Neither of neighbours, nor of those that are a power of two apart.
    for apart in (1, 2, 4, 1 << 10):
        pairs = list(zip(shown, shown[apart:], strict=False))
        changed = sum((a ^ b).bit_count() for a, b in pairs) / len(pairs)
        assert abs(changed - 26) < 0.2, apart


@dataclass(frozen=True)
class Row:
    id: StoredId
    count: int
    near: tuple[StoredId, ...] = ()
    told: tuple[tuple[str, StoredId], ...] = ()
    parent: StoredId | None = None


@dataclass(frozen=True)
class Page:
    rows: Sequence[Row]
    by_place: dict[int, Row]
    total: int = 0


def test_every_id_of_a_value_is_changed_and_nothing_else() -> None:
    row = Row(5, 5, (6, 7), (("fact", 8), ("document", 9)), 10)
    page = Page([row, Row(11, 11)], {3: row}, 2)
    shown = GROUP.shown(page)
    assert shown.total == 2
    assert [one.count for one in shown.rows] == [5, 11]
    first, second = shown.rows
    assert (second.id, second.parent, second.near) == (GROUP.shown_id(11), None, ())
    assert (first.id, first.parent) == (GROUP.shown_id(5), GROUP.shown_id(10))
    assert first.near == (GROUP.shown_id(6), GROUP.shown_id(7))
    assert first.told == (("fact", GROUP.shown_id(8)), ("document", GROUP.shown_id(9)))
    assert shown.by_place == {3: first}
    assert GROUP.given(shown) == page


def test_an_id_that_stands_alone_is_known_by_its_type() -> None:
    assert GROUP.shown(5, StoredId) == GROUP.shown_id(5)
    assert GROUP.shown(5, StoredId | None) == GROUP.shown_id(5)
    assert GROUP.shown(None, StoredId | None) is None
    assert GROUP.shown(5, int) == 5
    assert GROUP.given([5, 6], Sequence[StoredId]) == [GROUP.given_id(5), GROUP.given_id(6)]
    assert GROUP.given(range(5, 7), Sequence[StoredId]) == [GROUP.given_id(5), GROUP.given_id(6)]
    assert GROUP.given(frozenset((5,)), frozenset[StoredId]) == {GROUP.given_id(5)}


def test_values_that_come_one_after_the_other_are_changed_as_they_come() -> None:
    def rows() -> Iterator[Row]:
        yield Row(5, 5)
        raise AssertionError("this one was not asked for")

    assert next(iter(GROUP.shown(rows(), Iterator[Row]))).id == GROUP.shown_id(5)


@pytest.mark.parametrize(
    ("kind", "holds"),
    [
        (StoredId, True),
        (int, False),
        (list[Row], True),
        (Row | None, True),
        (tuple[list[str], list[Page]], True),
        (dict[str, int], False),
        (None, False),
    ],
)
def test_a_type_says_whether_there_are_ids_in_it(kind: object, holds: bool) -> None:
    assert holds_ids(kind) is holds
