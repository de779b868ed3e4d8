"""`shepherd whoami`."""

import click

from shepherd_memory.config import variable
from shepherd_memory.config.identity import detect_user_id, is_known
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit, emit_json, json_option


@click.command()
@json_option
@pass_invocation
def whoami(invocation: Invocation, as_json: bool) -> None:
    """Say whose memory this is, and why."""
    loaded = invocation.load()
    identity = detect_user_id(loaded.config)
    source = loaded.source_of("user_id") if identity.source == "config" else identity.source
    known = is_known(identity.user_id)
    if as_json:
        emit_json({"user_id": identity.user_id, "source": source, "known": known})
        return
    reasons = {
        "file": f"user_id in {loaded.path}",
        "environment": f"{variable('user_id')} in the environment",
        "machine": "host name and account; `shepherd config set user_id NAME` chooses another",
        "unknown": "no host name or account found; `shepherd config set user_id NAME` sets one",
    }
    emit(f"{identity.user_id}  ({reasons[source]}{'' if known else '; nothing is remembered'})")
