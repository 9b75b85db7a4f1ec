"""Look up a word in a store; what is no word of it, as a run of words that stand together: "don't", "the bank", 银行.

A store's words are those of `word_spans`: "don't" has two, and each character of scripts without blanks is one. Of a
run the rarest word that the store keeps is looked up, and the text around it compared.
"""

import difflib
from bisect import bisect_left
from itertools import pairwise

import numpy as np

from regard.corpus.asking.occurrences import BLANKS, COLUMNS, FIELDS, DocumentPart, Occurrences, in_store_order
from regard.corpus.settings import normal
from regard.corpus.store_tables import StoreTables
from regard.errors import RegardError
from regard.text.words import ALIKE, word_spans


def look_up(tables: StoreTables, word: str, by: str = "word") -> Occurrences:
    """Find every occurrence of a word, of a lemma, or of a run of words, in the order of the store."""
    if by not in FIELDS:
        raise RegardError(f"by: given {by!r}, needs {' or '.join(FIELDS)}")
    check_keeps_words(tables)
    wanted = normal(word.strip())
    if not wanted:
        raise RegardError("word is empty: give a word of the embedding index")
    found = _by(tables, by, wanted)
    if len(found):
        return found
    if by == "lemma":
        raise _missing(tables, word, by, _instead(tables, by, wanted))
    spans = list(word_spans(wanted))
    if not spans:
        raise _missing(tables, word, by, ": it has no letter or digit. Each word of an index has one")
    words = [normal(wanted[start:end]) for start, end in spans]
    counts = {text: n for text in dict.fromkeys(words) if (n := len(tables.rows_with("word", text, ())))}
    if counts and words != [wanted]:
        anchor = min(counts, key=lambda each: (counts[each], each))
        found = _whole_runs(_by(tables, by, anchor), wanted, spans, words.index(anchor))
    if not len(found):
        raise _missing(tables, word, by, _of_run(tables, wanted, words, counts))
    return found


def check_keeps_words(tables: StoreTables) -> None:
    """Refuse a store of texts where a word is asked for."""
    if tables.manifest.unit == "texts":
        raise RegardError(
            f"embedding index {str(tables.path)!r} has texts, not words: search it for the texts nearest to yours "
            "(regard find TEXT; Store.find_texts)"
        )


def _by(tables: StoreTables, by: str, wanted: str) -> Occurrences:
    return in_store_order(tables, tables.rows_with(by, wanted, COLUMNS))


def _whole_runs(anchors: Occurrences, wanted: str, spans: list[tuple[int, int]], at: int) -> Occurrences:
    """The runs among occurrences of one of their words. wanted: the run, whose words are at spans. at: which word."""
    between = [_plain(wanted[a:b]) for (_, a), (b, _) in pairwise(spans)]
    before, behind = _plain(wanted[: spans[0][0]]), _plain(wanted[spans[-1][1] :])
    words = tuple(normal(wanted[start:end]) for start, end in spans)
    texts, places = anchors.texts(), {}
    kept, edges, forms = [], [], []
    for n, key in enumerate(zip(anchors.shard, anchors.part.tolist(), strict=True)):
        part = texts[key]
        if key not in places:
            places[key] = list(word_spans(part.text))
        there = places[key]
        first = bisect_left(there, (int(anchors.start[n]) - part.start, 0)) - at
        run = there[first : first + len(words)] if first >= 0 else []
        if len(run) == len(words) and _stand_alike(part, run, words, between, before, behind):
            kept.append(n)
            edges.append((run[0][0] + part.start, run[-1][1] + part.start))
            forms.append(BLANKS.sub(" ", part.text[run[0][0] : run[-1][1]]))
    found = anchors.take(kept)
    if len(words) == 1:  # a word, asked for with the signs beside it
        return found
    start, end = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return Occurrences(
        found.tables, found.shard, found.row, found.part, start, end, (wanted,) * len(found), tuple(forms),
        found.document, words,
    )  # fmt: skip


def _stand_alike(
    part: DocumentPart, run: list[tuple[int, int]], words: tuple[str, ...], between: list[str], before: str, behind: str
) -> bool:
    """Whether words of a text that stand side by side are those asked for, with the same between and beside them."""
    text = part.text
    return (
        all(normal(text[a:b]) == word for (a, b), word in zip(run, words, strict=True))
        and [_plain(text[a:b]) for (_, a), (b, _) in pairwise(run)] == between
        and _plain(text[max(0, run[0][0] - len(before)) : run[0][0]]) == before
        and _plain(text[run[-1][1] : run[-1][1] + len(behind)]) == behind
    )


def _plain(text: str) -> str:
    """What stands between words, as it is compared: any blanks are one, and signs that mean the same are the same."""
    return BLANKS.sub(" ", normal(text).translate(ALIKE))


def _missing(tables: StoreTables, word: str, by: str, why: str) -> RegardError:
    return RegardError(f"{by} {word!r} does not occur in embedding index {str(tables.path)!r}{why}")


def _of_run(tables: StoreTables, wanted: str, words: list[str], counts: dict[str, int]) -> str:
    """Why a run does not occur: which of its words the store does not keep, or that they do not stand so together."""
    instead = _instead(tables, "word", wanted)
    if words == [wanted]:
        return instead
    missing = [word for word in dict.fromkeys(words) if word not in counts]
    listed = ", ".join(map(repr, words))
    if not missing:
        return f": its words {listed} do, but not together as given" if len(words) > 1 else ": not with these signs"
    return instead or f": the embedding index has single words, here {listed}, and {missing[0]!r} does not occur"


def _instead(tables: StoreTables, by: str, wanted: str) -> str:
    """Say why a store lacks a word (not finished, some words, tokens, no lemmas), or which words are like it."""
    settings = tables.manifest.settings
    if by == "lemma" and not settings.get("lemma"):
        return ": it was made without --lemma and has no lemmas"
    if not tables.manifest.complete:
        return f". {tables.notes[0]}"
    if settings.get("where"):
        field, values = settings["where"]
        return f": it was made with {field} {' and '.join(values)} only"
    if tables.manifest.unit == "tokens":
        return ": it has tokens, not words: give a token as the model's tokenizer writes it"
    known = [each for each in tables.distinct(by) if each and abs(len(each) - len(wanted)) < 3]
    near = difflib.get_close_matches(wanted, known, n=3) if " " not in wanted else []
    return f": the nearest are {', '.join(map(repr, near))}" if near else ""
