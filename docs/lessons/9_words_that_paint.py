# %% [markdown]
# # 9. Words that paint
#
# Which word of your prompt put that into the picture? Tools answer with a **heat map**: the parts of the picture that
# looked at the word. This page trains a model that paints, looks at its heat, and then tries what a map cannot say:
# whether the heat is why it is there. In one painter it is; in another, built as Stable Diffusion is, it is not; and
# their maps point alike.

# %%
import torch
from matplotlib.figure import Figure

from drawings.kept import keep
from drawings.numbers import show_numbers
from regard.nn.painter import Painter, patches
from regard.nn.painter_config import PainterConfig
from regard.nn.painting import paint
from regard.train import painter_measures, scene_words, scenes
from regard.train.loop import optimiser_of
from regard.train.settings import Settings

# %% [markdown]
# ## A line and its picture
#
# Two handwritten digits (Alpaydin and Kaynak 1998), each in a corner of 16 × 16 pixels, and a line that says which and
# where. 1,200 digits are to learn from. The other 597 train a judge, who names a digit in a corner: nobody has to
# believe their eyes.

# %%
LINE = "a seven top left , a two bottom right"
data = scenes.Scenes(batch=32, seed=0)
judge = painter_measures.DigitJudge(data.held)
batch, _ = data.batch((0, 0))
words = scene_words.WORDS
print(" ".join(words[n] for n in batch.words[0].tolist()))
print(
    f"{len(words)} words; the judge names {judge.right(data.trained):.1%} of "
    "the digits that it never saw right"
)
assert judge.right(data.trained) > 0.97


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
picture, noise = batch.pictures[0], torch.randn(16, 16)
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
painter = Painter(PainterConfig(vocabulary=len(words), length=10))
print(f"{sum(each.numel() for each in painter.parameters()):,} numbers")
scene = scene_words.read_scene(LINE)
print(scene.words)


def ids(scene, count):
    """The scene's words as numbers, once for each of so many pictures."""
    one = (torch.tensor([scene.digits]), torch.tensor([scene.corners]))
    return scenes.scene_ids(*one).expand(count, -1)


begun = torch.randn(8, 16, 16, generator=torch.Generator().manual_seed(1))
blank = paint(painter, ids(scene, 8), begun)
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
    settings = Settings.for_painter(steps=600, batch=32, warmup=100)
    torch.manual_seed(0)
    painter = Painter(
        PainterConfig(vocabulary=len(words), length=10, values=values)
    )
    optimiser, place = optimiser_of(painter, settings), (0, 0)
    for step in range(settings.steps):
        batch, place = data.batch(place)
        for group in optimiser.param_groups:
            group["lr"] = settings.learning_rate(step)
        expected = painter(batch.noisy, batch.time, batch.words)
        loss = ((expected - batch.pictures) ** 2).mean()
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
painted = paint(plain, ids(scene, 8), begun)
figure = Figure(figsize=(11, 3.4), layout="constrained")
above, below = figure.subplots(2, 8)
for axes, step in zip(above, (0, 2, 4, 7, 10, 13, 16, 19), strict=True):
    show(axes, painted.expected[step, 0], f"expected, step {step}")
for axes, each in zip(below, painted.pictures, strict=True):
    show(axes, each)
below[0].set_title("eight pictures, each from other noise", size=9, loc="left")
keep(figure, "painted.png", f"{LINE}: one picture over its steps, and eight")


# %%
def read(pictures):
    """What the judge reads in the two corners that the line names."""
    return judge.named(patches(pictures, 2)[:, list(scene.corners)])


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
    warm(axes, painted.pictures[0], heat[:, n], f"“{scene.words[n]}”")
keep(
    figure, "heat.png", "The heat of seven lies on the seven, of two on the two"
)

# %%
corner = painter_measures.corner_of_patches(4)
shares = torch.stack(
    [painted.heat.mean(0)[corner == n].sum(0) for n in range(4)], 1
)
show_numbers(
    shares / shares.sum(1, keepdim=True),
    scene.words,
    ["top left", "top right", "bottom left", "bottom right"],
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
exchanged = painter_measures.exchanged_words()
print(" ".join(scene.words[n] for n in exchanged))
moved = paint(plain, ids(scene, 8), begun, keys=exchanged)
print("as written:    ", digits(painted.pictures))
print("keys exchanged:", digits(moved.pictures))
assert (read(moved.pictures) == torch.tensor([2, 7])).float().mean() > 0.75

# %% [markdown]
# And if no patch may look at "seven", there must be no seven. Its edges are cut: the other words share its weight.

# %%
cut = paint(plain, ids(scene, 8), begun, may=painter_measures.all_words_but(2))
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
phrases = painter_measures.exchanged_phrases()
print("phrases exchanged:", " ".join(scene.words[n] for n in phrases))
tried = {
    "as written": {},
    "words' keys exchanged": {"keys": exchanged},
    "phrases' keys exchanged": {"keys": phrases},
    "no edge to seven": {"may": painter_measures.all_words_but(2)},
}
figure = Figure(figsize=(10, 4.4), layout="constrained")
grid = figure.subplots(2, 5)
for row, (values, model) in zip(grid, both.items(), strict=True):
    for axes, (name, change) in zip(row[1:], tried.items(), strict=True):
        found = paint(model, ids(scene, 8), begun, **change)
        show(axes, found.pictures[1], name)
        print(f"{values:10}  {name:23}  {digits(found.pictures)}")
    found = paint(model, ids(scene, 8), begun)
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
found = {
    values: painter_measures.measure_painter(model, scenes=100)
    for values, model in both.items()
}
asked = {
    "right": "right digit in its corner",
    "pointing": "a digit word's largest heat is in its corner",
    "inside": "share of its heat there",
    "swapped": "words' keys exchanged: digits change places",
    "kept": "                       … digits stay",
    "phrases": "phrases' keys exchanged: digits change places",
    "cut": "no edge to its word: the digit is right all the same",
}
show_numbers(
    torch.tensor(
        [[getattr(each, name) for each in found.values()] for name in asked]
    ),
    [*asked.values()],
    [*found],
    title="shares of 200 digits in 100 scenes",
    digits=2,
)
for each in found.values():
    assert each.right > 0.9
    assert each.pointing > 0.95  # by chance 0.25
assert found["plain"].swapped > 0.8
assert found["plain"].cut < 0.25  # by chance 0.1
assert found["contextual"].swapped < 0.5
assert found["contextual"].cut > 0.4
assert found["contextual"].phrases > found["contextual"].swapped + 0.2

# %% [markdown]
# Both paint what the line says, and both point at the right corner, always. With plain values a digit goes where its
# word's key goes, and goes when its edges go. With contextual values fewer than half go there, and many are painted
# without any edge to their word. Whole phrases move them: while the words read each other, "a", "top" and
# "left" have learned of the seven, and tell of it too. How much they tell is chance. Painters of other seeds, trained
# for longer, are in [training](../training.md#words-that-paint), and no two share it out alike.
#
# So a heat map shows **where a word is looked at**. What that look does is another question, and it has to be tried:
# exchange, cut, count. That holds for every map in this course, a language model's too: which explanation can be
# trusted how far is [measured](../faithfulness.md).
#
# ## The end, and on
#
# `regard train --painter` trains such a painter for longer, and [`regard paint`](../commands/paint.md) tries all this
# with it on a line of yours. From a text to vectors that know it, and to pictures: nine pages, one function. To look at
# a model of your own: the [commands](../commands/see.md), the [library](../traces.md),
# [a transformer of your own](../transformer.md).
