"""Open a diffusers pipeline, generate images, and record their attention to the words of the prompt."""

import inspect
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from regard.attention.attention_map import AttentionMap
from regard.attention.recording import Call
from regard.capture.watching.call_sites import CallSites
from regard.capture.watching.seen import WatchedCalls
from regard.capture.watching.watch import watching
from regard.capture.watching.watch_mode import WatchMode
from regard.diffusion.prompt import READS, EncodedText, HeatLayer, PromptHeat, Reads, encoded_text, read_prompt
from regard.errors import RegardError, first_line
from regard.files import read_json
from regard.memory import device_to_load_on, require_memory
from regard.model_files.folder import PIPELINE, check_ignored_files
from regard.model_files.limits import read_sizes
from regard.model_files.size_limit import nbytes
from regard.model_files.suppress_warnings import quiet
from regard.text.tokens import check_text

if TYPE_CHECKING:
    from PIL.Image import Image


def painting_model(pipeline: Any) -> nn.Module:
    """Return the U-Net or transformer of a pipeline. Raises RegardError if it isn't supported."""
    model = getattr(pipeline, "unet", None) or getattr(pipeline, "transformer", None)
    kind = type(model).__name__
    if not isinstance(model, nn.Module) or kind not in READS or not hasattr(pipeline, "encode_prompt"):
        part = f"a {kind}" if isinstance(model, nn.Module) else "no model that paints a text"
        raise RegardError(f"pipeline: got a {type(pipeline).__name__} with {part}, expected one of {', '.join(READS)}")
    return model


@contextmanager
def recorded_heat(pipeline: Any, *, heads: bool = True) -> Iterator[PromptHeat]:
    """Record the image's attention to the words while a pipeline runs inside the block.

    The pipeline can run once per block. It generates the same image as without recording.
    """
    model = painting_model(pipeline)
    modules = {path: part for path, part in model.named_modules() if hasattr(part, "processor")}
    recorder = _Recorder(pipeline, READS[type(model).__name__], inspect.signature(model.forward), heads, modules)
    recorder.mode = WatchMode(WatchedCalls(CallSites(model), on_call=recorder.record_call))
    hook = model.register_forward_pre_hook(recorder.begin_step, with_kwargs=True)
    try:
        with encoded_text(pipeline, recorder.begin_text) as recorder.texts, watching(recorder.mode):
            yield recorder.heat
    finally:
        hook.remove()
    recorder.end_step()
    if recorder.calls and not recorder.heat.layers:
        raise RegardError("the words weren't found in the model's inputs, so nothing was recorded")


@dataclass
class _Recorder:
    """The state of a recording. Hooks call its methods while a pipeline runs."""

    pipeline: Any
    reads: Reads
    signature: inspect.Signature
    heads: bool
    modules: dict[str, Any]  # attention modules by path
    heat: PromptHeat = field(default_factory=PromptHeat)
    texts: list[EncodedText] = field(default_factory=list)
    calls: int = 0
    seen: set[str] = field(default_factory=set)  # modules recorded in this step
    rows: list[int] = field(default_factory=list)  # batch rows with the words, in the current call
    batch: int = 0  # batch size of the current call
    mode: WatchMode = field(init=False)
    grid: tuple[int, int, int] = (0, 0, 1)  # the image's rows and columns, and the largest factor of coarser grids

    def begin_text(self) -> None:
        """Check that the pipeline hasn't run before in this block."""
        if self.calls:
            raise RegardError("a second text was painted in one block: needs a block for each")

    def begin_step(self, model: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        """Before each call to the model, find the batch rows with the words and the image's grid."""
        self.end_step()
        arguments = self.signature.bind(*args, **kwargs).arguments
        states = arguments.get("encoder_hidden_states")
        self.calls += 1
        self.rows = self.texts[0].rows(states) if self.texts and isinstance(states, Tensor) else []
        if not self.rows or not isinstance(states, Tensor):
            self.heat.guided = True  # a separate forward pass without the words
            return
        self.heat.guided |= len(self.rows) < len(states)
        if not self.heat.weights:
            self.heat.prompt = read_prompt(self.pipeline, self.texts[0], self.reads.encoders, states.shape[1])
            self.grid = _grid_of_input(model, arguments)
        elif len(self.heat.weights) == 1:
            steps = len(getattr(self.pipeline.scheduler, "timesteps", ()))
            need = steps * sum(weights.nbytes for weights in self.heat.weights[0])
            helps = "keep only the mean of the heads (heads=False), or use fewer steps"
            require_memory(need, torch.device("cpu"), f"the weights of {steps} steps", helps)
        self.heat.weights.append([])
        self.batch, self.seen = len(states), set()

    def end_step(self) -> None:
        """Check that every attention module of this step was recorded. Raises RegardError if not."""
        if self.mode.error is not None:
            raise self.mode.error
        if self.rows and (missed := self.modules.keys() - self.seen - self.heat.others):
            raise self._not_recorded_error(min(missed))

    def record_call(self, call: Call) -> None:
        """Keep an attention call's weights from image positions to words, if words are among its keys."""
        path, weights = call.path.removesuffix(".processor"), call.weights  # some processors are modules
        if not self.rows or path not in self.modules:
            return
        if weights.given is not None:  # weights from the module's own code, with batch and heads in a single axis
            matrices = weights.given.flatten(0, 1)
            if len(matrices) != self.batch * self.modules[path].heads:
                raise self._not_recorded_error(path)
            weights = AttentionMap.of_weights(matrices.unflatten(0, (self.batch, -1)))
        if path in self.seen:  # only a module's first call has the words
            self.heat.beside.add(path)
            return
        words, (_, _, queries, keys) = self.heat.prompt.length, weights.shape
        if self.reads.first is None:
            has_words = keys == words and bool(getattr(self.modules[path], "is_cross_attention", False))
            positions, at_image, at_words = queries, slice(None), slice(None)
        else:
            positions = self.grid[0] * self.grid[1]
            has_words = queries == keys == positions + words
            picture, text = (0, positions) if self.reads.first == "picture" else (words, 0)
            at_image, at_words = slice(picture, picture + positions), slice(text, text + words)
        if not has_words:
            self.heat.others.add(path)
            return
        grid = _grid_of_layer(self.grid, positions, path)
        weights_kept = torch.stack([self._weights_to_keep(weights[row, :, at_image, at_words]) for row in self.rows])
        if len(self.heat.weights) == 1:
            self.heat.layers.append(HeatLayer(path, weights.shape[1], grid))
        self.seen.add(path)
        self.heat.weights[-1].append(weights_kept.unflatten(2, grid).cpu())

    def _weights_to_keep(self, weights: Tensor) -> Tensor:
        """Return the columns of the prompt's tokens from weights (H, P, T), then the sum over padding."""
        prompt = self.heat.prompt
        padding = weights[..., prompt.padding].sum(-1, keepdim=True)
        columns = torch.cat([weights[..., list(prompt.keys)], padding], -1)
        return columns if self.heads else columns.mean(0, keepdim=True)

    def _not_recorded_error(self, path: str) -> RegardError:
        processor = type(self.modules[path].processor).__name__
        reason = self.mode.seen.unrecorded.get(path, "needs diffusers' own AttnProcessor2_0, the default")
        return RegardError(f"{path}: its processor {processor} computes attention that can't be seen: {reason}")


def _grid_of_input(model: nn.Module, arguments: Mapping[str, object]) -> tuple[int, int, int]:
    """Return the rows and columns of a model's input in patches, and the largest factor of coarser grids."""
    patch_positions = arguments.get("img_ids")  # Flux gets a sequence of patches and their positions
    if isinstance(patch_positions, Tensor):
        high, wide = (int(patch_positions.reshape(-1, 3)[:, axis].max()) + 1 for axis in (1, 2))
        return high, wide, 1
    latents = arguments.get("sample", arguments.get("hidden_states"))
    assert isinstance(latents, Tensor)
    high, wide = latents.shape[-2:]
    patch = getattr(model.config, "patch_size", None)
    return (high, wide, max(high, wide)) if patch is None else (high // patch, wide // patch, 1)


def _grid_of_layer(grid: tuple[int, int, int], count: int, path: str) -> tuple[int, int]:
    """Return the rows and columns of a layer's grid with `count` positions: the image's grid, halved as needed."""
    high, wide, limit = grid
    for coarser in (1 << n for n in range(limit.bit_length())):
        rows, columns = -(-high // coarser), -(-wide // coarser)
        if rows * columns == count:
            return rows, columns
    raise RegardError(f"{path}: {count} positions don't form a grid of {high} by {wide} or a coarser one")


LIBRARIES = ("diffusers", "transformers")


@dataclass(frozen=True)
class PaintedText:
    """The images that a pipeline generated from a text, their attention to its words, and notes."""

    pictures: "tuple[Image, ...]"
    heat: PromptHeat
    notes: tuple[str, ...] = ()


class Pipeline:
    """A diffusers text-to-image pipeline. pipeline: the diffusers object. name: its name."""

    def __init__(self, pipeline: Any, name: str) -> None:
        """Wrap a diffusers pipeline. Raises RegardError if its model isn't supported."""
        painting_model(pipeline)
        self.pipeline, self.name = pipeline, name

    def record(self, *, heads: bool = True) -> AbstractContextManager[PromptHeat]:
        """Record the image's attention while `pipeline` runs in a with block, as in `recorded_heat`."""
        return recorded_heat(self.pipeline, heads=heads)

    def paint(
        self, text: str, *, steps: int = 20, samples: int = 1, seed: int = 0, heads: bool = True, **options: object
    ) -> PaintedText:
        """Generate images from a text, and record each image position's attention to the words.

        Args:
            text: the prompt.
            steps: number of denoising steps.
            samples: number of images, each from different noise.
            seed: seed of the noise. The noise is drawn on the CPU, so it is the same on every device.
            heads: whether to keep each head's weights instead of only their mean.
            options: passed to the pipeline, such as guidance_scale, height, width and negative_prompt.

        Raises:
            RegardError: the pipeline or `recorded_heat` raises an error, or an option is unknown.
        """
        check_text(text)
        parameters = inspect.signature(self.pipeline.__call__).parameters
        if unknown := [name for name in options if name not in parameters]:  # some pipelines ignore unknown options
            raise RegardError(f"pipeline {self.name!r} takes no {unknown[0]!r}, it takes {', '.join(parameters)}")
        arguments: dict[str, Any] = {"num_inference_steps": steps, "num_images_per_prompt": samples} | options
        arguments |= {"generator": torch.Generator().manual_seed(seed), "output_type": "pil"}
        try:
            with quiet(), self.record(heads=heads) as heat:
                result = self.pipeline(prompt=text, **arguments)
        except (TypeError, ValueError, NotImplementedError) as error:
            raise RegardError(f"pipeline {self.name!r}: {first_line(error)}") from error
        blacked = sum(map(bool, getattr(result, "nsfw_content_detected", None) or ()))
        notes = heat.prompt.notes
        if blacked:
            notes += (f"The pipeline's safety checker blacked out {blacked} of {samples} images.",)
        return PaintedText(tuple(result.images), heat, notes)


def load_pipeline(source: Any, *, device: str | torch.device | None = None) -> Pipeline:
    """Open a diffusers pipeline that generates images from texts (needs the extra `diffusion`).

    Args:
        source: a diffusers pipeline, or a pipeline's folder. A pipeline stays on its device. From a folder, weights are
            read from safetensors files in float32, and code is never run.
        device: where to run a folder's pipeline. Default: a CUDA device if there is one, else the CPU.

    Raises:
        RegardError: diffusers isn't installed, `source` isn't a pipeline, its files are incomplete, or its model
            isn't supported. U-Nets with cross-attention, PixArt, SD3 and Flux are supported.
    """
    try:
        import diffusers
    except ImportError as error:
        raise RegardError(f'pipelines need diffusers ({error}): pip install "regard[diffusion]"') from error
    if isinstance(source, diffusers.DiffusionPipeline):
        return Pipeline(source, type(source).__name__)
    if not isinstance(source, (str, os.PathLike)) or not (Path(source) / PIPELINE).is_file():
        raise RegardError(f"pipeline: got {source!r}, expected a diffusers pipeline, or a folder with {PIPELINE}")
    folder = Path(source)
    target = device_to_load_on(device)
    _check_pipeline_folder(folder, diffusers)
    try:
        with quiet():
            diffusers.utils.logging.disable_progress_bar()
            pipeline = diffusers.DiffusionPipeline.from_pretrained(
                folder, use_safetensors=True, local_files_only=True, torch_dtype=torch.float32
            )
            pipeline.set_progress_bar_config(disable=True)
            return Pipeline(pipeline.to(target), folder.resolve().name)
    except RegardError:
        raise
    except Exception as error:  # the libraries can raise any exception for a broken file
        raise RegardError(f"pipeline {str(source)!r} cannot be loaded: {first_line(error)}") from error


def _check_pipeline_folder(folder: Path, diffusers: Any) -> None:
    """Check the classes, files and memory of a folder's pipeline before loading it."""
    index = read_json(folder / PIPELINE)
    weights = []
    for name, entry in index.items():
        if name.startswith("_") or not isinstance(entry, list) or entry == [None, None]:
            continue
        valid = len(entry) == 2 and all(isinstance(part, str) for part in entry)
        if not valid or not (entry[0] in LIBRARIES or hasattr(diffusers.pipelines, entry[0])):
            raise RegardError(
                f"{str(folder / PIPELINE)!r}: {name} is {entry}, expected a class of diffusers or transformers"
            )
        if not (folder / name).is_dir():
            raise RegardError(f"{str(folder)!r} is incomplete: it has no folder {name!r}, which {PIPELINE} names")
        check_ignored_files(folder / name)
        weights += [file for file in (folder / name).glob("*.safetensors") if ".fp16." not in file.name]
    model_class = next((index[name][1] for name in ("unet", "transformer") if isinstance(index.get(name), list)), None)
    if model_class not in READS:
        raise RegardError(f"{str(folder)!r}: its model is {model_class}, expected one of {', '.join(READS)}")
    require_memory(
        nbytes(read_sizes(weights)), torch.device("cpu"), f"pipeline {str(folder)!r}, in float32,", "take a smaller one"
    )
