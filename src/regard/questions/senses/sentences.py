"""Say in sentences what the senses of a word are, which words of the context tell them, and what cutting those did."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.corpus.asking.clusters import NOT_TOLD_APART, SEPARATION, SILHOUETTE, SMALLEST, Clusters
from regard.explain.wording import capital, listed, number
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.questions.senses.answer import ContextWord, Sense, Senses

FEW = 3  # words that a sentence names as those that did most
CUT = (
    "To cut a word from an occurrence: the occurrence may not attend to it, in any layer or head, and is embedded "
    "again; beside it the same is done with another word of the text, drawn at random."
)


def how_found(found: "Senses") -> str:
    """Say how it was decided how many senses there are, and in which layer."""
    if found.learned is not None:
        rate = found.learned.accuracy
        return (
            f"learned from labelled sentences, layer {found.layer}; of those put aside {rate.micro:.0%} are right "
            f"(mean over words {rate.macro:.0%}, most frequent label {rate.most_frequent:.0%})"
        )
    if tried := found.silhouettes:
        apart = found.clusters.separations
        each = ", ".join(f"{k}: {number(value)} and {number(apart[k])}" for k, value in tried.items())
        return (
            f"layer {found.layer}; mean silhouette and separation by number of senses: {each}; below {SILHOUETTE} or "
            f"{SEPARATION} not told apart"
        )
    return f"layer {found.layer}"


def sense_name(found: "Senses", sense: "Sense") -> str:
    """Return what a sense is called: its label, or "sense 1" where it has a number alone; or that there is none."""
    return f"sense {sense.name}" if found.learned is None and found.told_apart else sense.name


def senses_title(found: "Senses") -> str:
    """Head what was found: the word, how often it occurs, and how many senses were told apart."""
    rows, count = len(found.found), len(found.senses)
    senses = f"{count} sense{'s' if count != 1 else ''}" if found.told_apart else f"whose senses {NOT_TOLD_APART}"
    return f"{quoted(found.word)}: {rows:,} occurrence{'s' if rows != 1 else ''}, {senses}"


def senses_not_told_apart(word: str, occurrences: int, clusters: Clusters) -> str:
    """Say that a word's senses could not be told apart, and by how much they fall short of it."""
    said = f"The senses of {quoted(word)} {NOT_TOLD_APART}: "
    if not clusters.silhouettes:
        return (
            f"{said}no number of senses gives each of them two of the {occurrences:,} occurrence"
            f"{'s' if occurrences != 1 else ''} and {SMALLEST:.0%} of all."
        )
    best = max(clusters.silhouettes, key=lambda k: clusters.silhouettes[k])
    tried = listed([str(k) for k in clusters.silhouettes])
    return f"{said}of the numbers tried ({tried}) {best} senses lie apart most, with a {_measured(clusters, best)}."


def senses_not_supported(k: int | None, clusters: Clusters) -> list[str]:
    """Warn if so many senses were asked for that the embeddings do not separate them; else nothing."""
    if k is None or clusters.separates(k):
        return []
    return [
        f"You asked for {k} senses, which have a {_measured(clusters, k)}: the embeddings do not show that these "
        "groups are senses."
    ]


def _measured(clusters: Clusters, k: int) -> str:
    """Name both measures of k senses, with as many decimals as show which is below its threshold."""
    both = [(clusters.silhouettes[k], SILHOUETTE), (clusters.separations[k], SEPARATION)]
    one, other = (
        next(shown for n in range(2, 18) if (float(shown := f"{value:z.{n}f}") < needed) == (value < needed))
        for value, needed in both
    )
    return f"mean silhouette of {one} ({SILHOUETTE} is needed) and a mean separation of {other} ({SEPARATION})"


def of_senses(found: "Senses") -> list[str]:
    """Say of every sense how large it is and what stands near it; then, of all, how much cutting that changed."""
    if not found.told_apart:
        return [senses_not_told_apart(found.word, len(found.found), found.clusters)]
    sentences = senses_not_supported(found.k, found.clusters)
    sentences += [f"{_titled(found, sense)}: {_size(found, sense)}{_told_by(sense)}." for sense in found.senses]
    done = [(sense, word) for sense in found.senses for word in sense.words if word.checked]
    if done:
        sentences.append(_all_cut(found, done))
    elif any(sense.words for sense in found.senses):
        sentences.append("None of these words was cut: whether they give a sense was not checked.")
    return sentences


def ablation_sentence(sense: "Sense") -> str:
    """Say what cutting each of a sense's words changed, beside words drawn at random; empty where none was cut."""
    done = [word for word in sense.words if word.checked]
    if not done:
        return ""
    shares: dict[str, list[ContextWord]] = {}
    for word in sorted(done, key=lambda word: -(word.changed or 0.0)):
        shares.setdefault(f"{word.changed or 0.0:.0%}", []).append(word)
    told = [f"{listed([quoted(word.word) for word in words])} {share}" for share, words in shares.items()]
    random, counts = [word.random_changed or 0.0 for word in done], [word.checked for word in done]
    return (
        f"Cut from {_range(f'{min(counts)}', f'{max(counts)}')} occurrences, a word turns this share of them to "
        f"another sense: {'; '.join(told)}; random words {_range(f'{min(random):.0%}', f'{max(random):.0%}')}."
    )


def _titled(found: "Senses", sense: "Sense") -> str:
    return capital(sense_name(found, sense)) if found.learned is None else quoted(sense.name)


def _size(found: "Senses", sense: "Sense") -> str:
    return f"{sense.occurrences:,} of {len(found.found):,} occurrences ({sense.share:.0%})"


def _told_by(sense: "Sense") -> str:
    """Name the words that stand near a sense more often than near the others."""
    return f"; more often near it: {listed([quoted(word.word) for word in sense.words])}" if sense.words else ""


def _all_cut(found: "Senses", done: "Sequence[tuple[Sense, ContextWord]]") -> str:
    """How many of the words turn more occurrences to another sense than a random word does, and which most."""
    more = [(sense, word) for sense, word in done if (word.changed or 0.0) > (word.random_changed or 0.0)]
    more.sort(key=lambda each: (each[1].random_changed or 0.0) - (each[1].changed or 0.0))
    words = (
        f"{len(done)} such word{'s' if len(done) > 1 else ''}, cut one at a time (the occurrence may not attend to it)"
    )
    if not more:
        return (
            f"Of {words}, none turns more occurrences to another sense than a random word does: a "
            "sense does not hang on one of them alone."
        )
    told = [
        f"{quoted(word.word)} ({sense_name(found, sense)}: {word.changed:.0%}, random {word.random_changed:.0%})"
        for sense, word in more[:FEW]
    ]
    which = ", most of all " if len(more) > FEW else ": "
    return (
        f"Of {words}, {len(more)} turn{'s' if len(more) == 1 else ''} more occurrences to another "
        f"sense than a random word does{which}{listed(told)}."
    )


def _range(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"


def exactness_of_senses(found: "Senses") -> list[str]:
    """Say what embedded the word, how its senses were found, and what an occurrence is."""
    chance = "In a test 9 of 47 words with one sense were divided as well: read the examples."
    return [
        f"Embedded with {found.found.tables.manifest.model.name}; {how_found(found)}.",
        "Each occurrence is one vector, the mean of the word's tokens, scaled to length 1; its sense is the "
        "nearest centroid by cosine.",
        *[chance] * (found.told_apart and found.learned is None and found.k is None),
    ]
