"""What `attribute` says brought most, and took most away, is true of all parts that the sentence says it is of."""

import random
from collections.abc import Sequence
from dataclasses import replace

import torch

from regard.capture.interventions.call_ids import CallId
from regard.capture.score_path import SideParts, Writer
from regard.questions.attribution.direct import Attribution
from regard.questions.attribution.heads import HeadAttribution
from regard.questions.attribution.tokens import TokenAttribution
from regard.text.tokens import Token
from tests.said.templates import Groups, Template, hold, shows
from tests.support import in_text

TEXT = "rivers run past the bank"
TOKENS = tuple(in_text([
    Token(1, "river", 0, 5, 0, False), Token(2, "s", 5, 6, 0, False), Token(3, " run", 6, 10, 1, False),
    Token(4, " past", 10, 15, 2, False), Token(5, " the", 15, 19, 3, False), Token(6, " bank", 19, 24, 4, False),
]))  # fmt: skip
WORDS = (range(2), range(2, 3), range(3, 4), range(4, 5), range(5, 6))
KINDS = {"token": "token embedding", "attention": "attention", "feed-forward": "feed-forward layers", "bias": "biases"}
Attributed = Attribution | TokenAttribution | HeadAttribution
Numbers = tuple[Attributed, str]  # what was found, and by what it is told


def as_asked(found: Attributed, by: str) -> Attributed:
    """What was found, with its parts by token or by word."""
    return found if isinstance(found, HeadAttribution) else replace(found, unit=by)  # type: ignore[arg-type]


def parts_of(found: Attributed, by: str) -> dict[str, dict[str, float]]:
    """Every list that a sentence may speak of, by its beginning: each part's name and number, all of them."""
    if isinstance(found, HeadAttribution):
        return {
            "heads": {
                f"layer {call.layer}, head {n}": float(value)
                for call, own in zip(found.calls, found.scores, strict=True)
                for n, value in enumerate(own)
            }
        }
    if isinstance(found, TokenAttribution):
        return {f"{by}s": by_place(by, dict(enumerate(found.scores.tolist())))}
    writers, sources, kinds = {}, {}, {}
    for each, value in zip(found.parts.writers, found.parts.vectors[:, 0].tolist(), strict=True):
        named = {"attention": f"head {each.head}", "bias": "biases"}.get(each.kind, each.kind)
        before = "biases before layer 0" if each.kind == "bias" else KINDS[each.kind]
        name = before if each.layer is None else f"layer {each.layer}, {named}"
        writers[name] = writers.get(name, 0.0) + value
        kinds[KINDS[each.kind]] = kinds.get(KINDS[each.kind], 0.0) + value
        if each.source is not None:
            sources[each.source] = sources.get(each.source, 0.0) + value
    heads = {name: value for name, value in writers.items() if "head" in name}
    return {"parts": writers, "heads": heads, f"source {by}s": by_place(by, sources), "kinds": kinds}


def by_place(by: str, numbers: dict[int, float]) -> dict[str, float]:
    """The numbers of tokens by their names, or those of words."""
    if by == "token":
        return {f"“{TOKENS[n].text.strip()}” ({n})": value for n, value in numbers.items()}
    texts = ("rivers", "run", "past", "the", "bank")
    some = {n: [numbers[m] for m in own if m in numbers] for n, own in enumerate(WORDS)}
    return {f"“{texts[n]}” ({WORDS[n][0]})": sum(own) for n, own in some.items() if own}


def told(said: str) -> list[tuple[str, str]]:
    """The names and figures of a list; a name may hold ", " and a number of its own."""
    found, rest = [], said
    while rest:
        n = min(i for i in (rest.find("(+"), rest.find("(−")) if i >= 0)
        name, after = rest[:n].strip(), rest[n + 1 :]
        figure, _, rest = after.partition(")")
        found.append((name.removeprefix("and ").removeprefix(", ").strip(), figure))
        rest = rest.removeprefix(",").strip()
    return found


def in_order(named: str | None, among: dict[str, float], sign: int) -> None:
    """What is named comes first among all of that sign, in this order; nothing named: there is none of that sign."""
    values = sorted((value * sign for value in among.values()), reverse=True)
    for n, (name, figure) in enumerate(told(named or "")):
        shows(figure, among[name])
        assert among[name] * sign == values[n] > 0, f"{name} is named as number {n + 1} of {values}"
    assert named or values[0] <= 0, "nothing, it says"


def most(groups: Groups, numbers: Numbers) -> None:
    among = parts_of(*numbers)[f"{groups['of']}".rstrip("s") + "s"]
    assert len(among) == (1 if groups["count"] == "one" else int(groups["count"] or ""))
    in_order(groups["along"], among, 1)
    if groups["away"]:
        in_order(groups["away"], among, -1)
    if groups["kinds"]:
        kinds = {"embedding": "embeddings", "head": "heads", "feed-forward": "feed-forward layers", "bias": "biases"}
        assert {said for part, said in kinds.items() if any(part in name for name in among)} == set(
            groups["kinds"].replace(" and ", ", ").split(", ")
        )


def outcome(groups: Groups, numbers: Numbers) -> None:
    found = numbers[0]
    shows(groups["value"], found.value if isinstance(found, Attribution) else found.outcome)
    if groups["baseline"]:
        assert isinstance(found, TokenAttribution)
        assert found.baseline is not None
        shows(groups["baseline"], found.baseline)


def in_all(groups: Groups, numbers: Numbers) -> None:
    """Every kind is there: they sum to the outcome."""
    kinds = {name.lower(): value for name, value in parts_of(*numbers)["kinds"].items()}
    found = numbers[0]
    assert isinstance(found, Attribution)
    writers = zip(found.parts.writers, found.parts.vectors[:, 0].tolist(), strict=True)
    loose = [value for each, value in writers if each.kind == "bias" and each.layer is None]
    assert bool(groups["loose"]) == bool(loose)
    if loose:
        shows(groups["loose"], sum(loose))
    said = (groups["kinds"] or "").replace(" and ", ", ").split(", ")
    assert len(said) == len(kinds)
    for each in said:
        name, figure = each.rsplit(" ", 1)
        shows(figure, kinds[name.lower()])


def sums(groups: Groups, numbers: Numbers) -> None:
    found = numbers[0]
    assert isinstance(found, TokenAttribution)
    assert found.baseline is not None
    assert found.gap is not None
    due = found.outcome - found.baseline
    shows(groups["sum"], float(found.scores.sum()))
    shows(groups["due"], due)
    assert bool(groups["far"]) == (found.gap > abs(due) / 20)
    assert groups["far"] or f"{found.gap:.1e}" == groups["gap"]


def took(groups: Groups, numbers: Numbers) -> None:
    found = numbers[0]
    assert isinstance(found, HeadAttribution)
    heads = parts_of(*numbers)["heads"]
    layer, head = int(groups["layer"] or ""), int(groups["head"] or "")
    score = heads[f"layer {layer}, head {head}"]
    assert abs(score) == max(abs(each) for each in heads.values())
    shows(groups["score"], score)
    row = next(own[head].tolist() for call, own in zip(found.calls, found.sources, strict=True) if call.layer == layer)
    token = int(groups["token"] or "")
    assert row[token] * score == max(each * score for each in row)
    shows(groups["own"], row[token])


def caveat(groups: Groups, numbers: Numbers) -> None:
    found = numbers[0]
    if groups["slope"]:
        assert isinstance(found, TokenAttribution)
        assert found.baseline is None
    else:
        assert isinstance(found, HeadAttribution)


N = r"[+−][\d.]+"
MOST = r"(?:(?P<along>.+?) brought most|none brought anything)(?:; (?P<away>.+) took most away)?\."
OF = r"(?P<count>\d+|one) (?P<of>parts|heads|tokens|words|source (?:token|word)s?)"
TEMPLATES = [
    Template(
        "outcome",
        rf"The .+ is (?P<value>{N})(?:: the sum of what was written there directly"
        rf"|, and (?P<baseline>{N}) where the baseline stands at every token)?\.",
        outcome,
    ),
    Template(
        "most",
        rf"(?:Of (?:all|the)|By .+, of (?:all|the)) {OF}(?: \((?P<kinds>[a-z, -]+)\))?"
        rf"(?:, each beside .+, to the first order|, by attention over all heads and layers)?, {MOST}",
        most,
    ),
    Template("in all", rf"In all: (?P<kinds>.+?)(?:; of the biases (?P<loose>{N}) is of no layer)?\.", in_all),
    Template(
        "sums",
        rf"The scores sum to (?P<sum>{N}), where (?P<due>{N}) is to be explained: (?:(?P<far>with \d+ steps too far "
        r"apart for single scores to be believed)|a gap of (?P<gap>.+))\.",
        sums,
    ),
    Template(
        "took",
        rf"Layer (?P<layer>\d+), head (?P<head>\d+), the furthest from zero, took most of its (?P<score>{N}) from "
        rf"“.+” \((?P<token>\d+)\): (?P<own>{N})\.",
        took,
    ),
    Template(
        "caveat",
        r"(?P<slope>Gradient x input follows the slope at this text alone: the scores need not sum to the outcome\.)?"
        r"(?:One gradient estimates all of these; ablating a head measures what it does\.)?",
        caveat,
    ),
]


def direct(draw: random.Random) -> Attribution:
    """A split into embeddings, heads by source token, feed-forward layers and biases, some left away."""
    writers = [Writer("token"), Writer("bias"), Writer("bias", 0), *(Writer("feed-forward", n) for n in range(2))]
    heads = [(layer, head) for layer in range(2) for head in range(3)]
    writers += [Writer("attention", *head, n) for head in heads for n in range(len(TOKENS))]
    kept = [each for each in writers if draw.random() < 0.7] or writers[:1]
    vectors = torch.tensor([[size(draw)] for _ in kept], dtype=torch.float64)
    parts = SideParts(tuple(kept), vectors, vectors.sum(0), (5,))
    return Attribution("logit of “x” at “bank”", float(vectors.sum()), 1e-7, parts, {None: TOKENS})


def by_tokens(draw: random.Random) -> TokenAttribution:
    scores = torch.tensor([size(draw) for _ in TOKENS], dtype=torch.float64)
    plain = draw.random() < 0.3
    baseline = None if plain else size(draw)
    value = float(scores.sum()) + (baseline or 0.0) + draw.choice((1e-4, 0.5))
    gap = None if baseline is None else abs(float(scores.sum()) - (value - baseline))
    method = "gradient x input" if plain else "integrated gradients"
    return TokenAttribution(
        method, "logit of “x”", value, baseline, gap, 32, scores, scores.abs(), TOKENS, (len(TOKENS),)
    )  # type: ignore[arg-type]


def by_heads(draw: random.Random) -> HeadAttribution:
    sources = tuple(torch.tensor([[size(draw) for _ in TOKENS] for _ in range(3)]).double() for _ in range(2))
    calls, scores = (CallId(None, 0), CallId(None, 1)), tuple(own.sum(1) for own in sources)
    return HeadAttribution("logit of “x”", 3.0, calls, scores, sources, (TOKENS, TOKENS))


def size(draw: random.Random) -> float:
    return draw.choice((1.0, 0.1, 0.001)) * draw.uniform(-1, 1) - draw.choice((0, 0, 1))


def test_what_is_said_of_random_splits_holds() -> None:
    draw, spoke = random.Random(27), dict.fromkeys((each.name for each in TEMPLATES), 0)
    made: Sequence = (direct, by_tokens, by_heads)
    for n in range(120):
        found, by = made[n % 3](draw), draw.choice(("token", "word"))
        by = "token" if isinstance(found, HeadAttribution) else by
        for name, count in hold(as_asked(found, by).findings(), (found, by), TEMPLATES).items():
            spoke[name] += count
    assert all(spoke.values()), spoke


def test_an_embedding_is_among_what_is_counted() -> None:
    """ "Of all heads and layers, token embedding brought most": it is neither."""
    writers = (Writer("token"), Writer("attention", 0, 1, 0), Writer("attention", 1, 0, 0), Writer("feed-forward", 1))
    vectors = torch.tensor([[3.0], [2.0], [-1.0], [0.5]], dtype=torch.float64)
    parts = SideParts(writers, vectors, vectors.sum(0), (2,))
    found = Attribution("logit of “x” at “run”", 4.5, 1e-7, parts, {None: TOKENS})
    said = found.findings()
    assert said[1].startswith("Of all 4 parts (embeddings, heads and feed-forward layers), token embedding (+3.00)")
    assert said[2] == "Of the 2 heads, layer 0, head 1 (+2.00) brought most; layer 1, head 0 (−1.00) took most away."
    hold(said, (found, "token"), TEMPLATES)
