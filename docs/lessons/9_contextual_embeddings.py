# %% [markdown]
# # 9. Contextual embeddings
#
# If you have a single vector for "bank" (lesson 2), a search can't separate river banks from banks for money. You
# need the vector of a word **in its text**: a contextual embedding. Here you compute it with a pretrained model in
# three ways, and also by hand. Then you measure how much a text changes a word.

# %%
from timeit import Timer

import torch
from matplotlib.figure import Figure
from transformers import AutoModel, AutoTokenizer, logging, pipeline

import regard
from drawings import kept, numbers, transformer
from drawings.code import Code
from regard import textbook
from regard.explain.vectors.similarity import across_texts, table
from regard.trace.labelled_map import attention_from, special_share, vector

logging.disable_progress_bar()

# %% [markdown]
# ## From ids to contextual vectors
#
# An **encoder** is a stack of layers in which each token sees the whole text. The input vectors $x_0$ don't depend on
# each other. Each layer changes them:
#
# $$ x_0 = \mathrm{token} + \mathrm{position}, \quad x_{n+1} = \mathrm{layer}_n(x_n) $$
#
# The contextual embedding of a word is its row in the last $x$. The textbook's encoder computes it in a loop
# (`self.embed` returns $x_0$):

# %%
Code(textbook.EncoderDecoder.encode)

# %% [markdown]
# The pretrained model all-MiniLM-L6-v2 has six layers with twelve heads. It differs from the textbook in its details:
# positions are learned, embeddings aren't multiplied by √M, a norm follows each residual connection, and no norm
# comes at the end. To $x_0$ it also adds a segment vector, the same for all tokens of a single text, and applies a
# norm.

# %%
model = regard.load()  # all-MiniLM-L6-v2
bert = model.model
given = bert.config
config = regard.TransformerConfig.bert(
    layers=given.num_hidden_layers,
    d_model=given.hidden_size,
    heads=given.num_attention_heads,
)
assert config.hidden_width == given.intermediate_size
figure = transformer.blocks(config, tokens=14)
kept.keep(
    figure,
    "encoder_block.svg",
    "MiniLM: self-attention, add, norm, feed-forward, add, norm",
)

# %% [markdown]
# Here is the whole model by hand, with its learned matrices and norms and the textbook's attention:


# %%
def encode(ids, heads=12):
    first = bert.embeddings
    x = first.word_embeddings(ids)
    x = x + first.position_embeddings.weight[: len(ids)]
    # the segment vector, and a norm
    x = first.LayerNorm(x + first.token_type_embeddings.weight[0])
    for layer in bert.encoder.layer:
        learned, joined = layer.attention.self, layer.attention.output
        query, key, value = (
            project(x).unflatten(-1, (heads, -1)).transpose(0, 1)
            for project in (learned.query, learned.key, learned.value)
        )  # (heads, tokens, 32)
        mixed, _ = textbook.attention(query, key, value)
        mixed = mixed.transpose(0, 1).flatten(1)  # (tokens, 384)
        x = joined.LayerNorm(x + joined.dense(mixed))
        x = layer.output.LayerNorm(
            x + layer.output.dense(layer.intermediate(x))
        )
    return x


# %% [markdown]
# ## Four ways to the same numbers
#
# `AutoModel` returns the last hidden state, and you have to know which row belongs to which token. A `pipeline`
# returns the same numbers as nested lists. In a trace of regard, you find them by the word, together with all
# intermediate results.

# %%
sentences = [
    "Write a poem about a man fishing on a river bank.",
    "Write a poem about a man withdrawing money from a bank.",
]
river, money = model.trace(sentences)
bank = river.word("bank")[0]
at, there = bank.tokens[0], money.word("bank")[0].tokens[0]
print([token.text for token in river.tokens])
assert (at, there) == (11, 11)

folder = given._name_or_path
tokenizer = AutoTokenizer.from_pretrained(folder)
plain = AutoModel.from_pretrained(folder).eval()
nested = pipeline("feature-extraction", model=plain, tokenizer=tokenizer)
with torch.no_grad():
    inputs = tokenizer(sentences[0], return_tensors="pt")
    routes = {
        "by hand, row 11": encode(inputs.input_ids[0])[11],
        "AutoModel, row 11": plain(**inputs).last_hidden_state[0, 11],
        "pipeline, row 11": torch.tensor(nested(sentences[0]))[0, 11],
        "trace, “bank”": vector(river.last_hidden_state, bank),
    }
numbers.show_numbers(
    torch.stack([row[:5] for row in routes.values()]),
    [*routes],
    title="the first 5 of 384",
    digits=4,
)
for row in routes.values():
    torch.testing.assert_close(
        row, routes["AutoModel, row 11"], atol=1e-5, rtol=0
    )

# %% [markdown]
# ## A single vector before, two after
#
# "bank" enters both texts with the same vector, because token and position are the same. To compare the two vectors
# after each layer, take the cosine of the angle between them:
#
# $$ \cos(a, b) = \frac{a}{|a|} \cdot \frac{b}{|b|} $$

# %%
assert torch.equal(river.token_embeddings[at], money.token_embeddings[there])
assert torch.equal(
    river.position_embeddings[at], money.position_embeddings[there]
)
cosines = across_texts([(river, "bank"), (money, "bank")])[:, 0, 1]
layers = ["enters", *(f"after {n}" for n in range(6))]
numbers.show_numbers(cosines[None], ["cosine of the two banks"], layers)
steps = cosines.diff()
assert sorted(steps.argsort()[:2].tolist()) == [0, 5]
assert float(steps[1:5].sum()) > 0
assert abs(float(cosines[-1]) - 0.847) < 5e-4

# %% [markdown]
# The first layer separates the two vectors, and the last layer separates them further. In the layers between, they
# come a little closer again.
#
# You can also measure similarity by the dot product, which grows with the lengths of the vectors, or by the Euclidean
# distance, which is small for similar vectors. For these five words, all three measures give the same order.

# %%
words = ["river", "water", "money", "loan", "poem"]
b = model.trace("bank").token_embeddings[1]
others = torch.stack([model.trace(word).token_embeddings[1] for word in words])
dots = others @ b
measured = torch.stack(
    [dots, dots / others.norm(dim=1) / b.norm(), (others - b).norm(dim=1)], 1
)
numbers.show_numbers(
    measured,
    words,
    ["dot", "cosine", "distance"],
    title="token embeddings: “bank” and other words",
)
order = measured.argsort(0)
assert order[:, 0].equal(order[:, 1])
assert order[:, 0].equal(order[:, 2].flip(0))

# %% [markdown]
# Models compare vectors by dot products, because a single matrix product computes all of them. `torch.cdist` takes
# longer to compute the distances.

# %%
q, keys = torch.randn(2, 512, 64)
ways = (lambda: torch.cdist(q, keys), lambda: q @ keys.T)
ratios = []
for _ in range(45):
    distances, products = (Timer(way).timeit(2) for way in ways)
    ratios.append(distances / products)
ratio = sorted(ratios)[22]  # the median
print(f"512 × 512 distances: {ratio:.1f} times as long as the dot products")
assert ratio > 1

# %% [markdown]
# ## Attention from "bank"
#
# You often read that a word attends most to itself. In layer 0, averaged over all heads, "bank" doesn't. And much of
# its attention goes to the special tokens, which carry no text:

# %%
row = river.attention[0][:, at].mean(0)
print(
    f"layer 0: bank → itself {row[at]:.3f}, river {row[at - 1]:.3f}, fishing "
    f"{row[at - 4]:.3f}"
)
assert float(row[at]) < float(row[at - 1])
shares = torch.stack(
    [
        special_share(attention_from(weights, bank).mean(0), river.tokens)
        for weights in river.attention
    ]
)
numbers.show_numbers(
    shares[None],
    ["attention to special tokens"],
    [f"layer {n}" for n in range(6)],
    digits=2,
)

# %% [markdown]
# ## How "bank" moves through the layers
#
# Any two words have some cosine in any sentence, so you need a baseline. Here it is 39 neutral sentences, which give
# no hint at the meaning of "bank" ("Nobody said anything about the bank.").
#
# The plots show the cosine between "bank" and each of five other words after each layer. For the vector of the other
# word, the model reads this word alone. The grey area is the range of the 39 sentences, and the dotted line is their
# mean.

# %%
references = ["money", "deposit", "nature", "river", "water"]
found = regard.see(sentences, "bank", references=references, model=model)
seen = found.summary
colours = {"1": "#004488", "2": "#bb5566"}
figure = Figure(figsize=(13, 3.2), layout="constrained")
panels = figure.subplots(1, 5, sharey=True)
for axes, each in zip(panels, seen.neutral, strict=True):
    states = range(len(each.mean))
    axes.fill_between(states, each.low, each.high, color="#77777740")
    axes.plot(each.mean, ":", color="#777777")
    axes.set_title(each.word)
    axes.set_xticks(states, ["in", *range(6)])
    for one in seen.references:
        if one.word == each.word:
            axes.plot(one.states, ".-", color=colours[one.occurrence])
panels[0].set_ylabel("cosine")
figure.suptitle(
    "Cosine of “bank” to each word: blue river text, red money text"
)
of_river = {r.word: r.states for r in seen.references if r.occurrence == "1"}
least = {each.word: each.low for each in seen.neutral}
for word in ("water", "nature"):
    below = [a < b for a, b in zip(of_river[word], least[word], strict=True)]
    assert below == [False, *[True] * 5, False]
of_money = {r.word: r.states for r in seen.references if r.occurrence == "2"}
assert of_money["water"][4] < least["water"][4]
kept.keep(
    figure,
    "bank_cosines.svg",
    "Cosines of bank to five words by layer, in two texts and in the range "
    "of neutral sentences",
)

# %% [markdown]
# At the end, only one text is above a grey range: the river text for "river". There is a surprise: after layers 0 to
# 4, the river text's "bank" has a smaller cosine to "water" and to "nature" than "bank" in any neutral sentence. In
# some of these layers, the money text's "bank" is below the range too, so river and money aren't the only difference
# between our texts and the neutral sentences.
#
# Articles often draw this movement as an arrow on a plane, with made-up coordinates. A plane has two of the 384
# dimensions here, so this page compares cosines.

# %% [markdown]
# ## The effect of each text
#
# If a cosine leaves the range of the 39 sentences, the text is probably the reason: with other neutral sentences, only
# about 1 in 50 cosines leaves it ([measured here](../movement.md)). The river text moves "bank" towards "river" and
# away from "deposit". The money text mentions money, but in the end it moves "bank" no more than neutral sentences do.

# %%
rows = []
for each in seen.neutral:
    of_texts = [
        one.last_hidden_state
        for one in seen.references
        if one.word == each.word
    ]
    rows.append([each.low[-1], each.mean[-1], each.high[-1], *of_texts])
numbers.show_numbers(
    torch.tensor(rows),
    [each.word for each in seen.neutral],
    ["least", "mean", "most", "river text", "money text"],
    title="cosine of “bank” to other words, "
    "in 39 neutral sentences and in the two texts",
    digits=2,
)
for sentence in found.findings():
    if "neutral" in sentence:
        print(sentence)
low, _, high, of_river, of_money = torch.tensor(rows).T
outside = (of_river < low) | (of_river > high)
assert outside.tolist() == [False, True, False, True, False]
assert bool(((low < of_money) & (of_money < high)).all())

# %% [markdown]
# ## Measure polysemy
#
# **Polysemy** means that a word has several senses. Two sentences are an example, not a measurement. So here are
# three words with two senses each, and four sentences for each sense. How similar are two uses of a word with the
# same sense, and how similar are two uses with different senses? A static vector would score 1.000 in both columns.

# %%
uses = {
    "bank": (
        [
            "We sat on the bank and watched the boats.",
            "The bank was muddy after the flood.",
            "Ducks nest on the grassy bank of the stream.",
            "He tied the canoe to a tree on the bank.",
        ],
        [
            "The bank raised its interest rate.",
            "She works as a clerk at the bank.",
            "The bank refused to lend them anything.",
            "I opened an account with another bank.",
        ],
    ),
    "bat": (
        [
            "A bat hung upside down in the cave.",
            "The bat sleeps by day and flies at dusk.",
            "A bat finds insects by its echo.",
            "The bat folded its leathery wings.",
        ],
        [
            "He swung the bat and hit the ball.",
            "She bought a wooden bat for the match.",
            "The batter dropped his bat and ran.",
            "A cricket bat is made of willow.",
        ],
    ),
    "spring": (
        [
            "The flowers bloom in spring.",
            "We sow the seeds early in spring.",
            "After a long winter spring arrived.",
            "In spring the days grow longer.",
        ],
        [
            "The spring in the mattress is broken.",
            "A metal spring stores energy when it is pressed.",
            "The watch is driven by a coiled spring.",
            "Pull the spring and it snaps back.",
        ],
    ),
}
sense = torch.tensor([0] * 4 + [1] * 4)
itself = torch.eye(8, dtype=torch.bool)
same, other = (sense[:, None] == sense) & ~itself, sense[:, None] != sense
# words, hidden states: mean cosine in the sense, across senses; neighbours
found = torch.zeros(len(uses), 7, 3)
for n, (word, senses) in enumerate(uses.items()):
    traces = model.trace([text for texts in senses for text in texts])
    for state in range(7):
        # (8, 8)
        alike = table(
            *[
                torch.stack(
                    [
                        vector(t.hidden_states[state], t.word(word)[0])
                        for t in traces
                    ]
                )
            ]
            * 2
        )
        nearest = alike.masked_fill(itself, -1).argmax(1)
        right = (sense[nearest] == sense).sum()
        found[n, state] = torch.stack(
            [alike[same].mean(), alike[other].mean(), right]
        )
    at = [t.word(word)[0].tokens[0] for t in traces]
    print(f"positions of “{word}”: {at[:4]} and {at[4:]}")
    if word == "bat":  # every neighbour is right before any attention
        assert set(at[:4]) == {2}
        assert 2 not in at[4:]
        assert found[n, 0, 2] == 8
across = ["same sense", "other sense", "right of 8"]
numbers.show_numbers(
    found[:, -1],
    [*uses],
    across,
    title="the contextual embeddings: mean cosine, nearest other use",
)
summed = torch.cat([found[..., :2].mean(0), found[..., 2:].sum(0)], 1)
numbers.show_numbers(
    summed,
    layers,
    [*across[:2], "right of 24"],
    title="all three words, layer by layer",
)
assert bool((found[:, -1, 0] > found[:, -1, 1]).all())
assert summed[-1, 2] >= 18  # by chance 24 · 3 / 7, about 10
assert int(summed[1, 2]) == summed[:, 2].max() == 23
assert int(summed[-1, 2]) == 21
assert found[:, 0, 2].tolist() == [3, 8, 4]
assert 0 < found[0, -1, 0] - found[0, -1, 1] < 0.1  # bank

# %% [markdown]
# By chance, 10 of 24 nearest neighbours would have the right sense. Before layer 0, the vectors of a word differ in
# their positions only, and yet 15 are right. The reason is our sentences: each animal "bat" is at position 2, and no
# other "bat" is there. So all 8 uses of "bat" are right. Of the other 16 uses, 7 are right, as by chance.
#
# After layer 0, 23 are right, and no later layer improves on this. But all uses of "bank" remain similar: the cosines
# of the two columns differ by less than 0.1. So always measure, and compare with a baseline.

# %% [markdown]
# Attention has made the vector of a word depend on its text, and for 21 of 24 uses the nearest use has the same
# sense. Next, such vectors decide what an image shows, and you test how far you can trust an attention map: [10.
# Words that paint](10_words_that_paint.py).

# %% [markdown]
# ## Exercises
#
# The cells below don't need the cells above. Replace `...` by your answer and run the cell, or run `regard lesson 9
# --exercises`.

# %%
import torch

import regard
from drawings.exercise import Exercise
from drawings.numbers import show_numbers
from regard.explain.vectors.similarity import across_texts, cosine
from regard.text.neutral_sentences import neutral_sentences
from regard.trace.labelled_map import special_share, vector

model = regard.load()

# %% [markdown]
# **1. Predict the layer.** In the texts below, "mouse" is first an animal and then a device. Layer 0 separates the
# two banks most. Which of the layers 0 to 5 lowers the cosine of the two mice most?

# %%
texts = ["The mouse ate the cheese.", "The mouse needs a new cable."]
answer = ...  # a number from 0 to 5


def check(layer):
    places = [(trace, "mouse") for trace in model.trace(texts)]
    steps = across_texts(places)[:, 0, 1].diff()
    right = layer == steps.argmin()
    why = ", more than any other: each word has its own layer" if right else ""
    return right, f"layer {layer} changes it by {steps[int(layer)]:.3f}{why}"


Exercise(check, answer)

# %% [markdown]
# **2. Distract from the special tokens.** Tokens give much of their attention to `[CLS]` and `[SEP]`. Write a text in
# which the other tokens give these two less than half of their attention in every layer, on average. Hint: try a longer
# text.

# %%
answer = ...  # a text, in quotes


def check(text):
    trace = model.trace(text)
    rows = [weights.dense().mean(0)[1:-1] for weights in trace.attention]
    shares = torch.stack(
        [special_share(row.mean(0), trace.tokens) for row in rows]
    )
    show_numbers(shares[None], ["to special tokens"], map(str, range(6)))
    most = int(shares.argmax())
    right = shares[most] < 0.5
    why = f", {len(trace.tokens)} tokens share the attention" if right else ""
    return right, f"layer {most} gives {shares[most]:.2f}{why}"


Exercise(check, answer)

# %% [markdown]
# **3. Move "bank" to "money".** Find a sentence without the word "money" in which "bank" is closer to "money" than in
# at least 30 of the 39 neutral sentences. Then try to beat all 39. Hint: try short commands.

# %%
answer = ...  # a sentence, in quotes


def check(sentence):
    money = model.trace("money").last_hidden_state[1]
    mine, *neutral = (
        float(cosine(vector(t.last_hidden_state, t.word("bank")[0]), money))
        for t in model.trace([sentence, *neutral_sentences("bank")])
    )
    beaten = sum(mine > each for each in neutral)
    right = beaten >= 30 and "money" not in sentence.lower()
    found = f"cosine {mine:.3f}, larger than in {beaten} of 39"
    if not right:
        return False, found
    if beaten < 39:
        return True, f"{found}: this may be chance, as some neutral ones do it"
    return True, f"{found}: outside the range, so the text is probably why"


Exercise(check, answer)
