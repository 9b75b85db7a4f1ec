"""Settings of a training run as the command line gives them, and what they are for: checked without torch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.train.data import hold_out, read_training_pairs, read_training_texts
from regard.train.settings import Settings, pair_config, read_training_settings, text_config

FEW = 10  # times as many pairs as are held out: of more, enough share no sentence, and looking takes a second


def starting_settings(files: Sequence[Path], pairs: Path | None) -> Settings:
    """Settings of a run that begins: of text files, of pairs, or, of none, of repeated letters."""
    if pairs is not None:
        return Settings.for_pairs()
    return Settings() if files else Settings.for_repeated()


def check_train_options(files: Sequence[Path], pairs: Path | None, chosen: Settings, *, resume: bool) -> None:
    """Refuse what cannot be trained on, and sizes that no model has. A pipe, which is read once, is left to the run.

    Args:
        pairs: the file of pairs, None where texts are learned.
        resume: then a run that goes on may have settings of its own, and only its texts are looked at.

    Raises:
        RegardError: a text is empty, no UTF-8 or without pairs, there are too few pairs to hold some out, or sizes of
            the model do not fit each other.
    """
    if not resume:
        _ = text_config(2, chosen) if pairs is None else pair_config(2, 0, chosen)  # of any vocabulary
    if all(file.is_file() for file in files):
        read_training_texts(files)
    if pairs is not None and pairs.is_file():
        found, count = read_training_pairs(pairs), int(chosen.held_out)
        if not resume and count > 0 and len(found) < FEW * count:
            hold_out(found, count, chosen.seed)


def setting_changes(config: Path | None, settings: Sequence[str], steps: int | None) -> dict[str, Any]:
    """Settings by name: of the file (--config), then of --set NAME=VALUE, then of --steps.

    Raises:
        RegardError: the file is none of settings, a setting has no name or value, or the steps are given twice.
    """
    changes: dict[str, Any] = {} if config is None else read_training_settings(config)
    named = set()
    for each in settings:
        name, equals, text = each.partition("=")
        if not equals or not name.strip():
            raise RegardError(f"--set {each!r}: needs NAME=VALUE")
        changes[name.strip()] = set_option_value(text.strip())
        named.add(name.strip())
    if steps is not None and "steps" in named and changes["steps"] != steps:
        raise RegardError(f"--steps {steps} and --set steps={changes['steps']}: give one of them")
    return changes | ({} if steps is None else {"steps": steps})


def set_option_value(text: str) -> int | float | bool | str | None:
    """A setting's value as it was meant: a number, true, false, none, or a word."""
    known = {"true": True, "false": False, "none": None}
    if text.lower() in known:
        return known[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
