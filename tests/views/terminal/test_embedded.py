"""What embed did, in a terminal: counts, and nothing left out in silence."""

import io
from pathlib import Path

from rich.console import Console

from regard.corpus.embed_texts import EmbedReport
from regard.corpus.reading.document import Rejected
from regard.views.terminal.embedded import KINDS, show_embedded

COUNTS = {"documents": 3, "parts": 5, "tokens": 1200, "rows": 900, "shards": 2, "quarantined": 7}
REJECTED = [Rejected("a.jsonl", n, "column 'text' is null, needs a string") for n in range(7)]


def said(counts: dict[str, int], rejected: list[Rejected], built: int, *notes: str) -> str:
    written = io.StringIO()
    report = EmbedReport(Path("s"), counts, rejected, built, 1200 if built else 0, 4.0, notes)
    show_embedded(report, Console(file=written, width=200), 5)
    return written.getvalue()


def test_everything_is_told() -> None:
    out = said(COUNTS | dict.fromkeys(KINDS, 4), REJECTED, 2, "4 documents gone")
    assert "3 documents, 1,200 tokens, 900 rows in s" in out
    assert "4 documents gone" in out
    assert "300 tokens a second" in out
    assert "2 times a document was cut into parts" in out
    assert all(f"4 {meaning}" in out for meaning in KINDS.values())
    assert "7 could not be read (quarantine.parquet):" in out
    assert out.count("a.jsonl:") == 5
    assert "… and 2 more" in out


def test_nothing_is_told_of_what_did_not_happen() -> None:
    out = said(COUNTS | {"parts": 3}, [], 0)
    assert out.splitlines() == [
        "3 documents, 1,200 tokens, 900 rows in s",
        "everything was there already: nothing was read with the model",
    ]


def test_words_that_have_no_row_are_said() -> None:
    written = io.StringIO()
    report = EmbedReport(Path("s"), COUNTS | {"rows": 0}, [], 1, 1200, 4.0)
    show_embedded(report, Console(file=written, width=200), 5, "--where: no word 'bnak' in the texts")
    assert "0 rows in s\n--where: no word 'bnak' in the texts\n" in written.getvalue()
