"""A small memory and questions to it, to compare the order in which databases find things."""

from typing import Any

from shepherd_memory.service import Service
from tests.contract.given import ManualClock, user_says
from tests.contract.recalling import TinyEmbedder, embed_all, hits, recalling

SENTENCES = """
I moved to Lisbon last spring with my sister Clara.
The bakery around the corner sells rye bread on Fridays.
My daughter started to learn the violin in September.
We adopted a grey cat from the shelter and called her Mimi.
The train to Porto takes about three hours.
I am allergic to peanuts, so please no satay.
Our new office is next to the river.
Clara broke her arm while skiing in February.
I prefer tea to coffee in the morning.
The violin teacher lives in our street.
Mimi is afraid of the vacuum cleaner.
My passport expires in June.
We plan to visit Norway in the summer.
The dentist said that I need a new filling.
I finished reading a book about the history of bread.
""".strip().splitlines()
QUERIES = [
    "violin lessons",
    "What is the name of the cat?",
    "Who broke an arm?",
    "bread",
    "Where did I move to?",
    "When does my passport run out?",
    "What did Clara do?",
    "allergies",
    "last February",
]


def furnish(service: Service, embedder: Any) -> None:
    for number, sentence in enumerate(SENTENCES):
        said = user_says(sentence, id=str(number), name="Ann" if number % 2 else "Ben")
        answer = {"role": "assistant", "content": f"I see: {sentence[:20]}", "id": f"a{number}"}
        service.remember("ada", [said, answer], f"chat{number % 4}")
    service.set_fact("ada", "city", "Lisbon")
    service.set_fact("ada", "cat", "Mimi")
    service.add_context("ada", "What does the user drink?", "Tea in the morning")
    service.forget("ada", document=3)
    embed_all(service, embedder)


def rankings(url: str, engine: str) -> list[list[tuple[Any, ...]]]:
    """What each query finds in an empty database once it is furnished; `engine` is tiny, onnx or none."""
    from shepherd_memory.embedding.onnx import OnnxEmbedder

    embedder: Any = OnnxEmbedder() if engine == "onnx" else TinyEmbedder()
    with recalling(url, ManualClock(), embedder) as service:
        if engine == "none":
            vars(service).pop("_recall")
        furnish(service, embedder)
        found = [ranking(service, query) for query in QUERIES]
    assert all(found)
    return found


def ranking(service: Service, query: str) -> list[tuple[Any, ...]]:
    found = hits(service, "ada", query, explain=True)
    return [(hit.id, hit.kind, hit.text, hit.score, hit.confidence, hit.parts) for hit in found]
