"""The address that is asked, from what a person has configured."""

import pytest

from shepherd_memory.config import Provider
from shepherd_memory.errors import EndpointMisconfigured
from shepherd_memory.llm.target import EMBEDDING, EXTRACTION, Target, api_url, target_of

CHAT, EMBED, MODELS = "/chat/completions", "/embeddings", "/models"


def target(kind: str, base_url: str) -> Target:
    if kind == "provider":
        return target_of(Provider("a", base_url=base_url))
    return Target(EXTRACTION if kind == "extraction" else EMBEDDING, base_url)


@pytest.mark.parametrize(
    ("kind", "base", "path", "url"),
    [
        ("extraction", "http://h:8080", CHAT, "http://h:8080/v1/chat/completions"),
        ("extraction", "http://h:8080/", CHAT, "http://h:8080/v1/chat/completions"),
        ("extraction", "http://h/v1", CHAT, "http://h/v1/chat/completions"),
        ("extraction", "http://h/v1/", CHAT, "http://h/v1/chat/completions"),
        ("extraction", "http://h/api/v1/openai", CHAT, "http://h/api/v1/openai/chat/completions"),
        ("extraction", "http://h/openai", CHAT, "http://h/openai/v1/chat/completions"),
        ("extraction", "http://h/v1beta", CHAT, "http://h/v1beta/v1/chat/completions"),
        ("extraction", "http://v1/api", CHAT, "http://v1/api/v1/chat/completions"),
        ("extraction", "http://h/x/chat/completions", CHAT, "http://h/x/chat/completions"),
        ("extraction", "http://h/x/chat/completions/", CHAT, "http://h/x/chat/completions"),
        ("extraction", "http://h//", CHAT, "http://h//v1/chat/completions"),
        ("extraction", "http://h/v1?api-version=3", CHAT, "http://h/v1/chat/completions?api-version=3"),
        ("embedding", "http://h", EMBED, "http://h/v1/embeddings"),
        ("embedding", "http://h/", EMBED, "http://h/v1/embeddings"),
        ("embedding", "http://h/v1", EMBED, "http://h/v1/embeddings"),
        ("embedding", "http://h/api/v1/", EMBED, "http://h/api/v1/embeddings"),
        ("embedding", "http://h/v1/embeddings", EMBED, "http://h/v1/embeddings"),
        ("embedding", "http://h/x?key=1", EMBED, "http://h/x/v1/embeddings?key=1"),
        ("provider", "http://h", MODELS, "http://h/v1/models"),
        ("provider", "http://h/", MODELS, "http://h/v1/models"),
        ("provider", "http://h/v1", MODELS, "http://h/v1/models"),
        ("provider", "http://h/v1/chat/completions", MODELS, "http://h/v1/models"),
        ("provider", "http://h/api/v1/openai", MODELS, "http://h/api/v1/openai/models"),
        ("provider", "http://v1", MODELS, "http://v1/v1/models"),
        ("provider", "https://h/v1?api-version=2024", MODELS, "https://h/v1/models?api-version=2024"),
        ("provider", "https://h/?api-version=/v1", MODELS, "https://h/v1/models?api-version=/v1"),
        ("provider", "https://h/v1/chat/completions?a=1&b=2", MODELS, "https://h/v1/models?a=1&b=2"),
        ("provider", "https://h/v1?a=1", "/files?limit=2", "https://h/v1/files?a=1&limit=2"),
        ("provider", "https://h", "/files?", "https://h/v1/files?"),
        ("provider", "https://h/v1//#part", "/files", "https://h/v1/files"),
    ],
)
def test_the_url_gets_what_it_lacks(kind: str, base: str, path: str, url: str) -> None:
    assert api_url(target(kind, base), path) == url
    if kind != "provider":
        assert api_url(target(kind, url), path) == url


def test_the_public_apis_need_no_base_url_and_a_remote_shepherd_does() -> None:
    assert (
        api_url(target_of(Provider("a", type="anthropic")), MODELS) == "https://api.anthropic.com/v1/models"
    )
    with pytest.raises(EndpointMisconfigured, match="a has no base_url"):
        api_url(target_of(Provider("a", type="shepherd")), MODELS)


def test_neither_key_nor_password_is_shown() -> None:
    shown = repr(Target(EXTRACTION, "http://me:hunter2@h", "m", "sk-1"))
    assert "hunter2" not in shown
    assert "sk-1" not in shown
