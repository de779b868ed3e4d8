"""What says the same as a statement in other words, and what only comes near to it."""

from dataclasses import dataclass

from shepherd_memory.memory import facts
from shepherd_memory.service import Service
from shepherd_memory.storage import users
from shepherd_memory.storage.rows import Provenance

KEY = "what"


@dataclass(frozen=True)
class Case:
    """A statement, the value of the fact that was made of it, and texts that do and do not say the same."""

    said: str
    value: str
    same: tuple[str, ...]
    others: tuple[str, ...]


@dataclass
class Found:
    """How many texts were found that say the same, of how many, and how many that do not."""

    right: int = 0
    wanted: int = 0
    wrong: int = 0

    @property
    def recall(self) -> float:
        return self.right / self.wanted

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + self.wrong)


def look_for_same(service: Service, cases: tuple[Case, ...], with_fact: bool, now: int) -> Found:
    """Let each case be said by a user of its own; what `plan_forgetting` calls the same."""
    found = Found()
    for number, case in enumerate(cases):
        user_id = f"user-{number}-{with_fact}"
        document = service.add_document(user_id, case.said, type="message", role="user", session_id="said")
        for text in (*case.same, *case.others):
            service.add_document(user_id, text, type="message", role="user", session_id="elsewhere")
        if with_fact:
            _add_fact(service, user_id, document, case.value, now)
        service.embed_own(user_id)
        plan = service.plan_forgetting(user_id, document=document)
        texts = {one.text for one in plan.same if one.kind == "document"}
        found.right += len(texts & set(case.same))
        found.wanted += len(case.same)
        found.wrong += len(texts & set(case.others))
    return found


def _add_fact(service: Service, user_id: str, document: int, value: str, now: int) -> None:
    said = service.get_document(user_id, document)
    with service.database.write() as tx:
        row_id = users.lock(tx, user_id, now)
        where = Provenance(now, "live", said.session_id, said.message_id)
        facts.put(tx, user_id, KEY, value, where, now, row_id)


CASES: tuple[Case, ...] = (
    Case(
        "my favorite color is teal",
        "teal",
        (
            "Teal is the colour I like best.",
            "If I could paint everything, it would all be teal, I love that color.",
            "Of all colours, teal is the one for me.",
        ),
        (
            "my favorite color is red",
            "The bathroom tiles are teal.",
            "My sister's car is teal.",
            "What is a good color for a kitchen?",
        ),
    ),
    Case(
        "I live in Lisbon",
        "Lisbon",
        ("My home is in Lisbon.", "I'm based in Lisbon these days.", "Lisbon is where I live."),
        (
            "I live in Porto",
            "I flew to Lisbon for a conference.",
            "My brother moved to Lisbon last year.",
            "The weather in Lisbon was awful in March.",
        ),
    ),
    Case(
        "My dog is called Rex",
        "Rex",
        ("We named the dog Rex.", "Rex is the name of my dog.", "Our dog's name is Rex."),
        (
            "My cat is called Mia",
            "Rex bit the postman.",
            "My dog is called Bello",
            "The king's title is Rex in Latin.",
        ),
    ),
    Case(
        "I am allergic to peanuts",
        "peanuts",
        (
            "I can't eat peanuts, I get an allergic reaction.",
            "Peanuts are something I'm allergic to.",
            "I have a peanut allergy.",
        ),
        (
            "I am allergic to cats",
            "We bought peanuts for the party.",
            "My son is allergic to peanuts.",
            "Peanuts are legumes, not nuts.",
        ),
    ),
    Case(
        "I work as a nurse in Bergen",
        "nurse",
        (
            "My job is nursing, at a hospital in Bergen.",
            "I'm a nurse and work in Bergen.",
            "In Bergen I am employed as a nurse.",
        ),
        (
            "I work as a teacher in Bergen",
            "The nurse took my blood pressure.",
            "I have been to Bergen twice.",
            "My mother was a nurse.",
        ),
    ),
    Case(
        "My wife's name is Clara",
        "Clara",
        ("Clara is my wife.", "I am married to Clara.", "The woman I married is called Clara."),
        (
            "My wife's name is Anna",
            "Clara sent me the report.",
            "My daughter's name is Clara",
            "Clara is my boss.",
        ),
    ),
    Case(
        "I drive a green Volvo",
        "Volvo",
        ("My car is a Volvo, a green one.", "The car I have is a green Volvo.", "I own a green Volvo."),
        (
            "I drive a red Fiat",
            "Volvo was sold to Geely.",
            "My neighbour drives a green Volvo",
            "The Volvo in front of us braked hard.",
        ),
    ),
    Case(
        "I was born in 1987",
        "1987",
        ("My year of birth is 1987.", "1987 is the year in which I was born.", "Born in 1987, that's me."),
        (
            "I was born in 1978",
            "The house was built in 1987.",
            "My wife was born in 1987",
            "In 1987 the wall was still there.",
        ),
    ),
    Case(
        "I don't drink alcohol",
        "alcohol",
        ("I never drink alcohol.", "Alcohol is nothing I touch.", "I'm a teetotaller: no alcohol for me."),
        (
            "I drink alcohol now and then",
            "The disinfectant has 70 % alcohol.",
            "My father doesn't drink alcohol",
            "I don't drink coffee",
        ),
    ),
    Case(
        "I play the cello",
        "cello",
        (
            "The instrument I play is the cello.",
            "I've been a cello player since school.",
            "Cello is my instrument.",
        ),
        (
            "I play the piano",
            "The cello concert was sold out.",
            "My niece plays the cello",
            "I'd love to hear a cello some day.",
        ),
    ),
    Case(
        "My flight to Oslo leaves on Friday",
        "Oslo",
        (
            "On Friday I fly to Oslo.",
            "I'm taking the plane to Oslo on Friday.",
            "My plane to Oslo goes Friday.",
        ),
        (
            "My flight to Rome leaves on Friday",
            "Oslo is the capital of Norway.",
            "I came back from Oslo on Monday",
            "The package from Oslo arrives on Friday.",
        ),
    ),
    Case(
        "I prefer tea over coffee",
        "tea",
        (
            "Tea is what I'd rather drink than coffee.",
            "I like tea better than coffee.",
            "Given the choice between coffee and tea I take tea.",
        ),
        (
            "I prefer coffee over tea",
            "We are out of tea.",
            "My boss prefers tea over coffee",
            "Green tea has caffeine, too.",
        ),
    ),
    Case(
        "My shoe size is 43",
        "43",
        ("I wear shoes in size 43.", "For shoes I need a 43.", "Size 43 is what fits my feet."),
        (
            "My shoe size is 38",
            "Bus 43 goes to the station.",
            "My son's shoe size is 43",
            "There were 43 people in the room.",
        ),
    ),
    Case(
        "I am learning Japanese",
        "Japanese",
        (
            "I'm studying Japanese at the moment.",
            "I take Japanese lessons.",
            "Japanese is the language I am learning.",
        ),
        (
            "I am learning Spanish",
            "The Japanese restaurant was closed.",
            "My girlfriend is Japanese.",
            "My friend is learning Japanese",
        ),
    ),
    Case(
        "My son Leo starts school in August",
        "Leo",
        (
            "Leo, my son, will begin school this August.",
            "In August our boy Leo goes to school for the first time.",
            "School begins for my son Leo in August.",
        ),
        (
            "My daughter Mia starts school in August",
            "Leo called about the invoice.",
            "My son Leo broke his arm",
            "School holidays begin in August.",
        ),
    ),
    Case(
        "I run a small bakery",
        "bakery",
        ("I own a little bakery.", "The bakery I run is a small one.", "My business is a small bakery."),
        (
            "I run a small bookshop",
            "The bakery on the corner is closed on Mondays.",
            "My aunt runs a small bakery",
            "I run every morning.",
        ),
    ),
    Case(
        "I have a meeting with the tax office on Tuesday",
        "tax",
        (
            "On Tuesday I'm meeting the tax office.",
            "The tax office expects me on Tuesday.",
            "Tuesday is my appointment at the tax office.",
        ),
        (
            "I have a meeting with the bank on Tuesday",
            "The tax office is closed on weekends.",
            "My tax return is done.",
            "I have a meeting with the tax office on Friday",
        ),
    ),
    Case(
        "I take metformin for my diabetes",
        "metformin",
        (
            "For diabetes I'm on metformin.",
            "My diabetes is treated with metformin.",
            "I'm diabetic and take metformin.",
        ),
        (
            "I take ibuprofen for my back",
            "Metformin was approved in 1995.",
            "My mother takes metformin for her diabetes",
            "Diabetes runs in our family.",
        ),
    ),
)
"""Those on which the threshold was chosen."""

UNSEEN: tuple[Case, ...] = (
    Case(
        "I was vaccinated against rabies in May",
        "rabies",
        (
            "In May I got the rabies vaccine.",
            "I had my rabies shot in May.",
            "My vaccination against rabies was in May.",
        ),
        (
            "I was vaccinated against flu in May",
            "Rabies is transmitted by bites.",
            "My cat was vaccinated against rabies in May",
            "The garden was full of roses in May.",
        ),
    ),
    Case(
        "My landlord is called Petrov",
        "Petrov",
        (
            "Petrov is the name of my landlord.",
            "The flat belongs to Petrov, my landlord.",
            "I rent from a landlord named Petrov.",
        ),
        (
            "My landlord is called Jensen",
            "Petrov won the chess game.",
            "My dentist is called Petrov",
            "My landlord raised the rent.",
        ),
    ),
    Case(
        "I ride a motorcycle to work",
        "motorcycle",
        ("I commute by motorcycle.", "My way to work is by motorcycle.", "I go to work on my motorcycle."),
        (
            "I ride a bicycle to work",
            "The motorcycle in the yard is stolen.",
            "My husband rides a motorcycle to work",
            "I work in a motorcycle shop.",
        ),
    ),
    Case(
        "I am afraid of spiders",
        "spiders",
        ("Spiders scare me.", "I have a fear of spiders.", "Spiders are what I'm frightened of."),
        (
            "I am afraid of heights",
            "Spiders have eight legs.",
            "My roommate is afraid of spiders",
            "We found two spiders in the cellar.",
        ),
    ),
    Case(
        "I moved to Vienna in 2019",
        "Vienna",
        (
            "In 2019 I relocated to Vienna.",
            "Since 2019 my home has been Vienna.",
            "2019 was the year I moved to Vienna.",
        ),
        (
            "I moved to Graz in 2019",
            "I moved to Vienna in 2012",
            "The Vienna opera was great.",
            "My parents moved to Vienna in 2019",
        ),
    ),
    Case(
        "My password hint is the name of my first school",
        "school",
        (
            "As a password hint I use my first school's name.",
            "The hint for my password: what my first school was called.",
            "My first school's name is the hint for my password.",
        ),
        (
            "The school is closed on Friday.",
            "My password is changed every month.",
            "My first school was in the countryside.",
            "The hint for the riddle is on page two.",
        ),
    ),
    Case(
        "I earn 4200 euros a month",
        "4200",
        (
            "My monthly salary is 4200 euros.",
            "4200 euros is what I make per month.",
            "Every month I get paid 4200 euros.",
        ),
        (
            "I earn 3100 euros a month",
            "The sofa costs 4200 euros.",
            "My colleague earns 4200 euros a month",
            "The rent is 900 euros a month.",
        ),
    ),
    Case(
        "I broke up with Jonas",
        "Jonas",
        (
            "Jonas and I have split up.",
            "My relationship with Jonas is over.",
            "I'm no longer together with Jonas.",
        ),
        (
            "I broke up with Markus",
            "Jonas broke the window.",
            "Jonas is coming for dinner.",
            "I broke my leg.",
        ),
    ),
    Case(
        "I vote for the Greens",
        "Greens",
        ("The Greens get my vote.", "In elections I choose the Greens.", "My vote goes to the Greens."),
        (
            "I vote for the Liberals",
            "The Greens lost two seats.",
            "My father votes for the Greens",
            "I eat a lot of greens.",
        ),
    ),
    Case(
        "My train leaves at nine from platform three",
        "platform",
        (
            "At nine my train goes from platform three.",
            "I take the nine o'clock train at platform three.",
            "Platform three at nine: that is my train.",
        ),
        (
            "My bus leaves at noon",
            "The platform was crowded.",
            "The train had no dining car.",
            "Nine people waited on the platform.",
        ),
    ),
)
"""Those that were written after it, and only measured."""
