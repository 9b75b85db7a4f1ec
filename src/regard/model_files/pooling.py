"""Read how a sentence encoder's folder says that its token vectors become one: modules.json and the pooling's config.

The files are those of sentence-transformers: a list of modules, of which a transformer, a pooling and a normalisation
are known here, and the pooling's own config, in the older form (`pooling_mode_mean_tokens`: true) or the newer one
(`pooling_mode`: "mean"). They say nothing that a model needs to be traced: what is missing or unknown is kept as a
reason, for whoever asks for a sentence embedding.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.files import read_regular
from regard.json_files import SMALL, parse_json, read_json

MODULES, SETTINGS = "modules.json", "config_sentence_transformers.json"
TRANSFORMER_SETTINGS = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")  # in the order they are joined in
OLDER = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
INSIDE = re.compile(r"[\w-][\w.-]*")  # the name of a folder in the model's own


@dataclass(frozen=True)
class Pooling:
    """How the vectors of a text's tokens become one.

    modes: those of `MODES` whose vectors are joined, in their order. normalise: whether the result is divided by its
    length. lower_case: whether texts are put in lower case first. prompt: what texts begin with. unknown: why none of
    it is known, "" where it is.
    """

    modes: tuple[str, ...] = ()
    normalise: bool = False
    lower_case: bool = False
    prompt: str = ""
    unknown: str = ""


def read_pooling(find: Callable[[str], Path | None]) -> Pooling:
    """Read how a model pools. find: a file of the model by its name in the folder, None where there is none.

    Nothing is raised for files that are missing, broken or unknown: `Pooling.unknown` says which and why.
    """
    try:
        modules = find(MODULES)
        if modules is None:
            return Pooling(unknown=f"its folder has no {MODULES}, which says how its token vectors are pooled")
        return _settings(find, _of_modules(find, _modules_in_pooling_file(modules)))
    except (RegardError, OSError) as error:
        lines = str(error).splitlines()
        return Pooling(unknown=lines[0] if lines else type(error).__name__)


def _modules_in_pooling_file(file: Path) -> list[Any]:
    """The modules in a file."""
    try:
        modules = parse_json(read_regular(file, most=SMALL))
    except RegardError as error:
        raise RegardError(f"{MODULES} cannot be read: {error}") from error
    if not isinstance(modules, list):
        raise RegardError(f"{MODULES}: needs a list, given {type(modules).__name__}")
    return modules


def _of_modules(find: Callable[[str], Path | None], modules: list[Any]) -> Pooling:
    """Follow a list of modules: a transformer in the folder itself, a pooling, and maybe a normalisation."""
    found: Pooling | None = None
    for number, module in enumerate(modules):
        kind = module.get("type") if isinstance(module, dict) else None
        path = module.get("path") if isinstance(module, dict) else None
        if not isinstance(kind, str) or not isinstance(path, str):
            raise RegardError(f"{MODULES}: module {number} has no type and path")
        name = kind.rpartition(".")[2] if kind.startswith("sentence_transformers.") else kind
        if number == 0 and name == "Transformer" and path == "":
            continue
        if number == 1 and name == "Pooling":
            found = _pooling_modes(_config_of_pooling_module(find, path, needed=True), f"{path}/config.json")
        elif found is not None and name == "Normalize":
            config = _config_of_pooling_module(find, path, needed=False)
            if any(config.get(key) not in (None, "sentence_embedding") for key in config if key.startswith("module_")):
                raise RegardError(f"{MODULES}: module {number} normalises something other than the sentence embedding")
            found = replace(found, normalise=True)
        else:
            known = "a Transformer in the folder itself, then Pooling, then Normalize"
            raise RegardError(f"{MODULES}: module {number} is {name[:60]!r} in {path[:60]!r}; known is {known}")
    if found is None:
        raise RegardError(f"{MODULES} names no Pooling")
    return found


def _config_of_pooling_module(find: Callable[[str], Path | None], path: str, *, needed: bool) -> dict[str, Any]:
    """A module's own config."""
    if not INSIDE.fullmatch(path):
        raise RegardError(f"{MODULES}: the path {path[:60]!r} is no folder inside the model's")
    file = find(f"{path}/config.json")
    if file is None and needed:
        raise RegardError(f"its folder has no {path}/config.json, which says how its token vectors are pooled")
    return {} if file is None else read_json(file, most=SMALL)


def _pooling_modes(config: dict[str, Any], name: str) -> Pooling:
    """The modes of a pooling's config, of either form."""
    given = config.get("pooling_mode", [mode for key, mode in OLDER.items() if config.get(key)] or "mean")
    modes = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list) else ()
    others = [key for key in config if key.startswith("pooling_mode_") and key not in OLDER and config[key]]
    unknown = [mode for mode in [*modes, *others] if mode not in MODES]
    if unknown or not modes:
        raise RegardError(
            f"{name}: pooling {str(unknown[0] if unknown else given)[:60]!r}, known are {', '.join(MODES)}"
        )
    if config.get("include_prompt") is False:
        raise RegardError(f"{name}: prompts are left out of the pooling (include_prompt), which is not done here")
    return Pooling(modes)


def _settings(find: Callable[[str], Path | None], pooling: Pooling) -> Pooling:
    """What else is done to a text: lower case, and a prompt before it."""
    for name in TRANSFORMER_SETTINGS:
        file = find(name)
        if file is not None:
            pooling = replace(pooling, lower_case=read_json(file, most=SMALL).get("do_lower_case") is True)
            break
    file = find(SETTINGS)
    settings = {} if file is None else read_json(file, most=SMALL)
    chosen, prompts = settings.get("default_prompt_name"), settings.get("prompts")
    if chosen is not None:
        prompt = prompts.get(chosen) if isinstance(prompts, dict) else None
        if not isinstance(prompt, str):
            raise RegardError(f"{SETTINGS}: there is no prompt of the name {str(chosen)[:60]!r}, which is the default")
        pooling = replace(pooling, prompt=prompt)
    return pooling
