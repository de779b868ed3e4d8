"""What is measured: a typical exchange, and a work item that carries its own copy."""

from typing import Any

from shepherd_memory.queue import Said

START = 1_700_000_000_000_000

STATEMENT = (
    "I moved to Lisbon last spring and started at ACME as a data engineer; before that I lived in Porto for six"
    " years. My flat is near the river, so I cycle to work every morning. For the new service we decided on"
    " Postgres rather than MySQL, because the team knows it. Please keep answers short, and use metric units. My"
    " sister Ana visits in March and is allergic to nuts, so the restaurant should be able to handle that."
)
REPLY = (
    "That sounds like a good plan. Since the team already knows Postgres, the first thing to settle is how the"
    " service is deployed and who looks after the backups. I would begin with one primary and one replica, keep"
    " the schema in numbered migrations, and measure before adding anything else. "
) * 5
ITEM = tuple(Said(number, f"message-{number:04}", START + number, STATEMENT) for number in range(1, 11))
"""Ten statements, about 4 KB as they are stored."""

FACTS = {"city": "Lisbon", "employer": "ACME", "preferred_units": "metric units"}
CONTEXT = [{"q": "Which database did the user choose for the new service?", "a": "Postgres rather than MySQL"}]


def exchange(number: int) -> list[dict[str, Any]]:
    """What the user said (about 400 characters) and the reply (1,500); each number is another one."""
    return [
        {"role": "user", "content": f"{STATEMENT} ({number})"},
        {"role": "assistant", "content": REPLY[:1500]},
    ]
