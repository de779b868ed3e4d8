"""Names of archives: readable where they can be, and one for each session, user and group."""

from datetime import UTC, datetime

import pytest

from shepherd_memory.archives.file_names import file_stem, free_name
from shepherd_memory.mirrors.folder_names import folder_name, slug_of

BEGUN = datetime(2026, 2, 21, 3, 39, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("Tax return", "2026-02-21-tax-return"),
        ("税金", "2026-02-21-税金"),
        ("../../x", "2026-02-21-x"),
        ("a/b\\c\0d", "2026-02-21-a-b-c-d"),
        ("", "2026-02-21-conversation-0339"),
        ("🚲🚲", "2026-02-21-conversation-0339"),
        ("हिन्दी", "2026-02-21-हिन्दी"),
        ("STRASSE straße", "2026-02-21-strasse-strasse"),
    ],
)
def test_a_file_is_named_by_the_day_and_what_letters_a_name_has(name: str, stem: str) -> None:
    assert file_stem(name, BEGUN) == stem


def test_a_slug_has_at_most_50_characters_and_no_hyphen_at_its_end() -> None:
    assert slug_of("word " * 60) == "-".join(["word"] * 10)
    assert len(slug_of("x" * 300)) == 50


def test_the_second_of_a_name_is_numbered() -> None:
    assert free_name("a", ()) == "a.md"
    assert free_name("a", ("a.md", "a-2.md")) == "a-3.md"


def test_no_two_users_have_the_same_folder_even_where_case_does_not_count() -> None:
    ids = [
        "ada",
        "Ada",
        "ADA",
        "../ada",
        "ada/..",
        "ada ",
        ".",
        "..",
        "",
        "nul",
        "a" * 256,
        "a" * 255,
        "/ada",
    ]
    names = [folder_name(one) for one in ids]
    assert names[0] == "ada"
    assert len({name.casefold() for name in names}) == len(ids)
    assert not any(name in ("", ".", "..") or "/" in name or name.startswith(".") for name in names)
    assert all(len(name.encode()) < 255 for name in names)
