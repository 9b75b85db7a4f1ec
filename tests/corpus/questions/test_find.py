"""None"""

from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.corpus import Store
from regard.corpus.asking.occurrences import Line
from regard.corpus.asking.vectors import WordSpan, embed_spans
from regard.corpus.questions import find as question
from regard.corpus.questions.find import Concordance, contexts_of_occurrences, find, length_of_contexts
from regard.corpus.schema import ModelSummary
from regard.display.terminal_parts import plain_lines_of_parts
from regard.errors import RegardError
from tests.support import MONEY, RIVER
from tests.support.stores import Document, word_rows, write_store

OTHERS = [
    "The boat drifted towards the muddy bank.",
    "The bank raised its interest rates.",
    "A dog slept on the shore.",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, minilm) -> Path:
    """Two shards of real sentences, embedded one by one."""
    documents = [
        Document(f"d{n}", text, {"kind": "x"} if n else {}, line=n) for n, text in enumerate([RIVER, MONEY, *OTHERS])
    ]
    shards = []
    for some in (documents[:2], documents[2:]):
        places = [WordSpan(some[row["part"]].text, row["start"], row["end"]) for row in word_rows(some)]
        shards.append((some, embed_spans(minilm, places, [3, 5]).astype(np.float16)))
    model = ModelSummary("all-MiniLM-L6-v2", "all-MiniLM-L6-v2", "", 6, 12, 384)
    return write_store(tmp_path_factory.mktemp("stores") / "s", shards, model=model, layers=(3, 5))


@pytest.fixture
def store(folder: Path, minilm):
    with Store(folder) as opened:
        vars(opened)["model"] = minilm  # which is loaded already
        yield opened


def test_a_concordance_in_the_order_of_the_texts(store: Store) -> None:
    found = store.find(" Bank ")
    assert (found.total, found.sort, found.layer) == (4, "source", 5)
    assert [line.document for line in found.lines] == ["d0", "d1", "d2", "d3"]
    first = found.lines[0]
    assert (first.left, first.form, first.right) == (RIVER[:-5][-60:], "bank", ".")
    assert RIVER[first.start : first.end] == "bank"
    assert (first.source, first.line, first.metadata, first.similarity) == ("a.txt", 0, {}, None)
    assert [line.metadata for line in found.lines[1:]] == [{"kind": "x"}] * 3
    assert [row["metadata.kind"] for row in found.rows()] == [None, "x", "x", "x"]
    short = store.find("bank", context=6, top=2)
    assert [(line.left, line.right) for line in short.lines] == [("river ", "."), ("rom a ", ".")]
    assert short.total == 4


def test_lines_are_sorted_by_what_stands_beside_them(store: Store) -> None:
    assert [line.left.split()[-1] for line in store.find("bank", sort="left").lines] == ["a", "muddy", "river", "The"]
    assert [line.right for line in store.find("the", sort="right", context=5, top=2).lines] == [" bank", " boat"]


def test_like_ranks_by_meaning_first_the_sentence_itself(store: Store, minilm) -> None:
    found = store.find("bank", like=RIVER)
    assert found.sort == "meaning"
    assert found.lines[0].document == "d0"
    river = store.find("bank", like="Willows grew along the bank of the river.", top=2)
    assert {line.document for line in river.lines} == {"d0", "d2"}
    assert found.lines[0].similarity == pytest.approx(1, abs=1e-3)
    exact = []
    for text in (OTHERS[0], MONEY):
        one, other = (trace["bank"] / trace["bank"].norm() for trace in minilm.trace([RIVER, text]))
        exact.append(float(one @ other))
    by_document = {line.document: line.similarity for line in found.lines}
    assert by_document["d2"] == pytest.approx(exact[0], abs=2e-3)
    assert by_document["d1"] == pytest.approx(exact[1], abs=2e-3)
    layer = store.find("bank", like=RIVER, layer=3, sort="source")
    assert [line.document for line in layer.lines] == ["d0", "d1", "d2", "d3"]
    assert layer.lines[0].similarity == pytest.approx(1, abs=1e-3)
    assert abs(layer.lines[1].similarity - exact[1]) > 0.01


def test_a_search_everywhere_is_exact(store: Store, minilm) -> None:
    found = store.find("shore", like="They walked along the shore.", everywhere=True, top=7)
    assert found.total == sum(each.rows for each in store.manifest.shards)
    query = minilm.trace("They walked along the shore.")["shore"].numpy()
    scores = []
    for shard, first, vectors in store.all_vectors():
        wide = vectors.astype(np.float64)
        cosine = wide @ query / np.linalg.norm(wide, axis=1) / np.linalg.norm(query)
        scores += [(-score, shard, row) for row, score in enumerate(cosine, first)]
    assert [(line.shard, line.row) for line in found.lines] == [each[1:] for each in sorted(scores)[:7]]
    np.testing.assert_allclose(
        [line.similarity for line in found.lines], [-each[0] for each in sorted(scores)[:7]], atol=1e-5
    )
    assert found.lines[0].word == "shore"


def test_without_a_sentence_meaning_is_the_first_principal_axis(store: Store) -> None:
    order = [line.document for line in store.find("bank", sort="meaning").lines]
    assert {*order[:2]} in ({"d0", "d2"}, {"d1", "d3"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"word": "sea"}, "word 'sea' does not occur in embedding index"),
        ({"word": "sea", "by": "lemma"}, "it was made without --lemma and has no lemmas"),
        ({"word": "bank", "by": "form"}, "by: got 'form', expected word or lemma"),
        ({"word": " "}, "word is empty"),
        ({"word": "bank", "sort": "up"}, "sort: got 'up', expected one of meaning, source, left, right"),
        ({"word": "bank", "top": 0}, "top: got 0"),
        ({"word": "bank", "context": -1}, "context: got -1"),
        ({"word": "bank", "layer": 4}, "layer 4: the store keeps 3, 5"),
        ({"word": "bank", "everywhere": True}, "everywhere needs like"),
        ({"word": "bank", "like": "a river"}, "word 'bank' is not in the text"),
        ({"word": "bank", "like": "a bank, a bank"}, "occurs 2 times in the sentence, expected once"),
    ],
)
def test_what_does_not_fit_is_refused(store: Store, options: dict, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        find(store, **options)


def line(left: str, form: str, right: str, similarity: float | None = None) -> Line:
    return Line(left, form, right, form, "d", 7, 9, "a.txt", None, {}, "s", 0, similarity)


def made(*lines: Line, like: str | None = None) -> Concordance:
    return Concordance("bank", lines, len(lines), "source", like, 5, ("the store is not finished",))


def test_forms_stand_below_each_other_and_fit() -> None:
    lines = line("", "Bank", " notes"), line("x" * 90 + " a ", "banks", "\x1b[31m, and " + "y" * 90)
    said = plain_lines_of_parts(made(*lines).shown(60), 60)
    (one,), (other,) = ([each for each in said if form in each] for form in ("Bank", "a banks"))
    assert one.index("Bank") == other.index("banks")
    assert all(len(each) <= 60 for each in said)
    assert "\x1b" not in "".join(said)
    assert all(each.split()[-2:] == ["d", "7"] for each in (one, other))


def test_what_is_left_out_is_said_and_similarities_are_there() -> None:
    lines = [line("a ", "bank", f" {n}", 0.876) for n in range(30)]
    said = "\n".join(plain_lines_of_parts(made(*lines, like="a bank").shown(80, 4, "--json"), 80))
    assert said.count("0.88") == 5  # and in the sentence
    assert "Not shown: 26 more rows (see --json)" in said
    assert "Occurrences" in "\n".join(plain_lines_of_parts(made().shown(80), 80))


def test_page_and_json_have_every_line(cloud_store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = cloud_store.find("bank")
    page: Any = found.page().data()
    assert [row[2] for row in page["panels"][0]["rows"]] == [each.start for each in found.lines]
    assert (page["title"], page["status"]) == ("“bank” in the corpus", list(found.notes))
    data: Any = found.to_json()
    assert (data["format"], data["findings"], data["total"]) == ("regard find", found.findings(), 30)
    assert [each["start"] for each in data["lines"]] == [each.start for each in found.lines]
    monkeypatch.setattr(question, "MOST", 29)
    with pytest.raises(RegardError, match="'bank' has 30 lines, a page shows at most 29"):
        found.page()


def test_a_context_ends_where_a_word_does_and_says_that_the_text_goes_on(bank_store: Any) -> None:
    found = bank_store.senses("bank", 1, context=12)
    contexts = {
        name: "|".join(astuple(each))
        for name, each in zip(found.found.document, contexts_of_occurrences(found.found, found.context), strict=True)
    }
    assert contexts["r0"] == "… the muddy |bank| of the …"  # "The boat drifted towards the muddy bank of the river."
    assert contexts["r5"] == "… up on the |bank| of the …"
    assert contexts["m1"] == "The |bank| raised its …"
    found = bank_store.senses("bank", 1, context=0)
    assert {"|".join(astuple(each)) for each in contexts_of_occurrences(found.found, found.context)} == {"… |bank| …"}
    assert length_of_contexts(contexts_of_occurrences(found.found, found.context)) == sum(
        len(f"{each.left}{each.right}") for each in contexts_of_occurrences(found.found, 0)
    )
