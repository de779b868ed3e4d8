# ruff: noqa: RUF001 - Russian letters look like Latin ones.
import pytest

from shepherd_memory.text.grounding import STORED, Proposition, judge


def decide(said: str, key: str, value: str, quote: str = "", subject: str = "self") -> str:
    return judge(Proposition(key, value, key.endswith("?"), 1, quote or said, subject), [said]).decision


@pytest.mark.parametrize(
    ("said", "key", "value"),
    [
        ("I'm a doctor on TV", "occupation", "doctor"),
        ("I live in Narnia in my head", "city", "Narnia"),
        ("Ich bin Arzt in einer Serie", "occupation", "Arzt"),
        ("Soy el médico de la serie que rodamos", "occupation", "médico"),
        ("私は劇で医者です", "occupation", "医者"),
    ],
    ids=["television", "in the head", "a German series", "a Spanish series", "a Japanese play"],
)
def test_a_role_after_the_value_turns_it(said: str, key: str, value: str) -> None:
    assert decide(said, key, value) != STORED


@pytest.mark.parametrize(
    ("said", "key", "value"),
    [
        ("I work at Google. Well, in the cafeteria next door.", "employer", "Google"),
        ("I live in Berlin. Not any more, though.", "city", "Berlin"),
        ("I bought a Fiat and returned it the next day", "car", "Fiat"),
        ("I'm Batman, as my four-year-old would say", "name", "Batman"),
        ("My character in the play is a nurse. I live in Verona.", "city", "Verona"),
        ("Let's practise. I'm Mr Grimshaw, and you're the tenant.", "name", "Mr Grimshaw"),
        ("I'm a pilot, that's what I tell strangers on trains.", "occupation", "pilot"),
        ("Hier der Brief meiner Oma. Ich bin 91 und backe gern.", "age", "91"),
        ("Soy astronauta, eso pone en mi taza por lo menos.", "occupation", "astronauta"),
        ("J'habite à Monaco, oublie ce que je viens d'écrire.", "city", "Monaco"),
        ("Olha o bilhete da minha avó. Tenho 91 anos e cozinho.", "age", "91"),
        ("Я космонавт, так написано на моей кружке.", "occupation", "космонавт"),
        ("私は宇宙飛行士です、とマグカップに書いてあります。", "occupation", "宇宙飛行士"),
        ("这是我奶奶的信。我今年91岁了。", "age", "91"),
    ],
    ids=[
        *(
            "well",
            "not any more",
            "returned",
            "somebody would say",
            "a character",
            "practice",
            "that's what I tell",
        ),
        *("a letter", "a cup", "forget it", "a note", "written", "a mug", "a Chinese letter"),
    ],
)
def test_what_stands_beside_takes_a_statement_back(said: str, key: str, value: str) -> None:
    assert decide(said, key, value) != STORED


@pytest.mark.parametrize(
    ("said", "key", "value"),
    [
        ("Soy vegano los lunes", "diet", "vegano"),
        ("On Fridays I'm a DJ.", "occupation", "DJ"),
        ("I was born in Leeds, I'm fairly sure.", "birthplace", "Leeds"),
        ("My flight is on the 5th, or was it the 6th?", "flight_date", "5th"),
        ("Je suis végétarienne le lundi", "diet", "végétarienne"),
        ("Sou vegana às segundas", "diet", "vegana"),
        ("Я веган по понедельникам", "diet", "веган"),
        ("I'm no vegan", "diet", "vegan"),
        ("I'm moving to Oslo next year", "city", "Oslo"),
        ("Vivo cerca de Toledo", "city", "Toledo"),
        ("I live in a house called Windsor", "city", "Windsor"),
        ("I have two kids in my class named Max", "number_of_children", "2"),
        ("I'm allergic to Mondays", "allergies", "Mondays"),
    ],
)
def test_what_holds_in_part_or_not_yet_is_not_stored(said: str, key: str, value: str) -> None:
    assert decide(said, key, value) != STORED


@pytest.mark.parametrize(
    ("said", "key", "value"),
    [
        ("My cat thinks I'm a chair", "occupation", "chair"),
        ("My brother says I drive a tank", "car", "tank"),
        ("Uso el coche de mi padre, un Seat", "car", "Seat"),
        ("J'utilise l'ordinateur de mon frère, un Dell", "laptop", "Dell"),
        ("Uso o carro do meu pai, um Gol", "car", "Gol"),
        ("Я езжу на машине отца, это Лада", "car", "Лада"),
        ("我是面包师的儿子", "occupation", "面包师"),
    ],
)
def test_what_somebody_else_thinks_or_owns_is_not_the_users(said: str, key: str, value: str) -> None:
    assert decide(said, key, value) != STORED


@pytest.mark.parametrize(
    ("said", "key", "value", "quote", "subject"),
    [
        ("I drive a 2014 Honda Jazz and it squeaks.", "car", "2014 Honda Jazz", "", "self"),
        ("I'm 6 foot 2 and weigh 95 kilos.", "weight", "95 kilos", "", "self"),
        ("I was born in Lagos but grew up in Leeds.", "birthplace", "Lagos", "", "self"),
        ("My wife Sanna is a paramedic, she works nights.", "wife_occupation", "paramedic", "", "wife Sanna"),
        ("Ich bin 38 und wohne mit meinem Mann in Leipzig.", "city", "Leipzig", "", "self"),
        ("Mein Sohn Jonas ist Linkshänder, welche Schere passt?", "son_hand", "Linkshänder", "", "son Jonas"),
        ("Mi perro se llama Coco y tiene 4 años.", "dog_age", "4 años", "", "dog Coco"),
        ("Soy intolerante a la lactosa, ¿qué postre hay?", "intolerance", "lactosa", "", "self"),
        ("Je roule en Peugeot 208.", "car", "Peugeot 208", "", "self"),
        ("Attention, mon fils Timéo est allergique aux œufs.", "son_allergy", "œufs", "", "son Timéo"),
        ("Acordo às 5 da manhã todos os dias.", "wake_up_time", "5 da manhã", "", "self"),
        ("Sou enfermeira no Hospital de São João.", "occupation", "enfermeira", "", "self"),
        ("Посоветуй пирог, у меня аллергия на мёд.", "allergy", "мёд", "у меня аллергия на мёд", "self"),
        ("Моя сестра Оля — ветеринар.", "sister_occupation", "ветеринар", "", "sister Оля"),
        ("У нас живёт кот Барсик. Ему 9 лет.", "cat_age", "9 лет", "Ему 9 лет", "cat Барсик"),
        ("身長は154cmです。", "height", "154cm", "", "self"),
        ("うちの犬のこむぎは8歳です。", "dog_age", "8歳", "", "dog こむぎ"),
        ("我体重96公斤，单程大概7公里。", "weight", "96公斤", "我体重96公斤", "self"),
        ("推荐几款甜品吧，不过我对芒果过敏。", "allergy", "芒果", "我对芒果过敏", "self"),
        ("I work nights at a warehouse in Hull as a forklift driver.", "job", "forklift driver", "", "self"),
        ("moin bin azubi bei ner firma in oldenburg", "job", "azubi", "bin azubi", "self"),
        ("oi sou motoboy em guarulhos e queria saber do mei", "job", "motoboy", "sou motoboy", "self"),
        ("No tengo coche", "has_car", "no", "", "self"),
        ("My favourite film is “Spirited Away”", "favourite_film", "Spirited Away", "", "self"),
    ],
)
def test_what_people_say_while_they_ask_for_something_is_stored(
    said: str, key: str, value: str, quote: str, subject: str
) -> None:
    assert decide(said, key, value, quote, subject) == STORED


@pytest.mark.parametrize(
    ("said", "question", "value"),
    [
        ("Führerschein hab ich keinen.", "Hat der Nutzer einen Führerschein?", "ja"),
        ("Алкоголь я не пью вообще.", "Пьёт ли пользователь алкоголь?", "да"),
        ("I'm 22, right?", "How old is the user?", "22"),
    ],
)
def test_a_denial_after_its_object_and_a_tag_are_heard(said: str, question: str, value: str) -> None:
    assert decide(said, question, value) != STORED


@pytest.mark.parametrize(
    ("said", "key", "value"),
    [
        (["I'm allergic to cashews.", "jk lol, I eat them by the pound"], "allergy", "cashews"),
        (["I live in Boise. Make it Nampa, I keep forgetting the move."], "city", "Boise"),
        (["I'm allergic to latex, aren't I?"], "allergy", "latex"),
        (["I own a Volvo, as long as the bank says yes."], "car", "Volvo"),
        (["Je suis fleuriste. Ex-fleuriste, pardon."], "occupation", "fleuriste"),
        (["По словам соседки, я работаю в полиции."], "employer", "полиции"),
        (["私は仙台に住んでいます。あ、もう引っ越したんでした。"], "city", "仙台"),
        (["我在华为工作，那是三年前的事了。"], "employer", "华为"),
    ],
)
def test_what_is_commented_on_in_the_same_breath_waits(said: list[str], key: str, value: str) -> None:
    claim = Proposition(key, value, False, 1, said[0], "self")
    assert judge(claim, said).decision != STORED


@pytest.mark.parametrize(
    "following",
    [
        "It rains a lot.",
        "Which trails are open?",
        "My sister is a nurse.",
        "Please show me parks.",
        "I'm 29.",
    ],
)
def test_what_is_understood_may_follow_a_plain_statement(following: str) -> None:
    claim = Proposition("city", "Boise", False, 1, "I live in Boise", "self")
    assert judge(claim, [f"I live in Boise. {following}"]).decision == STORED
    assert judge(claim, ["I live in Boise.", following]).decision == STORED
