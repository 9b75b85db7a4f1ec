"""`regard see` of other models than the default one, of long texts and of saved traces."""

import json
import re
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
import transformers

from tests.support import make_tiny, run_all_in_process
from tests.support.pairs import make_pair

PAIR = ["the man on the river bank", "a man takes money from the bank"]
TARGETS = ["--target-text", "un homme sur la rive", "--target-text", "un homme prend de argent de la banque"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, minilm) -> Path:
    """Tiny random models: "pair", "causal", "masked" and "bare", without a language head."""
    made = tmp_path_factory.mktemp("models")
    make_pair(made / "pair")
    make_tiny(made / "bare", minilm)
    for name, kind, head in (("causal", "llama", "LlamaForCausalLM"), ("masked", "bert", "BertForMaskedLM")):
        config = make_tiny(made / name, minilm, kind).config
        getattr(transformers, head)(config).eval().save_pretrained(made / name)
    return made


def valid(file: Path) -> dict:
    data = json.loads(file.read_text(encoding="utf-8"))
    schema = json.loads(files("regard.questions.see").joinpath("see.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(data, schema)
    return data


def test_pairs(folder: Path) -> None:
    see, saved = (
        ["see", *PAIR, *TARGETS, "--model", "pair", "--top", "2", "--full"],
        ["--save", "a.safetensors", "--save-attention-outputs"],
    )
    (code, out, err), (code_2, _, err_2), (code_3, out_3, err_3) = run_all_in_process(
        folder,
        [
            [*see, "--word", "bank", "--figure", "a.png", "--json", "a.json", *saved],
            [*see, "--word", "homme", "--logit-lens", "--json", "b.json", "--figure", "b.svg", "--layer=1", "--head=2"],
            ["see", "--open", "a.safetensors", "--top", "2", "--word", "bank", "--full"],
        ],
    )
    assert (code, code_2, code_3) == (0, 0, 0), err + err_2 + err_3
    for says in (
        "Target 1: 7 tokens, including special tokens",
        "Cross-attention in text 2 as each token is written (layer ",
        "Target tokens that attend to “bank” of text 2 (mean of heads)",
        "“bank” in text 1 attends to",
    ):
        assert says in out
    assert max(map(len, out.splitlines())) <= 80
    first, second = valid(folder / "a.json"), valid(folder / "b.json")
    assert first["target"]["generated"] == [False, False]
    assert [len(rows) for rows in first["target"]["alignments"][1]["weights"]] == [10, 10, 10]
    assert [o["word"] for o in second["target"]["summary"]["occurrences"]] == ["homme", "homme"]
    assert [lens["at"] for lens in second["target"]["summary"]["logit_lenses"]] == ["un", "un"]
    assert second["target"]["alignments"][0]["written_layer"] == 1
    assert (folder / "a.png").read_bytes().startswith(b"\x89PNG")
    same, with_files = ([re.sub(r", [\d.]+ s$", "", line) for line in each.splitlines()] for each in (out_3, out))
    assert same == [line for line in with_files if not line.startswith("Wrote ")]  # without the model


def test_a_target_that_the_model_writes(folder: Path) -> None:
    ((code, out, err),) = run_all_in_process(folder, [["see", PAIR[0], "--model", "pair", "--json", "own.json"]])
    assert code == 0, err
    assert "the likeliest token each time" in out
    assert "stops at the limit of" in " ".join(out.split())  # a random model does not come to an end
    data = valid(folder / "own.json")
    assert data["target"]["generated"] == [True]
    assert len(data["target"]["summary"]["tokens"][0]) == 29  # all that the model has room for


def test_what_models_say(folder: Path) -> None:
    calls = [
        ["see", "a man on a river bank", "--model", "causal", "--word", "river", "--logit-lens", "--top", "3",
         "--figure", "c.png", "--json", "c.json", "--save", "c.safetensors", "--full"],
        ["see", "--open", "c.safetensors", "--model", "causal", "--word", "river", "--logit-lens", "--top=3", "--full"],
        ["see", "--open", "c.safetensors", "--word", "river"],
        ["see", "a man on a [MASK] bank", "--model", "masked", "--logit-lens", "--json", "m.json", "--top", "2"],
    ]  # fmt: skip
    (code, out, err), (code_2, out_2, err_2), (code_3, out_3, _), (code_4, out_4, err_4) = run_all_in_process(
        folder, calls
    )
    assert (code, code_2, code_3, code_4) == (0, 0, 0, 0), err + err_2 + err_4
    for says in ("What the model predicts next", "Predictions after “river” in text 1, layer by layer (logit lens)"):
        assert says in out
        assert says in out_2
    assert "id " not in out_3  # there is no vocabulary, but the file spells what it predicts
    assert "Predictions at “[MASK]” in text 1, layer by layer (logit lens)" in out_4
    data = valid(folder / "c.json")
    river, last = data["predictions"]
    assert (river["at"], river["occurrence"], last["at"], last["occurrence"]) == ("river", "1", "[SEP]", None)
    assert sum(c["probability"] for c in river["candidates"]) <= 1
    assert [len(each["layers"]) for each in data["logit_lenses"]] == [3, 3]
    assert valid(folder / "m.json")["predictions"][0]["after"] is False


@pytest.mark.long  # 11 s: pictures of 26 windows
def test_windows_and_parts_of_traces(folder: Path) -> None:
    text = "the man went to the river bank and then " * 6
    calls = [
        ["see", text, "--model", "bare", "--word", "bank", "--window", "20", "--stride", "9", "--json", "w.json",
         "--figure", "w.png"],
        ["see", PAIR[0], "--model", "bare", "--save", "part.safetensors", "--save-layers", "1",
         "--save-dtype", "float16"],
        ["see", "--open", "part.safetensors", "--word", "bank", "--figure", "p.png", "--json", "p.json"],
        ["see", "--open", "part.safetensors", "--full"],
        ["see", PAIR[0], *TARGETS[:2], "--model", "pair", "--save", "q.safetensors", "--save-layers", "1"],
        ["see", "--open", "q.safetensors", "--word", "rive", "--figure", "q.png", "--json", "q.json"],
    ]  # fmt: skip
    told = run_all_in_process(folder, calls)
    assert [code for code, _, _ in told] == [0] * 6, told
    (_, out, _), _, (_, out_3, _), (_, out_4, _), *_ = told
    assert "shown as   text   window" in out
    data = valid(folder / "w.json")
    assert len(data["occurrences"]) == 6
    assert data["labels"] == [f"1.{each['window'] + 1}" for each in data["windows"]]
    part = valid(folder / "p.json")
    assert [row["layer"] for row in part["occurrences"][0]["attends"]] == [1]
    assert "float16" in out_3
    assert " 1: " in out_4
    assert " 0: " not in out_4
    pair = valid(folder / "q.json")["target"]
    (alignment,) = pair["alignments"]
    assert (alignment["layers"], alignment["written_layer"], alignment["read_layer"]) == ([1], 1, 1)
    assert [row["layer"] for row in pair["of_words"][0]["read"]] == [1]


def test_bad_input(folder: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole.safetensors"
    cut = tmp_path / "cut.safetensors"
    model = ["--model", str(folder / "pair")]
    bare = ["--model", str(folder / "bare")]
    calls = [
        ["see", PAIR[0], *bare, "--target-text", "une banque"],
        ["see", PAIR[0], *bare, "--logit-lens"],
        ["see", PAIR[0], *model, "--target-text", "la rive", "--window", "9"],
        ["see", PAIR[0], *model, "--window", "9"],
        ["see", PAIR[0], *model, "--target-text", "la rive", "--word", "bunk"],
        ["see", PAIR[0], *model, "--target-text", "la rive", "--word", "rive", "--compare", "man"],
        ["see", PAIR[0], *model, "--target-text", "la rive", "--logit-lens", "--word", "bank"],
        ["see", PAIR[0], *bare, "--window", "500"],
        ["see", PAIR[0], *bare, "--save", "x.safetensors", "--save-layers", "7"],
        ["see", PAIR[0], *bare, "--save", "x.safetensors", "--save-dtype", "int8"],
        ["see", PAIR[0], *bare, "--save", str(whole)],
    ]
    says = [
        "is not an encoder-decoder: it reads a single text",
        "has no language-model head",
        "--window: texts with a target cannot be read in windows",
        "is an encoder-decoder, which cannot read a text in windows",
        "text: word 'bunk' is not in",
        "--compare compares words of the texts: 'rive' is only in their targets",
        "follow a word of the target",
        "window: got 500",
        "layer 7 does not exist",
        "dtype: got 'int8'",
    ]
    work = tmp_path / "work"
    work.mkdir()
    told = run_all_in_process(
        work, [[*each, "--json", "x.json"] if n < len(says) else each for n, each in enumerate(calls)]
    )
    for (code, out, err), said in zip(told, says, strict=False):
        assert (code, out) == (2, ""), err
        assert err.startswith("regard: error: ")
        assert err.count("\n") == 1
        assert said in err
    assert list(work.iterdir()) == []
    cut.write_bytes(whole.read_bytes()[:-100])
    told = run_all_in_process(
        work,
        [
            ["see", "--open", str(cut)],
            ["see", "--open", str(whole), "--logit-lens"],
            ["see", "--open", str(whole), "--logit-lens", *model],
            ["see", "--open", str(whole), "--word", "bunk", "--json", "x.json"],
        ],
    )
    for (code, _, err), said in zip(
        told,
        ["not a valid trace or attention file", "needs --model", "the trace is another model's", "is not in the text"],
        strict=True,
    ):
        assert code == 2
        assert said in err
    assert list(work.iterdir()) == []
