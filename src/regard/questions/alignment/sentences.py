"""State in a few sentences which words of a text a translation's words come from, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.explain.texts.summary import Summary
from regard.explain.weights.alignment import Aligned, Alignment, both_views
from regard.explain.weights.attended import Attended
from regard.explain.wording import capital, listed, named, number, quoted
from regard.text.quoting import some_of
from regard.text.tokens import Token
from regard.text.word_pieces import spelling, wordlike, words

SHARP = 0.3  # a weight from which on a source token is said to be where a target token comes from, and a link is clear
CLEAR, SOME = 0.5, 0.2  # agreement of two views of an alignment, at most 1
TEXTS = 2  # texts that are spoken of
SENTENCES = 2  # for each of several texts
Sides = tuple[Sequence[Token], Sequence[Token]]  # the tokens of a text and of its target
PARTED = 2  # words of several texts that become different words, of which it is said


@dataclass(frozen=True)
class Link:
    """A target token and the source token that it comes from most, by the row that writes it."""

    target: int
    target_text: str
    source: int
    source_text: str
    weight: float


@dataclass(frozen=True)
class Parted:
    """A word that stands once in each of two texts and becomes different words: of each text, by the largest weight.

    word: as the first text has it. became: of each text its number, the target token and the weight that its row gives
    the word.
    """

    word: str
    became: list[tuple[int, int, float]]


def alignment_findings(summary: Summary) -> list[str]:
    """Compose the sentences about each text and its target; of several texts the first ones, shortly.

    summary: of an encoder-decoder's texts.
    """
    assert summary.target is not None
    alignments = summary.target.alignments
    sentences = _parted(summary)
    for each in alignments[:TEXTS]:
        sides = source, target = summary.tokens[each.text], summary.target.summary.tokens[each.text]
        found = links_of_alignment(each, target)
        where = f"in text {summary.labels[each.text]} " if len(alignments) > 1 else ""
        said = [
            _clearest(found, each, sides, where),
            _word_order_of_target(found, sides, where),
            _unsure(each, target, where),
        ]
        said += [_source_words_left_out(found, each, source, where), _agree(each)]
        some = [capital(sentence) for sentence in said if sentence]
        sentences += some if len(alignments) == 1 else some[:SENTENCES]
    left = len(alignments) - TEXTS
    return [*sentences, *([f"{left} more texts have tables of their own."] if left > 0 else [])]


def links_of_alignment(alignment: Alignment, target: Sequence[Token]) -> list[Link]:
    """The source token that each target token comes from most; special tokens, and rows with nothing else, aside."""
    return [
        Link(each.token, each.text, row.top[0].token, row.top[0].text, row.top[0].weight)
        for each, row in _written(alignment)
        if not target[each.token].special
    ]


def _written(alignment: Alignment) -> list[tuple[Aligned, Attended]]:
    """The target tokens with the rows that write them; rows that give no source token anything aside."""
    return [(each, each.written) for each in alignment.tokens if each.written is not None and each.written.top]


def parted(summary: Summary) -> list[Parted]:
    """Find the words of the first two texts that become different words, the clearest first.

    Of the rows that write a target's words the one that gives the word most has to give it a clear weight, and nothing
    else more, special tokens and sinks aside.
    """
    assert summary.target is not None
    few = summary.target.alignments[:TEXTS]
    became = [_became(each, summary) for each in few]
    found: list[tuple[float, Parted]] = []
    for name in became[0] if len(few) > 1 else ():
        if not all(name in each for each in became):
            continue
        ways = [(each.text, *own[name][:2]) for each, own in zip(few, became, strict=True)]
        if len({_target_word_spelled(summary, text, token) for text, token, _ in ways}) > 1:
            found.append((min(weight for *_, weight in ways), Parted(became[0][name][2], ways)))
    return [each for _, each in sorted(found, key=lambda pair: -pair[0])]


def _became(alignment: Alignment, summary: Summary) -> dict[str, tuple[int, float, str]]:
    """Of each word that stands once in a text: the target token that gives it most, how much, and how it is spelled."""
    assert summary.target is not None
    source, target = summary.tokens[alignment.text], summary.target.summary.tokens[alignment.text]
    rows = alignment.weights[alignment.layers.index(alignment.written_layer)]
    names = [spelling(source, word).casefold() for word in words(source)]
    found = {}
    for name, word in zip(names, words(source), strict=True):
        cells = [
            (rows[n - 1][j], -n)
            for n, token in enumerate(target)
            if n > 0 and not token.special and wordlike(token.characters)
            for j in word
        ]
        if not cells or not wordlike(name) or source[word[0]].special or names.count(name) > 1:
            continue
        weight, n = max(cells)
        row = alignment.tokens[-n].written
        if weight >= SHARP and row is not None and row.top and row.top[0].token in word:
            found[name] = (-n, weight, spelling(source, word))
    return found


def _target_word_spelled(summary: Summary, text: int, token: int) -> str:
    """The word of a target that a token is of."""
    assert summary.target is not None
    target = summary.target.summary.tokens[text]
    return spelling(target, next(word for word in words(target) if token in word)).casefold()


def _parted(summary: Summary) -> list[str]:
    """What becomes of a word that several texts have, where that differs."""
    assert summary.target is not None
    says = []
    for each in parted(summary)[:PARTED]:
        ways = [
            f"{named(summary.target.summary.tokens[text], token)} in text {summary.labels[text]} ({number(weight)})"
            for text, token, weight in each.became
        ]
        says.append(f"{quoted(each.word)} becomes {listed(ways)}")
    return [f"{'; '.join(says)}: of each target's words the one that looks at it most."] if says else []


def told_first(summary: Summary, alignment: Alignment, count: int) -> list[tuple[Aligned, Attended]]:
    """Choose the target tokens that a table has room for, in the target's order, each with the row that writes it.

    Those that words of several texts become, then words by the largest weight that each gives, then what is no word.
    """
    assert summary.target is not None
    target = summary.target.summary.tokens[alignment.text]
    telling = {token for each in parted(summary) for text, token, _ in each.became if text == alignment.text}

    def order(told: tuple[Aligned, Attended]) -> tuple[bool, bool, float]:
        each, row = told
        no_word = target[each.token].special or not wordlike(each.text)
        return each.token not in telling, no_word, -row.top[0].weight

    return sorted(sorted(_written(alignment), key=order)[:count], key=lambda told: told[0].token)


def _clearest(found: Sequence[Link], alignment: Alignment, sides: Sides, where: str) -> str:
    """The links with the largest weights between words."""
    best = sorted((link for link in found if wordlike(link.target_text)), key=lambda link: -link.weight)
    sharp = _one_a_word([link for link in best if link.weight >= SHARP], sides[1])[:3]
    layer = f"cross-attention of layer {alignment.written_layer}"
    layer += "" if alignment.head is None else f", head {alignment.head}"
    if not best:
        return ""
    if not sharp:
        beside = (
            ", special tokens and sinks aside"
            if any(row.apart >= SHARP for row in _rows_of_alignment_links(alignment, best))
            else ""
        )
        return f"{where}no target word has a clear source: none looks at one with {SHARP} or more{beside} ({layer})."
    source, target = sides
    says = [f"{named(target, each.target)} comes {_source_of_alignment_link(each, source)}" for each in sharp]
    beside = ", special tokens and sinks aside" if any(_outdone(alignment, link, source) for link in sharp) else ""
    return f"{where}{listed(says)}: by the weights of the {layer}, as each is written{beside}."


def _rows_of_alignment_links(alignment: Alignment, found: Sequence[Link]) -> list[Attended]:
    """The rows that write the target tokens of some links."""
    every = {each.token: row for each, row in _written(alignment)}
    return [every[link.target] for link in found]


def _outdone(alignment: Alignment, link: Link, source: Sequence[Token]) -> bool:
    """Whether the row of a link gives a special token or a sink more."""
    (row,) = _rows_of_alignment_links(alignment, [link])
    special = [weight for weight, token in zip(row.weights or (), source, strict=False) if token.special]
    return max([*special, *(share.weight for share in row.sinks)], default=0.0) > link.weight


def _one_a_word(found: Sequence[Link], target: Sequence[Token]) -> list[Link]:
    """The first of the links of each target word."""
    place = {n: number for number, word in enumerate(words(target)) for n in word}
    first: dict[int, Link] = {}
    for link in found:
        first.setdefault(place[link.target], link)
    return list(first.values())


def _word_order_of_target(found: Sequence[Link], sides: Sides, where: str) -> str:
    """Whether the target's words keep the order of the source's, of links that are sharp."""
    clear = [link for link in found if link.weight >= SHARP]
    source, target = sides
    sharp = [link for link in clear if wordlike(link.target_text) and wordlike(link.source_text)]
    if len(sharp) < 3:
        return ""
    crossed = _crossing_alignment_links(sharp)
    if not crossed:
        beside = _crossing_alignment_links(clear)
        says = f"{where}the order of words is kept: of {len(sharp)} links of {SHARP} or more none crosses another"
        if not beside:
            return f"{says}."
        a, b = _largest_crossing_links(beside)
        return f"{says}; of those with punctuation {_link(b, sides)} crosses {_link(a, sides)}."
    a, b = _largest_crossing_links(crossed)
    return (
        f"{where}the order changes: {named(target, a.target)} stands before {named(target, b.target)}, but comes from "
        f"{named(source, a.source)}, which stands after {named(source, b.source)}."
    )


def _crossing_alignment_links(found: Sequence[Link]) -> list[tuple[Link, Link]]:
    """The pairs of links of which the one that stands before comes from what stands after."""
    return [(a, b) for n, a in enumerate(found) for b in found[n + 1 :] if a.source > b.source]


def _largest_crossing_links(pairs: Sequence[tuple[Link, Link]]) -> tuple[Link, Link]:
    """The pair whose smaller weight is largest."""
    return max(pairs, key=lambda pair: min(pair[0].weight, pair[1].weight))


def _link(link: Link, sides: Sides) -> str:
    """A link in a sentence."""
    source, target = sides
    return f"{named(target, link.target)} {_source_of_alignment_link(link, source)}"


def _source_of_alignment_link(link: Link, source: Sequence[Token]) -> str:
    return f"from {named(source, link.source)} ({number(link.weight)})"


def _unsure(alignment: Alignment, target: Sequence[Token], where: str) -> str:
    """The target word whose largest weight is smallest."""
    rows = [each for each in _written(alignment) if not target[each[0].token].special and wordlike(each[0].text)]
    if len(rows) < 2:
        return ""
    least, row = min(rows, key=lambda each: each[1].top[0].weight)
    looks = [f"{quoted(share.text)} ({number(share.weight)})" for share in row.top[:2]]
    beside = ", and more than half goes to special tokens or sinks" if row.apart > 0.5 else ""
    return f"{where}least clear of the words is {named(target, least.token)}: it looks at {listed(looks)}{beside}."


def _source_words_left_out(found: Sequence[Link], alignment: Alignment, source: Sequence[Token], where: str) -> str:
    """Source words that no target token comes from most; sinks are no such words."""
    sinks = {sink.token for sink in alignment.sinks}
    every = [word for word in words(source) if wordlike(spelling(source, word)) and not source[word[0]].special]
    every = [word for word in every if not sinks & set(word)]
    left = _source_words_not_taken(every, found)
    if left:
        named_left = some_of([quoted(spelling(source, word)) for word in left], 4)
        return f"{where}no target token looks most at {named_left}."
    if not every:
        return ""
    first = [link for link in found if not _outdone(alignment, link, source)]
    beside = ", special tokens and sinks aside" if sinks or _source_words_not_taken(every, first) else ""
    return f"{where}every word of the text is what some target token looks at most{beside}."


def _source_words_not_taken(every: Sequence[range], found: Sequence[Link]) -> list[range]:
    """The words that no link comes from."""
    taken = {link.source for link in found}
    return [word for word in every if not taken & set(word)]


def _agree(alignment: Alignment) -> str:
    """How far the two views of the alignment agree."""
    if alignment.written_layer == alignment.read_layer:
        return ""
    value = alignment.agreement
    well = "well" if value >= CLEAR else "somewhat" if value >= SOME else "hardly"
    return f"{both_views(alignment)} agree {well} ({number(value)} of at most 1)."
