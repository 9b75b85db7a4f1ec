"""Some layers and no logits: what is kept equals what a whole trace has, and what is not is refused by name."""

import pytest
import torch
import transformers

import regard
from regard.capture.options import CaptureOptions
from regard.capture.state import LayerStack
from regard.explain.causes.contributions import contributions
from tests.support import RIVER

SIZES = {"vocab_size": 97, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 3}
IDS = [5, 17, 31, 8, 44, 90, 2]


def model(kind: str, **changes):
    torch.manual_seed(0)
    sizes = SIZES | {"intermediate_size": 37, "max_position_embeddings": 31} | changes
    made = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(kind, **sizes))
    return regard.load(made.eval())


def test_some_layers_are_those_of_all(minilm) -> None:
    some, whole = minilm.trace(RIVER, layers=[4, 1]), minilm.trace(RIVER)
    assert some.attention.kept == some.values.kept == some.attention_outputs.kept == (1, 4)
    assert some.hidden_states.kept == (1, 2, 4, 5)
    assert (len(some.attention), len(some.hidden_states)) == (6, 7)
    for n in (1, 4):
        torch.testing.assert_close(some.attention[n].dense(), whole.attention[n].dense(), atol=1e-6, rtol=0)
        torch.testing.assert_close(some.values[n], whole.values[n], atol=1e-6, rtol=0)
        torch.testing.assert_close(
            some.attention_outputs[n].projected, whole.attention_outputs[n].projected, atol=1e-6, rtol=0
        )
        torch.testing.assert_close(some.hidden_states[n], whole.hidden_states[n], atol=1e-6, rtol=0)
        torch.testing.assert_close(some.hidden_states[n + 1], whole.hidden_states[n + 1], atol=1e-6, rtol=0)
    torch.testing.assert_close(some.contextual, whole.contextual, atol=1e-6, rtol=0)
    assert "kept of its 6 layers: 1, 4" in some.status.notes
    with pytest.raises(regard.RegardError, match=r"attention\[3\] was not kept: of 6 this trace holds 1, 4"):
        some.attention[3]
    with pytest.raises(regard.RegardError, match=r"states cannot be walked along, for of 7 it holds 1, 2, 4, 5,"):
        list(some.hidden_states)
    with pytest.raises(IndexError):
        some.attention[6]
    assert some.attention[-2] is some.attention[4]
    assert minilm.trace(RIVER, layers=5).attention.kept == (5,)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "opt", "bert"])
def test_without_logits_nothing_else_changes(kind: str) -> None:
    changes = {"opt": {"ffn_dim": 37, "word_embed_proj_dim": 24}, "bert": {"is_decoder": True}}.get(kind, {})
    opened = model(kind, **changes)
    whole, without = opened.trace(ids=IDS), opened.trace(ids=IDS, logits=False)
    assert whole.logits.shape == (7, 97)
    assert without.logits is None
    assert "logits were left out" in without.status.notes
    assert torch.equal(without.contextual, whole.contextual)
    assert all(torch.equal(a, b) for a, b in zip(without.hidden_states, whole.hidden_states, strict=True))


def test_logits_are_not_computed_where_the_model_can_leave_them_out() -> None:
    opened, rows = model("llama"), []
    opened.model.lm_head.register_forward_hook(lambda _module, _args, output: rows.append(output.shape[1]))
    opened.trace(ids=IDS, logits=False)
    assert rows == [1]


@pytest.mark.parametrize("layers", [None, [1]])
def test_blocks_are_left_out(layers) -> None:
    opened = model("llama")
    trace, whole = opened.trace(ids=IDS, layers=layers, attention_outputs=False), opened.trace(ids=IDS)
    assert trace.attention_outputs == ()
    assert "what stands around attention was left out: there are no contributions" in trace.status.notes
    assert torch.equal(trace.attention[1].dense(), whole.attention[1].dense())
    with pytest.raises(regard.RegardError, match="does not hold its output projection"):
        contributions(trace, 2, 1)
    with pytest.raises(regard.RegardError, match="attention_outputs"):
        trace.save("never.safetensors", attention_outputs=True)


def test_a_stack_holds_the_states_of_chosen_layers_and_the_last() -> None:
    stack = LayerStack("encoder")
    for n in range(7):
        stack.add(torch.full((1, 2, 3), float(n)), CaptureOptions(frozenset([2])))
        assert len(stack.hidden_states) <= 3
    assert stack.count == 7
    assert {n: float(state[0, 0, 0]) for n, state in stack.numbered.items()} == {2: 2, 3: 3, 6: 6}


def test_layers_that_are_not_kept_are_let_go_of() -> None:
    """What a trace of one layer holds does not grow with the number of layers."""
    held = []
    for layers in (2, 8):
        trace = model("llama", num_hidden_layers=layers).trace(ids=IDS, layers=[1], logits=False)
        vectors = [
            trace.hidden_states[1],
            trace.hidden_states[2],
            trace.values[1],
            trace.attention[1].query,
            trace.contextual,
        ]
        held.append(sum(tensor.untyped_storage().nbytes() for tensor in vectors))
        assert len(trace.hidden_states) == layers + 1
    assert held[0] == held[1]


@pytest.mark.parametrize(
    ("layers", "says"),
    [
        ([3], "layers: 3 is out of range, LlamaForCausalLM has layers 0 to 2"),
        ([-1], "layers: -1 is out of range"),
        ([], "layers: given none, needs at least one number"),
    ],
)
def test_layers_that_do_not_exist(layers, says: str) -> None:
    with pytest.raises(regard.RegardError, match=says):
        model("llama").trace(ids=IDS, layers=layers)


def test_a_module_that_serves_as_several_layers_is_refused() -> None:
    config = transformers.AlbertConfig(**SIZES, embedding_size=24, intermediate_size=37)
    opened = regard.load(transformers.AlbertModel(config).eval())
    assert len(opened.trace(ids=IDS).attention) == 3
    with pytest.raises(
        regard.RegardError, match="which attention calls of AlbertModel belong to them is known only after"
    ):
        opened.trace(ids=IDS, layers=[0])
