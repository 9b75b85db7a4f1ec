"""The nearest texts: all cosines computed by hand, and what is said of them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.corpus import Settings, Store
from tests.said.reading import numbers_in, shown_with_its_numbers
from tests.support import MONEY, RIVER
from tests.trace.test_sentence_embedding import PROMPTS, folder_of

TEXTS = [RIVER, MONEY, "The boat drifted towards the mill.", "She planted beans behind the house.", "Rates rose. " * 40]
ASKED = "Interest rates were raised by half a point."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, minilm: Any) -> Path:
    """A store of texts, in shards of one or two."""
    place = tmp_path_factory.mktemp("texts")
    with (place / "t.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text, "id": f"d{n}", "kind": n}) + "\n" for n, text in enumerate(TEXTS))
    settings = Settings(unit="texts", statistics=False, dtype="float32", shard=80)
    columns = regard.corpus.Columns("text", "id")
    regard.corpus.embed(place / "t.jsonl", place / "s", model=minilm, settings=settings, columns=columns)
    return place / "s"


def test_the_nearest_are_those_of_all_cosines(folder: Path, minilm: Any) -> None:
    vectors = minilm.embedding(TEXTS).numpy().astype(np.float64)
    asked = minilm.embedding(ASKED).numpy().astype(np.float64)
    expected = vectors @ asked / np.linalg.norm(vectors, axis=1) / np.linalg.norm(asked)
    with Store(folder, model=minilm) as store:
        assert len(store.shards) > 2
        every, some = store.find_texts(ASKED), store.find_texts(ASKED, top=2)
    order = np.argsort(-expected)
    assert [line.document for line in every.lines] == [f"d{n}" for n in order]
    np.testing.assert_allclose([line.similarity for line in every.lines], expected[order], atol=1e-6)
    assert [line.document for line in some.lines] == [f"d{n}" for n in order[:2]]
    assert (some.total, some.mean) == (5, pytest.approx(expected.mean(), abs=1e-6))
    first, last, mean = (f"{each:.2f}" for each in (expected[order[0]], expected[order[1]], expected.mean()))
    for found in (every, some):  # both are promised, whether or not all texts are listed
        assert numbers_in(found.findings()[0]) == [first, "5", mean]
    assert len(every.findings()) == 1
    assert numbers_in(some.findings()[1]) == ["2", last]
    shown_with_its_numbers(some)
    longest = next(row for row in every.rows() if row["document"] == "d4")
    assert (longest["text"], longest["metadata.kind"]) == (TEXTS[4].strip(), "4")
    assert set(every.rows()[0]) >= {"text", "document", "start", "end", "source", "similarity"}
    shown = every.panels()[0].rows[[line.document for line in every.lines].index("d4")][-1]
    assert shown.endswith(" …")
    assert len(shown) <= 160
    assert [line["similarity"] for line in every.data()["lines"]] == [line.similarity for line in every.lines]


def test_what_a_text_begins_with_is_said(tmp_path: Path, minilm: Any) -> None:
    model = regard.load(folder_of(tmp_path / "m", minilm, {"pooling_mode": "mean"}, **PROMPTS), device="cpu")
    (tmp_path / "t.txt").write_text(RIVER)
    settings = Settings(unit="texts", statistics=False, dtype="float32")
    regard.corpus.embed(tmp_path / "t.txt", tmp_path / "s", model=model, settings=settings)
    document = model.embedding(RIVER).double()
    with Store(tmp_path / "s", model=model) as store:
        for prompt, asked in (("query", {"prompt_name": "query"}), ("So: ", {"prompt": "So: "}), ("", {"prompt": ""})):
            found = store.find_texts("a river", prompt=prompt)
            vector = model.embedding("a river", **asked).double()
            cosine = float(document @ vector / document.norm() / vector.norm())
            assert found.lines[0].similarity == pytest.approx(cosine, abs=1e-6)
            said = f"after the prompt {found.prompt!r}" if prompt else "'query' and 'document'"
            assert said in found.exactness()[1]
            assert "by mean, read after the prompt 'title: none | text: '" in found.exactness()[0]
        (tmp_path / "m" / "1_Pooling" / "config.json").write_text('{"pooling_mode": "max"}')
        store.use(regard.load(tmp_path / "m", device="cpu"))
        with pytest.raises(regard.RegardError, match="its texts were pooled by mean, .* is by max"):
            store.find_texts("a river")


def test_a_store_of_texts_has_no_words_and_one_of_words_no_texts(folder: Path, bank_store: Any, minilm: Any) -> None:
    with Store(folder, model=minilm) as store:
        for ask in (
            lambda: store.find("bank"),
            lambda: store.find("bank", like="a bank", everywhere=True),
            lambda: store.senses("bank"),
            lambda: store.shift("bank", column="kind"),
        ):
            with pytest.raises(regard.RegardError, match="has texts, not words"):
                ask()
        with pytest.raises(regard.RegardError, match="text is empty"):
            store.find_texts("")
        with pytest.raises(regard.RegardError, match="top: given 0, needs 1 or more"):
            store.find_texts("a", top=0)
    with pytest.raises(regard.RegardError, match="has words: make one of texts with"):
        bank_store.find_texts("a bank")
