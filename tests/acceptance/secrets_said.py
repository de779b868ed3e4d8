"""Secrets of many kinds, and every place of a conversation where one can stand."""

import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.unit.redaction_corpus import MAKERS, POSITIVES

TOKENS = (
    *("openai", "openai_project", "anthropic", "groq", "huggingface", "google", "github", "github_fine"),
    *("gitlab", "slack_bot", "slack_user", "aws_id", "stripe", "stripe_hook", "sendgrid", "npm", "pypi"),
    *("telegram", "jwt", "pem_rsa", "pem_openssh", "vault"),
)
"""Kinds that are known by themselves, wherever they stand."""

Message = dict[str, Any]

PLACES: dict[str, Callable[[str], Message]] = {
    "content": lambda secret: {"role": "user", "content": f"Look at {secret} please, my code is kudu."},
    "text part": lambda secret: {"role": "user", "content": [{"type": "text", "text": f"It is {secret}"}]},
    "other part": lambda secret: {"role": "user", "content": [{"type": "custom", "payload": [secret]}]},
    "link": lambda secret: {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": f"https://x:{secret}@example.com/a.png"}}],
    },
    "answer": lambda secret: {"role": "assistant", "content": f"Your key {secret} is wrong."},
    "tool arguments": lambda secret: {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "function": {"name": "login", "arguments": f'{{"value": "{secret}"}}'}}],
    },
    "tool name": lambda secret: {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": secret, "function": {"name": secret, "arguments": "{}"}}],
    },
    "tool result": lambda secret: {"role": "tool", "tool_call_id": secret, "content": f"stdout: {secret}\n"},
    "name": lambda secret: {"role": "user", "content": "Hello there.", "name": secret},
    "speaker": lambda secret: {"role": "user", "content": "Hello again.", "speaker_name": secret},
    "speaker type": lambda secret: {"role": "user", "content": "Hello once more.", "speaker_type": secret},
    "id": lambda secret: {"role": "user", "content": "Hello with an id.", "id": secret},
    "extra value": lambda secret: {
        "role": "user",
        "content": "Extra.",
        "metadata": {"deep": [{"er": secret}]},
    },
    "extra key": lambda secret: {"role": "user", "content": "Extra key.", "metadata": {secret: 1}},
    "moment": lambda secret: {"role": "user", "content": "When?", "created_at": secret},
}
"""Name -> a message with the secret in that place."""


class Hoard:
    """Makes secrets, each another one, and remembers them all with where they were put."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.made: dict[str, str] = {}

    def new(self, kind: str, place: str) -> str:
        secret = MAKERS[kind](self._random)
        self.made[secret] = f"{kind} in {place}"
        return secret

    def messages(self) -> Iterator[Message]:
        """Every kind in every place."""
        for place, message in PLACES.items():
            for kind in TOKENS:
                yield message(self.new(kind, place))

    def phrases(self) -> Iterator[Message]:
        """Secrets that only the words around them give away."""
        for example in POSITIVES:
            if len(example.secret) >= 8:
                self.made[example.secret] = f"{example.kind} in {example.before!r}"
                yield {"role": "user", "content": example.text}

    def found_in(self, seen: bytes) -> dict[str, str]:
        """Where the secrets were put that can be seen; a line of a long one, and its JSON form, count too."""
        return {
            place: secret
            for secret, place in self.made.items()
            if any(map(seen.__contains__, _forms(secret)))
        }


def _forms(secret: str) -> set[bytes]:
    lines = [line for line in secret.splitlines() if len(line) > 40] or [secret]
    return {form.encode() for line in lines for form in (line, line.replace("/", "\\/"))}
