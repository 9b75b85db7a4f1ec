import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.attention.attention_map import AttentionMap
from regard.checks import megabytes
from regard.errors import RegardError
from regard.questions.see.answer import see, seen
from regard.questions.translate import Translation
from regard.trace.trace import Trace
from regard.views.save_page import page_as_seen
from regard.web.add_traces import add_trace
from regard.web.assemble import Choice, Opening, check_page_size, estimated_size, page_of
from regard.web.html_file import write_page
from regard.web.page import Page
from tests.support import RIVER
from tests.support.own_models import TARGETS, TEXTS, pair
from tests.support.web_pages import Read, check_page

pytestmark = pytest.mark.usefixtures("stand_in")


@pytest.mark.parametrize(("layers", "heads"), [(None, None), ((1, 3), None), ((1, 3), (0, 5, 7))])
def test_the_estimate_is_near_what_is_written(
    bank: list[Trace], layers: tuple[int, ...] | None, heads: tuple[int, ...] | None
) -> None:
    page = Page("", layers=layers, heads=heads)
    estimate = estimated_size([bank[0]], page)
    add_trace(page, bank[0], "text 1")
    assert 0.8 * estimate < page.numbers.size < 1.1 * estimate  # norms are not counted, nor what deflating saves


def test_the_limit() -> None:
    check_page_size(10, None)
    check_page_size(10, 10)
    with pytest.raises(
        RegardError, match=r"about 310\.0 MB, the limit is 200\.0 MB: leave out layers \(layers=, --html-"
    ):
        check_page_size(310_000_000, 200_000_000)


def read(folder: Path, page: Page) -> Read:
    write_page(page, folder / "page.html")
    return Read(folder / "page.html")


def test_it_opens_at_the_word_in_the_head_that_the_first_sentence_names(bank: list[Trace], tmp_path: Path) -> None:
    page = read(tmp_path, page_as_seen(bank, None, "bank"))
    seen = see(bank, "bank")
    assert page.data["findings"] == seen.findings()
    opening = page.data["opening"]
    assert opening["view"] == "overview"
    assert opening["token"] == bank[0].word("bank")[0].tokens[0]
    layer, head = (int(n) for n in re.findall(r"layer (\d+), head (\d+)", seen.findings()[0])[0])
    assert (layer, head) == (page.data["calls"][opening["call"]]["layer"], opening["head"])
    assert page.data["title"].endswith(" (and 1 more)")
    check_page(page, bank)


def test_it_opens_where_it_is_told_to(bank: list[Trace]) -> None:
    page = page_of(bank[1], Choice(layers=[2, 5], heads=[1, 7]), Opening("map", -1, 7, "money"), findings=["a"])
    token = bank[1].word("money")[0].tokens[0]
    assert page.opening == {"view": "map", "call": 1, "head": 1, "token": token}
    assert page.findings == ["a"]
    assert page_of(bank[1], None, Opening(layer=3, head=-1)).opening["head"] == 11
    # a head that was left out: the mean of those that are there
    assert page_of(bank[1], Choice(heads=[1, 7]), Opening(head=3)).opening["head"] is None


def test_a_word_may_be_in_one_text_alone(bank: list[Trace]) -> None:
    page = page_of(bank, None, Opening(word="money"), findings=[])
    assert page.opening["call"] == 6
    with pytest.raises(RegardError, match="word 'zebra'"):
        page_of(bank, None, Opening(word="zebra"), findings=[])


def test_windows_are_texts(minilm: Any, tmp_path: Path) -> None:
    windowed = minilm.trace(RIVER, window=8)
    page = read(tmp_path, page_as_seen(windowed, None, "river"))
    check_page(page, windowed.windows)
    count = len(windowed.windows)
    assert [text["name"] for text in page.data["texts"]] == [
        f"window {n + 1} of {count}, tokens {first} to {stop - 1}" for n, (first, stop) in enumerate(windowed.spans)
    ]
    assert any("Read in" in line and "windows" in line for line in page.data["status"])
    assert page.data["findings"]
    opening = page.data["opening"]
    text = page.data["calls"][opening["call"]]["queries"]
    assert page.data["texts"][text]["tokens"]["text"][opening["token"]] == "river"


def test_a_pair_has_its_alignment(tmp_path: Path) -> None:
    trace = pair().trace(TEXTS[0], target=TARGETS[0])
    page = read(tmp_path, page_of(trace, None, Opening("alignment")))
    check_page(page, trace.sides)
    (alignment,) = page.data["alignment"]
    assert [page.data["calls"][n]["name"] for n in alignment["calls"]] == ["layer 0, cross", "layer 1, cross"]
    assert page.data["opening"]["view"] == "overview"
    assert page.data["opening"]["call"] == alignment["best"]["call"]
    pairs = [trace, pair().trace(TEXTS[1], target=TARGETS[1])]  # the layers of their sentences
    target, two = seen(pairs).summary.target, page_of(pairs)
    assert target is not None
    layers = [two.calls[alignment["best"]["call"]]["layer"] for alignment in two.alignment]  # type: ignore[call-overload, index]
    assert layers == [alignment.written_layer for alignment in target.alignments]


def test_a_page_and_its_headline_use_the_same_alignment() -> None:
    pairs = [pair().trace(text, target=target) for text, target in zip(TEXTS[:2], TARGETS[:2], strict=True)]
    for options in ({}, {"head": 1}, {"layer": 0}, {"layer": 0, "head": 1}):
        answer = seen(pairs, kind=Translation, **options)
        page = answer.page()
        notes = [note for note in page.status if "words being written" in note]
        assert notes == [note for note in answer.exactness() if "words being written" in note]
        assert len(notes) == ("layer" not in options)
        for shown, alignment in zip(page.alignment, answer.summary.target.alignments, strict=True):
            assert page.calls[shown["best"]["call"]]["layer"] == alignment.written_layer
            assert shown["best"]["head"] == alignment.head == options.get("head")
    (note,) = (note for note in page_of(pairs).status if "words being written" in note)  # for both texts
    assert "over all texts" in note


def test_texts_of_the_same_tokens_are_compared(minilm: Any, bank: list[Trace], tmp_path: Path) -> None:
    after = minilm.trace(RIVER, interventions=[regard.ablate(regard.head(3, 5))])
    page = read(tmp_path, page_of([bank[0], bank[1], after]))
    assert page.data["comparisons"] == [
        {"name": "before and after: ablated: head 5 of layer 3", "before": list(range(6)), "after": list(range(12, 18))}
    ]
    check_page(page, [bank[0], bank[1], after])  # the ablated head attends as before


def test_steps_are_opt_in_and_say_what_they_take(bank: list[Trace]) -> None:
    (alone,) = page_of(bank[0]).steps  # of the layer that it opens at
    assert (alone["call"], alone["projection"], alone["entering"]) == (0, None, None)
    assert "--html-with steps" in alone["refused"]
    page = page_of(bank[0], Choice(steps=[2]))
    assert [step["call"] for step in page.steps] == [2]
    (line,) = (
        line for line in page.status if line.startswith("Values, hidden states and projections, for Steps, take")
    )
    assert f"take {megabytes(page.steps_size)} of this file" in line
    assert 0 < page.steps_size < page.numbers.size
    assert len(page_of(bank[0], Choice(steps=True)).steps) == 6
    with pytest.raises(RegardError, match=r"page: it would have about"):
        page_of(bank[0], Choice(steps=True, limit=page.numbers.size))
    few = page_of(bank[0], Choice(steps=True, heads=[0]))
    assert few.steps[0]["refused"] == "W_O joins all heads, and the page has some of them alone"


def test_texts_are_told_apart_by_model_and_change(minilm: Any, bank: list[Trace]) -> None:
    after = minilm.trace(RIVER, interventions=[regard.ablate(regard.head(3, 5))])
    other = replace(bank[0], status=replace(bank[0].status, model="another"))
    half = replace(bank[0], status=replace(bank[0].status, dtype="float16"))
    ablated = "text 2 (ablated: head 5 of layer 3)"
    for traces, names in (
        ([bank[0], after], ["text 1", ablated]),
        ([bank[0], other], ["text 1 (all-MiniLM-L6-v2)", "text 2 (another)"]),
        ([bank[0], half], ["text 1 (float32)", "text 2 (float16)"]),
        ([after, after], ["text 1", "text 2"]),
    ):
        assert [text["name"] for text in page_of(traces).texts] == names
    seen = page_as_seen([bank[0], after], word="bank").panels[0]
    assert [path["of"] for path in seen["paths"]] == ["text 1", ablated]  # type: ignore[index, union-attr]


@pytest.mark.parametrize(
    ("traces", "chosen", "says"),
    [
        ([], {}, "page: got no trace"),
        (["a"], {}, "page: got str, expected traces"),
        (None, {"layers": [9]}, r"attention\[9\]: there is no such layer"),
        (None, {"heads": [12]}, "head 12 does not exist"),
        (None, {"layers": []}, "layers: got none"),
    ],
)
@pytest.mark.usefixtures("no_checks_of_annotations")
def test_what_is_refused(bank: list[Trace], traces: Sequence[Any] | None, chosen: Any, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        page_as_seen(bank if traces is None else traces, Choice(**chosen))


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_what_is_no_trace_is_refused_before_it_is_computed(bank: list[Trace], monkeypatch: pytest.MonkeyPatch) -> None:
    with regard.record() as calls:
        query = torch.ones(1, 2, 3, 4)
        regard.attend(query, query, query)
    monkeypatch.setattr(AttentionMap, "__getitem__", None)  # nothing of a map is computed
    for one in (calls, calls["", 0], calls["", 0].weights, bank[0].attention[0]):
        with pytest.raises(RegardError, match=rf"page: got {type(one).__name__}, expected traces"):
            page_as_seen(one)  # type: ignore[arg-type]


def test_what_a_model_saw_without_a_text_is_shown() -> None:
    import transformers

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.ViTConfig(**sizes, image_size=8, patch_size=4)
    model = regard.load(transformers.ViTModel(config).eval())
    trace = model.trace(inputs={"pixel_values": torch.ones(1, 3, 8, 8)})
    page = page_as_seen(trace)
    assert (page.title, len(page.texts)) == ("an empty text", 1)
    assert page.opening["token"] in range(5)


def test_a_page_that_would_be_too_large_is_refused_before_anything_is_computed(
    bank: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.web.assemble.add_trace", lambda *_: pytest.fail("was computed"))
    monkeypatch.setattr("regard.views.save_page.seen_on_page", lambda *_, **__: pytest.fail("was computed"))
    for make in (page_of, page_as_seen):
        with pytest.raises(RegardError, match=r"it would have about \d+ kB, the limit is 100 kB: leave out layers"):
            make(bank, Choice(limit=100_000))
