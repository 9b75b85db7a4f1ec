"""regard: see what every token of a text pays attention to, exactly and at any length.

Names are loaded when they are first used, so that `import regard` and `regard --help` do not wait for torch.
"""

from typing import TYPE_CHECKING

from regard.lazy import lazy_names

if TYPE_CHECKING:
    from regard import corpus as corpus
    from regard import explain as explain
    from regard import nn as nn
    from regard import text as text
    from regard import textbook as textbook
    from regard import train as train
    from regard.attention import masks as masks
    from regard.attention.attend import Attention as Attention
    from regard.attention.attend import attend as attend
    from regard.attention.attention_map import AttentionMap as AttentionMap
    from regard.attention.map_statistics import Statistics as Statistics
    from regard.attention.recording import record as record
    from regard.capture.interventions.names import ablate as ablate
    from regard.capture.interventions.names import edge as edge
    from regard.capture.interventions.names import head as head
    from regard.capture.interventions.patch import patch as patch
    from regard.capture.interventions.steer import steer as steer
    from regard.capture.interventions.steer import steering_vector as steering_vector
    from regard.capture.watching.watch import watch as watch
    from regard.diffusion.pipeline import load_pipeline as load_pipeline
    from regard.errors import RegardError as RegardError
    from regard.explain.causes import outcomes as outcomes
    from regard.models.load import load as load
    from regard.models.see_texts import see as see
    from regard.nn.config import TransformerConfig as TransformerConfig
    from regard.nn.multihead import MultiHeadAttention as MultiHeadAttention
    from regard.nn.single_head import CrossAttention as CrossAttention
    from regard.nn.single_head import SelfAttention as SelfAttention
    from regard.nn.transformer import Transformer as Transformer
    from regard.questions.check.check import check as check
    from regard.text.neutral_sentences import neutral_sentences as neutral_sentences
    from regard.trace.any_attention import plot as plot
    from regard.trace.file import open as open  # noqa: A004 (regard.open is its name)
    from regard.trace.file import save as save
    from regard.trace.trace import Trace as Trace
    from regard.web.bertviz import head_view as head_view
    from regard.web.bertviz import model_view as model_view
    from regard.web.save_page import save_page as save_page
    from regard.web.show import show as show

__version__ = "0.1.0"

_WHERE = {
    "Attention": "regard.attention.attend",
    "AttentionMap": "regard.attention.attention_map",
    "CrossAttention": "regard.nn.single_head",
    "MultiHeadAttention": "regard.nn.multihead",
    "RegardError": "regard.errors",
    "SelfAttention": "regard.nn.single_head",
    "Statistics": "regard.attention.map_statistics",
    "Trace": "regard.trace.trace",
    "Transformer": "regard.nn.transformer",
    "TransformerConfig": "regard.nn.config",
    "check": "regard.questions.check.check",
    "corpus": "regard",
    "ablate": "regard.capture.interventions.names",
    "attend": "regard.attention.attend",
    "edge": "regard.capture.interventions.names",
    "head": "regard.capture.interventions.names",
    "load": "regard.models.load",
    "load_pipeline": "regard.diffusion.pipeline",
    "head_view": "regard.web.bertviz",
    "masks": "regard.attention",
    "model_view": "regard.web.bertviz",
    "neutral_sentences": "regard.text.neutral_sentences",
    "open": "regard.trace.file",
    "explain": "regard",
    "nn": "regard",
    "outcomes": "regard.explain.causes",
    "text": "regard",
    "textbook": "regard",
    "train": "regard",
    "patch": "regard.capture.interventions.patch",
    "plot": "regard.trace.any_attention",
    "record": "regard.attention.recording",
    "save": "regard.trace.file",
    "save_page": "regard.web.save_page",
    "see": "regard.models.see_texts",
    "steer": "regard.capture.interventions.steer",
    "steering_vector": "regard.capture.interventions.steer",
    "show": "regard.web.show",
    "watch": "regard.capture.watching.watch",
}

_RENAMED: dict[str, tuple[str, str]] = {}  # old name: (new name, version without the old one); see CONTRIBUTING.md

__all__ = [*sorted(_WHERE), "__version__"]
__getattr__ = lazy_names(__name__, _WHERE, _RENAMED)


def __dir__() -> list[str]:
    return sorted(__all__)
