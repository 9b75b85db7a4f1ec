"""Checks of clean models pass and leave the model alone; each planted error is found."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks import tiny as families
from benchmarks.tiny import make
from regard.attention.attention_map import AttentionMap
from regard.attention.kernels import dispatch
from regard.attention.kernels.cpu import forward, forward_statistics
from regard.attention.kernels.cpu import statistics as cpu_statistics
from regard.errors import RegardError
from regard.explain.causes import contributions
from regard.models.model import Model
from regard.verify import check as module
from regard.verify.check import FAILED, NOT_TESTED, PASSED, Check, check
from tests.capture.test_families import DECODERS, PAIRS, tiny
from tests.support.own_models import opened

ONE_LAYER = {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 16}
LONG = {"max_position_embeddings": 1024}
# families of many kinds: encoders, decoders, encoder-decoders, sinks, sliding windows, experts, norms after attention,
# hybrids with state spaces, pictures, and attention outside the interface of transformers
ARCHITECTURES = (
    "gpt2", "llama", "gemma2", "mistral", "gpt_oss", "opt", "marian", "bart", "t5", "bert", "roberta", "distilbert",
    "albert", "electra", "deberta-v2", "modernbert", "qwen2", "qwen3", "gemma", "phi", "olmo2", "gpt_neox", "granite",
    "cohere", "stablelm", "starcoder2", "mixtral", "deepseek_v3", "smollm3", "biogpt", "pegasus", "mbart", "vit",
    "jamba", "whisper", "qwen3_next", "diffllama", "bloom", "xlnet", "m2m_100",
)  # fmt: skip


def of(kind: str, sizes: dict[str, Any] = {}) -> Model:  # noqa: B006
    return Model(tiny(kind, (PAIRS | DECODERS)[kind] | sizes, language=kind in DECODERS), None, name=kind)


def verdicts(found: Check) -> dict[str, str]:
    return {each.check: each.verdict for each in found.results}


@pytest.mark.parametrize("kind", ["gpt2", "gpt_oss"])
def test_all_checks_of_a_decoder_pass_and_the_model_is_as_before(kind: str) -> None:
    model, done = of(kind), list[int]()
    model.model.train()
    before = {name: (each, each.clone()) for name, each in model.model.state_dict(keep_vars=True).items()}
    config = model.model.config.to_dict()
    found = check(model, progress=lambda number, _: done.append(number))
    assert set(verdicts(found).values()) == {PASSED}, found.rows()
    assert done == list(range(9))
    after = model.model.state_dict(keep_vars=True)
    assert all(after[name] is each and torch.equal(each, copy) for name, (each, copy) in before.items())
    assert model.model.config.to_dict() == config
    assert all(each.training and not each._forward_hooks for each in model.model.modules())


def test_pairs_and_other_inputs_and_folders(tmp_path: Path) -> None:
    pair = check(of("marian"))
    assert pair.holds
    assert [each.check for each in pair.of(NOT_TESTED)] == ["generation with a cache"]
    model, inputs = make("vit")
    seen = verdicts(check(Model(model, None, name="vit"), inputs=inputs))
    assert [seen[name] for name in ("attention weights", "statistics", "contributions")] == [PASSED] * 3
    of("gpt2").model.save_pretrained(tmp_path)
    assert check(tmp_path).holds


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_inputs_that_cannot_be_checked_are_refused(minilm: Model) -> None:
    vit = Model(make("vit")[0], None, name="vit")
    for model, texts, inputs, said in (
        (minilm, [" "], None, "blank"), (minilm, [], None, "at least one text"), (minilm, ["a"], {}, "or inputs"),
        (of("gpt2"), "a", None, "no tokenizer"), (vit, None, None, "vit reads 'pixel_values': call"),
        (opened("gpt"), None, None, "is a regard.Transformer"), (3, None, None, "load: got int"),
    ):  # fmt: skip
        with pytest.raises(RegardError, match=said):
            check(model, texts, inputs=inputs)


def test_texts_of_a_tokenizer_and_one_as_long_as_the_model_reads(minilm: Model, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "LENGTH", 40)
    found = check(minilm)
    assert set(verdicts(found).values()) == {PASSED, NOT_TESTED}, found.rows()
    assert "up to 40 tokens" in found.exactness()[0]
    alone = verdicts(check(minilm, "A man on a river bank."))
    assert (alone["attention weights"], alone["a padded batch"]) == (PASSED, NOT_TESTED)


def test_sinks_of_any_size_are_counted() -> None:
    model = of("gpt_oss")
    for size in (-11.0, 0.0, 11.0):
        for name, parameter in model.model.named_parameters():
            if "sinks" in name:
                torch.nn.init.constant_(parameter, size)
        assert verdicts(check(model))["statistics"] == PASSED


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_allowed_its_own_rounding(dtype: torch.dtype) -> None:
    model = of("marian")
    found = check(Model(model.model.to(dtype), None, name="marian"))
    assert found.holds, found.rows()
    assert {each.check for each in found.of(NOT_TESTED)} <= {
        "contributions",
        "an ablated head",
        "generation with a cache",
    }


def test_generation_is_not_tested_if_transformers_raises() -> None:
    model = of("gpt2")

    def raises(*_: Any, **__: Any) -> None:
        raise ValueError("not today")

    model.model.generate = raises
    found = check(model).results[-1]
    assert (found.verdict, found.where) == (NOT_TESTED, "its own generate raises ValueError: not today")


def larger(found: Any, by: float) -> Any:
    return found.each(lambda each: each * by if each.is_floating_point() else each)


def exchanged(each: Tensor, axis: int) -> Tensor:
    order = [1, 0, *range(2, each.shape[axis])]
    return each.index_select(axis, torch.tensor(order))


def two_tokens(found: Any) -> Any:
    swapped = {name: exchanged(getattr(found, name), 1) for name in ("norms", "shares", "_weights", "_values")}
    return replace(found, **swapped)


def two_heads(found: Any) -> Any:
    swapped = {name: exchanged(getattr(found, name), 0) for name in ("norms", "shares", "_weights", "_projection")}
    return replace(found, **swapped)


def two_fractions(found: Any) -> Any:
    return replace(found, shares=exchanged(found.shares, 0))


# where an error is planted, what it does to the result, the tokens from which the code is in use, and who finds it
PLANTS: dict[str, tuple[Any, str, Callable[[Any], Any], int, str]] = {
    "CPU statistics": (cpu_statistics, "compute", lambda found: larger(found, 1.01), 512, "statistics"),
    "one sweep": (
        forward_statistics, "compute", lambda found: found._replace(statistics=larger(found.statistics, 1.01)), 512,
        "statistics",
    ),
    "tiles": (forward, "forward", lambda it: it._replace(output=it.output * 1.01), 1024, "logits and last states"),
    "distance": (AttentionMap, "distance", lambda found: found * 1.03, 31, "statistics"),
    "two tokens": (contributions, "split", two_tokens, 31, "contributions"),
    "two heads": (contributions, "split", two_heads, 31, "contributions"),
    "two fractions": (contributions, "split", two_fractions, 31, "contributions"),
}  # fmt: skip


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_error_is_found(plant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, change, length, finder = PLANTS[plant]
    true = getattr(where, name)
    monkeypatch.setattr(module, "LENGTH", length)
    monkeypatch.setattr(dispatch, "CPU_SPEED", 0)  # tiles are then chosen on every machine
    monkeypatch.setattr(where, name, lambda *given, **options: change(true(*given, **options)))
    found = check(of("llama", ONE_LAYER | LONG))
    assert verdicts(found)[finder] == FAILED, found.rows()


def test_a_failure_before_a_refusal_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    true, calls = contributions.split, list[int]()

    def once_wrong_then_refused(*given: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            raise RegardError("refused")
        return two_heads(true(*given))

    monkeypatch.setattr(contributions, "split", once_wrong_then_refused)
    assert verdicts(check(of("gpt2")))["contributions"] == FAILED


@pytest.mark.long  # a minute
@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize("family", ARCHITECTURES)
def test_no_false_alarm(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LENGTH", 64)
    model, inputs = families.make(family)
    auto = families.transformers.AutoModelForCausalLM
    if model.config.is_encoder_decoder:
        auto = families.transformers.AutoModelForSeq2SeqLM
    if "input_ids" in inputs and type(model.config) in auto._model_mapping:
        model = families.seeded(auto.from_config, model.config)
    found = check(Model(model, None, name=family), inputs=None if "input_ids" in inputs else inputs)
    assert found.holds, found.of(FAILED)
    assert found.of(PASSED)
