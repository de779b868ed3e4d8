"""A session that came in both ways is handed on in the folder that only its transcript knows."""

from pathlib import Path

import pytest

from shepherd_memory import open_service
from tests.contract.given import config_for, user_says
from tests.terminal.transcript_files import PROJECT, talk, write

THREAD = "bd38909d-d537-4b10-a599-3786af5e7689"


@pytest.mark.every_scheme
def test_what_a_server_heard_of_it_is_of_that_folder_too(url: str, tmp_path: Path) -> None:
    said = "My bicycle is green."
    path = write(tmp_path / "projects" / "-boat" / f"{THREAD}.jsonl", talk([said], session=THREAD))
    with open_service(config_for(url), worker=False) as service:
        service.remember("ada", [user_says(said)], THREAD)
        service.transcripts.ingest("ada", path)
        previous = service.previous_session("ada", cwd=PROJECT)
        assert previous is not None
        assert previous.text.count(said) == 1
        assert service.previous_session("ada", cwd="/elsewhere") is None
        assert service.previous_session("bob", cwd=PROJECT) is None
        assert service.previous_session("ada", cwd=PROJECT, group="club") is None
