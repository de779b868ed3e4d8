"""A process that starts, ends, clears or resumes a session, and is killed at a named point of that."""

import os
import signal
import sys
from contextlib import closing

from shepherd_memory.memory import session_history, session_lives
from shepherd_memory.memory.session_history import ResumeRequest
from shepherd_memory.memory.session_lives import IdleRule, NewSession
from shepherd_memory.storage.clock import now_us
from shepherd_memory.storage.database import open_database


def main(url: str, action: str, session_id: str, fatal: str) -> None:
    def reach(point: str) -> None:
        if point == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    idle = IdleRule(now_us(), 0)
    with closing(open_database(url)) as database:
        if action == "start":
            session_lives.start(database, "ada", NewSession(session_id, takeover=True), idle, fault=reach)
        elif action == "clear":
            session_history.clear(database, "ada", "Tax", idle, session_id=session_id, fault=reach)
        elif action == "resume":
            asked = ResumeRequest(session_id, save_current_as="Now")
            session_history.resume(database, "ada", asked, idle, fault=reach)
        else:
            session_lives.end(database, "ada", session_id, session_lives.CLIENT, idle, fault=reach)


if __name__ == "__main__":
    main(*sys.argv[1:5])
