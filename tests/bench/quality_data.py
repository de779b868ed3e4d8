"""What recall quality is measured on: LoCoMo where it is at hand, and sets that are made here."""

import json
import os
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

FILE = "locomo_dev.json"
ADVERSARIAL = 5
START = datetime(2024, 1, 8, 9, tzinfo=UTC)


@dataclass(frozen=True)
class Turn:
    """One message."""

    id: str
    session: str
    role: str
    speaker: str
    at: datetime
    text: str


@dataclass(frozen=True)
class Asked:
    """A question, and the ids of the messages that answer it."""

    text: str
    evidence: tuple[str, ...]
    category: int


@dataclass
class Corpus:
    """The messages of one user, and questions about them."""

    name: str
    turns: list[Turn] = field(default_factory=list)
    questions: list[Asked] = field(default_factory=list)

    @property
    def answerable(self) -> list[Asked]:
        return [asked for asked in self.questions if asked.evidence and asked.category != ADVERSARIAL]

    @property
    def adversarial(self) -> list[Asked]:
        return [asked for asked in self.questions if asked.category == ADVERSARIAL]

    def sessions(self) -> Mapping[str, list[Turn]]:
        """The messages by session, in order."""
        found: dict[str, list[Turn]] = {}
        for turn in self.turns:
            found.setdefault(turn.session, []).append(turn)
        return found


def find_locomo(argument: str | None) -> Path | None:
    """The file: as named, in the folder `SHEPHERD_DATA`, or in `shared/data` beside the checkout."""
    if argument is not None:
        return Path(argument)
    folder = os.environ.get("SHEPHERD_DATA")
    beside = (parent / "shared" / "data" for parent in Path(__file__).resolve().parents)
    candidates = [Path(folder)] if folder else list(beside)
    return next((place / FILE for place in candidates if (place / FILE).is_file()), None)


def read_locomo(path: Path) -> list[Corpus]:
    """Each conversation as the memory of one user."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return [_conversation(f"conversation {number}", each) for number, each in enumerate(content, 1)]


def _conversation(name: str, content: Mapping[str, Any]) -> Corpus:
    turns = list(_turns(content["conversation"]))
    known = {turn.id for turn in turns}
    questions = [
        Asked(qa["question"], _evidence(qa.get("evidence", ()), known), qa["category"])
        for qa in content["qa"]
    ]
    return Corpus(name, turns, questions)


def _turns(conversation: Mapping[str, Any]) -> Iterator[Turn]:
    numbers = sorted(int(key[8:]) for key in conversation if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        began = datetime.strptime(conversation[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
        for said in conversation[f"session_{number}"]:
            at = began.replace(tzinfo=UTC)
            yield Turn(said["dia_id"], f"session {number}", "user", said["speaker"], at, _said(said))


def _said(turn: Mapping[str, str]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']} [shares {caption}]" if caption else turn["text"]


def _evidence(listed: Sequence[str], known: set[str]) -> tuple[str, ...]:
    pairs = [pair for entry in listed for pair in re.findall(r"D:?(\d+):(\d+)", entry)]
    ids = dict.fromkeys(f"D{int(session)}:{int(turn)}" for session, turn in pairs)
    return tuple(each for each in ids if each in known)


class _Writer:
    """Makes a corpus message by message."""

    def __init__(self, name: str) -> None:
        self.corpus = Corpus(name)
        self.random = random.Random(name)
        self._sessions = 0
        self._at = START

    def session(self) -> None:
        self._sessions += 1
        self._at = START + timedelta(days=self._sessions)

    def say(self, role: str, text: str) -> str:
        self._at += timedelta(minutes=1)
        turns = self.corpus.turns
        turn = Turn(f"m{len(turns)}", f"session {self._sessions}", role, "", self._at, text)
        turns.append(turn)
        return turn.id

    def ask(self, category: int, text: str, *evidence: str) -> None:
        self.corpus.questions.append(Asked(text, evidence, category))


def made_corpora() -> list[Corpus]:
    """The sets that are made here; the same on every machine."""
    return [make() for make in (_assistant_chats, _coding_notes, _many_sessions, _german, _japanese)]


_CITIES = ("Lisbon", "Kyoto", "Oslo", "Quito", "Dublin", "Hanoi", "Tallinn", "Cusco", "Ghent", "Perth")
_WHO = ("my sister", "two colleagues", "my father", "an old flatmate", "the choir", "my cousin")
_FOOD = ("a tasca called Velha Rosa", "the noodle counter Ittoku", "a fish bar named Havn", "Casa Humeda")
_FILLER = (
    "It is worth booking ahead, because the popular places fill up weeks before.",
    "Keep an eye on the weather and carry a light layer for the evenings.",
    "Many people find that a slow first day makes the rest more pleasant.",
    "Public transport is usually cheaper than a car, and you see more of daily life.",
    "If you have a budget in mind, tell me and I can adjust these ideas.",
    "A short checklist on paper often works better than an app.",
    "Remember to leave some time free, since plans tend to change.",
    "You can always start small and extend it once you see how it goes.",
    "There are several options, each with advantages and drawbacks.",
    "In general it helps to write down what matters most to you first.",
    "Some prefer the mornings, when it is quieter and the light is better.",
    "Check the opening hours, which differ between the seasons.",
    "A good rule of thumb is to plan for a third more time than you think.",
    "I would also compare a few reviews, keeping in mind that tastes differ.",
    "Think about what you enjoyed last time and build on that.",
    "Let me know if you would like a more detailed schedule.",
)


def _long(writer: _Writer, core: str) -> str:
    """An answer of an assistant, with what matters somewhere in it."""
    sentences = [writer.random.choice(_FILLER) for _ in range(writer.random.randint(14, 40))]
    sentences.insert(writer.random.randint(2, len(sentences) - 2), core)
    return "Certainly! Here are some thoughts. " + " ".join(sentences)


def _assistant_chats() -> Corpus:
    """A user and an assistant with long answers; what is asked for is in one sentence of one of them."""
    writer = _Writer("assistant chats")
    hobbies = ("the cello", "fencing", "pottery", "beekeeping", "chess", "archery", "calligraphy", "rowing")
    plants = ("a fiddle-leaf fig", "chillies", "a bonsai maple", "orchids", "a lemon tree", "ferns")
    books = ("The Salt Road", "Paper Harbours", "A Winter Ledger", "Nine Lanterns", "The Cartographer's Son")
    for number, city in enumerate(_CITIES):
        who, food = _WHO[number % len(_WHO)], _FOOD[number % len(_FOOD)]
        writer.session()
        told = writer.say("user", f"I'm off to {city} with {who} this spring. Any ideas what to do there?")
        answer = writer.say(
            "assistant", _long(writer, f"For dinner try {food}, a short walk from the river.")
        )
        extra = writer.say(
            "user", f"Nice. We land at {6 + number} in the evening and stay {3 + number} nights."
        )
        writer.say("assistant", _long(writer, "An early night would then be wise."))
        writer.ask(1, f"Who is coming along on my journey to {city}?", told)
        writer.ask(2, f"Where did you recommend eating in {city}?", answer)
        writer.ask(1, f"How long am I staying in {city}?", extra)
    for number, hobby in enumerate(hobbies):
        writer.session()
        writer.say("user", "I want to pick up something new this year and need a nudge.")
        writer.say("assistant", _long(writer, f"Something like {hobbies[number - 3]} could suit you."))
        told = writer.say("user", f"I signed up for {hobby}, {40 + 7 * number} euros a month, on Thursdays.")
        answer = writer.say(
            "assistant", _long(writer, f"Begin {hobby} with {10 + 5 * number} minutes a day.")
        )
        writer.ask(1, f"What do I pay for my {hobby.removeprefix('the ')} lessons?", told)
        writer.ask(2, f"How much daily practice did you suggest for {hobby}?", answer)
    for number, plant in enumerate(plants):
        writer.session()
        told = writer.say("user", f"The leaves of my {plant.split(' ', 1)[-1]} turn brown since I moved it.")
        answer = writer.say("assistant", _long(writer, f"Water {plant} every {number + 3} days, no more."))
        writer.ask(1, f"Which problem do I have with my {plant.split()[-1]}?", told)
        writer.ask(2, f"What did you tell me about how often to water {plant}?", answer)
    for number, book in enumerate(books):
        writer.session()
        told = writer.say(
            "user", f"I finished {book} last night and cried at the {('end', 'start')[number % 2]}."
        )
        writer.say("assistant", _long(writer, "Books that stay with us are rare."))
        writer.ask(1, f"Did I like {book}?", told)
    return writer.corpus


def _coding_notes() -> Corpus:
    """An agent's notes and a developer's remarks: identifiers, files, numbers."""
    writer = _Writer("coding notes")
    services = ("billing", "search", "mailer", "gateway", "ledger", "thumbnails", "auth", "reports")
    causes = (
        (
            "connection pool ran dry",
            "raised pool_size to {n} in {file}",
            "Why did {s} hang, and what was done?",
        ),
        ("retry loop had no backoff", "added jitter in {file}", "What was wrong with the retries of {s}?"),
        (
            "index on created_at was missing",
            "migration {n} adds it",
            "Which slow query in {s} needed an index?",
        ),
        (
            "cache key left out the tenant",
            "fixed key_for() in {file}",
            "How could tenants of {s} see each other?",
        ),
        (
            "time zone was dropped on parse",
            "use datetime.fromisoformat",
            "What went wrong with dates in {s}?",
        ),
        ("container was OOM killed", "limit is {n} MB now", "How much memory does the {s} container get?"),
    )
    for number, (service, (cause, fix, question)) in enumerate(product(services, causes)):
        if number % 4 == 0:
            writer.session()
        file = f"{service}/{('pool', 'client', 'store', 'keys')[number % 4]}.py"
        done = fix.format(n=20 + 3 * number, file=file)
        writer.say("user", f"Have a look at {service}, test_{service}_{number} is red again.")
        found = writer.say("assistant", f"{service}: the {cause}; {done}. Tests: {90 + number} passed.")
        writer.say("tool", f"$ pytest tests/{service} -q\n" + f"tests/{service}/test_api.py ....\n" * 12)
        writer.say("user", ("ok, commit it", "good, next", "thanks, push that")[number % 3])
        writer.ask(1, question.format(s=service), found)
    decisions = (
        ("We write ids as UUIDv7 from now on because of index locality.", "Which kind of ids did we choose?"),
        ("No ORM in the hot path: plain SQL with psycopg.", "What is our rule about object mappers?"),
        ("Deploys happen Tuesday and Thursday, never on Friday.", "On which days do we ship?"),
        ("Line length is 110, ruff formats, nobody argues.", "How wide may the source be?"),
        ("Feature flags live in flags.toml and die after two releases.", "Where are feature toggles kept?"),
        ("Python 3.11 is the oldest we support until October.", "What is the minimum interpreter version?"),
    )
    for said, question in decisions:
        writer.session()
        told = writer.say("user", said)
        writer.say("assistant", "Noted, I will keep to that.")
        writer.ask(2, question, told)
    return writer.corpus


def _many_sessions() -> Corpus:
    """Three hundred short sessions over most of a year, with one thing worth remembering in some."""
    writer = _Writer("many sessions")
    for number in range(300):
        writer.session()
        for _ in range(writer.random.randint(1, 3)):
            writer.say("user", _small_talk(writer))
            writer.say("assistant", writer.random.choice(("Sure.", "Happy to help with that.", "Done.")))
        if number % 5 == 0:
            statement, question = _STATEMENTS[number // 5 % len(_STATEMENTS)]
            slot = _SLOTS[number // 5 % len(_SLOTS)]
            told = writer.say("user", statement.format(slot=slot))
            writer.say("assistant", "Good to know.")
            writer.ask(1, question.format(slot=slot), told)
    return writer.corpus


_SLOTS = ("Anna", "Tariq", "Milo", "Greta", "Yusuf", "Ines", "Bruno", "Wanda", "Otis", "Lena", "Pavel")
_STATEMENTS = (
    ("{slot} turned forty and we threw a party on a boat.", "How did we celebrate {slot}'s birthday?"),
    ("My colleague {slot} is allergic to walnuts, so no brownies.", "What can {slot} not eat?"),
    ("I lent {slot} the circular saw until autumn.", "Which tool did I give to {slot}?"),
    ("{slot} moved out and now lives above a bakery.", "Where does {slot} live these days?"),
    ("{slot} broke a wrist while skating.", "What injury did {slot} have?"),
    ("{slot} got a job as a nurse on the night shift.", "What does {slot} do for a living?"),
    ("For {slot} I bought a telescope as a wedding present.", "What gift did {slot} get from me?"),
    ("{slot} adopted a three-legged greyhound.", "What kind of pet has {slot}?"),
    ("{slot} owes me eighty euros from the concert.", "How much money does {slot} still have to pay me?"),
)


def _small_talk(writer: _Writer) -> str:
    pick: Callable[[Sequence[str]], str] = writer.random.choice
    return " ".join(
        (
            pick(("Please summarise", "Can you shorten", "Translate", "Check", "Rewrite", "Proofread")),
            pick(("this mail", "the minutes", "my draft", "that paragraph", "the invitation", "the poster")),
            pick(("for the team", "for a client", "about the party", "for the landlord", "about a birthday")),
            pick(("before noon", "when you can", "in two lines", "and keep it friendly", "with care")),
        )
    )


_GERMAN = (
    ("Meine Schwester {slot} wohnt seit Mai in Köln.", "In welcher Stadt wohnt meine Schwester {slot}?"),
    ("{slot} hat mir das Fahrrad aus dem Keller geliehen.", "Von wem habe ich das Fahrrad, von {slot}?"),
    (
        "Der Zahnarzttermin mit {slot} wurde auf Dienstag verschoben.",
        "Wann ist der Zahnarzttermin mit {slot}?",
    ),
    ("Ich schulde {slot} noch zwanzig Euro für die Pizza.", "Wie viel Euro schulde ich {slot}?"),
    ("{slot} spielt jetzt Trompete im Stadtorchester.", "Welches Instrument spielt {slot}?"),
)
_GERMAN_FILLER = (
    "Kannst du mir bitte diese E-Mail etwas freundlicher formulieren?",
    "Wie wird das Wetter morgen, brauche ich einen Schirm?",
    "Danke, das reicht mir für heute.",
    "Schreib mir eine Einkaufsliste für das Wochenende.",
    "Was kostet ungefähr eine Fahrkarte nach Hamburg?",
)
_JAPANESE = (
    ("{slot}さんは先月京都に引っ越しました。", "{slot}さんはどこに引っ越しましたか"),
    ("{slot}さんに自転車を貸しました。", "{slot}さんに何を貸しましたか"),
    ("{slot}さんは卵アレルギーがあります。", "{slot}さんのアレルギーは何ですか"),
    ("{slot}さんとの会議は木曜日に変わりました。", "{slot}さんとの会議は何曜日ですか"),
)
_JAPANESE_FILLER = (
    "このメールを丁寧な言い方に直してください。",
    "明日の天気はどうですか。",
    "ありがとうございます、助かりました。",
    "週末の買い物リストを作ってください。",
)
_JAPANESE_NAMES = ("田中", "佐藤", "鈴木", "高橋", "渡辺", "伊藤", "山本", "中村")


def _german() -> Corpus:
    return _in_language(
        "German", _GERMAN, _GERMAN_FILLER, ("Jörg", "Anneliese", "Björn", "Käthe", "Uwe", "Silke")
    )


def _japanese() -> Corpus:
    return _in_language("Japanese", _JAPANESE, _JAPANESE_FILLER, _JAPANESE_NAMES)


def _in_language(
    name: str, statements: Sequence[tuple[str, str]], filler: Sequence[str], names: Sequence[str]
) -> Corpus:
    writer = _Writer(name)
    for number, (slot, (statement, question)) in enumerate(product(names, statements)):
        if number % 2 == 0:
            writer.session()
        for _ in range(3):
            writer.say("user", writer.random.choice(filler))
        told = writer.say("user", statement.format(slot=slot))
        writer.ask(1, question.format(slot=slot), told)
    return writer.corpus
