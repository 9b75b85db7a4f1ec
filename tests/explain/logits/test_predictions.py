from dataclasses import replace

import pytest
import torch
import transformers

import regard
from regard.explain.logits.predictions import candidates, names_of, predict, spoken, written
from tests.support import make_tiny


@pytest.fixture(scope="module")
def causal(minilm, tmp_path_factory):
    config = make_tiny(tmp_path_factory.mktemp("tiny"), minilm, "llama").config
    torch.manual_seed(0)
    return regard.load(transformers.LlamaForCausalLM(config).eval(), tokenizer=minilm.tokenizer)


def test_the_likeliest_come_first_with_their_probability() -> None:
    found = candidates(torch.tensor([1.0, 3.0, 2.0, 3.0]).log(), str, 3)
    assert [(c.id, c.text) for c in found] == [(1, "1"), (3, "3"), (2, "2")]  # ties: the smaller id
    assert [c.probability for c in found] == pytest.approx([3 / 9, 3 / 9, 2 / 9])


def test_a_causal_model_speaks_after_words_and_at_the_end(causal, bank) -> None:
    trace = causal.trace("a man on a river bank")
    last = len(trace.tokens) - 1
    assert spoken(trace, [("1", [4, 5])]) == [(5, "1"), (last, None)]
    assert spoken(trace, [("1", [last])]) == [(last, "1")]
    assert spoken(bank[0], [("1", [4, 5])]) == [(4, "1"), (5, "1")]  # at both, were there a language head
    assert written([("1", [4, 5]), ("2", [0])]) == [(3, "1")]


def test_what_is_said_is_the_softmax_of_the_logits(causal) -> None:
    trace = causal.trace("a man on a river bank")
    said = predict(trace, 0, 3, str, top=2, occurrence="1")
    chances = trace.logits[3].double().softmax(-1)
    assert [c.id for c in said.candidates] == chances.topk(2).indices.tolist()
    assert [c.probability for c in said.candidates] == chances.topk(2).values.tolist()
    assert (said.at, said.after) == ("on", True)


def test_ids_without_a_tokenizer_are_numbers_unless_a_text_has_them(bank) -> None:
    assert names_of(*bank)(5) == "[unused4]"  # as the tokenizer spells it
    names = names_of(*(replace(trace, names=None) for trace in bank))
    assert names(bank[0].tokens[11].id) == "bank"
    assert names(5) == "id 5"
