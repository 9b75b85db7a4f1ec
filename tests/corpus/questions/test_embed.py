"""What embed did: counts, and nothing left out in silence, in a terminal and as JSON."""

import json
from pathlib import Path

import numpy as np
import pytest

from regard.corpus.embed_texts import EmbedReport
from regard.corpus.questions.embed import KINDS, Embedded, missing_words
from regard.corpus.reading.document import Rejected
from regard.corpus.settings import Where
from tests.said.reading import numbers_in
from tests.support.stores import Document, write_store

COUNTS = {"documents": 3, "parts": 5, "tokens": 1200, "rows": 900, "shards": 2, "quarantined": 7}
REJECTED = [Rejected("a.jsonl", n, "column 'text' is null, expected a string") for n in range(7)]


def said(counts: dict[str, int], rejected: list[Rejected], built: int, *notes: str, missing: str = "") -> str:
    report = EmbedReport(Path("s"), counts, rejected, built, 1200 if built else 0, 4.0, notes)
    return " ".join(str(Embedded(report, missing)).split())


def test_everything_is_told() -> None:
    out = said(COUNTS | dict.fromkeys(KINDS, 4), REJECTED, 2, "4 documents gone")
    assert all(number in numbers_in(out) for number in ("3", "1,200", "900", "300"))
    assert all(f"{meaning} 4" in out for meaning in KINDS.values())
    assert "between them (texts.parquet) 2" in out
    assert "7 could not be read (quarantine.parquet)" in out
    assert out.count("a.jsonl:") == 5
    assert "… and 2 more" in out


def test_nothing_is_told_of_what_did_not_happen() -> None:
    out = said(COUNTS | {"parts": 3}, [], 0)
    assert [numbers_in(sentence) for sentence in out.split("•")[1:]] == [["900", "1,200", "3"], []]


def test_words_that_have_no_row_are_said() -> None:
    out = said(COUNTS | {"rows": 0}, [], 1, missing="The texts have no word 'bnak'.")
    assert out.endswith("• The texts have no word 'bnak'.")


def test_counts_and_rejected() -> None:
    report = EmbedReport(Path("s"), {"rows": 9}, [Rejected("a.txt", None, "empty")], 1, 30, 2.0, ("1 document gone",))
    data = json.loads(json.dumps(Embedded(report).to_json()))
    assert (data["format"], len(data["findings"])) == ("regard embed", 2)
    assert {name: data[name] for name in Embedded(report).data()} == {
        "store": "s",
        "counts": {"rows": 9},
        "shards_built": 1,
        "seconds": 2.0,
        "tokens_per_second": 15.0,
        "quarantined": [{"source": "a.txt", "line": None, "reason": "empty"}],
        "notes": ["1 document gone"],
    }
    assert Embedded(report, "--where: no word 'bnak'").data()["notes"][-1] == "--where: no word 'bnak'"
    assert Embedded(EmbedReport(Path("s"), {}, [], 0, 0, 2.0)).data()["tokens_per_second"] is None


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (None, ""),
        ("word=the,bank", ""),
        ("word=bank,bnak", "`--where`: the texts have no word 'bnak'."),
        ("word=a,b,c,d,e,f,g,h,i,the",
         "`--where`: the texts have no word 'a', 'b', 'c', 'd', 'e', 'f', 'g' and 'h' and 1 more."),
    ],
)  # fmt: skip
def test_words_without_a_row_are_named(tmp_path: Path, where: str | None, said: str) -> None:
    store = write_store(tmp_path / "s", [([Document("a", "The bank")], np.ones((2, 1, 3), np.float16))])
    assert missing_words(store, where and Where.parse(where)) == said


def test_a_store_without_rows_says_that_it_has_none(tmp_path: Path) -> None:
    store = write_store(tmp_path / "s", [([Document("a", "…")], np.ones((0, 1, 3), np.float16))])
    said = missing_words(store, Where.parse("word=bnak"))
    assert said == "`--where`: the texts have no word 'bnak'. The embedding index is empty."
