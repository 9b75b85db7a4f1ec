"""Define the result of `regard translate`: the source words that each target word attends to."""

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from regard.display.panels import Cell, Column, Panel, Shares, Table
from regard.display.sentences import Template, sentences
from regard.errors import RegardError
from regard.explain.frames import Row
from regard.explain.texts.summary import Summary
from regard.explain.weights.alignment import Aligned, Alignment
from regard.explain.weights.attended import Attended
from regard.explain.wording import called, count_of_tokens, listed, mean_or_head, named, number, quoted
from regard.models.source import TracedTexts
from regard.questions.see.answer import Seen, seen
from regard.questions.see.panels import alignment_table
from regard.text.quoting import short as shortened
from regard.text.quoting import some_of
from regard.text.words import spelling, wordlike, words

CLEAR = 0.3  # smallest weight of a clear link
TEXTS = 2  # at most this many in sentences and in the first table
DIFFERENT: list[list[Template]] = [
    [("{word} becomes {first} in text {one} (weight {weight}) and {second} in text {two} ({second_weight}).", None)]
]
TABLE: list[list[Template]] = [
    [("{where}{aside}{links}.", None)],
    [("{where}the word order changes: the translation has {a} before {b}, the source has {b_source} before "
      "{a_source}.", None),
     ("{where}the words keep their order: none of the {clear} links between words with weight {least} or more "
      "crosses another.",
      lambda n: n["clear"] > 2)],
    [("{where}no word of the translation attends most to {left}.", None)],
]  # fmt: skip
MOST_ROWS = 14  # maximum rows of the first screen's table, for all texts together
LETTERS = {1: 300, 2: 80}  # characters of a text or target on the first screen, by number of texts
MOST_OTHERS = 2  # source tokens per row in addition to the first


@dataclass(frozen=True)
class AlignmentLink:
    """A link from a target token to the source token that it attends to most, without special tokens and sinks.

    translation, word: the words of the target and source token. outdone: whether special tokens or a sink receive more.
    """

    target: int
    source: int
    weight: float
    translation: str
    word: str
    outdone: bool


def alignment_findings(summary: Summary) -> list[str]:
    """Return sentences on words that are translated differently, the clearest links, and changes of word order."""
    assert summary.target is not None
    alignments, targets = summary.target.alignments[:TEXTS], summary.target.summary.tokens
    different = translated_differently(summary)[:1]
    result: list[str] = []
    for first, second in different:
        a, b = (alignment.text for alignment in alignments)
        numbers = {"word": quoted(first.word), "weight": first.weight, "second_weight": second.weight}
        numbers |= {"first": named(targets[a], first.target), "one": summary.labels[a]}
        numbers |= {"second": named(targets[b], second.target), "two": summary.labels[b]}
        result += sentences(DIFFERENT, numbers)
    for n, alignment in enumerate(alignments):
        numbers = _numbers_of_text(summary, alignment, [links[n] for links in different])
        result += sentences(TABLE, numbers, most=1 if len(alignments) > 1 else 3)
    return result


def links_of_alignment(summary: Summary, alignment: Alignment) -> list[AlignmentLink]:
    """Return the link of each target token to the source token that it attends to most as it is written."""
    assert summary.target is not None
    source, target = summary.tokens[alignment.text], summary.target.summary.tokens[alignment.text]
    sources, targets = ({n: spelling(side, word) for word in words(side) for n in word} for side in (source, target))
    links = []
    for token in alignment.tokens:
        if token.written is None or not token.written.top or target[token.token].special:
            continue
        row, top = token.written, token.written.top[0]
        outdone = max([row.special, *(sink.weight for sink in row.sinks)]) > top.weight
        if wordlike(targets[token.token]) and wordlike(sources[top.token]):
            names = targets[token.token], sources[top.token]
            links.append(AlignmentLink(token.token, top.token, top.weight, *names, outdone))
    return links


def translated_differently(summary: Summary) -> list[tuple[AlignmentLink, AlignmentLink]]:
    """Return pairs of links for words that two texts translate differently, the clearest pairs first."""
    assert summary.target is not None
    by_word: list[dict[str, AlignmentLink]] = []
    for alignment in summary.target.alignments[:TEXTS]:
        source = summary.tokens[alignment.text]
        names = [spelling(source, word).casefold() for word in words(source)]
        links = sorted(links_of_alignment(summary, alignment), key=lambda link: link.weight)
        clear = [link for link in links if link.weight >= CLEAR]
        by_word.append({link.word.casefold(): link for link in clear if names.count(link.word.casefold()) == 1})
    pairs = [(link, by_word[-1][name]) for name, link in by_word[0].items() if name in by_word[-1]]
    pairs = [pair for pair in pairs if pair[0].translation.casefold() != pair[1].translation.casefold()]
    return sorted(pairs, key=lambda pair: -min(link.weight for link in pair))


def _numbers_of_text(summary: Summary, alignment: Alignment, already: list[AlignmentLink]) -> dict[str, Any]:
    """Return the numbers of the sentences on one text's alignment. already: links named in other sentences."""
    assert summary.target is not None
    source, target = summary.tokens[alignment.text], summary.target.summary.tokens[alignment.text]
    links = sorted(links_of_alignment(summary, alignment), key=lambda link: -link.weight)
    clear, several = [link for link in links if link.weight >= CLEAR], len(summary.target.alignments) > 1
    chosen: list[AlignmentLink] = []
    for link in clear:
        if all(link.word != other.word and link.translation != other.translation for other in [*already, *chosen]):
            chosen.append(link)
    chosen = chosen[:2]
    if any(link.outdone for link in chosen):
        chosen = chosen[: 2 - several]  # leave room for "apart from special tokens"
    outdone = any(link.outdone for link in chosen or links)
    numbers: dict[str, Any] = {"where": f"in text {summary.labels[alignment.text]}, " if several else "",
                               "clear": len(clear), "least": CLEAR}  # fmt: skip
    numbers["aside"] = f"apart from special tokens{' and attention sinks' * bool(alignment.sinks)}, " if outdone else ""
    if chosen:
        first, *others = [(named(target, link.target), quoted(source[link.source].text), number(link.weight))
                          for link in chosen]  # fmt: skip
        texts = [f"for {a} to {b} ({weight})" for a, b, weight in others]
        numbers["links"] = listed(["writing {}, the model attends most to {} (weight {})".format(*first), *texts])
    elif links and not clear:
        numbers["links"] = f"no translated word attends most to a source word with weight {number(CLEAR)} or more"
    ordered = combinations(sorted(clear, key=lambda link: link.target), 2)
    different = ((a, b) for a, b in ordered if a.word != b.word and a.translation != b.translation)
    crossed = [(a, b) for a, b in different if a.source > b.source]
    if crossed:
        a, b = max(crossed, key=lambda pair: min(link.weight for link in pair))
        numbers |= {"a": named(target, a.target), "a_source": quoted(source[a.source].text)}
        numbers |= {"b": named(target, b.target), "b_source": quoted(source[b.source].text)}
    aligned = {link.word.casefold() for link in links}
    names = [spelling(source, word) for word in words(source)
             if not source[word[0]].special and not {*word} & {sink.token for sink in alignment.sinks}]  # fmt: skip
    unaligned = [quoted(name) for name in dict.fromkeys(names) if wordlike(name) and name.casefold() not in aligned]
    return numbers | ({"left": some_of(unaligned, 3)} if unaligned and links else {})


@dataclass(frozen=True, eq=False, repr=False)
class Translation(Seen):
    """The result of `regard translate`: a `Seen` of texts and targets with their alignment."""

    def findings(self) -> list[str]:
        """Return sentences on the source words that target words attend to."""
        return alignment_findings(self.summary)

    def rows(self) -> list[Row]:
        """Return one row per target token and source token that it attends to, as it is written and as it is read.

        Rows follow the target's order. Each target token's largest weights come first.
        """
        assert self.summary.target is not None
        rows: list[Row] = []
        for alignment in self.summary.target.alignments:
            for aligned in alignment.tokens:
                token: Row = {"text": self.summary.labels[alignment.text], "token": aligned.token}
                token |= {"target": aligned.text}
                for name, row in (("written", aligned.written), ("read", aligned.read)):
                    head = token | {"as_it_is": name, "layer": row.layer if row else None}
                    rows += [head | {f"from_{key}": value for key, value in asdict(share).items()}
                             for share in (row.top if row else ())]  # fmt: skip
        return rows

    def panels(self) -> list[Panel]:
        """Return the tables of texts with targets, of the clearest alignments, and of every target token."""
        summary, target = self.summary, self.summary.target
        assert target is not None
        views = [alignment_table(alignment, summary, screen=False) for alignment in target.alignments]
        return [_texts_table(summary, short=True), _texts_table(summary, short=False), _sources_table(summary), *views]

    def opening(self) -> dict[str, str | int | None]:
        """Return the view at which the page opens, the alignment, with the layer and head."""
        return {"view": "alignment", "layer": self.layer, "head": self.head}


def translated(reading: TracedTexts, **options: Any) -> Seen:
    """Return the `Translation` of an encoder-decoder's traces. options: layer, head and top, as for `seen`."""
    if not reading.generated:
        raise RegardError(f"translate: {reading.model.name} is not an encoder-decoder: it reads a single text")
    return seen(reading.traces, kind=Translation, names=reading.names, generated=reading.generated, **options)


def _texts_table(summary: Summary, *, short: bool) -> Table:
    """Return a table of each text with its target. short: only the first texts, cut for a screen."""
    assert summary.target is not None
    rows: list[list[Cell]] = list(map(list, zip(summary.texts, summary.target.summary.texts, strict=True)))
    if short:
        limit = LETTERS[min(len(rows), TEXTS)]
        rows = [[shortened(str(text), limit) for text in row] for row in rows[:TEXTS]]
    columns = [Column("text"), Column("target")]
    return Table(name="Texts", title="", columns=columns, rows=rows, screen=short, brief=short)


def _sources_table(summary: Summary) -> Table:
    """Return a table, short enough for a screen, of the source tokens that target tokens attend to when produced."""
    assert summary.target is not None
    items = summary.target.alignments[:TEXTS]
    rows: list[list[Cell]] = []
    hidden, marked = 0, False
    for alignment in items:
        source, shown = summary.tokens[alignment.text], shown_rows(summary, alignment, MOST_ROWS // len(items))
        hidden += sum(bool(token.written and token.written.top) for token in alignment.tokens) - len(shown)
        for aligned, row in shown:
            first, *others = [(called(share.token, source), share.weight) for share in row.top[: 1 + MOST_OTHERS]]
            second = Shares(others, digits=2, one_line=True, mark="*" * (row.apart > 0.5))
            label = [summary.labels[alignment.text]][: len(items) - 1]
            rows.append([*label, aligned.text, *first, second])
            marked |= row.apart > 0.5
    sinks = " and attention sinks" * any(alignment.sinks for alignment in items)
    more = len(summary.target.alignments) - len(items)
    notes = [f"{count_of_tokens(hidden)}{f' and {more} more texts' * (more > 0)} not shown"] if hidden + more else []
    notes += [f"* most attention goes to special tokens{sinks}"] if marked else []
    title = f"Cross-attention as each token is written (layer {items[0].written_layer}, {mean_or_head(items[0].head)})"
    columns = [Column("text"), Column("target"), Column("attends to"), Column("weight", 2, bar=True), Column("and to")]
    return Table(
        name="Cross-attention", title=title, note="; ".join(notes), columns=columns[len(items) == 1 :], rows=rows,
        screen=True, brief=True,
    )  # fmt: skip


def shown_rows(summary: Summary, alignment: Alignment, count: int) -> list[tuple[Aligned, Attended]]:
    """Choose the target tokens to list, with the attention rows that write them, in the target's order.

    Words that two texts translate differently are chosen first, then words by their largest weight, then other tokens.
    """
    assert summary.target is not None
    target = summary.target.summary.tokens[alignment.text]
    different = {links[alignment.text].target for links in translated_differently(summary) if alignment.text < TEXTS}

    def sort_key(pair: tuple[Aligned, Attended]) -> tuple[bool, bool, float]:
        token, row = pair
        no_word = target[token.token].special or not wordlike(token.text)
        return token.token not in different, no_word, -row.top[0].weight

    rows = [(token, token.written) for token in alignment.tokens if token.written is not None and token.written.top]
    return sorted(sorted(rows, key=sort_key)[:count], key=lambda pair: pair[0].token)
