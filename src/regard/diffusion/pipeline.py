"""Open a pipeline of diffusers, let it paint a text, and record what its picture looks at."""

import inspect
import os
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from regard.diffusion.heat import PromptHeat
from regard.diffusion.prompt import READS
from regard.diffusion.record import painting_model, recorded_heat
from regard.errors import RegardError, first_line
from regard.files import read_json
from regard.memory import device_to_load_on, require_memory
from regard.model_files.folder import PIPELINE, check_model_files
from regard.model_files.quiet import quiet
from regard.model_files.size_limit import needs
from regard.model_files.weight_headers import held
from regard.text.tokens import check_text

if TYPE_CHECKING:
    from PIL.Image import Image

LIBRARIES = ("diffusers", "transformers")


@dataclass(frozen=True)
class PaintedText:
    """Pictures that a pipeline painted of a text, what they looked at, and notes on what it did on its own."""

    pictures: "tuple[Image, ...]"
    heat: PromptHeat
    notes: tuple[str, ...] = ()


class Pipeline:
    """A pipeline of diffusers that paints a text. pipeline: it itself; name: what it is called."""

    def __init__(self, pipeline: Any, name: str) -> None:
        """Take a pipeline. Raises RegardError where its model is of a kind whose words are not known."""
        painting_model(pipeline)
        self.pipeline, self.name = pipeline, name

    def record(self, *, heads: bool = True) -> AbstractContextManager[PromptHeat]:
        """Record what the picture looks at while `pipeline` runs in a with block, as `recorded_heat` does."""
        return recorded_heat(self.pipeline, heads=heads)

    def paint(
        self, text: str, *, steps: int = 20, samples: int = 1, seed: int = 0, heads: bool = True, **options: object
    ) -> PaintedText:
        """Paint a text, and keep what each place of the picture looks at.

        Args:
            text: what to paint.
            steps: of denoising.
            samples: how many pictures, from noise of their own.
            seed: of the noise, drawn on the CPU so that it is the same everywhere.
            heads: keep the weights of each head, or their mean alone.
            options: handed to the pipeline: guidance_scale, height, width, negative_prompt and others that it has.

        Raises:
            RegardError: the pipeline refuses it, or what `recorded_heat` raises.
        """
        check_text(text)
        takes = inspect.signature(self.pipeline.__call__).parameters
        if unknown := [name for name in options if name not in takes]:  # which some pipelines pass over
            raise RegardError(f"pipeline {self.name!r} takes no {unknown[0]!r}, it takes {', '.join(takes)}")
        given: dict[str, Any] = {"num_inference_steps": steps, "num_images_per_prompt": samples} | options
        given |= {"generator": torch.Generator().manual_seed(seed), "output_type": "pil"}
        try:
            with quiet(), self.record(heads=heads) as heat:
                found = self.pipeline(prompt=text, **given)
        except (TypeError, ValueError, NotImplementedError) as error:
            raise RegardError(f"pipeline {self.name!r}: {first_line(error)}") from error
        blacked = sum(map(bool, getattr(found, "nsfw_content_detected", None) or ()))
        notes = heat.prompt.notes
        if blacked:
            notes += (f"The pipeline's safety checker blacked out {blacked} of {samples} images.",)
        return PaintedText(tuple(found.images), heat, notes)


def is_pipeline_folder(source: object) -> bool:
    """Tell whether something is the folder of a pipeline."""
    return isinstance(source, (str, os.PathLike)) and (Path(source) / PIPELINE).is_file()


def load_pipeline(source: Any, *, device: str | torch.device | None = None) -> Pipeline:
    """Open a pipeline of diffusers (extra `diffusion`) that paints texts.

    Args:
        source: a pipeline of diffusers, which stays where it is; or the folder of one, read in float32 from
            safetensors. Code in a folder is never run.
        device: where to run a folder's; by default a CUDA device where there is one, else the CPU.

    Raises:
        RegardError: diffusers is not installed, it is neither, its files are not whole, or its model is of a kind
            whose words are not known: U-Nets with cross-attention, PixArt, SD3 and Flux are.
    """
    try:
        import diffusers
    except ImportError as error:
        raise RegardError(f'pipelines need diffusers ({error}): pip install "regard[diffusion]"') from error
    if isinstance(source, diffusers.DiffusionPipeline):
        return Pipeline(source, type(source).__name__)
    if not is_pipeline_folder(source):
        raise RegardError(f"pipeline: given {source!r}, needs a pipeline of diffusers, or a folder with its {PIPELINE}")
    folder = Path(source)
    where = device_to_load_on(device)
    _check_pipeline_folder(folder, diffusers)
    try:
        with quiet():
            diffusers.utils.logging.disable_progress_bar()
            opened = diffusers.DiffusionPipeline.from_pretrained(
                folder, use_safetensors=True, local_files_only=True, torch_dtype=torch.float32
            )
            opened.set_progress_bar_config(disable=True)
            return Pipeline(opened.to(where), folder.resolve().name)
    except RegardError:
        raise
    except Exception as error:  # whatever the libraries raise for a broken file
        raise RegardError(f"pipeline {str(source)!r} cannot be loaded: {first_line(error)}") from error


def _check_pipeline_folder(folder: Path, diffusers: Any) -> None:
    """Check a folder before anything is built from it: what it names, its files, and the memory that it takes."""
    index = read_json(folder / PIPELINE)
    weights = []
    for name, each in index.items():
        if name.startswith("_") or not isinstance(each, list) or each == [None, None]:
            continue
        known = len(each) == 2 and all(isinstance(part, str) for part in each)
        if not known or not (each[0] in LIBRARIES or hasattr(diffusers.pipelines, each[0])):
            raise RegardError(
                f"{str(folder / PIPELINE)!r}: {name} is {each}, needs a class of diffusers or transformers"
            )
        if not (folder / name).is_dir():
            raise RegardError(f"{str(folder)!r} is not whole: it has no folder {name!r}, which {PIPELINE} names")
        check_model_files(folder / name)
        weights += [file for file in (folder / name).glob("*.safetensors") if ".fp16." not in file.name]
    kind = next((index[name][1] for name in ("unet", "transformer") if isinstance(index.get(name), list)), None)
    if kind not in READS:
        raise RegardError(f"{str(folder)!r}: its model is {kind}, needs one of {', '.join(READS)}")
    require_memory(
        needs(held(weights)), torch.device("cpu"), f"pipeline {str(folder)!r}, in float32,", "take a smaller one"
    )
