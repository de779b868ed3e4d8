"""How well forgetting finds what says the same in other words: `python -m tests.bench.report_same_said`."""

from pathlib import Path
from tempfile import TemporaryDirectory

from shepherd_memory.config import Config
from shepherd_memory.service import open_service
from shepherd_memory.storage.clock import now_us
from tests.bench.figures import write_table
from tests.same_said import CASES, UNSEEN, look_for_same

ENGINES = {"words": "none", "words and meaning": "onnx"}
SETS = {"chosen on": CASES, "written after": UNSEEN}


def main() -> None:
    rows = []
    for how, engine in ENGINES.items():
        for name, cases in SETS.items():
            for with_fact in (True, False):
                with TemporaryDirectory() as folder:
                    config = Config(memory_database=str(Path(folder) / "memory.db"), embedding_engine=engine)
                    with open_service(config, worker=False) as service:
                        found = look_for_same(service, cases, with_fact, now_us())
                of_what = "a fact" if with_fact else "a statement"
                rows.append((how, name, of_what, f"{found.precision:.2f}", f"{found.recall:.2f}"))
    write_table("what says the same", ("found by", "set", "of", "precision", "recall"), rows)


if __name__ == "__main__":
    main()
