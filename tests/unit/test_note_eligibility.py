"""Which conversations get a note: the rule, and where the configuration lets them be sent."""

from dataclasses import replace
from typing import Any

import pytest

from shepherd_memory.config import Config, Provider
from shepherd_memory.conversations.conversation import Conversation
from shepherd_memory.llm.target import origin_of, phase1_target
from shepherd_memory.phases.eligibility import NoteCandidate, OpenJob, OutputMark, why_not
from shepherd_memory.phases.rules import PhaseRules, phase1_endpoint, phase_rules, why_none
from shepherd_memory.storage.clock import DAY, from_us

NOW = 1_800_000_000_000_000
HOUR = DAY // 24
RULES = PhaseRules(6 * HOUR, 30 * DAY, 5, frozenset({"lab", "codex"}))
ENDED = from_us(NOW - DAY)
TALK = Conversation(
    7, "main", "chat", "live", "", "", "lab", "", 1, 9, ENDED, ENDED, 9, "archived", from_us(NOW)
)
FILE = replace(TALK, source="codex", file_key="a/b.jsonl", provider="")


def reason(conversation: Conversation = TALK, **more: Any) -> str:
    obstacle = why_not(NoteCandidate(conversation, **more), RULES, NOW)
    return obstacle.reason if obstacle else ""


def job(status: str, through: int = 9, run_at: int = 0) -> OpenJob:
    return OpenJob("main\x1f7", status, from_us(run_at), through, "")


@pytest.mark.parametrize(
    ("originator", "expected"),
    [
        ("", ""),
        ("cli", ""),
        ("codex_cli_rs", ""),
        ("Codex Desktop", ""),
        ("claude-vscode", ""),
        ("executive", ""),
        ("codex_exec", "not interactive"),
        ("sdk-cli", "not interactive"),
        ("sdk-py", "not interactive"),
        ("codex_sdk_ts", "not interactive"),
        ("claude-code-github-action", "not interactive"),
    ],
)
def test_a_program_that_asks_without_a_person_is_known_by_its_name(originator: str, expected: str) -> None:
    assert reason(replace(FILE, originator=originator)) == expected


def test_a_job_and_an_output_stand_in_the_way_until_the_conversation_grows() -> None:
    grown = replace(TALK, last_document=12)
    assert reason(job=job("waiting")) == "queued"
    assert reason(job=job("waiting", run_at=NOW + 1)) == "retry at"
    assert reason(job=job("failed")) == "tries used up"
    assert reason(job=job("running")) == reason(grown, job=job("running")) == "running"
    assert reason(output=OutputMark(9, "kept")) == "up to date"
    for one in (job("waiting", run_at=NOW + 1), job("failed")):
        assert reason(grown, job=one, output=OutputMark(9, "kept")) == ""
    assert reason(output=OutputMark(9, "withheld")) == ""
    assert reason(grown, output=OutputMark(9, "forgotten")) == "its note was forgotten"


def test_a_transcript_goes_by_its_source_whatever_provider_is_named_in_it() -> None:
    assert reason(FILE) == ""
    assert reason(replace(FILE, source="pi")) == "other provider"
    assert reason(replace(FILE, source="pi", provider="lab")) == "other provider"
    assert reason(replace(TALK, provider="cloud")) == "other provider"


def test_without_a_list_only_providers_at_the_same_address_count() -> None:
    config = Config(
        memory_phase1_endpoint="http://127.0.0.1:8080/v1",
        memory_phase1_model="m",
        memory_extraction_endpoint="https://models.example",
        memory_extraction_api_key="key",
        providers={
            "near": Provider("near", base_url="http://127.0.0.1:8080"),
            "port": Provider("port", base_url="http://127.0.0.1:8081"),
            "public": Provider("public", type="openai"),
        },
    )
    rules = phase_rules(config)
    assert rules.same_origin == {"near"}
    assert [rules.may_send(name, "live") for name in ("near", "port", "public", "gone", "")] == [
        True,
        False,
        False,
        False,
        False,
    ]
    assert not phase_rules(Config(providers={"odd": Provider("odd")})).same_origin
    assert phase1_target(config).api_key == "", "no key goes to another's address"
    assert phase1_target(replace(config, memory_phase1_endpoint="")).api_key == "key"


def test_an_origin_has_a_port_and_no_case() -> None:
    assert origin_of("https://Models.Example./v1") == origin_of("https://models.example:443")
    assert origin_of("http://models.example") != origin_of("https://models.example")
    assert origin_of("http://[::1") == ("", "", None)


def test_what_is_missing_for_notes_is_said() -> None:
    config = Config(memory_extraction_endpoint="http://127.0.0.1:1", memory_extraction_model="m")
    assert "memory_phases is off" in why_none(config)
    assert phase1_endpoint(config) is None
    wanted = replace(config, memory_phases=True)
    assert why_none(wanted) == ""
    assert phase1_endpoint(wanted) is not None
    assert "memory_phase1_endpoint" in why_none(Config(memory_phases=True))
    assert "memory_generate" in why_none(replace(wanted, memory_generate=False))
