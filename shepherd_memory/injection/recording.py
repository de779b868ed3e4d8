"""What a turn gets, committed: the block for every process, the log, and the use of what it tells."""

from collections.abc import Sequence

from shepherd_memory.injection import log, stored_blocks
from shepherd_memory.injection.handing_on import is_handed_in
from shepherd_memory.injection.log import LoggedPrompt
from shepherd_memory.injection.stored_blocks import GivenBlock, StoredBlock
from shepherd_memory.injection.turns import UserTurn
from shepherd_memory.phases import usage
from shepherd_memory.recall import Hit
from shepherd_memory.storage import users
from shepherd_memory.storage.database import Connection


def record(
    tx: Connection,
    user_id: str,
    group: str,
    turn: UserTurn,
    new: GivenBlock,
    seen: GivenBlock | None,
    prompt: LoggedPrompt,
    hits: Sequence[Hit],
) -> GivenBlock | None:
    """Give a turn a block, or none; what another process gave it since it was `seen` stays.

    None if something in the block is forgotten by now, or if there is no such user.
    """
    kept = new.kept or StoredBlock(None)
    fact_keys = kept.block.fact_keys if kept.block else ()
    used = [hit for hit in hits if (hit.kind, hit.id) in kept.entries]
    first_id = users.lock_existing(tx, user_id, len(used) + len(fact_keys) + len(kept.recorded) + 2)
    if first_id is None or not kept.is_current(tx, user_id):
        return None
    if not is_handed_in(tx, user_id, prompt.session_id, kept.handed_in, group):
        return None
    given = stored_blocks.load(tx, user_id, group, [turn.key]).get(turn.key)
    if given is not None and given.kept is not None and (seen is None or given.seq != seen.seq):
        return given
    stored_blocks.save(tx, user_id, group, turn, kept, new.seq, new.used_at)
    if kept.block is not None:
        told = [(session_id, note) for of, session_id, note in kept.notes if of == group]
        if told:
            usage.count_notes(tx, user_id, told, new.used_at, group)
        log.add(tx, user_id, first_id, prompt, fact_keys, used, kept.recorded, new.used_at, kept.global_id)
    return new
