"""Files of format version 1, described as those of today are."""

from typing import Any

TOKEN = ("id", "text", "start", "end", "word", "special")


def renewed(old: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The description of a trace whose tensors had names by rule: all layers, no cross-attention, no blocks."""
    layers = []
    for n, layer in enumerate(old["layers"]):
        tensors = {name: f"{prefix}attention.{n}.{name}" for name in layer["tensors"]}
        value = f"{prefix}values.{n}" if layer["value"] else None
        layers.append({"layer": n, "map": layer["map"], "tensors": tensors, "value": value, "block": None})
    return {
        "kind": "trace",
        "text": old["text"],
        "tokens": [[token[name] for name in TOKEN] for token in old["tokens"]],
        "vectors": {name: prefix + name for name in old["parts"]},
        "states": {"count": old["states"], "held": [[n, f"{prefix}states.{n}"] for n in range(old["states"])]},
        "attention": {"layers": len(layers), "blocks": False, "held": layers},
        "cross": {"layers": 0, "blocks": False, "held": []},
        "status": old["status"],
    }
