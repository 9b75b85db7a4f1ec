# %% [markdown]
# # 8. Across
#
# If you translate "the white river" word by word, you get "la blanche rivière", which isn't French. For each word
# that it writes, a translator has to find the right source words. **Cross-attention** does this: queries come from
# one text, keys and values from another. Here you train a small translator and see which words it attends to. Then
# you let the patches of an image attend to words in the same way.

# %%
import random

import torch
from matplotlib.figure import Figure

import regard
from drawings import attention, transformer
from drawings.code import Code
from drawings.grid import heatmap
from drawings.kept import keep
from drawings.numbers import show_numbers
from drawings.shapes import example, paint, patches, pixels
from regard import textbook
from regard.explain import align
from regard.fetched import find, left_out
from regard.text import tokenizers

# %% [markdown]
# ## Two lengths
#
# $X$ has $L$ tokens that attend, and $Z$ has $S$ tokens of another text. The queries are made from $X$, the keys and
# values from $Z$:
#
# $$ \mathrm{softmax}\left(\frac{Q K^T}{\sqrt{d_k}}\right) V, \quad Q = X W_Q, \quad K = Z W_K, \quad V = Z W_V $$
#
# The weights are a matrix of $L$ rows and $S$ columns. In code, only `forward` changes: keys and values come from
# `context`.

# %%
Code(textbook.CrossAttention)

# %% [markdown]
# Here six tokens attend to eight tokens of another text:

# %%
torch.manual_seed(0)
x, second = torch.randn(6, 16), torch.randn(8, 16)
cross = textbook.CrossAttention(16, d_k=24, d_v=28)
output = cross(x, second)
weights = textbook.attention(
    cross.query(x), cross.key(second), cross.value(second)
)[1]
assert weights.shape == (6, 8)
assert output.shape == (6, 28)
torch.testing.assert_close(weights.sum(1), torch.ones(6))
figure = attention.cross_attention(
    x, second, weights, output, ("a text", "another text")
)
keep(
    figure,
    "cross_attention.svg",
    "Queries from one sequence, keys and values from another, weights 6 × 8 "
    "between",
)

# %% [markdown]
# $W_Q$ only reads $X$, and $W_K$ and $W_V$ only read $Z$, so even the widths of the two texts can differ. If you use
# the same text on both sides, you get self-attention.
#
# Attention was invented for this task. In a translator made of recurrent networks (RNNs), the decoder mixed the
# encoder's states with weights that sum to 1 (Bahdanau et al. 2015). The transformer kept the attention and dropped
# the recurrence.

# %%
alone = textbook.SelfAttention(16, d_k=24, d_v=28)
alone.load_state_dict(cross.state_dict())
assert torch.equal(cross(x, x), alone(x))
wide = regard.CrossAttention(d_query=16, d_context=20, d_k=24, d_v=28)
print("widths 16 and 20:", tuple(wide(x, torch.randn(8, 20)).shape))

# %% [markdown]
# ## Train a translator
#
# French puts most adjectives after the noun, and the adjective and the article agree with the noun's gender: "the
# white river" is "la rivière blanche". You train on 1,500 sentences made of ten nouns, five adjectives and three
# verbs. Every tenth combination of noun and adjective is in the tests only.

# %%
nouns = {
    "house": "la maison", "river": "la rivière", "door": "la porte",
    "car": "la voiture", "table": "la table", "cat": "le chat",
    "book": "le livre", "garden": "le jardin", "bread": "le pain",
    "dog": "le chien",
}  # fmt: skip
adjectives = {
    "red": ("rouge", "rouge"),
    "green": ("vert", "verte"),
    "black": ("noir", "noire"),
    "white": ("blanc", "blanche"),
    "blue": ("bleu", "bleue"),
}
verbs = {"sees": "voit", "likes": "aime", "wants": "veut"}
phrases = []
for a, (noun, french) in enumerate(nouns.items()):
    for b, (adjective, forms) in enumerate(adjectives.items()):
        phrase = (
            f"the {adjective} {noun}",
            f"{french} {forms[french.startswith('la')]}",
        )
        phrases.append((*phrase, (a + 2 * b) % 10 == 0))
draw = random.Random(0)
pairs = {False: [], True: []}  # in training, in the tests
while len(pairs[False]) < 1500 or len(pairs[True]) < 200:
    (who, qui, _), (verb, verbe), (what, quoi, _) = parts = [
        draw.choice(some) for some in (phrases, [*verbs.items()], phrases)
    ]
    pairs[parts[0][2] or parts[2][2]].append(
        (f"{who} {verb} {what}", f"{qui} {verbe} {quoi}")
    )

tokenizer = tokenizers.words(
    [text for pair in pairs[False] for text in pair], frame="end"
)
config = regard.TransformerConfig.translator(
    len(tokenizer),
    start=tokenizer.bos_token_id,
    layers=1,
    d_model=64,
    heads=2,
    d_hidden=128,
    dropout=0.0,
)
figure = transformer.blocks(config)
keep(
    figure,
    "encoder_decoder.svg",
    "An encoder block, and a decoder block whose cross-attention reads "
    "the encoder",
)

# %% [markdown]
# In a decoder block, cross-attention is the second of three parts. `context` is the encoder's output:

# %%
Code(textbook.Block.forward)

# %% [markdown]
# During training, the decoder reads the true French text, shifted by one. `[BOS]` marks the beginning of a text and
# `[EOS]` the end. When the model translates, it has no true text and reads its own words instead, until it writes
# `[EOS]`.

# %%
source, target = (
    tokenizers.batch(tokenizer, [pair[n] for pair in pairs[False]]).ids
    for n in (0, 1)
)
# [BOS] and the target without its last token: what the decoder reads
shifted = torch.cat(
    [torch.full((len(target), 1), config.start), target[:, :-1]], 1
)
shown = next(n for n, pair in enumerate(pairs[False]) if "river" in pair[0])
print("source:", pairs[False][shown][0])
french = tokenizer.convert_ids_to_tokens(target[shown].tolist())
for n, word in enumerate(french):
    print(f"reads “{' '.join(['[BOS]', *french[:n]])}”, learns “{word}”")
assert shifted[shown].tolist() == tokenizer.convert_tokens_to_ids(
    ["[BOS]", *french[:-1]]
)

# %%
torch.manual_seed(0)
model = regard.Transformer(config)
optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(201):
    rows = torch.randint(len(source), (64,))
    logits = model(source[rows], shifted[rows]).logits
    loss = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), target[rows].flatten()
    )
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 50 == 0:
        print(f"step {step:3}: loss {float(loss.detach()):.3f}")
model.eval()
mine = regard.load(model, tokenizer=tokenizer)
made = mine.generate(
    [english for english, _ in pairs[True][:40]], max_new_tokens=12
)
right = sum(
    each.text.strip() == french
    for each, (_, french) in zip(made, pairs[True], strict=False)
)
print(
    f"{right} of 40 translations with unseen pairs are right, such as: "
    f"{made[0].text.strip()}"
)
assert right >= 32

# %% [markdown]
# The training data doesn't show which words belong together. Each row of the plot is a French word that the decoder is
# about to write, with its weights for the source words. The links of noun and adjective cross:

# %%
english, french = (
    "the white river sees the black cat",
    "la rivière blanche voit le chat noir",
)
pair = mine.trace(english, target=french)
looks = pair.decoder.cross[0]  # (heads, target, source)
asked = [token.text for token in pair.encoder.tokens]
# row n writes token n + 1
written = [f"→ {word}" for word in [*french.split(), "[EOS]"]]
figure = Figure(figsize=(11.5, 4.9), layout="constrained")
for head, axes in enumerate(figure.subplots(1, 2)):
    heatmap(
        looks[head],
        written,
        asked,
        title=f"head {head}",
        labels=("about to write", "attends to"),
        axes=axes,
    )
mean = looks.dense().mean(0)
for adjective, noun, place in (("white", "river", 1), ("black", "cat", 5)):
    assert mean[place, asked.index(noun)] > mean[place, asked.index(adjective)]
    assert (
        mean[place + 1, asked.index(adjective)]
        > mean[place + 1, asked.index(noun)]
    )
keep(
    figure,
    "alignment.svg",
    "Cross-attention of both heads while the translation is written: noun "
    "and adjective cross",
)

# %% [markdown]
# Which source word decides between the articles "la" and "le"? Not "the", which is the same for both. Exchange
# the noun "cat" (le chat) for "car" (la voiture), and compare the next word after "la rivière blanche voit":

# %%
most = {}
for noun in ("cat", "car"):
    pair = mine.trace(
        f"the white river sees the black {noun}",
        target="la rivière blanche voit le chat",
    )
    asked = [token.text for token in pair.encoder.tokens]
    # token 4 is "voit", token 5 is the article
    given = pair.decoder.cross[0][:, 4, asked.index(noun)]
    most[noun] = float(given.max())
    chances = pair.decoder.logits[4].softmax(-1)
    la, le = (
        float(chances[tokenizer.convert_tokens_to_ids(word)])
        for word in ("la", "le")
    )
    print(
        f"… the black {noun}: la {la:.3f}, le {le:.3f}; weight of “{noun}” at "
        f"most {most[noun]:.2f}"
    )
    assert (la > 0.9) if noun == "car" else (le > 0.9)
assert min(most.values()) < 0.5 < max(most.values())

# %% [markdown]
# The noun decides, although it comes later. Before one of the two articles, a head attends to the noun. Before the
# other article, no head does, so this article seems to be the default. Which of the two it is depends on the seed and
# on your processor.

# %% [markdown]
# ## A real translator
#
# opus-mt-en-fr (Tiedemann and Thottingal 2020) has six layers of eight heads and was trained on millions of
# sentences. Run `regard fetch opus-mt-en-fr` to see this part. "bank" becomes a different French word in each text.
# regard chooses the layer with the best alignment.

# %%
folder = find("opus-mt-en-fr")
if folder:
    opus = regard.load(folder)
    figure = Figure(figsize=(13, 5.4), layout="constrained")
    texts = {
        "The man is fishing on the river bank.": "rive",
        "She took her money from the bank.": "banque",
    }
    for axes, (text, word) in zip(
        figure.subplots(1, 2), texts.items(), strict=True
    ):
        made = opus.generate(text, max_new_tokens=30)
        found = align(made.trace)
        tokens = [
            [token.text for token in side.tokens]
            for side in (made.trace.encoder, made.trace.decoder)
        ]
        rows = torch.tensor(
            found.weights[found.layers.index(found.written_layer)]
        )[: len(tokens[1]) - 1]
        told = f"layer {found.written_layer}, mean of heads"
        names = [f"→ {name}" for name in tokens[1][1:]]
        heatmap(
            rows,
            names,
            tokens[0],
            title=told,
            labels=("about to write", "attends to"),
            axes=axes,
        )
        row = next(n for n, name in enumerate(names) if word in name)
        print(f"{text}  →  {made.text.strip()}")
        bank = next(n for n, name in enumerate(tokens[0]) if "bank" in name)
        most = tokens[0][int(rows[row].argmax())]
        print(
            f"   while it writes “{word}”, the model attends most to “{most}” "
            f"(weight of “bank”: {rows[row, bank]:.2f})"
        )
        assert rows[row, bank] > 2 / len(tokens[0])
    shown = keep(
        figure,
        "opus_mt.svg",
        "Attention of a real translator to English words while it writes "
        "French words",
    )
else:
    print(left_out("opus-mt-en-fr"))
    shown = None
shown

# %% [markdown]
# ## Image queries on text keys
#
# The second sequence doesn't have to be a text. A diffusion model removes noise from an image with the help of a
# caption: each of 64 **patches** of the image is a query, and each of the caption's seven **words** has a key and a
# value. Here you train a single step of this kind, on images of two shapes under heavy noise.

# %%
examples = [example(draw) for _ in range(2000)]
captions = tokenizers.words([caption for *_, caption in examples])
# (2000, 7)
words = tokenizers.batch(captions, [caption for *_, caption in examples]).ids
clean = patches(torch.stack([image for image, *_ in examples]))

NOISE, WIDTH = 0.6, 64


class Painter(torch.nn.Module):
    """Noisy patches look at words, once, and say what they are without
    noise."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(len(captions), WIDTH)
        # positions of the words
        self.order = torch.nn.Parameter(torch.zeros(7, WIDTH))
        self.look = torch.nn.Linear(48, WIDTH)
        # positions of the patches
        self.place = torch.nn.Parameter(torch.zeros(64, WIDTH))
        self.cross = regard.CrossAttention(
            d_query=WIDTH, d_context=WIDTH, d_k=32, d_v=WIDTH
        )
        self.paint = torch.nn.Sequential(
            torch.nn.Linear(2 * WIDTH, 256),
            torch.nn.GELU(),
            torch.nn.Linear(256, 48),
        )

    def forward(self, noisy, ids):
        x = self.look(noisy) + self.place  # (B, 64, WIDTH)
        told, weights = self.cross(
            x, self.words(ids) + self.order, return_attention=True
        )
        # (B, 64, 48), (B, 1, 64, 7)
        return self.paint(torch.cat([x, told], -1)), weights


torch.manual_seed(0)
painter = Painter()
optimiser = torch.optim.AdamW(painter.parameters(), lr=2e-3)
for _ in range(501):
    rows = torch.randint(1800, (32,))
    noisy = clean[rows] + NOISE * torch.randn_like(clean[rows])
    loss = ((painter(noisy, words[rows])[0] - clean[rows]) ** 2).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
print(f"{len(examples)} images; mean squared error {float(loss.detach()):.4f}")

# %% [markdown]
# Test it on 200 held-out images. With the caption of another image, the result is worse, so the model uses the words.
# And patches inside a shape attend to the word for that shape's colour.

# %%
with torch.no_grad():
    test, ids = clean[1800:], words[1800:]
    noisy = test + NOISE * torch.randn_like(test)
    painted, looks = painter(noisy, ids)
    mistold = painter(noisy, ids.roll(1, 0))[0]
errors = [float(((found - test) ** 2).mean()) for found in (painted, mistold)]
print(
    f"error with its own caption {errors[0]:.4f}, with another's "
    f"{errors[1]:.4f}"
)
assert errors[1] > 1.1 * errors[0]
inside = torch.stack([each for _, each, _ in examples[1800:]]).float()
# (200, 2, 64): how much of each patch a shape covers
covered = torch.nn.functional.avg_pool2d(inside, 4).flatten(2)
looks = looks.dense()[:, 0]
# the colour of the first shape is word 1, of the second word 5
for n, colour in ((0, 1), (1, 5)):
    own, other = (
        float(looks[..., colour][covered[:, k] > 0.9].mean())
        for k in (n, 1 - n)
    )
    print(
        f"its colour word gets {own:.2f} from patches inside shape {n + 1}, "
        f"{other:.2f} from those of the other shape"
    )
    assert own > 2 * other

# %% [markdown]
# Here are the weights for an image that the model has not seen:

# %%
image, where = paint(("red", "square"), ("blue", "circle"), [(3, 2), (17, 18)])
caption = "a red square and a blue circle"
noisy = patches(image[None]) + NOISE * torch.randn(1, 64, 48)
with torch.no_grad():
    painted, looks = painter(noisy, tokenizers.batch(captions, [caption]).ids)
grid = looks.dense()[0, 0].reshape(8, 8, 7)
names = caption.split()
figure = Figure(figsize=(13, 5.6), layout="constrained")
places = list(figure.subplots(2, 5).flat)
for axes, rows in zip(
    places[:3], (patches(image[None]), noisy, painted), strict=True
):
    axes.imshow(pixels(rows))
for n, axes in enumerate(places[3:]):
    axes.imshow(
        grid[..., n],
        cmap="cividis",
        vmin=0,
        vmax=float(grid.max()),
        interpolation="nearest",
    )
for axes, title in zip(
    places,
    [
        "clean",
        "what it sees",
        "what it paints",
        *(f"“{word}”" for word in names),
    ],
    strict=True,
):
    axes.set_title(title, size=10)
    axes.set_axis_off()
figure.suptitle(
    "Each patch's weight for each word: bright where the patch attends to it"
)
square, circle = (
    torch.nn.functional.avg_pool2d(each[None].float(), 4)[0] > 0.9
    for each in where
)
red, blue = grid[..., 1], grid[..., 5]
print(
    f"“red” gets {red[square].mean():.2f} from the red square's patches, "
    f"{red[circle].mean():.2f} from the circle's"
)
print(
    f"“blue” gets {blue[circle].mean():.2f} from the blue circle's patches, "
    f"{blue[square].mean():.2f} from the square's"
)
assert red[square].mean() > 2 * red[circle].mean()
assert red[square].mean() > blue[square].mean()
assert blue[circle].mean() > 2 * blue[square].mean()
assert names[int(grid[square].mean(0).argmax())] == "red"
background = ~torch.nn.functional.max_pool2d(where.float(), 4).any(0)
left_over = grid[background].mean(0)
print(
    f"from the background, “circle” gets {left_over[6]:.2f} and “square” "
    f"{left_over[2]:.2f}"
)
assert left_over[6] == left_over.max() > 0.5
assert grid[..., 2].max() < 0.2
keep(
    figure,
    "image_and_words.png",
    "The red square's patches look at the word red, the blue circle's at blue",
)

# %% [markdown]
# "square" is dark everywhere, although there is a square. "circle" gets most attention from the background, although
# no circle is there. The reason is that each patch's weights sum to 1, and a patch of the background needs no word.
# So its weight has to go somewhere, here to "circle".
#
# ## Cross-attention in a text-to-image model
#
# A text-to-image model uses the same layer many times. The plot shows the U-Net of Stable Diffusion 1: at every
# level, each position of the image is a query on the contextual embeddings of the words (Rombach et al. 2022). Maps
# of these weights show the positions that attend to each word (Tang et al. 2023), and if you replace the maps, you
# edit the image (Hertz et al. 2022). [Lesson 10](10_words_that_paint.py) tests how far you can trust such a map.
# Newer models put image and text into a single sequence and use self-attention over both (Esser et al. 2024).

# %%
figure = transformer.diffusion_unet()
keep(
    figure,
    "unet.svg",
    "A U-Net: at each level of the grid, cross-attention to the 77 tokens of "
    "the text",
)

# %% [markdown]
# You now know all the components of a transformer: embeddings, positions, attention, cross-attention, norms and
# feed-forward networks. Next, see how a pretrained model represents a word in its text: [9. Contextual
# embeddings](9_contextual_embeddings.py).

# %% [markdown]
# ## Exercises
#
# The cells below don't need the cells above. Replace `...` by your answer and run the cell, or run `regard lesson 8
# --exercises`.

# %%
import torch

from drawings.exercise import Exercise
from drawings.numbers import show_numbers
from regard import textbook

# %% [markdown]
# **1. Make the shapes fit.** An image of 64 patches with 48 numbers each attends to a caption of 7 words with 32
# numbers each. The output has 20 numbers per patch. What are the shapes of `W_Q`, `W_K` and `W_V`? They multiply from
# the right, as in `X @ W_Q`.

# %%
answer = ...  # three pairs: [(rows, columns), (rows, columns), (rows, columns)]


def check(shapes):
    image, caption = torch.randn(64, 48), torch.randn(7, 32)
    w_query, w_key, w_value = (torch.randn(*shape) for shape in shapes)
    output, weights = textbook.attention(
        image @ w_query, caption @ w_key, caption @ w_value
    )
    sizes = [" × ".join(map(str, each.shape)) for each in (weights, output)]
    right = output.shape == (64, 20)
    why = ": a row per patch, a column per word" if right else ""
    return right, f"output {sizes[1]}, weights {sizes[0]}{why}"


Exercise(check, answer)

# %% [markdown]
# **2. Mask the padding.** A batch has two source texts. The second is shorter and ends with two padding tokens, whose
# id is 0. Write a function that makes the mask from the ids, whose shape is (2 texts, 5 tokens). The weights have the
# shape (2 texts, 3 queries, 5 tokens), and `True` means that a token may be attended to. With the mask, padding must
# not change the output.

# %%
ids = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 0, 0]])
answer = ...  # a function: lambda ids: …


def check(mask):
    torch.manual_seed(0)
    table, query = torch.randn(10, 8), torch.randn(2, 3, 8)
    keys = table[ids]
    padded, weights = textbook.attention(query, keys, keys, mask(ids))
    for text, length in ((0, 5), (1, 3)):
        own = keys[text, :length]  # the text without its padding
        alone = textbook.attention(query[text], own, own)[0]
        change = float((padded[text] - alone).abs().max())
        if not change < 1e-5:
            return False, f"padding changes text {text + 1} by {change:.2f}"
    return True, (
        f"padding gets weight {float(weights[1, :, 3:].sum()):.2f}, because "
        "exp(−∞) = 0"
    )


Exercise(check, answer)

# %% [markdown]
# **3. Translate by hand.** The decoder has read "[BOS] la rivière blanche" and the source is "the white river". Each
# token writes the **next** word, so "[BOS]" has to find "the", "la" has to find "river", and "rivière" has to find
# "white". The embeddings are `torch.eye(4)` for the French tokens and `torch.eye(3)` for the English words, which are
# the keys as well. Write the 4 × 3 query matrix that gives each of these three words more than 0.9.

# %%
read = ["[BOS]", "la", "rivière", "blanche"]
source = ["the", "white", "river"]
answer = ...  # a list of four rows with three numbers


def check(w_query):
    query = torch.eye(4) @ torch.tensor(w_query).float()
    weights = textbook.attention(query, torch.eye(3), torch.eye(3))[1]
    show_numbers(weights, read, source, digits=2)
    found = weights[[0, 1, 2], [0, 2, 1]]
    right = bool((found > 0.9).all())
    why = ": large scores make the softmax choose" if right else ""
    return right, f"the three get {found.min():.2f} or more{why}"


Exercise(check, answer)
