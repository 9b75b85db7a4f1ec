"""Settings of a training run as the command line gives them, and what they are for: checked without torch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.train.settings import Settings, read_training_settings


def starting_settings(files: Sequence[Path], pairs: Path | None) -> Settings:
    """Settings of a run that begins: of text files, of pairs, or, of none, of repeated letters."""
    if pairs is not None:
        return Settings.for_pairs()
    return Settings() if files else Settings.for_repeated()


def setting_changes(config: Path | None, settings: Sequence[str], steps: int | None) -> dict[str, Any]:
    """Settings by name: of the file (--config), then of --set NAME=VALUE, then of --steps."""
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
