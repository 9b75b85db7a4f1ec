"""Tiny random classifiers of transformers, with the default model's tokenizer."""

from collections.abc import Sequence
from typing import Any

import torch
import transformers

import regard
from tests.support import default_model

LABELS = ("NEGATIVE", "NEUTRAL", "POSITIVE")
KINDS = ("Bert", "Roberta", "DistilBert", "DebertaV2", "Llama")
HEADS = ("SequenceClassification", "TokenClassification", "MultipleChoice", "QuestionAnswering")


def classifier(kind: str, head: str, labels: Sequence[str] = LABELS, **changes: Any) -> Any:
    """A random classifier of a family, as `regard.load` opens it."""
    torch.manual_seed(0)
    names = ("a", "b") if head == "QuestionAnswering" else labels
    sizes: dict[str, Any] = {"vocab_size": default_model().tokenizer.vocab_size, "pad_token_id": 0}
    sizes |= {"num_labels": len(names), "id2label": dict(enumerate(names)), "max_position_embeddings": 64}
    sizes |= {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 48}
    sizes |= {"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 48} if kind == "DistilBert" else {}
    sizes |= {"type_vocab_size": 2} if kind == "Roberta" else {}
    sizes |= {"num_key_value_heads": 3} if kind == "Llama" else {}
    if kind == "DistilBert":
        del sizes["hidden_size"], sizes["num_hidden_layers"], sizes["num_attention_heads"]
    model = getattr(transformers, f"{kind}For{head}")(getattr(transformers, f"{kind}Config")(**(sizes | changes)))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3 + (parameter.ndim == 1))
    return regard.load(model.eval(), tokenizer=default_model().tokenizer)


def plain_logits(model: Any, *texts: Any, **how: Any) -> torch.Tensor:
    """What the model itself gives for one text, (L, C) or (C,), in its own dtype."""
    given = {
        name: x
        for name, x in model.tokenizer(*texts, return_tensors="pt", **how).items()
        if name in model._session.takes
    }
    if "MultipleChoice" in type(model.model).__name__:
        given = {name: x[:, None] for name, x in given.items()}
    with torch.no_grad():
        output = model.model(**given)
    if "start_logits" in output:
        return torch.stack([output.start_logits, output.end_logits], -1)[0]
    return torch.as_tensor(output.logits[0])
