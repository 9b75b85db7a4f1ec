"""Show the alignment of texts and targets in sentences and tables, for `regard see` and `regard translate`."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from regard.display.panels import Cell, Column, Panel, Shares, Table
from regard.explain.texts.summary import Summary, Target
from regard.explain.weights.alignment import Alignment, AlignmentLink, word_links
from regard.explain.weights.attended import Attended
from regard.explain.wording import (
    called,
    capital,
    count_of_tokens,
    listed,
    mean_or_head,
    named,
    number,
    numbered,
    quoted,
)
from regard.text.quoting import display_text, some_of
from regard.text.tokens import Token
from regard.text.words import spelling, wordlike, words

CLEAR = 0.3  # smallest weight of a clear link
TEXTS = 2  # at most this many in sentences and on the first screen
MAX_NAMED = 3  # source words without a link that a sentence names
MAX_ROWS = 14  # of the first screen's tables, for all texts together


def alignment_sentences(summary: Summary, text: int | None = None) -> list[str]:
    """Return sentences on a word that two texts translate differently, the clearest links, and changes of word order.

    If a word is followed, all of them are about its links. text: only on this text. Default: on the first two.
    """
    assert summary.target is not None
    targets = summary.target.summary.tokens
    texts = range(len(summary.texts[:TEXTS])) if text is None else [text]
    links = [_links_of_text(summary, summary.target, n) for n in texts]
    different = _translated_differently(summary, links)
    result: list[str] = []
    if different:
        words_in_texts = [f"{named(tokens, link.target)} in text {label} ({number(link.weight)})"
                          for label, tokens, link in zip(summary.labels, targets, different, strict=False)]  # fmt: skip
        result.append(f"{quoted(different[0].word)} becomes {' and '.join(words_in_texts)}.")
    for n, in_text in zip(texts, links, strict=True):
        result += _sentence_on_links(summary, summary.target, n, in_text, different[n : n + 1])
    if summary.word is None and len(texts) == 1:
        result += _sentences_on_order(summary, summary.target, texts[0], links[0])
    return result


def _links_of_text(summary: Summary, target: Target, text: int) -> list[AlignmentLink]:
    """Return the links of a text's words, or only those of the followed word. The largest weights come first."""
    links = word_links(target.alignments[text], summary.tokens[text], target.summary.tokens[text])
    if summary.word is None:
        return links
    sources, targets = ({n for occurrence in side.occurrences if occurrence.text == text for n in occurrence.tokens}
                        for side in (summary, target.summary))  # fmt: skip
    return [link for link in links if link.target in targets or link.source in sources]


def _translated_differently(summary: Summary, links: Sequence[Sequence[AlignmentLink]]) -> tuple[AlignmentLink, ...]:
    """Return the two clearest links of a word that two texts translate differently. It occurs once in each text."""
    by_word: list[dict[str, AlignmentLink]] = []
    for tokens, in_text in zip(summary.tokens, links, strict=False):
        names = [spelling(tokens, word).casefold() for word in words(tokens)]
        clear = [link for link in reversed(in_text) if link.weight >= CLEAR]  # a word's largest weight is the last
        by_word.append({link.word.casefold(): link for link in clear if names.count(link.word.casefold()) == 1})
    pairs = [(link, by_word[-1][name]) for name, link in by_word[0].items() if name in by_word[-1]]
    pairs = [pair for pair in pairs if pair[0].translation.casefold() != pair[1].translation.casefold()]
    return max(pairs, key=lambda pair: min(link.weight for link in pair), default=())


def _sentence_on_links(
    summary: Summary, target: Target, text: int, links: Sequence[AlignmentLink], already: Sequence[AlignmentLink]
) -> list[str]:
    """Return a sentence on a text's two clearest links, if it has any. already: links named in other sentences."""
    clear = [link for link in links if link.weight >= CLEAR or summary.word is not None]
    chosen = [*already]
    for link in clear:
        if all(link.word != other.word and link.translation != other.translation for other in chosen):
            chosen.append(link)
    chosen = chosen[len(already) :][:2]
    where = f"in text {summary.labels[text]}, " if len(summary.texts) > 1 else ""
    where += _chosen_head(target.alignments[text])
    if any(link.outdone for link in chosen):
        where += f"apart from special tokens{' and attention sinks' * bool(target.alignments[text].sinks)}, "
    source, tokens = summary.tokens[text], target.summary.tokens[text]
    parts = [(numbered(tokens, link.target), f"to {numbered(source, link.source)} ({number(link.weight)})")
             for link in chosen]  # fmt: skip
    if parts:
        second = "".join(f" and, for {written}, {attends}" for written, attends in parts[1:])
        return [capital(f"{where}writing {parts[0][0]}, the model attends most {parts[0][1]}{second}.")]
    if links and not clear:
        weight = f"with weight {number(CLEAR)} or more"
        return [capital(f"{where}no translated word attends most to a source word {weight}.")]
    return []


def _chosen_head(alignment: Alignment) -> str:
    """Return "in layer 3, head 2, " if a layer or head was requested (a requested layer is both layers), else ""."""
    if alignment.head is None and alignment.written_layer != alignment.read_layer:
        return ""
    head = "" if alignment.head is None else f" head {alignment.head},"
    return f"in layer {alignment.written_layer},{head} "


def _sentences_on_order(summary: Summary, target: Target, text: int, links: Sequence[AlignmentLink]) -> list[str]:
    """Return sentences on two words of a text that change their order, and on source words without a link."""
    source, tokens = summary.tokens[text], target.summary.tokens[text]
    result: list[str] = []
    in_order = sorted((link for link in links if link.weight >= CLEAR), key=lambda link: link.target)
    crossed = [(a, b) for a, b in combinations(in_order, 2)
               if a.source > b.source and a.word != b.word and a.translation != b.translation]  # fmt: skip
    if crossed:
        a, b = max(crossed, key=lambda pair: min(link.weight for link in pair))
        changed = f"the translation has {named(tokens, a.target)} before {named(tokens, b.target)}"
        before = f"{quoted(source[b.source].text)} before {quoted(source[a.source].text)}"
        result.append(f"The word order changes: {changed}, while the source has {before}.")
    linked, sinks = {link.word.casefold() for link in links}, {sink.token for sink in target.alignments[text].sinks}
    names = [spelling(source, word) for word in words(source) if not source[word[0]].special and not sinks & {*word}]
    left = [quoted(name) for name in dict.fromkeys(names) if wordlike(name) and name.casefold() not in linked]
    if left and links:
        named_words = some_of(left, MAX_NAMED)
        if 1 < len(left) <= MAX_NAMED:
            named_words = f"{', '.join(left[:-1])} or {left[-1]}"
        result.append(f"No word of the translation attends most to {named_words}.")
    return result


def alignment_tables(summary: Summary) -> list[Table]:
    """Return a table of each text's alignment, and for long targets a table of the clearest links for the first screen.

    They show the source tokens that each target token attends to most, but not for the first, which no row writes.
    """
    assert summary.target is not None
    panels, most = list[Table](), MAX_ROWS // min(len(summary.texts), TEXTS)
    for n, alignment in enumerate(summary.target.alignments):
        label, source = summary.labels[n], summary.tokens[n]
        rows, starred = dict[int, list[Cell]](), set[int]()  # by target token
        for token in alignment.tokens:
            if token.written is not None:
                written = _top_tokens(token.written, source)
                name, weight = written.parts[0] if written.parts else (None, None)
                others = replace(written, parts=written.parts[1:], one_line=True, mark="")
                read = _top_tokens(token.read, source, 2)
                marked = f"{display_text(token.text)} {written.mark}".rstrip()
                rows[token.token] = [marked, name and display_text(name), weight, others, read]
                starred |= {token.token} if written.mark or read.mark else set()
        sinks = [f"{quoted(sink.text)} ({sink.token}) {number(sink.share)}" for sink in alignment.sinks]
        on_sinks = f"Attention sinks with their mean weight: {listed(sinks)}." if sinks else ""
        notes = [_note_on_asterisks(bool(sinks)) * bool(starred), on_sinks]
        in_text = f" in text {label}" if len(summary.texts) > 1 else ""
        where = f"layer {alignment.written_layer}, {mean_or_head(alignment.head)}"
        columns = [*map(Column, ("target", "attends to")), Column("weight", 2, bar=True), Column("and to")]
        columns.append(Column(f"as it is read (layer {alignment.read_layer})", detail=True))
        table = Table(
            name=f"Alignment, text {label}", title=f"Cross-attention{in_text} as each token is written ({where})",
            columns=columns, rows=[*rows.values()], note=" ".join(filter(None, notes)),
            screen=n < TEXTS and len(rows) <= most,
        )  # fmt: skip
        if n < TEXTS and not table.screen:
            links = word_links(alignment, source, summary.target.summary.tokens[n])[:most]
            clearest = sorted(link.target for link in links)
            notes[0] *= not starred.isdisjoint(clearest)
            note = " ".join([f"{count_of_tokens(len(rows) - len(clearest))} not shown.", *filter(None, notes)])
            name, shown = f"Clearest links, text {label}", [rows[token] for token in clearest]
            panels.append(replace(table, name=name, rows=shown, note=note, screen=True, brief=True))
        panels.append(table)
    return panels


def _note_on_asterisks(sinks: bool) -> str:
    return f"*: special tokens{' and sinks' * sinks} receive more than half."


def cross_attention_tables(summary: Summary, target: Target) -> list[Panel]:
    """Return tables of the cross-attention to and from the followed word, layer by layer."""
    other = target.summary
    words = [
        (f"Target tokens that attend to {quoted(occurrence.word)} of text {word.occurrence}", word, other, occurrence)
        for word, occurrence in zip(target.to_words, summary.occurrences, strict=True)
    ]
    words += [
        (f"Attention from {quoted(occurrence.word)} of target {word.occurrence} to the text", word, summary, occurrence)
        for word, occurrence in zip(target.of_words, other.occurrences, strict=True)
    ]
    panels: list[Panel] = []
    for title, word, side, occurrence in words:
        tokens = side.tokens[occurrence.text]
        rows: list[list[Cell]] = [
            [str(read.layer), _top_tokens(word.written[n], tokens) if word.written else None, _top_tokens(read, tokens)]
            for n, read in enumerate(word.read)
        ]
        panels.append(Table(
            name=title, title=f"{title} ({mean_or_head(word.read[0].head)})", rows=rows,
            note=_note_on_asterisks(any(row.sinks for row in word.read)),
            columns=[Column("layer"), Column("as it is written"), Column("as it is read")],
        ))  # fmt: skip
    return panels


def _top_tokens(row: Attended, tokens: Sequence[Token], count: int = 3) -> Shares:
    """Return the tokens with the largest weights of an attention row."""
    return Shares([(called(s.token, tokens), s.weight) for s in row.top[:count]], mark="*" * (row.apart > 0.5))
