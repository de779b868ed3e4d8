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
