"""What is written is found at once; what is deleted is found no more: by word or vector, cached or not."""

import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from shepherd_memory.embedding import backlog
from shepherd_memory.errors import InvalidInput
from shepherd_memory.memory import context
from shepherd_memory.service import Service
from shepherd_memory.storage import users
from shepherd_memory.storage.rows import Provenance
from tests.contract.given import ManualClock, examples, memory, user_says, work
from tests.contract.recalling import (
    TinyEmbedder,
    check_indexes,
    embed_all,
    found_by_keyword,
    hits,
    recalling,
    rows_holding,
    texts_found,
    use,
)
from tests.endpoint import ScriptedEndpoint

WORD = "xylophone"


@pytest.fixture
def service(url: str, clock: ManualClock) -> Iterator[Service]:
    with recalling(url, clock) as opened:
        yield opened


@pytest.mark.every_scheme
def test_each_kind_is_found_by_its_words_at_once_and_by_vector_once_embedded(service: Service) -> None:
    service.remember("ada", [user_says("I play the xylophone", id="m1", name="Ada")], "chat")
    service.set_fact("ada", "instrument", "a red xylophone")
    service.add_context("ada", "What do you play?", "The xylophone, on Sundays")
    service.add_document("ada", "How to tune a xylophone", session_id="files", message_id="d1")
    service.remember("ada", [user_says("Something else entirely, about cooking")], "other")
    before = hits(service, "ada", WORD, explain=True)
    by_word = [hit for hit in before if hit.parts and hit.parts["keyword"] > 0 and WORD in hit.text]
    assert sorted(hit.kind for hit in by_word) == ["context", "document", "document", "fact"]
    assert all(hit.parts and hit.parts["vector"] == 0 for hit in before)
    check_indexes(service.database)
    embed_all(service, TinyEmbedder())
    after = hits(service, "ada", WORD, explain=True)
    assert {hit.text for hit in after[:4]} == {hit.text for hit in by_word}
    assert all(hit.parts and hit.parts["vector"] > 0 for hit in after[:4])
    check_indexes(service.database)


def test_a_hit_says_what_it_is(service: Service, clock: ManualClock) -> None:
    said = user_says("I play the xylophone", id="m1", name="Ada", created_at="2025-05-04T12:00:00Z")
    service.remember("ada", [said], "chat")
    service.add_context("ada", "What do you play?", "The xylophone")
    found = {hit.kind: hit for hit in hits(service, "ada", WORD)}
    document = found["document"]
    assert (document.message_id, document.session_id, document.speaker_name, document.role) == (
        "m1",
        "chat",
        "Ada",
        "user",
    )
    assert document.created_at.isoformat() == "2025-05-04T12:00:00+00:00"
    assert document.parts is None
    assert found["context"].pair == ("What do you play?", "The xylophone")
    assert 0 <= document.confidence <= 1


@pytest.mark.every_scheme
def test_kinds_limit_and_threshold_choose(service: Service) -> None:
    service.remember("ada", [user_says(f"xylophone number {n}") for n in range(30)], "chat")
    service.set_fact("ada", "instrument", WORD)
    assert [hit.kind for hit in hits(service, "ada", WORD, kinds=["fact"])] == ["fact"]
    assert hits(service, "ada", WORD, kinds=["context"]) == ()
    assert len(hits(service, "ada", WORD, limit=7)) == 7
    assert len(hits(service, "ada", WORD, limit=10_000)) == 31
    nothing = service.recall("ada", "quantum chromodynamics", threshold=0.99)
    assert (nothing.hits, nothing.abstained) == ((), True)
    assert nothing.reason
    assert service.recall("nobody", WORD).abstained
    assert service.recall("ada", "   ").abstained
    for wrong in (["facts"], "fact", ["fact", ""]):
        with pytest.raises(InvalidInput, match="fact, context, document"):
            service.recall("ada", WORD, kinds=wrong)


@pytest.mark.every_scheme
def test_more_hits_are_given_than_a_query_may_have_parameters(service: Service) -> None:
    for batch in range(4):
        texts = [user_says(f"xylophone {batch} {number} tune{number}") for number in range(300)]
        service.remember("ada", texts, f"chat{batch}")
    assert len(hits(service, "ada", WORD, limit=40_000)) == 1200


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Ich wohne in Zürich", "zurich"),
        ("我的猫叫小白", "小白"),
        ("私は東京に住んでいます", "東京"),
        ("Мой кот живёт дома", "кот"),
        ("मेरा नाम अदा है", "अदा"),
        ("I was running in the parks", "run park"),
        ("naïve café", "NAIVE CAFE"),
    ],
)
def test_words_of_any_script_are_found(service: Service, text: str, query: str) -> None:
    service.remember("ada", [user_says(text), user_says("nothing of the kind")], "chat")
    assert found_by_keyword(service, "ada", query)[0] == text


def test_the_same_words_said_twice_are_one_hit(service: Service) -> None:
    for number in range(5):
        service.remember("ada", [user_says("I love the xylophone!", id=str(number))], f"chat{number}")
    service.remember("ada", [user_says("I love the XYLOPHONE", id="6")], "chat6")
    assert len(hits(service, "ada", WORD)) == 1


def _write_fact(service: Service) -> None:
    service.set_fact("ada", "instrument", f"the {WORD}")


def _write_context(service: Service) -> None:
    service.add_context("ada", "What do you play?", f"The {WORD}")


def _write_document(service: Service) -> None:
    service.remember("ada", [user_says(f"I play the {WORD}", id="m1")], "chat")


def _context_id(service: Service) -> int:
    return service.context("ada")[0].id


REMOVALS: dict[str, tuple[Callable[[Service], object], Callable[[Service], object]]] = {
    "fact replaced": (_write_fact, lambda service: service.set_fact("ada", "instrument", "drums")),
    "fact forgotten": (_write_fact, lambda service: service.forget("ada", fact="instrument")),
    "context forgotten": (
        _write_context,
        lambda service: service.forget("ada", context=_context_id(service)),
    ),
    "document forgotten": (
        _write_document,
        lambda service: service.forget("ada", document=service.documents("ada", session_id="chat")[0].id),
    ),
    "session forgotten": (_write_document, lambda service: service.forget("ada", session="chat")),
    "user erased": (_write_document, lambda service: service.erase("ada")),
}


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("embedded", [True, False], ids=["embedded", "waiting"])
def test_what_is_removed_is_found_no_more_here_or_elsewhere(
    url: str, clock: ManualClock, removal: str, embedded: bool
) -> None:
    write, remove = REMOVALS[removal]
    embedder = TinyEmbedder()
    with recalling(url, clock, embedder) as here, recalling(url, clock, TinyEmbedder()) as elsewhere:
        here.remember("ada", [user_says("I also cook"), user_says("and swim in lakes")], "other")
        write(here)
        if embedded:
            embed_all(here, embedder)
        for service in (here, elsewhere):
            assert any(WORD in text for text in texts_found(service, "ada", WORD)), "cached in both"
        clock.advance(1)
        remove(here)
        fresh = TinyEmbedder()
        for service in (here, elsewhere):
            assert not any(WORD in text for text in texts_found(service, "ada", WORD))
            use(service, fresh)
            assert not any(WORD in text for text in texts_found(service, "ada", WORD)), "and uncached"
        check_indexes(here.database)
        held = rows_holding(here.database, WORD)
        assert held == (["fact_history"] if removal == "fact replaced" else [])
        embed_all(here, embedder)
        assert not any(WORD in text for text in texts_found(elsewhere, "ada", WORD))


def test_a_refreshed_pair_is_found_by_its_new_words_only(url: str, clock: ManualClock) -> None:
    embedder = TinyEmbedder()
    with recalling(url, clock, embedder) as service:
        service.add_context("ada", "What do you play?", "The xylophone at home")
        service.remember("ada", [user_says("I also cook")], "other")
        embed_all(service, embedder)
        assert found_by_keyword(service, "ada", WORD)
        (pair,) = service.context("ada")
        clock.advance(1)
        with service.database.write() as tx:
            row_id = users.lock(tx, "ada", clock())
            where = Provenance(clock(), "test")
            answer = "The marimba at home"
            assert (
                context.put(tx, "ada", row_id, "What do you play?", answer, where, clock(), pair.id)
                == "refreshed"
            )
        assert found_by_keyword(service, "ada", WORD) == []
        assert found_by_keyword(service, "ada", "marimba")
        check_indexes(service.database)
        embed_all(service, embedder)
        check_indexes(service.database)
        assert rows_holding(service.database, WORD) == []


def test_what_the_worker_extracts_is_found(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> None:
    with memory(url, clock, endpoint.url) as service:
        service.remember("ada", [user_says("my instrument is xylophone")], "chat")
        work(service)
        assert {hit.kind for hit in hits(service, "ada", WORD)} == {"fact", "context", "document"}
        check_indexes(service.database)


def test_documents_that_are_not_kept_are_not_indexed(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url, memory_documents=False) as service:
        service.remember("ada", [user_says("my instrument is xylophone")], "chat")
        assert hits(service, "ada", WORD) == ()
        work(service)
        assert {hit.kind for hit in hits(service, "ada", WORD)} == {"fact", "context"}
        check_indexes(service.database)


def test_postings_of_another_tokenizer_are_removed_with_their_entry(service: Service) -> None:
    service.remember("ada", [user_says("I play the xylophone", id="m1")], "chat")
    with service.database.write() as tx:
        tx.execute("update postings set term = 'as it was stemmed once' where term like 'xyl%'")
        tx.execute("update entries set length = length + 1")
    service.forget("ada", session="chat")
    check_indexes(service.database)


def test_an_import_is_found_even_if_it_breaks_off(service: Service, clock: ManualClock) -> None:
    service.remember("ada", [user_says(f"xylophone {number}") for number in range(505)], "chat")
    service.set_fact("ada", "instrument", "a red xylophone")
    service.add_context("ada", "What do you play?", "The xylophone")
    whole = b"".join(service.export("ada"))
    with pytest.raises(InvalidInput):
        service.import_lines("broken", io.BytesIO(whole[:-40]))
    check_indexes(service.database)
    assert {hit.kind for hit in hits(service, "broken", WORD, limit=2000)} == {"fact", "context", "document"}
    service.import_lines("broken", io.BytesIO(whole))
    check_indexes(service.database)
    theirs, mine = (set(texts_found(service, user, WORD, limit=2000)) for user in ("broken", "ada"))
    assert theirs == mine


@pytest.mark.every_scheme
def test_a_fact_that_is_said_again_is_as_new_for_one_who_recalled_before(
    service: Service, clock: ManualClock
) -> None:
    service.set_fact("ada", "first", "xylophone")
    clock.advance(1)
    service.set_fact("ada", "second", "xylophone")
    before = hits(service, "ada", WORD, explain=True)
    clock.advance(1)
    service.set_fact("ada", "first", "xylophone")
    cached = hits(service, "ada", WORD, explain=True)
    assert cached != before
    use(service, TinyEmbedder(), 0)
    assert hits(service, "ada", WORD, explain=True) == cached


WORDS = ["xylophone", "lake", "summer", "bread"]


class Finding(RuleBasedStateMachine):
    """Random writes and deletions of two users: the indexes agree with the rows after every step."""

    def __init__(self, service: Service, clock: ManualClock) -> None:
        super().__init__()
        self.service = service
        self.clock = clock
        self.embedder = TinyEmbedder()
        self.cached = use(service, self.embedder)
        for user in ("ada", "bob"):
            service.erase(user)

    @rule(user=st.sampled_from(["ada", "bob"]), word=st.sampled_from(WORDS), session=st.sampled_from("ab"))
    def remember(self, user: str, word: str, session: str) -> None:
        self.clock.advance(1)
        said = [user_says(f"{word} and more"), {"role": "assistant", "content": f"{word}, you say?"}]
        self.service.remember(user, said, session)

    @rule(user=st.sampled_from(["ada", "bob"]), word=st.sampled_from(WORDS), key=st.sampled_from("xy"))
    def set_fact(self, user: str, word: str, key: str) -> None:
        self.clock.advance(1)
        self.service.set_fact(user, key, word)

    @rule(user=st.sampled_from(["ada", "bob"]), word=st.sampled_from(WORDS))
    def add_context(self, user: str, word: str) -> None:
        self.clock.advance(1)
        self.service.add_context(user, "Which?", word)

    @rule(user=st.sampled_from(["ada", "bob"]), key=st.sampled_from("xy"))
    def forget_fact(self, user: str, key: str) -> None:
        self.clock.advance(1)
        self.service.forget(user, fact=key)

    @rule(user=st.sampled_from(["ada", "bob"]), session=st.sampled_from("ab"))
    def forget_session(self, user: str, session: str) -> None:
        self.clock.advance(1)
        self.service.forget(user, session=session)

    @rule(user=st.sampled_from(["ada", "bob"]), data=st.data())
    def forget_one(self, user: str, data: st.DataObject) -> None:
        self.clock.advance(1)
        found = [("document", one.id) for one in self.service.documents(user)]
        found += [("context", one.id) for one in self.service.context(user)]
        if found:
            kind, row_id = data.draw(st.sampled_from(found))
            self.service.forget(user, **{kind: row_id})

    @rule()
    def embed(self) -> None:
        backlog.embed_batch(self.service.database, self.embedder, self.clock())

    @rule(user=st.sampled_from(["ada", "bob"]))
    def erase(self, user: str) -> None:
        assert self.service.erase(user).left == {}

    @rule(user=st.sampled_from(["ada", "bob"]), word=st.sampled_from(WORDS))
    def recall(self, user: str, word: str) -> None:
        """What was cached on the way gives the same as what is loaded now."""
        cached = hits(self.service, user, word, explain=True)
        use(self.service, self.embedder, 0)
        assert hits(self.service, user, word, explain=True) == cached
        use(self.service, self.embedder)
        hits(self.service, user, word)

    @invariant()
    def indexes_agree(self) -> None:
        check_indexes(self.service.database)


def test_random_writes_and_deletions_leave_indexes_and_rows_in_step(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        run_state_machine_as_test(
            lambda: Finding(service, clock),
            settings=settings(
                max_examples=examples(10),
                stateful_step_count=25,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )


MONTHS = {1: "the boiler broke", 2: "we went skiing in Davos", 3: "the new kitchen was fitted"}


def said_each_month(service: Service, user_id: str, group: str = "main") -> None:
    for month, words in MONTHS.items():
        said = user_says(f"{words}, {user_id} {group}", created_at=f"2027-0{month}-11T12:00:00Z")
        service.remember(user_id, [said], f"chat{month}", group=group)


@pytest.mark.every_scheme
@pytest.mark.parametrize(
    ("query", "month"),
    [
        ("what happened in February?", 2),
        ("Was war im März?", 3),
        ("what did I tell you on 2027-01-11?", 1),
        ("¿Qué pasó en enero de 2027?", 1),
        ("Что было в феврале?", 2),
        ("3月に何がありましたか", 3),
        ("上个月发生了什么", 2),
    ],
)
def test_a_question_about_a_time_alone_finds_what_was_said_then_and_nothing_else(
    service: Service, query: str, month: int
) -> None:
    said_each_month(service, "ada")
    said_each_month(service, "bob")
    said_each_month(service, "ada", "work")
    asked_at = datetime(2027, 3, 20, tzinfo=UTC)
    for group in ("work", "home"):
        found = service.recall("ada", query, now=asked_at, group=group)
        own = [f"{MONTHS[month]}, ada work"] if group == "work" else []
        assert [hit.text for hit in found.hits] == own
        assert found.abstained == (not own)
    assert service.recall("nobody", query, now=asked_at).abstained


EVENTS = ("the boiler broke", "we went skiing", "the kitchen was fitted", "I sold the car", "a storm came")


def test_a_question_about_a_time_alone_finds_all_that_was_said_then(url: str, clock: ManualClock) -> None:
    with memory(url, clock, embedding_engine="onnx") as service:
        saturdays = ("2027-01-30", "2027-02-06", "2027-02-27", "2027-03-06", "2027-03-13")
        for who, day in zip(("Ann", "Ben", "Cem", "Dora", "Eva"), saturdays, strict=True):
            said = [user_says(f"{event}, {who} said", created_at=f"{day}T12:00:00Z") for event in EVENTS]
            service.remember("ada", said, day)
        service.embed_own("ada")
        asked_at = datetime(2027, 3, 20, tzinfo=UTC)
        for query, days in {
            "what happened in March?": {"2027-03-06", "2027-03-13"},
            "what happened last month?": {"2027-02-06", "2027-02-27"},
            "what happened last Saturday?": {"2027-03-13"},
            "Was war im März?": {"2027-03-06", "2027-03-13"},
            "先週の土曜日に何がありましたか": {"2027-03-13"},
        }.items():
            found = service.recall("ada", query, limit=50, now=asked_at).hits
            assert {hit.session_id for hit in found} == days, query
            assert len(found) == len(days) * len(EVENTS), query


def test_a_time_in_which_nothing_was_said_is_told(service: Service) -> None:
    said_each_month(service, "ada")
    found = service.recall("ada", "what happened in 2019?")
    assert (found.hits, found.abstained) == ((), True)
    assert "in the time" in found.reason


def test_the_filters_of_a_recall_hold_for_a_time_as_well(service: Service) -> None:
    said_each_month(service, "ada")
    service.set_fact("ada", "kitchen", "oak")
    asked_at = datetime(2027, 3, 20, tzinfo=UTC)
    in_march = service.recall("ada", "what happened in March?", now=asked_at)
    assert {hit.kind for hit in in_march.hits} >= {"document"}
    assert service.recall("ada", "what happened in March?", now=asked_at, kinds=["context"]).abstained
    assert service.recall("ada", "what happened in March?", now=asked_at, until="2027-03-01").abstained
