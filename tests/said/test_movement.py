"""What is said of a word beside reference words, held against all of them, all texts and the neutral ranges."""

import random
import re
from dataclasses import replace
from itertools import pairwise

from regard.explain.texts.occurrences import Occurrence, Reference
from regard.explain.texts.summary import Summary
from regard.explain.vectors.movement import LeftOut, Movement
from regard.explain.vectors.neutral import Control, Neutral
from regard.questions.movement.sentences import TOLD, movement_findings, told
from tests.said.templates import Template, hold, shows

WORDS = ("river", "money", "loan", "deposit", "water", "a house")
NUMBER = r"−?[01]\.\d+"
ONE = rf"“[^”]+” \((?:cosine )?{NUMBER}; (?:in \d+ neutral sentences )?{NUMBER} to {NUMBER}\)"
SOME = rf"{ONE}(?:, {ONE})*(?:(?:,| and) (?:{ONE}|\d+ more))*"
EACH = rf"“([^”]+)” \((?:cosine )?({NUMBER}); (?:in (\d+) neutral sentences )?({NUMBER}) to ({NUMBER})\)"
WHERE = r"[Tt]he text|[Tt]ext \d|[Oo]ccurrence \d[a-z]"


def row(numbers: Summary, where: str | None) -> dict[str, tuple[float, float, float]]:
    """The cosine to every reference word that means something of one occurrence, with its neutral range."""
    assert where is not None
    label = numbers.occurrences[0].label if where.casefold() == "the text" else where.split()[-1]
    ranges = {each.word: (each.low[-1], each.high[-1]) for each in numbers.neutral}
    gone = [each.name for each in numbers.movement.left_out if each.kind == "reference"]
    return {
        each.word: (each.last_hidden_state, *ranges.get(each.word, (0.0, 0.0)))
        for each in numbers.references
        if each.occurrence == label and each.word not in gone
    }


def two(value: float) -> int:
    """Hundredths, as two decimals show them."""
    return round(float(f"{value:.2f}") * 100)


def moves(groups, numbers: Summary) -> None:
    whole = row(numbers, groups["where"])
    for side in ("towards", "away"):
        outside = {
            word: (two(c) - two(high), c - high) if side == "towards" else (two(low) - two(c), low - c)
            for word, (c, low, high) in whole.items()
        }
        outside = {word: beyond[1] for word, beyond in outside.items() if beyond[0] > 0}
        found = re.findall(EACH, groups[side] or "")
        more = re.search(r"(\d+) more", groups[side] or "")
        named = [word for word, *_ in found]
        assert len(named) + (int(more[1]) if more else 0) == len(outside)
        assert len(named) == min(len(outside), TOLD)
        assert all(outside[a] >= outside[b] for a, b in pairwise(named))
        assert all(outside[named[-1]] >= outside[word] for word in outside if word not in named) if named else True
        for word, cosine, count, low, high in found:
            for printed, value in zip((cosine, low, high), whole[word], strict=True):
                shows(printed, value)
            assert not count or int(count) == len(numbers.control.sentences)


def stays(groups, numbers: Summary) -> None:
    whole = row(numbers, groups["where"])
    assert all(two(low) <= two(cosine) <= two(high) for cosine, low, high in whole.values())
    assert len(whole) == int(groups["count"] or 1)
    if groups["only"] is not None:
        for name, value in zip(("cosine", "low", "high"), whole[groups["only"]], strict=True):
            shows(groups[name], value)


def differs(groups, numbers: Summary) -> None:
    massive = {each.of for each in numbers.movement.left_out if each.kind == "word"}
    whole = {o.label: row(numbers, f"text {o.label}") for o in numbers.occurrences if o.label not in massive}
    words = list(next(iter(whole.values())))
    apart = {
        w: max(two(own[w][0]) for own in whole.values()) - min(two(own[w][0]) for own in whole.values()) for w in words
    }
    if groups["word"] is None:
        assert set(apart.values()) == {0}
        return
    assert apart[groups["word"]] == max(apart.values()) > 0
    assert (groups["most"] is not None) == (len(words) > 1)
    ends = [own[groups["word"]][0] for own in whole.values()]
    shows(groups["high"], max(ends))
    shows(groups["low"], min(ends))
    for where, end in ((groups["a"], max(ends)), (groups["b"], min(ends))):
        assert whole[where.split()[-1]][groups["word"]][0] == end


def untold(groups, numbers: Summary) -> None:
    reason, where = groups["reason"], groups["where"]
    if where == "a text":
        refused = None if numbers.control is None else numbers.control.refused
        assert reason == (refused or "there are no neutral sentences to hold it against")
        assert numbers.neutral == []
        return
    label = numbers.occurrences[0].label if where == "the text" else where.split()[-1]
    massive = [each.of for each in numbers.movement.left_out if each.kind == "word"]
    assert label in (massive if "massive" in reason else numbers.control.otherwise)


def more(groups, numbers: Summary) -> None:
    assert int(groups["count"]) == len(numbers.occurrences) - TOLD > 0


def nothing(groups, numbers: Summary) -> None:
    gone = [each.name for each in numbers.movement.left_out if each.kind == "reference"]
    assert re.findall("“([^”]+)”", groups["names"]) == gone


TEMPLATES = [
    Template("moves", rf"(?P<where>{WHERE}) moves “bank”(?: towards (?P<towards>{SOME}))?"
                      rf"(?:(?: and)? away from (?P<away>{SOME}))?\.", moves),
    Template("stays", rf"In (?P<where>{WHERE}) “bank” is not told apart from a neutral sentence(?: by any of "
                      rf"(?P<count>\d+) words|: “(?P<only>.+)” (?P<cosine>{NUMBER}), there (?P<low>{NUMBER}) to "
                      rf"(?P<high>{NUMBER}))\.", stays),
    Template("differs", rf"Between the (?:texts|occurrences) (?:no cosine to a reference word differs, at two decimals|"
                        rf"“(?P<word>.+)” differs(?P<most> most)?: (?P<high>{NUMBER}) in (?P<a>{WHERE}), "
                        rf"(?P<low>{NUMBER}) in (?P<b>{WHERE}))\.", differs),
    Template("untold", rf"Whether (?P<where>a text|{WHERE}) moves “bank” is not told: (?P<reason>.+)\.", untold),
    Template("more", r"(?P<count>\d+) more occurrences? (?:is|are) not told of here\.", more),
    Template("nothing", r"(?P<names>“.+”) (?:is a massive activation|are massive activations), each as a text of its "
                        r"own: nothing follows from cosines to (?:it|them)\.", nothing),
]  # fmt: skip


def without_plane(left_out: list[LeftOut]) -> Movement:
    """What the sentences read of a movement, and nothing else."""
    made = object.__new__(Movement)
    object.__setattr__(made, "left_out", left_out)
    return made


def drawn(draw: random.Random) -> Summary:
    """A summary of random cosines: several words and texts, ranges wide and narrow, ties at two decimals."""
    words = WORDS[: draw.randint(1, len(WORDS))]
    one = draw.random() < 0.3  # one text that has all occurrences
    count = draw.randint(1, 5)
    labels = [f"1{'abcde'[n]}" if one and count > 1 else str(n + 1) for n in range(count)]
    digits = draw.choice([2, 3, 8])
    wide = draw.choice([0.0, 0.02, 0.2, 1.0])
    centre = {word: draw.uniform(-0.5, 0.8) for word in words}

    def cosine(word: str) -> float:
        return round(centre[word] + draw.choice([0.0, 0.004, 0.15]) * draw.uniform(-1, 1), digits)

    made = [[cosine(word) for word in words] for _ in labels]
    neutral = [
        Neutral(word, 39, [centre[word]], [round(centre[word] - wide * draw.random() / 4, digits)],
                [round(centre[word] + wide * draw.random() / 4, digits)])
        for word in words
    ]  # fmt: skip
    otherwise = [label for label in labels if draw.random() < 0.1]
    control = draw.choice([None, Control([], "3 of 39 neutral sentences have “bank”, 12 are needed", [])])
    if draw.random() < 0.8:
        control = Control([f"sentence {n}" for n in range(39)], None, otherwise)
    left = [LeftOut("reference", word, "", 99.0) for word in words if draw.random() < 0.05]
    left += [LeftOut("word", "bank", label, 99.0) for label in labels if draw.random() < 0.05]
    told_of = control is not None and control.refused is None
    return Summary(
        word="bank", top=5, layers=[], labels=[], windows=[], texts=[""] * (1 if one else count), tokens=[], sinks=[],
        occurrences=[Occurrence(label, 0, "bank", 0, 4, [1], None, [], [], [], [], None) for label in labels], pairs=[],
        references=[
            Reference(word, label, draw.random(), each, [each])
            for n, word in enumerate(words) for label, own in zip(labels, made, strict=True) for each in [own[n]]
        ],
        overview=[], highlights=[], movement=without_plane(left),
        layer_updates=[], predictions=[], logit_lenses=[], statuses=[], reference_statuses=[], target=None,
        neutral=neutral if told_of else [], control=control,
    )  # fmt: skip


def test_every_sentence_is_true_of_all_reference_words_and_texts() -> None:
    draw, spoke = random.Random(27), dict.fromkeys((each.name for each in TEMPLATES), 0)
    for _ in range(600):
        summary = drawn(draw)
        for name, count in hold(movement_findings(summary), summary, TEMPLATES).items():
            spoke[name] += count
    assert min(spoke.values()) >= 20, spoke


def test_tables_tell_of_each_cosine_what_the_sentences_do() -> None:
    draw = random.Random(28)
    for _ in range(200):
        summary = drawn(draw)
        sentences = movement_findings(summary)
        for neutral in summary.neutral:
            for each in (r for r in summary.references if r.word == neutral.word):
                where = f" {each.occurrence} " if len(summary.occurrences) > 1 else " text "
                own = [s for s in sentences if " moves “bank” " in s and "not told" not in s and where in s]
                if told(summary, each, neutral) is None:
                    assert not any(f"“{each.word}”" in s for s in own)
                else:
                    assert own or int(summary.occurrences.index(next(
                        o for o in summary.occurrences if o.label == each.occurrence)) >= TOLD)  # fmt: skip


def test_the_same_text_moves_nothing_where_its_numbers_are_neutral() -> None:
    """A text that is itself a neutral sentence is in the range by construction, whatever the numbers."""
    draw = random.Random(29)
    for _ in range(200):
        summary = drawn(draw)
        if not summary.neutral:
            continue
        inside = {each.word: draw.choice([each.low[-1], each.high[-1], each.mean[-1]]) for each in summary.neutral}
        references = [replace(r, last_hidden_state=inside[r.word]) for r in summary.references]
        summary = replace(summary, references=references)
        assert not any("towards" in s or "away from" in s for s in movement_findings(summary))
