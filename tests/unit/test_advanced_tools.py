"""The tools for agents: recall with reasons, listing, looking back, forgetting one thing of one user."""

from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from shepherd_memory import tools
from shepherd_memory.config import Config
from shepherd_memory.service import Service, open_service


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    path: Path = tmp_path_factory.mktemp("tools") / "memory.db"
    config = Config(memory_database=f"sqlite:///{path}", embedding_engine="none", rag_relevance_threshold=0.3)
    with open_service(config, worker=False) as opened:
        yield opened


@pytest.fixture
def user(request: pytest.FixtureRequest) -> str:
    """A new user for each test."""
    return request.node.name


def text(service: Service, user: str, name: str, **arguments: object) -> str:
    return tools.answer(service, user, name, arguments).text


def test_a_chat_is_offered_sixteen_and_an_agent_all(service: Service, user: str) -> None:
    assert len(tools.TOOLS) == 16
    assert set(tools.ALL_TOOLS) > {tool["function"]["name"] for tool in tools.TOOLS}
    assert tools.execute(service, user, "list_facts", {}).startswith("Error: there is no tool 'list_facts'")
    assert text(service, user, "list_facts") == "There are no facts yet."


@pytest.mark.parametrize("name", tools.ALL_TOOLS)
def test_a_schema_is_one_that_every_model_takes(name: str) -> None:
    """Some refuse `anyOf` and the like at the top, some a list of types."""
    schema = tools.ALL_TOOLS[name].parameters
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema) == {"type", "properties", "required", "additionalProperties"}
    assert all(isinstance(one["type"], str) for one in schema["properties"].values())


def test_recall_says_why_nothing_was_certain_enough_and_shows_what_came_nearest(
    service: Service, user: str
) -> None:
    service.add_context(user, "What does the dog eat?", "Carrots")
    abstained = tools.answer(service, user, "recall", {"query": "zebra stripes", "min_confidence": 1})
    assert abstained.text.startswith("Nothing recalled for 'zebra stripes': ")
    assert abstained.data is not None
    assert (abstained.data["abstained"], abstained.data["hits"]) == (True, [])
    assert "Carrots" in text(service, user, "recall", query="dog", min_confidence=0)


def test_the_id_that_recall_shows_is_the_one_that_forget_takes(service: Service, user: str) -> None:
    service.set_fact(user, "dog_name", "Rex")
    service.add_context(user, "What does the dog eat?", "Carrots")
    service.add_document(user, "the dog barks", session_id="night")
    found = tools.answer(service, user, "recall", {"query": "dog", "min_confidence": 0}).data
    assert found is not None
    assert {hit["kind"] for hit in found["hits"]} == {"fact", "context", "document"}
    for hit in found["hits"]:
        assert text(service, user, "forget", kind=hit["kind"], id=hit["id"]).startswith("Deleted")
        assert text(service, user, "forget", kind=hit["kind"], id=hit["id"]).startswith("Not found")
    assert text(service, user, "recall", query="dog", min_confidence=0).startswith("Nothing recalled")


def test_a_session_is_forgotten_with_all_that_was_said_in_it(service: Service, user: str) -> None:
    service.remember(user, [{"role": "user", "content": "I like the night"}], "night")
    service.remember(user, [{"role": "user", "content": "I like the day"}], "day")
    assert text(service, user, "forget", kind="session", id="night") == "Deleted 1 document."
    assert [document.session_id for document in service.documents(user)] == ["day"]


def test_a_preview_deletes_nothing_and_says_what_goes_together(service: Service, user: str) -> None:
    service.remember(user, [{"role": "user", "content": "I like the night", "id": "m1"}], "night")
    service.add_document(user, "A night owl.", session_id="night", made_of="m1")
    service.add_document(user, "I like the night!", session_id="later")
    said = str(service.documents(user)[0].id)
    shown = text(service, user, "forget", kind="document", id=said, preview="true")
    assert shown.startswith("Nothing is deleted yet. This would go (2 documents):\n- document ")
    assert "A night owl." in shown
    assert shown.endswith(": I like the night!")
    assert len(service.documents(user)) == 3
    gone = text(service, user, "forget", kind="document", id=said)
    assert gone.startswith(f"Deleted document {said}.\nWith all that hangs together: 2 documents.")
    assert "\nSaying the same, and still there: document " in gone
    (left,) = service.documents(user)
    assert left.session_id == "later"


def test_one_row_is_deleted_alone_or_with_what_says_the_same(service: Service, user: str) -> None:
    service.set_fact(user, "favorite_color", "teal")
    service.set_fact(user, "color_preference", "teal")
    forget = {"kind": "fact", "id": "favorite_color"}
    assert text(service, user, "forget", **forget, only=True) == "Deleted fact favorite_color."
    service.set_fact(user, "favorite_color", "teal")
    assert text(service, user, "forget", **forget, only=True, same=True).startswith("Error:")
    assert text(service, user, "forget", **forget, same="maybe").startswith("Error:")
    text(service, user, "forget", **forget, same=True)
    assert service.facts(user) == []


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"kind": "fact"},
        {"id": "1"},
        {"kind": "user", "id": "1"},
        {"kind": "document", "id": "all"},
        {"kind": "context", "id": "-1"},
        {"kind": "document", "id": "9" * 40},
        {"kind": ["fact"], "id": "1"},
    ],
)
def test_forget_takes_one_thing_by_its_kind_and_id(
    service: Service, user: str, arguments: dict[str, object]
) -> None:
    assert text(service, user, "forget", **arguments).startswith("Error:")


def test_facts_are_listed_by_key_and_can_be_narrowed_down(service: Service, user: str) -> None:
    for number in range(60):
        service.set_fact(user, f"key_{number:02}", "x" * 500 if number == 0 else f"value {number}")
    listed = tools.answer(service, user, "list_facts", {})
    assert listed.text.startswith("60 facts, the first 50:\nkey_00 = xxx")
    assert listed.data is not None
    assert (len(listed.data["facts"]), listed.data["total"]) == (50, 60)
    assert len(listed.data["facts"][0]["value"]) < 250
    assert text(service, user, "list_facts", contains="VALUE 59").startswith(
        "1 fact:\nkey_59 = value 59 (since "
    )
    assert text(service, user, "list_facts", contains="nothing like it") == "There are no such facts."


def test_the_history_of_a_fact_has_its_values_oldest_first(service: Service, user: str) -> None:
    for city in ("Berlin", "Lisbon"):
        service.set_fact(user, "home_city", city)
    shown = text(service, user, "fact_history", key="homecity").splitlines()
    assert shown[0] == "home_city, oldest first:"
    assert shown[1].endswith(": Berlin")
    assert shown[2].startswith("since ")
    assert shown[2].endswith(": Lisbon")
    assert text(service, user, "fact_history", key="shoe_size").startswith("Not found")


@pytest.mark.parametrize("name", ["recall", "list_facts", "fact_history", "forget"])
def test_no_tool_shows_or_changes_the_memory_of_another(service: Service, user: str, name: str) -> None:
    owner = f"{user}-owner"
    service.set_fact(owner, "city", "Rome")
    service.add_document(owner, "Rome by night", session_id="city")
    before = list(service.export(owner))[1:]
    for kind, which in (("fact", "city"), ("session", "city"), ("document", "1"), ("document", "2")):
        given = {"query": "city", "min_confidence": 0, "key": "city", "kind": kind, "id": which}
        given |= {"_user_id": owner, "user_id": owner, "user": owner}
        assert "Rome" not in tools.answer(service, user, name, given).text
    assert list(service.export(owner))[1:] == before
