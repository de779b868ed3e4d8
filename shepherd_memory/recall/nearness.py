"""Which entries of a user come near to others in meaning."""

from collections.abc import Collection

import numpy as np

from shepherd_memory.recall.user_index import UserIndex


def entries_near(index: UserIndex, ids: Collection[int], least: float) -> list[int]:
    """The entries whose vectors come at least so near to one of these, the nearest first, without these.

    An entry that is not embedded yet is near to none.
    """
    given = np.isin(index.ids, np.asarray(sorted(ids), dtype=np.int64))
    is_given = given[index.owners]
    if not is_given.any():
        return []
    table = index.vectors.table
    nearest = (table @ table[is_given].T).max(axis=1)
    best = np.full(index.size, -1.0, dtype=np.float32)
    np.maximum.at(best, index.owners, nearest)
    found = np.flatnonzero((best >= least) & ~given)
    return [int(index.ids[place]) for place in found[np.argsort(-best[found], kind="stable")]]
