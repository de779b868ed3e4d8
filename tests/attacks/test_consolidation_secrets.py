"""A secret that is said, or that a model which consolidates answers, is in nothing that is kept or sent."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.acceptance.combinations import first_backend
from tests.acceptance.secrets_said import TOKENS, Hoard
from tests.acceptance.settings import SettingsFile
from tests.attacks.test_secrets import assert_unseen
from tests.consolidation_endpoint import ToolCall, calls, has_tools, is_for_agent, labelled, results, section
from tests.endpoint import Body, ScriptedEndpoint, Step, by_content, close, raw_reply, status
from tests.note_endpoint import note

USER = "steve"
SUMMARY = "memory_summary.md"


class Talkative:
    """An agent that says secrets wherever it may say anything; its endpoint does so in an error."""

    def __init__(self, hoard: Hoard) -> None:
        self._hoard = hoard
        self._has_failed = False

    def step(self) -> Step:
        return by_content(self._choose)

    def _all(self, place: str) -> str:
        return "\n".join(f"- {self._hoard.new(kind, place)}" for kind in TOKENS)

    def _choose(self, body: Body | None) -> Step:
        if body is None:
            return close()
        if not is_for_agent(body):
            return note(self._hoard.new("huggingface", "a summary"), self._all("a raw memory"))
        if not self._has_failed:
            self._has_failed = True
            return status(500, body=f"Traceback: {self._hoard.new('github_fine', 'an error')}")
        if len(body["messages"]) == 2:
            return raw_reply(f"I know {self._all('what it says besides')}")
        if not results(body):
            return calls(*self._in_all_places(body))
        return calls(("finish", {"note": f"changed {self._hoard.new('github', 'the note')}"}))

    def _in_all_places(self, body: Body) -> list[ToolCall]:
        new = self._hoard.new
        sources = labelled(body)["added"]
        skill = {"text": self._all("a skill"), "sources": sources}
        who, project = f"Who {new('gitlab', 'a name')}", f"/home/{new('npm', 'a project')}"
        return [
            section(body, self._all("a text"), f"Key {new('openai', 'a heading')}"),
            section(body, "Short.", who, SUMMARY, project=project),
            ("write_skill", {"name": "deploy", **skill}),
            ("write_skill", {"name": new("slack_bot", "a skill's name"), **skill}),
            ("read_file", {"path": new("aws_id", "a path")}),
            ("search_files", {"queries": [new("stripe", "a query")]}),
            (new("pypi", "a tool's name"), {}),
            ("write_section", f"{{no JSON: {new('anthropic', 'broken arguments')}"),
            ("write_section", {"path": "MEMORY.md", "sources": [new("vault", "a source")]}),
        ]


def unusable(hoard: Hoard) -> Step:
    """A model without tools whose answers are refused, with secrets in them."""

    def choose(body: Body | None) -> Step:
        if body is None:
            return close()
        if has_tools(body):
            return status(400, body={"error": {"message": f"no tools for {hoard.new('jwt', 'a 400')}"}})
        written = {"path": hoard.new("sendgrid", "a path"), "heading": hoard.new("groq", "a heading")}
        return raw_reply(json.dumps({"sections": [written | {"text": "a", "sources": []}], "skills": []}))

    return by_content(choose)


@first_backend
@pytest.mark.parametrize("how", ["by tools", "in one answer"])
def test_secrets_that_are_said_or_answered_are_in_no_memory_file(
    how: str,
    settings: SettingsFile,
    database_url: str,
    endpoint: ScriptedEndpoint,
    hoard: Hoard,
    log: pytest.LogCaptureFixture,
) -> None:
    settings.set(
        embedding_engine="none",
        memory_phases=True,
        memory_phase_providers="*",
        memory_phase_retry=0.01,
    )
    endpoint.default = Talkative(hoard).step()
    with settings.service() as service:
        yesterday = (datetime.now(UTC) - timedelta(hours=20)).isoformat()
        said = [{**message, "created_at": yesterday} for message in hoard.messages()]
        service.remember(USER, said, "chat", extract=False)
        service.transcripts.poll()
        (lane,) = service.phases.lanes
        while not service.conversation_outputs(USER):
            lane.run_once()
        if how == "in one answer":
            endpoint.default = unusable(hoard)
        wanted = "done" if how == "by tools" else "failed"
        while (outcome := service.consolidation.lane.run_once()) is None or outcome.status != wanted:
            pass
        assert b"".join(service.export(USER))
        shown = str(service.consolidation_states(USER)) + str(service.memory_file_history(USER))
        if how == "by tools":
            assert "[redacted:" in service.memory_file(USER, "MEMORY.md").text
            assert "[redacted:" in shown
        assert hoard.found_in(shown.encode()) == {}
        assert_unseen(hoard, database_url, endpoint, log.text)
    assert_unseen(hoard, database_url, endpoint, log.text)
