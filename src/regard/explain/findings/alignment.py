"""State in a few sentences which words of a text a translation's words come from, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.explain.findings.pieces import named, spelling, wordlike, words
from regard.explain.findings.wording import capital, listed, quoted
from regard.explain.texts.summary import Summary
from regard.explain.weights.alignment import Aligned, Alignment
from regard.text.tokens import Token

SHARP = 0.3  # a weight from which on a source token is said to be where a target token comes from
CLEAR, SOME = 0.5, 0.2  # agreement of two views of an alignment, at most 1
TEXTS = 2  # texts that are spoken of
SENTENCES = 2  # for each of several texts


@dataclass(frozen=True)
class Link:
    """A target token and the source token that it comes from most, by the row that writes it."""

    target: int
    target_text: str
    source: int
    source_text: str
    weight: float


def alignment_findings(summary: Summary) -> list[str]:
    """Compose the sentences about each text and its target; of several texts the first ones, shortly.

    summary: of an encoder-decoder's texts.
    """
    assert summary.target is not None
    alignments = summary.target.alignments
    sentences: list[str] = []
    for each in alignments[:TEXTS]:
        source, target = summary.tokens[each.text], summary.target.summary.tokens[each.text]
        found = links(each, target)
        where = f"in text {summary.labels[each.text]} " if len(alignments) > 1 else ""
        said = [
            _clearest(found, each, (source, target), where),
            _order(found, (source, target), where),
            _unsure(each, target, where),
        ]
        said += [_left(found, source, where), _agree(each)]
        some = [capital(sentence) for sentence in said if sentence]
        sentences += some if len(alignments) == 1 else some[:SENTENCES]
    left = len(alignments) - TEXTS
    return [*sentences, *([f"{left} more texts are shown with --all."] if left > 0 else [])]


def links(alignment: Alignment, target: Sequence[Token]) -> list[Link]:
    """The source token that each target token comes from most; special tokens, and rows with nothing else, aside."""
    return [
        Link(each.token, each.text, each.written.top[0].token, each.written.top[0].text, each.written.top[0].weight)
        for each in alignment.tokens
        if each.written is not None and each.written.top and not target[each.token].special
    ]


def _clearest(
    found: Sequence[Link], alignment: Alignment, sides: tuple[Sequence[Token], Sequence[Token]], where: str
) -> str:
    """The links with the largest weights between words."""
    best = sorted((link for link in found if wordlike(link.target_text)), key=lambda link: -link.weight)
    sharp = _one_a_word([link for link in best if link.weight >= SHARP], sides[1])[:3]
    layer = f"cross-attention of layer {alignment.written_layer}"
    layer += "" if alignment.head is None else f", head {alignment.head}"
    if not best:
        return ""
    if not sharp:
        return f"{where}no target word has a clear source: none looks at one with {SHARP} or more ({layer})."
    source, target = sides
    says = [
        f"{named(target, link.target)} comes from {named(source, link.source)} ({link.weight:.2f})" for link in sharp
    ]
    return f"{where}{listed(says)}: by the weights of the {layer}, as each is written."


def _one_a_word(found: Sequence[Link], target: Sequence[Token]) -> list[Link]:
    """The first of the links of each target word."""
    place = {n: number for number, word in enumerate(words(target)) for n in word}
    first: dict[int, Link] = {}
    for link in found:
        first.setdefault(place[link.target], link)
    return list(first.values())


def _order(found: Sequence[Link], sides: tuple[Sequence[Token], Sequence[Token]], where: str) -> str:
    """Whether the target keeps the order of the source, of links that are sharp."""
    sharp = [link for link in found if link.weight >= SHARP and wordlike(link.target_text)]
    source, target = sides
    sharp = [link for link in sharp if wordlike(link.source_text) and not source[link.source].special]
    if len(sharp) < 3:
        return ""
    crossed = [(a, b) for n, a in enumerate(sharp) for b in sharp[n + 1 :] if a.source > b.source]
    if not crossed:
        return f"{where}the order is kept: no clear link crosses another."
    a, b = max(crossed, key=lambda pair: min(pair[0].weight, pair[1].weight))
    return (
        f"{where}the order changes: {named(target, a.target)} stands before {named(target, b.target)}, but comes from "
        f"{named(source, a.source)}, which stands after {named(source, b.source)}."
    )


def _unsure(alignment: Alignment, target: Sequence[Token], where: str) -> str:
    """The target word whose largest weight is smallest."""
    rows: list[Aligned] = [
        each
        for each in alignment.tokens
        if each.written is not None and each.written.top and not target[each.token].special and wordlike(each.text)
    ]
    if len(rows) < 2:
        return ""
    least = min(rows, key=lambda each: each.written.top[0].weight if each.written else 1.0)
    assert least.written is not None
    looks = [f"{quoted(share.text)} ({share.weight:.2f})" for share in least.written.top[:2]]
    beside = ", and more than half goes to special tokens or sinks" if least.written.apart > 0.5 else ""
    return f"{where}least clear is {named(target, least.token)}: it looks at {listed(looks)}{beside}."


def _left(found: Sequence[Link], source: Sequence[Token], where: str) -> str:
    """Source words that no target token comes from most."""
    taken = {link.source for link in found}
    every = [word for word in words(source) if wordlike(spelling(source, word)) and not source[word[0]].special]
    left = [quoted(spelling(source, word)) for word in every if not taken & set(word)]
    if not left:
        return f"{where}every word of the text is what some target token looks at most." if every else ""
    more = f" and {len(left) - 4} more" if len(left) > 4 else ""
    return f"{where}no target token looks most at {', '.join(left[:4])}{more}."


def _agree(alignment: Alignment) -> str:
    """How far the two views of the alignment agree."""
    value = alignment.agreement
    if alignment.written_layer == alignment.read_layer:
        return ""
    well = "well" if value >= CLEAR else "somewhat" if value >= SOME else "hardly"
    return (
        f"layer {alignment.written_layer}, as tokens are written, and layer {alignment.read_layer}, as they are read, "
        f"agree {well} ({value:.2f} of at most 1)."
    )
