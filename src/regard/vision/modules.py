"""Run vision transformers of timm and torchvision as models that read images. regard needs neither package.

timm's models have settings for preprocessing images (`pretrained_cfg`). torchvision has `weights.transforms()`.

`watch` records the attention of a model, and hooks record the states of its layers. A layer is the innermost module in
a list that contains an attention call. Within a stage, each layer reads the previous layer's output. Swin halves its
grid of patches from stage to stage, so a trace has the layers of a single stage. Swin attends within windows, which are
separate items of the batch. regard moves their weights to the positions of the patches on the grid.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor, nn

from regard.attention.attention_map import HELPS, AttentionMap
from regard.attention.recording import Call, record
from regard.capture.build_trace import CapturedPass
from regard.capture.inputs import ModelInput, named_tokens, unreadable_inputs
from regard.capture.options import NO_LAYERS, CaptureOptions
from regard.capture.prefix import NO_REUSE, PassReuse
from regard.capture.regard_attention import DEFINITION, compare_with_definition
from regard.capture.session import Session
from regard.capture.state import Capture, Comparison, LayerStack
from regard.capture.watching.watch import watch
from regard.checks import numbers_there
from regard.errors import RegardError
from regard.memory import require_memory
from regard.model_files.suppress_warnings import quiet
from regard.models.kinds import ModelKind
from regard.models.model import Model
from regard.text.tokens import Encoded

COMPARED = f"{DEFINITION}, or the weights that the model computes"
FINAL_NORMS = ("norm", "encoder.ln")  # paths in models of timm and torchvision
# Modules whose windows are supported, and whether they also shift along an axis that a single window covers.
WINDOWED = {
    "timm.models.swin_transformer": True,
    "timm.models.swin_transformer_v2": True,
    "torchvision.models.swin_transformer": False,
}


class WatchedLayer(NamedTuple):
    """A layer: the path of its module, its input and output states, and its attention calls."""

    path: str
    entered: Tensor
    left: Tensor
    calls: list[Call]


class WatchedSession(Session):
    """Runs and captures forward passes of a `regard.vision.modules.VisionModule`."""

    def run(
        self, sources: list[Encoded], targets: list[Encoded] | None, interventions: Sequence[Sequence[Any]],
        keep: CaptureOptions | None = None, reuse: PassReuse = NO_REUSE,
    ) -> CapturedPass:  # fmt: skip
        """Run and capture a forward pass on an image."""
        item, keep = sources[0], replace(keep or CaptureOptions(), attention_outputs=False)
        assert isinstance(item, ModelInput)
        if any(interventions):
            raise RegardError("interventions work on texts only: use regard.watch(model, interventions=...)")
        with self.alone(), torch.no_grad(), quiet():
            layers, notes, final = self._layers(item)
        stages = stages_of(layers)
        stage = self._stage(stages, keep.layers)
        grid, end = layers[stage.start].left.shape[1:-1], stage.stop
        stack, calls, comparison = LayerStack(layers[-1].path.rpartition(".")[0]), list[Call](), Comparison(COMPARED)
        for number, call in [(n, call) for n, layer in enumerate(layers[:end]) for call in layer.calls]:
            placed = self._place_on_grid(call, layers[number].path, grid) if number in stage else call
            if placed is None:
                notes.append(
                    f"Layer {number}: {call.path!r} attends among other tokens, {call.source.shape}: left out."
                )
                continue
            stack.calls[call.path, call.nth] = number
            if number in stage and keep.attention and (keep.layers is None or number in keep.layers):
                calls.append(placed)
                if placed.weights.given is not None:  # returned by the model
                    comparison.add(0.0, 0.0, placed.weights.full_shape[2])
                elif keep.compare and placed.output is not None:
                    compare_with_definition(comparison, placed, placed.output.transpose(1, 2))
        if keep.attention and keep.layers != NO_LAYERS and not calls:
            raise RegardError("\n  ".join([f"{self.name}: no layer attends among the tokens that it receives", *notes]))
        if len(stages) > 1:
            keep = replace(keep, layers=frozenset(stage) if keep.layers is None else keep.layers)
            notes.append(f"The trace ends with layer {end - 1}. Layers by tokens, for layers=: {_ranges(stages)}.")
        states = [layers[stage.start].entered, *(layers[n].left for n in stage)]
        numbered = {n: s.flatten(1, -2) for n, s in enumerate(states, stage.start) if keep.state(n) or n == end}
        stack.hidden_states, stack.count = numbered, end + 1
        if (patches := item.patches) is not None and len(grid) == 2:
            sides = zip((item.tensors or {})["pixel_values"].shape[2:], grid, strict=True)
            has_grid = self._uses_windows(layers[stage.start].path) and not any(size % count for size, count in sides)
            item = replace(item, patches=replace(patches, rows=grid[0], columns=grid[1]) if has_grid else None)
        source = named_tokens(item, self.model.config, {"": stack}, calls, False, self.name)
        normed = end == len(layers) and isinstance(final, Tensor) and final.shape == layers[-1].left.shape
        last = {"last_hidden_state": final.flatten(1, -2)} if normed else {}
        capture = Capture(keep=keep, comparison=comparison, last=last)
        return CapturedPass(
            name=self.name, model=self.model, sources=[source], targets=None, calls=calls, stacks={stack.path: stack},
            logits=None, capture=capture, attention_outputs={}, notes=tuple(notes),
        )  # fmt: skip

    def _layers(self, item: ModelInput) -> tuple[list[WatchedLayer], list[str], Any]:
        """Run the model. Return its layers in order, notes on calls outside them, and the final norm's output."""
        states: dict[str, tuple[Any, Any]] = {}

        def note(path: str, _module: nn.Module, args: Any, output: Any) -> None:
            states[path] = (args[0] if args else None), output

        with ExitStack() as stack:
            modules = dict(self.model.module.named_modules())
            for path, module in modules.items():
                in_list = isinstance(modules.get(path.rpartition(".")[0]), nn.ModuleList | nn.Sequential)
                if path in FINAL_NORMS or (in_list and any(True for _ in module.children())):
                    stack.callback(module.register_forward_hook(partial(note, path)).remove)
            calls = stack.enter_context(record(keep=("value", "output")))
            try:
                with watch(self.model.module):
                    self.model(**(item.tensors or {}))
            except RegardError:
                raise
            except Exception as error:  # models can raise any exception
                raise unreadable_inputs(item, self.model, self.name, error) from error
        layers, others = dict[str, WatchedLayer](), dict[str, None]()
        for call in calls.values():
            parts = call.path.split(".")
            paths = (".".join(parts[:n]) for n in range(len(parts) - 1, 0, -1))
            path = next((path for path in paths if path in states), "")
            entered, left = states.get(path, (None, None))
            if left is not None and getattr(entered, "shape", None) == getattr(left, "shape", ()):
                layers.setdefault(path, WatchedLayer(path, entered, left, [])).calls.append(call)
            else:
                others[call.path] = None
        ordered = list(layers.values())
        if not ordered or any(layer.entered is following.entered for layer, following in pairwise(ordered)):
            reason = "layers run side by side" if ordered else "no list of layers was found around its attention"
            raise RegardError(f"{self.name}: {reason}; regard.watch(model) shows its attention")
        notes = [f"Attention calls outside the layers are left out: {', '.join(others)}."] * bool(others)
        return ordered, notes, next((states[path][1] for path in FINAL_NORMS if path in states), None)

    def _stage(self, stages: list[range], layers: frozenset[int] | None) -> range:
        """Return the stage that contains all layers to keep, by default the last stage."""
        numbers, count = sorted(layers or ()), stages[-1].stop
        problem = f"layers: got {', '.join(map(str, numbers))}"
        if numbers and numbers[-1] >= count:
            raise RegardError(f"{problem}, {numbers_there('layer', count, f'{self.name} has')}")
        fitting = [stage for stage in stages if set(numbers) <= set(stage)]
        if not fitting:
            raise RegardError(f"{problem}, which have different tokens: choose among {_ranges(stages)}")
        return fitting[-1]

    def _place_on_grid(self, call: Call, layer: str, grid: torch.Size) -> Call | None:
        """Move a call's weights from windows to patches of the grid. Return None if its tokens aren't the patches."""
        items, _, *sides = call.weights.full_shape
        if not self._uses_windows(layer) or len(grid) != 2:
            if items != 1 or sides != [grid.numel()] * 2:
                return None
            placed_map = copy(call.weights)  # the call's tensors may have no batch axis
            placed_map.ndim, placed_map.shape = 4, placed_map.full_shape
            value, output = (t if t is None else t[(None,) * (4 - t.ndim)] for t in (call.value, call.output))
            return replace(call, source=placed_map, value=value, output=output)
        block: Any = self.model.module.get_submodule(layer)
        part = block if hasattr(block, "shift_size") else block.attn
        size, alone = part.window_size, WINDOWED[type(block).__module__]
        if any(side % window for side, window in zip(grid, size, strict=True)):  # padded windows aren't supported
            return None
        shift = [
            n if alone or side > window else 0 for n, side, window in zip(part.shift_size, grid, size, strict=True)
        ]
        positions = window_positions(grid, size, shift)
        weights, heads, length = call.weights[...], call.weights.full_shape[1], grid.numel()
        purpose = f"attention among {length} patches"
        require_memory(heads * length**2 * weights.element_size(), weights.device, purpose, HELPS)
        result = weights.new_zeros(1, heads, length, length)
        result[0, :, positions[:, :, None], positions[:, None, :]] = weights.transpose(0, 1)
        return replace(call, source=AttentionMap.of_weights(result), value=None, output=None)

    def _uses_windows(self, layer: str) -> bool:
        return type(self.model.module.get_submodule(layer)).__module__ in WINDOWED


def window_positions(grid: Sequence[int], size: Sequence[int], shift: Sequence[int]) -> Int[Tensor, "W A"]:
    """Return the number of the patch at each position of each window, (W, A). Patches are numbered row by row."""
    numbers = torch.arange(grid[0] * grid[1]).view(*grid).roll([-n for n in shift], (0, 1))
    windows = numbers.view(grid[0] // size[0], size[0], grid[1] // size[1], size[1]).transpose(1, 2)
    return windows.reshape(-1, size[0] * size[1])


def stages_of(layers: Sequence[WatchedLayer]) -> list[range]:
    """Group a vision model's layers by stage. If a layer's input isn't the previous output, a new stage begins."""
    pairs = [(layer.left, following.entered) for layer, following in pairwise(layers)]
    starts = [n for n, (a, b) in enumerate(pairs, 1) if a is not b and (a.shape != b.shape or not torch.equal(a, b))]
    return [range(*ends) for ends in pairwise([0, *starts, len(layers)])]


def _ranges(stages: Sequence[range]) -> str:
    return ", ".join(f"{stage.start}–{stage.stop - 1}" for stage in stages)


class VisionModule(nn.Module):
    """A module of timm or torchvision with the interface of a vision model of transformers.

    config: patch_size (None if the tokens aren't patches) and prefix_tokens, the names of the tokens before patches.
    """

    main_input_name, session_class = "pixel_values", WatchedSession
    dtype = property(lambda self: next(self.parameters()).dtype)
    device = property(lambda self: next(self.parameters()).device)

    def __init__(self, module: nn.Module, config: SimpleNamespace) -> None:
        super().__init__()
        self.module, self.config = module, config

    def forward(self, pixel_values: Tensor) -> Any:
        """Run the timm or torchvision module on pixels, (B, 3, height, width)."""
        return self.module(pixel_values)

    def get_output_embeddings(self) -> None:
        """Return None, because there is no language head and no embedding table."""

    get_input_embeddings = can_generate = get_output_embeddings


def preprocess(transform: Any, images: Any, return_tensors: str = "pt") -> dict[str, Tensor]:
    """Preprocess an image with a transform, image -> (3, height, width), like an image processor of transformers."""
    if transform is None:
        advice = "pass load(model, processor=weights.transforms())"
        raise RegardError(f"torchvision models don't say how images are preprocessed: {advice}")
    return {"pixel_values": transform(images)[None]}


class VisionKind(ModelKind):
    """Opens modules of timm or torchvision."""

    def model(self, source: Any, tokenizer: Any, processor: Any) -> Model | None:
        """Open a module of timm or torchvision. Return None for another source. processor: as in `vision_model`."""
        if not isinstance(source, nn.Module):
            return None
        module = source.get_submodule("model") if type(source).__name__ == "FeatureGetterNet" else source  # timm's
        packages = {base.__module__.partition(".")[0] for base in type(module).__mro__}
        return vision_model(module, packages, processor) if packages & {"timm", "torchvision"} else None


VISION = VisionKind()


def vision_model(module: nn.Module, packages: set[str], processor: Any) -> Model:
    """Build a model from a module of timm or torchvision. packages: the packages of its classes.

    processor: a transform, or a processor of transformers. Default: a transform for the module's `pretrained_cfg`.
    """
    settings: Any = getattr(module, "pretrained_cfg", {})
    name, patch, names = type(module).__name__, getattr(module, "patch_size", None), ["[CLS]"]
    if "timm" in packages:
        embed: Any = getattr(module, "patch_embed", None)
        name, patch = str(settings.get("architecture") or name), getattr(embed, "patch_size", None)
        names = [f"[{kind.upper()}]" for kind in ("cls", "dist") if getattr(module, f"{kind}_token", None) is not None]
        names += [f"[REG{n}]" for n in range(1, getattr(module, "num_prefix_tokens", 0) - len(names) + 1)]
        if processor is None:
            data = import_module("timm.data")
            options = data.resolve_model_data_config(module)
            if size := getattr(embed, "img_size", None):  # can differ from the size in pretrained_cfg
                options["input_size"] = (3, *size)
            processor = data.create_transform(**options, is_training=False)
    elif ".swin_transformer" in type(module).__module__:
        patch = 1  # the states have the shape of the grid of patches
    if not hasattr(processor, "model_input_names"):
        processor = partial(preprocess, processor)
    config = SimpleNamespace(patch_size=patch, prefix_tokens=names)
    return Model(VisionModule(module, config), None, name=name, image_processor=processor)
