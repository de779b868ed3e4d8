"""The token ledger: what models cost, per user, day and purpose."""

from dataclasses import dataclass

from shepherd_memory.storage.clock import day_of
from shepherd_memory.storage.database import Connection

EXTRACTION = "extraction"
PHASE1 = "phase1"
PHASE2 = "phase2"


@dataclass(frozen=True)
class TokenCost:
    """What one piece of work cost."""

    calls: int = 0
    estimated_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "TokenCost") -> "TokenCost":
        return TokenCost(
            self.calls + other.calls,
            self.estimated_calls + other.estimated_calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


def record(tx: Connection, user_id: str, purpose: str, spent: TokenCost, now: int) -> None:
    """Add what was spent to the user's day."""
    if spent.calls == 0:
        return
    tx.execute(
        "insert into token_usage (user_id, day, purpose, calls, estimated_calls, prompt_tokens,"
        " completion_tokens) values (:user_id, :day, :purpose, :calls, :estimated, :prompt, :completion)"
        " on conflict (user_id, day, purpose) do update set calls = token_usage.calls + excluded.calls,"
        " estimated_calls = token_usage.estimated_calls + excluded.estimated_calls,"
        " prompt_tokens = token_usage.prompt_tokens + excluded.prompt_tokens,"
        " completion_tokens = token_usage.completion_tokens + excluded.completion_tokens",
        user_id=user_id,
        day=day_of(now),
        purpose=purpose,
        calls=spent.calls,
        estimated=spent.estimated_calls,
        prompt=spent.prompt_tokens,
        completion=spent.completion_tokens,
    )


def spent_on(connection: Connection, user_id: str, purpose: str, now: int) -> int:
    """The tokens that a user has spent on a purpose on the day of `now`."""
    row = connection.row(
        "select prompt_tokens + completion_tokens from token_usage"
        " where user_id = :user_id and day = :day and purpose = :purpose",
        user_id=user_id,
        day=day_of(now),
        purpose=purpose,
    )
    return 0 if row is None else int(row[0])


@dataclass(frozen=True)
class Usage:
    """A line of the ledger."""

    day: str
    purpose: str
    calls: int
    estimated_calls: int
    prompt_tokens: int
    completion_tokens: int


def listing(connection: Connection, user_id: str) -> list[Usage]:
    """The user's ledger, by day."""
    rows = connection.rows(
        "select day, purpose, calls, estimated_calls, prompt_tokens, completion_tokens from token_usage"
        " where user_id = :user_id order by day, purpose",
        user_id=user_id,
    )
    return [Usage(*row) for row in rows]
