"""How many kills a test makes: few in `make test`, more in `make test-kills`, thousands in `make soak`."""

import os

KILLS = int(os.environ.get("SHEPHERD_TEST_KILLS") or 3)
"""Of a process that takes long to be itself again; where one starts fast, a test makes a multiple of it."""

OUTAGES = int(os.environ.get("SHEPHERD_TEST_OUTAGES") or 1)
"""How often a test takes the database away: once in `make test-attacks`, many times in `make soak`."""

SEED = int(os.environ.get("SHEPHERD_TEST_SEED") or 2026)
