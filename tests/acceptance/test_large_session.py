"""A session that is larger than it should be is never loaded whole, whatever is done with it."""

from tests.acceptance.combinations import first_backend
from tests.large_session import DEEDS, MEGABYTE, grown_by, hold

MEGABYTES = 48
SEARCH = "sessions search"
"""Takes what the index of all words takes; `tests.bench.report_large_session` measures it."""


@first_backend
def test_what_is_told_exported_read_and_resumed_of_a_large_session_goes_piece_by_piece(
    database_url: str,
) -> None:
    hold(database_url, MEGABYTES, is_indexed=False)
    assert grown_by(database_url, *(deed for deed in DEEDS if deed != SEARCH)) < MEGABYTES * MEGABYTE // 2
