"""regard: see what every token of a text pays attention to, exactly and at any length.

Names are loaded when they are first used, so that `import regard` and `regard --help` don't wait for torch. The imports
for type checkers list them.
"""

from typing import TYPE_CHECKING

from regard.lazy import ABOVE, lazy_names
from regard.version import __version__ as __version__

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
    from regard.capture.interventions.activations import patch as patch
    from regard.capture.interventions.activations import steer as steer
    from regard.capture.interventions.activations import steering_vector as steering_vector
    from regard.capture.interventions.names import ablate as ablate
    from regard.capture.interventions.names import edge as edge
    from regard.capture.interventions.names import head as head
    from regard.capture.watching.watch import watch as watch
    from regard.diffusion.pipeline import load_pipeline as load_pipeline
    from regard.errors import RegardError as RegardError
    from regard.explain.causes import outcomes as outcomes
    from regard.models.load import load as load
    from regard.nn.config import TransformerConfig as TransformerConfig
    from regard.nn.multihead import MultiHeadAttention as MultiHeadAttention
    from regard.nn.single_head import CrossAttention as CrossAttention
    from regard.nn.single_head import SelfAttention as SelfAttention
    from regard.nn.transformer import Transformer as Transformer
    from regard.questions.attribution.direct import attribution as attribution
    from regard.questions.attribution.gradients import attribute_to_tokens as attribute_to_tokens
    from regard.questions.generate.answer import generated as generated
    from regard.questions.map.whole import matrix as matrix
    from regard.questions.patch.sweep import attribution_patching as attribution_patching
    from regard.questions.patch.sweep import patch_sweep as patch_sweep
    from regard.questions.see.answer import see as see
    from regard.questions.steps import steps as steps
    from regard.questions.why.causes import why as why
    from regard.questions.why.score import score_sources as score_sources
    from regard.text.neutral_sentences import neutral_sentences as neutral_sentences
    from regard.trace.file import open as open  # noqa: A004 (regard.open is its name)
    from regard.trace.file import save as save
    from regard.trace.trace import Trace as Trace
    from regard.verify.check import check as check
    from regard.views.bertviz import head_view as head_view
    from regard.views.bertviz import model_view as model_view
    from regard.views.plot import plot as plot
    from regard.views.save_page import save_page as save_page
    from regard.views.show import show as show
    from regard.vision.answer import looked as looked

ABOVE |= {  # functions of higher modules, which low classes call through `lazy.from_above`
    "GivenMap": "regard.attention.given_map",
    "attention_html": "regard.display.notebook",
    "calls_html": "regard.display.notebook",
    "generated_parts": "regard.views.show",
    "parts_html": "regard.display.notebook",
    "plain_text_of_parts": "regard.display.terminal_parts",
    "read_images": "regard.vision.read",
    "rows_parts": "regard.display.notebook",
    "save_calls": "regard.trace.file",
    "trace_parts": "regard.views.show",
    "traces_without": "regard.vision.read",
}
__getattr__, _names = lazy_names(__name__)
__all__ = [*_names(), "__version__"]


def __dir__() -> list[str]:
    return sorted(__all__)
