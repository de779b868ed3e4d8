# ruff: noqa: RUF001 - Russian letters look like Latin ones.
"""Which queries are about a time alone."""

from datetime import UTC, datetime

import pytest

from shepherd_memory.recall.time_questions import asked_times

NOW = datetime(2024, 3, 13, 15, 30, tzinfo=UTC)  # a Wednesday

FEBRUARY = ("2024-02-01", "2024-02-29")
MARCH = ("2024-03-01", "2024-03-31")
SATURDAY = ("2024-03-09", "2024-03-09")
YESTERDAY = ("2024-03-12", "2024-03-12")


@pytest.mark.parametrize(
    ("query", "time"),
    [
        ("What happened in March?", MARCH),
        ("March", MARCH),
        ("Was war im März?", MARCH),
        ("Qu'est-ce qui s'est passé en mars ?", MARCH),
        ("¿Qué pasó en marzo?", MARCH),
        ("O que aconteceu em março?", MARCH),
        ("last month", FEBRUARY),
        ("What did we talk about last month?", FEBRUARY),
        ("Was war letzten Monat los?", FEBRUARY),
        ("Que s'est-il passé le mois dernier ?", FEBRUARY),
        ("¿Qué pasó el mes pasado?", FEBRUARY),
        ("O que aconteceu no mês passado?", FEBRUARY),
        ("2024-02", FEBRUARY),
        ("last Saturday", SATURDAY),
        ("What did I do on Saturday?", SATURDAY),
        ("Was habe ich letzten Samstag gemacht?", SATURDAY),
        ("samedi dernier", SATURDAY),
        ("¿Qué hice el sábado pasado?", SATURDAY),
        ("no sábado passado", SATURDAY),
        ("anything new on 2024-03-09?", SATURDAY),
        ("was ist am 9. März 2024 passiert?", SATURDAY),
        ("le 9 mars 2024", SATURDAY),
        ("¿Qué pasó el 9 de marzo de 2024?", SATURDAY),
        ("o que aconteceu em 9 de março de 2024?", SATURDAY),
        ("yesterday?", YESTERDAY),
        ("gestern", YESTERDAY),
        ("Qu'est-ce que j'ai fait hier ?", YESTERDAY),
        ("o que aconteceu ontem?", YESTERDAY),
        ("the day before yesterday", ("2024-03-11", "2024-03-11")),
        ("What happened since January?", ("2024-01-01", "2024-03-13")),
        ("Was war seit Januar los?", ("2024-01-01", "2024-03-13")),
        ("what happened since 2022?", ("2022-01-01", "2024-03-13")),
        ("What happened last summer?", ("2023-06-01", "2023-08-31")),
        ("what did I tell you in the last two weeks", ("2024-02-28", "2024-03-13")),
        ("What happened in 2022?", ("2022-01-01", "2022-12-31")),
        ("Что было в марте?", MARCH),
        ("Что произошло за март?", MARCH),
        ("Что было в прошлом месяце?", FEBRUARY),
        ("О чём мы говорили в феврале 2024 года?", FEBRUARY),
        ("Что я делал в прошлую субботу?", SATURDAY),
        ("в субботу", SATURDAY),
        ("Что случилось 9 марта 2024 года?", SATURDAY),
        ("Что случилось 9 марта?", SATURDAY),
        ("Что нового вчера?", YESTERDAY),
        ("Что было с января?", ("2024-01-01", "2024-03-13")),
        ("Что происходило в 2022 году?", ("2022-01-01", "2022-12-31")),
        ("Что было в прошлом году?", ("2023-01-01", "2023-12-31")),
        ("3月に何がありましたか？", MARCH),
        ("三月は何があった？", MARCH),
        ("先月の出来事を教えてください", FEBRUARY),
        ("2024年2月に何を話しましたか", FEBRUARY),
        ("先週の土曜日に何をしましたか", SATURDAY),
        ("この前の土曜日は何をした？", SATURDAY),
        ("3月9日に何がありましたか", SATURDAY),
        ("昨日は何をしましたか？", YESTERDAY),
        ("1月から何がありましたか", ("2024-01-01", "2024-03-13")),
        ("2022年に何がありましたか", ("2022-01-01", "2022-12-31")),
        ("三月发生了什么？", MARCH),
        ("3月份有什么事？", MARCH),
        ("上个月我们聊了什么？", FEBRUARY),
        ("2024年2月发生了什么事情", FEBRUARY),
        ("上周六我做了什么？", SATURDAY),
        ("星期六发生了什么", SATURDAY),
        ("2024年3月9日发生了什么？", SATURDAY),
        ("昨天我说了什么？", YESTERDAY),
        ("去年3月发生了什么", ("2023-03-01", "2023-03-31")),
        ("从1月开始发生了什么", ("2024-01-01", "2024-03-13")),
    ],
)
def test_a_question_about_a_time_alone_is_known_for_one(query: str, time: tuple[str, str]) -> None:
    spans = asked_times(query, NOW)
    assert [(span.first.isoformat(), span.last.isoformat()) for span in spans] == [time]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "what did I say?",
        "What bike did I buy in March?",
        "What day is it today?",
        "what's today's date?",
        "May I ask something?",
        "Who is Marco?",
        "Who is April?",
        "Who is Jan?",
        "Was ist hier los?",
        "la hija de Julio",
        "What did I eat on Monday?",
        "Where was I in May 2023?",
        "Where was I in the week before 16 November 2023?",
        "What happened between August 11 and August 15 2023?",
        "Who was it last Saturday?",
        "do you know the mars mission?",
        "mayo",
        "Какой велосипед я купил в марте?",
        "Где я был в марте?",
        "Кто такая Майя?",
        "мартини",
        "3月にどこへ行きましたか",
        "3月のかに",
        "今日は何曜日ですか",
        "月曜日の会議の場所",
        "三月我买了什么车？",
        "今天天气怎么样",
        "三个月",
        "上周六我在哪里？",
    ],
)
def test_a_question_with_words_of_its_own_is_none(query: str) -> None:
    assert asked_times(query, NOW) == ()
