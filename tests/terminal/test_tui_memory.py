"""The memory screen, driven by keys and mouse on a real service."""

from shepherd_memory import guard, rejections, users
from shepherd_memory.clock import parse_us
from shepherd_memory.provenance import Provenance
from shepherd_memory.rejections import Refused
from shepherd_memory.service import Service


def fill(service: Service, user_id: str = "ann") -> None:
    """A memory with something of every kind, said in two sessions."""
    service.remember(
        user_id,
        [
            said("m1", "user", "Hi, I'm Ann. I live in Porto and work for ACME.", "2026-01-05T10:00:00Z"),
            said("m2", "assistant", "Hello Ann! How is Porto?", "2026-01-05T10:00:10Z"),
        ],
        "monday",
    )
    service.remember(
        user_id,
        [
            said(
                "m3", "user", "I just moved to Lisbon, so the cat had to come along.", "2026-02-10T08:00:00Z"
            ),
            said("m4", "assistant", "Lisbon is lovely in spring.", "2026-02-10T08:00:09Z"),
        ],
        "tuesday",
    )
    state_fact(service, user_id, "home_city", "Porto", "monday", "m1", "2026-01-05T10:00:00Z")
    state_fact(service, user_id, "home_city", "Lisbon", "tuesday", "m3", "2026-02-10T08:00:00Z")
    state_fact(service, user_id, "employer", "ACME", "monday", "m1", "2026-01-05T10:00:00Z")
    service.set_fact(user_id, "editor", "vim, with a [bold]red[/] \x1b[31mtheme")
    service.add_context(user_id, "Why did Ann move to Lisbon?", "For a new job, and for the light.")
    service.add_context(user_id, "What does Ann think of trains?", "She likes night trains.")
    refuse(service, user_id, "fact", "surname", "Jobs", guard.NOT_SAID, "Jobs", "monday", "m1")
    refuse(service, user_id, "fact", "assistant_name", "Max", guard.ABOUT_ASSISTANT, "", "tuesday", "m3")


def said(message_id: str, role: str, text: str, at: str) -> dict[str, str]:
    return {"id": message_id, "role": role, "content": text, "created_at": at}


def state_fact(
    service: Service, user_id: str, key: str, value: str, session_id: str, message_id: str, at: str
) -> None:
    """As extraction stores it."""
    stated_at = parse_us(at)
    assert stated_at is not None
    from shepherd_memory import facts

    with service.database.write() as tx:
        row_id = users.lock(tx, user_id, stated_at)
        where = Provenance(stated_at, "live", session_id, message_id)
        facts.put(tx, user_id, key, value, where, stated_at, row_id)


def refuse(
    service: Service,
    user_id: str,
    kind: str,
    name: str,
    content: str,
    reason: str,
    detail: str,
    session_id: str,
    message_id: str,
) -> None:
    """As the guard refuses it."""
    at = parse_us("2026-02-10T08:00:30Z")
    assert at is not None
    with service.database.write() as tx:
        where = Provenance(at, "live", session_id, message_id)
        refused = Refused(kind, name, content, reason, detail, where)
        rejections.insert(tx, user_id, users.lock(tx, user_id, at), refused, at)
