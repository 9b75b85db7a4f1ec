"""A call has the number of the layer that makes it, each part counts its own, as a trace numbers its maps."""

import torch

from regard.capture.interventions.call_ids import CallId, CallNumbering, KnownCallIds
from regard.capture.state import Capture, LayerStack
from tests.support.attention_outputs import make_model


def numbering(kind: str, pairs: bool, **changes) -> tuple[CallNumbering, Capture]:
    model = make_model(kind, **changes)
    capture = Capture({id(module): path for path, module in model.named_modules()})
    return CallNumbering(model, capture, pairs=pairs), capture


def stack(path: str, layers: int) -> LayerStack:
    return LayerStack(path, [torch.zeros(1, 1, 1)] * (layers + 1), True)


def test_one_stack() -> None:
    ids, capture = numbering("bert", False)
    capture.layer = "encoder.layer", 0
    assert ids("encoder.layer.0.attention.self", 0) == CallId(None, 0)
    capture.layer = "encoder.layer", 1
    assert ids("encoder.layer.1.attention.self", 0) == CallId(None, 1)
    assert ids("encoder.layer.0.attention.self", 0) == CallId(None, 0)  # asked for once more
    capture.layer = None
    assert ids("pooler", 0) is None
    assert ids.matches({"encoder.layer": stack("encoder.layer", 2)})
    assert not ids.matches({"other.layer": stack("other.layer", 2)})


def test_one_module_for_every_layer() -> None:
    ids, capture = numbering("albert", False)
    path = "encoder.albert_layer_groups.0.albert_layers.0.attention"
    for n in range(3):
        capture.layer = "encoder.albert_layer_groups", n
        assert ids(path, n) == CallId(None, n)


def test_several_calls_of_a_layer() -> None:
    ids, capture = numbering("diffllama", False)
    capture.layer = "layers", 1
    assert [ids("layers.1.self_attn", nth) for nth in range(2)] == [CallId(None, 1, 0), CallId(None, 1, 1)]


def test_a_call_outside_of_layers_has_no_id() -> None:
    ids, _ = numbering("bert", False)
    assert ids("encoder.layer.0.attention.self", 0) is None
    assert not ids.matches({"encoder.layer": stack("encoder.layer", 2)})  # so that nothing of it is ablated unseen


def test_the_parts_of_a_pair_are_numbered_each() -> None:
    ids, capture = numbering("marian", True)
    capture.cross_paths.add("decoder.layers.0.encoder_attn")
    capture.cross_paths.add("decoder.layers.1.encoder_attn")
    paths = [f"encoder.layers.{n}.self_attn" for n in (0, 1)]
    paths += [f"decoder.layers.{n}.{name}_attn" for n in (0, 1) for name in ("self", "encoder")]
    expected = [("encoder", 0), ("encoder", 1), ("decoder", 0), ("cross", 0), ("decoder", 1), ("cross", 1)]
    for path, (part, layer) in zip(paths, expected, strict=True):
        capture.layer = path[:14], layer
        assert ids(path, 0) == CallId(part, layer)
    both = {path: stack(path, 2) for path in ("encoder.layers", "decoder.layers")}
    assert ids.matches(both)
    capture.cross_paths.clear()  # had it been known only after the pass that they take keys from another sequence
    assert not ids.matches(both)


def test_known_ids_are_a_copy() -> None:
    ids, capture = numbering("bert", False)
    capture.layer = "encoder.layer", 1
    ids("encoder.layer.1.attention.self", 0)
    known = KnownCallIds.of(ids)
    ids("encoder.layer.0.attention.self", 0)
    assert known("encoder.layer.1.attention.self", 0) == CallId(None, 1)
    assert len(known.ids) == 1
    assert known.matches({})
