"""What `why` says of tokens and heads is true of their whole rankings, special tokens and the word itself in them."""

import math
import random

import pytest

from regard.questions.why.answer import Cause, Why, WhyOfTexts
from tests.said.templates import Groups, Template, hold, shows

N = r"[−-]?[\d.]+"
WORDS = ("river", "fishing", "man", "quiet", "boat", "water", "sat", "red")


def change(cause: Cause, why: Why) -> float:
    """What the whole answer is ranked by."""
    return cause.divergence if why.by == "divergence" and cause.divergence is not None else cause.effect


def other_word(cause: Cause) -> bool:
    return not cause.special and not cause.sink and not cause.own


def one(name: str | None, causes: list[Cause]) -> Cause:
    """The one cause of a name as sentences have it."""
    assert name is not None
    found = [each for each in causes if each.name == name.strip("“”")]
    assert len(found) == 1, name
    return found[0]


def called(name: str, found: Cause) -> None:
    """What stands before and behind a token's name says what it is."""
    assert name.startswith("the special token ") == (found.special and not found.own), name
    assert name.startswith("the attention sink ") == (found.sink and not found.special and not found.own), name
    assert name.endswith(" itself") == found.own, name


def told(said: str) -> list[tuple[str, str]]:
    """The names and figures of a list such as “a” (0.3), the special token [CLS] (0.2) and “b” itself (0.1)."""
    parts = said.replace(") and ", "), ").split("), ")
    return [(name, figure.rstrip(")")) for name, figure in (part.rsplit(" (", 1) for part in parts)]


def bare(name: str) -> str:
    for part in ("the special token ", "the attention sink ", " itself", " of the source"):
        name = name.replace(part, "")
    return name


def in_order(named: list[tuple[str, str]], among: list[Cause], why: Why) -> None:
    """What is named, with its figures, comes first among these causes, in this order."""
    values = sorted((change(each, why) for each in among), reverse=True)
    for n, (name, figure) in enumerate(named):
        found = one(bare(name), why.tokens)
        assert found in among
        called(name, found)
        assert change(found, why) == values[n], f"{name} is named as number {n + 1} of {values}"
        shows(figure, change(found, why))


def row_of(aside: str | None, why: Why) -> list[Cause]:
    return [each for each in why.tokens if other_word(each) or not aside]


def most(groups: Groups, why: Why) -> None:
    named = [(groups["first"] or "", groups["by"] or ""), *(told(groups["next"]) if groups["next"] else [])]
    in_order(named, row_of(groups["aside"], why), why)
    assert (groups["unit"] == "in nats, as KL divergence") == (why.by == "divergence")


def shortly(groups: Groups, why: Why) -> None:
    named = [*told(groups["first"] or ""), *(told(groups["next"]) if groups["next"] else [])]
    in_order(named, row_of(groups["aside"], why), why)


def none(groups: Groups, why: Why) -> None:
    words = [change(each, why) for each in why.tokens if other_word(each)]
    assert words
    assert max(words) < float(groups["least"] or "")


def alone(groups: Groups, why: Why) -> None:
    assert not any(other_word(each) for each in why.tokens)


def beside(groups: Groups, why: Why) -> None:
    named = [*told(groups["first"] or ""), *(told(groups["next"]) if groups["next"] else [])]
    in_order(named, [each for each in why.tokens if not other_word(each)], why)
    assert bool(groups["share"]) == (not one(bare(named[0][0]), why.tokens).own)


def looks(groups: Groups, why: Why) -> None:
    """Of all tokens the most weight, then of other words, and whether the same word has the largest change of all."""
    top = one(bare(groups["top"] or ""), why.tokens)
    called(groups["top"] or "", top)
    shows(groups["weight"], top.weight)
    assert top.weight == max(each.weight for each in why.tokens)
    looked = top
    words = [each for each in why.tokens if other_word(each)]
    if groups["word"]:
        looked = one(bare(groups["word"]), why.tokens)
        shows(groups["given"], looked.weight)
        assert looked.weight == max(each.weight for each in words)
    if groups["too"]:
        among = words if "of other words" in groups["too"] else why.tokens
        assert change(looked, why) == max(change(each, why) for each in among)
    else:
        against = one(bare(groups["than"] or ""), why.tokens)
        shows(groups["less"], change(looked, why))
        shows(groups["more"], change(against, why))
        assert change(looked, why) < change(against, why) == max(change(each, why) for each in words)


def heads(groups: Groups, why: Why) -> None:
    values = sorted((change(each, why) for each in why.heads), reverse=True)
    assert int(groups["count"] or "") == len(why.heads)
    for n, (name, figure) in enumerate((("first", "by"), ("then", "next"))):
        if groups[name]:
            assert change(one(groups[name], why.heads), why) == values[n]
            shows(groups[figure], values[n])


def no_head(groups: Groups, why: Why) -> None:
    assert max(change(each, why) for each in why.heads) < float(groups["least"] or "")


def predicts(groups: Groups, why: Why) -> None:
    weight, given = why.tokens_agreement
    shows(groups["weight"], weight)
    shows(groups["given"], given)
    least = {"nearly as": 0.9, "roughly as": 0.6, "only loosely as": 0.3, "quite otherwise than": -1.0}
    assert least[groups["alike"] or ""] == max(each for each in least.values() if weight >= each)
    assert (groups["what"] == "their removal") == (why.tokens_by != "edges")
    if groups["than"] == "about as well":
        assert abs(weight - given) < 0.02
    else:
        assert (groups["than"] == "better") == (given > weight)


ASIDE = "(?P<aside>, special tokens, attention sinks and the word itself aside)?"
TEMPLATES = [
    Template(
        "most",
        r"If .+ could(?: not)? look at (?P<first>.+?), .+ would change most "
        rf"\(by (?P<by>{N}), (?P<unit>.+?)\){ASIDE}(?:; next (?P<next>.+))?\.",
        most,
    ),
    Template(
        "shortly",
        r"“bank” of text \d would change most without (?P<first>.+?)(?:, by what the model says next)?"
        rf"{ASIDE}(?:; then (?P<next>.+))?\.",
        shortly,
    ),
    Template(
        "none",
        r"No single other word matters to .+: without any one of them .+ changes by less than (?P<least>[\d.e-]+)\.",
        none,
    ),
    Template("alone", r".+ looks at no other word: only at itself, special tokens and sinks\.", alone),
    Template(
        "beside",
        r"Of special tokens, sinks and the word itself, (?P<first>.+?\)) changes it most(?:, next (?P<next>.+?))?"
        r"(?P<share>; without a special token or a sink others share its weight)?\.",
        beside,
    ),
    Template(
        "looks",
        rf"It looks most at (?P<top>.+?) \(weight (?P<weight>{N}), mean of all layers and heads\)"
        rf"(?:; special tokens, sinks and itself aside, at (?P<word>.+?) \((?P<given>{N})\))?, which "
        r"(?:(?P<too>(?:of other words )?changes it most, too)|changes it less than (?P<than>.+) does: "
        rf"(?P<less>{N}) against (?P<more>{N}))\.",
        looks,
    ),
    Template(
        "heads",
        r"Of the (?P<count>\d+) heads (?P<first>layer \d+, head \d+) matters most(?: for .+?)?: without it the "
        rf"change is (?P<by>{N})(?:; next (?P<then>.+?) \((?P<next>{N})\))?\.",
        heads,
    ),
    Template(
        "no head",
        r"No single head matters(?: for .+)?: without any one of them nothing changes by (?P<least>[\d.e-]+)\.",
        no_head,
    ),
    Template(
        "predicts",
        r"Attention weights alone rank the tokens (?P<alike>.+) (?P<what>their removal|ablating its looks at them) "
        rf"does \(rank correlation (?P<weight>{N})\); contributions "
        rf"\(weight × value × output projection\) (?P<than>.+) \((?P<given>{N})\)\.",
        predicts,
    ),
]


def made(draw: random.Random) -> Why:
    """A random answer: some special tokens, some sinks, one word itself, and words, of changes large and small."""

    def size() -> float:
        return draw.choice((1.0, 0.3, 0.05, 0.001, 1e-5)) * draw.uniform(0.1, 1)

    by = draw.choice(("effect", "divergence"))

    def cause(name: str, token: int | None, head: int | None, **flags: bool) -> Cause:
        return Cause(name, token, None if head is None else 0, head, size(), size(), size(), size(), None, **flags)

    names = [("[CLS]", {"special": True}), ("[SEP]", {"special": True}), ("bank", {"own": True})]
    names += [(word, {"sink": draw.random() < 0.2}) for word in draw.sample(WORDS, draw.randint(0, len(WORDS)))]
    draw.shuffle(names)
    tokens = [cause(name, n, None, **flags) for n, (name, flags) in enumerate(names)]
    heads = [cause(f"layer 0, head {n}", None, n) for n in range(draw.randint(1, 6))]
    tokens_by = draw.choice(("removal", "edges", "weight", "contribution"))
    agreement = draw.choice(((draw.uniform(-1, 1), draw.uniform(-1, 1)), (0.5, 0.51), (math.nan, math.nan)))
    return Why("bank", tokens, heads, agreement, agreement, by, None, tokens_by)  # type: ignore[arg-type]


def test_what_is_said_of_random_rankings_holds() -> None:
    draw, spoke = random.Random(27), dict.fromkeys((each.name for each in TEMPLATES), 0)
    for _ in range(200):
        why, again = made(draw), made(draw)
        for name, count in hold(why.findings(), why, TEMPLATES).items():
            spoke[name] += count
        first, *_ = WhyOfTexts([("1", why), ("2", again)]).findings()
        spoke["shortly"] += hold([first], why, TEMPLATES)["shortly"]
    assert all(spoke.values()), spoke


@pytest.mark.parametrize("by", ["effect", "divergence"])
def test_the_word_itself_is_no_silent_gap(by: str) -> None:
    """ "next fishing (0.027)" was said over a table with bank 0.034, and "[CLS] (0.36)" came after all words."""
    figures: list[tuple[str, float, dict[str, bool]]] = [
        ("[CLS]", 0.36, {"special": True}), ("river", 0.29, {}), ("bank", 0.034, {"own": True}), ("fishing", 0.027, {}),
    ]  # fmt: skip
    tokens = [Cause(name, n, None, None, 0.1, 0.1, size, size, **own) for n, (name, size, own) in enumerate(figures)]
    heads = [Cause("layer 0, head 0", None, 0, 0, 0.1, 0.1, 0.1, 0.1)]
    why = Why("bank", tokens, heads, (0.5, 0.5), (0.5, 0.5), by)  # type: ignore[arg-type]
    words, apart, *_ = said = why.findings()
    assert words.startswith("If no token could look at “river”, ")
    assert "), special tokens, attention sinks and the word itself aside; next “fishing”" in words
    assert apart == (
        "Of special tokens, sinks and the word itself, the special token [CLS] (0.36) changes it most, next “bank” "
        "itself (0.034); without a special token or a sink others share its weight."
    )
    hold(said, why, TEMPLATES)
