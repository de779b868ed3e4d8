"""A spliced body says what it should, and is byte for byte the client's wherever nothing was to change."""

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.frontends.api.splicing import SplicePoint, splice

MARK = "«spliced»"
PASSED = 5_000
NUMBERS = ["1e400", "-0.0", "0", "-0", "1E+5", "0.10", "123456789012345678901234567890", "-1.5e-7"]
SNAGS = [
    '"', "\\", "\\\\", '\\"', "[", "]", "{", "}", "],", '"}', ",", ":", "/", "\n", "\t", "\0", "\x7f",
    "ü", "🙂", "\u2028", "\ud800", "\udc00", "messages", '"content":', "\\u0022",
]  # fmt: skip


@dataclass(frozen=True)
class Number:
    """A number as it is spelled, which a float would not keep."""

    spelled: str


texts = st.lists(st.sampled_from(SNAGS) | st.text(max_size=5), max_size=8).map("".join)
scalars = st.none() | st.booleans() | st.sampled_from(NUMBERS).map(Number) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)
parts = st.lists(values, min_size=1, max_size=3)
extras = st.dictionaries(texts, values, max_size=2)
messages = st.builds(
    lambda before, content, after: before | {"content": content} | after, extras, texts | parts, extras
)
conversations = st.lists(messages, min_size=1, max_size=4)
HOLDERS = ("messages", "input")
keys = st.sampled_from(["model", "memory", "user", "stream"]) | texts.filter(lambda key: key not in HOLDERS)


class Writer:
    """Writes JSON with blanks and escapes wherever JSON allows them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.blanks = self.random.choice([[""], ["", " "], ["", " ", "\n  ", "\t", "\r\n"]])
        self.escapes = self.random.choice([0.0, 0.1, 1.0])

    def blank(self) -> str:
        return self.random.choice(self.blanks)

    def write(self, value: Any) -> str:
        if isinstance(value, Number):
            return value.spelled
        if isinstance(value, str):
            return '"' + "".join(map(self.character, value)) + '"'
        if isinstance(value, list):
            return self.between("[", [self.write(element) for element in value], "]")
        if isinstance(value, dict):
            return self.between(
                "{", [self.name(key) + self.write(inner) for key, inner in value.items()], "}"
            )
        return json.dumps(value)

    def name(self, key: str) -> str:
        return self.write(key) + self.blank() + ":" + self.blank()

    def between(self, opening: str, written: list[str], closing: str) -> str:
        spaced = [self.blank() + one + self.blank() for one in written]
        return opening + (",".join(spaced) or self.blank()) + closing

    def character(self, one: str) -> str:
        if one in '"\\' or one < " ":
            return json.dumps(one)[1:-1]
        if 0xD800 <= ord(one) < 0xE000 or self.random.random() < self.escapes:
            return "\\/" if one == "/" else json.dumps(one)[1:-1] if one > "~" else f"\\u{ord(one):04x}"
        return one


class Written(NamedTuple):
    """A member as it was written: its name with the colon and the blanks about it, and its value."""

    key: str
    name: bytes
    value: bytes


@dataclass(frozen=True)
class Body:
    """A body, the members it was written from, in their order, and which of them holds what was said."""

    written: bytes
    members: list[Written]
    holder: str


@st.composite
def bodies(draw: st.DrawFn) -> Body:
    """Bodies with other members, some of them more than once, before and after what was said.

    That is a list of messages, or a text in its place.
    """
    writer = Writer(draw(st.integers(0, 2**32)))
    pairs = draw(st.lists(st.tuples(keys, values), max_size=5))
    holder = draw(st.sampled_from(HOLDERS))
    pairs.insert(draw(st.integers(0, len(pairs))), (holder, draw(conversations | texts)))
    members = [Written(key, writer.name(key).encode(), writer.write(value).encode()) for key, value in pairs]
    whole = writer.between("{", [(one.name + one.value).decode() for one in members], "}")
    return Body((writer.blank() + whole + writer.blank()).encode(), members, holder)


def parsed(body: bytes) -> Any:
    return json.loads(body.decode(), parse_float=str, parse_int=str)


def made_of(members: list[bytes]) -> re.Pattern[bytes]:
    """These members and nothing else, in this order, with one comma between them."""
    return re.compile(rb"\s*\{\s*" + rb"\s*,\s*".join(map(re.escape, members)) + rb"\s*\}\s*")


def tail_for(said: str | list[Mapping[str, Any]], place: int, text: str) -> SplicePoint:
    is_text = isinstance(said, str) or isinstance(said[place]["content"], str)
    return SplicePoint(place, text if is_text else {"type": "text", "text": text})


def inserted_by(tail: SplicePoint) -> bytes:
    encoded = orjson.dumps(tail.addition)
    return encoded[1:-1] if isinstance(tail.addition, str) else b"," + encoded


def with_tail(request: Any, holder: str, tail: SplicePoint) -> Any:
    if isinstance(request[holder], str):
        return request | {holder: request[holder] + tail.addition}
    message = request[holder][tail.place]
    message["content"] += tail.addition if isinstance(tail.addition, str) else [tail.addition]
    return request


@given(body=bodies(), text=st.text(max_size=20), data=st.data())
def test_a_tail_is_the_only_thing_that_is_added(body: Body, text: str, data: st.DataObject) -> None:
    said = parsed(body.written)[body.holder]
    place = 0 if isinstance(said, str) else data.draw(st.integers(0, len(said) - 1))
    tail = tail_for(said, place, MARK + text)
    spliced = splice(body.written, tails=[tail], holder=body.holder)
    before, after = spliced.split(inserted_by(tail))
    assert before + after == body.written
    assert after[:1] in b'"]'
    assert parsed(spliced) == with_tail(parsed(body.written), body.holder, tail)


@given(body=bodies(), data=st.data())
def test_several_tails_are_added_as_one_after_the_other(body: Body, data: st.DataObject) -> None:
    said = parsed(body.written)[body.holder]
    many = 1 if isinstance(said, str) else len(said)
    places = data.draw(st.lists(st.integers(0, many - 1), unique=True))
    tails = [tail_for(said, place, f"{MARK}{place}") for place in places]
    one_by_one = body.written
    for tail in tails:
        one_by_one = splice(one_by_one, tails=[tail], holder=body.holder)
    assert splice(body.written, tails=tails, holder=body.holder) == one_by_one


@given(body=bodies(), without=st.sets(keys))
def test_members_go_with_one_comma_each_and_the_others_stay_as_they_are(
    body: Body, without: set[str]
) -> None:
    spliced = splice(body.written, without=without)
    assert made_of([one.name + one.value for one in body.members if one.key not in without]).fullmatch(
        spliced
    )
    expected = parsed(body.written)
    assert parsed(spliced) == {key: value for key, value in expected.items() if key not in without}


@given(body=bodies(), name=st.text())
def test_every_model_is_replaced_and_nothing_else(body: Body, name: str) -> None:
    spliced = splice(body.written, model=name)
    expected = parsed(body.written)
    assert parsed(spliced) == (expected | {"model": name} if "model" in expected else expected)
    encoded = orjson.dumps(name)
    members = [one.name + (encoded if one.key == "model" else one.value) for one in body.members]
    assert made_of(members).fullmatch(spliced)


@given(body=bodies(), name=st.text(), text=st.text(max_size=20))
def test_all_edits_are_made_at_once_as_one_after_the_other(body: Body, name: str, text: str) -> None:
    tail = tail_for(parsed(body.written)[body.holder], 0, MARK + text)
    at_once = splice(body.written, without={"memory", "user"}, model=name, tails=[tail], holder=body.holder)
    tailed = splice(body.written, tails=[tail], holder=body.holder)
    assert at_once == splice(splice(tailed, model=name), without=["user", "memory"])


@given(
    body=bodies(),
    indent=st.sampled_from([None, 0, 2, "\t"]),
    separators=st.sampled_from([None, (",", ":"), (" , ", "\t:\n")]),
    ascii_only=st.booleans(),
)
def test_what_the_standard_library_writes_is_spliced(
    body: Body, indent: int | str | None, separators: tuple[str, str] | None, ascii_only: bool
) -> None:
    request = json.loads(re.sub(rb"\\u[dD][89a-fA-F]..", b"?", body.written))
    dumped = json.dumps(request, indent=indent, separators=separators, ensure_ascii=ascii_only).encode()
    said = request[body.holder]
    tail = tail_for(said, 0 if isinstance(said, str) else len(said) - 1, MARK)
    spliced = splice(dumped, tails=[tail], without=("model",), holder=body.holder)
    request.pop("model", None)
    assert json.loads(spliced) == with_tail(request, body.holder, tail)


@pytest.mark.parametrize(
    ("body", "spliced"),
    [
        (b'{"memory":false,"a":1}', b'{"a":1}'),
        (b'{"a":1,"memory":false}', b'{"a":1}'),
        (b'{"a":1,"memory":false,"b":2}', b'{"a":1,"b":2}'),
        (b'{"memory":false}', b"{}"),
        (b' { "memory" : false , "a" : 1 } ', b' { "a" : 1 } '),
        (b'{\n  "a": 1,\n  "memory": false\n}\n', b'{\n  "a": 1\n}\n'),
        (b'{\n  "a": 1,\n  "memory": false,\n  "b": 2\n}', b'{\n  "a": 1,\n  "b": 2\n}'),
        (b'{"memory":1,"memory":2,"a":1,"memory":3,"memory":4}', b'{"a":1}'),
        (b'{"memory":1,"memory":2}', b"{}"),
        (b'{"m\\u0065mory":false,"a":{"memory":true}}', b'{"a":{"memory":true}}'),
        (b'{"a":"\\"memory\\":1,","memory":[{"x":"}]"}]}', b'{"a":"\\"memory\\":1,"}'),
    ],
)
def test_a_member_is_removed_wherever_it_stands(body: bytes, spliced: bytes) -> None:
    assert splice(body, without=["memory"]) == spliced


@pytest.mark.parametrize(
    "body", [b"{}", b" { } ", b'{"a":1}', b'{"model":"m","a":[]}', b'{"a":{"model":"x"}}']
)
def test_a_body_with_nothing_to_change_is_the_same_object(body: bytes) -> None:
    assert splice(body) is body
    assert splice(body, without={"memory"}, model="m") is body


def test_a_model_is_replaced_in_every_place_it_is_named() -> None:
    body = b'{"model": "a/b", "mod\\u0065l" : null, "x": {"model": 1}}'
    assert splice(body, model='ü"') == '{"model": "ü\\"", "mod\\u0065l" : "ü\\"", "x": {"model": 1}}'.encode()


def test_a_model_with_half_a_surrogate_pair_is_escaped() -> None:
    assert splice(b'{"model":"p/\\ud800"}', model="\ud800") == b'{"model":"\\ud800"}'


def test_a_model_that_is_also_to_go_is_removed() -> None:
    assert splice(b'{"model":1,"a":2}', model="m", without=["model"]) == b'{"a":2}'


@pytest.mark.parametrize(
    ("body", "spliced"),
    [
        (b'{"messages":[{"content":""}]}', b'{"messages":[{"content":"+"}]}'),
        (b'{"messages":[{"content":"\\\\"}]}', b'{"messages":[{"content":"\\\\+"}]}'),
        (b'{"messages":[{"content":"\\\\\\""}]}', b'{"messages":[{"content":"\\\\\\"+"}]}'),
        (b'{"messages":[{"content":"\\ud83d"}]}', b'{"messages":[{"content":"\\ud83d+"}]}'),
        (b'{"messages":[{"content":"a","content":"b"}]}', b'{"messages":[{"content":"a","content":"b+"}]}'),
        (
            b'{"messages":[{"content":"a"}],"m\\u0065ssages":[{"\\u0063ontent":"b"}]}',
            b'{"messages":[{"content":"a"}],"m\\u0065ssages":[{"\\u0063ontent":"b+"}]}',
        ),
        (
            b'{"messages":[{"x":{"content":"a"},"content":"b"}]}',
            b'{"messages":[{"x":{"content":"a"},"content":"b+"}]}',
        ),
    ],
)
def test_text_goes_where_a_parser_would_read_it(body: bytes, spliced: bytes) -> None:
    assert splice(body, tails=[SplicePoint(0, "+")]) == spliced


def test_a_part_is_the_last_of_the_list_before_its_bracket() -> None:
    body = b'{"messages": ["x", {"content": [ {"text": "]"} ]}, 3]}'
    assert splice(body, tails=[SplicePoint(1, {"text": "ü"})]) == (
        '{"messages": ["x", {"content": [ {"text": "]"} ,{"text":"ü"}]}, 3]}'.encode()
    )


@pytest.mark.parametrize(
    ("body", "tail"),
    [
        (b'{"messages":[{"content":[ ]}]}', SplicePoint(0, {"text": "x"})),
        (b'{"messages":[{"content":null}]}', SplicePoint(0, "x")),
        (b'{"messages":[{"content":{"a":1}}]}', SplicePoint(0, {"text": "x"})),
        (b'{"messages":[{"content":"a"}]}', SplicePoint(0, {"text": "x"})),
        (b'{"messages":[{"content":["a"]}]}', SplicePoint(0, "x")),
        (b'{"messages":[{"role":"user"}]}', SplicePoint(0, "x")),
        (b'{"messages":[{"content":"a"}]}', SplicePoint(1, "x")),
        (b'{"messages":[{"content":"a"}],"b":["c",{"content":"d"}]}', SplicePoint(3, "x")),
        (b'{"messages":["content"]}', SplicePoint(0, "x")),
        (b'{"messages":"a"}', SplicePoint(1, "x")),
        (b'{"messages":"a"}', SplicePoint(0, {"text": "x"})),
        (b'{"messages":5}', SplicePoint(0, "x")),
        (b'{"input":"a"}', SplicePoint(0, "x")),
        (b"{}", SplicePoint(0, "x")),
    ],
)
def test_a_tail_that_has_no_place_is_refused(body: bytes, tail: SplicePoint) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        splice(body, tails=[tail])


@pytest.mark.parametrize("depth", [*range(1, 13), 900])
@pytest.mark.parametrize("opening", ["[", '{"a":', '["",', '[{}, "[",', '["\\"}",{"]":1},'])
def test_what_nests_deeply_is_measured_to_its_end(opening: str, depth: int) -> None:
    deep = opening * depth + '"}]"' + ("]" if opening.startswith("[") else "}") * depth
    body = f'{{"deep":{deep},"messages":[{deep},{{"deep":{deep},"content":"a"}},{deep}],"memory":{deep}}}'
    spliced = splice(body.encode(), tails=[SplicePoint(1, "+")], without={"memory", "deep"})
    assert spliced.decode() == f'{{"messages":[{deep},{{"deep":{deep},"content":"a+"}},{deep}]}}'
    assert orjson.loads(spliced)["messages"][1]["content"] == "a+"


@pytest.mark.parametrize(
    ("repeated", "megabytes"),
    [
        ("A", 20),
        *((repeated, 2) for repeated in ["\\n", '\\"', "\\\\", '\\\\\\"', "ü", "[{", '\\\\\\" []']),
    ],
)
def test_a_content_of_megabytes_is_spliced(repeated: str, megabytes: int) -> None:
    content = repeated.encode() * (megabytes * 1_000_000 // len(repeated.encode()))
    body = b'{"memory":true,"messages":[{"content":"' + content + b'"}],"model":"a"}'
    spliced = splice(body, without=["memory"], model="b", tails=[SplicePoint(0, "+")])
    assert spliced == b'{"messages":[{"content":"' + content + b'+"}],"model":"b"}'


@pytest.mark.parametrize("many", ["[]", '"\\\\"', "{}", '{"a":[1,"x"]}', "[" * 40 + "]" * 40, "1"])
def test_a_long_list_before_the_message_is_passed_over(many: str) -> None:
    passed = b",".join([many.encode()] * PASSED)
    body = b'{"x":[[' + passed + b'],{}],"messages":[' + passed + b',{"content":"a"}]}'
    spliced = splice(body, tails=[SplicePoint(PASSED, "+")])
    assert spliced == body[:-4] + b'+"}]}'
