"""One pass is recorded as a whole: calls, embeddings, stacks, outputs and last hidden states."""

import torch
import transformers

from regard.capture.hf_attention import through_interface
from regard.capture.hooks import record_last_hidden_states, record_pass
from regard.capture.state import Capture
from regard.trace.attention_output import AttentionOutput
from tests.support.attention_outputs import make_model

IDS = torch.tensor([[5, 17, 31, 8, 44]])


def test_everything_of_a_pass_is_recorded() -> None:
    model = make_model("bert")
    capture = Capture({id(module): path for path, module in model.named_modules()})
    with (
        torch.no_grad(),
        through_interface(model, capture),
        record_pass(model, capture, [IDS], head_input=True, layers=[1], keep=("output",)) as record,
    ):
        output = model(IDS)
    assert list(record.calls) == [("encoder.layer.1.attention.self", 0)]
    assert record.calls["encoder.layer.1.attention.self", 0].value is None
    assert capture.calls == 2
    assert [type(each) for each in record.attention_outputs] == [AttentionOutput] * 2
    assert len(record.embeddings) == 1
    assert list(record.stacks) == ["encoder.layer"]
    assert torch.equal(record.last["last_hidden_state"], output.last_hidden_state)


def test_the_heads_input_stands_for_a_last_state_that_is_not_seen() -> None:
    sizes = {"vocab_size": 97, "n_embd": 24, "n_layer": 1, "n_head": 3, "n_positions": 31}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes)).eval()
    hidden = torch.randn(1, 5, 24)
    for head_input in (True, False):
        with torch.no_grad(), record_last_hidden_states(model, head_input=head_input) as last:
            model.lm_head(hidden)  # as a family that goes round its base model does
        assert list(last) == (["last_hidden_state"] if head_input else [])
    with torch.no_grad(), record_last_hidden_states(model, head_input=True) as last:
        output = model(IDS, output_hidden_states=True)
    assert torch.equal(last["last_hidden_state"], output.hidden_states[-1])
