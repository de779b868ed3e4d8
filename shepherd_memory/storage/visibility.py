"""Which rows a group sees, as the end of a query's condition."""

from shepherd_memory.text.groups import GLOBAL_GROUP, visible


def seen_from(group: str, column: str = "group_name") -> tuple[str, dict[str, str]]:
    """A condition that begins with ` and`, and its parameters; both empty for the group that sees all."""
    if visible(group) is None:
        return "", {}
    return f" and {column} in (:seen_group, '{GLOBAL_GROUP}')", {"seen_group": group}
