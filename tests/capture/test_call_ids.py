"""Calls are numbered in the order they are made, each part by itself, as a trace numbers its maps."""

import torch

from regard.capture.call_ids import CallId, CallNumbering, KnownCallIds
from regard.capture.hidden_states import LayerStack
from regard.capture.state import Capture
from tests.support.attention_outputs import make_model


def numbering(kind: str, pairs: bool, **changes) -> tuple[CallNumbering, Capture]:
    model = make_model(kind, **changes)
    capture = Capture({id(module): path for path, module in model.named_modules()})
    return CallNumbering(model, capture, pairs=pairs), capture


def stack(path: str, layers: int) -> LayerStack:
    return LayerStack(path, [torch.zeros(1, 1, 1)] * (layers + 1), True)


def test_one_stack() -> None:
    ids, _ = numbering("bert", False)
    assert ids("encoder.layer.0.attention.self", 0) == CallId(None, 0)
    assert ids("encoder.layer.1.attention.self", 0) == CallId(None, 1)
    assert ids("encoder.layer.0.attention.self", 0) == CallId(None, 0)  # asked for once more
    assert ids("pooler", 0) is None
    assert ids.counts == {None: 2}
    assert ids.matches({"encoder.layer": stack("encoder.layer", 2)})
    assert not ids.matches({"other.layer": stack("other.layer", 2)})


def test_one_module_for_every_layer() -> None:
    ids, _ = numbering("albert", False)
    path = "encoder.albert_layer_groups.0.albert_layers.0.attention"
    assert [ids(path, nth) for nth in range(3)] == [CallId(None, n) for n in range(3)]


def test_the_parts_of_a_pair_are_numbered_each() -> None:
    ids, capture = numbering("marian", True)
    capture.cross_paths.add("decoder.layers.0.encoder_attn")
    capture.cross_paths.add("decoder.layers.1.encoder_attn")
    paths = [f"encoder.layers.{n}.self_attn" for n in (0, 1)]
    paths += [f"decoder.layers.{n}.{name}_attn" for n in (0, 1) for name in ("self", "encoder")]
    assert [ids(path, 0) for path in paths] == [
        CallId("encoder", 0),
        CallId("encoder", 1),
        CallId("decoder", 0),
        CallId("cross", 0),
        CallId("decoder", 1),
        CallId("cross", 1),
    ]
    both = {path: stack(path, 2) for path in ("encoder.layers", "decoder.layers")}
    assert ids.matches(both)
    capture.cross_paths.clear()  # had it been known only after the pass that they take keys from another sequence
    assert not ids.matches(both)


def test_known_ids_are_a_copy() -> None:
    ids, _ = numbering("bert", False)
    ids("encoder.layer.1.attention.self", 0)
    known = KnownCallIds.of(ids)
    ids("encoder.layer.0.attention.self", 0)
    assert known("encoder.layer.1.attention.self", 0) == CallId(None, 0)
    assert known.counts == {None: 1}
    assert len(known.ids) == 1
    assert known.matches({})
