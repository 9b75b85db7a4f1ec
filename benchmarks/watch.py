"""What `regard.watch` costs a forward pass, as ratios inside one run: python -m benchmarks.watch

Plain and watched passes take turns. Each line has the medians of both, the median ratio of the rounds, and the ratio of
the fastest rounds, which a busy machine disturbs less. Weights are not read. Memory is what stays after one pass.

Training steps with AdamW are compared as well, plain and with statistics written to a file (every=1). Other steps cost
two hooks, which are timed alone. The cost of `every=100` follows from both.
"""

import argparse
import copy
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import regard
from benchmarks.ablations import turns
from benchmarks.measure import MIB, machine, seconds, verdict


class Block(nn.Module):
    """A transformer block with scaled_dot_product_attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norms[0](x)).chunk(3, -1)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        x = x + self.out(self.attention(q, k, v).transpose(1, 2).reshape(batch, length, width))
        return x + self.feed_forward(self.norms[1](x))

    def attention(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class ByHand(Block):
    """The same with a softmax written by hand."""

    def attention(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = (q @ k.transpose(-2, -1)) * (k.shape[-1] ** -0.5)
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril().logical_not()
        return F.softmax(scores.masked_fill(mask, float("-inf")), -1) @ v


SIZES = (  # name, layers, width, heads, tokens, rounds, target of the ratio (None: 0.3 ms a layer)
    ("2 layers, width 32, 10 tokens", 2, 32, 4, 10, 200, None),
    ("6 layers, width 384, 128 tokens", 6, 384, 6, 128, 20, 1.25),
    ("6 layers, width 768, 1,024 tokens", 6, 768, 12, 1024, 5, 1.10),
)
MS_PER_LAYER = 0.3
TRAINING = 1.02  # target with every=100


def main() -> None:
    """Print the ratios of every size and kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1, help="torch's threads")
    torch.set_num_threads(parser.parse_args().threads)
    print(machine())
    for name, layers, width, heads, tokens, count, target in SIZES:
        print(f"\n{name}")
        x = torch.randn(1, tokens, width)
        encoder = nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True)
        for kind, model in (
            ("scaled_dot_product_attention", nn.Sequential(*(Block(width, heads) for _ in range(layers)))),
            ("by hand", nn.Sequential(*(ByHand(width, heads) for _ in range(layers)))),
            ("nn.TransformerEncoder, fast path off", nn.TransformerEncoder(encoder, layers)),
        ):
            report(kind, model.eval(), x, count, layers, target)
            report_training(kind, model.train(), x, count)


def report(kind: str, model: nn.Module, x: Tensor, count: int, layers: int, target: float | None) -> None:
    """Print one line for passes without gradients, and one for passes with a backward pass."""

    @torch.no_grad()
    def forward() -> None:
        model(x)

    def backward() -> None:
        model(x).sum().backward()

    for what, run in (("forward", forward), ("forward and backward", backward)):
        plain, watched, ratio, best = turns(run, watching(model, run), count)
        more = (watched - plain) / layers * 1e3
        wanted = "" if what != "forward" else f", at most {target:.2f}{verdict(ratio, target)}" if target else (
            f", at most {MS_PER_LAYER} ms{verdict(more, MS_PER_LAYER)}"
        )  # fmt: skip
        times = f"{plain * 1e3:.2f} ms, watched {watched * 1e3:.2f} ms ({more:.2f} ms more per layer)"
        print(f"  {kind}, {what}: {times}, ratio {ratio:.2f} (fastest {best:.2f}){wanted}", flush=True)
    with torch.no_grad(), regard.watch(model) as seen:
        model(x)
    storages: dict[int, int] = {}
    for call in seen.values():
        weights = call.weights
        tensors = [weights.query, weights.key] if weights.given is None else [weights.given]
        storages |= {
            t.untyped_storage().data_ptr(): t.untyped_storage().nbytes()
            for t in (*tensors, call.value)
            if t is not None
        }
    print(f"  {kind}: {sum(storages.values()) / MIB / layers:.1f} MiB kept per layer")


def report_training(kind: str, model: nn.Module, x: Tensor, count: int) -> None:
    """Print one line for training steps."""
    plain, watched = copy.deepcopy(model), copy.deepcopy(model)
    with (
        tempfile.TemporaryDirectory() as folder,
        regard.watch(watched, every=1, log=Path(folder) / "attention.jsonl"),
    ):
        step, each, ratio, best = turns(training_step(plain, x), training_step(watched, x), count)
    with regard.watch(watched, every=1 << 60, log=lambda *_: None):
        watched(x)
        (before,), (after,) = watched._forward_pre_hooks.values(), watched._forward_hooks.values()
        between = seconds(lambda: [(before(watched, ()), after(watched, (), None)) for _ in range(1000)]) / 1000
    total = 1 + (ratio - 1) / 100 + between / step
    times = f"{step * 1e3:.2f} ms, every=1 {each * 1e3:.2f} ms, ratio {ratio:.2f} (fastest {best:.2f})"
    target = f"{total:.3f}, at most {TRAINING:.2f}{verdict(total, TRAINING)}"
    print(f"  {kind}, training step: {times}; hooks {between * 1e6:.0f} µs; every=100 {target}", flush=True)


def training_step(model: nn.Module, x: Tensor) -> Callable[[], None]:
    """Return a function that makes one step."""
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def watching(model: nn.Module, run: Callable[[], None]) -> Callable[[], None]:
    """Return the same run, watched."""

    def watched() -> None:
        with regard.watch(model):
            run()

    return watched


if __name__ == "__main__":
    main()
