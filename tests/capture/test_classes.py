"""The logits and labels of classifiers are those of the model itself, alone, in batches and from a folder."""

from pathlib import Path

import pytest
import torch

import regard
from regard.capture.classes import class_names, probabilities
from tests.support.classifiers import HEADS, KINDS, LABELS, classifier, plain_logits

TEXTS = ["we sat on the river bank and liked it", "a bank"]
NAMES = {"QuestionAnswering": ("start", "end"), "MultipleChoice": ("choice",)}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_the_models_own(kind: str, head: str) -> None:
    if (kind, head) == ("Llama", "MultipleChoice"):
        return  # transformers has none
    model = classifier(kind, head)
    assert model.labels == NAMES.get(head, LABELS)
    for text, together in zip(TEXTS, model.trace(TEXTS), strict=True):
        own, trace = plain_logits(model, text), model.trace(text)
        assert trace.labels == model.labels
        assert trace.logits.shape == own.shape
        assert torch.equal(trace.logits, own)
        torch.testing.assert_close(together.logits, own, atol=1e-5, rtol=0)


@pytest.mark.parametrize("head", HEADS[:2])
def test_logits_in_double_precision(head: str) -> None:
    model = classifier("Bert", head)
    exact = regard.load(model.model.double(), tokenizer=model.tokenizer)
    for text, together in zip(TEXTS, exact.trace(TEXTS), strict=True):
        torch.testing.assert_close(together.logits, plain_logits(exact, text), atol=1e-12, rtol=0)


def test_a_last_token_is_found_without_a_padding_token_and_with_another_ones() -> None:
    for padding in (None, 7):  # the tokenizer's is 0, which stands for a token of the text here
        model = classifier("Llama", "SequenceClassification", pad_token_id=padding)
        ids = [[5, 9, 0], [8, 3, 4, 0, 6], [1, 2, 4]]
        for row, trace in zip(ids, model.trace(ids=ids), strict=True):
            with torch.no_grad():
                own = model.model(torch.tensor([row])).logits[0]
            torch.testing.assert_close(trace.logits, own, atol=1e-5, rtol=0)
        assert model.model.config.pad_token_id == padding
        runs = dict(model.ablated(ids=ids[0], sets=[[regard.ablate(regard.head(0, n))] for n in range(3)]))
        cut = model.trace(ids=ids[0], interventions=[regard.ablate(regard.head(0, 2))])
        torch.testing.assert_close(runs[2].logits, cut.logits, atol=1e-5, rtol=0)


def test_a_classifier_is_opened_from_its_folder(tmp_path: Path) -> None:
    model = classifier("Bert", "SequenceClassification")
    model.model.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    opened = regard.load(tmp_path, device="cpu")
    trace = opened.trace(TEXTS[0])
    torch.testing.assert_close(trace.logits, plain_logits(model, TEXTS[0]))
    assert any(note.startswith("Logits of the labels: ") for note in trace.status.notes)
    trace.save(tmp_path / "trace.safetensors")
    again = regard.open(tmp_path / "trace.safetensors")
    assert (again.labels, again.logits.tolist()) == (LABELS, trace.logits.tolist())
    windowed = opened.trace(TEXTS[0], window=6)
    assert windowed.logits is None
    assert windowed.windows[0].logits.shape == (3,)


def test_labels_are_in_the_order_of_their_numbers() -> None:
    model = classifier("Bert", "SequenceClassification", [str(n) for n in range(12)]).model
    model.config.id2label = {str(n): f"L{n}" for n in range(12)}
    assert class_names(model) == tuple(f"L{n}" for n in range(12))


def test_what_has_no_labels_has_no_logits_of_its_own(minilm, bank) -> None:
    assert class_names(minilm.model) == minilm.labels == bank[0].labels == ()


def test_probabilities_of_labels_that_exclude_each_other_and_of_others() -> None:
    logits = torch.tensor([0.0, 1.0, 2.0])
    model = classifier("Bert", "SequenceClassification")
    assert torch.equal(probabilities(logits, LABELS, model.model), logits.softmax(-1))
    model.model.config.problem_type = "multi_label_classification"
    assert torch.equal(probabilities(logits, LABELS, model.model), logits.sigmoid())
    assert probabilities(logits[:1], ("score",), model.model) is None
    assert probabilities(logits[:2], ("start", "end"), model.model) is None
