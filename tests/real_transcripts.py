"""The sessions of real agents that the tests count, where they lie beside the repository."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "shared" / "data" / "transcripts"

_STEERING = "claude_code/steering"
_LONG = "claude_code/ae4a77f8-aedd-4bc1-888f-c94edc91af04"
_ROLLOUTS = "codex/rollout-2026-02-23T"


@dataclass(frozen=True)
class RealFile:
    """A file that is known by its content; one of the same name with other content is another file."""

    source: str
    name: str
    digest: str

    def is_here(self) -> bool:
        """Whether the file is there, with the content that is known."""
        path = FOLDER / self.name
        return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest()[:16] == self.digest

    def path(self) -> Path:
        """Where the file is; a test that asks for one that is not there is skipped."""
        if not self.is_here():
            pytest.skip(f"{self.name} is not in {FOLDER}, or not the one that is known")
        return FOLDER / self.name

    def copied_to(self, folder: Path) -> Path:
        """A copy of the file, at the same place in another folder."""
        copy = folder / self.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(self.path().read_bytes())
        return copy


REAL_FILES = (
    RealFile("claude-code", f"{_LONG}.jsonl", "099bffa9cbfee4eb"),
    RealFile("claude-code", f"{_LONG}/subagents/agent-aac57f5.jsonl", "7ad8cd8708b87792"),
    RealFile("claude-code", f"{_LONG}/subagents/agent-acompact-946d2b.jsonl", "7a22d2e81b3f51bb"),
    RealFile("claude-code", "claude_code/edge_cases.jsonl", "808c6401ac9a1920"),
    RealFile("claude-code", "claude_code/representative_messages.jsonl", "6bfe08beccb86b57"),
    RealFile("claude-code", "claude_code/sample_session.jsonl", "b1db4581f4632297"),
    RealFile("claude-code", "claude_code/short.jsonl", "237dc80e7f705386"),
    RealFile("claude-code", f"{_STEERING}/0ccf1a04-1b4c-43b6-8aa5-79e41db43a68.jsonl", "e31ff0147b6ea35e"),
    RealFile("claude-code", f"{_STEERING}/2a80b8d9-b65a-4c2e-8bf4-0df4958640fd.jsonl", "522ae4a96e013020"),
    RealFile("claude-code", f"{_STEERING}/3b5a9bec-34c4-48d5-9502-dd21f9e1e011.jsonl", "fd61ae808928d78c"),
    RealFile("claude-code", f"{_STEERING}/d64b50bb-125b-4b54-867a-e59841e553d8.jsonl", "59791ef17f27a9a2"),
    RealFile("claude-code", "claude_code/tool_heavy.jsonl", "036f9a476f513bb5"),
    RealFile("codex", f"{_ROLLOUTS}12-41-04-019c8a4d-8f45-7010-8b5d-7fad920aa6f9.jsonl", "373acbc9d9961dcc"),
    RealFile("codex", f"{_ROLLOUTS}13-19-38-019c8a70-dda7-7f33-98ea-f30553347322.jsonl", "24a6e3962206a37a"),
    RealFile("codex", f"{_ROLLOUTS}20-34-25-019c8bfe-ec25-79e0-97d7-bda6a9c575ff.jsonl", "0ebca88fa2362da7"),
    RealFile(
        "codex",
        "codex/newer/rollout-2026-06-17T06-39-21-019ed44e-4be8-7c33-a28c-229573f5ad26.jsonl",
        "214b06c219b63470",
    ),
)

EDGE_CASES = next(file for file in REAL_FILES if file.name.endswith("edge_cases.jsonl"))


def real_files_here() -> list[RealFile]:
    """The known files that are there; a test that asks for them where there are none is skipped."""
    found = [file for file in REAL_FILES if file.is_here()]
    if not found:
        pytest.skip(f"none of the known transcripts are in {FOLDER}")
    return found
