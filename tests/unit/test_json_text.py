"""A JSON file that gets one more member keeps every other byte, and loses none when it is taken out again."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.frontends.agent_settings.json_text import with_element, with_member, without

PATH = ("mcpServers", "shepherd")
VALUE = {"command": "/bin/shepherd", "args": ["mcp"], "env": {}}

scalars = st.none() | st.booleans() | st.integers() | st.text()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
servers = st.dictionaries(st.text().filter(lambda name: name != PATH[1]), values, min_size=1, max_size=3)
settings = st.dictionaries(st.text().filter(lambda name: name != PATH[0]), values, min_size=1, max_size=4)
layouts = st.sampled_from([{}, {"indent": 2}, {"indent": 4}, {"indent": "\t"}, {"separators": (",", ":")}])


@st.composite
def files(draw: st.DrawFn) -> bytes:
    whole: dict[str, Any] = draw(settings)
    if draw(st.booleans()):
        place = draw(st.integers(0, len(whole)))
        members = list(whole.items())
        whole = dict([*members[:place], (PATH[0], draw(servers)), *members[place:]])
    text = json.dumps(whole, ensure_ascii=draw(st.booleans()), **draw(layouts))
    return text.encode("utf-8", "surrogatepass") + draw(st.sampled_from([b"", b"\n"]))


@given(files())
def test_a_member_that_is_added_and_removed_leaves_the_file_as_it_was(text: bytes) -> None:
    changed = with_member(text, PATH, VALUE)
    assert without(changed, PATH) == text


@given(files())
def test_the_file_says_what_it_said_and_the_member(text: bytes) -> None:
    before = json.loads(text.decode("utf-8", "surrogatepass"))
    before.setdefault(PATH[0], {})[PATH[1]] = VALUE
    changed = with_member(text, PATH, VALUE)
    assert json.loads(changed.decode("utf-8", "surrogatepass")) == before


@given(files())
def test_adding_it_again_changes_nothing(text: bytes) -> None:
    changed = with_member(text, PATH, VALUE)
    assert with_member(changed, PATH, VALUE) == changed


def test_an_empty_object_gets_its_first_member() -> None:
    changed = with_member(b"{ }\n", PATH, VALUE)
    assert json.loads(changed) == {PATH[0]: {PATH[1]: VALUE}}
    assert changed.startswith(b'{\n  "mcpServers": {\n    "shepherd": {\n')


def test_of_a_key_that_is_there_twice_the_last_one_counts() -> None:
    changed = with_member(b'{"mcpServers": {"a": 1}, "mcpServers": {"b": 2}}', PATH, VALUE)
    assert set(json.loads(changed)["mcpServers"]) == {"b", "shepherd"}


LIST = ("hooks", "SessionStart")
lists = st.dictionaries(st.text(), st.lists(values, min_size=1, max_size=3), min_size=1, max_size=3)


@given(settings.filter(lambda whole: LIST[0] not in whole), lists, st.booleans(), layouts)
def test_an_element_comes_behind_the_others_and_leaves_them_as_they_were(
    whole: dict[str, Any], known: dict[str, list[Any]], is_there: bool, layout: dict[str, Any]
) -> None:
    events = {**known, **({LIST[1]: [1, {"a": []}]} if is_there else {})}
    text = json.dumps({**whole, LIST[0]: events}, **layout).encode()
    changed = with_element(text, LIST, VALUE)
    elements = json.loads(changed)[LIST[0]][LIST[1]]
    assert elements == [*events.get(LIST[1], []), VALUE]
    assert without(changed, (*LIST, len(elements) - 1)) == text


def test_what_held_nothing_but_the_removed_goes_too() -> None:
    assert without(b'{"a": 1, "b": {"c": [[{"d": 2}]]}}', ("b", "c", 0, 0, "d")) == b'{"a": 1}'
    assert without(b'{"b": {"c": [1, {"d": 2}]}}', ("b", "c", 1, "d")) == b'{"b": {"c": [1]}}'
    assert without(b'{"b": [1]}', ("b", 3)) == b'{"b": [1]}'
