"""What a session of 200 MB takes of memory: `python -m tests.bench.report_large_session [MEGABYTES]`."""

import sys
import tempfile

from tests.bench.figures import write_table
from tests.large_session import DEEDS, MEGABYTE, grown_by, hold


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/memory.db"
        hold(url, megabytes)
        rows = [(deed, f"{grown_by(url, deed) / MEGABYTE:.0f} MB") for deed in DEEDS]
    write_table(f"a session of {megabytes} MB", ("what is done with it", "memory at the peak"), rows)


if __name__ == "__main__":
    main()
