"""Trace the texts of a request, and build the same pages as the library."""

import base64
import binascii
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

import torch
from starlette.exceptions import HTTPException

from regard.attention.attention_map import AttentionMap
from regard.capture.interventions.activations import Steer, steer
from regard.capture.interventions.resolve import Intervention
from regard.capture.options import report_layers_of_pass
from regard.errors import RegardError
from regard.explain.texts.occurrences import unfold_texts_to_windows
from regard.explain.weights.attended import check_layer
from regard.explain.wording import capital, listed, number, numbered
from regard.generation.generator import Generated
from regard.images import read_picture_bytes
from regard.lazy import from_above
from regard.models.control import trace_control, trace_word
from regard.models.model import Model
from regard.models.windows import WindowedTrace, longest, sides
from regard.questions.generate.answer import generated
from regard.questions.movement import missing
from regard.server.page_cache import CachedPage, ZoomMap
from regard.server.requests import (
    AnyTrace,
    ExperimentRequest,
    GenerationRequest,
    ModelQuestion,
    PictureRequest,
    StatePatch,
    Steering,
    TraceRequest,
    change_name,
)
from regard.server.tasks import Limits, Task
from regard.text.quoting import quoted
from regard.text.tokens import Token, check_text, count_tokens
from regard.trace.trace import PairTrace, Trace
from regard.views.save_page import page_as_seen
from regard.web.assemble import Choice, title_of, told_token
from regard.web.call import OVERVIEWS, CallName
from regard.web.html_file import page_beside
from regard.web.numbers import Data
from regard.web.page import Page, status_lines, text_data

MOST = 3  # maximum changed tokens in a sentence
SAME = 1e-5  # smaller relative changes of a vector are rounding error


def long_page(traces: Sequence[Trace | PairTrace | WindowedTrace], word: str | None = None) -> CachedPage:
    """Build the page of texts too long for a browser. The server sends their attention matrices in tiles."""
    page, maps = Page(title_of(traces), model=traces[0].status.model), {}
    for n, trace in enumerate(traces):
        if not isinstance(trace, Trace):
            raise RegardError(
                "a text this long is served of models that read it whole, one text each: leave out windows"
            )
        name = f"text {n + 1}" if len(traces) > 1 else "text"
        text = page.add_text(text_data(name, trace.text, trace.tokens))
        for layer, nth in trace.attention.calls:
            weights = trace.attention[layer, nth]
            call = page.add_call(_tiled_call(weights, CallName(layer, nth, text, text)))
            maps[call] = ZoomMap(weights)
    if not page.calls:
        raise RegardError("the traces hold no attention")
    page.status = [
        *status_lines([trace.status for trace in traces if isinstance(trace, Trace)], Page("")),
        "Means and weights are computed where this page was served from, when they are looked at.",
    ]
    if word is not None:
        page.findings = [missing(word, "a text is too long for a browser to compute with")]
    index, token = _opening_token([trace for trace in traces if isinstance(trace, Trace)], word)
    first = next(n for n, call in enumerate(page.calls) if call["queries"] == index)
    page.opening = {"view": "map", "call": first, "head": 0, "token": token}
    return CachedPage(page, maps)


def _opening_token(traces: Sequence[Trace], word: str | None) -> tuple[int, int | None]:
    """Return the text and token to open a page at: the word's first occurrence, or the first text's last word."""
    for n, trace in enumerate(traces if word is not None else ()):
        with suppress(RegardError):
            return n, trace.word(str(word))[0].tokens[0]
    return 0, told_token(traces[0], [])


def map_page(weights: AttentionMap, title: str) -> CachedPage:
    """Build the page of an attention map (H, L, S). Its tokens are numbers."""
    page = Page(title)
    _, length, size = weights.shape
    sides = [length] if length == size else [length, size]
    texts = [
        page.add_text(text_data(name, "", [Token(0, str(n), 0, 0, None, False) for n in range(count)]))
        for name, count in zip(("queries", "keys"), sides, strict=False)
    ]
    call = page.add_call(_tiled_call(weights, CallName(0, 0, texts[0], texts[-1])))
    page.opening = {"view": "map", "call": 0, "head": 0, "token": length - 1}  # the view opens at its largest weight
    page.status = [f"An attention map of {weights.shape[0]} heads, {length:,} queries and {size:,} keys, from a file."]
    return CachedPage(page, {call: ZoomMap(weights)})


def _tiled_call(weights: AttentionMap, name: CallName) -> Data:
    """Return the page's data for a call without its numbers, which are sent as tiles on request."""
    heads, length, size = weights.shape
    mask = None if weights.rule.mask is None else weights.rule.mask.simplified(length, size)
    band = None if mask is None or not mask.only_band else {"kind": "band", "low": mask.low, "high": mask.high}

    def no_values(*shape: int) -> Data:
        return {"values": {"at": -1, "dtype": "float32", "shape": list(shape)}, "scales": None}

    width, key_heads = weights.query.shape[-1], weights.key.shape[1]
    return name.data(weights) | {
        "head_numbers": None, "query": no_values(heads, length, width), "key": no_values(key_heads, size, width),
        "row_max": no_values(heads, length)["values"], "row_sum": no_values(heads, length)["values"],
        "mask": band, "difference": 0.0, "served": True, **dict.fromkeys(["bias", "sinks", "norms", *OVERVIEWS]),
    }  # fmt: skip


def check_sizes(query: ModelQuestion, models: Sequence[Model], limits: Limits) -> Model:
    """Check the number and length of a request's texts. Returns its model. Raises HTTPException."""
    for name in ("model", "other"):
        if (getattr(query, name, None) or 0) >= len(models):
            prefix = f"{name}: got {getattr(query, name)}"
            raise HTTPException(422, f"{prefix}, but this server has {len(models)}, numbered from 0")
    texts = [query.prompt] if isinstance(query, GenerationRequest) else query.texts
    if len(texts) > limits.texts:
        raise HTTPException(413, f"texts: got {len(texts)}, at most {limits.texts} are allowed")
    if isinstance(query, TraceRequest | GenerationRequest):
        texts = [*texts, *(ablation.source for ablation in query.ablations if isinstance(ablation, StatePatch))]
    if isinstance(query, GenerationRequest) and query.steer is not None:
        texts = [*texts, query.steer.towards, query.steer.away]
    characters = sum(map(len, texts))
    if characters > limits.characters:
        raise HTTPException(413, f"texts: got {characters:,} characters, at most {limits.characters:,} are allowed")
    return models[query.model]


def trace_page(model: Model, query: TraceRequest, limits: Limits, task: Task, other: Model | None = None) -> CachedPage:
    """Trace texts, and if requested, also with ablations or a second model. Builds their page."""
    if other and (query.ablations or query.word is not None):
        raise RegardError("other: two models are compared as they are: leave out ablations and word")
    edits = interventions(model, query)
    passes = 2 if edits or other else 1
    with report_layers_of_pass(model._session.original, lambda share: task.advance(0.7 * share / passes)):
        traces = _trace_texts(model, query, [], limits)
        texts = [f"text {n + 1}" if len(traces) > 1 else "text" for n in range(len(traces))]
        after = _trace_texts(other or model, query, edits, limits) if passes > 1 else []
    task.check_running()
    if any(longest(trace) > limits.whole for trace in traces):
        return long_page([*traces, *after], query.word)
    references, word = reference_traces(model, query), query.word
    too_many = too_many_occurrences([*traces, *after], word, limits)
    control = None
    if word is not None and references and too_many is None:
        control = trace_control(model, traces, word)
    choice = Choice(steps=query.steps, limit=limits.kept)
    names, findings = None, [] if too_many is None else [too_many]
    if after:
        change = listed([change_name(ablation, traces[0]) for ablation in query.ablations])
        labels = (model.name, other.name) if other else ("as is", change)
        names = [f"{name}, {label}" if len(traces) > 1 else label for label in labels for name in texts]
    page = page_as_seen(
        [*traces, *after], choice, word, names=names, findings=findings or None, references=references, control=control
    )
    if other:
        models = {f"In text {n}, ": f"In {name}, " for n, name in enumerate((model.name, other.name), 1)}
        page.findings = [models.get(line[:11], line[:11]) + line[11:] for line in page.findings]
        if not (page.overview and page.overview.get("tokens")):
            page.opening["view"] = "tokens"  # this view shows texts with different tokens side by side
    if edits:
        changes = [change_sentences(*pair, change, word) for pair in zip(traces, after, strict=True)]
        page.findings = [*chain.from_iterable(changes), *(page.findings if word is not None else ())]
    return CachedPage(page)


def generation_page(model: Model, query: GenerationRequest, limits: Limits, task: Task) -> CachedPage:
    """Continue a text with a model and build the page of all its tokens. The task reports the text so far.

    With ablations or steering, the text is generated twice, first without them.
    """
    edits = interventions(model, query)
    if query.steer is not None:
        edits.append(_steering_intervention(model, query.steer))
    results: list[Generated] = []
    for changes in [[], edits] if edits else [[]]:

        def report(text: str, before: int = len(results)) -> None:
            task.report_text(text, min(1.0, (before + len(text) / (5 * query.new_tokens)) / (2 if edits else 1)))

        results.append(
            model.generate(
                query.prompt, max_new_tokens=query.new_tokens, do_sample=False, interventions=changes, progress=report
            )
        )
    choice = Choice(limit=limits.kept)
    steering, findings, change = "; ".join(map(str, edits)), None, ""
    if edits and query.steer is None:
        change = listed([change_name(ablation, results[0].trace) for ablation in query.ablations])
        before, after = (quoted(" ".join(result.new.split())) for result in results)
        findings = [f"{capital(change)}, the model writes {after} instead of {before}."]
    if not isinstance(results[0].trace, Trace):
        return CachedPage(page_as_seen(results, choice, findings=findings))
    answer = generated(results[0], results[1] if edits else None, steering)
    if findings is None:
        return CachedPage(answer.page(choice))
    page = replace(answer, names=["as is", change]).page(choice)
    page.findings = findings
    return CachedPage(page)


def _steering_intervention(model: Model, query: Steering) -> Steer:
    """Trace the texts of a steering vector, and return the intervention. Raises RegardError for unsuitable models."""
    if model.pairs or not model.writes:
        reason = "reads pairs" if model.pairs else "has no language head that writes"
        raise RegardError(f"steering is for models that continue a single text: {model.name} {reason}")
    towards, away = model.trace([query.towards, query.away], logits=False, attention_outputs=False)
    layer = check_layer(towards, len(towards.attention) // 2 if query.layer is None else query.layer)
    return steer((towards, away), layer=layer, strength=query.strength)


def experiment_page(model: Model, query: ExperimentRequest, limits: Limits, task: Task) -> CachedPage:
    """Answer a question with a model and build its page, with attention if the question is about a single text."""
    if model.pairs:
        raise RegardError(f"experiments here are for models that read one text, but {model.name} reads pairs")

    def progress(count: int, total: int) -> None:
        task.report_text("", count / total)

    question = query.experiment.question()
    question.check(len(query.texts))
    traces = [model.trace(text) for text in query.texts]
    task.check_running()
    answer = question.answer(model, traces, progress)
    if len(traces) > 1:
        return CachedPage(answer.page())
    return CachedPage(page_beside(answer, traces, Choice(limit=limits.kept)))


def interventions(model: Model, query: TraceRequest | GenerationRequest) -> list[Intervention]:
    """Return a request's ablations and patches as interventions of the library. Traces the source texts."""
    sources: dict[str, Trace] = {}
    result: list[Intervention] = []
    for ablation in query.ablations:
        if not isinstance(ablation, StatePatch):
            result.append(ablation.intervention())
            continue
        if model.pairs:
            raise RegardError(f"patches here are for models that read one text, but {model.name} reads pairs")
        if ablation.source not in sources:
            sources[ablation.source] = model.trace(ablation.source, logits=False)
        result.append(ablation.intervention(sources[ablation.source]))
    return result


def _trace_texts(model: Model, query: TraceRequest, changes: Sequence[Intervention], limits: Limits) -> list[AnyTrace]:
    """Return a trace per text. An encoder-decoder generates the targets."""
    options: dict[str, Any] = {"interventions": changes, "logits": False}
    if query.window is not None:
        return list(model.trace(query.texts, window=query.window, **options))
    if not model.pairs:
        options["attention_outputs"] = not any(_too_long(model, text, limits) for text in query.texts)
        return list(model.trace(query.texts, **options))
    limit = min(256, (model.limit or 257) - 1)
    options = {"max_new_tokens": limit, "do_sample": False, "interventions": changes}
    return [model.generate(text, **options).trace for text in query.texts]


def _too_long(model: Model, text: str, limits: Limits) -> bool:
    """Return whether a text is too long for a browser, so that its page shows only weights."""
    if model.limit is not None and model.limit <= limits.whole:
        return False  # the model rejects longer texts
    return 4 * len(text) > limits.whole and count_tokens(model._tokenizer, check_text(text)) > limits.whole


def change_sentences(before: AnyTrace, after: AnyTrace, change: str, word: str | None = None) -> list[str]:
    """Write how much a change moves the word's last hidden state, and which tokens change most."""
    pairs = list(zip(sides(before), sides(after), strict=True))
    names = ("source", "target") if isinstance(before, PairTrace) else [f"window {n + 1}" for n in range(len(pairs))]
    starts = [capital(f"{name}: {change}" if len(pairs) > 1 else change) for name in names]
    return [line for start, pair in zip(starts, pairs, strict=True) for line in _sentences(*pair, start, word)]


def _sentences(before: Trace, after: Trace, change: str, word: str | None) -> list[str]:
    """Return the sentences about a trace before and after a change: the word, then the most changed tokens."""
    if [token.id for token in before.tokens] != [token.id for token in after.tokens]:
        return [f"{change}, the model writes “{after.text}” instead of “{before.text}”."]
    old, new = before.last_hidden_state.double(), after.last_hidden_state.double()
    distance = (new - old).norm(dim=-1) / old.norm(dim=-1).clamp_min(torch.finfo(torch.float64).tiny)
    if not len(distance) or float(distance.max()) < SAME:
        return [f"{change}, no last hidden state changes."]
    cosines = [number(float(cosine)) for cosine in torch.cosine_similarity(old, new, dim=-1)]
    order = [n for n in (-distance).argsort().tolist() if distance[n] >= SAME]
    lines = []
    with suppress(RegardError):
        word_tokens = before.word(word or "")[0].tokens
        lines = [f"{change}, {quoted(str(word))} ends at cosine {cosines[word_tokens[-1]]} to before."]
        order, change = [n for n in order if n not in word_tokens], "Among other tokens"
    if order:
        first, *others = [(numbered(before.tokens, n), cosines[n]) for n in order[:MOST]]
        suffix = f", then {listed([f'{token} ({cosine})' for token, cosine in others])}" if others else ""
        lines.append(f"{change}, {first[0]} changes most (cosine {first[1]}{'' if lines else ' to before'}){suffix}.")
    return lines


def picture_bytes(query: PictureRequest, limits: Limits) -> bytes:
    """Decode the image file of a request from base64. Raises HTTPException if it is invalid or too large."""
    try:
        data = base64.b64decode(query.picture, validate=True)
    except (binascii.Error, ValueError) as error:
        raise HTTPException(422, f"picture: expected the bytes of a file in base64: {error}") from None
    if len(data) > limits.picture:
        raise HTTPException(413, f"{query.name} has {len(data):,} bytes, at most {limits.picture:,} are allowed")
    return data


def picture_page(model: Model, query: PictureRequest, data: bytes, limits: Limits, task: Task) -> CachedPage:
    """Trace an image, with a text if given, and build a page that shows where the model attends."""
    picture = read_picture_bytes(data, query.name)
    task.check_running()
    with report_layers_of_pass(model._session.original, lambda share: task.advance(0.7 * share)):
        traces = model.trace(query.text, images=[picture], logits=False)
    task.check_running()
    return CachedPage(from_above("looked")(traces).page(Choice(limit=limits.kept)))


def reference_traces(model: Model, query: TraceRequest) -> list[Trace]:
    """Trace each reference word as a separate text. Encoder-decoders use only their encoder."""
    if query.references and query.word is None:
        raise RegardError("references needs word: pass the word that you compare with them")
    return [trace_word(model, word, "references:") for word in dict.fromkeys(map(str.strip, query.references))]


def too_many_occurrences(traces: Sequence[AnyTrace], word: str | None, limits: Limits) -> str | None:
    """Return a message if a word has too many occurrences to compare their paths in time, else None."""
    if word is None:
        return None
    windowed = [trace for trace in traces if isinstance(trace, WindowedTrace)]
    count = sum(len(words) for _, words in unfold_texts_to_windows(windowed, word).found) if windowed else 0
    for trace in traces:
        if not isinstance(trace, WindowedTrace):
            count += max(_occurrences_to_follow(side, word) for side in trace.sides)
    if count <= limits.occurrences:
        return None
    return missing(word, f"it occurs {count:,} times, at most {limits.occurrences:,} are allowed here")


def _occurrences_to_follow(side: Trace, word: str) -> int:
    try:
        return len(side.word(word))
    except RegardError:
        return 0
