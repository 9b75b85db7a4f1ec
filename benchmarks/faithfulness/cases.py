"""Make the cases of a model: a text, one outcome of it, and the words whose part in that outcome is asked for.

    MiniLM     the cosine of a word's contextual embedding to the mean of what it has in eight other sentences
    SmolLM2    the log-probability of the sentence's own next token, at a place in it
    opus-mt    the log-probability of a token of the model's own French translation

The sources are the words of the text (of an encoder-decoder also of the translation so far), what stands between
blanks, but the one at which the outcome is read. Special tokens and attention sinks are sources apart.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.faithfulness import texts
from regard.explain.causes.outcomes import AnyTrace, Outcome, cosine
from regard.explain.weights.sinks import cross_sinks, sinks
from regard.models.model import Model
from regard.text.words import Word
from regard.trace.trace import PairTrace, Trace

REFERENCES = 8  # sentences that a word's mean is of
LEAST_SOURCES = 5  # words, sinks aside: fewer have no ranking to speak of
LETTERS = 4  # of the words whose outcomes are measured, at least


@dataclass(frozen=True)
class SourceWord:
    """One source: its tokens. side: 0 for the text, 1 for an encoder-decoder's target. apart: special, or a sink."""

    name: str
    side: int
    tokens: tuple[int, ...]
    apart: bool


@dataclass(frozen=True, eq=False)
class Case:
    """A text and the outcome that is explained. place: the tokens, of the last side, at which it is read.

    target: of a translator, all that it wrote; it is run up to the place.
    token: the id whose log-probability it is; toward: the vector whose cosine it is: one of the two.
    """

    model: Model
    trace: AnyTrace
    text: str
    target: str | None
    outcome: Outcome
    place: tuple[int, ...]
    sources: tuple[SourceWord, ...]
    token: int | None = None
    toward: Float[Tensor, " M"] | None = None

    def read(self, states: Float[Tensor, "R k M"]) -> Float[Tensor, " R"]:
        """The outcomes of runs by their states at the place, to which the language head alone is put."""
        if self.toward is not None:
            return torch.cosine_similarity(states.double().mean(1), self.toward.double()[None], dim=1)
        model = self.model.model
        logits = model.get_output_embeddings()(states[:, 0]) + getattr(model, "final_logits_bias", torch.zeros(1))
        return logits.double().log_softmax(-1)[:, self.token]

    @property
    def given(self) -> dict[str, Any]:
        """The text as `trace` and `ablated` take it: of a translator by the ids that its two sides read."""
        if self.target is None:
            return {"text": self.text}
        return dict(
            zip(("ids", "target_ids"), ([token.id for token in side.tokens] for side in self.trace.sides), strict=True)
        )

    @property
    def own(self) -> Trace:
        """The trace of the side at which the outcome is read."""
        return self.trace.sides[-1]

    @property
    def word(self) -> Word:
        """The place as a word."""
        return group(self.place)


def group(tokens: tuple[int, ...]) -> Word:
    """Some tokens as one word, which is how the ends of an edge are named."""
    return Word("", 0, 0, tokens)


def word_cases(model: Model, pool: list[str], seed: int) -> Iterator[Case]:
    """Cases of an encoder: one word of each sentence, which eight other sentences of the book have too."""
    drawn = random.Random(seed)
    for text in pool:
        candidates = [each for each in texts.letters(text, LETTERS + 1) if text.lower().count(each[0]) == 1]
        drawn.shuffle(candidates)
        shared = ((each, list(islice(texts.sharing(each[0], pool, text), REFERENCES))) for each in candidates)
        enough = next(((each, others) for each, others in shared if len(others) == REFERENCES), None)
        if enough is None:
            continue
        (word, start, end), others = enough
        mean = torch.stack([each[word].double() for each in model.trace(others, attention_outputs=False)]).mean(0)
        trace = model.trace(text)
        place = tuple(n for n, token in enumerate(trace.tokens) if token.start < end and token.end > start)
        reference = mean.to(trace.last_hidden_state.dtype)
        outcome = cosine(group(place), reference, f"{word} in {REFERENCES} other sentences")
        outcome = Outcome(f"cosine of “{word}” to its mean in other sentences", outcome.number)
        yield from _enough(Case(model, trace, text, None, outcome, place, _sources(trace, place), toward=reference))


def next_token_cases(model: Model, pool: list[str], seed: int) -> Iterator[Case]:
    """Cases of a causal model: the first token of a word of each sentence, after all that stands before it."""
    drawn = random.Random(seed)
    for sentence in pool:
        whole = model.tokenizer(sentence)["input_ids"]
        candidates = texts.letters(sentence, LETTERS)
        drawn.shuffle(candidates)
        for _, start, _ in candidates:
            text = sentence[:start].rstrip()
            if len(text.split()) < LEAST_SOURCES + 2:  # the first is a sink, the last one reads the outcome
                continue
            ids = model.tokenizer(text)["input_ids"]
            if whole[: len(ids)] != ids:
                continue
            trace, token = model.trace(text), whole[len(ids)]
            place = (len(ids) - 1,)
            yield from _enough(
                Case(model, trace, text, None, _said(model, place[0], token), place, _sources(trace, place), token)
            )
            break


def translation_cases(model: Model, pool: list[str], seed: int) -> Iterator[Case]:
    """Cases of a translator: the first token of a word that it writes, after what it has written before."""
    drawn = random.Random(seed)
    for text in pool:
        written = model.generate(text, max_new_tokens=80)
        target = written.text
        trace = model.trace(text, target=target)
        assert isinstance(trace, PairTrace)
        ids = model.tokenizer(text_target=target)["input_ids"]
        read = trace.decoder.tokens
        if [token.id for token in read[1:]] != ids[: len(read) - 1]:
            continue
        starts = {start for _, start, _ in texts.letters(target, LETTERS)}
        own = [
            n for n in range(3, len(read) - 1) if any(read[n + 1].start <= start < read[n + 1].end for start in starts)
        ]
        if not own:
            continue
        at = drawn.choice(own)
        sources = _sources(trace, (at,))
        until = model.trace(
            ids=[token.id for token in trace.encoder.tokens], target_ids=[token.id for token in read[: at + 1]]
        )
        yield from _enough(Case(model, until, text, target, _said(model, at, ids[at]), (at,), sources, ids[at]))


CASES: dict[str, Callable[[Model, list[str], int], Iterator[Case]]] = {
    "MiniLM": word_cases,
    "SmolLM2": next_token_cases,
    "opus-mt": translation_cases,
}


def _enough(case: Case) -> Iterator[Case]:
    """The case, where it has words enough to rank."""
    if sum(not each.apart for each in case.sources) >= LEAST_SOURCES:
        yield case


def _said(model: Model, at: int, token: int) -> Outcome:
    """The log-probability of a token after another."""
    name = model.tokenizer.convert_ids_to_tokens(token)
    return Outcome(
        f"log-probability of {name!r}", lambda trace: trace.sides[-1].logits[at].double().log_softmax(-1)[token]
    )


def _sources(trace: AnyTrace, place: tuple[int, ...]) -> tuple[SourceWord, ...]:
    """The words of the text, and of what a decoder has read before the place."""
    found: list[SourceWord] = []
    pair = isinstance(trace, PairTrace)
    for side, own in enumerate(trace.sides):
        last = side == len(trace.sides) - 1
        apart = {sink.token for sink in sinks(own)}
        if pair and not last:
            apart |= {sink.token for sink in cross_sinks(trace)}
        end = place[0] if last and (pair or own.attention[0][0, 0, 1:].sum() == 0) else len(own.tokens)
        chunks = texts.words(own.text)
        for n, token in enumerate(own.tokens):
            if token.special and n < end:
                found.append(SourceWord(token.text, side, (n,), True))
        for name, start, stop in chunks:
            tokens = tuple(n for n, token in enumerate(own.tokens) if not token.special and start < token.end <= stop)
            if tokens and tokens[-1] < end and not (last and set(tokens) & set(place)):
                found.append(SourceWord(name, side, tokens, bool(apart & set(tokens))))
    return tuple(found)
