"""Parts of a query or key, grouped and named."""

import torch

from regard.capture.score_path import SideParts, Writer
from regard.explain.causes.score_writers import group_of, named, writers_by_group
from regard.text.tokens import encoded_ids

TOKENS = {None: encoded_ids([7, 8, 9]).tokens}
PAIR = {"encoder": encoded_ids([7, 8, 9]).tokens, "decoder": encoded_ids([4, 5]).tokens}
WRITERS = (
    Writer("token"),
    Writer("position"),
    Writer("bias"),
    Writer("attention", 0, 1, 0),
    Writer("attention", 0, 1, 2),
    Writer("attention", 3, 0, 2),
    Writer("feed-forward", 0),
    Writer("feed-forward", 3),
    Writer("bias", 3),
)


def names(by: str) -> list[str]:
    parts = SideParts(WRITERS, torch.eye(9, dtype=torch.float64), torch.ones(9, dtype=torch.float64), (1,))
    groups, vectors = writers_by_group(parts, by)
    assert vectors.shape == (len(groups), 9)
    torch.testing.assert_close(vectors.sum(0), parts.whole)  # every part is in one group
    assert {group_of(each, by) for each in WRITERS} == set(groups)
    return [named(each, by, TOKENS) for each in groups]


def test_by_writer() -> None:
    assert names("writer") == [
        "token embedding", "position embedding", "biases before layer 0", "layer 0, head 1", "layer 3, head 0",
        "layer 0, feed-forward", "layer 3, feed-forward", "layer 3, biases",
    ]  # fmt: skip


def test_by_token() -> None:
    assert names("token")[3:6] == [
        "layer 0, head 1 from “7” (0)", "layer 0, head 1 from “9” (2)", "layer 3, head 0 from “9” (2)",
    ]  # fmt: skip


def test_by_source() -> None:
    assert names("source") == [
        "token embedding", "position embedding", "biases", "attention from “7” (0)", "attention from “9” (2)",
        "feed-forward layers",
    ]  # fmt: skip


def test_by_layer_and_kind() -> None:
    assert names("layer") == ["embeddings", "layer 0", "layer 3"]
    assert names("kind") == ["token embedding", "position embedding", "biases", "attention", "feed-forward layers"]


def test_sides_of_an_encoder_decoder() -> None:
    across = Writer("attention", 2, 1, 2, "decoder", cross=True)
    within = Writer("attention", 2, 1, 1, "decoder")
    assert named(across, "token", PAIR) == "layer 2, cross head 1 from “9” (2) of the decoder"
    assert named(within, "token", PAIR) == "layer 2, head 1 from “5” (1) of the decoder"
    assert group_of(across, "source") != group_of(Writer("attention", 2, 1, 2, "decoder"), "source")
    assert named(group_of(across, "source"), "source", PAIR) == "cross-attention from “9” (2) of the decoder"
    assert named(Writer("token", side="encoder"), "layer", PAIR) == "embeddings of the encoder"
