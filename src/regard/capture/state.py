"""Hold what is observed while a model runs one captured pass."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from regard.capture.comparison import Comparison
from regard.capture.options import CaptureOptions

SAME_INPUTS = "the model's own attention on the same queries and keys"


@dataclass
class Capture:
    """The state of one captured pass: what is set before it, and what is observed during it.

    Set before:
        module_paths: the path of every module of the model, by its id.
        keep: what of the pass is kept.
        compare: whether sampled rows are compared at all.
        written_masks: whether the model gets its masks as tensors, for families that compute with them.
        skipped_layers: the paths of layers that repeat what they gave in an earlier pass.
        call_masks: a list that the mask of every call is appended to, None where they are not needed.
        around_call: a context for each call, by its path and its numbers of queries and keys, None for none.
        at_call: a function of its path that is called after each call, None for none.

    Observed during it:
        calls: how many attention calls were made.
        layer: the path of the stack and the number of the layer that runs now, None between layers.
        cross_paths: the paths of attention modules that take keys from another sequence than their own.
        comparison: sampled rows of the calls, compared.
        contradiction: whether PyTorch's kernels would attend causally where the family's eager attention does not.
        reordered: whether linear maps were summed in another order than the model's own.
    """

    module_paths: Mapping[int, str]
    keep: CaptureOptions = field(default_factory=CaptureOptions)
    compare: bool = True
    written_masks: bool = False
    skipped_layers: frozenset[str] = frozenset()
    call_masks: list[Any] | None = None
    around_call: Callable[[str, int, int], AbstractContextManager[None]] | None = None
    at_call: Callable[[str], None] | None = None
    calls: int = 0
    layer: tuple[str, int] | None = None
    cross_paths: set[str] = field(default_factory=set)
    comparison: Comparison = field(default_factory=lambda: Comparison(SAME_INPUTS))
    contradiction: bool = False
    reordered: bool = False

    def count_call(self, path: str) -> None:
        """Count an attention call that the module of this path has just made."""
        self.calls += 1
        if self.at_call is not None:
            self.at_call(path)
