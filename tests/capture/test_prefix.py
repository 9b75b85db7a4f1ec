"""Passes that begin within a text: as if all of it were computed, in several families; refused where it is not so."""

from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.capture.build_trace import FROM_WITHIN, WHOLE_TEXT
from regard.capture.interventions.activations import WHATS, What
from regard.models.model import Model
from tests.support import hand_hooks
from tests.support.attention_outputs import OTHERS, SIZES, make_model

IDS = torch.randint(1, 101, (2, 13), generator=torch.Generator().manual_seed(5))
GROUPED = {"num_key_value_heads": 3, "head_dim": 4}
WINDOW = {"sliding_window": 4}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"num_key_value_heads": 2},
    "gpt2": {},
    "qwen2": {"num_key_value_heads": 3},
    "qwen3": GROUPED,
    "gemma2": GROUPED | WINDOW,
    "mistral": {"num_key_value_heads": 2} | WINDOW,
    "gpt_neox": {},
}
OF_TOKENS: list[What] = [what for what in WHATS if what != "weights"]


def writer(kind: str) -> Model:
    """A tiny random model of a family with its language head."""
    torch.manual_seed(1)
    config = transformers.AutoConfig.for_model(kind, **(OTHERS.get(kind, SIZES) | FAMILIES[kind]))
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(1.0 if weight.ndim == 1 else 0.0, 0.3 if weight.ndim == 1 else 0.2)
    return Model(model, None, name=kind)


@pytest.fixture(scope="module")
def writers() -> dict[str, Model]:
    return {kind: writer(kind) for kind in FAMILIES}


def rows_read(model: Model) -> tuple[list[int], Any]:
    """How many tokens each pass reads, and the handle of the hook that counts."""
    found: list[int] = []
    table = model.model.get_input_embeddings()
    return found, table.register_forward_hook(lambda _m, _a, out: found.append(out.shape[1]))


@pytest.mark.parametrize("kind", FAMILIES)
@given(data=st.data())
@settings(max_examples=5, deadline=None)
def test_each_is_as_if_all_were_computed(writers: dict[str, Model], kind: str, data: st.DataObject) -> None:
    model = writers[kind]
    what = data.draw(st.sampled_from(OF_TOKENS))
    source = model.trace(ids=IDS[1])
    places = data.draw(st.lists(st.integers(2, 12), min_size=2, max_size=5, unique=True))
    head = data.draw(st.sampled_from([None, 1])) if what in ("head_outputs", "values") else None
    if data.draw(st.booleans()):  # several of a text, in several layers
        pairs = [(first, data.draw(st.integers(2, 12))) for first in places]
        sets = [
            [
                regard.patch(what, layer=1, at=sorted({a, b}), source=source, head=head),
                regard.steer(torch.ones(24), layer=0, at=b),
            ]
            for a, b in pairs
        ]
    else:
        sets = [
            [regard.patch(what, layer=n, at=at, source=source, head=head)] for n in (0, 1) for at in places
        ]  # fmt: skip
    model.trace(ids=IDS[0], interventions=sets[0])  # so that the model's layout is known, from passes of its own
    read, handle = rows_read(model)
    found = dict(model.ablated(ids=IDS[0], sets=sets))
    handle.remove()
    assert read[:2] == [13, 13]  # the plain passes
    assert max(read[2:]) <= 11  # none begins before the first that is changed
    for number, patches in enumerate(sets):
        alone = model.trace(ids=IDS[0], interventions=patches)
        assert FROM_WITHIN in found[number].status.notes
        torch.testing.assert_close(found[number].last_hidden_state, alone.last_hidden_state, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(found[number].logits, alone.logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["llama", "qwen2", "mistral"])
@pytest.mark.parametrize("what", OF_TOKENS)
def test_it_is_what_hooks_do_on_the_eager_model(kind: str, what: What) -> None:
    model = Model(make_model(kind, **FAMILIES[kind]), None, name=kind)
    source = model.trace(ids=IDS[1])
    cells = [(layer, at) for layer in (0, 1) for at in (1, 6, 12)]
    sets = [[regard.patch(what, layer=layer, at=at, source=source)] for layer, at in cells]
    found = dict(model.ablated(ids=IDS[0], sets=sets))
    eager = make_model(kind, **FAMILIES[kind])  # the same weights
    for number, (layer, at) in enumerate(cells):
        hands = hand_hooks.llama(eager, layer)
        rows = hands.seen(input_ids=IDS[1:])[what][[at]]
        expected = hands.patched(what, [at], rows, input_ids=IDS[:1]).last_hidden_state[0]
        assert FROM_WITHIN in found[number].status.notes
        torch.testing.assert_close(found[number].last_hidden_state, expected, atol=1e-5, rtol=1e-5)


def check_whole_text(model: Model) -> None:
    """Check that patches of a text are what each gives alone, and that the status says that all was computed."""
    source = model.trace(ids=IDS[1])
    sets = [[regard.patch("hidden_states", layer=0, at=at, source=source)] for at in (4, 9)]
    for number, trace in model.ablated(ids=IDS[0], sets=sets):
        alone = model.trace(ids=IDS[0], interventions=sets[number])
        torch.testing.assert_close(trace.last_hidden_state, alone.last_hidden_state, atol=1e-5, rtol=1e-5)
        assert WHOLE_TEXT in trace.status.notes
        assert FROM_WITHIN not in trace.status.notes


def test_rows_before_a_change_are_checked_in_every_pass() -> None:
    """Layers that pass on more of a token than keys and values: all is computed, and the status says so."""
    model = writer("llama")

    def shifted(_module: Any, args: Any, output: Any) -> torch.Tensor:
        states = output[0] if isinstance(output, tuple) else output
        return states + torch.nn.functional.pad(args[0], (0, 0, 1, 0))[:, :-1]  # a token hears of the one before

    model.model.model.layers[1].register_forward_hook(shifted)
    check_whole_text(model)


def test_a_text_read_both_ways_is_computed_whole() -> None:
    model = Model(make_model("bert"), None, name="bert")
    check_whole_text(model)


def test_given_weights_are_refused_by_the_text_s_own_numbers() -> None:
    model = writer("llama")
    longer = model.trace(ids=IDS[1].roll(1))
    patch = regard.patch("weights", layer=1, at=[7], source_at=[12], source=longer)
    with pytest.raises(regard.RegardError, match="token 7 can't attend to all"):
        list(model.ablated(ids=IDS[0], sets=[[patch]]))
