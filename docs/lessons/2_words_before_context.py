# %% [markdown]
# # 2. Words before context
#
# The table of lesson 1 began with random numbers. Training should bring "left" near "right", although nobody says
# that they belong together. **word2vec** (Mikolov et al. 2013) does this with a simple task: predict the words around
# a word. Words that are used in the same way then get similar vectors.
#
# On this page you train such a table and test whether it has learned anything. Then you find its limit: a word with
# two meanings has a single vector. The text is Python's reference manual, because every Python comes with it.

# %%
import re
from pydoc_data.topics import topics

import torch
from matplotlib.figure import Figure
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
assert len(words) > 1000
number = {word: n for n, word in enumerate(words)}
ids = torch.tensor([number[word] for word in text if word in number])
# every tenth part is held out: the tables aren't trained on it, and you test
# with it at the end
parts = ids.split(200)
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
# middle from the mean of its neighbours. The plot shows two neighbours on each side, and the code below uses four.
# Each word has two vectors: $v$ when it is given, and $u$ when it is predicted.

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
    """Make the given words, (N, words given), -1 where the text ends, and the
    word to predict, (N,)."""
    padded = pad(ids, (WINDOW, WINDOW), value=-1)
    starts = [WINDOW + step for step in range(-WINDOW, WINDOW + 1) if step]
    # (words, 8)
    around = torch.stack([padded[n : n + len(ids)] for n in starts], 1)
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
# The score of a word $w$ next to the given word $c$ is $u_w \cdot v_c$. The **softmax** turns the scores into
# probabilities: all are positive, and they sum to 1.
#
# $$ p(w|c) = \frac{e^{u_w \cdot v_c}}{\sum_n e^{u_n \cdot v_c}} $$
#
# The denominator has a term for every word of the vocabulary, here more than a thousand for each prediction. **Negative
# sampling** avoids this sum: the model only distinguishes the true word $w$ from $k$ random words $n_i$. A common word
# is drawn more often, in proportion to its count to the power 0.75. The sigmoid $\sigma(s) = 1 / (1 + e^{-s})$ turns a
# score into a probability of "yes, this is the true word". The loss is
#
# $$ \ell = -\log \sigma(u_w \cdot v_c) - \sum_{i=1}^{k} \log \sigma(-u_{n_i} \cdot v_c) $$
#
# It is small if $v_c$ has large dot products with the vectors of its true neighbours and small products with all
# others.


# %%
class Word2Vec(torch.nn.Module):
    """Two vectors for each word: one if it is given, one if it is guessed."""

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
        # (N, width): the mean of the given words
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


kinds = {"skip-gram": False, "CBOW": True}
models = {kind: train(train_ids, cbow) for kind, cbow in kinds.items()}
# the same words in random order
order = torch.randperm(
    len(train_ids), generator=torch.Generator().manual_seed(0)
)
shuffled = {kind: train(train_ids[order], cbow) for kind, cbow in kinds.items()}

# %% [markdown]
# ## Nearest neighbours
#
# The **cosine** of two vectors is $a \cdot b / (|a| |b|)$. It is 1 if they have the same direction, and 0 if they are
# at right angles. Below are the words with the largest cosine. The last line for each word is a control. Its table
# was trained on the same words in random order, so there are no neighbourhoods to learn from.


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
# Now test the tables. Take pairs of words that belong together. Sort all words by their cosine with the first word of
# a pair, and find the rank of the second.

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


figure = Figure(figsize=(7.5, 4.4), layout="constrained")
axes = figure.add_subplot(
    title="Do two words that belong together have similar vectors?",
    xlabel="rank of the second word (1: nearest to the first)",
    xscale="log",
)
axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
for name, found, mark, colour in (
    ("skip-gram", models["skip-gram"], "o", "#0072b2"),
    ("CBOW", models["CBOW"], "s", "#d55e00"),
    ("skip-gram, shuffled text", shuffled["skip-gram"], "x", "#999999"),
):
    ranks = [rank(found, *pair) for pair in pairs]
    median = sorted(ranks)[len(ranks) // 2]
    label = f"{name}: median {median}"
    axes.plot(
        ranks, range(len(pairs)), mark, color=colour, label=label, mfc="none"
    )
    print(f"{label} of {len(words):,}")
    assert median >= 150 if mark == "x" else median <= 30
    assert pairs[-1] == ["first", "last"]
    assert ranks[-1] > 100
axes.axvline(len(words) / 2, color="#777777", linestyle=":", label="by chance")
axes.set_yticks(range(len(pairs)), [" → ".join(pair) for pair in pairs])
axes.invert_yaxis()
figure.legend(frameon=False, loc="outside lower center", ncols=2)
keep(
    figure,
    "partners.svg",
    "Ranks of thirteen partners: near the front after training, about half-way "
    "down after training on shuffled text",
)

# %% [markdown]
# After training on the text, the second word of most pairs is near the front. The exception is first → last, which is
# near chance: perhaps the manual uses the two words with different neighbours. After training on shuffled text, most
# pairs are about half-way down, as by chance.
#
# ## Held-out loss
#
# Does the table predict text that it has never seen? The **loss** is the mean of −log of the probability of each true
# word, so lower is better. With the natural logarithm, its unit is the *nat*. Negative sampling trains the score
# towards $\log(p(w) / P_w) - \log k$ (exercise 3 derives this), where $P_w$ is the probability of drawing $w$ as a
# random word (Levy and Goldberg 2014). The $\log k$ is the same for all words, so it cancels:
#
# $$ p(w) = \frac{P_w e^{u_w \cdot v_c}}{\sum_n P_n e^{u_n \cdot v_c}} $$
#
# The baseline *unigram* predicts every word by its frequency.

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
# After training on the text, both tables predict better than the word frequencies. Training on the shuffled text
# brings no such gain.
#
# ## The limit: one word, two meanings
#
# A word has a single vector, whatever it means. To see the effect, merge two words into a pseudoword (Gale et al.
# 1992): every "module" and every "exception" gets the same spelling, which is then as ambiguous as "bank". How many
# of the 20 nearest neighbours of each word does the merged word keep?


# %%
def merged(first, second):
    """Train with both words as one; how many neighbours of each it keeps."""
    a, b = number[first], number[second]
    model = train(torch.where(train_ids == b, a, train_ids), cbow=False)
    print(f"{first} + {second}: {', '.join(nearest(model, first))}")
    now = {*nearest(model, first, 20)}
    old = models["skip-gram"]
    before = (nearest(old, word, 20) for word in (first, second))
    return [float(len(now & {*words})) for words in before]


tried = [("string", "module"), ("module", "exception"), ("left", "exception")]
table = [merged(*pair) for pair in tried]
names = [f"{a} ({counts[a]}) / {b} ({counts[b]})" for a, b in tried]
print()
show_numbers(
    torch.tensor(table),
    names,
    ["of the first", "of the second"],
    title="Neighbours that the merged word keeps, of 20; in brackets: counts",
    digits=0,
)
*equal, unequal = table
assert min(min(kept) for kept in equal) >= 2
assert unequal[0] <= 4 < unequal[1]

# %% [markdown]
# The first two pairs are about equally common, and both words keep some of their neighbours. Only the table shows
# this, because the six nearest words can all belong to one meaning. The rare word "left" loses almost all of its
# neighbours to the common "exception". No context can change this vector. All tables with a single vector per word
# have this limit: word2vec, GloVe, and the token embeddings of lesson 1.
#
# ## A table learned from six billion words
#
# GloVe (Pennington et al. 2014) was trained on Wikipedia and news. Such vectors are famous for "king − man + woman ≈
# queen". As usual, the three input words are left out, because the nearest word is often an input word: here it is
# "king" itself. In news, "bank" is mostly about money, so its single vector is close to words about money.
#
# Run `regard fetch glove` to get vectors of 50 numbers for the 50,000 most common words. This page checks the SHA-256
# of the file.

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
# These vectors don't depend on where a word is in the text. Its position comes next: [3. Position](3_position.py).

# %% [markdown]
# ## Exercises
#
# The cells below don't need the cells above. Replace `...` by your answer and run the cell, or run `regard lesson 2
# --exercises`. Here you count neighbours instead of training. The vector of a word has a number for each possible
# neighbour: log(count / count expected by chance), or 0 if the two words are neighbours no more often than by chance.

# %%
import re
from collections import Counter
from pydoc_data.topics import topics

import torch
from torch.nn.functional import logsigmoid, normalize

from drawings.exercise import Exercise

manual = " ".join(topics[name] for name in sorted(topics)).lower()
text = re.findall(r"[a-z]+", manual)
counts = Counter(text)
words = [word for word in counts if counts[word] >= 20] + ["blick"]
number = {word: n for n, word in enumerate(words)}


def neighbours(text):
    """Count how often two words are at most four words apart."""
    ids = torch.tensor([number[word] for word in text if word in number])
    pairs = torch.zeros(len(words), len(words))
    for step in range(1, 5):
        here, there, one = ids[:-step], ids[step:], torch.ones(())
        pairs.index_put_((here, there), one, accumulate=True)
    return pairs + pairs.T


def nearest(word, pairs, count):
    """Find the words with the most similar neighbours."""
    chance = pairs.sum(1, keepdim=True) * pairs.sum(0) / pairs.sum()
    ratio = pairs / chance.clamp(min=1e-9)
    vectors = normalize(ratio.clamp(min=1).log(), dim=1)
    cosines = vectors @ vectors[number[word]]
    cosines[number[word]] = -1
    return [words[n] for n in cosines.topk(count).indices.tolist()]


pairs = neighbours(text)
for word in ("left", "tuple", "true", "string", "module", "exception"):
    print(f"{word} ({counts[word]}): {', '.join(nearest(word, pairs, 10))}")

# %% [markdown]
# **1. Lose a meaning.** Choose two of these words, but not "left". The second is then spelled like the first. The
# merged word should keep none of the ten neighbours of the first word, and at least five of those of the second.

# %%
answer = ...  # a list of two words


def check(two):
    first, second = two
    one_word = [first if word == second else word for word in text]
    now = {*nearest(first, neighbours(one_word), 10)}
    kept = [len(now & {*nearest(word, pairs, 10)}) for word in two]
    said = f"it keeps {kept[0]} of {first}'s ten and {kept[1]} of {second}'s"
    right = "left" not in two and kept[0] == 0 and kept[1] >= 5
    return right, said + ". Both meanings share a single vector" * right


Exercise(check, answer)

# %% [markdown]
# **2. Teach a new word.** The manual has no word "blick". Write a text that uses "blick" but not "right". It is added
# to the manual. Then "right" should be the word nearest to "blick".

# %%
answer = ...  # a text


def check(told):
    told = told.lower().split()
    near = nearest("blick", pairs + neighbours(told), 3)
    said = f"nearest to blick: {', '.join(near)}"
    right = near[0] == "right" and "right" not in told
    return right, said + ". Its neighbours are those of right" * right


Exercise(check, answer)

# %% [markdown]
# **3. The best score.** A word is the true neighbour with probability $p$. Each of the $k$ random words is the same
# word with probability $q$. Its score $s = u \cdot v$ costs $-p \log \sigma(s) - k q \log \sigma(-s)$ on average.
# Which score costs least? A hint: the slope of $\log \sigma(s)$ is $\sigma(-s)$, and at the least cost the slope is
# 0.

# %%
answer = ...  # a function of p, q and k, which are tensors: x.log() is the log

p, q = torch.tensor([0.1, 0.001, 0.3]), torch.tensor([0.05, 0.01, 0.1])
k = torch.tensor([5, 5, 2])


def check(best):
    s = torch.as_tensor(best(p, q, k)).float().expand(3).clone()
    s.requires_grad_()
    cost = -p * logsigmoid(s) - k * q * logsigmoid(-s)
    cost.sum().backward()
    slopes = ", ".join(f"{slope:z.5f}" for slope in s.grad)
    said = f"the cost has the slopes {slopes} there. At its least, they are 0"
    right = bool(s.grad.abs().max() < 1e-5)
    return right, said + ": the score is log(p / q) − log(k)" * right


Exercise(check, answer)
