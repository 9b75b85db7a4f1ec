"""One pass is recorded as a whole: calls, embeddings, stacks, outputs, hidden states; cross-attention is recognised."""

import torch
import transformers
from torch import Tensor

from regard.capture.hf_attention import through_interface
from regard.capture.hooks import record_last_hidden_states, record_layers, record_pass
from regard.capture.options import CaptureOptions
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


def capture_of(model: torch.nn.Module, **settings) -> Capture:
    return Capture({id(module): path for path, module in model.named_modules()}, **settings)


def test_states_are_what_enters_and_leaves_the_layers() -> None:
    model = make_model("gpt2")
    seen: list[Tensor] = []
    model.h[0].register_forward_pre_hook(lambda _m, args: seen.append(args[0]))
    for layer in model.h:
        layer.register_forward_hook(lambda _m, _a, out: seen.append(out[0] if isinstance(out, tuple) else out))
    capture = capture_of(model)
    with torch.no_grad(), record_layers(model, capture) as stacks, through_interface(model, capture):
        model(IDS)
    (stack,) = stacks.values()
    assert stack.path == "h"
    assert stack.attends
    assert stack.count == 3
    assert all(torch.equal(a, b) for a, b in zip(stack.hidden_states, seen, strict=True))
    assert capture.cross_paths == set()


def test_a_list_without_attention_is_no_stack() -> None:
    model = make_model("gpt2")
    with torch.no_grad(), record_layers(model, capture_of(model)) as stacks:  # its calls are not counted
        model(IDS)
    assert stacks == {}


def test_an_encoder_decoder_has_two_stacks_and_cross_attention() -> None:
    model = make_model("marian")
    capture = capture_of(model, keep=CaptureOptions(frozenset([0])))
    with torch.no_grad(), record_layers(model, capture) as stacks, through_interface(model, capture):
        model(input_ids=IDS, decoder_input_ids=IDS[:, :3])
    assert list(stacks) == ["encoder.layers", "decoder.layers"]
    assert [tuple(each.hidden_states[0].shape) for each in stacks.values()] == [(1, 5, 24), (1, 3, 24)]
    assert list(stacks["encoder.layers"].numbered) == [0, 1, 2]  # the last one is always there
    assert capture.cross_paths == {f"decoder.layers.{n}.encoder_attn" for n in (0, 1)}
