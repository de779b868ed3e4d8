"""Every method of every route, from every group and with both kinds of keys: each has its own and no more."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.service import Service
from tests.group_history import AmongOthers, Shown
from tests.grouped_memory import (
    ALPHA,
    BETA,
    GLOBAL,
    MAIN,
    SEEN,
    USER,
    WORDS,
    as_shown,
    furnish,
    rows_by_group,
    words_in,
)
from tests.provider import ScriptedProvider
from tests.server.calling import bearer, new_key
from tests.server.serving import OPENAI, Running, serving, write_config
from tests.server.test_isolation import ANSWERED, OF_NO_USER, PUBLIC, Case, cases

LISTED = {
    f"/v1/memory/{name}" for name in ("facts", "context", "documents", "rejected", "unconfirmed", "export")
}
"""What shows all that a group sees."""

SHARED = "/v1/memory/global"
"""Which all groups read, and only `main` and `global` write."""

HEADER = "X-Shepherd-Group"
NOT_FOR_A_GROUP = PUBLIC | OF_NO_USER


@dataclass(frozen=True)
class Site:
    """The server, what is asked of it, and the keys: of the user, and bound to alpha."""

    server: Running
    ids: dict[str, Any]
    free: dict[str, str]
    bound: dict[str, str]
    alone: list[str]
    """What beta was told before there was an alpha, by the requests that change nothing."""

    def cases_of(self, group: str) -> list[Case]:
        """Requests that name what is alpha's as a group is shown it, or would be."""
        return cases(as_shown(self.server.service, group, self.ids))


def config_at(path: Path, provider: ScriptedProvider) -> Path:
    claude = {"type": "anthropic", "base_url": provider.url, "memory": True}
    write_config(path, provider.url, OPENAI, others={"claude": claude}, embedding_engine="none", user_id=USER)
    return path


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    path, transcripts = tmp_path / "config.toml", tmp_path / "transcripts"
    with ScriptedProvider() as provider, serving(config_at(path, provider)) as server:
        for group in (MAIN, BETA, GLOBAL):
            furnish(server.service, group, transcripts)
        free = bearer(new_key(server.service, USER))
        numbers = dict.fromkeys(("context", "conversation", "document", "rejection", "unconfirmed"), 10**6)
        nowhere = {**numbers, "request": "0" * 12}
        alone = [told(server.url, case, free, BETA) for case in reading(cases(nowhere))]
        ids = furnish(server.service, ALPHA, transcripts)
        bound = bearer(new_key(server.service, USER, group=ALPHA))
        yield Site(server, ids, free, bound, alone)


def reading(every: list[Case]) -> list[Case]:
    """Those that change nothing, of all that the group has a word in."""
    return [case for case in every if case.method == "GET" and case.path not in NOT_FOR_A_GROUP]


def told(url: str, case: Case, key: dict[str, str], group: str) -> str:
    """What is answered in a group, but for times and what is random."""
    reply = case.ask(url, {**key, HEADER: group})
    text = f"{reply.status} {reply.body.decode()}".replace(case.target.rpartition("/")[2], "asked")
    # Scores go by the time of now: those in other groups are compared where the clock stands still.
    passing = r'\d{4}-\d\d-\d\dT[0-9:.]+Z|notes/\d{4}-\d\d-\d\dT[0-9-]+|[0-9a-f]{12,}|"score":[0-9.]+'
    return re.sub(passing, "masked", text)


def named(case: Case, group: str) -> Case:
    """The same, which names a group by its field or parameter."""
    if isinstance(case.body, dict):
        return replace(case, body={**case.body, "group": group})
    joint = "&" if "?" in case.target else "?"
    return replace(case, target=f"{case.target}{joint}group={group}")


def is_refused(case: Case, group: str) -> bool:
    """Whether it takes a request of `main`."""
    is_write = case.path == SHARED and case.method != "GET"
    return case.path.endswith("/erase") or (is_write and group not in (MAIN, GLOBAL))


@pytest.mark.parametrize("group", WORDS)
def test_each_group_is_shown_what_it_sees_and_changes_what_is_its_own(site: Site, group: str) -> None:
    server = site.server
    if group == BETA:
        assert [
            told(server.url, case, site.free, BETA) for case in reading(site.cases_of(BETA))
        ] == site.alone
    for case in site.cases_of(group):
        if case.path.endswith("/erase") and group == MAIN:
            continue
        before = rows_by_group(server.service.database)
        reply = case.ask(server.url, {**site.free, HEADER: group})
        shown = reply.everything.decode()
        assert reply.status in ((403,) if is_refused(case, group) else ANSWERED), case
        if case.path not in NOT_FOR_A_GROUP:
            assert words_in(shown) <= SEEN[group], case
            assert ALPHA in SEEN[group] or ALPHA not in shown, case
        if case.path in LISTED and case.method == "GET":
            assert words_in(shown) == SEEN[group], case
        changed = rows_by_group(server.service.database)
        own = {group, GLOBAL} if case.path == SHARED and group == MAIN else {group}
        assert {name for name in changed if changed[name] != before.get(name)} <= own, case


def test_a_key_that_is_bound_acts_in_its_group_and_in_no_other(site: Site) -> None:
    server = site.server
    for case in site.cases_of(ALPHA):
        if case.path in NOT_FOR_A_GROUP:
            continue
        before = rows_by_group(server.service.database)
        for other in (MAIN, BETA, GLOBAL):
            assert case.ask(server.url, {**site.bound, HEADER: other}).status == 403, case
            if case.path.startswith("/v1/memory") or case.path == "/v1/tools/execute":
                assert named(case, other).ask(server.url, site.bound).status in (403, 400), case
        assert rows_by_group(server.service.database) == before, case
        reply = case.ask(server.url, site.bound)
        assert reply.status in ((403,) if is_refused(case, ALPHA) else ANSWERED), case
        assert words_in(reply.everything.decode()) <= SEEN[ALPHA], case
        after = rows_by_group(server.service.database)
        assert {name for name in after if after[name] != before.get(name)} <= {ALPHA}, case


def test_a_group_is_told_the_same_however_much_others_store(tmp_path: Path) -> None:
    with ScriptedProvider() as provider:
        found = []
        for name, beside in (("alone", lambda service: service), ("others", AmongOthers)):
            (tmp_path / name).mkdir()
            with serving(config_at(tmp_path / name / "config.toml", provider)) as server:
                found.append(told_among(server, beside, tmp_path / "transcripts"))
    for (path, alone), (_, others) in zip(*found, strict=True):
        assert others == alone, path


def told_among(
    server: Running, beside: Callable[[Service], Any], transcripts: Path
) -> Sequence[tuple[str, str]]:
    """What beta is told by every route, its rows by the order in which they were stored."""
    used = beside(server.service)
    furnish(used, GLOBAL, transcripts)
    ids = furnish(used, BETA, transcripts)
    key = bearer(new_key(server.service, USER))
    texts = []
    for case in cases(as_shown(server.service, BETA, ids)):
        if case.path not in NOT_FOR_A_GROUP and not case.path.endswith("/erase"):
            reply = case.ask(server.url, {**key, HEADER: BETA})
            texts.append((f"{case.method} {case.path}", f"{reply.status} {reply.everything.decode()}"))
    shown = Shown.read(server.service, BETA).ordered(texts)
    passing = (
        r'\d{4}-\d\d-\d\d(T[0-9:.]+Z|T\d\d-\d\d-\d\d)?|[0-9a-f-]{12,}|"score":[0-9.]+'
        r"|\w{3} \d+, \d{4}, [0-9:]+ [AP]M UTC"
        r"|\w{3}, \d\d \w{3} \d{4} [0-9:]{8} GMT|'content-length', '\d+'"
    )
    return [(path, re.sub(passing, "masked", text)) for path, text in shown]
