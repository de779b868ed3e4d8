"""What a model cites at the end of its answer is counted, and no part of what it said."""

import pytest

from shepherd_memory.intake.exchange import read_answered
from shepherd_memory.intake.messages import read_messages
from shepherd_memory.text.citations import MAX_CITED, cited_ids, without_citation
from shepherd_memory.transcripts.cleaning import clean
from shepherd_memory.transcripts.sources import TranscriptEntry

BLOCK = (
    "<memory-citation>\nMEMORY.md:12-20|note=[the bike]\n<ids>\n42\nchat-1\n42\n</ids>\n</memory-citation>"
)
ANSWER = f"You have a Brompton.\n\n{BLOCK}\n"


def test_the_block_at_the_end_is_taken_off_and_its_ids_are_read_once() -> None:
    assert without_citation(ANSWER) == "You have a Brompton."
    assert cited_ids(ANSWER) == ("42", "chat-1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "You have a Brompton.",
        f"{BLOCK} is how one cites.",
        "<memory-citation>\n42",
        "</memory-citation>",
        "Close it with </memory-citation>",
    ],
)
def test_what_is_no_block_at_the_end_stays(text: str) -> None:
    assert without_citation(text) == text
    assert cited_ids(text) == ()


def test_of_endless_citations_so_many_are_counted() -> None:
    many = "\n".join(map(str, range(10_000)))
    assert len(cited_ids(f"<memory-citation>{many}</memory-citation>")) == MAX_CITED
    assert without_citation("<memory-citation>" * 100_000 + "</memory-citation>").count("<") == 99_999


def test_it_is_stored_nowhere() -> None:
    asked = {"role": "user", "content": "Which bike do I have?"}
    answered = read_answered([asked], ANSWER, "chat", 1)
    assert answered is not None
    stored = answered.exchange.messages("chat", answered.answer, 1)
    assert [message.text for message in stored] == ["Which bike do I have?", "You have a Brompton."]
    assert len(answered.exchange.messages("chat", BLOCK, 1)) == 1
    part = {"type": "text", "text": ANSWER}
    for content in (ANSWER, [part]):
        (message,), _ = read_messages([{"role": "assistant", "content": content}], "chat", 1)
        assert message.text == "You have a Brompton."
        assert "memory-citation" not in (message.extra or "")
    (entry,) = clean([TranscriptEntry("m1", "assistant", ANSWER, 1)])
    assert entry.text == "You have a Brompton."


def test_what_the_user_writes_is_the_users() -> None:
    (message,), _ = read_messages([{"role": "user", "content": ANSWER}], "chat", 1)
    assert message.text == ANSWER
