"""How a folder says that its token vectors are pooled: in the older and the newer form, and what is not known."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from regard.model_files.pooling import OLDER, Pooling, read_pooling
from regard.models.load import _file_of_model

TRANSFORMER = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
POOLING = {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
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
    assert other.unknown == "modules.json: module 2 normalises something other than the sentence embedding"


def test_what_is_done_to_the_text(tmp_path: Path) -> None:
    prompts = {"default_prompt_name": "query", "prompts": {"query": "query: ", "passage": "passage: "}}
    found = read(
        tmp_path, [TRANSFORMER, POOLING], {"pooling_mode": "cls"},
        **{"sentence_bert_config.json": {"max_seq_length": 11, "do_lower_case": True}},
        **{"config_sentence_transformers.json": prompts},
    )  # fmt: skip
    assert found == Pooling(("cls",), lower_case=True, prompt="query: ")
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
        ([TRANSFORMER, POOLING, NORMALIZE | {"type": "sentence_transformers.models.Dense"}], {}, "module 2 is 'Dense'"),
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
        ([TRANSFORMER, POOLING], {"include_prompt": False}, "prompts are left out of the pooling"),
        ([TRANSFORMER, POOLING], "{", "cannot be read"),
    ],
)
def test_what_is_not_known_has_a_reason(tmp_path: Path, modules: Any, config: Any, says: str) -> None:
    found = read(tmp_path, modules, config)
    assert says in found.unknown
    assert "\n" not in found.unknown
    assert found.modes == ()


def test_a_file_that_cannot_be_had(tmp_path: Path) -> None:
    def find(name: str) -> Path:
        raise OSError("the hub does not answer\nat all")

    assert read_pooling(find).unknown == "the hub does not answer"
    (tmp_path / "modules.json").mkdir()
    assert "modules.json" in read_pooling(lambda name: tmp_path / name).unknown
    (tmp_path / "modules.json").rmdir()
    (tmp_path / "modules.json").symlink_to("modules.json")  # to itself: it is there, and cannot be read
    assert "symbolic links" in read_pooling(partial(_file_of_model, tmp_path)).unknown
