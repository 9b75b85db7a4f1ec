"""Our own transformers as models to look at: traces against the definition, folders and runs, text that they write."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
import torch

import regard
from regard.attention import reference
from regard.explain.contributions import contributions
from regard.models.model import Model
from regard.nn import folder as model_folder
from regard.nn.config import TransformerConfig
from regard.nn.decoding import Choice, translate, write
from regard.nn.transformer import Transformer
from regard.text import tokenizers

TEXTS = ["A man is fishing on a river bank.", "She takes money.", "A bank"]
TARGETS = ["Un homme pêche au bord d'une rivière.", "Elle prend de l'argent !", "Une banque"]
KINDS: dict[str, dict[str, Any]] = {
    "gpt": {"length": 31},
    "post-norm": {"length": 31, "norm_first": False, "norm_embeddings": True},
    "llama": {"norm": "rms", "gated": True, "positions": "rotary", "key_heads": 1, "bias": False, "output": "free"},
    "alibi": {"positions": "alibi", "scale_embeddings": True},
    "bert": {"kind": "encoder", "length": 31, "segments": 2, "output": "none", "norm_first": False},
    "sines": {"kind": "encoder", "positions": "sinusoidal", "scale_embeddings": True},
}


@pytest.fixture
def _no_checks_of_annotations() -> Iterator[None]:
    """Calls as a user makes them: without the run-time checks that tests otherwise have."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def opened(name: str) -> Model:
    torch.manual_seed(0)
    tokenizer = tokenizers.words(TEXTS, frame="bert" if name == "bert" else "none")
    sizes = {"vocabulary": len(tokenizer), "d_model": 12, "heads": 3, "layers": 2, "initial": 0.4}
    model = Transformer(TransformerConfig(**(sizes | KINDS[name]))).eval()
    return regard.load(model, tokenizer=tokenizer)


def pair(**changes: Any) -> Model:
    torch.manual_seed(0)
    tokenizer = tokenizers.byte_pairs([*TEXTS, *TARGETS], size=300, frame="end")
    sizes = {"d_model": 12, "heads": 3, "layers": 2, "d_hidden": 19}
    config = TransformerConfig.translator(len(tokenizer), tokenizer.bos_token_id, **(sizes | changes))
    return regard.load(Transformer(config).eval(), tokenizer=tokenizer)


@pytest.mark.parametrize("kind", KINDS)
def test_a_trace_is_the_models_pass_with_exact_weights(kind: str) -> None:
    model = opened(kind)
    traces = model.trace(TEXTS)
    for trace, text in zip(traces, TEXTS, strict=True):
        ids = torch.tensor([[token.id for token in trace.tokens]])
        with torch.no_grad(), regard.record(keep=("value", "output")) as calls:
            own = model.model(ids)
        torch.testing.assert_close(trace.contextual, own.last_hidden_state[0], rtol=0, atol=1e-5)
        assert (trace.logits is None) == (kind == "bert")
        if trace.logits is not None:
            torch.testing.assert_close(trace.logits, own.logits[0], rtol=0, atol=1e-5)
        causal = model.model.config.kind == "decoder"
        for weights, value, call in zip(trace.attention, trace.values, calls.values(), strict=True):
            query, key = call.weights.query, call.weights.key
            bias = call.weights.rule.bias
            exact = reference.attention(query, key, call.value, causal=causal, bias=bias)
            torch.testing.assert_close(weights.dense().double(), exact.weights[0], rtol=0, atol=1e-5)
            torch.testing.assert_close(call.output.double(), exact.output, rtol=0, atol=1e-5)
            torch.testing.assert_close(value, call.value[0], rtol=0, atol=1e-5)
        assert len(trace.hidden_states) == 3
        assert 0 <= trace.status.difference < 1e-5
        assert trace.status.rows_compared > 0
        assert trace.status.notes == ()
        single = model.trace(text)
        torch.testing.assert_close(single.contextual, trace.contextual, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_add_up(kind: str) -> None:
    """The embeddings' parts to what enters, and each block's contributions to what leaves it."""
    model = opened(kind)
    trace, config = model.trace(TEXTS[0]), model.model.config
    ids = [token.id for token in trace.tokens]
    scale = config.d_model**0.5 if config.scale_embeddings else 1.0
    torch.testing.assert_close(trace.learned, scale * model.model.embedding.weight[ids].detach(), rtol=0, atol=1e-5)
    assert (trace.positional is None) == (config.positions not in ("learned", "sinusoidal"))
    assert (trace.segment is None) == (config.segments == 0)
    assert trace.status.embedding_difference < 1e-5
    if config.positions == "sinusoidal":
        sines = regard.nn.positions.sinusoidal(len(ids), 12)
        torch.testing.assert_close(trace.positional, sines, rtol=0, atol=1e-5)
    if not config.norm_embeddings:
        assert torch.equal(trace.input, trace.hidden_states[0])
    for layer in range(2):
        found = contributions(trace, "bank", layer)
        assert found.error < 1e-5
        assert float(found.shares.sum()) + found.residual_share + found.bias_share == pytest.approx(1, abs=1e-5)


def test_a_pair_is_traced_with_its_crossing_attention() -> None:
    model = pair()
    both = model.trace(TEXTS, target=TARGETS)
    for each, text, target in zip(both, TEXTS, TARGETS, strict=True):
        source, written = (model.tokenizer(t)["input_ids"] for t in (text, target))
        read = [model.tokenizer.bos_token_id, *written[:-1]]
        assert [t.id for t in each.encoder.tokens] == source
        assert [t.id for t in each.decoder.tokens] == read
        with torch.no_grad():
            own = model.model(torch.tensor([source]), torch.tensor([read]))
        torch.testing.assert_close(each.decoder.logits, own.logits[0], rtol=0, atol=1e-5)
        torch.testing.assert_close(each.encoder.contextual, own.encoder_last_hidden_state[0], rtol=0, atol=1e-5)
        assert [m.shape for m in each.decoder.cross] == [(3, len(read), len(source))] * 2
        assert [m.shape for m in each.decoder.attention] == [(3, len(read), len(read))] * 2
        assert each.status.difference < 1e-5
        assert each.encoder.status.embedding_difference < 1e-5
        assert each.decoder.status.embedding_difference < 1e-5
        assert contributions(each.decoder, 1, 1, cross=True).error < 1e-5


def test_cuts_are_as_if_it_were_not_there() -> None:
    model = opened("gpt")
    cut = model.trace(TEXTS[0], interventions=[regard.ablate(regard.head(1, 2))])
    with torch.no_grad():
        model.model.decoder[1].attention.output.weight[:, 8:] = 0  # the third head's columns
    torch.testing.assert_close(cut.contextual, model.trace(TEXTS[0]).contextual, rtol=0, atol=1e-5)
    edge = model.trace(TEXTS[0], interventions=[regard.ablate(regard.edge("bank", "river"))])
    assert not edge.attention[0][:, 7, 6].any()


def test_tracing_leaves_the_model_as_it_was() -> None:
    model = opened("gpt")
    model.model.train()
    hooks = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.model.modules())
    model.trace(TEXTS[0])
    assert model.model.training
    assert hooks == sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.model.modules())


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_there_and_back(kind: str, tmp_path: Path) -> None:
    model = opened(kind)
    model.save(tmp_path / "kept")
    assert {file.name for file in (tmp_path / "kept").iterdir()} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    state = torch.get_rng_state()
    read = regard.load(tmp_path / "kept", device="cpu")
    assert torch.equal(state, torch.get_rng_state())  # loading draws nobody's random numbers
    assert read.model.config == model.model.config
    own, again = dict(model.model.named_parameters()), dict(read.model.named_parameters())
    assert all(torch.equal(own[name], again[name]) for name in own)
    assert own.keys() == again.keys()
    a, b = model.trace(TEXTS[0]), read.trace(TEXTS[0])
    assert a.tokens == b.tokens
    assert torch.equal(a.contextual, b.contextual)


def test_a_run_is_opened_at_its_newest_checkpoint(tmp_path: Path) -> None:
    for step, kind in ((100, "gpt"), (200, "llama")):
        opened(kind).save(tmp_path / "checkpoints" / f"step-{step:06}")
    with pytest.raises(regard.RegardError, match=r"without a whole checkpoint: it has no latest\.json"):
        model_folder.read_model(tmp_path)
    for name, kind in (("step-000100", "learned"), ("step-000200", "rotary")):
        (tmp_path / "latest.json").write_text(json.dumps({"checkpoint": name}))
        assert regard.load(tmp_path).model.config.positions == kind
    for wrong in ("../gpt", "step-000300", 3, ""):
        (tmp_path / "latest.json").write_text(json.dumps({"checkpoint": wrong}))
        with pytest.raises(regard.RegardError, match=r"latest\.json'.*(no folder|needed is the name)"):
            regard.load(tmp_path)
    (tmp_path / "latest.json").write_text("{")
    with pytest.raises(regard.RegardError, match=r"latest\.json' cannot be read"):
        regard.load(tmp_path)


def test_broken_folders_are_refused_by_name(tmp_path: Path) -> None:
    def broken(file: str, content: bytes | None, says: str) -> None:
        folder = tmp_path / f"{file}{len(list(tmp_path.iterdir()))}"
        opened("gpt").save(folder)
        if content is None:
            (folder / file).unlink()
        else:
            (folder / file).write_bytes(content)
        with pytest.raises(regard.RegardError, match=says):
            regard.load(folder)

    weights = "model.safetensors"
    whole = tmp_path / "whole"
    opened("gpt").save(whole)
    content = (whole / weights).read_bytes()
    broken(weights, None, "no weights, needed is model.safetensors")
    broken(weights, content[:-3], "is truncated or no safetensors file")
    broken(weights, content.replace(b"decoder_norm.weight", b"decoder_form.weight"), "the first 'decoder_norm.weight'")
    config = json.loads((whole / "config.json").read_text())
    broken(
        "config.json", json.dumps(config | {"d_hidden": 7}).encode(), r"shape \(12, 48\), its config needs \(12, 7\)"
    )
    broken("config.json", json.dumps(config | {"segments": 2}).encode(), "missing, the first 'segments.weight'")
    broken("config.json", json.dumps(config | {"output": "free"}).encode(), "missing, the first 'head.weight'")
    broken("config.json", json.dumps(config | {"vocabulary": 3}).encode(), "shape")
    nan = opened("gpt")
    with torch.no_grad():
        nan.model.decoder_norm.weight[3] = torch.nan
    nan.save(tmp_path / "nan")
    with pytest.raises(regard.RegardError, match=r"weights hold NaN, in tensor 'decoder_norm\.weight'"):
        regard.load(tmp_path / "nan")
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(regard.RegardError, match="cannot make the folder"):
        opened("gpt").save(blocker / "folder")


@pytest.mark.usefixtures("_no_checks_of_annotations")
@pytest.mark.parametrize("kind", ["gpt", "llama", "alibi"])
def test_what_it_writes_is_what_each_full_pass_says(kind: str) -> None:
    model = opened(kind)
    made = model.generate("A man is", new_tokens=12)
    ids = [token.id for token in model.trace("A man is").tokens]
    for _ in range(12):
        with torch.no_grad():
            ids.append(int(model.model(torch.tensor([ids])).logits[0, -1].argmax()))
    assert list(made.ids) == ids
    assert (made.start, made.ended) == (3, "length")
    assert made.text.startswith("A man is")
    assert [token.id for token in made.trace.tokens] == ids
    assert made.trace.status.difference < 1e-5
    with torch.no_grad():
        expected = model.model(torch.tensor([ids])).logits[0]
    torch.testing.assert_close(made.trace.logits, expected, rtol=0, atol=1e-5)


@pytest.mark.usefixtures("_no_checks_of_annotations")
def test_draws_come_from_the_seed() -> None:
    model = opened("llama")
    options = {"do_sample": True, "new_tokens": 9, "temperature": 2.0}
    first = model.generate("A man", seed=3, **options)
    assert first.ids == model.generate("A man", seed=3, **options).ids
    assert len({model.generate("A man", seed=seed, **options).ids for seed in range(5)}) > 1
    greedy = model.generate("A man", new_tokens=9)
    assert model.generate("A man", do_sample=True, top_k=1, new_tokens=9, seed=5).ids == greedy.ids
    assert model.generate("A man", do_sample=True, top_p=1e-9, new_tokens=9, seed=5).ids == greedy.ids
    stopped = model.generate("A man", new_tokens=9, stop=greedy.new.split()[2])
    assert (stopped.ended, len(stopped.ids)) == ("stop", 2 + 3)


@pytest.mark.usefixtures("_no_checks_of_annotations")
def test_a_prompt_is_gone_on_with_and_may_end() -> None:
    torch.manual_seed(0)
    tokenizer = tokenizers.words(TEXTS, frame="both")
    sizes = {"vocabulary": len(tokenizer), "d_model": 12, "heads": 3, "layers": 1, "length": 8}
    model = regard.load(Transformer(TransformerConfig(**sizes, output="free", output_bias=True)), tokenizer=tokenizer)
    with torch.no_grad():
        model.model.head.bias[tokenizer.eos_token_id] = 100
    made = model.generate("A man is", new_tokens=4)  # [BOS] and three words leave room for four of eight
    begin, end = tokenizer.bos_token_id, tokenizer.eos_token_id
    assert list(made.ids) == [begin, *tokenizer("A man is", add_special_tokens=False)["input_ids"], end]
    assert (made.new, made.ended, made.start) == ("", "end", 4)


def test_draws_have_the_models_shares() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0, 0.0]]).expand(40_000, -1)
    for choice, allowed in (
        (Choice(do_sample=True, seed=1), [0, 1, 2, 3]),
        (Choice(do_sample=True, seed=1, top_k=2, temperature=2.0), [1, 2]),
        (Choice(do_sample=True, seed=1, top_p=0.8), [1, 2]),  # 0.64 alone is less, 0.88 together is enough
    ):
        drawn = choice.chooser()(logits).bincount(minlength=4) / 40_000
        mask = torch.tensor([n in allowed for n in range(4)])
        exact = (logits[0] / choice.temperature).masked_fill(~mask, -torch.inf).softmax(0)
        torch.testing.assert_close(drawn, exact, rtol=0, atol=0.01)


@pytest.mark.usefixtures("_no_checks_of_annotations")
def test_a_batch_is_translated_as_each_alone() -> None:
    """Greedy, against full passes; finished rows wait for the others."""
    model = pair(initial=0.4)
    end, start = model.tokenizer.eos_token_id, model.tokenizer.bos_token_id
    batch = tokenizers.batch(model.tokenizer, TEXTS)
    got = translate(model.model, batch.ids, batch.mask, new_tokens=9, end=end)
    for row, text in enumerate(TEXTS):
        source, ids = torch.tensor([model.tokenizer(text)["input_ids"]]), [start]
        while len(ids) < 10 and ids[-1] != end:
            with torch.no_grad():
                ids.append(int(model.model(source, torch.tensor([ids])).logits[0, -1].argmax()))
        assert got[row] == ids[1:]
        made = model.generate(text, new_tokens=9)
        assert list(made.ids) == ids
        assert made.trace.decoder.cross[0].shape == (3, len(ids), source.shape[1])
        assert made.ended == ("end" if ids[-1] == end else "length")
        likely = ids[2]  # as if this were the end: it is written, and nothing after it
        assert translate(model.model, source, new_tokens=9, end=likely)[0] == ids[1 : ids.index(likely, 1) + 1]


@pytest.mark.usefixtures("_no_checks_of_annotations")
def test_a_sliding_context_goes_on_for_ever() -> None:
    model = opened("gpt").model
    ids = torch.tensor([[1, 2, 3]])
    got = write(model, ids, new_tokens=40, slide=True)[0]
    expected = [1, 2, 3]
    for _ in range(40):
        with torch.no_grad():
            expected.append(int(model(torch.tensor([expected[-31:]])).logits[0, -1].argmax()))
    assert got == expected[3:]
    with pytest.raises(regard.RegardError, match="3 tokens and 40 new ones are more than the 31 the model takes"):
        write(model, ids, new_tokens=40)


@pytest.mark.usefixtures("_no_checks_of_annotations")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"new_tokens": 0}, "new_tokens: given 0, needs a whole number"),
        ({"new_tokens": 30}, "2 tokens and 30 new ones are more than the 31 .* new_tokens can be 29 at most"),
        ({"temprature": 1.0}, "no option 'temprature': did you mean 'temperature'"),
        ({"temperature": 2.0}, "temperature has no effect on a greedy choice"),
        ({"do_sample": True, "temperature": 0}, "temperature: given 0, needs a number above 0"),
        ({"do_sample": True, "top_p": 1.5}, "top_p: given 1.5, needs a number above 0, 1 at most"),
        ({"do_sample": True, "top_k": -1}, "top_k: given -1, needs a whole number"),
        ({"seed": -1}, "seed: given -1"),
        ({"cache": "static"}, "cache: given 'static', needs 'dynamic'"),
        ({"ids": [3]}, "needs either a prompt or its ids, given both"),
    ],
    ids=str,
)
def test_what_cannot_be_written_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(regard.RegardError, match=says):
        opened("gpt").generate("A man", **options)
    with pytest.raises(regard.RegardError, match="no decoder with a language head"):
        opened("bert").generate("A man")
    with pytest.raises(regard.RegardError, match="needs a target beside the text"):
        pair().trace("A man")


def test_models_of_transformers_are_not_saved_here(minilm: Any, tmp_path: Path) -> None:
    with pytest.raises(regard.RegardError, match=r"save: all-MiniLM-L6-v2 is a BertModel, .*save_pretrained"):
        minilm.save(tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
