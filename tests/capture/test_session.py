"""Each row of the session's table: what a pass turns out to need is given to another pass."""

import functools
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import nn

import regard
from regard.capture.options import CaptureOptions
from regard.capture.session import Session
from regard.model_files.stored_weight import StoredWeight
from regard.models.model import Model
from tests.capture.test_eager_attention import tiny
from tests.capture.test_families import DECODERS
from tests.capture.test_families import tiny as tiny_decoder
from tests.support import make_tiny
from tests.support.attention_outputs import make_model
from tests.support.generation import tiny as tiny_writer

IDS = [5, 17, 31, 8, 44, 90, 2]


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[CaptureOptions]:
    """The options of every pass that is made, in order."""
    made, right = list[CaptureOptions](), Session._pass

    def counted(self: Session, *batch: Any) -> Any:
        made.append(batch[-1])
        return right(self, *batch)

    monkeypatch.setattr(Session, "_pass", counted)
    return made


def shown(options: CaptureOptions) -> tuple[bool, bool, bool]:
    return options.reported, options.written_masks, options.last_row


def test_one_pass_where_nothing_is_needed(passes: list[CaptureOptions]) -> None:
    model = Model(make_model("bert"), None, name="bert")
    model.trace(ids=IDS)
    assert [shown(each) for each in passes] == [(False, False, False)]
    assert not model._session.reports_weights


class Computing(torch.nn.Module):
    """An attention module that adds something to its mask before it hands it on."""

    def __init__(self, own: torch.nn.Module) -> None:
        super().__init__()
        self.own = own

    def forward(self, hidden: Any, attention_mask: Any = None, **options: Any) -> Any:
        return self.own(hidden, None if attention_mask is None else attention_mask + 0.0, **options)


def test_a_model_that_computes_with_its_mask_gets_tensors(passes: list[CaptureOptions]) -> None:
    plain = make_model("bert")
    expected = Model(plain, None, name="bert").trace(ids=[IDS, IDS[:4]])
    model = make_model("bert")
    for layer in model.encoder.layer:
        layer.attention.self = Computing(layer.attention.self)
    passes.clear()
    traces = Model(model, None, name="bert").trace(ids=[IDS, IDS[:4]])
    # and once more of the shorter text alone
    assert [shown(each) for each in passes] == [(False, False, False), (False, True, False)] * 2
    for ours, theirs in zip(traces, expected, strict=True):
        torch.testing.assert_close(ours.last_hidden_state, theirs.last_hidden_state, atol=1e-6, rtol=0)
        torch.testing.assert_close(ours.attention[1].dense(), theirs.attention[1].dense(), atol=1e-6, rtol=0)
        assert any("Masks are stored as tensors" in note for note in ours.status.notes)


def test_all_logits_where_the_last_state_is_seen_at_the_head_alone(passes: list[CaptureOptions]) -> None:
    sizes = {"vocab_size": 97, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "ffn_dim": 37}
    config = transformers.OPTConfig(**sizes, word_embed_proj_dim=24, max_position_embeddings=31)
    model = Model(transformers.OPTForCausalLM(config).eval(), None, name="opt")
    trace = model.trace(ids=IDS, logits=False)
    assert trace.logits is None
    assert [shown(each) for each in passes] == [(False, False, True), (False, False, False)]
    assert torch.equal(trace.last_hidden_state, model.trace(ids=IDS).last_hidden_state)


def test_a_model_known_to_report_its_weights_is_asked_at_once(passes: list[CaptureOptions]) -> None:
    model = Model(tiny("mpnet"), None, name="mpnet")
    assert model._session.reports_weights
    model.trace(ids=IDS)
    assert [shown(each) for each in passes] == [(True, False, False)]


def test_attention_that_does_not_come_is_remembered_of_the_first_pass(
    passes: list[CaptureOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny("mpnet")
    monkeypatch.setattr(type(model), "_can_set_attn_implementation", lambda *_: True)
    opened = Model(model, None, name="mpnet")
    assert not opened._session.reports_weights  # its class says otherwise
    opened.trace(ids=IDS)
    # it computes with its mask as well, which is met first
    assert [shown(each) for each in passes] == [(False, False, False), (False, True, False), (True, False, False)]
    assert opened._session.reports_weights
    opened.trace(ids=IDS)
    assert shown(passes[3]) == (True, False, False)
    assert len(passes) == 4
    with pytest.raises(regard.RegardError, match="no head, edge or attention of mpnet can be ablated or patched"):
        opened.trace(ids=IDS, interventions=[regard.ablate(regard.head(0, 1))])


@pytest.mark.parametrize("write", [False, True])
def test_a_trace_within_a_pass_is_refused(write: bool) -> None:
    model = tiny_writer("llama")
    opened, other = Model(model, None, name="llama"), Model(make_model("bert"), None, name="bert")

    def hook(*_: Any) -> None:
        inner.trace(ids=IDS)

    for inner in (opened, other):
        with (
            model.model.layers[0].register_forward_hook(hook),
            pytest.raises(regard.RegardError, match=f"{inner.name} cannot be run while a pass is captured"),
        ):
            opened.generate(ids=IDS, max_new_tokens=2) if write else opened.trace(ids=IDS)
        assert len(inner.trace(ids=IDS).attention) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_child_that_is_forked_within_a_trace_can_trace() -> None:
    model, children = make_model("bert"), list[int]()
    opened = Model(model, None, name="bert")
    expected = opened.trace(ids=IDS).last_hidden_state

    def fork() -> None:
        children.append(os.fork())
        if not children[-1]:
            signal.alarm(20)  # ends a child that waits for ever
            os._exit(0 if torch.equal(opened.trace(ids=IDS).last_hidden_state, expected) else 1)

    def hook(*_: Any) -> None:
        if not children:  # from a thread that does not trace
            thread = threading.Thread(target=fork)
            thread.start()
            thread.join()

    with model.encoder.layer[0].register_forward_hook(hook):
        opened.trace(ids=IDS)
    assert os.waitpid(children[0], 0)[1] == 0


def test_the_model_is_left_as_it_was() -> None:
    model = make_model("gpt2").train()
    session = Session(model, name="gpt2", filler=0, pairs=False)
    encoded = Model(model, None, name="gpt2")._reader.read("text", None, [IDS])[1]
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()]
    done = session.run(encoded, None, [()], CaptureOptions(frozenset([1])))
    assert [call.layer for call in done.calls] == [1]
    assert model.training
    assert model.config._attn_implementation == "eager"
    assert [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()] == hooks


def test_the_index_stays_after_a_forward_is_replaced() -> None:
    """As accelerate's hooks do; the copy of such a function is a new object in each pass."""
    model = make_model("llama")
    layer = model.layers[0]
    layer._old_forward = layer.forward
    layer.forward = functools.partial(lambda module, *args, **named: module._old_forward(*args, **named), layer)
    opened, indices = Model(model, None, name="llama"), []
    for _ in range(3):
        opened.trace(ids=IDS)
        indices.append(opened._session.index)
    assert indices[0] is indices[1] is indices[2]
    own, layer.mlp = layer.mlp, nn.Identity()
    opened.trace(ids=IDS)
    replaced = opened._session.index
    assert replaced is not indices[2]
    assert any(isinstance(module, nn.Identity) for module in replaced.modules)
    layer.mlp = own
    own.extra = nn.Identity()  # within a module that had none
    opened.trace(ids=IDS)
    assert opened._session.index is not replaced


def test_a_layer_of_another_class_stays_in_the_trace() -> None:
    model = make_model("llama")
    opened = Model(model, None, name="llama")
    before = opened.trace(ids=IDS)
    model.layers[1].__class__ = type("Other", (type(model.layers[1]),), {})
    after = opened.trace(ids=IDS)
    assert len(after.attention) == len(before.attention) == 2
    assert torch.equal(after.hidden_states[2], before.hidden_states[2])


@pytest.mark.parametrize("dtype", ["bfloat16", torch.float16])
def test_half_precision_says_how_far_it_is_from_float32(minilm, tmp_path: Path, dtype) -> None:
    """The difference of weights that the status tells is that to a copy in float32, weights rounded alike."""
    make_tiny(tmp_path, minilm)
    opened = regard.load(tmp_path, device="cpu", dtype=dtype)
    trace = opened.trace("A bank by a river.")
    name = trace.status.dtype
    assert name in str(dtype)
    wide = transformers.AutoModel.from_pretrained(tmp_path, dtype=getattr(torch, name)).float()
    exact = regard.load(wide, tokenizer=opened.tokenizer).trace("A bank by a river.")
    apart = max(
        float((a.dense() - b.dense()).abs().max()) for a, b in zip(trace.attention, exact.attention, strict=True)
    )
    assert all(each in trace.status.notes[0] for each in (f"computes in {name}", f"up to {apart:.1e} and"))
    assert apart > 1e-6
    assert opened.trace("Another text.").status.notes[0] == trace.status.notes[0]  # measured once
    assert not any("computes in" in note for note in exact.status.notes)


def test_a_model_in_half_precision_is_left_as_it_is() -> None:
    model = tiny_decoder("llama", DECODERS["llama"], language=True).to(torch.bfloat16)
    model.register_buffer("own", torch.ones(3, dtype=torch.bfloat16))
    before = dict((*model.named_parameters(), *model.named_buffers()))
    written = regard.load(model).generate(ids=IDS, max_new_tokens=2).trace.status.notes
    assert any("computes in bfloat16" in note for note in written)
    after = dict((*model.named_parameters(), *model.named_buffers()))
    assert after.keys() == before.keys()
    assert all(after[name] is each for name, each in before.items())


@pytest.mark.parametrize("family", ["llama", "gpt2", "bert", "modernbert", "t5", "mpnet"])
def test_autocast_computes_as_the_plain_model_under_it_and_says_so(family: str) -> None:
    plain = make_model(family)
    plain.set_attn_implementation("sdpa")
    model, ids = regard.load(plain), torch.tensor([IDS])
    asked = {"ids": IDS, "target_ids": IDS} if model.pairs else {"ids": IDS}
    before = model.trace(**asked).sides[-1]
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        expected = plain(ids, **({"decoder_input_ids": ids} if model.pairs else {}))[0][0].float()
        trace = model.trace(**asked).sides[-1]
    apart = (trace.last_hidden_state.float() - expected).abs().max() / expected.abs().max()
    assert apart < 2 * torch.finfo(torch.bfloat16).eps
    assert (before.last_hidden_state - expected).abs().max() > 0
    assert trace.status.dtype == "bfloat16 (autocast)"
    assert trace.status.notes[0].startswith("The model computes in bfloat16 (autocast).")
    assert family == "mpnet" or trace.status.difference < 1e-6
    after = model.trace(**asked).sides[-1]
    assert torch.equal(after.last_hidden_state, before.last_hidden_state)
    assert after.status.dtype == "float32"
    assert not any("computes in" in note for note in after.status.notes)


def test_half_precision_that_float32_cannot_replace_is_told() -> None:
    class Stubborn(nn.Linear):
        def forward(self, x):
            if x.dtype != torch.bfloat16:
                raise RuntimeError("bfloat16 alone")
            return super().forward(x)

    model = tiny_decoder("llama", DECODERS["llama"], language=True)
    model.model.layers[1].mlp.up_proj = Stubborn(32, 48, bias=False)
    notes = regard.load(model.to(torch.bfloat16)).trace(ids=IDS).status.notes
    assert "(bfloat16 alone)" in notes[0]
    assert not any(isinstance(each, StoredWeight) for each in model.parameters())
