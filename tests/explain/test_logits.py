"""None"""

from dataclasses import replace

import pytest
import torch
import transformers

import regard
from regard.explain.logits import candidates, logit_lens, names_of, predict, spoken, written
from regard.explain.texts.summary import summarise
from regard.models.readout import Readout
from tests.support import make_tiny

TEXT = "a man on a river bank"


def opened(minilm, kind: str, **changes):
    """A tiny random model with a language head."""
    torch.manual_seed(3)
    sizes = {"vocab_size": minilm.tokenizer.vocab_size, "hidden_size": 24, "num_hidden_layers": 3,
             "num_attention_heads": 3, "intermediate_size": 37, "max_position_embeddings": 31}  # fmt: skip
    config = transformers.AutoConfig.for_model(kind, **(sizes | changes))
    kinds = transformers.AutoModelForMaskedLM if kind == "bert" else transformers.AutoModelForCausalLM
    return regard.load(kinds.from_config(config).eval(), tokenizer=minilm.tokenizer)


def own_way(model, state):
    """What each of these families does behind its last layer, written down by hand."""
    inner = model.model
    with torch.no_grad():
        if hasattr(inner, "cls"):
            return inner.cls(state)
        if hasattr(inner, "transformer"):
            return inner.lm_head(inner.transformer.ln_f(state))
        logits = inner.lm_head(inner.model.norm(state))
        cap = getattr(inner.config, "final_logit_softcapping", None)
        return logits if cap is None else cap * torch.tanh(logits / cap)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("llama", {"num_key_value_heads": 1}),
        ("gpt2", {"n_embd": 24, "n_layer": 3, "n_head": 3, "n_positions": 31}),
        ("gemma2", {"num_key_value_heads": 1, "head_dim": 8, "final_logit_softcapping": 0.5}),
        ("bert", {}),
    ],
)
def test_each_state_goes_the_models_own_way(minilm, kind: str, changes: dict[str, object]) -> None:
    model = opened(minilm, kind, **changes)
    trace = model.trace(TEXT)
    readout = Readout(model, trace)
    seen = logit_lens(readout, trace, "river", top=3)
    place = trace.word("river")[0].tokens[-1]
    assert (seen.token, seen.at, seen.after) == (place, "river", kind != "bert")
    assert len(seen.layers) == len(trace.hidden_states)
    for layer, state in zip(seen.layers, trace.hidden_states, strict=True):
        chances = own_way(model, state[place]).double().softmax(-1)
        assert [c.id for c in layer.candidates] == chances.topk(3).indices.tolist()
        assert [c.probability for c in layer.candidates] == pytest.approx(chances.topk(3).values.tolist(), abs=1e-6)
        assert layer.probability == pytest.approx(float(chances[seen.final.id]), abs=1e-6)
        assert layer.rank == 1 + int((chances > chances[seen.final.id]).sum())
    assert seen.layers[-1].rank == 1
    assert seen.final.id == int(trace.logits[place].argmax())
    assert seen.difference < 1e-5


def test_a_decoder_is_read_with_its_encoder(tiny_pair) -> None:
    inner = tiny_pair.model
    pair = tiny_pair.trace("the man on the river bank", target="un homme sur la rive")
    seen = logit_lens(Readout(tiny_pair, pair.decoder, pair.encoder), pair.decoder, "sur", top=2)
    with torch.no_grad():
        expected = inner.lm_head(pair.decoder.hidden_states[1][4]) + inner.final_logits_bias[0]
    assert [c.id for c in seen.layers[1].candidates] == expected.topk(2).indices.tolist()
    assert seen.difference < 1e-5
    summary = summarise([pair], "rive", lens_of=tiny_pair)
    assert [each.at for each in summary.target.summary.logit_lenses] == ["la"]
    with pytest.raises(regard.RegardError, match="there is no position in the text .*: follow a word of the target"):
        summarise([pair], "bank", lens_of=tiny_pair)


def test_another_models_trace_is_refused(minilm) -> None:
    model = opened(minilm, "llama", num_key_value_heads=3)
    other = opened(minilm, "llama", num_key_value_heads=3, num_hidden_layers=2)
    with pytest.raises(regard.RegardError, match="next: no layers of .* it is another model's"):
        Readout(model, other.trace(TEXT))
    with pytest.raises(regard.RegardError, match="logit lens: all-MiniLM-L6-v2 has no language-model head"):
        Readout(minilm, minilm.trace(TEXT))


def test_what_is_more_than_norm_and_head_is_refused(minilm) -> None:
    """A head that looks at the tokens before, too: then a state alone does not say what the model says."""
    model = opened(minilm, "llama", num_key_value_heads=3)
    head = model.model.lm_head
    own = head.forward
    head.forward = lambda states: own(states.cumsum(1))
    trace = model.trace(TEXT)
    with pytest.raises(regard.RegardError, match="something other than a norm and a head"):
        logit_lens(Readout(model, trace), trace, "river")


def test_the_model_is_left_as_it_was(minilm) -> None:
    model = opened(minilm, "llama", num_key_value_heads=3)
    before = model.trace(TEXT)
    logit_lens(Readout(model, before), before, 2)
    hooks = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.model.modules())
    assert hooks == 0
    assert torch.equal(model.trace(TEXT).logits, before.logits)


def test_a_masked_model_without_a_place_is_refused(minilm, tmp_path) -> None:
    config = make_tiny(tmp_path, minilm).config
    model = regard.load(transformers.BertForMaskedLM(config).eval(), tokenizer=minilm.tokenizer)
    with pytest.raises(regard.RegardError, match="follow a word, or put a mask into the text"):
        summarise([model.trace(TEXT)], lens_of=model)
    summary = summarise([model.trace("a man on a [MASK] bank")], lens_of=model)
    assert [(each.at, each.after) for each in summary.logit_lenses] == [("[MASK]", False)]
    assert [each.token for each in summary.predictions] == [5]


def test_a_story_is_read_in_the_last_layers(stories) -> None:
    trace = stories.trace("Once upon a time, there was a little")
    seen = logit_lens(Readout(stories, trace), trace, "little", names=lambda n: stories.tokenizer.decode([n]).strip())
    assert seen.final.text in ("girl", "boy", "g", "b")
    assert seen.layers[0].candidates[0].text == "little"  # input and output embeddings are one table
    assert seen.layers[0].rank > 10
    ranks = [layer.rank for layer in seen.layers]
    assert ranks == sorted(ranks, reverse=True)
    assert seen.difference < 1e-4


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
