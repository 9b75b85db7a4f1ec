# %% [markdown]
# # 6. A transformer that writes
#
# Why did the chat model say that? It repeats a single step: it predicts the next token from the tokens before it and
# appends it to the text. So you can trace each word of an answer back to the tokens that the model attended to.
#
# On this page you build a model of two layers from the components of the previous pages (with rotary positions, page
# 3). You train it in seconds on a nursery rhyme, let it write a verse that it has never read, and watch its attention
# form. At the end you ask a real model.

# %%
import torch
from matplotlib.figure import Figure

import regard
from drawings import transformer as schematic
from drawings.grid import heatmap
from drawings.kept import keep
from drawings.links import links
from drawings.numbers import show_numbers
from regard.explain import generation
from regard.fetched import find, left_out
from regard.text import tokenizers

# %% [markdown]
# ## The text
#
# The text is "The House That Jack Built", printed in 1755. Each verse adds a line before the last line. The verse of
# the maiden is **held out**: the model never reads it, although it has seen all its words in other verses.

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

# %% [markdown]
# ## The model
#
# Attention mixes tokens. The **feed-forward** network (MLP) works on each token alone. Both *add* their results to
# the token's vector (the **residual stream**), and a **norm** before each keeps the numbers in range.

# %%
config = regard.TransformerConfig(
    vocabulary=len(tokenizer), positions="rotary", layers=2, d_model=64, heads=4
)
torch.manual_seed(0)
model = regard.Transformer(config)
print(
    f"{sum(parameter.numel() for parameter in model.parameters()):,} numbers "
    "to learn"
)
shows = (
    "A decoder block: norm, causal self-attention, add; norm, feed-forward, add"
)
keep(schematic.blocks(config), "decoder_block.svg", shows)

# %% [markdown]
# If you write a block by hand, you need two lines:
#
# $$ h = x + \mathrm{Attention}(\mathrm{norm}(x)) \qquad y = h + \mathrm{FeedForward}(\mathrm{norm}(h)) $$

# %%
mine = regard.load(model, tokenizer=tokenizer)
untrained = mine.trace(held_out)
block, x = model.decoder[0], untrained.hidden_states[0]
with torch.no_grad():
    h = x + block.attention(block.attention_norm(x), causal=True)
    y = h + block.feedforward(block.feedforward_norm(h))
torch.testing.assert_close(y, untrained.hidden_states[1], atol=1e-5, rtol=0)

# %% [markdown]
# ## The causal mask
#
# The model learns to predict the next token, so no token may see the tokens after it. The mask sets scores of later
# keys to −∞ before the softmax, so their weights are exactly 0 and half the matrix is empty. Later tokens then never
# change earlier results, so a single pass trains the model on every token of the text.

# %%
weights = untrained.attention[0][0]
names = [token.text for token in untrained.tokens]
assert bool((weights.triu(1) == 0).all())
torch.testing.assert_close(weights.sum(-1), torch.ones(len(names)))
other = mine.trace(held_out.replace("Jack built", "Jack milked"))
change = (other.last_hidden_state - untrained.last_hidden_state).abs().amax(1)
print(
    "largest change when “built” becomes “milked”:",
    [f"{number:.0e}" for number in change.tolist()[-4:]],
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
# Each training step uses 16 pieces of 32 tokens. They begin anywhere in the text, so the model can't memorize
# positions in a verse. The loss is the mean of −log of the probability of each true next token. Uniform guessing
# costs log V. The token embeddings start at random, as on page 1, and are trained with everything else. Some traces
# of the held-out verse are saved during training.


# %%
def loss(ids):
    logits = model(ids).logits  # (B, L, V)
    return torch.nn.functional.cross_entropy(
        logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()
    )


optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
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
assert table[0][1] > 0.8 * even
assert table[-1][1] < 1.0

# %% [markdown]
# The remaining loss comes from the animals at the start of a verse: "This is the …" has seven possible continuations.
# Of course, the model memorizes the 150-word rhyme. But it can't have
# memorized the held-out verse.
#
# ## Attention as it forms
#
# The word after "that" depends on the word before it: "the dog that **worried**", "all forlorn that **milked**". So
# "that" has to attend to the previous word. How much of each head's weight goes to the previous word, on average over
# the verse?

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
# Nobody told the model where to attend. This head doesn't follow the pattern
# for every word either, as the second column shows. (Use `regard train` and
# `regard evolve` to make such plots of longer runs.)
#
# ## How the token embeddings changed
#
# Verbs moved closer to verbs, and nouns to nouns, because similar words occur before and after them.

# %%
groups = {
    "verbs": ["kissed", "tossed", "worried", "killed", "ate"],
    "nouns": ["cow", "dog", "cat", "rat", "malt"],
}
ids = tokenizer.convert_tokens_to_ids([*groups["verbs"], *groups["nouns"]])
rows = model.embedding.weight[ids].detach()
rows = torch.nn.functional.normalize(
    rows - model.embedding.weight.detach().mean(0), dim=1
)
cosines = rows @ rows.T
inside = torch.cat(
    [
        cosines[n : n + 5, n : n + 5][~torch.eye(5, dtype=torch.bool)]
        for n in (0, 5)
    ]
).mean()
between = cosines[:5, 5:].mean()
print(f"mean cosine inside the groups {inside:.2f}, between them {between:.2f}")
assert inside > between + 0.1

# %% [markdown]
# ## Writing, one token at a time
#
# The model writes the verse that it has never read, starting from its first four words. Each step takes the most
# probable token.

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
    f"{sum(k * k for k in range(1, n + 1))} without"
)
assert all(len(cache) == n for cache in caches)

# %% [markdown]
# Each new token has a row of weights, as if you had traced the text at once:

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
# (Ben Allal et al. 2025). SmolLM2 has rotary positions: no vector is added, and the position of each token rotates
# its queries and keys. The question is put into the chat format, and the model continues after it. Run
# `regard fetch smollm2` to see this part.
#
# Why does the model say "Paris"? When it is about to write the city, some head attends to "France". If you ask about
# "Italy", the answer is no longer "Paris", but it is invented, because a model of 135 million parameters doesn't know
# every capital.

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
    # over all heads and written tokens, by word of the prompt: many heads
    # attend to a word without content, as they attend to [CLS] in lesson 5
    rests = generation(said["France"]).findings()[0]
    print(rests)
    assert "attended most to “the”" in rests
    assert "Paris" in said["France"].text[len(frame) :]
    assert "Paris" not in said["Italy"].text[len(frame) - 1 :]
    assert float(looks.max()) > 10 * float(looks.mean())
else:
    print(left_out("smollm2"))

# %% [markdown]
# So far, each text attended only to itself. Next, a text attends to another text: [7. Across](7_across.py).
