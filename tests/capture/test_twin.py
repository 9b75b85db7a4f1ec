"""Passes are made with a copy of the modules: the model itself can be used by other threads, and is not changed."""

import copy
import functools
import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import MethodType
from typing import Any

import pytest
import torch
from torch import nn

import regard
from regard.capture.eager_attention import attention_settings
from regard.capture.twin import Twin
from regard.models.model import Model
from tests.support import RIVER
from tests.support.attention_outputs import make_model
from tests.support.generation import tiny

IDS = [5, 17, 31, 8, 44, 90, 2]


def attributes(model: nn.Module) -> list[Any]:
    """Everything of a model that a pass could leave changed."""
    modules = [{name: copy.copy(each) for name, each in vars(module).items()} for module in model.modules()]
    return [*modules, [name for _, name in attention_settings(model.modules())]]


def meanwhile(model: nn.Module, do: Callable[[], Any], other: Callable[[], Any]) -> list[Any]:
    """What `other` gives in another thread while the first passes of `do` run."""
    given: list[Any] = []
    here = threading.get_ident()

    def hook(*_: Any) -> None:
        if threading.get_ident() == here and len(given) < 3:
            thread = threading.Thread(target=lambda: given.append(other()))
            thread.start()
            thread.join(30)

    layers = [each for each in model.modules() if isinstance(each, nn.ModuleList)][-1]
    with layers[0].register_forward_hook(hook):
        do()
    assert given
    return given


def failing(model: Model) -> None:
    with pytest.raises(regard.RegardError, match="layer 9 is out of range"):
        model.trace(ids=IDS, interventions=[regard.ablate(regard.head(9, 0))])


PASSES: dict[str, Callable[[Model], Any]] = {
    "trace": lambda model: model.trace(ids=IDS),
    "batch": lambda model: model.trace(ids=[IDS, IDS[:4]]),
    "ablations": lambda model: list(model.ablated(ids=IDS, sets=[[regard.ablate(regard.head(0, 0))]])),
    "steering": lambda model: model.trace(ids=IDS, interventions=[regard.steer(torch.ones(24), layer=0)]),
    "an error": failing,
}
CASES = [(kind, torch.float32, do) for kind in ("bert", "gpt2", "llama") for do in PASSES.values()]
CASES += [
    ("llama", torch.bfloat16, PASSES["trace"]),  # measured with other weights in between
    ("mpnet", torch.float32, PASSES["trace"]),  # which reports its weights
    ("llama", torch.float32, lambda model: model.generate(ids=IDS, max_new_tokens=2)),
]


@pytest.mark.parametrize(("kind", "dtype", "do"), CASES)
def test_the_plain_model_in_another_thread_gives_what_it_gives_alone(kind: str, dtype: torch.dtype, do: Any) -> None:
    model = (tiny(kind) if do is CASES[-1][2] else make_model(kind, dtype)).train()
    ids = torch.tensor([IDS, IDS])
    mask = torch.tensor([[1] * 5 + [0] * 2, [1] * 7])

    def plain() -> torch.Tensor:
        torch.manual_seed(0)  # of the dropout
        with torch.no_grad():
            return model(ids, attention_mask=mask)[0]

    alone = plain()
    before = attributes(model)
    given = meanwhile(model, lambda: do(Model(model, None, name=kind)), plain)
    assert all(torch.equal(each, alone) for each in given)
    assert attributes(model) == before


@pytest.mark.parametrize("do", ["trace", "why"])
def test_two_models_of_one_object_at_once(do: str, minilm: Any) -> None:
    models = [minilm, regard.load(minilm.model, tokenizer=minilm.tokenizer)]
    river, setting = minilm.trace(RIVER), minilm.model.config._attn_implementation
    runs: dict[str, Callable[[Model], Any]] = {
        "trace": lambda model: model.trace(RIVER).attention[5].dense(),
        "why": lambda model: torch.tensor([each.effect for each in regard.why(model, river, "bank").heads]),
    }
    alone, met, both = runs[do](minilm), set[int](), threading.Barrier(2)

    def meet(*_: Any) -> None:
        if threading.get_ident() not in met:  # each in its first pass
            met.add(threading.get_ident())
            both.wait(30)

    with minilm.model.encoder.layer[0].register_forward_hook(meet), ThreadPoolExecutor(2) as threads:
        results = list(threads.map(runs[do], models))
    assert all(torch.equal(each, alone) for each in results)
    assert minilm.model.config._attn_implementation == setting


class Around:
    """Calls what it holds."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.held(*args, **kwargs)


def default(held: Any) -> Any:
    def called(*args: Any, _held: Any = held, **kwargs: Any) -> Any:
        return _held(*args, **kwargs)

    return called


def closure(held: Any) -> Any:
    return lambda *args, **kwargs: held(*args, **kwargs)


WRAPPED: list[Callable[[Any], Any]] = [
    Around,
    default,
    closure,
    lambda held: closure(Around(held)),
    lambda held: Around(held).__call__,
    lambda held: MethodType(lambda _self, *args, **kwargs: held(*args, **kwargs), held.__self__),
    lambda held: functools.partial(lambda *args, _held, **kwargs: _held(*args, **kwargs), _held=held),
]


@pytest.mark.parametrize("wrapped", WRAPPED)
def test_attention_behind_what_replaces_a_method_is_the_copys(wrapped: Callable[[Any], Any]) -> None:
    model = make_model("llama")
    attention = model.layers[0].self_attn
    attention.forward = wrapped(attention.forward)
    trace = Model(model, None, name="llama").trace(ids=IDS)
    assert not any(note.startswith("attention in") for note in trace.status.notes)


def test_a_copy_follows_the_original() -> None:
    model = make_model("llama")
    twin, ids = Twin(model), torch.tensor([IDS])
    copied, layer = twin.model, model.layers[0]

    def same() -> bool:
        twin.refresh()
        assert twin.model is copied
        with torch.no_grad():
            return torch.equal(copied(ids)[0], model(ids)[0])

    before = copied(ids)[0]
    assert same()
    assert not {*map(id, model.modules())} & {*map(id, copied.modules())}
    assert copied.config is copied.layers[0].self_attn.config is not model.config
    assert all(a is b for a, b in zip(model.parameters(), copied.parameters(), strict=True))
    layer.mlp.act_fn = nn.Tanh()
    with layer.register_forward_hook(lambda _module, _args, out: out * 2):
        assert same()
        assert not torch.equal(copied(ids)[0], before)
    own, seen = layer.self_attn.forward, list[nn.Module]()

    def counted(*args: Any, **kwargs: Any) -> Any:
        seen.append(own.__self__)
        return own(*args, **kwargs)

    layer.self_attn.forward = counted
    model.layers[1].forward = functools.partial(
        lambda module, *args, **kwargs: type(module).forward(module, *args, **kwargs), model.layers[1]
    )
    model.scale = 3.0
    assert same()
    assert copied.scale == 3.0
    assert seen == [copied.layers[0].self_attn, layer.self_attn]
    trace = Model(model, None, name="llama").trace(ids=IDS)
    assert len(trace.attention) == 2
    del layer.self_attn.forward, model.layers[1].forward, model.scale
    assert same()
    assert not hasattr(copied, "scale")
    gone = weakref.ref(layer.mlp)
    layer.mlp = nn.Identity()
    assert same()
    model._compiled_call_impl = nn.Identity()  # as model.compile() sets it: what is compiled cannot be watched
    twin.refresh()
    copied(ids)
    gc.collect()
    assert gone() is None
