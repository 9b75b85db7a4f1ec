"""Every sentence of `see` about whole texts and their translations is true of all their weights and states.

The texts are random words, the models tiny and random, so that nothing but the numbers decides what is said.
"""

import random
import re
from collections import Counter
from dataclasses import dataclass

import torch

import regard
from regard.explain.texts.summary import Summary, summarise
from regard.questions.see.sentences import findings
from regard.text import tokenizers
from regard.trace.layer_subset import kept_numbers
from regard.trace.trace import PairTrace, Trace
from tests.said.random_summaries import cosine
from tests.said.templates import Groups, Template, hold, shows
from tests.said.test_see import TOKEN

WORDS = ["the", "river", "bank", ",", "money", "fish", "a", "on", "."]
WHERE = r"(?:In text (?P<label>\d), of|Of)"
KEY = TOKEN.replace("<text>", "<to>").replace("<token>", "<key>")
ASIDE = r"(?P<sinks> \(sinks aside\))?"


@dataclass(frozen=True)
class Seen:
    """A summary, the traces that it is of, and the one head that was asked for."""

    summary: Summary
    traces: list[Trace | PairTrace]
    head: int | None = None

    def text(self, groups: Groups) -> int:
        assert (groups["label"] is None) == (len(self.traces) == 1)
        return int(groups["label"] or 1) - 1


def words(seen: Seen, text: int) -> list[list[int]]:
    """The tokens of each word that has a letter: no special tokens, no sinks."""
    found: dict[int, list[int]] = {}
    sinks = {sink.token for sink in seen.summary.sinks[text]}
    for n, token in enumerate(seen.traces[text].tokens):
        if not token.special and n not in sinks and any(c.isalnum() for c in token.text):
            found.setdefault(token.word, []).append(n)
    return list(found.values())


def name(seen: Seen, text: int, token: int) -> str:
    return seen.traces[text].tokens[token].text.strip()


def moved(groups: Groups, seen: Seen) -> None:
    text = seen.text(groups)
    assert bool(groups["sinks"]) == bool(seen.summary.sinks[text])
    first, last = (seen.traces[text].hidden_states[n] for n in (0, -1))
    order = sorted(
        (cosine(*(state[own].mean(0).tolist() for state in (first, last))), own) for own in words(seen, text)
    )
    others = re.findall(r", then “(.+?)”(?: \((\d+)\))? ([−\d.]+)(?=,|$)", groups["then"])
    told = [(groups["first"], groups["number"] or "", groups["cosine"]), *others]
    assert len(told) == min(3, len(order))
    called = [name(seen, text, n) for n in range(len(seen.traces[text].tokens))]
    for (word, at, shown), (value, own) in zip(told, order, strict=False):
        assert word == called[own[0]]  # a word of these texts is one token
        assert at == (str(own[0]) if called.count(word) > 1 else "")
        shows(shown, value)


def links(groups: Groups, seen: Seen) -> None:
    """Of each head the sharpest link is looked up; the sharpest of these are named, each pair of tokens once."""
    text = seen.text(groups)
    trace, own = seen.traces[text], words(seen, text)
    held = kept_numbers(trace.attention)
    assert bool(groups["sinks"]) == bool(seen.summary.sinks[text])
    assert groups["head"] == (None if seen.head is None else str(seen.head))
    assert bool(groups["held"]) == (len(held) < len(trace.attention))
    place = {n: number for number, word in enumerate(own) for n in word}
    pairs = [(i, j) for i in place for j in place if abs(place[i] - place[j]) > 1]
    sharpest = sorted(
        (max((float(weights[h, i, j]), i, j) for i, j in pairs), n, h)
        for n in held
        for weights in [trace.attention[n].dense()]
        for h in (range(len(weights)) if seen.head is None else [seen.head])
    )
    if groups["most"]:
        shows(groups["most"], sharpest[-1][0][0])
        assert sharpest[-1][0][0] < 0.3
        return
    assert groups["each"] == ("head" if seen.head is None else "layer")
    wanted = {}
    for (weight, i, j), n, h in reversed(sharpest):
        if weight >= 0.3:
            wanted.setdefault((i, j), (weight, n, h))
    told = groups["named"].split("; ")
    assert len(told) == min(3, len(wanted))
    for part, ((query, key), (weight, n, h)) in zip(told, wanted.items(), strict=False):
        match = re.fullmatch(rf"{TOKEN} looks at {KEY} in layer (?P<n>\d), head (?P<h>\d) \((?P<weight>[\d.]+)\)", part)
        assert (number(trace, match["text"], match["token"]), number(trace, match["to"], match["key"])) == (query, key)
        assert (int(match["n"]), int(match["h"])) == (n, h)
        shows(match["weight"], weight)


def number(trace: Trace, text: str, token: str | None) -> int:
    """The token that is named so, by its number where there are others."""
    called = [n for n, each in enumerate(trace.tokens) if each.text.strip() == text]
    assert (token is None) == (len(called) == 1)
    assert token is None or int(token) in called
    return called[0] if token is None else int(token)


def translated(groups: Groups, seen: Seen) -> None:
    """Each token that is named looks at nothing of the source more, in the row that writes it, but what is left out."""
    text = seen.text(groups)
    pair, alignment = seen.traces[text], seen.summary.target.alignments[text]
    weights = pair.decoder.cross[int(groups["layer"])].dense()
    assert groups["head"] == ("mean of heads" if seen.head is None else f"head {seen.head}")
    rows = weights.mean(0) if seen.head is None else weights[seen.head]
    aside = {n for n, token in enumerate(pair.encoder.tokens) if token.special}
    assert bool(groups["sinks"]) == bool(alignment.sinks)
    aside |= {sink.token for sink in alignment.sinks}
    plain = [n for n in range(rows.shape[1]) if n not in aside]
    best = {n: max(plain, key=lambda j, n=n: float(rows[n - 1, j])) for n in range(1, len(rows))}
    own = {n for o in seen.summary.occurrences if o.text == text for n in o.tokens}
    if groups["word"]:
        written = [n for n in best if not pair.decoder.tokens[n].special]
        assert not any(best[n] in own for n in written)
        return
    for part in re.split(r", (?=“)", groups["named"]):
        match = re.fullmatch(rf"{TOKEN} looks most at {KEY} (?P<weight>[\d.]+)", part)
        out = number(pair.decoder, match["text"], match["token"])
        assert number(pair.encoder, match["to"], match["key"]) == best[out]
        shows(match["weight"], float(rows[out - 1, best[out]]))


TEXTS = [
    Template("moved", WHERE + rf" all words{ASIDE} “(?P<first>.+?)”(?: \((?P<number>\d+)\))? moves most: "
        r"it leaves the last layer at cosine "
        r"(?P<cosine>[−\d.]+) to what entered layer 0(?P<then>.*)\.", moved),
    Template("links", WHERE + r" the links(?: of head (?P<head>\d))?(?P<held> in the layers held)? between words that "
        rf"are no neighbours{ASIDE}, (?:none is sharp: (?P<most>[\d.]+) at most|the sharpest, one a "
        r"(?P<each>head|layer) and pair: (?P<named>.+))\.", links),
    Template("translated", r"(?:In text (?P<label>\d), as|As) the target is written \(layer (?P<layer>\d), "
        r"(?P<head>mean of heads|head \d); special tokens(?P<sinks> and sinks)? aside\), "
        r"(?:no token looks most at “(?P<word>.+)”|(?P<named>.+))\.", translated),
]  # fmt: skip


def some_texts(rng: random.Random, count: int) -> list[str]:
    return [" ".join(rng.choices(WORDS[: rng.choice((3, 9))], k=rng.randrange(1, 12))) + " bank" for _ in range(count)]


def test_every_sentence_about_a_text_is_true_of_it() -> None:
    torch.manual_seed(3)
    tokenizer = tokenizers.words([" ".join(WORDS)], frame="bert")
    sizes = regard.TransformerConfig(
        vocabulary=len(tokenizer), kind="encoder", d_model=12, heads=3, layers=3, length=31, segments=2, initial=0.5
    )
    model, rng, spoke = regard.load(regard.Transformer(sizes).eval(), tokenizer=tokenizer), random.Random(1), Counter()
    for layers in (None, [1]):
        traces = model.trace(some_texts(rng, 12), layers=layers)
        for first, some, head in ((0, 1, None), (1, 3, None), (4, 1, 1), (5, 4, 1), (9, 3, None)):
            own = traces[first : first + some]
            seen = Seen(summarise(own, head=head), own, head)
            spoke += hold(findings(seen.summary), seen, TEXTS)
    assert set(spoke) == {"moved", "links"}, spoke


def test_every_sentence_about_a_translation_is_true_of_it() -> None:
    torch.manual_seed(5)
    tokenizer = tokenizers.words([" ".join(WORDS)], frame="end")
    sizes = regard.TransformerConfig.translator(
        len(tokenizer), start=tokenizer.bos_token_id, d_model=12, heads=3, layers=2, initial=0.5
    )
    model, rng, spoke = regard.load(regard.Transformer(sizes).eval(), tokenizer=tokenizer), random.Random(2), Counter()
    traces = model.trace(some_texts(rng, 10), target=some_texts(rng, 10))
    for first, some, head, word in ((0, 1, None, None), (1, 3, 1, None), (4, 3, None, "bank"), (7, 3, 1, "bank")):
        own = traces[first : first + some]
        seen = Seen(summarise(own, word, head=head), own, head)
        spoke += hold([each for each in findings(seen.summary) if " the target " in each], seen, TEXTS)
    assert set(spoke) == {"translated"}, spoke
