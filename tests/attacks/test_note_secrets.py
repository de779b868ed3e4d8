"""A secret in a conversation, or in what a model answers about it, is in no note, file, log or request."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.acceptance.combinations import first_backend
from tests.acceptance.secrets_said import TOKENS, Hoard
from tests.acceptance.settings import SettingsFile
from tests.attacks.test_secrets import assert_unseen
from tests.endpoint import ScriptedEndpoint, raw_reply
from tests.note_endpoint import note

USER = "steve"


@first_backend
def test_secrets_that_are_said_or_answered_are_in_no_note(
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
        memory_phase1_input_tokens=8000,
        memory_phase_retry=0.01,
    )
    answered = "\n".join(f"- the key {hoard.new(kind, 'answer of the model')} works" for kind in TOKENS)
    summary = " ".join(f"It was {hoard.new(kind, 'summary')}." for kind in TOKENS)
    slug = hoard.new("github", "slug")
    endpoint.script(
        raw_reply(f"not a note, but {hoard.new('openai', 'unreadable answer')}"),
        raw_reply(json.dumps({"odd": hoard.new("slack_bot", "odd answer")})),
    )
    endpoint.default = note(summary, answered, slug=slug)
    yesterday = (datetime.now(UTC) - timedelta(hours=20)).isoformat()
    said = [{**message, "created_at": yesterday} for message in hoard.messages()]
    with settings.service() as service:
        service.remember(USER, said, "chat", extract=False)
        service.transcripts.poll()
        (lane,) = service.phases.lanes
        while (outcome := lane.run_once()) is None or outcome.status != "done":
            pass
        (made,) = service.conversation_outputs(USER)
        assert "[redacted:" in made.raw_memory
        assert "[redacted:" in made.summary
        assert service.conversation_notes(USER)
        assert b"".join(service.export(USER))
        assert_unseen(hoard, database_url, endpoint, log.text)
    assert_unseen(hoard, database_url, endpoint, log.text)
