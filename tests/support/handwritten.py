"""Small modules that write a softmax by hand: attention of many kinds, and what is no attention."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH = 32


class WithProjections(nn.Module):
    """The base of the others: linear maps of WIDTH."""

    def __init__(self) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.dropout = nn.Dropout(0.1)

    def qkv(self, x: Tensor) -> list[Tensor]:
        return [self.maps[n](x).view(*x.shape[:2], 4, -1).transpose(1, 2) for n in range(3)]


class NanoGPT(WithProjections):
    """The slow path of nanoGPT."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(torch.ones(x.shape[1], x.shape[1]).tril() == 0, float("-inf"))
        weights = self.dropout(F.softmax(scores, dim=-1))
        return self.maps[3]((weights @ v).transpose(1, 2).contiguous().view(x.shape))


class AnnotatedTransformer(WithProjections):
    """A static function that is given a dropout module."""

    @staticmethod
    def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, dropout: nn.Module) -> Tensor:
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
        return torch.matmul(dropout(scores.masked_fill(mask == 0, -1e9).softmax(dim=-1)), value)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(*self.qkv(x), torch.ones(1, 1, x.size(1), x.size(1)).tril(), self.dropout)


class DiveIntoDeepLearning(WithProjections):
    """Heads in the batch axis, a boolean assignment before the softmax, bmm."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.reshape(-1, x.shape[1], 8) for part in self.qkv(x))
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(8)
        flat = scores.reshape(-1, scores.shape[-1]).clone()
        flat[:, 5:] = -1e6
        return torch.bmm(self.dropout(F.softmax(flat.reshape(scores.shape), dim=-1)), v)


class Bahdanau(WithProjections):
    """Additive attention of three decoder steps."""

    def forward(self, x: Tensor) -> Tensor:
        state = x[:, 0]
        for _ in range(3):
            hidden = torch.tanh(self.maps[0](state)[:, None] + self.maps[1](x))
            weights = F.softmax(F.linear(hidden, self.maps[2].weight[:1]).squeeze(2).unsqueeze(1), dim=-1)
            state = torch.bmm(weights, x)[:, 0]
        return state


class SumOfTerms(WithProjections):
    """Pooling as (weights[..., None] * values).sum."""

    def forward(self, x: Tensor) -> Tensor:
        weights = torch.softmax(torch.tanh(self.maps[0](x)) @ self.maps[1].weight[0], dim=1)
        return (weights.unsqueeze(-1) * x).sum(1)


class SlotAttention(WithProjections):
    """A softmax over slots, whose weights are then divided by their sums over positions."""

    def forward(self, x: Tensor) -> Tensor:
        slots = self.maps[3].weight[None, :5].expand(len(x), -1, -1)
        for _ in range(2):
            dots = torch.einsum("bid,bjd->bij", self.maps[0](slots), self.maps[1](x)) * WIDTH**-0.5
            weights = dots.softmax(dim=1) + 1e-8
            slots = torch.einsum("bjd,bij->bid", x, weights / weights.sum(dim=-1, keepdim=True))
        return slots


class ValuesFirst(WithProjections):
    """values @ weightsᵀ, as SAGAN computes it, after pooling by a learned query."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + (self.maps[3].weight[None, :1] @ x.transpose(1, 2)).softmax(-1) @ x
        weights = torch.bmm(self.maps[0](x), self.maps[1](x).transpose(1, 2)).softmax(-1)
        return torch.bmm(self.maps[2](x).transpose(1, 2), weights.permute(0, 2, 1)).transpose(1, 2)


class TalkingHeads(WithProjections):
    """Heads are mixed before and after the softmax: rows don't sum to 1."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        mixed = torch.einsum("bhij,hg->bgij", q @ k.mT, self.maps[3].weight[:4, :4]).softmax(-1)
        return torch.einsum("bhij,hg->bgij", mixed, self.maps[3].weight[4:8, 4:8]) @ v


class Sinks(WithProjections):
    """A column of sinks that is cut off after the softmax, as in gpt-oss."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x)
        sinks = self.maps[3].bias[:4].reshape(1, -1, 1, 1).expand(len(x), -1, x.shape[1], -1)
        both = torch.cat([torch.matmul(q, k.transpose(2, 3)) * 8**-0.5, sinks], -1)
        weights = F.softmax(both - both.max(-1, keepdim=True).values, -1)
        return torch.matmul(weights[..., :-1], v)


class Coverage(WithProjections):
    """Weights, written as exp / sum, that are used twice."""

    def forward(self, x: Tensor) -> Tensor:
        exponentials = (self.maps[0](x) @ self.maps[1](x).mT).exp()
        weights = exponentials / exponentials.sum(-1, keepdim=True)
        return weights @ x + weights.cumsum(1) @ x + weights @ x


class Mixture(WithProjections):
    """Routers: dense, by einsum, top-2. And a classifier."""

    def forward(self, x: Tensor) -> Tensor:
        gate = F.softmax(x @ self.maps[0].weight[:4].T, -1)
        outputs = torch.stack([expert(x) for expert in self.maps], -2)
        top, index = torch.topk(F.softmax(F.linear(x, self.maps[1].weight[:4]), -1), 2)
        where = [index[..., n, None, None].expand(*x.shape[:2], 1, WIDTH) for n in range(2)]
        chosen = sum(top[..., n, None, None] * outputs.gather(-2, where[n]) for n in range(2))
        dense = (gate.unsqueeze(-1) * outputs).sum(-2) + torch.einsum("bte,bted->btd", gate, outputs)
        return F.softmax(self.maps[2](dense + chosen.sum(-2)), -1)


class NoAttention(WithProjections):
    """Other things that a softmax is for: soft embeddings, expectations, entropy, gates, mixes of layers, InfoNCE."""

    def forward(self, x: Tensor) -> Tensor:
        p = F.softmax(self.maps[0](x), -1)
        soft = p @ self.maps[1].weight + F.linear(p, self.maps[2].weight) + p * x
        numbers = (p * torch.linspace(-1, 1, WIDTH)).sum(-1) - (p * p.log()).sum(-1) + p @ torch.linspace(0, 1, WIDTH)
        mix = torch.softmax(self.maps[3].bias[:3], 0)
        layers = torch.einsum("l,lbtd->btd", mix, torch.stack([x, 2 * x, 3 * x]))
        z = F.normalize(x.flatten(1), dim=-1)
        return soft.sum() + numbers.sum() + layers.sum() + F.softmax(z @ z.T, -1).diagonal().log().mean()


# How many calls of attention each makes.
HANDWRITTEN: dict[type[WithProjections], int] = {
    NanoGPT: 1, AnnotatedTransformer: 1, DiveIntoDeepLearning: 1, Bahdanau: 3, SumOfTerms: 1, SlotAttention: 2,
    ValuesFirst: 2, TalkingHeads: 1, Sinks: 1, Coverage: 1, Mixture: 0, NoAttention: 0,
}  # fmt: skip
