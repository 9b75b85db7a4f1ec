# %% [markdown]
# # 9. Contextual embeddings
#
# To search for a particular "bank", you need a vector for each word **in its text**. It is the output of the whole
# process, from tokens through token embeddings and positions to attention in many heads and layers. On this page you
# get these vectors from pretrained models, in two well-known ways and with regard, and measure the effect of context
# on a word.

# %%
import os
from timeit import Timer

import torch
from matplotlib.figure import Figure
from transformers import (
    AutoModel,
    AutoTokenizer,
    BertConfig,
    DistilBertConfig,
    logging,
    pipeline,
)

import regard
from drawings import kept, numbers, transformer
from drawings.printed import printed
from regard.explain.vectors.similarity import (
    across_texts,
    cosine,
    dot,
    euclidean,
    table,
)
from regard.trace.word_rows import gives, special_share, vector

logging.disable_progress_bar()

# %%
sentences = [
    "Write a poem about a man fishing on a river bank.",
    "Write a poem about a man withdrawing money from a bank.",
]
model = regard.load()  # all-MiniLM-L6-v2
river, money = model.trace(sentences)
at, there = river.word("bank")[0].tokens[0], money.word("bank")[0].tokens[0]
print([token.text for token in river.tokens])
assert (at, there) == (11, 11)

# %% [markdown]
# MiniLM has six encoder blocks. In each block every token sees the whole text, and a norm follows each residual
# connection.

# %%
given = model.model.config
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
# ## Three ways to the same numbers
#
# `AutoModel` returns the last hidden state, and you have to know which row belongs to which token. A `pipeline`
# returns the same numbers as nested lists. In a trace you find them by name, together with all intermediate results.

# %%
folder = model.model.config._name_or_path
tokenizer, plain = (
    AutoTokenizer.from_pretrained(folder),
    AutoModel.from_pretrained(folder).eval(),
)
with torch.no_grad():
    by_model = plain(
        **tokenizer(sentences[0], return_tensors="pt")
    ).last_hidden_state[0]
by_pipeline = torch.tensor(
    pipeline("feature-extraction", model=plain, tokenizer=tokenizer)(
        sentences[0]
    )
)[0]
bank = river.word("bank")[0]
routes = {
    "AutoModel, row 11": by_model[11],
    "pipeline, row 11": by_pipeline[11],
    "trace, “bank”": vector(river.last_hidden_state, bank),
}
numbers.show_numbers(
    torch.stack([row[:5] for row in routes.values()]),
    [*routes],
    title="the first 5 of 384",
    digits=4,
)
for row in routes.values():
    torch.testing.assert_close(row, by_model[11], atol=1e-5, rtol=0)

# %% [markdown]
# ## A single vector before, two after
#
# "bank" enters both texts with the same vector, because token and position are the same. The first layer separates
# the two vectors, and the last layer separates them further. In the layers between, they come a little closer again.

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
# You can measure similarity in three ways. The dot product grows with length, the cosine doesn't, and the Euclidean
# distance is small for similar vectors. For these five words, all three measures give the same order.

# %%
words = {
    word: model.trace(word).token_embeddings[1]
    for word in ("bank", "river", "water", "money", "loan", "poem")
}
measured = []
for word in ("river", "water", "money", "loan", "poem"):
    a, b = words["bank"], words[word]
    measured.append([dot(a, b), cosine(a, b), euclidean(a, b)])
    assert (
        abs(measured[-1][0] - measured[-1][1] * float(a.norm() * b.norm()))
        < 1e-4
    )
    assert (
        abs(
            measured[-1][2] ** 2
            - float(a.norm() ** 2 + b.norm() ** 2)
            + 2 * measured[-1][0]
        )
        < 1e-3
    )
numbers.show_numbers(
    torch.tensor(measured),
    [*words][1:],
    ["dot", "cosine", "distance"],
    title="token embeddings: “bank” and other words",
)
by_dot, by_cosine, by_distance = torch.tensor(measured).T
assert by_dot.argsort().equal(by_cosine.argsort())
assert by_dot.argsort().equal(by_distance.argsort(descending=True))

# %% [markdown]
# Which measure is the most expensive? Compute the distances of 512 queries to 512 keys as written (subtract, square,
# add, root) and compare the time with a single matrix product:

# %%
q, keys = torch.randn(2, 512, 64)
ways = (
    (lambda: (q[:, None] - keys).square().sum(-1).sqrt()),
    (lambda: q @ keys.T),
)
ratio = Timer(ways[0]).timeit(5) / Timer(ways[1]).timeit(5)
print(f"the distance takes {ratio:.0f} times as long as the dot product")
assert ratio > 3

# %% [markdown]
# The three measures can differ, because a cosine ignores different lengths. Among all of MiniLM's token embeddings,
# the four closest to "bank" are the same by every measure. The fifth is a different token by each measure.

# %%
learned = model.model.embeddings.word_embeddings.weight.detach().double()
products = learned @ words["bank"].double()
distances = -(learned - words["bank"].double()).norm(dim=1)
rankings = {
    "dot": products,
    "cosine": products / learned.norm(dim=1),
    "distance": distances,
}
near = {
    name: tokenizer.convert_ids_to_tokens(values.topk(7).indices[1:])
    for name, values in rankings.items()
}
for name, nearest in near.items():
    print(f"{name:8} {', '.join(nearest)}")
assert len({tuple(row[:4]) for row in near.values()}) == 1
assert [row[4] for row in near.values()] == ["financial", "banker", "banco"]

# %% [markdown]
# ## Attention from "bank"
#
# You often read that a word attends most to itself. In layer 0, over all heads, "bank" doesn't. Much of its
# attention goes to the special tokens, which carry no text.

# %%
row = river.attention[0][:, at].mean(0)
print(
    f"layer 0: bank → itself {row[at]:.3f}, river {row[at - 1]:.3f}, fishing "
    f"{row[at - 4]:.3f}"
)
assert float(row[at]) < float(row[at - 1])
shares = torch.stack(
    [
        special_share(gives(weights, bank).mean(0), river.tokens)
        for weights in river.attention
    ]
)
numbers.show_numbers(
    shares[None],
    ["attention to special tokens"],
    [f"layer {n}" for n in range(6)],
    digits=2,
)
one = river.attention[0]
# head 3
looped = torch.stack(
    [
        torch.stack([query @ key for key in one.key[0, 3]])
        for query in one.query[0, 3]
    ]
)
torch.testing.assert_close(
    (looped * one.rule.scale).softmax(-1), one[3], atol=1e-5, rtol=0
)
assert one.rule.scale == 32**-0.5  # of one head, not of the model's 384

# %% [markdown]
# ## How "bank" moves through the layers
#
# A word has some cosine to any other word in any sentence. So you compare the two texts with 39 neutral sentences,
# which give no hint at the meaning of "bank" ("Nobody said anything about the bank.").
#
# The upper plots show the cosine of "bank" to each word after each layer. Grey is the range of the 39 sentences, and
# the dotted line is their mean. The lower left plot shows the movement as it is usually drawn, with made-up
# coordinates (from the article). The lower right plot shows measured vectors, with the final position of each "bank".
# A plane only shows two of 384 dimensions. This plane is rotated so that distance and cosine agree: of any two marks,
# the one closer to a ★, a ◆ or ○ also has the larger cosine to it.

# %%
article = printed("contextual embeddings")
made_up = article["movement_plot"]
toy, start, end = (
    made_up["words"],
    made_up["bank_before"],
    made_up["bank_after"],
)
references = ["money", "deposit", "nature", "river", "water"]
found = regard.see(sentences, "bank", references=references, model=model)
seen = found.summary
moved = seen.movement
colours = {"1": "#004488", "2": "#bb5566"}
figure = Figure(figsize=(13, 8.4), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=(3, 5))
panels = above.subplots(1, 5, sharey=True)
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
above.suptitle("Cosine of “bank” to each word: blue river text, red money text")
left, right = below.subplots(1, 2)
for word, place in toy.items():
    left.plot(*place, "o", color="#d55e00" if place[0] < 5 else "#0072b2")
    left.annotate(word, place, xytext=(6, 4), textcoords="offset points")
left.plot(*zip(start, end, strict=True), "--k")
left.plot(*start, "ko")
left.plot(*end, "k*", markersize=15)
left.annotate(
    "bank, before", start, xytext=(8, -12), textcoords="offset points"
)
left.annotate("bank, after", end, xytext=(8, -12), textcoords="offset points")
left.set(
    xlim=(0, 10),
    ylim=(0, 10),
    title="As it is usually drawn (made-up coordinates)",
)
ends = {
    "bank, river text": moved.words[0][-1],
    "bank, money text": moved.words[1][-1],
    "bank, neutral": moved.neutral,
}
for (name, place), mark, colour in zip(
    ends.items(), "**o", (*colours.values(), "#777777"), strict=True
):
    right.plot(
        *place,
        mark,
        color=colour,
        markersize=15 if mark == "*" else 8,
        label=name,
    )
for place, colour, leaves in zip(
    ends.values(), colours.values(), moved.leaves, strict=False
):
    if leaves:  # outside the range of the neutral sentences: what this text did
        right.annotate(
            "",
            place,
            moved.neutral,
            arrowprops={"arrowstyle": "-|>", "color": colour, "shrinkB": 8},
        )
for word, place in zip(references, moved.references, strict=True):
    right.plot(*place, "D", color="#666666")
    right.annotate(word, place, xytext=(6, 4), textcoords="offset points")
right.margins(0.12)
right.set_aspect("equal", adjustable="datalim")
right.set_title(
    "As it is in MiniLM, at the end: nearer here has the larger cosine"
)
right.legend(frameon=False)
measured = {
    (each.word, int(each.occurrence) - 1): each.last_hidden_state
    for each in seen.references
}
measured |= {(each.word, 2): each.mean[-1] for each in seen.neutral}
# seen from each ◆
for word, place in zip(references, moved.references, strict=True):
    far = [
        float(torch.dist(torch.tensor(place), torch.tensor(end)))
        for end in ends.values()
    ]
    assert sorted(range(3), key=far.__getitem__) == sorted(
        range(3), key=lambda n: -measured[word, n]
    )
assert (moved.leaves, moved.tried[-1].wrong) == ([True, False], 0)
shows = (
    "the river text's bank ends nearer to river than in any neutral sentence, "
    "the money text's within their range"
)
kept.keep(
    figure,
    "bank_moves.svg",
    "Cosines of bank to five words by layer; below, made-up and measured: "
    f"{shows}",
)

# %% [markdown]
# ## The effect of each text
#
# If a cosine leaves the range of the 39 sentences, the text is the reason. The river text moves "bank" towards
# "river" and away from "deposit". The money text mentions money, but it changes these cosines no more than neutral
# sentences do.

# %%
rows = [
    [
        each.low[-1],
        each.mean[-1],
        each.high[-1],
        measured[each.word, 0],
        measured[each.word, 1],
    ]
    for each in seen.neutral
]
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
names = [each.word for each in seen.neutral]
assert [
    name for name, out in zip(names, of_river > high, strict=True) if out
] == ["river"]
assert [
    name for name, out in zip(names, of_river < low, strict=True) if out
] == ["deposit"]
assert bool(((low < of_money) & (of_money < high)).all())

# %% [markdown]
# ## Measure polysemy
#
# Two sentences are an example, not a measurement. Here are three words with two senses each, and four sentences for
# each sense, none with keywords of the other sense. How similar are two uses of a word if they have the same sense,
# and how similar if they don't? A static vector would score 1.000 in both columns.

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

# %% [markdown]
# By chance, 10 of 24 nearest neighbours would have the right sense. Before layer 0, the vectors of a word differ in
# position only, so the few extra matches there come from words at the same position. After layer 0, 23 neighbours are
# right, and later layers give no more. At the end, 21 neighbours are right. But the cosines differ less than plots
# suggest: all uses of "bank" remain similar, and the sense is a small component of the vector. So always measure, and
# compare with a baseline.
#
# ## The published model
#
# The article prints 87 numbers of distilbert-base-uncased: 72 with four decimals (the corners of two tensors) and 15
# with two. **They are not verified here**, because the model was not available. To check all 87, set
# `REGARD_LESSON_MODEL` to `distilbert-base-uncased` or to its folder. The last cell does this. A DistilBERT of the
# same size with random weights shows that the method is right. The article says that DistilBERT is 40 % smaller than
# BERT and 60 % faster. You can check the size by counting the parameters. The authors of DistilBERT measured the
# speed (Sanh et al. 2019).

# %%
torch.manual_seed(0)
random = AutoModel.from_config(DistilBertConfig()).eval()
route = regard.load(random, tokenizer=tokenizer).trace(sentences[0])
with torch.no_grad():
    itself = random(
        **tokenizer(
            sentences[0], return_tensors="pt", return_token_type_ids=False
        )
    ).last_hidden_state[0]
with torch.device("meta"):
    bert = AutoModel.from_config(BertConfig())
sizes = [
    sum(parameter.numel() for parameter in each.parameters())
    for each in (random, bert)
]
largest = float((route.last_hidden_state - itself).abs().max())
print(
    f"random DistilBERT: contextual embeddings differ by {largest:.1e} at "
    "most, token embeddings are equal"
)
print(
    f"{sizes[0]:,} numbers against BERT's {sizes[1]:,}: "
    f"{1 - sizes[0] / sizes[1]:.0%} fewer"
)
assert torch.equal(
    route.token_embeddings,
    random.embeddings.word_embeddings.weight[
        [token.id for token in route.tokens]
    ],
)
assert largest < 1e-5
assert sizes[0] == 66_362_880

# %%
figures = article["pretrained"]
learned, contextual = figures["learned_corners"], figures["contextual_corners"]
rounded = [
    figures["learned_embedding_of_bank_first_5"],
    *figures["contextual_embedding_of_bank_first_5"].values(),
]
assert sum(map(len, learned + contextual)) == 72


def corners(rows):
    """The first and last three rows and columns, as PyTorch prints a large
    tensor."""
    return torch.cat([rows[:3], rows[-3:]])[:, [0, 1, 2, -3, -2, -1]]


where = os.environ.get("REGARD_LESSON_MODEL")
if where:
    original = regard.load(where)
    a, b = original.trace(sentences)
    for name, rows, expected in (
        ("token embeddings", a.token_embeddings, learned),
        ("contextual embeddings", a.last_hidden_state, contextual),
    ):
        numbers.show_numbers(
            corners(rows),
            title=f"{name}, first and last three rows and columns",
            digits=4,
        )
        torch.testing.assert_close(
            corners(rows), torch.tensor(expected), atol=6e-5, rtol=0
        )
    seen = torch.stack(
        [
            original.trace("bank").token_embeddings[1, :5],
            a.last_hidden_state[11, :5],
            b.last_hidden_state[11, :5],
        ]
    )
    torch.testing.assert_close(seen, torch.tensor(rounded), atol=5.1e-3, rtol=0)
    print("distilbert-base-uncased: all 87 published figures hold")
else:
    print(
        "REGARD_LESSON_MODEL names no model: the 87 published figures are "
        "unverified here"
    )

# %% [markdown]
# You have followed a text to contextual vectors. The last page goes from vectors to a picture and tests how far you
# can trust an attention map: [10. Words that paint](10_words_that_paint.py).
