"""A database that cannot say which API keys there are, for as long as a test wants."""

import hashlib

from shepherd_memory.service import Service
from shepherd_memory.storage.clock import now_us

KEY = "shp_0123456789ab_" + "k" * 43


def hide_keys(service: Service) -> None:
    """From now on every look at the keys fails, while all other tables can be read and written."""
    with service.database.write() as tx:
        tx.execute_script("alter table api_keys rename to hidden_keys")


def show_keys(service: Service) -> None:
    """It can say again."""
    with service.database.write() as tx:
        tx.execute_script("alter table hidden_keys rename to api_keys")


def add_hidden_key(service: Service, name: str) -> str:
    """A key that somebody makes while this server cannot see it."""
    with service.database.write() as tx:
        tx.execute(
            "insert into hidden_keys (id, name, any_user, namespace, rate_per_minute, max_request_bytes,"
            " hash, created_at) values (:id, :name, 0, '', 0, 0, :hash, :now)",
            id=KEY.split("_")[1],
            name=name,
            hash=hashlib.sha256(KEY.encode()).hexdigest(),
            now=now_us(),
        )
    return KEY
