"""Told in one run of the server, known in the next; and to nobody else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.acceptance.combinations import first_backend
from tests.acceptance.server_site import CHAT, MESSAGES, Server, Site
from tests.provider import chat

TOLD = "My bicycle is called Rosinante and it is bright green."
ASKED = "What is my bicycle called?"


@dataclass(frozen=True)
class Person:
    """How somebody makes themselves known."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def say(self, server: Server, text: str, path: str = CHAT) -> None:
        body = {"model": "scripted-1", "messages": [{"role": "user", "content": text}], **self.fields}
        reply = server.ask("POST", path, {**body, "max_tokens": 9}, self.headers)
        assert reply.status == 200, reply.body
        assert reply.memory == "on"


def by_field(user: str) -> Person:
    return Person({"user": user})


def by_key(site: Site, name: str) -> Person:
    text = site.shepherd("apikey", "create", name).split()[0]
    return Person(headers={"Authorization": f"Bearer {text}"})


def prompt(site: Site) -> str:
    """What the provider was asked last."""
    return site.provider.exchanges[-1].received.body.decode()


def assert_known_to_one_only(site: Site, told: Person, stranger: Person, path: str = CHAT) -> None:
    """The first tells it, the process ends, and in the next one the first is known and the other is not."""
    site.provider.default = chat("A fine name.")
    first = site.serve()
    told.say(first, TOLD, path)
    first.process.terminate()
    assert first.process.wait(60) == 0
    second = site.serve()
    stranger.say(second, ASKED, path)
    assert "Rosinante" not in prompt(site)
    told.say(second, ASKED, path)
    assert "Rosinante" in prompt(site)


def test_who_names_a_user_is_known_after_a_restart(site: Site) -> None:
    site.settings.set(embedding_engine="onnx")
    assert_known_to_one_only(site, by_field("steve"), by_field("carla"))


@first_backend
def test_who_names_a_user_in_the_other_wire_format_is_known_after_a_restart(site: Site) -> None:
    steve, carla = (Person({"metadata": {"user_id": user}}) for user in ("steve", "carla"))
    assert_known_to_one_only(site, steve, carla, MESSAGES)


@first_backend
def test_who_has_a_key_is_known_after_a_restart(site: Site) -> None:
    assert_known_to_one_only(site, by_key(site, "steve"), by_key(site, "carla"))


@first_backend
def test_the_user_of_the_configuration_is_known_after_a_restart(site: Site) -> None:
    site.settings.set(user_id="steve")
    assert_known_to_one_only(site, Person(), by_field("carla"))


@first_backend
def test_what_was_said_in_one_wire_format_is_known_in_the_other(site: Site) -> None:
    server = site.serve()
    by_field("steve").say(server, TOLD)
    Person({"metadata": {"user_id": "steve"}}).say(server, ASKED, MESSAGES)
    assert "Rosinante" in prompt(site)


@first_backend
def test_nobody_in_particular_is_never_remembered(site: Site) -> None:
    server = site.serve()
    for user in ("", "unknown"):
        assert server.chat(TOLD, user).memory == "unknown-user"
        assert server.chat(ASKED, user).memory == "unknown-user"
        assert "Rosinante" not in prompt(site)
    with site.settings.service() as service:
        assert service.status().users == 0
