"""Take the model and its tokenizer out of the objects that people hold: pipelines, adapters, compiled models."""

from typing import Any

import transformers
from torch import nn

from regard.capture.watching.call_sites import without_wrappers
from regard.errors import RegardError

SENTENCE_MODELS = {"SentenceTransformer", "SparseEncoder", "CrossEncoder"}  # of sentence-transformers


def unwrapped(source: Any, tokenizer: Any, processor: Any) -> tuple[Any, Any, Any]:
    """Return (model, tokenizer, processor). A tokenizer or processor that you pass replaces the object's own.

    A source that wraps nothing is returned as it is.
    """
    classes = {base.__name__ for base in type(source).__mro__}  # of packages that may not be installed
    inner: Any = source
    if isinstance(source, transformers.Pipeline):
        inner = source.model
        tokenizer = source.tokenizer if tokenizer is None else tokenizer
        processor = processor or getattr(source, "processor", None) or source.image_processor
    elif classes & SENTENCE_MODELS:
        inner = getattr(source, "transformers_model", None) or getattr(source, "model", None)
        if not isinstance(inner, nn.Module):
            raise RegardError(f"load: given a {type(source).__name__} without a transformers model")
        tokenizer = source.tokenizer if tokenizer is None else tokenizer
    elif "PeftModel" in classes:
        if not hasattr(source.base_model, "merge_and_unload"):
            kind = source.peft_config[source.active_adapter].peft_type.value
            raise RegardError(f"load: {kind} isn't part of its weights: pass model.get_base_model(), without it")
        inner = source.get_base_model()  # has the adapter in its layers
    elif isinstance(source, nn.Module):
        inner = without_wrappers(source)
    return (source, tokenizer, processor) if inner is source else unwrapped(inner, tokenizer, processor)
