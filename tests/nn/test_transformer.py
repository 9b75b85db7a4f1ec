"""Our own transformer: options in all combinations, against one text alone, step by step, and by differences."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.func import functional_call
from torch.nn import functional as F

import regard
from regard.errors import RegardError
from regard.nn.config import TransformerConfig
from regard.nn.layer import ACTIVATIONS
from regard.nn.positions import sinusoidal
from regard.nn.transformer import SinusoidalEmbedding, Transformer, check_transformer_ids, positions_in_padded_batch

V, M = 17, 12

OPTIONS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(("encoder", "decoder", "encoder-decoder")),
        "heads": st.sampled_from(((3, 3, None), (3, 1, None), (6, 2, None), (3, 3, 6))),
        "activation": st.sampled_from(tuple(ACTIVATIONS)),
        "gated": st.booleans(),
        "norm": st.sampled_from(("layer", "rms")),
        "norm_first": st.booleans(),
        "positions": st.sampled_from(("learned", "sinusoidal", "rotary", "alibi", "none")),
        "segments": st.sampled_from((0, 2)),
        "scale_embeddings": st.booleans(),
        "norm_embeddings": st.booleans(),
        "output": st.sampled_from(("tied", "free", "none")),
        "extra": st.booleans(),
        "bias": st.booleans(),
    }
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """These tensors are so small that threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def made(**options: Any) -> Transformer:
    """A tiny random model in float64, its weights large enough that nothing is close to linear."""
    torch.manual_seed(0)
    heads, groups, width = options.pop("heads", (3, 3, None))
    extra = options.pop("extra", False) and options.get("output", "tied") != "none"
    if options.get("kind") == "encoder-decoder":
        options |= {"segments": 0, "start": 1}
    sizes = {"vocabulary": V, "d_model": M, "layers": 2, "length": 31, "d_hidden": 19, "initial": 0.4}
    more = {"output_bias": extra, "output_transform": extra, "key_heads": groups, "d_k": width}
    return Transformer(TransformerConfig(**(sizes | more | {"heads": heads} | options))).double().eval()


def ids(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(seed))


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


def run(model: Transformer, text: torch.Tensor, target: torch.Tensor, **masks: Any) -> tuple[torch.Tensor, ...]:
    """What there is of a pass: last states, logits, the encoder's states."""
    pair = model.config.kind == "encoder-decoder"
    output = model(text, target, **masks) if pair else model(text, **masks)
    return tuple(each for each in output if each is not None)


@settings(max_examples=40, deadline=None)
@given(OPTIONS)
@torch.no_grad()
def test_a_text_is_what_it_is_alone_however_it_is_padded(options: dict[str, Any]) -> None:
    model, pair = made(**options), options["kind"] == "encoder-decoder"
    lengths = (7, 5, 2)
    rows = [(ids(1, n, seed=n), ids(1, n + 1, seed=n + 9)) for n in lengths]
    alone = [run(model, *row) for row in rows]
    for parts in alone:
        assert all(part.isfinite().all() for part in parts)
    assert len(alone[0]) == 1 + (options["output"] != "none") + pair
    for left in (False, True):

        def padded(texts: list[torch.Tensor], longest: int, left: bool = left) -> tuple[torch.Tensor, torch.Tensor]:
            sides = [(longest - t.shape[1], 0) if left else (0, longest - t.shape[1]) for t in texts]
            whole = torch.cat([F.pad(t, side, value=3) for t, side in zip(texts, sides, strict=True)])
            mask = torch.cat([F.pad(torch.ones_like(t), side) for t, side in zip(texts, sides, strict=True)])
            return whole, mask.bool() if left else mask  # either kind of mask is taken

        text, mask = padded([t for t, _ in rows], 8)
        target, target_mask = padded([t for _, t in rows], 9)
        masks = {"attention_mask": mask} | ({"decoder_attention_mask": target_mask} if pair else {})
        batched = run(model, text, target, **masks)
        for n, parts in enumerate(alone):
            for got, expected in zip(batched, parts, strict=True):
                kept = slice(-expected.shape[1], None) if left else slice(expected.shape[1])
                close(got[n, kept], expected[0])


@settings(max_examples=40, deadline=None)
@given(OPTIONS)
@torch.no_grad()
def test_a_decoder_knows_nothing_of_what_comes(options: dict[str, Any]) -> None:
    model, text, other = made(**options), ids(2, 7), ids(2, 7).clone()
    other[:, 4:] = (other[:, 4:] + 5) % V
    if options["kind"] == "encoder-decoder":
        a, b = model(text, text), model(text, other)
        assert not model(other, text).last_hidden_state.allclose(a.last_hidden_state)  # it does read the source
    else:
        a, b = model(text), model(other)
    reads_all = options["kind"] == "encoder"
    assert a.last_hidden_state[:, :4].allclose(b.last_hidden_state[:, :4], rtol=0, atol=1e-12) != reads_all
    assert not a.last_hidden_state[:, 4:].allclose(b.last_hidden_state[:, 4:])


@settings(max_examples=30, deadline=None)
@given(OPTIONS, st.lists(st.integers(1, 4), min_size=1, max_size=5))
@torch.no_grad()
def test_step_by_step_is_all_at_once(options: dict[str, Any], counts: list[int]) -> None:
    if options["kind"] == "encoder":
        options["kind"] = "decoder"
    model, text = made(**options), ids(2, sum(counts))
    source = ids(2, 5, seed=4)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    context = model.encode(source, mask=mask) if model.encoder is not None else None
    across = {} if context is None else {"context_mask": mask}
    whole = model.decode(text, context, **across)
    caches, start = model.caches(), 0
    for count in counts:
        step = model.decode(text[:, start : start + count], context, caches=caches, **across)
        close(step.last_hidden_state, whole.last_hidden_state[:, start : start + count])
        start += count
    if whole.logits is not None:
        close(model.decode(text, context, only_last=True, **across).logits, whole.logits[:, -1:])


@pytest.mark.parametrize(
    ("kind", "positions"),
    [
        *(("decoder", positions) for positions in ("learned", "sinusoidal", "rotary", "alibi", "none")),
        ("encoder", "learned"),
        ("encoder", "alibi"),
        ("encoder-decoder", "rotary"),
        ("encoder-decoder", "sinusoidal"),
    ],
)
def test_gradients_of_the_whole(kind: str, positions: str) -> None:
    """Every learned number, the tied head's among them; padding and segments take part."""
    model = made(kind=kind, positions=positions, segments=2, extra=True, norm_embeddings=True, layers=1).train()
    text, mask = ids(2, 4), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    given = (text, text) if kind == "encoder-decoder" else (text,)
    names, tensors = zip(*model.named_parameters(), strict=True)

    def output(*tensors: torch.Tensor) -> torch.Tensor:
        whole = dict(zip(names, tensors, strict=True))
        logits = functional_call(model, whole, given, {"attention_mask": mask}).logits
        return F.cross_entropy(logits.flatten(0, 1), text.flatten())

    assert gradcheck(output, tensors, fast_mode=True)


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize(
    "options",
    [
        {"kind": "decoder"},
        {"kind": "decoder", "norm_first": False, "positions": "sinusoidal", "scale_embeddings": True},
        {"kind": "decoder", "norm": "rms", "gated": True, "activation": "silu", "positions": "rotary", "bias": False},
        {"kind": "decoder", "positions": "alibi", "output": "free"},
        {"kind": "encoder", "norm_first": False, "norm_embeddings": True},
        {"kind": "encoder-decoder", "positions": "sinusoidal"},
    ],
    ids=str,
)
def test_one_batch_is_learned_by_heart(options: dict[str, Any]) -> None:
    model = made(**options, initial=0.1).float().train()
    text = ids(3, 8)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    if options["kind"] == "encoder-decoder":
        given, wanted = (text, torch.cat([torch.ones(3, 1, dtype=torch.long), text[:, :-1]], 1)), text
        given = (text.flip(1), given[1])
    elif options["kind"] == "decoder":
        text[:, 0] = torch.arange(3)  # what follows a beginning can be known only where beginnings differ
        given, wanted = (text[:, :-1],), text[:, 1:]
    else:
        given, wanted = (text,), text.flip(1)
    for _ in range(120):
        loss = F.cross_entropy(model(*given).logits.flatten(0, 1), wanted.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert float(loss.detach()) < 0.02


def test_sines_are_looked_up_as_they_are_computed() -> None:
    table = SinusoidalEmbedding(11)
    for places in (torch.arange(5), torch.tensor([[3, 200], [0, 1]])):
        torch.testing.assert_close(table(places).float(), sinusoidal(256, 11)[places], rtol=0, atol=1e-7)
    with torch.inference_mode():
        table = SinusoidalEmbedding(11)
        table(torch.arange(5))
    weight = torch.ones(11, dtype=torch.float64, requires_grad=True)
    (table(torch.arange(5)) * weight).sum().backward()  # rows made in inference mode would not be allowed here
    assert weight.grad is not None


def test_first_weights() -> None:
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(vocabulary=301, length=64, d_model=96, scale_embeddings=True, layers=8))
    stds = {name: float(p.detach().std()) for name, p in model.named_parameters() if p.ndim == 2}
    assert stds["embedding.weight"] == pytest.approx(96**-0.5, rel=0.05)
    assert stds["decoder.3.attention.query.weight"] == pytest.approx(0.02, rel=0.05)
    assert stds["decoder.3.feedforward.output.weight"] == pytest.approx(0.02 / 4, rel=0.05)
    assert float(model.decoder_norm.weight.detach().min()) == 1
    assert not any(p.any() for name, p in model.named_parameters() if name.endswith("bias"))
    assert model.head.weight is model.embedding.weight


@pytest.mark.parametrize(("width", "shown"), [(64, (5.7, 0.16, 8.0)), (512, (16.0, 0.45, 22.6))])
def test_sinusoidal_positions_are_of_the_scaled_tokens_length(width: int, shown: tuple[float, ...]) -> None:
    """The lengths that docs/transformer.md shows."""
    lengths = [float(sinusoidal(9, width).norm(dim=-1).mean())]
    for scaled in (False, None):
        config = TransformerConfig(vocabulary=301, positions="sinusoidal", d_model=width, scale_embeddings=scaled)
        assert config.scale_embeddings is (scaled is None)
        weight = Transformer(config).embedding.weight.detach()
        lengths.append(float(weight.norm(dim=-1).mean()) * (1 if scaled is False else width**0.5))
    assert lengths == pytest.approx(shown, rel=0.03)
    assert not TransformerConfig.nanogpt(65).scale_embeddings


def refused(says: str, act: Any, *args: Any, **kwargs: Any) -> None:
    with pytest.raises(regard.RegardError, match=says):
        act(*args, **kwargs)


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_what_a_model_cannot_read_is_refused() -> None:
    model, pair, encoder = made(), made(kind="encoder-decoder"), made(kind="encoder")
    refused("got 32 tokens, but the model takes at most 31", model, ids(1, 32))
    refused("got id 17, but the model has ids 0 to 16", model, torch.tensor([[3, 17]]))
    refused("got id -1, but the model has ids 0 to 16", model, torch.tensor([[3, -1]]))
    refused("expected at least one token", model, torch.zeros(2, 0, dtype=torch.long))
    refused(r"mask: got shape \(1, 3\), expected \(1, 4\)", model, ids(1, 4), attention_mask=torch.ones(1, 3).bool())
    refused("kind 'decoder' does not take them", model, ids(1, 3), ids(1, 3))
    refused("kind 'encoder-decoder' needs them", pair, ids(1, 3))
    refused("has segments=0", model, ids(1, 3), token_type_ids=torch.zeros(1, 3, dtype=torch.long))
    refused("this model is a decoder", model.encode, ids(1, 3))
    refused("this model is an encoder", encoder.decode, ids(1, 3))
    refused("kind 'encoder-decoder' needs one", pair.decode, ids(1, 3))
    refused("leave it out with caches", model.decode, ids(1, 3), mask=torch.ones(1, 3).bool(), caches=model.caches())


IDS = torch.arange(10).reshape(2, 5)


def test_without_padding_positions_are_shared() -> None:
    for mask in (None, torch.ones(2, 5, dtype=torch.bool), torch.ones(2, 5, dtype=torch.long)):
        at = positions_in_padded_batch(IDS, mask)
        assert at.positions.tolist() == [0, 1, 2, 3, 4]
        assert (at.keys, at.stop) == (None, 5)
    later = positions_in_padded_batch(IDS, None, 7)
    assert (later.positions.tolist(), later.stop) == ([7, 8, 9, 10, 11], 12)


def test_padding_on_the_right_is_masked_unless_it_is_out_of_sight() -> None:
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
    at = positions_in_padded_batch(IDS, mask)
    assert at.positions.tolist() == [0, 1, 2, 3, 4]
    assert at.keys is not None
    assert torch.equal(at.keys, mask.bool())
    assert positions_in_padded_batch(IDS, mask, causal=True).keys is None


def test_with_padding_elsewhere_each_text_counts_its_own() -> None:
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 0]])
    for causal in (False, True):
        at = positions_in_padded_batch(IDS, mask, causal=causal)
        assert at.positions.tolist() == [[0, 0, 0, 1, 2], [0, 1, 2, 3, 3]]
        assert at.stop == 4
        assert at.keys is not None
        assert torch.equal(at.keys, mask.bool())


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_what_is_refused() -> None:
    with pytest.raises(RegardError, match=r"mask: got shape \(2, 4\), expected \(2, 5\)"):
        positions_in_padded_batch(IDS, torch.ones(2, 4, dtype=torch.bool))
    with pytest.raises(RegardError, match=r"ids: got shape \(2, 0\), expected at least one token"):
        check_transformer_ids(IDS[:, :0], 0, 10, None)
    with pytest.raises(RegardError, match="ids: got 6 tokens, but the model takes at most 5"):
        check_transformer_ids(IDS, 6, 10, 5)
    with pytest.raises(RegardError, match="ids: got id 9, but the model has ids 0 to 8"):
        check_transformer_ids(IDS, 5, 9, 5)
    with pytest.raises(RegardError, match="ids: got id -1"):
        check_transformer_ids(IDS - 1, 5, 10, 5)
    check_transformer_ids(IDS, 5, 10, 5)
