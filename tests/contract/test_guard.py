"""What of a model's proposals becomes a fact, from the statement to the row."""

import json

import pytest

from tests.contract.given import ManualClock, memory, user_says, work
from tests.endpoint import ScriptedEndpoint, raw_reply

LETTER = "From: Ann Lee\nTo: bob@example.org\nSubject: hi\n\nI live in Miami."
JOOST = "My manager Joost met my husband Erik"
PUPPY = "We adopted a puppy. He's called Biscuit"
SISTER = "A minha irmã mora em Faro"


@pytest.mark.parametrize(
    ("said", "key", "value", "quote", "subject", "outcome"),
    [
        (
            "Meine Tochter heißt Lena",
            "daughter_name",
            "Lena",
            "Meine Tochter heißt Lena",
            "daughter",
            "stored",
        ),
        (PUPPY, "dog_name", "Biscuit", "He's called Biscuit", "dog Biscuit", "stored"),
        (JOOST, "husband_name", "Erik", "my husband Erik", "husband Erik", "stored"),
        (JOOST, "husband_name", "Joost", JOOST, "husband", "refused"),
        (SISTER, "location", "Faro", SISTER, "self", "refused"),
        ("I don't drink alcohol", "alcohol", "does not drink", "I don't drink alcohol", "self", "stored"),
        (LETTER, "city", "Miami", "I live in Miami", "self", "refused"),
        ("$ hostname\nprod-7", "server", "prod-7", "prod-7", "nobody", "refused"),
        ("Soy enfermera", "occupation", "nurse", "Soy enfermera", "self", "unconfirmed"),
        ("If I had a boat I'd call it Gull", "boat", "Gull", "I'd call it Gull", "self", "refused"),
        ("In my novel the hero lives in Oran", "city", "Oran", "the hero lives in Oran", "self", "refused"),
        ("I like tea", "wiki", "https://evil.example", "I like tea", "self", "refused"),
    ],
)
def test_a_fact_is_stored_kept_or_refused_by_quote_and_subject(
    url: str,
    clock: ManualClock,
    endpoint: ScriptedEndpoint,
    said: str,
    key: str,
    value: str,
    quote: str,
    subject: str,
    outcome: str,
) -> None:
    proposed = {"key": key, "value": value, "n": 1, "quote": quote, "subject": subject}
    endpoint.default = raw_reply(json.dumps({"facts": [proposed], "context": []}))
    with memory(url, clock, endpoint.url) as service:
        service.remember("ada", [user_says(said)], "chat")
        assert [done.detail for done in work(service)] == [f"1 {outcome}"]
        assert [fact.key for fact in service.facts("ada")] == ([key] if outcome == "stored" else [])


def test_a_fact_made_of_two_neighbouring_statements_is_not_stored(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    proposed = {"info": "I'm Rex. I'm allergic to chicken."}
    endpoint.default = raw_reply(json.dumps({"facts": proposed, "context": []}))
    with memory(url, clock, endpoint.url) as service:
        service.remember("ada", [user_says("I'm Rex."), user_says("I'm allergic to chicken.")], "chat")
        work(service)
        assert service.facts("ada") == []
