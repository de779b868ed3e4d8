"""Figures for docs/reference/redaction.md: `python -m tests.bench.report_redaction [TEXTS ...]`."""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from shepherd_memory.text.redaction import find_secrets, redact
from tests.unit.redaction_corpus import NEGATIVES_HELD_OUT, NEGATIVES_TUNED, POSITIVES, Example, leaks

# Where measuring data lies beside a checkout; absent elsewhere.
DATA = Path(__file__).parents[3] / "shared" / "data"
BLOCK = 4096

Redactor = Callable[[str], str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "texts", nargs="*", type=Path, help="JSON, JSONL or text files to list the findings of"
    )
    arguments = parser.parse_args()
    report("shepherd_memory.text.redaction", redact)
    report_speed()
    other = detect_secrets_redactor()
    if other:
        report("detect-secrets", other)
        write(f"time per 4 KB of prose: {1e3 * seconds_per_block(other, prose_blocks()[:25]):.2f} ms\n")
    else:
        write("\ndetect-secrets is not installed: no comparison\n")
    report_texts(arguments.texts or [DATA / "locomo_dev.json", *sorted(DATA.glob("transcripts/**/*.jsonl"))])


def write(text: str) -> None:
    sys.stdout.write(text)


def report(title: str, redactor: Redactor) -> None:
    write(f"\n{title}\n{'kind':<20}{'tuned':>12}{'held out':>12}\n")
    rows = recall_by_kind(redactor)
    rows["all"] = {
        held_out: [h for row in list(rows.values()) for h in row[held_out]] for held_out in (False, True)
    }
    for kind, row in rows.items():
        write(f"{kind:<20}{share(row[False]):>12}{share(row[True]):>12}\n")
    for name, lines in (("tuned", NEGATIVES_TUNED), ("held out", NEGATIVES_HELD_OUT)):
        alarms = sum(redactor(line) != line for line in lines)
        rate = 1000 * alarms / len(lines)
        write(f"false alarms, {name}: {alarms} of {len(lines)} lines = {rate:.1f} per 1,000\n")


def recall_by_kind(redactor: Redactor) -> dict[str, dict[bool, list[bool]]]:
    rows: dict[str, dict[bool, list[bool]]] = defaultdict(lambda: {False: [], True: []})
    for example in sorted(POSITIVES, key=lambda example: example.kind):
        rows[example.kind][example.held_out].append(is_hidden(example, redactor))
    return rows


def is_hidden(example: Example, redactor: Redactor) -> bool:
    return not leaks(example, redactor(example.text))


def share(hits: list[bool]) -> str:
    return f"{sum(hits)}/{len(hits)}" if hits else "-"


def prose_blocks() -> list[str]:
    text = " ".join(line for line in NEGATIVES_TUNED if line.count(" ") > 3) + " "
    long = text * (100 * BLOCK // len(text) + 1)
    return [long[i : i + BLOCK] for i in range(0, 100 * BLOCK, BLOCK)]


def plain_blocks() -> list[str]:
    """Prose that mentions no password, token or key at all, as most messages."""
    text = (
        "We moved to Lyon in 2016 and have two kids; on Sundays we walk by the river, then cook for friends. "
    )
    return [(text * (BLOCK // len(text) + 1))[:BLOCK]] * 100


def report_speed() -> None:
    write(f"time per 4 KB, plain prose: {1e3 * seconds_per_block(redact, plain_blocks()):.2f} ms\n")
    write(f"time per 4 KB, prose about passwords: {1e3 * seconds_per_block(redact, prose_blocks()):.2f} ms\n")


def seconds_per_block(redactor: Redactor, blocks: list[str]) -> float:
    """The best of five rounds, which other processes disturb least."""
    return min(timed(redactor, blocks) for _ in range(5)) / len(blocks)


def timed(redactor: Redactor, blocks: list[str]) -> float:
    start = time.perf_counter()
    for block in blocks:
        redactor(block)
    return time.perf_counter() - start


def detect_secrets_redactor() -> Redactor | None:
    """detect-secrets with its default plugins and filters, as on a file; None where it is not installed."""
    try:
        from detect_secrets.core.scan import scan_file
        from detect_secrets.settings import default_settings
    except ImportError:
        return None

    def redactor(text: str) -> str:
        with default_settings(), tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            found = {secret.secret_value for secret in scan_file(file.name)}
        for value in filter(None, found):
            text = text.replace(value, "[redacted:found]")
        return text

    return redactor


def report_texts(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.exists():
            report_text(path)
        else:
            write(f"{path.name}: absent, skipped\n")


def report_text(path: Path) -> None:
    texts = set(strings_of(path))
    kinds = Counter(finding.kind for text in texts for finding in find_secrets(text))
    write(f"{path.name}: {sum(map(len, texts)):,} characters, findings: {dict(kinds) or 'none'}\n")


def strings_of(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8", errors="replace")
    for part in text.splitlines() if path.suffix == ".jsonl" else [text]:
        try:
            yield from strings_in(json.loads(part))
        except ValueError:
            yield part


def strings_in(value: object) -> Iterator[str]:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            pending += [*item, *item.values()]
        elif isinstance(item, list):
            pending += item


if __name__ == "__main__":
    main()
