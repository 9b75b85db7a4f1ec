"""State in a few sentences what a summary shows, most telling first: what `regard see` and the page begin with.

Every number in a sentence is one of the summary's; a sentence whose condition the numbers do not meet is not said.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch

from regard.explain.findings.wording import quoted
from regard.explain.logits.predictions import Prediction
from regard.explain.texts.occurrences import Occurrence, Pair, Reference
from regard.explain.texts.summary import Summary, Target
from regard.explain.vectors.similarity import cosine
from regard.explain.weights.attended import Attended, Share

SAME = 0.9995  # cosines from here on round to 1.00: nothing is said to differ there
FAINT = 0.02  # weights below it are not worth a name
NEAR = 0.01  # cosines that differ by less are called about equal
SHARP = 0.3  # a weight from which on a link is called sharp
NAMED = 2  # tokens that a sentence names at most


def findings(summary: Summary) -> list[str]:
    """Compose the sentences about a followed word, or about what is most worth a look: few where numbers bear few."""
    if summary.word is None:
        sentences = [sentence for text in range(len(summary.texts)) for sentence in _worth(summary, text)]
    elif summary.occurrences:
        about = (_start, _looks, _end, _nearest, _push, _said)
        sentences = [sentence(summary) for sentence in about]
    else:  # of an encoder-decoder, a word of the target alone
        sentences = []
    if summary.target is not None:
        sentences = [*sentences[:3], *_translated(summary, summary.target)]
    return [sentence for sentence in sentences if sentence]


def _worth(summary: Summary, text: int) -> list[str]:
    """What is most worth a look in a text in which no word is followed."""
    found = summary.highlights[text]
    where = f"In text {summary.labels[text]} " if len(summary.texts) > 1 else ""
    sentences = []
    if found.moved:
        first, *others = found.moved[:3]
        then = "".join(f", then {quoted(each.word)} ({each.cosine:.2f})" for each in others)
        says = f"{quoted(first.word)} moves most: it leaves the last layer at cosine {first.cosine:.2f} to what entered"
        sentences.append(f"{where}{says} layer 0{then}.")
    links = [link for link in found.links[:3] if link.weight >= SHARP]
    if links:
        named = [
            f"{_numbered(summary, text, link.query)} looks at {_numbered(summary, text, link.key)} in layer "
            f"{link.layer}, head {link.head} "
            f"({link.weight:.2f})"
            for link in links
        ]
        sentences.append(f"{where or 'The '}{'the ' if where else ''}sharpest links across words: {'; '.join(named)}.")
    elif found.links:
        link = found.links[0]
        sentences.append(
            f"{where}{'n' if where else 'N'}o head links words that are no neighbours by more than {link.weight:.2f}."
        )
    own = [said for said in summary.predictions if said.text == text and said.candidates]
    return sentences + [_says(said, summary) for said in own[:2]]


def _numbered(summary: Summary, text: int, token: int) -> str:
    """A token in a sentence; with its number where others of its text are called the same."""
    names = [each.text.strip() for each in summary.tokens[text]]
    return quoted(names[token]) + (f" {token}" if names.count(names[token]) > 1 else "")


def _translated(summary: Summary, target: Target) -> list[str]:
    """What target tokens come from, of the followed word where there is one."""
    sentences = []
    for alignment in target.alignments[:3]:
        own = {n for o in summary.occurrences if o.text == alignment.text for n in o.tokens}
        theirs = {n for o in target.summary.occurrences if o.text == alignment.text for n in o.tokens}
        special = [token.special for token in target.summary.tokens[alignment.text]]
        links = [
            (each.written.top[0].weight, each.text, each.written.top[0].text)
            for each in alignment.tokens
            if each.written is not None and each.written.top and not special[each.token]
            if summary.word is None or each.token in theirs or each.written.top[0].token in own
        ]
        where = f"In text {alignment.text + 1}, " if len(target.alignments) > 1 else ""
        layer = f"layer {alignment.written_layer}"
        if not links:
            word = quoted(summary.word or "")
            sentences.append(
                f"{where}{'no' if where else 'No'} target token looks at {word} more than at other words ({layer})."
            )
            continue
        named = ", ".join(
            f"{quoted(out)} from {quoted(of)} ({weight:.2f})" for weight, out, of in sorted(links)[:-4:-1]
        )
        sentences.append(
            f"{where}{'the' if where else 'The'} target is written, by what it looks at most in {layer}: {named}."
        )
    return sentences


def _name(summary: Summary, label: str) -> str:
    """An occurrence in a sentence: "it" where it is the only one, else by the label that tables give it."""
    if len(summary.occurrences) == 1:
        return "it"
    return (
        f"text {label}'s" if len(summary.texts) == len(summary.occurrences) else f"{quoted(summary.word or '')} {label}"
    )


def _named(share: Share, occurrence: Occurrence) -> str:
    """A token in a sentence; the followed word itself, elsewhere in the text, is called another."""
    same = share.text.strip().casefold() == occurrence.word.strip().casefold()
    return f"another {quoted(share.text)}" if same else quoted(share.text)


def _start(summary: Summary) -> str:
    """Whether the occurrences start as the same vector."""
    seen, pairs = summary.occurrences, summary.pairs
    if len(seen) == 1:
        return _pieces(summary, seen[0])
    every = "Both" if len(seen) == 2 else f"All {len(seen)}"
    equal = [pair.learned_equal for pair in pairs]
    enters = [pair.hidden_states[0] for pair in pairs if pair.hidden_states[0] is not None]
    if all(equal) and enters and min(enters) >= SAME:
        return f"{every} {quoted(summary.word or '')} start as the same vector."
    if all(equal):
        apart = f" (cosine {min(enters):.2f})" if enters else ""
        where = f"; their positions set them apart before layer 0{apart}" if enters else ""
        return f"{every} {quoted(summary.word or '')} start as the same learned embedding{where}."
    known = [pair for pair in pairs if pair.learned is not None]
    if not known:
        return ""
    least = min(known, key=lambda pair: pair.learned or 0.0)
    return (
        f"The learned embeddings of {quoted(summary.word or '')} differ, for its tokens do: cosine {least.learned:.2f} "
        f"between texts {least.a} and {least.b}."
    )


def _pieces(summary: Summary, only: Occurrence) -> str:
    tokens = summary.tokens[only.text]
    pieces = [tokens[n].text.strip() for n in only.tokens]
    if len(pieces) == 1:
        return f"{quoted(summary.word or '')} is one token, number {only.tokens[0]} of {len(tokens)}."
    return f"{quoted(summary.word or '')} is read as {len(pieces)} tokens: {' '.join(pieces)}."


def _others(row: Attended, occurrence: Occurrence) -> list[Share]:
    """What a row of attention gives to other tokens than the word's own, special ones and sinks aside."""
    return [share for share in row.top if share.token not in occurrence.tokens]


def _beside(row: Attended) -> str:
    """What takes more than half of a row, where that is nothing with a meaning of its own."""
    if row.apart <= 0.5:
        return ""
    return (
        " beside special tokens"
        if not row.sinks
        else " beside special tokens and sinks"
        if row.special
        else " beside sinks"
    )


def layer_looked_at(summary: Summary) -> int | None:
    """Find the layer in which the occurrences look at other words most: its place in their `attends`, None for none."""
    seen = summary.occurrences
    if not seen or not seen[0].attends:
        return None

    def most(place: int) -> float:
        return sum(max((share.weight for share in _others(each.attends[place], each)), default=0.0) for each in seen)

    return max(range(len(seen[0].attends)), key=most)


def _looks(summary: Summary) -> str:
    """Where the occurrences look in the layer in which they look at other words most."""
    seen, place = summary.occurrences, layer_looked_at(summary)
    if place is None:
        return ""
    if not any(_others(row, each) for each in seen for row in each.attends):
        return "There is no other word that it could look at."
    parts = [_look(summary, each, each.attends[place]) for each in seen[:3]]
    more = "" if len(seen) <= 3 else f" (and {len(seen) - 3} more)"
    return f"In layer {seen[0].attends[place].layer} (mean of its heads) {', '.join(parts)}{more}."


def _look(summary: Summary, occurrence: Occurrence, row: Attended) -> str:
    who = _name(summary, occurrence.label)
    named = [share for share in _others(row, occurrence)[:NAMED] if share.weight >= FAINT]
    if not named:
        return f"{who} hardly looks at other words"
    looks = " and ".join(f"{_named(share, occurrence)} ({share.weight:.2f})" for share in named)
    return f"{who} looks most at {looks}" + _beside(row)


def _end(summary: Summary) -> str:
    """How alike the occurrences are after the last layer; of a single one, how far it is from where it began."""
    seen, pairs = summary.occurrences, summary.pairs
    last = len(seen[0].hidden_states) - 2
    if len(seen) == 1:
        first, final = seen[0].hidden_states[0], seen[0].hidden_states[-1]
        if first is None or final is None or len(first) != len(final):
            return ""
        apart = cosine(torch.tensor(first), torch.tensor(final))
        return f"After layer {last} its vector is at cosine {apart:.2f} to the one that entered layer 0."
    ends = [pair for pair in pairs if pair.hidden_states[-1] is not None]
    if not ends:
        return ""
    if len(seen) == 2:
        return f"They end at cosine {ends[0].hidden_states[-1]:.2f} after layer {last}{_drop(ends[0])}."
    order = sorted(ends, key=lambda pair: pair.hidden_states[-1] or 0.0)
    least, most = order[0], order[-1]
    return (
        f"After layer {last} {least.a} and {least.b} are least alike (cosine {least.hidden_states[-1]:.2f}), "
        f"{most.a} and {most.b} most ({most.hidden_states[-1]:.2f})."
    )


def _drop(pair: Pair) -> str:
    """In which layer two occurrences part most, where they part at all."""
    states = [(n, a, b) for n, (a, b) in enumerate(pairwise(pair.hidden_states)) if a is not None and b is not None]
    if not states:
        return ""
    layer, before, after = min(states, key=lambda each: each[2] - each[1])
    if before - after < NEAR:
        return ": no layer sets them apart"
    return f"; layer {layer} sets them apart most ({before:.2f} → {after:.2f})"


def _nearest(summary: Summary) -> str:
    """Which reference word each occurrence ends nearest to."""
    parts = []
    for each in summary.occurrences[:3]:
        own = sorted(
            (r for r in summary.references if r.occurrence == each.label), key=lambda r: r.contextual, reverse=True
        )
        if not own:
            return ""
        parts.append(f"{_name(summary, each.label)} {_ends_near(own)}")
    if not parts:
        return ""
    several = len({reference.word for reference in summary.references}) > 1
    lead = "Of the reference words, " if several else "Before and after attention, "
    return f"{lead}{', '.join(parts)}."


def _ends_near(references: Sequence[Reference]) -> str:
    """references: of one occurrence, the nearest first."""
    best = references[0]
    now, before = f"{best.contextual:.2f}", best.learned
    now = now if before is None else f"{before:.2f} → {now}"
    if len(references) == 1:
        return f"is at cosine {now} to {quoted(best.word)}"
    close = [r for r in references[1:] if best.contextual - r.contextual < NEAR]
    if close:
        others = " and ".join(f"{quoted(r.word)} ({r.contextual:.2f})" for r in close[:NAMED])
        return f"ends about as near to {quoted(best.word)} (cosine {now}) as to {others}"
    return f"ends nearest to {quoted(best.word)} (cosine {now})"


def _push(summary: Summary) -> str:
    """Which token moved each occurrence most through attention, where layers can be split exactly."""
    parts = []
    for each in summary.occurrences[:3]:
        found = next((own.updates for own in summary.layer_updates if own.occurrence == each.label), None)
        tokens = summary.tokens[each.text]
        apart = {sink.token for sink in summary.sinks[each.text]}
        sources = [
            (source, step.layer)
            for step in found or ()
            for source in (step.attention.top if step.attention else ())
            if source.token not in each.tokens and not tokens[source.token].special
            if source.token not in apart and source.share >= FAINT
        ]
        if sources:
            source, layer = max(sources, key=lambda pair: pair[0].share)
            same = source.text.strip().casefold() == each.word.strip().casefold()
            text = f"another {quoted(source.text)}" if same else quoted(source.text)
            share = f"{source.share:.0%} of its step in layer {layer}"
            parts.append(f"{_name(summary, each.label)} most through {text} ({share})")
    return f"Attention moved {', '.join(parts)}." if parts else ""


def _said(summary: Summary) -> str:
    """What a language model would say after or at the first occurrence."""
    own = [said for said in summary.predictions if said.occurrence is not None and said.candidates]
    if not own or summary.references or summary.target is not None:
        return ""
    return _says(own[0], summary)


def _says(said: Prediction, summary: Summary) -> str:
    best, after = said.candidates[0], "After" if said.after else "In the place of"
    where = f" in text {summary.labels[said.text]}" if len(summary.texts) > 1 else ""
    return f"{after} {quoted(said.at)}{where} the model would say {quoted(best.text)} ({best.probability:.2f})."
