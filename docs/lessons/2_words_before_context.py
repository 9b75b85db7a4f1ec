# %% [markdown]
# # 2. Words before context
#
# A model learns from text alone that "left" and "right" belong together. **word2vec** (Mikolov et al. 2013) is the
# best-known way to learn such a table of embeddings, and it is simple. Give every word a vector from which you can
# predict the words around it. Words with similar use then get similar vectors.
#
# You need a text that everybody has. Python comes with its reference manual (`help()` reads it), so these words are
# from a book about a programming language.

# %%
import re
from pydoc_data.topics import topics

import torch
from torch.nn.functional import cross_entropy, logsigmoid, normalize, pad

from drawings.glove import glove
from drawings.kept import keep
from drawings.numbers import show_numbers
from drawings.word2vec import skip_gram_and_cbow
from regard.fetched import find, left_out

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
# ## Skip-gram and CBOW
#
# **Skip-gram** predicts each neighbour from the word in the middle. **CBOW** ("continuous bag of words") predicts the
# middle from the mean of its neighbours. Here you use four words on either side as neighbours.

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
# If you predict from all words, you need a sum over the vocabulary for every prediction. With negative sampling, the
# model only distinguishes the true word $w$ from $k$ random words $n_i$. Each word is drawn with a probability
# proportional to its count to the power 0.75. With $v_c$ the vector of the input and $u_w$ a second vector for each
# word:
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
# ## Test the vectors
#
# You run two tests.
#
# **Held-out loss.** The loss is the mean of −log of the probability of each true word, so lower is better. With the
# natural logarithm, its unit is the *nat*. A baseline predicts every word by its frequency: the *unigram* loss. Your
# vectors should do better on text that they have never seen. Negative sampling learns the log of a ratio: how much
# more likely a word is than under the noise distribution (Levy and Goldberg 2014). So noise · exp(score), normalized
# to sum to 1, is a probability.
#
# **Shuffled text.** The same words in random order have the same counts but no neighbourhoods. A model that is
# trained on them can't learn meaning.

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
# ## Nearest neighbours
#
# These are the words with the largest cosine. With the shuffled text, you get arbitrary words.


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
# To measure this, take pairs of words that belong together and find the rank of the partner among all words. In the
# shuffled text, it is about half-way down, as by chance.

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
# ## The limit: one word, two meanings
#
# A word has a single vector, whatever it means. To see the effect, merge two words into a pseudoword (Gale et al.
# 1992). Every "module" and every "exception" gets the same spelling, so this spelling is as ambiguous as "bank". How
# close is the merged word to the 20 neighbours that each word had before?


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
# If both words are about equally common, the merged vector is between the two groups of neighbours. If one word is
# rare and the other is common, the vector stays with the common word, and the rare meaning is almost lost. No context
# can change the vector. All tables with a single vector per word share this limit: GloVe, the token embeddings of
# page 1, and the input to the first layer of a transformer.
#
# ## A table that was learned from six billion words
#
# GloVe (Pennington et al. 2014) was trained on Wikipedia and news. Such vectors are famous for "king − man + woman ≈
# queen". As usual, the three input words are left out, because the nearest word is often an input word: here it is
# "king" itself. In news, "bank" is mostly about money, so its single vector is a money word.
#
# Run `regard fetch glove` to get the 50,000 most common words with 50 numbers each. This page checks the SHA-256 of the
# file.

# %%
file = find("glove")
if file:
    known, table = glove(file)
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
    print(left_out("glove"))

# %% [markdown]
# These vectors don't know the positions of their words. That comes next: [3. Position](3_position.py).
