"""Summarise the attention of a word or of every token: the numbers of `regard see`.

All results are dataclasses of strings, integers, floats and lists, so that the terminal, plots and `--json` show the
same numbers. Layers and heads count from 0.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from regard.attention.region_scores import weights_kept
from regard.capture.inputs import SPAN
from regard.errors import RegardError, control_name
from regard.explain.logits import LogitLens, Names, Prediction, logit_lens, names_of, predict, spoken, written
from regard.explain.texts.highlights import Highlights, highlights, sweep_long_text
from regard.explain.texts.occurrences import (
    ComparedWord,
    Found,
    Occurrence,
    OccurrencePair,
    ShownWindow,
    Unfolded,
    WordUpdates,
    compare_occurrences,
    compare_reference,
    find_word_in_texts,
    occurrences,
    word_updates,
)
from regard.explain.vectors.neutral import (
    Control,
    Difference,
    Massive,
    Neutral,
    direction,
    largest_difference,
    massive_activations,
    neutral,
)
from regard.explain.weights.alignment import Across, Alignment, align, choose, from_source, from_target
from regard.explain.weights.attended import Attended, attended, check_head, check_heads, other_words
from regard.explain.weights.sinks import Sink, sinks
from regard.models.readout import Readout
from regard.shown import short_repr
from regard.text.tokens import Token
from regard.text.words import Word, which_text, word_in_neither_text
from regard.trace.layers import kept_numbers
from regard.trace.status import Status
from regard.trace.trace import PairTrace, Trace

AT_ONCE = 1 << 23  # weights of all heads in memory at once in an overview


@dataclass(frozen=True, kw_only=True)
class Summary:
    """All results of `regard see` for some texts.

    layers: the numbers of layers with attention, including those that a trace lacks. labels: the texts' names in
    tables. windows: each text's origin, if it was read in windows. `sinks[t]`: text t's attention sinks. highlights: of
    each text, empty if a word is followed. massive: the occurrences and reference words with massive activations. None
    if no word is followed or a trace lacks hidden states. layer_updates: how much of each layer's update of the
    occurrences came from attention. predictions: of a language head, at the occurrences and at the end (a decoder's are
    of the occurrences themselves). logit_lenses: each layer's prediction at these positions, if requested. target: the
    decoder's results, for encoder-decoders. neutral: per reference word, its cosines to the followed word in neutral
    sentences. Empty without reference words or such sentences, or if `control.refused` has a reason. control: the
    neutral sentences, None without them. difference: the cosine to one reference word minus that to another, in neutral
    sentences, for the two that separate two occurrences most. None without two occurrences or references.
    """

    word: str | None
    top: int
    layers: list[int]
    labels: list[str]
    windows: list[ShownWindow]
    texts: list[str]
    tokens: list[list[Token]]
    sinks: list[list[Sink]]
    occurrences: list[Occurrence]
    pairs: list[OccurrencePair]
    references: list[ComparedWord]
    highlights: list[Highlights]
    massive: list[Massive] | None
    layer_updates: list[WordUpdates]
    predictions: list[Prediction]
    logit_lenses: list[LogitLens]
    statuses: list[Status]
    reference_statuses: list[Status]
    target: "Target | None"
    neutral: list[Neutral] = field(default_factory=list)
    control: Control | None = None
    difference: Difference | None = None
    __repr__ = short_repr


@dataclass(frozen=True)
class Target:
    """The results of an encoder-decoder's decoder for the targets of some texts.

    summary: of the targets, as for any texts. generated: whether the model generated each target. alignments: one per
    text. of_words: the source tokens that occurrences in the targets attend to. to_words: the target tokens that attend
    to occurrences in the texts.
    """

    summary: Summary
    generated: list[bool]
    alignments: list[Alignment]
    of_words: list[Across]
    to_words: list[Across]


def summarise(
    traces: Sequence[Trace | PairTrace], word: str | None = None, *, references: Sequence[Trace] = (),
    control: Sequence[Trace] | None = None, layer: int | None = None, head: int | None = None, top: int = 5,
    names: Names | None = None, lens_of: Any = None, generated: Sequence[bool] = (), unfolded: Unfolded | None = None,
) -> Summary:  # fmt: skip
    """Compute the summary of texts: for one word in them, or, without a word, for every token."""
    texts = [trace for trace in traces if isinstance(trace, Trace)]
    pairs = [trace for trace in traces if isinstance(trace, PairTrace)]
    if texts and pairs:
        raise RegardError("got traces of single texts and of text pairs: pass only one kind")
    if not texts and not pairs:
        kinds = ", ".join(sorted({type(trace).__name__ for trace in traces})) or "no traces"
        raise RegardError(f"got {kinds}, expected traces: for a text read in windows, pass its .windows")
    if not pairs:
        layer, head = check_heads(texts[0], layer, head)
        words: Found = [] if word is None else find_word_in_texts(texts, word) if unfolded is None else unfolded.found
        names = names_of(*texts) if names is None else names
        return _summary_of_stack(
            texts, words, word, references, layer, head, top, names, lens_of, control=control,
            windows=[] if unfolded is None else unfolded.windows,
        )  # fmt: skip
    sources, targets = [pair.encoder for pair in pairs], [pair.decoder for pair in pairs]
    encoder, decoder = (check_heads(trace, layer, head) for trace in (sources[0], targets[0]))
    names = names_of(*targets, *sources) if names is None else names
    in_sources, in_targets = _find_in_either_text(sources, targets, word)
    if references and not in_sources:
        raise RegardError(
            f"{control_name('with', '--compare')} compares words of the texts: {word!r} is only in their targets"
        )
    source = _summary_of_stack(sources, in_sources, word, references, *encoder, top, names, control=control)
    target = _summary_of_stack(targets, in_targets, word, (), *decoder, top, names, lens_of, pairs=pairs)
    layer, head = decoder
    layers = choose(pairs, head) if layer is None else (layer, layer)
    alignments = [align(pair, n, layers=layers, head=head, top=top) for n, pair in enumerate(pairs)]
    of_words, to_words = (
        [across(pairs[o.text], o.as_word(), o.label, head=head, top=top) for o in side.occurrences]
        for across, side in ((from_target, target), (from_source, source))
    )
    generated = list(generated) or [False] * len(pairs)
    return replace(source, target=Target(target, generated, alignments, of_words, to_words))


def _find_in_either_text(sources: Sequence[Trace], targets: Sequence[Trace], word: str | None) -> tuple[Found, Found]:
    """Find a word in each text and in its target. It has to be in one of the two."""
    if word is None:
        return [], []
    in_sources, in_targets = list[Any](), list[Any]()
    for number, traces in enumerate(zip(sources, targets, strict=True)):
        missing = []
        for side, trace in zip((in_sources, in_targets), traces, strict=True):
            try:
                side.append((number, trace.word(word)))
            except RegardError as error:
                missing.append(str(error))
        if len(missing) == 2:
            raise word_in_neither_text(missing[0], missing[1], which_text(number + 1, len(sources)))
    return in_sources, in_targets


def _summary_of_stack(
    traces: Sequence[Trace], matches: Found, word: str | None, references: Sequence[Trace], layer: int | None,
    head: int | None, top: int, names: Names, lens_of: Any = None, *, control: Sequence[Trace] | None = None,
    windows: Sequence[ShownWindow] = (), pairs: Sequence[PairTrace] = (),
) -> Summary:  # fmt: skip
    """Summarise texts that one stack of layers reads. pairs: if the texts are targets, the pairs they belong to."""
    labels = [f"{w.text + 1}.{w.window + 1}" for w in windows] or [str(n + 1) for n in range(len(traces))]
    sinks_of_texts, excluded = list[list[Sink]](), list[set[int]]()
    followed, shown, layer_updates = list[Occurrence](), list[Highlights](), list[WordUpdates]()
    predictions, lenses = list[Prediction](), list[LogitLens]()
    for n, trace in enumerate(traces):
        with weights_kept(weights for _, weights in trace.attention.items()):
            if word is None:
                sweep_long_text(trace)
            sinks_of_texts.append(sinks(trace))
            excluded.append({sink.token for sink in sinks_of_texts[n]})
            in_trace = [in_text for in_text in matches if in_text[0] == n]
            added = occurrences(traces, in_trace, labels, layer, head, top, excluded)
            layer_updates += word_updates(pairs[n] if pairs else trace, added, top, excluded[n])  # targets: both texts
            followed += added
            shown += [highlights(trace, head=head, top=top, sinks=excluded[n])] if word is None else []
        words = [(occurrence.label, occurrence.tokens) for occurrence in added]
        has_logits = trace.logits is not None and trace.logits.ndim == 2 and trace.labels != SPAN
        if not has_logits and lens_of is None:
            continue
        positions = written(words) if pairs and word is not None else spoken(trace, words)
        if has_logits:
            predictions += [predict(trace, n, token, names, top=top, occurrence=label) for token, label in positions]
        if lens_of is None:
            continue
        readout = Readout(lens_of, trace, pairs[n].encoder if pairs else None)
        if not positions:
            needs = "follow a word of the target" if pairs else "follow a word, or put a mask into the text"
            event = f"{trace.status.model} says something"
            raise RegardError(f"next: there is no position in the text at which {event}: {needs}")
        for token, label in positions:
            lenses.append(logit_lens(readout, trace, token, top, names=names, text=n, occurrence=label))
    ranges, validity, in_control = list[Neutral](), None, list[tuple[Trace, Word]]()
    labelled = [(occurrence.label, traces[occurrence.text], occurrence.as_word()) for occurrence in followed]
    if control is not None and references and followed and word is not None:
        ranges, validity, in_control = neutral(word, labelled, control, references)
    massive = None
    if followed and all(len(kept_numbers(trace.hidden_states)) == len(trace.hidden_states) for trace in traces):
        massive = massive_activations(labelled, traces, references)
    compared = [[compare_reference(reference, o, traces[o.text]) for o in followed] for reference in references]
    ends = [[item.last_hidden_state for item in row] for row in compared if row]
    return Summary(
        word=word, top=top, layers=sorted({layer for layer, _ in traces[0].attention.made}), labels=labels,
        windows=list(windows), texts=[trace.text for trace in traces], tokens=[list(trace.tokens) for trace in traces],
        sinks=sinks_of_texts, occurrences=followed,
        pairs=compare_occurrences(followed, [traces[o.text] for o in followed]),
        references=[item for row in compared for item in row], highlights=shown, massive=massive,
        layer_updates=layer_updates, predictions=predictions, logit_lenses=lenses,
        statuses=[trace.status for trace in traces], target=None, neutral=ranges, control=validity,
        reference_statuses=[trace.status for trace in references],
        difference=largest_difference(references, ends, in_control) if in_control else None,
    )  # fmt: skip


def furthest_apart(summary: Summary) -> OccurrencePair | None:
    """Return the pair of occurrences with the smallest cosine after the last layer, None if no cosine is known."""
    ends = [(pair.end, n) for n, pair in enumerate(summary.pairs) if pair.end is not None]
    return summary.pairs[min(ends)[1]] if ends else None


def layer_looked_at(summary: Summary) -> int | None:
    """Find the layer in which the occurrences attend most to other words, without sinks. Return its index in `attends`.

    In each layer, the occurrences' largest weights are summed. None if a trace has no layers.
    """
    others = []
    for occurrence in summary.occurrences:
        sinks = {sink.token for sink in summary.sinks[occurrence.text]}
        others.append(other_words(summary.tokens[occurrence.text], occurrence.tokens, sinks))
    totals = [
        sum(max(((row.weights or [])[n] for n in keys), default=0.0) for row, keys in zip(rows, others, strict=True))
        for rows in zip(*(occurrence.attends for occurrence in summary.occurrences), strict=False)
    ]
    return totals.index(max(totals)) if totals else None


def comparable(summary: Summary, label: str, word: str | None = None) -> bool:
    """Return whether an occurrence's cosines to reference words, or to `word`, can be compared with neutral sentences.

    They can't if there are no such sentences, if the word has other tokens in them, or for massive activations.
    """
    if not summary.neutral or summary.control is None or label in summary.control.otherwise:
        return False
    return not any(out.name == word if out.kind == "reference" else out.of == label for out in summary.massive or ())


def leaves_range(summary: Summary, label: str, word: str, value: float) -> str | None:
    """Return "towards" or "away from" if an occurrence's cosine to a reference word leaves its neutral range."""
    neutral = next((neutral for neutral in summary.neutral if neutral.word == word), None)
    return direction(value, neutral) if neutral is not None and comparable(summary, label, word) else None


@dataclass(frozen=True)
class StateCosines:
    """A word's cosines to one reference word, state by state, or, if word is None, to its own input of layer 0.

    paths: one per occurrence. [0] is for the input of layer 0, [n + 1] for the output of layer n, and the last for the
    last hidden state. A state that a trace lacks is None. neutral: mean and range in neutral sentences.
    """

    word: str | None
    paths: list[list[float | None]]
    neutral: Neutral | None


def curves(summary: Summary) -> list[StateCosines]:
    """Return the word's cosines to each reference word or, without reference words, to its own input of layer 0."""
    if not summary.references:
        return [StateCosines(None, [occurrence.cosines_to_start() for occurrence in summary.occurrences], None)]
    neutral = {row.word: row for row in summary.neutral}
    words = dict.fromkeys(reference.word for reference in summary.references)
    states = {(reference.word, reference.occurrence): reference.states for reference in summary.references}
    paths = {word: [states[word, occurrence.label] for occurrence in summary.occurrences] for word in words}
    return [StateCosines(word, paths[word], neutral.get(word)) for word in words]


def attended_by_every_token(trace: Trace, head: int | None, top: int, sinks: Collection[int]) -> list[list[Attended]]:
    """Return the attention of each token in each layer, [token][layer], of one head or as the mean of heads."""
    head = None if head is None else check_head(trace, head)
    table: list[list[Attended]] = [[] for _ in trace.tokens]
    for n in kept_numbers(trace.attention):
        weights = trace.attention[n]
        heads, length, size = weights.shape
        step = max(1, AT_ONCE // (heads * size))
        for start in range(0, length, step):
            block = weights[:, start : start + step].mean(0) if head is None else weights[head, start : start + step]
            for i, row in enumerate(attended(block, trace.tokens, n, head, top, sinks, whole=False), start):
                table[i].append(row)
    return table
