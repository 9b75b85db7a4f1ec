"""The sentences of `why` name the word and the head with the largest effect, whatever special tokens and sinks do."""

import math
import random

from regard.questions.why.answer import Cause, Why, WhyOfTexts
from tests.said.reading import names_in, numbers_in, plain_and_few, shown_with_its_numbers, shows

WORDS = ("river", "fishing", "man", "quiet", "boat", "water", "sat", "red")


def others_of(why: Why) -> list[Cause]:
    """All tokens that are other words, the largest effect first."""
    words = [token for token in why.tokens if not (token.special or token.sink or token.own)]
    return sorted(words, key=why.measured, reverse=True)


def random_answer(draw: random.Random) -> Why:
    """Make an answer with two special tokens, the word itself, sinks, and words with small and large effects."""

    def size() -> float:
        return draw.choice((1.0, 0.3, 0.05, 1e-5)) * draw.uniform(0.1, 1)

    def cause(name: str, token: int | None, head: int | None, **flags: bool) -> Cause:
        return Cause(name, token, None if head is None else 0, head, size(), size(), size(), size(), None, **flags)

    names = [("[CLS]", {"special": True}), ("[SEP]", {"special": True}), ("bank", {"own": True})]
    names += [(word, {"sink": draw.random() < 0.2}) for word in draw.sample(WORDS, draw.randint(0, len(WORDS)))]
    draw.shuffle(names)
    tokens = [cause(name, n, None, **flags) for n, (name, flags) in enumerate(names)]
    heads = [cause(f"layer 0, head {n}", None, n) for n in range(draw.randint(1, 6))]
    agreement = draw.choice(((draw.uniform(-1, 1), 0.1), (math.nan, math.nan)))
    by, tokens_by = draw.choice(("effect", "divergence")), draw.choice(("removal", "edges", "weight", "contribution"))
    return Why("bank", tokens, heads, agreement, agreement, by, None, tokens_by)  # type: ignore[arg-type]


def names_the_first_word(sentence: str, why: Why) -> None:
    """Assert that a sentence names the other word with the largest effect, and excludes others only if needed."""
    others, printed = others_of(why), numbers_in(sentence)
    if not others:
        assert names_in(sentence) == ["bank"]
        return
    shows(printed[-1], why.measured(others[0]))
    if why.measured(others[0]) < 1e-4:
        assert names_in(sentence) == ["bank"]
        return
    assert names_in(sentence) == [others[0].name, "bank"]
    larger = any(why.measured(token) >= why.measured(others[0]) for token in why.tokens if token not in others)
    assert ("among other words" in sentence.lower()) == larger
    assert ("attention to" in sentence) == (why.tokens_by == "edges")


def names_the_first_head(sentence: str, *whys: Why) -> None:
    heads = [max(why.heads, key=why.measured) for why in whys]
    assert all(head.name in sentence for head in heads)
    printed = [number for number in numbers_in(sentence) if "." in number]
    assert len(printed) == len(whys)
    for number, head, why in zip(printed, heads, whys, strict=True):
        shows(number, why.measured(head))


def compares_weights(sentence: str, why: Why) -> None:
    """Assert that a word with more weight has a smaller effect, or that the rank correlation is printed."""
    tokens = {token.name: token for token in why.tokens}
    if not names_in(sentence):
        shows(numbers_in(sentence)[-1], why.tokens_agreement[0])
        assert ("well" in sentence) == (why.tokens_agreement[0] >= 0.8)
        return
    _, seen, first, again = names_in(sentence)
    assert first == again == others_of(why)[0].name
    assert tokens[seen].weight == max(token.weight for token in others_of(why)) > tokens[first].weight
    assert why.measured(tokens[seen]) < why.measured(tokens[first])
    for number, name in zip(numbers_in(sentence), (seen, first), strict=True):
        shows(number, tokens[name].weight)


def test_one_occurrence() -> None:
    draw, lengths = random.Random(27), set()
    for _ in range(150):
        why = random_answer(draw)
        word, head, *weights = why.findings()
        names_the_first_word(word, why)
        names_the_first_head(head, why)
        for sentence in weights:
            compares_weights(sentence, why)
        shown_with_its_numbers(why)
        lengths.add((len(names_in(word)), len(weights), *(len(names_in(each)) for each in weights)))
    assert len(lengths) >= 5  # special cases among them


def test_two_occurrences() -> None:
    draw = random.Random(28)
    for _ in range(100):
        both = random_answer(draw), random_answer(draw)
        answer = WhyOfTexts([("1", both[0]), ("2", both[1])])
        *words, heads = answer.findings()
        for n, (sentence, why) in enumerate(zip(words, both, strict=True), 1):
            assert f"text {n}" in sentence
            names_the_first_word(sentence.replace(f"text {n}", "text"), why)
        names_the_first_head(heads.replace("text 1", "").replace("text 2", ""), *both)
        shown_with_its_numbers(answer)


def test_many_occurrences() -> None:
    draw = random.Random(29)
    for _ in range(100):
        whys = [random_answer(draw) for _ in range(draw.randint(3, 7))]
        sentences = WhyOfTexts([(str(n), why) for n, why in enumerate(whys)]).findings()
        plain_and_few(sentences)
        words = [first.name for why in whys for first in others_of(why)[:1] if why.measured(first) >= 1e-4]
        heads = [max(why.heads, key=why.measured).name for why in whys]
        for sentence in sentences:
            among = words if names_in(sentence) else heads
            named = [name for name in among if name in sentence]
            most = max(map(among.count, among))
            assert most == among.count(named[0]) == int(numbers_in(sentence)[0]) if named else most == 1


def test_a_name_that_occurs_twice_has_its_number() -> None:
    tokens = [Cause(name, n, None, None, 0.1, 0.1, 0.3 / (n + 1)) for n, name in enumerate(("the", "river", "the"))]
    why = Why("bank", tokens, [Cause("layer 0, head 0", None, 0, 0, 0.1, 0.1, 0.1)], (0.5, 0.5), (0.5, 0.5))
    assert "“the” (0)" in why.findings()[0]
