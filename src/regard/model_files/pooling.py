"""Read how a sentence encoder's folder says that its token vectors become one: modules.json and the pooling's config.

The files are those of sentence-transformers: a list of modules, of which a transformer, a pooling, dense layers and a
normalisation are known here, and the pooling's own config, in the older form (`pooling_mode_mean_tokens`: true) or the
newer one (`pooling_mode`: "mean"). They say nothing that a model needs to be traced: what is missing or unknown is kept
as a reason, for whoever asks for a sentence embedding.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.errors import RegardError, first_line
from regard.files import check_regular, parse_json, read_json, read_regular

MODULES, SETTINGS = "modules.json", "config_sentence_transformers.json"
TRANSFORMER_SETTINGS = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
POOLED = {"transformer_task", "modality_config", "module_output_name"}  # in them: what of the transformer is pooled
MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")  # in the order they are joined in
OLDER = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
# What a dense layer may end with: the last name of a class of torch.
ACTIVATIONS = ("Identity", "Tanh", "ReLU", "GELU", "SiLU", "Sigmoid")
INSIDE = re.compile(r"[\w-][\w.-]*")  # the name of a folder in the model's own


@dataclass(frozen=True, eq=False)
class Dense:
    """A layer behind the pooling: activation(weight @ x + bias) of a vector x.

    activation: one of `ACTIVATIONS`. residual: what is added to that: False for nothing, True for x, or a matrix for
    what it makes of x.
    """

    weight: Float[Tensor, "O I"]
    bias: Float[Tensor, " O"] | None = None
    activation: str = "Tanh"
    residual: bool | Float[Tensor, "O I"] = False


@dataclass(frozen=True)
class Pooling:
    """How the vectors of a text's tokens become one.

    modes: those of `MODES` whose vectors are joined, in their order. dense: the layers that the result goes through.
    normalise: whether it is divided by its length then. lower_case: whether texts are put in lower case first. prompt:
    what texts begin with; prompts: others, by name. include_prompt: whether the prompt's tokens are pooled; where they
    are not, left_out says how many they are. unknown: why none of it is known, "" where it is.
    """

    modes: tuple[str, ...] = ()
    normalise: bool = False
    lower_case: bool = False
    prompt: str = ""
    unknown: str = ""
    dense: tuple[Dense, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict, repr=False)
    include_prompt: bool = True
    left_out: int = 0


def read_pooling(find: Callable[[str], Path | None]) -> Pooling:
    """Read how a model pools. find: a file of the model by its name in the folder, None where there is none.

    Nothing is raised for files that are missing, broken or unknown: `Pooling.unknown` says which and why.
    """
    try:
        modules = find(MODULES)
        if modules is None:
            return Pooling(unknown=f"its folder has no {MODULES}, which says how its token vectors are pooled")
        return _settings(find, _of_modules(find, modules))
    except (RegardError, OSError) as error:
        lines = str(error).splitlines()
        return Pooling(unknown=lines[0] if lines else type(error).__name__)


def _of_modules(find: Callable[[str], Path | None], file: Path) -> Pooling:
    """Follow a file's modules: a transformer in the folder itself, a pooling, maybe dense layers, a normalisation."""
    try:
        modules = parse_json(read_regular(file))
    except RegardError as error:
        raise RegardError(f"{MODULES} cannot be read: {error}") from error
    if not isinstance(modules, list):
        raise RegardError(f"{MODULES}: needs a list, given {type(modules).__name__}")
    pooling: Pooling | None = None
    for number, module in enumerate(modules):
        kind = module.get("type") if isinstance(module, dict) else None
        path = module.get("path") if isinstance(module, dict) else None
        if not isinstance(kind, str) or not isinstance(path, str):
            raise RegardError(f"{MODULES}: module {number} has no type and path")
        name = kind.rpartition(".")[2] if kind.startswith("sentence_transformers.") else kind
        if number == 0 and name == "Transformer" and path == "":
            continue
        if number == 1 and name == "Pooling":
            pooling = _pooling_modes(_config_of_pooling_module(find, path, needed=True), f"{path}/config.json")
        elif pooling is not None and not pooling.normalise and name in ("Dense", "Dropout", "Normalize"):
            config = _config_of_pooling_module(find, path, needed=name == "Dense")
            if any(config.get(key) not in (None, "sentence_embedding") for key in config if key.startswith("module_")):
                raise RegardError(f"{MODULES}: module {number} ({name}) takes or gives no sentence embedding")
            if name == "Dense":
                pooling = replace(pooling, dense=(*pooling.dense, _dense_layer(find, path, config)))
            elif name == "Normalize":
                pooling = replace(pooling, normalise=True)
        else:
            known = "a Transformer in the folder itself, then Pooling, then Dense layers, then Normalize"
            raise RegardError(f"{MODULES}: module {number} is {name[:60]!r} in {path[:60]!r}; known is {known}")
    if pooling is None:
        raise RegardError(f"{MODULES} names no Pooling")
    return pooling


def _dense_layer(find: Callable[[str], Path | None], path: str, config: dict[str, Any]) -> Dense:
    """A dense layer with its weights, in float32."""
    from safetensors import SafetensorError, safe_open

    class_name = config.get("activation_function", "torch.nn.modules.activation.Tanh")
    of_torch = isinstance(class_name, str) and class_name.startswith("torch.nn.")
    activation = class_name.rpartition(".")[2] if of_torch else None
    if activation not in ACTIVATIONS:
        raise RegardError(
            f"{path}/config.json: activation {str(class_name)[:60]!r}, known are torch.nn's {', '.join(ACTIVATIONS)}"
        )
    file = find(f"{path}/model.safetensors")
    if file is None:
        pickled = " (there is a pickle, which is never read)" if find(f"{path}/pytorch_model.bin") else ""
        raise RegardError(f"its folder has no {path}/model.safetensors, which has the weights of a Dense{pickled}")
    check_regular(file, f"{path}/model.safetensors")
    try:
        with safe_open(file, framework="pt") as opened:
            tensors = {name: opened.get_tensor(name).float() for name in opened.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise RegardError(f"{path}/model.safetensors cannot be read: {first_line(error)}") from error
    wide, narrow, residual = config.get("in_features"), config.get("out_features"), config.get("use_residual") is True
    needed: dict[str, tuple[Any, ...]] = {"linear.weight": (narrow, wide)}
    needed |= {"linear.bias": (narrow,)} if config.get("bias") is not False else {}
    needed |= {"residual.weight": (narrow, wide)} if residual and wide != narrow else {}
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if shapes != needed:
        raise RegardError(f"{path}/model.safetensors: its tensors are {shapes}, its config needs {needed}")
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        raise RegardError(f"{path}/model.safetensors: its weights hold NaN or infinity")
    extra = tensors.get("residual.weight", residual)
    return Dense(tensors["linear.weight"], tensors.get("linear.bias"), activation, extra)


def _config_of_pooling_module(find: Callable[[str], Path | None], path: str, *, needed: bool) -> dict[str, Any]:
    """A module's own config."""
    if not INSIDE.fullmatch(path):
        raise RegardError(f"{MODULES}: the path {path[:60]!r} is no folder inside the model's")
    file = find(f"{path}/config.json")
    if file is None and needed:
        raise RegardError(f"its folder has no {path}/config.json, which says how its token vectors are pooled")
    return {} if file is None else read_json(file)


def _pooling_modes(config: dict[str, Any], name: str) -> Pooling:
    """The modes of a pooling's config, of either form."""
    mode_names = config.get("pooling_mode", [mode for key, mode in OLDER.items() if config.get(key)] or "mean")
    modes = (mode_names,) if isinstance(mode_names, str) else tuple(mode_names) if isinstance(mode_names, list) else ()
    others = [key for key in config if key.startswith("pooling_mode_") and key not in OLDER and config[key]]
    unknown = [mode for mode in [*modes, *others] if mode not in MODES]
    if unknown or not modes:
        raise RegardError(
            f"{name}: pooling {str(unknown[0] if unknown else mode_names)[:60]!r}, known are {', '.join(MODES)}"
        )
    return Pooling(modes, include_prompt=config.get("include_prompt") is not False)


def _settings(find: Callable[[str], Path | None], pooling: Pooling) -> Pooling:
    """What else is done to a text: lower case, and a prompt before it."""
    for name in TRANSFORMER_SETTINGS:
        file = find(name)
        if file is not None:
            content = read_json(file)
            if content.keys() & POOLED:  # older folders say nothing of it
                _check_states_are_pooled(content, name)
            pooling = replace(pooling, lower_case=content.get("do_lower_case") is True)
            break
    file = find(SETTINGS)
    settings = {} if file is None else read_json(file)
    chosen, stored_prompts = settings.get("default_prompt_name"), settings.get("prompts")
    named = stored_prompts.items() if isinstance(stored_prompts, dict) else ()
    prompts = {name: text for name, text in named if isinstance(text, str)}
    if chosen is not None and prompts.get(chosen) is None:
        raise RegardError(f"{SETTINGS}: there is no prompt of the name {str(chosen)[:60]!r}, which is the default")
    return replace(pooling, prompt=prompts.get(chosen, ""), prompts=prompts)


def _check_states_are_pooled(settings: dict[str, Any], name: str) -> None:
    """Refuse a transformer of which something other than the last hidden states of a text is pooled."""
    ways = settings.get("modality_config")
    ways = ways if isinstance(ways, dict) else {}
    text = ways.get("text")
    taken = text.get("method_output_name") if isinstance(text, dict) else None
    for what, value, usual in (
        ("transformer_task", settings.get("transformer_task"), "feature-extraction"),
        ("module_output_name", settings.get("module_output_name"), "token_embeddings"),
        ("method_output_name", taken, "last_hidden_state"),
    ):
        if value not in (None, usual):
            raise RegardError(f"{name}: {what} is {str(value)[:60]!r}, known is {usual!r}")
    if "message" in ways:
        raise RegardError(f"{name}: texts are put into a chat template before they are pooled, which is not done here")
