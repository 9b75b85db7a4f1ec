# %% [markdown]
# # 9. Words that paint
#
# Which word of your prompt put that into the picture? Tools answer with a **heat map**: the parts of the picture that
# looked at the word. This page trains a model that paints, looks at its heat, and then tries what a map cannot say:
# whether the heat is why it is there. In one painter it is; in another, built as Stable Diffusion is, it is not; and
# their maps point alike.

# %%
import inspect

import torch
from matplotlib.figure import Figure

from drawings.kept import keep
from drawings.numbers import show_numbers
from painter import (
    CORNERS,
    PHRASES,
    WORDS,
    Judge,
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
# Two handwritten digits (Alpaydin and Kaynak 1998), each in a corner of 16 × 16 pixels, and a line that says which and
# where. The digits come with scikit-learn (`pip install scikit-learn`). 1,200 are to learn from. The other 597 train a
# judge, who names a digit in a corner: nobody has to believe their eyes.
#
# The whole painter is one file next to this lesson, [painter.py](painter.py), to read from top to bottom and to change.

# %%
known, others = read_digits()
judge = Judge(others)
words, pictures, noisy, time = training_batch(known, step=0)
print(" ".join(WORDS[n] for n in words[0].tolist()))
named = judge.named(known.pixels.flatten(1))
right = float((named == known.labels).double().mean())
print(
    f"{len(WORDS)} words; the judge names {right:.1%} of the digits that it "
    "never saw right"
)
assert right > 0.97


def show(axes, picture, title=""):
    axes.imshow(picture, cmap="gray_r", vmin=-1, vmax=1)
    axes.set_title(title, size=9)
    axes.set_axis_off()


# %% [markdown]
# ## From noise to a picture
#
# To paint is to take noise away. While it learns, the model sees a picture $p$ mixed with noise $e$, and has to say
# what is behind it:
#
# $$ x_t = (1 - t) \cdot e + t \cdot p \qquad \mathrm{loss} = (\mathrm{model}(x_t, t, \mathrm{words}) - p)^2 $$
#
# Where $t$ is 0 there is nothing but noise: only the words can tell what to paint.

# %%
picture, noise = pictures[0], torch.randn(16, 16)
figure = Figure(figsize=(10, 2.2), layout="constrained")
for axes, time in zip(
    figure.subplots(1, 5), (0, 0.25, 0.5, 0.75, 1), strict=True
):
    show(axes, torch.lerp(noise, picture, time), f"t = {time}")
keep(figure, "noise.png", "A picture of two digits comes out of noise")

# %% [markdown]
# ## Patches ask, words answer
#
# The picture is cut into 16 **patches** of 4 × 4 pixels. In each of three layers they look at each other, then at the
# ten words (`<start>` and nine): a patch is a query, a word a key and a value, as on [page 7](7_across.py).
#
# Before that two layers let the words read each other. "seven" has to learn that it stands *top left*, so that the
# patches there can find it: these **states** are the keys. The values are the words as they came, their **plain**
# embeddings, which know nothing of each other.

# %%
painter = Painter()
print(f"{sum(each.numel() for each in painter.parameters()):,} numbers")
print(inspect.getsource(Painter.forward))

# %% [markdown]
# Before it has learned anything, its weights have the right form: eight times the same line, each from other noise.

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
# 600 lessons of 32 scenes, twice: the second painter is for later. They differ in one word, `values`.


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
# How a seven is written no word says: that stays in the loss.
#
# ## Painting
#
# It begins with noise alone. In each of 20 steps the painter says what it takes the picture to be, and the picture goes
# a step that way. After the first, a blur of all sevens; what is left is which of them.

# %%
painted = paint(plain, ids, begun)
figure = Figure(figsize=(11, 3.4), layout="constrained")
above, below = figure.subplots(2, 8)
for axes, step in zip(above, (0, 2, 4, 7, 10, 13, 16, 19), strict=True):
    show(axes, painted.expected[step, 0], f"expected, step {step}")
for axes, each in zip(below, painted.pictures, strict=True):
    show(axes, each)
below[0].set_title("eight pictures, each from other noise", size=9, loc="left")
shown = " ".join(line[1:])
keep(figure, "painted.png", f"{shown}: one picture over its steps, and eight")


# %%
def read(pictures):
    """What the judge reads in the two corners that the line names."""
    return judge.read(pictures, corners)


def digits(pictures):
    rows = read(pictures).tolist()
    return "  ".join(f"{first}·{second}" for first, second in rows)


print("top left · bottom right:", digits(painted.pictures))
assert (read(painted.pictures) == torch.tensor([7, 2])).float().mean() > 0.85

# %% [markdown]
# ## Heat
#
# How much did each patch look at a word? The mean of all steps, layers and heads is the word's heat (Tang et al. 2023),
# here red over the picture, from none to the word's most.

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

# %% [markdown]
# The digits' words point at their digits. Look at the others, too: words of places may be hot far from the place that
# they name, and `<start>` and the comma, which name nothing, are hot somewhere as well. A map is easily read as one
# wishes.
#
# ## Is it the heat?
#
# If a seven is painted where "seven" is looked at, then it has to move when "seven" is looked at elsewhere. So exchange
# the keys of "seven" and "two", and nothing else: whoever looked for the one now finds the other's value.

# %%
swapped = exchanged([2], [7])
print(" ".join(line[n] for n in swapped))
moved = paint(plain, ids, begun, keys=swapped)
print("as written:    ", digits(painted.pictures))
print("keys exchanged:", digits(moved.pictures))
assert (read(moved.pictures) == torch.tensor([2, 7])).float().mean() > 0.75

# %% [markdown]
# And if no patch may look at "seven", there must be no seven. Its edges are cut: the other words share its weight.

# %%
cut = paint(plain, ids, begun, may=all_but(2))
print("no edge to seven:", digits(cut.pictures))
assert cut.heat[..., 2].max() == 0
gone = read(cut.pictures)
assert (gone[:, 0] == 7).float().mean() < 0.5
assert (gone[:, 1] == 2).float().mean() > 0.75  # the two is left alone

# %% [markdown]
# Both held. In this painter heat is the cause.
#
# ## Heat is not cause
#
# Stable Diffusion takes keys *and* values from the states of its text encoder. The second painter does so too: its
# values are **contextual**. Its heat points as well. Does the same follow from it?

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
# One line is one line. So 100 scenes of two different digits, the digits read by the judge:

# %%
found = [measure(model, judge) for model in both.values()]
show_numbers(
    torch.tensor([[each[name] for each in found] for name in found[0]]),
    [*found[0]],
    [*both],
    title="shares of 200 digits in 100 scenes",
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
# Both paint what the line says, and both point at the right corner, always. With plain values a digit goes where its
# word's key goes, and goes when its edges go. With contextual values fewer than half go there, and many are painted
# without any edge to their word. Whole phrases move them: while the words read each other, "a", "top" and
# "left" have learned of the seven, and tell of it too. How much they tell is chance: change the seed, or train for
# longer, and they share it out in another way.
#
# So a heat map shows **where a word is looked at**. What that look does is another question, and it has to be tried:
# exchange, cut, count. That holds for every map in this course, a language model's too: which explanation can be
# trusted how far is [measured](../faithfulness.md).
#
# ## The end, and on
#
# [`regard paint`](../commands/paint.md) shows the heat of a trained text-to-image pipeline on a text of yours. From a
# text to vectors that know it, and to pictures: nine pages, one function. To look at a model of your own: the
# [commands](../commands/see.md), the [library](../traces.md), [a transformer of your own](../transformer.md).
