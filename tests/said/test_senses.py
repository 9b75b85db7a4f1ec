"""The sentences on a word's senses, held against all its senses, their words and what cutting these did."""

import random
import re
from dataclasses import replace

import numpy as np

from regard.corpus.asking.clusters import Clusters
from regard.corpus.asking.context_words import telling_words
from regard.corpus.asking.occurrences import Line, Occurrences
from regard.corpus.store_tables import StoreTables
from regard.questions.find.answer import NEAR, Concordance
from regard.questions.senses.answer import ContextWord, Sense, Senses
from regard.questions.senses.sentences import ablation_sentence, of_senses, senses_title
from regard.questions.shift.answer import Shift
from tests.said.templates import Groups, Template, hold, largest, shows

NEEDED = 0.25, 0.08  # mean silhouette and separation, as docs/corpus.md has them
WORDS = ["river", "money", "loan", "water", "shore", "boat", "of", "the"]


def whole(printed: str | None) -> int:
    assert printed is not None
    return int(printed.replace(",", ""))


def named(text: str | None) -> list[str]:
    return re.findall("“([^”]+)”", text or "")


def by_name(found: Senses) -> dict[str, Sense]:
    return {each.name: each for each in found.senses}


def size(said: Groups, found: Senses) -> None:
    """A sense's size; and each word named stands near a larger share of it than of all the others."""
    sense = by_name(found)[str(said["name"])]
    assert found.told_apart
    assert sense.occurrences == whole(said["count"]) == int((found.clusters.labels == int(sense.name) - 1).sum())
    assert whole(said["all"]) == len(found.found)
    shows(said["share"], sense.occurrences / len(found.found))
    others = len(found.found) - sense.occurrences
    assert named(said["words"]) == [word.word for word in sense.words]
    for word in sense.words:
        assert word.near * others > word.near_others * sense.occurrences, word


def measured(said: Groups, clusters: Clusters, k: int) -> None:
    """Both measures of so many senses are printed, and at least one reads as below what is needed."""
    for name, values in (("silhouette", clusters.silhouettes), ("separation", clusters.separations)):
        shows(said[name], values[k])
    assert any(
        float(str(said[name])) < needed for name, needed in zip(("silhouette", "separation"), NEEDED, strict=True)
    )
    assert (float(str(said["first"])), float(str(said["second"]))) == NEEDED


def apart(said: Groups, found: Senses) -> None:
    """Nothing that was tried reaches what is needed, and the best of all is named."""
    assert [int(each) for each in re.findall(r"\d+", str(said["tried"]))] == list(found.silhouettes)
    largest(str(said["best"]), {str(k): value for k, value in found.silhouettes.items()})
    measured(said, found.clusters, int(str(said["best"])))
    assert len(found.senses) == 1


def unsupported(said: Groups, found: Senses | Shift) -> None:
    """Said of a number that was asked for."""
    assert whole(said["k"]) == found.k
    measured(said, found.clusters, whole(said["k"]))


def nothing_tried(said: Groups, found: Senses) -> None:
    assert not found.silhouettes
    assert whole(said["all"]) == len(found.found)
    assert len(found.senses) == 1


def more(word: ContextWord) -> float:
    assert word.changed is not None
    assert word.random_changed is not None
    return word.changed - word.random_changed


def cut(said: Groups, found: Senses) -> None:
    """How many of all words that were cut did more than a random one; of those named none is passed over."""
    done = [(sense, word) for sense in found.senses for word in sense.words if word.checked]
    did = [each for each in done if more(each[1]) > 0]
    assert whole(said["all"]) == len(done)
    assert (0 if said["none"] else whole(said["some"])) == len(did)
    told = re.findall(r"“([^”]+)” \(sense (\d+): (\d+%), random (\d+%)\)", said["told"] or "")
    assert len(told) == min(3, len(did))
    assert bool(said["most"]) == (len(did) > 3)
    by_name = {(sense.name, word.word): word for sense, word in did}
    for name, number, changed, by_chance in told:
        word = by_name.pop((number, name))
        shows(changed, word.changed or 0)
        shows(by_chance, word.random_changed or 0)
        assert all(more(word) >= more(other) - 1e-12 for other in by_name.values()) or len(did) <= 3


def unchecked(_: Groups, found: Senses) -> None:
    assert not any(word.checked for sense in found.senses for word in sense.words)
    assert any(sense.words for sense in found.senses)


MEASURED = (
    r"mean silhouette of (?P<silhouette>-?[\d.]+) \((?P<first>[\d.]+) is needed\) and a mean separation of "
    r"(?P<separation>-?[\d.]+) \((?P<second>[\d.]+)\)"
)
UNSUPPORTED = Template(
    "unsupported",
    rf"You asked for (?P<k>\d) senses, which have a {MEASURED}: "
    r"the embeddings do not show that these groups are senses\.",
    unsupported,
)
TEMPLATES = [
    Template("size", r"Sense (?P<name>\d+): (?P<count>[\d,]+) of (?P<all>[\d,]+) occurrences \((?P<share>\d+%)\)"
             r"(?:; more often near it: (?P<words>.+))?\.", size),
    Template("apart", r"The senses of “bank” could not be told apart: of the numbers tried \((?P<tried>.+?)\) "
             rf"(?P<best>\d) senses lie apart most, with a {MEASURED}\.", apart),
    UNSUPPORTED,
    Template("nothing", r"The senses of “bank” could not be told apart: no number of senses gives each of them two of "
             r"the (?P<all>[\d,]+) occurrences? and 2% of all\.", nothing_tried),
    Template("cut", r"Of (?P<all>\d+) such words?, cut one at a time \(the occurrence may not attend to it\), "
             r"(?:(?P<none>none) turns more occurrences to another sense than a random word does: a sense does not "
             r"hang on one of them alone|(?P<some>\d+) turns? more occurrences to another sense than a random word does"
             r"(?:: |(?P<most>, most of all ))(?P<told>.+))\.", cut),
    Template("unchecked", r"None of these words was cut: whether they give a sense was not checked\.",
             unchecked),
]  # fmt: skip


def answer(draw: random.Random) -> Senses:
    """An answer of random occurrences: contexts of random words, which tell the senses, and cuts of random outcome."""
    count, k = draw.randint(1, 40), draw.choice([1, 1, 2, 3])
    k = min(k, count)
    labels = np.array([*range(k), *(draw.randrange(k) for _ in range(count - k))])
    contexts = [set(draw.sample(WORDS, draw.randint(0, 1 + 3 * int(label)))) for label in labels]
    checked = draw.choice([0, 0, 6])
    senses = []
    for sense in range(k):
        told = []
        for word, score in telling_words(contexts, labels.tolist(), sense, 4) if k > 1 else []:
            near, every = (sum(word in contexts[n] for n in range(count) if other or labels[n] == sense)
                           for other in (False, True))  # fmt: skip
            done = (checked, *(draw.randint(0, 6) / 6 for _ in range(2))) if checked else (0, None, None)
            told.append(ContextWord(word, score, near, every - near, *done))
        own = int((labels == sense).sum())
        senses.append(Sense(str(sense + 1), own, own / count, 0.1, (), tuple(told)))
    rows = np.arange(count)
    tables, names = object.__new__(StoreTables), ("bank",) * count
    found = Occurrences(tables, names, rows, rows, rows, rows, names, names, names)
    tried = {n: draw.uniform(-0.1, 0.2499999) for n in range(2, draw.choice([2, 3, 6]))}
    asked = None if draw.random() < 0.7 else k
    if k == 1 and asked is None:
        senses = [replace(senses[0], name="could not be told apart")]
    if asked:
        tried = {asked: draw.uniform(0, 0.5)} if asked > 1 else {}
    separations = {each: draw.uniform(0, 0.16) for each in tried}
    clusters = Clusters(labels, np.ones((k, 3)), np.zeros(count), tried, separations)
    return Senses("bank", 5, tuple(senses), tried, (), found, clusters, np.zeros((count, 2)), k=asked)


def test_senses_are_what_the_occurrences_say() -> None:
    draw, spoke = random.Random(27), set()
    for _ in range(400):
        found = answer(draw)
        told = hold(of_senses(found), found, TEMPLATES)
        both = [each.get(found.k, 1) for each in (found.silhouettes, found.clusters.separations)]
        assert bool(told["unsupported"]) == any(value < needed for value, needed in zip(both, NEEDED, strict=True))
        spoke |= set(told)
        title = senses_title(found)
        assert ("could not be told apart" in title) == (len(found.senses) == 1 and found.k is None)
        assert (f", {len(found.senses)} sense" in title) == ("could not be told apart" not in title)
    assert spoke == {each.name for each in TEMPLATES}


def shares(said: Groups, sense: Sense) -> None:
    """Each share printed is that of all the words beside it, and every word that was cut is named."""
    done = {word.word: word for word in sense.words if word.checked}
    told = re.findall(r"((?:“[^”]+”(?:, | and )?)+) (\d+%)", str(said["told"]))
    assert sorted(name for words, _ in told for name in named(words)) == sorted(done)
    for words, share in told:
        for name in named(words):
            shows(share, done[name].changed or 0)
    printed = [int(share.rstrip("%")) for _, share in told]
    assert printed == sorted(printed, reverse=True)
    by_chance = sorted(word.random_changed or 0 for word in done.values())
    shows(said["least"], by_chance[0])
    shows(said["most"] or said["least"], by_chance[-1])
    assert {word.checked for word in done.values()} == {whole(said["count"])}


def test_what_cutting_did_is_what_the_words_say() -> None:
    draw, seen = random.Random(28), 0
    template = Template("cut", r"Cut from (?P<count>\d+) occurrences, a word turns this share of them to another "
                        r"sense: (?P<told>.+); random words (?P<least>\d+%)(?: to (?P<most>\d+%))?\.",
                        shares)  # fmt: skip
    for _ in range(400):
        for sense in answer(draw).senses:
            said = ablation_sentence(sense)
            seen += hold([said] if said else [], sense, [template]).total()
            assert bool(said) == any(word.checked for word in sense.words)
    assert seen > 50


def lines(said: Groups, found: Concordance) -> None:
    """As many lines as there are of all; where they are said to go by cosine, they do."""
    assert (1 if said["once"] else whole(said["total"] or said["everywhere"])) == found.total
    assert bool(said["everywhere"]) == found.everywhere
    if not said["once"]:
        assert (whole(said["first"]) if said["first"] else found.total) == len(found.lines)
    if said["order"] and "cosine" in str(said["order"]):
        cosines = [line.similarity for line in found.lines]
        assert cosines == sorted(cosines, reverse=True)  # type: ignore[type-var]
        assert f"“{found.like}”" in str(said["order"])


def test_lines_are_as_many_and_as_near_as_is_said() -> None:
    draw, spoke = random.Random(29), set()
    templates = [
        Template("lines", r"(?:“bank” occurs (?:(?P<once>once)|(?P<total>[\d,]+) times)|The store has "
                 r"(?P<everywhere>[\d,]+) words); (?:here it is|(?:they stand here|"
                 r"here are the first (?P<first>[\d,]+),) (?P<order>.+))\.", lines),
        Template("near", re.escape(NEAR), lambda _, found: largest("like", {"like": int(found.like is not None)})),
    ]  # fmt: skip
    for _ in range(300):
        total, sort = draw.choice([1, 2, 30, 1204]), draw.choice(["source", "left", "right", "meaning"])
        like = draw.choice([None, "We sat on the bank."])
        shown = draw.randint(1, min(40, total))
        values = [draw.uniform(-1, 1) if like else None for _ in range(shown)]
        if sort == "meaning" and like:
            values.sort(reverse=True)
        made = [Line("", "bank", "", "bank", "d", 0, 4, "a", None, {}, "s", n, each) for n, each in enumerate(values)]
        everywhere = like is not None and draw.random() < 0.3
        answered = Concordance("bank", tuple(made), total, sort, like, 5, (), everywhere)
        spoke |= set(hold(answered.findings(), answered, templates))
    assert spoke == {"lines", "near"}
