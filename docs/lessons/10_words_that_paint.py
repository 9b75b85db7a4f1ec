# %% [markdown]
# # 10. Words that paint
#
# Which word of your prompt put that into the picture? Tools answer with a **heat map**, which shows the parts of the
# picture that attend to a word. But does the heat show the cause? Here you train two small painters, look at their
# heat maps, and test this. Both maps point to the same places. In one painter, the heat is the cause. In the other it
# isn't: like Stable Diffusion, this painter takes keys and values from the same text states.

# %%
import torch
from matplotlib.figure import Figure

from drawings.code import Code
from drawings.kept import keep
from drawings.numbers import show_numbers
from painter import (
    CORNERS,
    PHRASES,
    WORDS,
    Judge,
    Painted,
    Painter,
    all_but,
    corner_of_patches,
    exchanged,
    ids_of,
    line_of,
    measure,
    paint,
    read_digits,
    training_batch,
)
from regard.train.loop import optimiser_of
from regard.train.settings import Settings

# %% [markdown]
# ## A line and its picture
#
# A picture of 16 × 16 pixels shows two handwritten digits (Alpaydin and Kaynak 1998), each in a corner. A line of
# text names the digits and their corners. The digits come with scikit-learn (`pip install -c constraints.txt
# scikit-learn`). You train on 1,200 digits. With the other 597, you train a judge that recognizes the digit in a
# corner, so you don't have to rely on your eyes. The whole painter is in one file next to this lesson,
# [painter.py](painter.py).

# %%
known, others = read_digits()
judge = Judge(others)
words, pictures, noisy, time = training_batch(known, step=0)
print(" ".join(WORDS[n] for n in words[0].tolist()))
named = judge.named(known.pixels.flatten(1))
right = float((named == known.labels).double().mean())
print(
    f"{len(WORDS)} words; the judge names {right:.1%} of the digits right, "
    "none of which it saw before"
)
assert right > 0.97


def show(axes, picture, title=""):
    axes.imshow(picture, cmap="gray_r", vmin=-1, vmax=1)
    axes.set_title(title, size=9)
    axes.set_axis_off()


# %% [markdown]
# ## From noise to a picture
#
# To paint, a model removes noise. During training, it sees a picture $p$ mixed with noise $e$ and predicts the
# picture:
#
# $$ x_t = (1 - t) \cdot e + t \cdot p \qquad \mathrm{loss} = (\mathrm{model}(x_t, t, \mathrm{words}) - p)^2 $$
#
# At $t = 0$ there is only noise, so only the words show what to paint.

# %%
picture, noise = pictures[0], torch.randn(16, 16)
figure = Figure(figsize=(10, 2.2), layout="constrained")
for axes, time in zip(
    figure.subplots(1, 5), (0, 0.25, 0.5, 0.75, 1), strict=True
):
    show(axes, torch.lerp(noise, picture, time), f"t = {time}")
keep(figure, "noise.png", "A picture of two digits comes out of noise")

# %% [markdown]
# ## Patches are queries, words are keys
#
# The picture is cut into 16 **patches** $P$ of 4 × 4 pixels. In each of three layers, the patches attend to each other
# and then to the ten words (`<start>` and nine). A patch is a query, and a word has a key and a value, as in
# [lesson 8](8_across.py).
#
# Before that, the words read each other in two layers. "seven" has to learn that its position is *top left*, so that
# the patches there can find it. The keys come from these **states** $S$. The values come from the words' **plain**
# embeddings $E$, which contain nothing of the other words:
#
# $$ Q = P W_Q, \quad K = S W_K, \quad V = E W_V $$

# %%
painter = Painter()
print(f"{sum(each.numel() for each in painter.parameters()):,} numbers")
Code(Painter.forward)

# %% [markdown]
# The untrained model already returns tensors of the right shapes. Here it paints the same line eight times, each time
# from different noise. The dimensions of the weights are 20 steps, three layers, eight pictures, two heads, 16
# patches and ten words:

# %%
asked, corners = torch.tensor([[7, 2]] * 8), torch.tensor([[0, 3]] * 8)
line, ids = line_of([7, 2], [0, 3]), ids_of(asked, corners)
print(line)
begun = torch.randn(8, 16, 16, generator=torch.Generator().manual_seed(1))
blank = paint(painter, ids, begun)
weights = blank.weights  # (steps, layers, pictures, heads, patches, words)
print(tuple(weights.shape))
assert weights.shape == (20, 3, 8, 2, 16, 10)
torch.testing.assert_close(weights.sum(-1), torch.ones(20, 3, 8, 2, 16))

# %% [markdown]
# ## Training
#
# Train two painters, each for 600 steps of 32 scenes. They differ in a single setting, `values`. You need the second
# painter later.


# %%
def trained(values):
    settings = Settings(
        steps=600,
        warmup=100,
        rate=2e-3,
        least_rate=1e-6,
        decay=0.01,
        beta2=0.98,
    )
    torch.manual_seed(0)
    painter = Painter(values)
    optimiser = optimiser_of(painter, settings)
    for step in range(settings.steps):
        words, pictures, noisy, time = training_batch(known, step)
        for group in optimiser.param_groups:
            group["lr"] = settings.learning_rate(step)
        loss = ((painter(noisy, time, words) - pictures) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(painter.parameters(), settings.clip)
        optimiser.step()
        if step in (0, 100, 599):
            print(f"{values}, step {step:3}: loss {float(loss.detach()):.3f}")
    return painter


plain, contextual = trained("plain"), trained("contextual")

# %% [markdown]
# ## Painting
#
# Painting begins with pure noise $x_0$. In each of 20 steps, the painter **expects** a picture $p_n$, and the noisy
# picture moves towards it:
#
# $$ x_{n+1} = x_n + (p_n - x_n) / (20 - n) $$

# %%
painted = paint(plain, ids, begun)
seen = [begun]
for n, expected in enumerate(painted.expected):
    seen.append(seen[n] + (expected - seen[n]) / (20 - n))
torch.testing.assert_close(seen[20], painted.pictures)

figure = Figure(figsize=(11, 5), layout="constrained")
rows = figure.subplots(3, 8)
for column, step in zip(rows.T, (0, 2, 4, 7, 10, 13, 16, 19), strict=True):
    show(column[0], seen[step][0], f"noisy, step {step}")
    show(column[1], painted.expected[step, 0], "expected")
for axes, each in zip(rows[2], painted.pictures, strict=True):
    show(axes, each)
rows[2][0].set_title("the results, each from other noise", size=9, loc="left")
shown = " ".join(line[1:])
keep(figure, "painted.png", f"{shown}: one picture over its steps, and eight")

# %% [markdown]
# At step 0, the painter sees only noise and expects something grey, between many sevens and many twos. The more of a
# picture is visible, the clearer is the picture that it expects. With 8 × 8 pixels, a seven may look like a nine to
# you. So let the judge read the eight results:


# %%
def read(pictures):
    """What the judge reads in the two corners that the line names."""
    return judge.read(pictures, corners)


def digits(pictures):
    rows = read(pictures).tolist()
    return "  ".join(f"{first}·{second}" for first, second in rows)


clear = (painted.expected.abs() > 0.8).float().mean((1, 2, 3))
print(f"clear pixels: {clear[0]:.0%} at step 0, {clear[19]:.0%} at step 19")
assert clear[19] > clear[0]
print("top left · bottom right:", digits(painted.pictures))
assert (read(painted.pictures) == torch.tensor([7, 2])).float().mean() > 0.85

# %% [markdown]
# ## Heat maps
#
# How much did patch $p$ attend to word $j$? The mean of its weights over 20 steps $t$, three layers $n$ and two heads
# $h$ is the word's heat (Tang et al. 2023):
#
# $$ \mathrm{heat}_{pj} = \frac{1}{120} \cdot \sum_{t,n,h} w_{tnhpj} $$

# %%
Code(Painted.heat.fget)

# %% [markdown]
# The heat is drawn in red over the picture, from zero to the word's maximum.

# %%
heat = painted.heat[0]  # (16, 10)


def warm(axes, picture, heat, title):
    show(axes, picture, f"{title}, up to {float(heat.max()):.2f}")
    red = torch.tensor([0.84, 0.15, 0.16, 0]).expand(4, 4, 4).clone()
    red[..., 3] = 0.7 * (heat / heat.max()).view(4, 4)
    axes.imshow(red, extent=(-0.5, 15.5, 15.5, -0.5))


figure = Figure(figsize=(11, 4.7), layout="constrained")
for n, axes in enumerate(figure.subplots(2, 5).flat):
    warm(axes, painted.pictures[0], heat[:, n], f"“{line[n]}”")
keep(
    figure, "heat.png", "The heat of seven lies on the seven, of two on the two"
)

# %%
corner = corner_of_patches()
shares = torch.stack(
    [painted.heat.mean(0)[corner == n].sum(0) for n in range(4)], 1
)
show_numbers(
    shares / shares.sum(1, keepdim=True),
    line,
    [*CORNERS],
    title="where each word's heat is",
    digits=2,
)
assert shares[2].argmax() == 0  # seven: top left
assert shares[7].argmax() == 3  # two: bottom right
# left: top right; right: bottom left
assert shares[4].argmax() == 1
assert shares[9].argmax() == 2

# %% [markdown]
# The words for digits point to their digits. But look at "left" and "right". The seven is top *left* and the two is
# bottom *right*, yet "left" is hottest top right and "right" bottom left, in the two empty corners. Perhaps this is
# because each patch's weights sum to 1: a patch that has nothing to paint still has to attend to some word.
#
# ## Test whether heat is the cause
#
# If a seven is painted where patches attend to "seven", then it should move when patches elsewhere attend to "seven".
# So exchange the keys of "seven" and "two", and nothing else. A patch that looks for "seven" now gets the value of
# "two", and vice versa.

# %%
swapped = exchanged([2], [7])
print(" ".join(line[n] for n in swapped))
moved = paint(plain, ids, begun, keys=swapped)
print("as written:    ", digits(painted.pictures))
print("keys exchanged:", digits(moved.pictures))
assert (read(moved.pictures) == torch.tensor([2, 7])).float().mean() > 0.75

# %% [markdown]
# And if no patch may attend to "seven", there should be no seven. An **edge** is one weight, from a patch to a word. To
# cut it, set its score to −∞ before the softmax. Cut all edges to "seven":

# %%
cut = paint(plain, ids, begun, may=all_but(2))
print("no edge to seven:", digits(cut.pictures))
assert cut.heat[..., 2].max() == 0
gone = read(cut.pictures)
assert (gone[:, 0] == 7).float().mean() < 0.5
assert (gone[:, 1] == 2).float().mean() > 0.75  # the two is left alone

# %% [markdown]
# Both predictions were right. In this painter, the heat of a digit's word is the cause.
#
# ## Heat is not cause
#
# Stable Diffusion takes keys *and* values from the states of its text encoder. So does the second painter: its values
# are **contextual**, $V = S W_V$. The heat of the second painter points to the digits as well. But with plain values,
# only the edges to "seven" pass on that there is a seven. (The keys of other words may depend on it too, but keys
# only set weights.) With contextual values, the edges to other words may pass it on as well. Do the same tests
# succeed?

# %%
both = {"plain": plain, "contextual": contextual}
phrases = exchanged(*PHRASES)
print("phrases exchanged:", " ".join(line[n] for n in phrases))
tried = {
    "as written": {},
    "words' keys exchanged": {"keys": swapped},
    "phrases' keys exchanged": {"keys": phrases},
    "no edge to seven": {"may": all_but(2)},
}
figure = Figure(figsize=(10, 4.4), layout="constrained")
grid = figure.subplots(2, 5)
for row, (values, model) in zip(grid, both.items(), strict=True):
    for axes, (name, change) in zip(row[1:], tried.items(), strict=True):
        found = paint(model, ids, begun, **change)
        show(axes, found.pictures[1], name)
        print(f"{values:10}  {name:23}  {digits(found.pictures)}")
    found = paint(model, ids, begun)
    seven = found.heat[1, :, 2]
    warm(row[0], found.pictures[1], seven, f"{values}: “seven”")
keep(
    figure,
    "heat_or_cause.png",
    "Plain and contextual values: the same heat, and different pictures when "
    "keys are exchanged or edges cut",
)

# %% [markdown]
# A single line proves little. So here are 100 scenes with two different digits each, read by the judge:

# %%
found = [measure(model, judge) for model in both.values()]
show_numbers(
    torch.tensor([[each[name] for each in found] for name in found[0]]),
    [*found[0]],
    [*both],
    title="fractions of 200 digits in 100 scenes",
    digits=2,
)
right, pointing, _, moved, _, by_phrase, uncut = torch.tensor(
    [[*each.values()] for each in found]
).T
assert right.min() > 0.9
assert pointing.min() > 0.95  # by chance 0.25
assert moved[0] > 0.8
assert uncut[0] < 0.25  # by chance 0.1
assert moved[1] < 0.5
assert uncut[1] > 0.4
assert by_phrase[1] > moved[1] + 0.2

# %% [markdown]
# Both painters paint the digits of the line, and both maps point to the right corner. With plain values, a digit
# moves with its word's key. Without the edges to its word, the judge no longer reads this digit, because another
# appears. With contextual values, fewer than half of the digits move, and many digits are painted without any edge to
# their word. If you exchange the keys of whole phrases, more digits move. The likely reason is that "a", "top" and
# "left" learn of the seven when the words read each other, and pass it on too.
#
# So a heat map shows **which positions attend to a word**. To find the effect of this attention, you have to
# experiment: exchange, ablate, count. This holds for every map in this course, including those of language models.
# [Which explanation is right?](../faithfulness.md) measures how far you can trust each explanation.
#
# You have followed attention from a text to vectors, to a model that writes, to a translation and to a picture. To
# see heat maps of a trained text-to-image pipeline for your own text, use [`regard paint`](../commands/paint.md).
# The formula of attention is from 2017. Today's models have changed much around it:
# [11. What changed since 2017](11_since_2017.py).

# %% [markdown]
# ## Exercises
#
# The cells below need neither the cells above nor any training. Replace `...` by your answer and run the cell, or run
# `regard lesson 10 --exercises`.

# %%
import torch

from drawings.exercise import Exercise
from drawings.numbers import show_numbers

# %% [markdown]
# **1. Make a heat map.** `weights` has the dimensions 4 steps, three layers, two heads, 16 patches and five words, in
# this order. Write a function that returns the heat of word 2 as a picture of 4 × 4 patches.

# %%
torch.manual_seed(0)
weights = torch.randn(4, 3, 2, 16, 5).softmax(-1)
answer = ...  # a function: lambda weights: …


def check(function):
    expected = [[0.0] * 4 for _ in range(4)]
    for one in weights.flatten(0, 2):  # 24 times (16, 5)
        for patch in range(16):
            expected[patch // 4][patch % 4] += float(one[patch, 2]) / 24
    heat = function(weights)
    show_numbers(heat)
    wrong = float((heat - torch.tensor(expected)).abs().max())
    right = heat.shape == (4, 4) and wrong < 1e-5
    why = ": a mean over steps, layers and heads" if right else ""
    return right, f"off by up to {wrong:.4f}{why}"


Exercise(check, answer)

# %% [markdown]
# **2. Guide the painter.** Many text-to-image models predict each picture twice, with your text ($c$) and without a
# text ($u$), and then exaggerate the difference (Ho and Salimans 2022):
#
# $$ g = u + s \cdot (c - u) $$
#
# With $s = 1$, this is the prediction with text. Below are four pixels, from −1 for paper to 1 for ink. Find a
# guidance scale $s$ for which the first pixel is more than 0.9 and no pixel leaves the range from −1 to 1.

# %%
without = torch.tensor([-0.2, 0.1, -0.5, 0.3])
with_text = torch.tensor([0.08, 0.0, -0.6, 0.4])
answer = ...  # a number


def check(scale):
    guided = without + scale * (with_text - without)
    pixels = ", ".join(f"{pixel:.2f}" for pixel in guided.tolist())
    right = guided[0] > 0.9 and guided.abs().max() <= 1
    why = ": a larger s would leave the range" if right else ""
    return right, f"pixels {pixels}{why}"


Exercise(check, answer)

# %% [markdown]
# **3. Deceive the map.** A patch attends to three words with the weights below, mostly to "seven". Its output is the
# mix of their values. If the first number of the output is large, the patch paints a seven. Write values (three rows
# of two numbers) such that cutting the edge to "seven" changes the output by less than 0.05. The output's first
# number has to be more than 0.5 before and after the cut.

# %%
words, scores = ["a", "seven", "left"], torch.tensor([0.5, 3.0, 0.0])
answer = ...  # a list of three rows with two numbers


def check(values):
    values = torch.tensor(values).float()
    cut = scores.masked_fill(torch.tensor([False, True, False]), -torch.inf)
    heat = torch.stack([scores.softmax(0), cut.softmax(0)])
    show_numbers(heat, ["weights", "without the edge"], words, digits=2)
    before, after = heat @ values
    change = float((before - after).abs().max())
    right = change < 0.05 and before[0] > 0.5 and after[0] > 0.5
    why = ": the other words carry the seven" if right else ""
    return right, f"{before[0]:.2f} before, {after[0]:.2f} after the cut{why}"


Exercise(check, answer)
