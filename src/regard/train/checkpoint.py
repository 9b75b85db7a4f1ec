"""Checkpoints that can be trusted: staged, made durable, renamed, and only then pointed at.

Killed at any moment, a run has its last whole checkpoint and a pointer to it. Beside the model's own files a
checkpoint holds training.safetensors (what the optimiser has gathered, and the state of the random numbers) and
training.json (step, place in the data, what is known of the loss).
"""

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from regard.errors import RegardError
from regard.files import read_json, remove_leftovers, whole
from regard.nn.folder import (
    CHECKPOINTS,
    POINTER,
    WEIGHTS,
    fill_module_weights,
    newest_transformer_folder,
    read_tensors,
    save_model,
    weights_of,
)
from regard.nn.transformer import Transformer
from regard.train.run_files import WATCH

STATE, NOTES = "training.safetensors", "training.json"


@dataclass(frozen=True)
class TrainingState:
    """How far a run is. step: updates done. place: of the next batch. best: the smallest validation loss so far."""

    step: int = 0
    place: tuple[int, int] = (0, 0)
    best: float | None = None


def save_checkpoint(
    run: Path, model: Transformer, tokenizer: Any, optimiser: torch.optim.Optimizer, state: TrainingState, *, keep: int
) -> Path:
    """Write a checkpoint into a run's folder, point at it, and only then remove those older than the newest keep."""
    name = f"step-{state.step:06d}"
    home = run / CHECKPOINTS
    staged, final = home / f".{name}.part", home / name
    if (run / POINTER).is_file() and final.is_dir() and newest_transformer_folder(run) == final:
        return final  # the same step of the same run: the same bits
    try:
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir(parents=True)
        save_model(staged, model, tokenizer)
        with whole(staged / STATE) as file:
            safetensors.torch.save_file(_state(model, optimiser), file)
        with whole(staged / NOTES) as file:
            notes_content = {"step": state.step, "place": list(state.place), "best": state.best}
            notes_content["threads"] = torch.get_num_threads()
            file.write_text(json.dumps(notes_content) + "\n", encoding="utf-8")
        _make_checkpoint_durable(staged)
        if final.exists():  # of a run that was killed between the rename and the pointer
            shutil.rmtree(final)
        staged.rename(final)
        _make_checkpoint_durable(home)
        with whole(run / POINTER) as file:
            file.write_text(json.dumps({"checkpoint": name}) + "\n", encoding="utf-8")
        _make_checkpoint_durable(run)
    except (OSError, safetensors.SafetensorError) as error:
        shutil.rmtree(staged, ignore_errors=True)
        reason = getattr(error, "strerror", None) or error
        raise RegardError(f"checkpoint of step {state.step} cannot be written to {str(run)!r}: {reason}") from error
    except RegardError:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    for _, old in run_files_by_step(home)[:-keep]:
        if old.name != name:
            shutil.rmtree(old, ignore_errors=True)
    return final


def run_files_by_step(folder: Path, ending: str = "") -> list[tuple[int, Path]]:
    """List what is named step-N in a folder, by N: from a million on, names no longer sort as their numbers do."""
    named = re.compile(rf"step-([0-9]{{6,}}){re.escape(ending)}")
    found = [(named.fullmatch(path.name), path) for path in folder.glob("step-*")]
    return sorted((int(match[1]), path) for match, path in found if match is not None)


def load_checkpoint(
    run: Path, model: Transformer, optimiser: torch.optim.Optimizer
) -> tuple[TrainingState, tuple[str, ...]]:
    """Fill model and optimiser, and set the random numbers, from a run's newest whole checkpoint; and notes.

    A note says if the number of threads is another here: then the weights will not be the same to the last bit as
    without a stop.
    """
    folder = newest_transformer_folder(run)
    weights, tensors = (read_tensors(folder / name, "missing, truncated") for name in (WEIGHTS, STATE))
    notes_content = read_json(folder / NOTES)
    try:
        step, (turn, number), best = (notes_content[name] for name in ("step", "place", "best"))
    except (KeyError, TypeError, ValueError) as error:
        raise RegardError(f"{str(folder / NOTES)!r} is damaged: it is not what a run writes") from error
    state = TrainingState(step, (turn, number), best)
    own = weights_of(model)
    needed = {f"{kind}.{name}": tensor for name, tensor in own.items() for kind in ("mean", "square")}
    needed |= {"count": torch.tensor(0.0), "random": torch.get_rng_state()}
    for name, tensor in needed.items():
        if name not in tensors or tensors[name].shape != tensor.shape:
            raise RegardError(f"{str(folder / STATE)!r} is not whole: tensor {name!r} is missing or does not fit")
    fill_module_weights(model, weights, repr(str(folder / WEIGHTS)))
    for name, parameter in own.items():
        optimiser.state[parameter] = {
            "step": tensors["count"].clone(),
            "exp_avg": tensors[f"mean.{name}"].to(parameter.device),
            "exp_avg_sq": tensors[f"square.{name}"].to(parameter.device),
        }
    torch.set_rng_state(tensors["random"].cpu())
    for n in range(torch.cuda.device_count()):
        if f"random.cuda.{n}" in tensors:
            torch.cuda.set_rng_state(tensors[f"random.cuda.{n}"].cpu(), n)
    threads, here = notes_content.get("threads"), torch.get_num_threads()
    notes = (
        ()
        if threads == here
        else (f"The run used {threads} threads before and uses {here} now, so results may differ in the last bits.",)
    )
    return state, notes


def remove_run_leftovers(run: Path) -> None:
    """Remove what a killed run was about to write."""
    for folder in (run / CHECKPOINTS).glob(".step-*.part"):
        shutil.rmtree(folder, ignore_errors=True)
    for place in (run, run / WATCH):
        remove_leftovers(place)


def size_of_checkpoint(model: Transformer) -> int:
    """Estimate the bytes of a checkpoint on disk: weights, and twice as much for the optimiser."""
    return 12 * sum(parameter.numel() for parameter in model.parameters()) + (1 << 20)


def _state(model: Transformer, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    tensors = {"random": torch.get_rng_state()}  # which dropout draws from, on every device
    if torch.cuda.is_available():
        tensors |= {f"random.cuda.{n}": each for n, each in enumerate(torch.cuda.get_rng_state_all())}
    for name, parameter in weights_of(model).items():
        gathered = optimiser.state[parameter]
        tensors[f"mean.{name}"] = gathered["exp_avg"].detach().cpu().contiguous()
        tensors[f"square.{name}"] = gathered["exp_avg_sq"].detach().cpu().contiguous()
        tensors["count"] = torch.as_tensor(gathered["step"]).detach().cpu().clone()
    return tensors


def _make_checkpoint_durable(folder: Path) -> None:
    """Make a folder's entries survive a power cut, where the system has a way to."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
