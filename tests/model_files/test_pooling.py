"""How a folder says that its token vectors are pooled: in the older and the newer form, and what is not known."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from regard.model_files.pooling import ACTIVATIONS, OLDER, Pooling, read_pooling
from regard.models.load import _file_of_model

TRANSFORMER = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
POOLING = {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
DENSE = {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"}
NORMALIZE = {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
NEWER = "sentence_transformers.sentence_transformer.modules"


def read(folder: Path, modules: Any, config: Any = None, **others: Any) -> Pooling:
    """What a folder with these files says; others: by their names, with __ for a dot and a stroke for a folder."""
    files = {"modules.json": modules, "1_Pooling/config.json": config, **others}
    for name, content in files.items():
        if content is not None:
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return read_pooling(lambda name: folder / name if (folder / name).exists() else None)


@pytest.mark.parametrize(("key", "mode"), OLDER.items())
def test_the_older_form(tmp_path: Path, key: str, mode: str) -> None:
    config = {"word_embedding_dimension": 24} | dict.fromkeys(OLDER, False) | {key: True}
    assert read(tmp_path, [TRANSFORMER, POOLING], config) == Pooling((mode,))
    assert read(tmp_path, [TRANSFORMER, POOLING, NORMALIZE], config) == Pooling((mode,), normalise=True)


def test_several_are_joined_in_the_librarys_order_and_none_is_the_mean(tmp_path: Path) -> None:
    config = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}
    assert read(tmp_path, [TRANSFORMER, POOLING], config).modes == ("cls", "mean")
    assert read(tmp_path, [TRANSFORMER, POOLING], {"word_embedding_dimension": 24}).modes == ("mean",)


def test_the_newer_form(tmp_path: Path) -> None:
    newer = [
        TRANSFORMER | {"type": "sentence_transformers.base.modules.transformer.Transformer"},
        POOLING | {"type": f"{NEWER}.pooling.Pooling"},
        NORMALIZE | {"type": "sentence_transformers.base.modules.normalize.Normalize"},
    ]
    config = {"embedding_dimension": 24, "pooling_mode": "lasttoken", "include_prompt": True}
    own = {"module_input_name": "sentence_embedding", "module_output_name": "sentence_embedding"}
    found = read(tmp_path, newer, config, **{"2_Normalize/config.json": own})
    assert found == Pooling(("lasttoken",), normalise=True)
    assert read(tmp_path, newer, config | {"pooling_mode": ["mean", "max"]}).modes == ("mean", "max")
    other = read(
        tmp_path, newer, config, **{"2_Normalize/config.json": own | {"module_input_name": "token_embeddings"}}
    )
    assert other.unknown == "modules.json: module 2 (Normalize) takes or gives no sentence embedding"


def test_what_is_done_to_the_text(tmp_path: Path) -> None:
    prompts = {"default_prompt_name": "query", "prompts": {"query": "query: ", "passage": "passage: "}}
    found = read(
        tmp_path, [TRANSFORMER, POOLING], {"pooling_mode": "cls"},
        **{"sentence_bert_config.json": {"max_seq_length": 11, "do_lower_case": True}},
        **{"config_sentence_transformers.json": prompts},
    )  # fmt: skip
    assert found == Pooling(("cls",), lower_case=True, prompt="query: ", prompts=prompts["prompts"])
    left_out = read(tmp_path, [TRANSFORMER, POOLING], {"pooling_mode": "cls", "include_prompt": False})
    assert left_out == Pooling(
        ("cls",), lower_case=True, prompt="query: ", prompts=prompts["prompts"], include_prompt=False
    )
    settings = {"config_sentence_transformers.json": prompts | {"default_prompt_name": "x"}}
    assert "no prompt of the name 'x'" in read(tmp_path, [TRANSFORMER, POOLING], **settings).unknown
    settings = {"config_sentence_transformers.json": {"prompts": {}, "default_prompt_name": None}}
    assert read(tmp_path, [TRANSFORMER, POOLING], **settings).prompt == ""


@pytest.mark.parametrize(
    ("modules", "config", "says"),
    [
        (None, None, "its folder has no modules.json, which says how its token vectors are pooled"),
        ([TRANSFORMER, POOLING], None, "its folder has no 1_Pooling/config.json"),
        ([TRANSFORMER], None, "modules.json names no Pooling"),
        ([], None, "modules.json names no Pooling"),
        ({}, None, "modules.json: needs a list, given dict"),
        ("[", None, "modules.json cannot be read: "),
        ([TRANSFORMER, 3], None, "modules.json: module 1 has no type and path"),
        ([TRANSFORMER | {"path": "0_Transformer"}, POOLING], {}, "module 0 is 'Transformer' in '0_Transformer'; known"),
        ([TRANSFORMER, POOLING | {"type": "custom.Pooling"}], {}, "module 1 is 'custom.Pooling'"),
        ([TRANSFORMER, POOLING, NORMALIZE | {"type": "sentence_transformers.models.CNN"}], {}, "module 2 is 'CNN'"),
        ([TRANSFORMER, POOLING, NORMALIZE, DENSE], {}, "module 3 is 'Dense' in '2_Dense'; known is a Transformer in"),
        ([TRANSFORMER, POOLING, DENSE], {}, "its folder has no 2_Dense/config.json"),
        ([TRANSFORMER, NORMALIZE, POOLING], {}, "module 1 is 'Normalize'"),
        (
            [TRANSFORMER, POOLING | {"path": "../1_Pooling"}],
            {},
            "the path '../1_Pooling' is no folder inside the model",
        ),
        ([TRANSFORMER, POOLING | {"path": "/etc"}], {}, "the path '/etc' is no folder inside the model"),
        ([TRANSFORMER, POOLING], {"pooling_mode": "sum"}, "1_Pooling/config.json: pooling 'sum', known are cls, max"),
        ([TRANSFORMER, POOLING], {"pooling_mode": 7}, "pooling '7', known are"),
        ([TRANSFORMER, POOLING], {"pooling_mode_sum": True}, "pooling 'pooling_mode_sum', known are"),
        ([TRANSFORMER, POOLING], "{", "cannot be read"),
    ],
)
def test_what_is_not_known_has_a_reason(tmp_path: Path, modules: Any, config: Any, says: str) -> None:
    found = read(tmp_path, modules, config)
    assert says in found.unknown
    assert "\n" not in found.unknown
    assert found.modes == ()


def dense(folder: Path, config: dict[str, Any], tensors: dict[str, torch.Tensor] | None = None) -> Pooling:
    """What a folder with a Dense of that config and those tensors says."""
    (folder / "2_Dense").mkdir(exist_ok=True)
    if tensors is not None:
        save_file(tensors, folder / "2_Dense" / "model.safetensors")
    files = {"2_Dense/config.json": {"in_features": 3, "out_features": 5} | config}
    return read(folder, [TRANSFORMER, POOLING, DENSE, NORMALIZE], {}, **files)


def test_a_dense_layer_with_its_weights(tmp_path: Path) -> None:
    weight, bias = torch.randn(5, 3), torch.randn(5)
    found = dense(tmp_path, {}, {"linear.weight": weight.half(), "linear.bias": bias})
    (layer,) = found.dense
    assert (found.unknown, found.normalise, layer.activation, layer.residual) == ("", True, "Tanh", False)
    assert torch.equal(layer.weight, weight.half().float())
    assert layer.bias is not None
    assert torch.equal(layer.bias, bias)
    for name in ACTIVATIONS:
        config = {"bias": False, "activation_function": f"torch.nn.modules.activation.{name}"}
        (layer,) = dense(tmp_path, config, {"linear.weight": weight}).dense
        assert (layer.activation, layer.bias) == (name, None)
    tensors = {"linear.weight": weight, "residual.weight": 2 * weight}
    (layer,) = dense(tmp_path, {"bias": False, "use_residual": True}, tensors).dense
    assert torch.equal(torch.as_tensor(layer.residual), 2 * weight)


def test_a_dense_layer_that_is_not_whole(tmp_path: Path) -> None:
    whole = {"linear.weight": torch.randn(5, 3), "linear.bias": torch.randn(5)}
    assert dense(tmp_path, {}).unknown == (
        "its folder has no 2_Dense/model.safetensors, which has the weights of a Dense"
    )
    (tmp_path / "2_Dense" / "pytorch_model.bin").touch()
    assert dense(tmp_path, {}).unknown.endswith("of a Dense (there is a pickle, which is never read)")
    for config, tensors, says in (
        (
            {"activation_function": "own.Swish"},
            whole,
            "2_Dense/config.json: activation 'own.Swish', known are torch.nn's",
        ),
        ({"activation_function": 3}, whole, "2_Dense/config.json: activation '3', known are"),
        (
            {"out_features": 7},
            whole,
            "its tensors are {'linear.bias': (5,), 'linear.weight': (5, 3)}, its config needs",
        ),
        ({"bias": False}, whole, "its config needs {'linear.weight': (5, 3)}"),
        ({}, {"linear.weight": whole["linear.weight"]}, "2_Dense/model.safetensors: its tensors are"),
        ({}, whole | {"linear.bias": torch.full((5,), torch.nan)}, "its weights hold NaN or infinity"),
        ({"module_input_name": "token_embeddings"}, whole, "module 2 (Dense) takes or gives no sentence embedding"),
    ):
        assert says in dense(tmp_path, config, tensors).unknown
    (tmp_path / "2_Dense" / "model.safetensors").write_bytes(b"no tensors")
    assert "2_Dense/model.safetensors cannot be read: " in dense(tmp_path, {}).unknown


def test_a_transformer_of_which_something_else_is_pooled(tmp_path: Path) -> None:
    usual = {
        "transformer_task": "feature-extraction",
        "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
        "module_output_name": "token_embeddings",
    }
    message = {"message": {"method": "forward", "method_output_name": "last_hidden_state"}}
    pooled = {"text": {"method": "forward", "method_output_name": "pooler_output"}}
    for changes, says in (
        ({}, ""),
        ({"transformer_task": "fill-mask"}, "sentence_bert_config.json: transformer_task is 'fill-mask', known is"),
        ({"module_output_name": "scores"}, "sentence_bert_config.json: module_output_name is 'scores', known is"),
        ({"modality_config": pooled}, "sentence_bert_config.json: method_output_name is 'pooler_output', known is"),
        ({"modality_config": message}, "sentence_bert_config.json: texts are put into a chat template before"),
    ):
        found = read(tmp_path, [TRANSFORMER, POOLING], {}, **{"sentence_bert_config.json": usual | changes})
        assert found.unknown.startswith(says)
        assert bool(found.unknown) == bool(says)


def test_a_file_that_cannot_be_had(tmp_path: Path) -> None:
    def find(name: str) -> Path:
        raise OSError("the hub does not answer\nat all")

    assert read_pooling(find).unknown == "the hub does not answer"
    (tmp_path / "modules.json").mkdir()
    assert "modules.json" in read_pooling(lambda name: tmp_path / name).unknown
    (tmp_path / "modules.json").rmdir()
    (tmp_path / "modules.json").symlink_to("modules.json")  # to itself: it is there, and cannot be read
    assert "symbolic links" in read_pooling(partial(_file_of_model, tmp_path)).unknown
