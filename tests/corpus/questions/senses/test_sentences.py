"""The sentences on a word's senses and on its occurrences name the right senses, words and numbers."""

import random
from dataclasses import replace
from unittest.mock import MagicMock

import numpy as np

from regard.corpus.asking.clusters import SEPARATION, SILHOUETTE, Clusters, marker_words
from regard.corpus.asking.occurrences import Line, Occurrences
from regard.corpus.questions.find import Concordance
from regard.corpus.questions.senses.answer import ContextWord, Sense, Senses
from regard.corpus.questions.senses.panels import rounded, senses_sentences
from regard.corpus.store_tables import StoreTables
from tests.said.reading import names_in, numbers_in, plain_and_few, reads, shown_with_its_numbers, shows

WORDS = ["river", "money", "loan", "water", "shore", "boat", "of", "the"]


def occurrences(count: int) -> Occurrences:
    rows, names = np.arange(count), ("bank",) * count
    tables = MagicMock(spec=StoreTables)
    tables.manifest = MagicMock()
    tables.manifest.model.name = "made"
    return Occurrences(tables, names, rows, rows, rows, rows, names, names, names)


def answer(draw: random.Random) -> Senses:
    """An answer of random occurrences: contexts of random words that mark the senses, and ablations at random."""
    count = draw.randint(1, 40)
    k = min(draw.choice([1, 1, 2, 3, 5]), count)
    labels = np.array([*range(k), *(draw.randrange(k) for _ in range(count - k))])
    labels = np.argsort(np.argsort(-np.bincount(labels)))[labels]  # the largest sense first
    contexts = [{word for n, word in enumerate(WORDS) if draw.random() < (0.8 if n == label else 0.1)}
                for label in labels]  # fmt: skip
    checked = draw.choice([0, 6])
    senses = []
    for sense in range(k):
        words = []
        for word, score in marker_words(contexts, labels.tolist(), sense, 4):
            near, every = (sum(word in contexts[n] for n in range(count) if other or labels[n] == sense)
                           for other in (False, True))  # fmt: skip
            done = (checked, *(draw.randint(0, 6) / 6 for _ in range(2))) if checked else (0, None, None)
            words.append(ContextWord(word, score, near, every - near, *done))
        own = int((labels == sense).sum())
        senses.append(Sense(str(sense + 1), own, own / count, 0.1, (), tuple(words)))
    asked = None if draw.random() < 0.5 else k
    if k == 1 and asked is None:
        senses = [replace(senses[0], name="not separated")]
        tried = {n: draw.uniform(-0.1, 0.2499999) for n in range(2, draw.choice([2, 3, 6]))}
    else:
        tried = {k: draw.uniform(0 if asked else SILHOUETTE, 0.5)} if k > 1 else {}
    separations = {n: draw.uniform(0 if asked or k == 1 else SEPARATION, 0.16) for n in tried}
    clusters = Clusters(labels, np.ones((k, 3)), np.zeros(count), tried, separations)
    return Senses(
        "bank", 5, tuple(senses), (), occurrences(count), clusters, np.zeros((count, 2)), k=asked,
        asked_words=draw.choice([0, 4, 4, 4]),
    )  # fmt: skip


def test_the_sentences_are_what_the_occurrences_say() -> None:
    draw, seen = random.Random(27), set()
    for _ in range(400):
        result = answer(draw)
        if not result.asked_words:
            result = replace(result, senses=tuple(replace(sense, words=()) for sense in result.senses))
        sentences = senses_sentences(result)
        plain_and_few(sentences)
        text, k = " ".join(sentences), len(result.senses)
        weak = not result.clusters.separates(result.k) if result.k else not result.told_apart
        assert any("needed" in each or "too few" in each or "Every split" in each for each in sentences) == weak
        assert (f"has {k} senses" in text) == (k > 1 and not weak)
        marked = [sense for sense in result.senses if sense.words]
        if k > 1:
            headline = next(each for each in sentences if each.startswith("“bank” has"))
            printed = [number for number in numbers_in(headline) if number.endswith("%")]
            shown = result.senses if k <= 3 else [max(result.senses, key=lambda sense: sense.share)]
            assert all(reads(number, sense.share) for number, sense in zip(printed, shown, strict=True))
            assert names_in(headline)[1:] == [sense.words[0].word for sense in shown if sense.words]
            seen.add("headline")
        cut = [word for sense in marked for word in sense.words if word.checked]
        more = max((word.changed - word.random_changed for word in cut), default=0)
        moves = [each for each in sentences if " moves " in each]
        assert bool(moves) == (more > 0)
        for sentence in moves:
            marker = [word for word in cut if word.changed - word.random_changed == more]
            assert names_in(sentence)[0] in [word.word for word in marker]
            numbers = numbers_in(sentence)
            assert any(reads(numbers[0], w.changed) and reads(numbers[-1], w.random_changed) for w in marker)
            seen.add("moves")
        lacking = [sense.name for sense in result.senses if not sense.words]
        if "No context word" in text:
            assert result.asked_words
            numbers = [number.strip(",") for number in numbers_in(sentences[-1])]
            assert numbers in ([str(k)] if len(lacking) == k else lacking, [str(len(lacking)), str(k)])
            seen.add("lacking")
    assert seen == {"headline", "moves", "lacking"}


def test_the_best_split_is_named_with_the_measures_that_are_too_small() -> None:
    draw, seen = random.Random(30), 0
    for _ in range(400):
        result = answer(draw)
        if result.told_apart or not result.clusters.silhouettes:
            continue
        [sentence] = senses_sentences(result)
        best = max(result.clusters.silhouettes, key=lambda k: result.clusters.silhouettes[k])
        k, silhouette, _, separation, _ = numbers_in(sentence)
        shows(k, best)
        shows(silhouette, result.clusters.silhouettes[best])
        shows(separation, result.clusters.separations[best])
        assert float(silhouette.replace("−", "-")) < SILHOUETTE
        seen += 1
    assert seen > 20
    assert [rounded(value, 0.25) for value in (0.1, 0.2499, 0.25, -0.012)] == ["0.10", "0.2499", "0.25", "−0.01"]
    assert [rounded(value, 0.05, "g") for value in (0.05, 0.05004, 0.002)] == ["0.05", "0.05004", "0.002"]


def test_real_answers_show_their_numbers(bank_store, cloud_store) -> None:
    for result in (bank_store.senses("bank", checked=2), bank_store.senses("bank", 3, checked=0),
                   bank_store.find("bank", like="A bank.", top=3), bank_store.shift("bank", column="kind"),
                   cloud_store.senses("bank"), cloud_store.shift("bank", column="age", k=2)):  # fmt: skip
        shown_with_its_numbers(result, also=(SILHOUETTE, SEPARATION))


def test_as_many_lines_as_there_are_and_the_nearest_of_them() -> None:
    draw = random.Random(29)
    for _ in range(200):
        total, sort = draw.choice([1, 2, 30, 1204]), draw.choice(["source", "left", "right", "meaning"])
        like, shown = draw.choice([None, "We sat on the bank."]), draw.randint(1, min(40, total))
        values = [draw.uniform(-1, 1) if like else None for _ in range(shown)]
        lines = [Line("", "bank", "", "bank", f"d-{n}-", 0, 4, "a", None, {}, "s", n, v) for n, v in enumerate(values)]
        result = Concordance("bank", tuple(lines), total, sort, like, 5, (), like is not None and draw.random() < 0.3)
        first, *nearest = result.findings()
        plain_and_few([first, *nearest])
        assert numbers_in(first) == (
            []
            if "once" in first
            else [f"{n:,}" for n in ([total] if shown == total and not result.everywhere else [total, shown])]
        )
        assert ("once" in first) == (total == 1 and not result.everywhere)
        assert len(nearest) == (like is not None)
        for sentence in nearest:
            best = max(lines, key=lambda line: line.similarity)
            assert f" {best.document} " in sentence
            shows(numbers_in(sentence)[-1], best.similarity)
