# %% [markdown]
# # 7. A transformer that writes
#
# Why did the chat model say that? A chat model repeats a single step: it predicts the next token from the tokens
# before it and appends it to the text. For each word of an answer, you can see which tokens the model attended to. In
# lessons 10 and 12, you test whether these are the cause.
#
# On this page you train a model of two layers in seconds on a nursery rhyme, and watch its attention form. You let it
# continue a beginning that it has never read, and set a temperature that decides how boldly it writes. At the end,
# you ask a real model a question.

# %%
import torch
from matplotlib.figure import Figure

import regard
from drawings import moving
from drawings import transformer as schematic
from drawings.code import Code
from drawings.grid import heatmap
from drawings.kept import keep
from drawings.links import links
from drawings.numbers import show_numbers
from regard import generated, textbook
from regard.fetched import find, left_out
from regard.text import tokenizers

# %% [markdown]
# ## The text
#
# The text is "The House That Jack Built", printed in 1755. The verse of the maiden is **held out**: the model isn't
# trained on it. But it is trained on all words of this verse except the beginning: the man's verse contains "the
# maiden all forlorn" and everything after it. Only "This is the maiden" is new.

# %%
chain = [
    ("man all tattered and torn", "kissed"),
    ("maiden all forlorn", "milked"),
    ("cow with the crumpled horn", "tossed"),
    ("dog", "worried"),
    ("cat", "killed"),
    ("rat", "ate"),
    ("malt", "lay in"),
    ("house", ""),
]
verses = []
for first in range(len(chain)):
    lines = " ".join(f"the {who} that {does}" for who, does in chain[first:-1])
    verses.append(
        f"This is {lines} the house that Jack built".replace("  ", " ")
    )
held_out = verses.pop(1)
for verse in [*verses[-4:], f"held out: {held_out}"]:
    print(verse)

tokenizer = tokenizers.words(verses, frame="end")  # [EOS] ends a text
# one after another
stream = torch.cat(
    [tokenizers.batch(tokenizer, [verse]).ids[0] for verse in verses]
)
secret = tokenizers.batch(tokenizer, [held_out]).ids
print(
    f"{len(verses)} verses, {len(stream)} tokens, a vocabulary of "
    f"{len(tokenizer)}"
)
assert held_out.removeprefix("This is ") in verses[0]
assert not any("This is the maiden" in verse for verse in verses)

# %% [markdown]
# ## The model
#
# Attention mixes tokens. The **feed-forward** network (MLP) works on each token alone. Both *add* their results to
# the token's vector (the **residual stream**), and a **norm** before each keeps the numbers in range. Here is the
# whole textbook model:

# %%
Code(textbook.Decoder)

# %% [markdown]
# `regard.Transformer` has the same parameters and can be traced. The model below differs in its positions: `embed`
# only looks up rows of the table and adds no sines and cosines. Instead, **rotary** positions (lesson 3) rotate the
# queries and keys.

# %%
config = regard.TransformerConfig(
    vocabulary=len(tokenizer), positions="rotary", layers=2, d_model=64, heads=4
)
plain = textbook.Decoder(len(tokenizer), 64, heads=4, layers=2)
torch.manual_seed(0)
model = regard.Transformer(config)
plain.load_state_dict(model.state_dict())  # fails if a parameter doesn't fit
print(
    f"{sum(parameter.numel() for parameter in model.parameters()):,} numbers "
    "to learn"
)
shows = (
    "A decoder block: norm, causal self-attention, add; norm, feed-forward, add"
)
keep(schematic.blocks(config), "decoder_block.svg", shows)

# %% [markdown]
# A block computes two lines:
#
# $$ h = x + \mathrm{Attention}(\mathrm{norm}(x)) $$
#
# $$ y = h + \mathrm{FeedForward}(\mathrm{norm}(h)) $$
#
# The last lines of the code below are these two. (`cross` is for lesson 8.)

# %%
Code(textbook.Block)

# %% [markdown]
# The **layer norm** works on the numbers of one token. It subtracts their mean and divides by their spread (the
# standard deviation). Two learned vectors $g$ and $b$ then scale and shift each number:
#
# $$ \mathrm{norm}(x) = (x - \mathrm{mean}) / \mathrm{spread} \cdot g + b $$
#
# The feed-forward network has two matrices. Between them is **gelu**, which keeps large positive numbers and turns
# large negative numbers into 0:
#
# $$ \mathrm{FeedForward}(x) = \mathrm{gelu}(x W_1 + b_1) W_2 + b_2 $$

# %%
Code(textbook.FeedForward)

# %% [markdown]
# After the last block, each token gets one score for each word of the vocabulary, its **logits**. They are dot
# products with the rows of the embedding table $E$. Their softmax has the probability that each word comes next:
#
# $$ \mathrm{logits} = \mathrm{norm}(y) E^T $$
#
# Computing these lines by hand gives the results of the model:

# %%
mine = regard.load(model, tokenizer=tokenizer)
untrained = mine.trace(held_out)


def norm(x, learned):
    spread = (x.var(-1, correction=0, keepdim=True) + learned.eps).sqrt()
    return (
        x - x.mean(-1, keepdim=True)
    ) / spread * learned.weight + learned.bias


block, x = model.decoder[0], untrained.hidden_states[0]
up, down = block.feedforward.up, block.feedforward.output
with torch.no_grad():
    h = x + block.attention(norm(x, block.attention_norm), causal=True)
    inside = norm(h, block.feedforward_norm) @ up.weight.T + up.bias
    y = h + torch.nn.functional.gelu(inside) @ down.weight.T + down.bias
    last = norm(untrained.hidden_states[2], model.decoder_norm)
    logits = last @ model.embedding.weight.T
close = {"atol": 1e-5, "rtol": 0}
torch.testing.assert_close(y, untrained.hidden_states[1], **close)
torch.testing.assert_close(logits, untrained.logits, **close)

# %% [markdown]
# ## The causal mask
#
# The model learns to predict the next token, so no token may see the tokens after it. A mask is added to the
# scores, with a number for each query $i$ and key $j$:
#
# $$ \mathrm{softmax}\left(\frac{Q K^T}{\sqrt{d_k}} + \mathrm{mask}\right) V $$
#
# $$ \mathrm{mask}_{ij} = 0 \text{ if } j ≤ i, \text{ else } -∞ $$
#
# Because exp(−∞) = 0, the weights of later tokens are exactly 0, and half the matrix is empty. Later tokens then never
# change earlier results, so a single pass trains the model on every token of the text.

# %%
mask = torch.full((4, 4), -torch.inf).triu(1)  # 0 up to the diagonal
show_numbers(
    mask.softmax(-1),
    title="softmax of the mask: the weights if all scores are 0",
)

weights = untrained.attention[0][0]
names = [token.text for token in untrained.tokens]
assert bool((weights.triu(1) == 0).all())
torch.testing.assert_close(weights.sum(-1), torch.ones(len(names)))
other = mine.trace(held_out.replace("Jack built", "Jack milked"))
change = (other.last_hidden_state - untrained.last_hidden_state).abs().amax(1)
show_numbers(
    change[None, -4:],
    [""],
    names[-4:],
    title="largest change when “built” becomes “milked”",
)
assert float(change[: names.index("built")].max()) < 1e-5
assert float(change[names.index("built")]) > 1e-3

figure = Figure(figsize=(5.2, 4.4), layout="constrained")
heatmap(
    weights[:9, :9],
    names[:9],
    names[:9],
    title="untrained: each token looks back, evenly",
    labels=("query", "key"),
    axes=figure.add_subplot(),
)
keep(
    figure,
    "causal_mask.svg",
    "The weights of the first nine tokens: a triangle, each row nearly even",
)

# %% [markdown]
# ## Training
#
# The loss is the mean of −log of the probability of each true next token. Here $N$ is the number of predictions:
#
# $$ \mathrm{loss} = -\frac{1}{N} \sum_t \log p(x_{t+1} | x_1, \dots, x_t) $$
#
# A model that gives each of the 34 words of the vocabulary the same probability has the loss log 34 = 3.53. Each
# training step uses 16 pieces of 32 tokens, which begin at random positions in the text. The token embeddings start
# as random numbers, as in lesson 1, and are trained too.


# %%
def loss(ids):
    logits = model(ids).logits  # (pieces, tokens, vocabulary)
    return torch.nn.functional.cross_entropy(
        logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()
    )


optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
start = model.embedding.weight.detach().clone()
watched, table = {}, []
for step in range(401):
    # (16, 32)
    pieces = stream[torch.randint(len(stream) - 32, (16, 1)) + torch.arange(32)]
    if step in (0, 10, 20, 40, 80, 400):
        watched[step] = mine.trace(held_out)
        with torch.no_grad():
            table.append([float(loss(pieces)), float(loss(secret))])
    found = loss(pieces)
    optimiser.zero_grad()
    found.backward()
    optimiser.step()
show_numbers(
    torch.tensor(table),
    [f"step {n}" for n in watched],
    ["pieces read", "held out"],
    title="loss, in nats",
)
even = float(torch.tensor(len(tokenizer)).log())
print(f"even guesses: {even:.3f}")
assert (len(tokenizer), round(even, 2)) == (34, 3.53)
assert table[0][1] > 0.8 * even
assert table[-1][1] < 1.0

# %% [markdown]
# The model memorizes the rhyme of 157 words, and with it the rest of the held-out verse. But nothing in the rhyme
# starts with "This is the maiden". Which words of this verse add most to the loss?

# %%
rhyme = sum(len(verse.split()) for verse in verses)
with torch.no_grad():
    logits = model(secret).logits[0]
costs = torch.nn.functional.cross_entropy(
    logits[:-1], secret[0, 1:], reduction="none"
)
for cost, n in zip(*costs.topk(3), strict=True):
    print(f"{tokenizer.decode([secret[0, n + 1]]):8} {cost:.2f} nats")
worst = tokenizer.decode([secret[0, costs.argmax() + 1]])
print(f"{worst}: {costs.max() / costs.sum():.0%} of the verse's loss")
assert rhyme == 157
assert worst == "maiden"
assert costs.max() > 0.7 * costs.sum()

# %% [markdown]
# Most of the loss comes from "maiden". "This is the …" had seven continuations in training, and "maiden" was none of
# them. After it, the verse continues like the man's verse, which the model knows.
#
# ## Attention as it forms
#
# The word after "that" depends on the word before it: "the dog that **worried**", "all forlorn that **milked**". So
# "that" has to attend to the previous word. The table shows the head with the largest mean weight from "that" to the
# previous word:

# %%
text = [token.text for token in untrained.tokens]
thats = [n for n, word in enumerate(text) if word == "that"]
others = [n for n in range(1, len(text)) if n not in thats]


def back(trace, places=thats):
    """(layers, heads): the weight that tokens give to the one before them,
    averaged over some places."""
    return torch.stack(
        [
            torch.stack([weights[:, n, n - 1] for n in places]).mean(0)
            for weights in trace.attention
        ]
    )


layer, head = divmod(int(back(watched[400]).argmax()), config.heads)
formed = [
    [float(back(trace, places)[layer, head]) for places in (thats, others)]
    for trace in watched.values()
]
across = ["“that” → word before", "other words → word before"]
show_numbers(
    torch.tensor(formed),
    [f"step {n}" for n in watched],
    across,
    title=f"layer {layer}, head {head}",
)
assert formed[0][0] < 0.15
assert formed[-1][0] > 3 * formed[0][0]
assert formed[-1][0] > 2 * formed[-1][1]

# %%
part = slice(text.index("dog") - 1, text.index("malt"))
figure = Figure(figsize=(13, 4.0), layout="constrained")
for axes, step in zip(figure.subplots(1, 4), (0, 20, 40, 400), strict=True):
    rows = watched[step].attention[layer][head][part, part]
    followed = [n for n, word in enumerate(text[part]) if word == "that"]
    links(
        axes,
        rows,
        text[part],
        text[part],
        title=f"step {step}",
        followed=followed,
        least=0.05,
    )
figure.suptitle(f"Attention from “that”, layer {layer}, head {head}")
keep(
    figure,
    "attention_forms.svg",
    "From an even look back to a look at dog, cat and rat while the model is "
    "trained",
)

# %% [markdown]
# Weights below 0.05 aren't drawn. Nobody told the model where to attend. For other words, this head gives the
# previous word less weight, as the second column of the table shows. (Use `regard train` and `regard evolve` to make
# such plots of longer runs.)
#
# Here are this head's weights for the first words of the verse. Switch the mask off: without it, words attend to later
# words too.

# %%
one = watched[400].attention[layer]
first = slice(0, 9)
scores = one.query[0, head, first] @ one.key[0, head, first].T * one.rule.scale
torch.testing.assert_close(
    scores.masked_fill(torch.ones(9, 9).triu(1) > 0, -torch.inf).softmax(-1),
    one[head][first, first],
)
moving.mask(text[first], scores.tolist())

# %% [markdown]
# ## How the token embeddings changed
#
# Before training, all these cosines are near 0. Afterwards, verbs are closer to verbs and nouns to nouns, probably
# because similar words occur before and after them.

# %%
groups = {
    "verbs": ["kissed", "tossed", "worried", "killed", "ate"],
    "nouns": ["cow", "dog", "cat", "rat", "malt"],
}
ids = tokenizer.convert_tokens_to_ids([*groups["verbs"], *groups["nouns"]])
cosines = []
for table in (start, model.embedding.weight.detach()):
    rows = table[ids] - table.mean(0)
    alike = torch.nn.functional.normalize(rows, dim=1)
    alike = alike @ alike.T
    pairs = ~torch.eye(5, dtype=torch.bool)
    inside = torch.cat([alike[:5, :5][pairs], alike[5:, 5:][pairs]]).mean()
    cosines.append([inside, alike[:5, 5:].mean()])
show_numbers(
    torch.tensor(cosines),
    ["before training", "after"],
    ["inside the groups", "between them"],
    title="mean cosine of verbs and nouns",
    digits=2,
)
(before, apart), (inside, between) = cosines
assert inside > between + 0.1
assert abs(before) < 0.1
assert abs(apart) < 0.1

# %% [markdown]
# ## Writing, one token at a time
#
# To write, a model needs a loop: read the text, choose a token from the last token's logits, append it, and read again.

# %%
Code(textbook.Decoder.generate)

# %% [markdown]
# At temperature 0, each step takes the most probable token. From the new beginning "This is the maiden", the model
# finds its way into what it knows and writes the held-out verse:

# %%
made = mine.generate("This is the maiden", max_new_tokens=40)
print(made.text)
assert made.text.strip() == held_out
chances = made.trace.logits[made.start - 1 : made.start + 5].softmax(-1)
for place, row in enumerate(chances):
    best = row.topk(3)
    told = ", ".join(
        f"{tokenizer.decode([n])} {p:.2f}"
        for p, n in zip(best.values, best.indices, strict=True)
    )
    last = made.trace.tokens[made.start - 1 + place]
    print(f"after “{last.text}”: {told}")

# %% [markdown]
# ## Sampling with a temperature
#
# With the most probable tokens, you get the same text every time. To get different texts, **sample** each token from
# the probabilities. A **temperature** $T$ divides the logits $z$ before the softmax:
#
# $$ p = \mathrm{softmax}(z / T) $$
#
# $$ \mathrm{entropy} = -\sum_i p_i \log p_i $$
#
# Here are the probabilities after "This is the" at three temperatures:

# %%
temperatures = (0.5, 1.0, 2.0)
opening = mine.trace("This is the")
z = opening.logits[2]  # after “the”
p = torch.stack([(z / t).softmax(-1) for t in temperatures])
entropy = -(p * p.log()).sum(-1)
likeliest = p[1].topk(8).indices
words = [tokenizer.decode([n]) for n in likeliest]
figure = Figure(figsize=(10, 3), layout="constrained")
for axes, t, row, h in zip(
    figure.subplots(1, 3, sharey=True), temperatures, p, entropy, strict=True
):
    axes.bar(words, row[likeliest])
    axes.set_title(f"T = {t}, entropy {h:.2f} nats")
    axes.tick_params("x", rotation=60)
keep(
    figure,
    "temperatures.svg",
    "The likeliest next words at three temperatures: steep at 0.5, flatter at "
    "1, and flattest at 2",
)

# %%
every = {*verses, held_out}
table = []
for t, row, h in zip(temperatures, p, entropy, strict=True):
    texts = [
        mine.generate(
            "This is the",
            max_new_tokens=40,
            do_sample=True,
            temperature=t,
            seed=seed,
        ).text.strip()
        for seed in range(10)
    ]
    # 40 tokens are enough for the longest verse
    correct = sum(each in every for each in texts)
    table.append([float(row.max()), float(h), correct])
    different = [*dict.fromkeys(texts)]
    print(f"T = {t}")
    for each in different[:2]:
        print(" ", each)
show_numbers(
    torch.tensor(table),
    [f"T = {t}" for t in temperatures],
    ["likeliest word", "entropy", "correct verses of 10"],
    digits=2,
)
assert table[0][0] > table[1][0] > table[2][0]
assert table[0][1] < table[1][1] < table[2][1]
assert table[0][2] > 8
assert table[2][2] < 4

# %% [markdown]
# At 0.5, likely words become likelier, and the texts are verses. At 2, unlikely words get a chance at every step, and
# few texts are still verses. The entropy says how undecided the model is: 0 if a single word has probability 1, and
# log 34 = 3.53 if all 34 words are equally likely.
#
# ## The KV cache
#
# With the causal mask, later tokens never change an earlier token, so you can keep its key and value. Each new token
# then needs a single query against the stored keys instead of a whole pass. The result is the same:

# %%
ids = torch.tensor([made.ids])
caches = model.caches()  # one for each layer
with torch.no_grad():
    whole = model(ids).logits
    single = [
        model.decode(ids[:, n : n + 1], caches=caches).logits
        for n in range(ids.shape[1])
    ]
torch.testing.assert_close(torch.cat(single, 1), whole, atol=1e-4, rtol=0)
n = ids.shape[1]
print(
    f"{n} tokens are in each cache of {len(caches)} layers: "
    f"{2 * n * config.d_model} numbers a layer"
)
print(
    f"scores computed for one head: {n * (n + 1) // 2} with the cache, "
    f"{sum(k * (k + 1) // 2 for k in range(1, n + 1))} without"
)
assert all(len(cache) == n for cache in caches)

# %% [markdown]
# Each written token has a row of weights, as if you had traced the whole text at once:

# %%
written = made.trace.attention[layer][head]
names = [token.text for token in made.trace.tokens]
figure = Figure(figsize=(9.6, 8), layout="constrained")
axes = figure.add_subplot(
    xlabel="key",
    ylabel="query",
    title=f"The whole verse, layer {layer}, head {head}",
)
image = axes.imshow(
    written**0.5, cmap="cividis", vmin=0, vmax=1, interpolation="nearest"
)
figure.colorbar(
    image, ax=axes, fraction=0.04, pad=0.02, label="root of the weight"
)
axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
axes.set_yticks(range(len(names)), names, fontsize=8)
axes.axhline(made.start - 0.5, color="w", linestyle="--", linewidth=1)
keep(
    figure,
    "written.svg",
    "Weights of the verse: below the dashed line are the tokens that the "
    "model wrote",
)

# %% [markdown]
# ## The capital of France
#
# SmolLM2-135M-Instruct works in the same way, with 30 layers of nine heads, after training on two trillion tokens
# (Ben Allal et al. 2025). It has rotary positions as well: no vector is added, and the position of each token rotates
# its queries and keys. The question is put into the chat format, and the model continues after it.
# Run `regard fetch smollm2` to see this part.
#
# When the model is about to write "Paris", some head attends to "France". This doesn't show that this head is the
# reason. But the word "France" is the reason: if you replace it with "Italy", the answer is no longer "Paris". (The
# new answer is invented, because a model of 135 million parameters doesn't know every capital.)

# %%
folder = find("smollm2")
if folder:
    chat = regard.load(folder)
    asked = [{"role": "user", "content": "What is the capital of France?"}]
    frame = chat.tokenizer.apply_chat_template(
        asked, tokenize=False, add_generation_prompt=True
    )
    said = {
        country: chat.generate(
            frame.replace("France", country), max_new_tokens=8
        )
        for country in ("France", "Italy")
    }
    tokens, start = said["France"].trace.tokens, said["France"].start
    words = [token.text for token in tokens]
    place, city = words.index(" France"), words.index(" Paris", start)
    for n in range(words.index("What"), place + 2):
        print(f"position {n}  id {tokens[n].id:5}  {tokens[n].text!r}")
    for country, each in said.items():
        answer = "".join(token.text for token in each.trace.tokens[start:])
        print(f"{country}: {answer.strip()}")
    chances = said["France"].trace.logits[city - 1].softmax(-1).topk(3)
    best = zip(chances.values, chances.indices, strict=True)
    print(
        "about to write the city:",
        ", ".join(f"{chat.tokenizer.decode([n])!r} {p:.2f}" for p, n in best),
    )
    # (30, 9)
    looks = torch.stack(
        [
            weights[:, city - 1, place]
            for weights in said["France"].trace.attention
        ]
    )
    n, head = divmod(int(looks.argmax()), looks.shape[1])
    print(
        f"layer {n}, head {head} attends to “France” with weight "
        f"{looks.max():.2f}, the mean of all heads is {looks.mean():.3f}"
    )
    # of all weights when "Paris" was written, the one that is furthest from
    # what its head usually gives at that distance or to that word
    unusual = generated(said["France"]).findings()[1]
    print(unusual)
    assert "When writing “Paris”, the model attended" in unusual
    assert "Paris" in said["France"].text[len(frame) :]
    assert "Paris" not in said["Italy"].text[len(frame) - 1 :]
    assert float(looks.max()) > 10 * float(looks.mean())
else:
    print(left_out("smollm2"))

# %% [markdown]
# So far, each text attended only to itself. Next, a text attends to another text: [8. Across](8_across.py).

# %% [markdown]
# ## Exercises
#
# The cells below don't need the cells above. Replace `...` by your answer and run the cell, or run `regard lesson 7
# --exercises`.

# %%
import torch

import regard
from drawings.exercise import Exercise

# %% [markdown]
# **1. Mask the future.** Five tokens attend to one another with the weights below. Now you add the causal mask.
# Predict which tokens keep exactly the same weights.

# %%
torch.manual_seed(0)
scores = torch.randn(5, 5)
print(scores.softmax(-1))
answer = ...  # a list of token numbers, from 0 to 4


def check(tokens):
    masked = scores.masked_fill(torch.ones(5, 5).triu(1) == 1, -torch.inf)
    change = (masked.softmax(-1) - scores.softmax(-1)).abs().amax(-1)
    same = [n for n in range(5) if change[n] == 0]
    shown = ", ".join(f"{change[n]:.2f}" for n in tokens) or "none"
    right = sorted(tokens) == same
    why = " (the last token has no later tokens)" if right else ""
    return right, f"their largest changes: {shown}{why}"


Exercise(check, answer)

# %% [markdown]
# **2. Choose the temperature.** At temperature 1 the model of this page gives "cow", "cat", "dog", "man", "rat" and
# "maiden" the probabilities below. Choose the temperature at which "cow" has probability 0.50.

# %%
chances = torch.tensor([0.31, 0.24, 0.17, 0.16, 0.06, 0.04])
answer = ...  # a temperature, to two decimals


def check(temperature):
    cow = (chances.log() / temperature).softmax(-1)[0]
    right = abs(cow - 0.5) < 0.005
    why = ": below 1, likely words become likelier" if right else ""
    return right, f"cow has probability {cow:.3f}{why}"


Exercise(check, answer)

# %% [markdown]
# **3. Count the KV cache.** In the model below, eight query heads share two key heads: each key head and its values
# serve four query heads. How many numbers do the KV caches of all layers hold after `n` tokens?

# %%
config = regard.TransformerConfig(
    vocabulary=100,
    length=64,
    positions="rotary",
    layers=3,
    d_model=64,
    heads=8,
    key_heads=2,
)
model = regard.Transformer(config)
answer = ...  # a function: lambda n: …


def check(count):
    for n in (1, 10, 50):
        x = torch.zeros(n, config.d_model)
        layers = [block.attention for block in model.decoder]
        held = sum(
            layer.key(x).numel() + layer.value(x).numel() for layer in layers
        )
        if count(n) != held:
            return False, f"the caches of {n} tokens don't hold {count(n)}"
    return True, (
        f"{n} tokens need {held} numbers in {len(layers)} layers: a key and a "
        "value for each of two heads, each of 64 / 8 numbers"
    )


Exercise(check, answer)
