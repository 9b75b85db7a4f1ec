"""Record what the picture looks at while a pipeline of diffusers runs: the weights to every word, at every step."""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from regard.attention.attend import attend
from regard.attention.attention_map import AttentionMap
from regard.attention.recording import scope
from regard.diffusion.heat import HeatLayer, PromptHeat
from regard.diffusion.prompt import READS, EncodedText, Reads, encoded_text, read_prompt
from regard.errors import RegardError
from regard.memory import require_memory


def painting_model(pipeline: Any) -> nn.Module:
    """Find the model of a pipeline that makes its picture."""
    model = getattr(pipeline, "unet", None) or getattr(pipeline, "transformer", None)
    kind = type(model).__name__
    if not isinstance(model, nn.Module) or kind not in READS or not hasattr(pipeline, "encode_prompt"):
        has = f"a {kind}" if isinstance(model, nn.Module) else "no model that paints a text"
        raise RegardError(f"pipeline: given a {type(pipeline).__name__} with {has}, needs one of {', '.join(READS)}")
    return model


@contextmanager
def recorded_heat(pipeline: Any, *, heads: bool = True) -> Iterator[PromptHeat]:
    """Record, while a pipeline runs inside the block, how much its picture looks at every word of its text.

    The pipeline is run as its user runs it, once in a block, and paints what it paints without one.
    """
    model = painting_model(pipeline)
    own = _Recorder(pipeline, READS[type(model).__name__], inspect.signature(model.forward), heads)
    hook = model.register_forward_pre_hook(own.begin_step, with_kwargs=True)
    try:
        with encoded_text(pipeline, own.begin_text) as own.texts, answered_attention(model, own.see):
            yield own.heat
    finally:
        hook.remove()
    if own.calls and not own.heat.weights:
        raise RegardError("the words were not found in what the pipeline's model is given: nothing was recorded")


@dataclass
class _Recorder:
    """What is known while a pipeline runs."""

    pipeline: Any
    reads: Reads
    signature: inspect.Signature
    heads: bool
    heat: PromptHeat = field(default_factory=PromptHeat)
    texts: list[EncodedText] = field(default_factory=list)
    calls: int = 0
    held: set[str] = field(default_factory=set)  # modules whose weights to the words this step has
    rows: list[int] = field(default_factory=list)  # of the model's call now, that have the words
    places: tuple[int, int, int] = (0, 0, 1)  # its rows and columns, and by how much a place may be coarser

    def begin_text(self) -> None:
        """Refuse a second picture, whose weights would be taken for the first's."""
        if self.calls:
            raise RegardError("a second text was painted in one block: needs a block for each")

    def begin_step(self, model: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        """Find the rows with the words, and the grid of the picture."""
        given = self.signature.bind(*args, **kwargs).arguments
        states = given.get("encoder_hidden_states")
        self.calls += 1
        self.rows = self.texts[0].rows(states) if self.texts and isinstance(states, Tensor) else []
        if not self.rows or not isinstance(states, Tensor):
            self.heat.guided = True  # a run of its own, without the words
            return
        self.heat.guided |= len(self.rows) < len(states)
        if not self.heat.weights:
            self.heat.prompt = read_prompt(self.pipeline, self.texts[0], self.reads.encoders, states.shape[1])
            self.places = _places(model, given)
        elif len(self.heat.weights) == 1:
            self._require_memory()
        self.heat.weights.append([])
        self.held = set()

    def see(self, path: str, given: Mapping[str, object], weights: AttentionMap) -> None:
        """Keep the weights from the picture to the words, where a call has them."""
        if not self.rows:
            return
        if path in self.held:  # the first call of a module has the words
            self.heat.beside.add(path)
            return
        words, (_, _, queries, keys) = self.heat.prompt.length, weights.shape
        if self.reads.first is None:
            crossed = given.get("encoder_hidden_states") is not None and keys == words
            places, at_places, at_words = queries, slice(None), slice(None)
        else:
            places = self.places[0] * self.places[1]
            crossed = queries == keys == places + words
            picture, text = (0, places) if self.reads.first == "picture" else (words, 0)
            at_places, at_words = slice(picture, picture + places), slice(text, text + words)
        if not crossed:
            self.heat.others.add(path)
            return
        grid = _grid(self.places, places, path)
        kept = torch.stack([self._kept(weights[row, :, at_places, at_words]) for row in self.rows])
        if len(self.heat.weights) == 1:
            self.heat.layers.append(HeatLayer(path, weights.shape[1], grid))
        self.held.add(path)
        self.heat.weights[-1].append(kept.unflatten(2, grid).cpu())

    def _kept(self, weights: Tensor) -> Tensor:
        """Of (H, P, T) the tokens' weights, and the sum of all padding's."""
        prompt = self.heat.prompt
        padding = weights[..., prompt.padding].sum(-1, keepdim=True)
        kept = torch.cat([weights[..., list(prompt.keys)], padding], -1)
        return kept if self.heads else kept.mean(0, keepdim=True)

    def _require_memory(self) -> None:
        steps = len(getattr(self.pipeline.scheduler, "timesteps", ()))
        need = steps * sum(each.nbytes for each in self.heat.weights[0])
        helps = "keep the mean of heads alone (heads=False), or take fewer steps"
        require_memory(need, torch.device("cpu"), f"the weights of {steps} steps", helps)


def _places(model: nn.Module, given: Mapping[str, object]) -> tuple[int, int, int]:
    """The rows and columns of what a model is given, in its patches, and how much coarser a layer's may be."""
    at = given.get("img_ids")  # Flux is given its patches in a line, and where each lies
    if isinstance(at, Tensor):
        high, wide = (int(at.reshape(-1, 3)[:, axis].max()) + 1 for axis in (1, 2))
        return high, wide, 1
    latents = given.get("sample", given.get("hidden_states"))
    assert isinstance(latents, Tensor)
    high, wide = latents.shape[-2:]
    patch = getattr(model.config, "patch_size", None)
    return (high, wide, max(high, wide)) if patch is None else (high // patch, wide // patch, 1)


def _grid(places: tuple[int, int, int], count: int, path: str) -> tuple[int, int]:
    """The rows and columns of so many places: those of the picture, halved as often as a U-Net does."""
    high, wide, most = places
    coarser = 1
    while coarser <= most:
        rows, columns = -(-high // coarser), -(-wide // coarser)
        if rows * columns == count:
            return rows, columns
        coarser *= 2
    raise RegardError(f"{path}: {count} places are no grid of {high} by {wide}, nor of one that is coarser")


@runtime_checkable
class CallSeen(Protocol):
    """What is told of every attention call: its module's path and named arguments, and its weights (B, H, L, S)."""

    def __call__(self, path: str, given: Mapping[str, object], weights: AttentionMap) -> None:
        """Take what is needed of the weights; they are computed when they are asked for."""


@dataclass
class _Inside:
    """An attention module that runs: its path, what it was given, and whether a call of it was seen."""

    path: str
    given: Mapping[str, object]
    seen: bool = field(default=False)


class _Answered(TorchFunctionMode):
    """Attention calls inside attention modules, computed by `attend`; those of other modules are left alone."""

    def __init__(self, see: CallSeen) -> None:
        super().__init__()
        self.see = see
        self.inside: list[_Inside] = []

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function is functional.scaled_dot_product_attention and self.inside:
            return self.attend(*args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))

    def attend(
        self,
        query: Float[Tensor, "B H L D"],
        key: Float[Tensor, "B G S D"],
        value: Float[Tensor, "B G S E"],
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Float[Tensor, "B H L E"]:
        """Compute what torch would; fewer key than query heads need no flag here."""
        module = self.inside[-1]
        module.seen = True
        of: dict[str, Any] = (
            {} if attn_mask is None else {"mask" if attn_mask.dtype == torch.bool else "bias": attn_mask}
        )
        causal: dict[str, Any] = {"causal": True, "offset": 0} if is_causal else {}
        with scope(module.path):
            found = attend(query, key, value, scale=scale, dropout=dropout_p, **of, **causal)
        self.see(module.path, module.given, found.weights)
        return found.output


@contextmanager
def answered_attention(model: nn.Module, see: CallSeen) -> Iterator[None]:
    """Answer the attention calls of a model's attention modules inside the block, and tell `see` of each."""
    modules = {path: each for path, each in model.named_modules() if hasattr(each, "processor")}
    if not modules:
        raise RegardError(f"a {type(model).__name__} has no attention modules of diffusers: nothing of it can be seen")
    mode = _Answered(see)
    with ExitStack() as stack:
        for path, module in modules.items():
            for hook in _hooks(module, path, mode.inside):
                stack.callback(hook.remove)
        stack.enter_context(mode)
        yield


def _hooks(module: nn.Module, path: str, inside: list[_Inside]) -> list[Any]:
    """Say on which path a module's calls are, from its beginning to its end, however it ends."""

    def begin(_: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        inside.append(_Inside(path, kwargs))

    def end(_: nn.Module, args: object, output: object) -> None:
        if inside and not inside.pop().seen and output is not None:  # None: it raised
            raise RegardError(
                f"{path}: its processor {type(module.processor).__name__} does not compute attention by torch's "
                "scaled_dot_product_attention: its weights cannot be seen; needs diffusers' own AttnProcessor2_0, as "
                "a pipeline has it where none is set"
            )

    return [
        module.register_forward_pre_hook(begin, with_kwargs=True),
        module.register_forward_hook(end, always_call=True),
    ]
