"""Whether each request of a conversation begins as the one before it: what a provider's cache needs."""

import json
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise, zip_longest

CACHE_MARK = re.compile(r',"cache_control":\{[^{}]*\}')
"""Says where the provider is to cache: it moves on with each request, and is no part of the prompt."""

MESSAGES = re.compile(r'"(?:messages|input)":\[')


def assert_kept(from_client: Sequence[bytes], to_provider: Sequence[bytes]) -> None:
    """What the client repeats byte for byte, the provider gets byte for byte, blocks included."""
    assert len(from_client) == len(to_provider)
    for before, after in pairwise(_prompts(from_client)):
        _assert_begins(after, through_last_user_message(before), "the client changed its history")
    for before, after in pairwise(_prompts(to_provider)):
        _assert_begins(after, through_last_user_message(before), "the provider gets another prefix")


def _assert_begins(prompt: str, beginning: str, otherwise: str) -> None:
    if not prompt.startswith(beginning):
        pairs = enumerate(zip_longest(beginning, prompt))
        at = next(at for at, (ours, theirs) in pairs if ours != theirs)
        around = slice(max(at - 100, 0), at + 200)
        raise AssertionError(f"{otherwise} at {at}:\n{beginning[around]}\n{prompt[around]}")


def through_last_user_message(prompt: str) -> str:
    """A request from its beginning to the end of the last message, or item, of the role user."""
    opening = MESSAGES.search(prompt)
    assert opening
    at, end = opening.end(), 0
    while prompt[at] != "]":
        message, at = json.JSONDecoder().raw_decode(prompt, at)
        end = at if message.get("role") == "user" else end
        at += prompt[at] == ","
    return prompt[:end]


def _prompts(bodies: Iterable[bytes]) -> list[str]:
    return [CACHE_MARK.sub("", body.decode()) for body in bodies]
