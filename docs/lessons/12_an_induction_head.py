# %% [markdown]
# # 12. An induction head, found and cut
#
# You give a chat model a name that it has never seen, and two sentences later it uses the name correctly. Its
# parameters haven't changed, so something inside must copy from the text. In many models, a few heads do this: the
# **induction heads** (Elhage et al. 2021, Olsson et al. 2022). On this page you train a small model until such a head
# forms, find it by a score, and cut it out to see whether copying fails.

# %%
import string

import torch
from matplotlib.figure import Figure

import regard
from drawings.grid import heatmap
from drawings.kept import keep
from drawings.numbers import show_numbers
from regard.explain import head_scores, repeated_tokens
from regard.fetched import find, left_out

# %% [markdown]
# ## The task
#
# Each line is a random row of 8 to 16 different letters, repeated until the line has 48 letters. The first round
# can't be predicted. The later rounds can: if the line has `[A][B] … [A]`, the next letter is `[B]`. Only the first
# letter of the second round can't be predicted, because nobody knows when a round ends. It counts neither in the loss
# nor in the tests.


# %%
def lines(count):
    """Random lines of 48 letters as ids 0 to 25, and how long a round is."""
    period = torch.randint(8, 17, (count, 1))
    rounds = torch.rand(count, 26).argsort(1)
    return rounds.gather(1, torch.arange(48) % period), period


def letters(ids):
    return [string.ascii_lowercase[n] for n in ids]


torch.manual_seed(0)
test = torch.rand(26).argsort()[:16].repeat(2).tolist()
for ids in lines(3)[0]:
    print("".join(letters(ids)))

# %% [markdown]
# ## The model
#
# It has two layers with two heads each, and rotary positions. Its feed-forward networks are switched off, so
# everything that it does is attention:
#
# $$ h = x + \mathrm{Attention}_0(\mathrm{norm}(x)) $$
#
# $$ y = h + \mathrm{Attention}_1(\mathrm{norm}(h)) $$

# %%
config = regard.TransformerConfig(
    vocabulary=26,
    layers=2,
    heads=2,
    d_model=64,
    d_hidden=1,
    positions="rotary",
    rotary_base=10.0,  # lines are short, so all pairs turn fast
    initial=0.1,
)
torch.manual_seed(2)
model = regard.Transformer(config)
for block in model.decoder:  # the feed-forward network adds zero
    torch.nn.init.zeros_(block.feedforward.output.weight)
    torch.nn.init.zeros_(block.feedforward.output.bias)
    block.feedforward.requires_grad_(False)
mine = regard.load(model)
trained = [each for each in model.parameters() if each.requires_grad]
print(f"{sum(each.numel() for each in trained):,} numbers to learn")

# %% [markdown]
# ## The score
#
# An induction head at the second $A$ attends to the token after the first $A$. So you take each token $i$ that has
# occurred before, at $j$, and average its weight on the token after $j$:
#
# $$ \mathrm{induction} = \mathrm{mean}_i \, w_{i, j+1} \quad \mathrm{for} \quad x_j = x_i, \quad j < i $$


# %%
def induction(weights, ids):
    """Mean weight of repeated tokens on the tokens after their copies."""
    found = []
    for i in range(len(ids)):
        after = [j + 1 for j in range(i) if ids[j] == ids[i]]
        if after:
            found.append(weights[..., i, after].sum(-1))
    return torch.stack(found).mean(0)


def previous(weights):
    """Mean weight on the token before."""
    return weights.diagonal(-1, -2, -1).mean(-1)


# %% [markdown]
# ## Training
#
# Only the repeated letters count in the loss, because the first round can't be predicted. Every 50 steps you score all
# heads on a line of 16 random letters that is written twice.

# %%
torch.set_num_threads(1)  # faster for matrices as small as these
optimiser = torch.optim.AdamW(trained, lr=5e-3)
losses, scores = [], []
for step in range(701):
    ids, period = lines(32)
    logits = model(ids).logits  # (32, 48, 26)
    each = torch.nn.functional.cross_entropy(
        logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none"
    ).view(32, 47)
    repeated = torch.arange(1, 48) > period
    loss = each[repeated].mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 50 == 0:
        losses.append(float(loss.detach()))
        trace = mine.trace(ids=test)
        scores.append(
            [
                [*induction(maps.dense(), test), *previous(maps.dense())]
                for maps in trace.attention
            ]
        )
model.eval()
steps = range(0, 701, 50)
even = float(torch.tensor(26.0).log())
print(f"loss of even guesses {even:.2f} nats")
for step, each in list(zip(steps, losses, strict=True))[::2]:
    print(f"step {step:3}: loss of repeated letters {each:.2f}")
assert losses[0] > 0.9 * even
assert losses[-1] < 0.3

# %%
scores = torch.tensor(scores)  # (steps, layers, induction 2 + previous 2)
figure = Figure(figsize=(11, 3.8), layout="constrained")
left, right = figure.subplots(1, 2)
left.plot(steps, losses, color="k", label="repeated letters")
left.axhline(even, color="#777777", linestyle=":", label="even guesses")
left.set(title="loss", xlabel="step", ylabel="nats", ylim=0)
for layer in range(2):
    for head in range(2):
        name = f"layer {layer}, head {head}"
        line = right.plot(steps, scores[:, layer, head], label=name)[0]
        if layer == 0:
            right.plot(
                steps, scores[:, 0, 2 + head], "--", color=line.get_color()
            )
right.set(
    title="induction (lines), previous token (dashed)",
    xlabel="step",
    ylabel="mean weight",
    ylim=(0, 1),
)
for axes in (left, right):
    axes.legend(frameon=False)
keep(
    figure,
    "forms.svg",
    "The loss of repeated letters falls while a head's induction score rises",
)

# %% [markdown]
# At first, the loss falls but no induction score rises: the model learns something else, which isn't measured here.
# Then two scores rise, and the loss falls to almost nothing. A head of layer 0 learns to attend to the previous
# token, and a head of layer 1 becomes an induction head.
#
# ## Find the head

# %%
trace = mine.trace(ids=test)
maps = [each.dense() for each in trace.attention]  # two of (2, 32, 32)
names = [f"layer {n}, head {head}" for n in range(2) for head in range(2)]
found = torch.stack(
    [
        torch.cat([previous(each) for each in maps]),
        torch.cat([each.diagonal(0, -2, -1).mean(-1) for each in maps]),
        torch.cat([induction(each, test) for each in maps]),
    ],
    1,
)
show_numbers(found, names, ["previous", "itself", "induction"], digits=2)
# the library's scores, of this line and of four others
ours = head_scores(trace).by_name()["induction"]
torch.testing.assert_close(
    ours.flatten().float(), found[:, 2], atol=1e-5, rtol=0
)
best = repeated_tokens(mine, length=16).best("induction", 1)[0]
print(f"repeated_tokens names layer {best[0]}, head {best[1]}: {best[2]:.2f}")

looks_back, copies = int(found[:2, 0].argmax()), int(found[2:, 2].argmax())
assert best[:2] == (1, copies)
assert found[2 + copies, 2] > 0.5
assert found[3 - copies, 2] < 0.3
assert found[looks_back, 0] > 0.35

# %% [markdown]
# `repeated_tokens` and [`regard heads`](../commands/heads.md) measure the same score in any model. Here are both heads
# on a line of eight letters, written twice:

# %%
short = test[:8] * 2
trace = mine.trace(ids=short)
figure = Figure(figsize=(11, 4.9), layout="constrained")
panels = (0, looks_back, "the previous token"), (1, copies, "induction")
for axes, (layer, head, name) in zip(
    figure.subplots(1, 2), panels, strict=True
):
    heatmap(
        trace.attention[layer][head],
        letters(short),
        letters(short),
        title=f"layer {layer}, head {head}: {name}",
        labels=("query", "key"),
        axes=axes,
    )
keep(
    figure,
    "both_heads.svg",
    "A head that attends to the previous letter, and a head that attends to "
    "the letter after the earlier copy",
)

# %% [markdown]
# In the first round there is nothing to copy, so ignore its weights. On the left, the dark cells are next to the
# diagonal. On the right, they are in the lower half: each letter of the second round attends to the letter after its
# copy in the first round.
#
# ## Cut it
#
# A high score shows where a head attends, not what it is good for. So you ablate each head, by setting its output to
# zero, and let the model predict the second round of 20 new lines.

# %%
torch.manual_seed(3)
rows = [torch.rand(26).argsort()[:16].repeat(2).tolist() for _ in range(20)]


def copied(heads):
    """Part of the second round that is predicted right, and its loss."""
    cut = [regard.ablate(regard.head(*each)) for each in heads]
    right, loss = 0.0, 0.0
    for ids in rows:
        logits = mine.trace(ids=ids, interventions=cut).logits[16:-1]
        wanted = torch.tensor(ids[17:])
        right += float((logits.argmax(-1) == wanted).float().mean())
        loss += float(torch.nn.functional.cross_entropy(logits, wanted))
    return right / len(rows), loss / len(rows)


cuts = {
    "nothing": [],
    f"layer 1, head {copies} (induction)": [(1, copies)],
    f"layer 1, head {1 - copies}": [(1, 1 - copies)],
    f"layer 0, head {looks_back} (previous)": [(0, looks_back)],
    f"layer 0, head {1 - looks_back}": [(0, 1 - looks_back)],
}
results = torch.tensor([copied(heads) for heads in cuts.values()])
show_numbers(results, [*cuts], ["right", "loss"], title="ablated", digits=2)
whole, without, other, before, itself = results[:, 0].tolist()
assert whole > 0.9
assert without < 0.25
assert other > 0.85
assert before < 0.3
assert itself < 0.5

# %% [markdown]
# Without the induction head, the model copies no better than chance (1 of 26 letters, 0.04). Without the other head
# of layer 1, it copies as before. (If you train with other seeds, both heads of layer 1 sometimes share the work.)
#
# ## The head that the induction head needs
#
# Layer 1 has no way to know which letter came before a key, unless layer 0 has put it there. This is the work of the
# head that attends to the previous token. Ablate it, and look at the induction head, which you didn't touch:

# %%
cut = [regard.ablate(regard.head(0, looks_back))]
trace = mine.trace(ids=test, interventions=cut)
alone = float(induction(trace.attention[1].dense(), test)[copies])
print(
    f"induction score {found[2 + copies, 2]:.2f}, without the head of layer 0 "
    f"{alone:.2f}"
)
assert alone < 0.5 * found[2 + copies, 2]

# %% [markdown]
# Three of the four heads are needed, and you understand two of them. The first writes "the letter before me was A"
# into each token. The second searches for a token with this note, and its value says which letter that token is, so
# this letter becomes likely. The third, the other head of layer 0, attends to the letter itself. Why copying needs it
# is not shown here.
#
# ## The same in a real model
#
# SmolLM2 has 30 layers of nine heads. Here it reads 40 random tokens, twice. Run `regard fetch smollm2` to see this
# part.

# %%
folder = find("smollm2")
if folder:
    smol = regard.load(folder)
    best = repeated_tokens(smol).best("induction", 4)
    for layer, head, score in best:
        print(f"layer {layer}, head {head}: induction {score:.2f}")
    four = [(layer, head) for layer, head, _ in best]
    layers = sorted({layer for layer, _ in four})
    places = [(layer, head) for head in range(9) for layer in layers]
    others = [place for place in places if place not in four][:4]
    torch.manual_seed(0)
    once = torch.randint(1000, 40_000, (40,)).tolist()
    name = (
        "Barnaby Crowell bought a boat. The boat was red. Everyone knew Barnaby"
    )
    table = []
    for heads in ([], four, others):
        cut = [regard.ablate(regard.head(*each)) for each in heads]
        logits = smol.trace(ids=once * 2, interventions=cut).logits[40:-1]
        right = (logits.argmax(-1) == torch.tensor(once[1:])).float().mean()
        said = smol.trace(name, interventions=cut).logits[-1].softmax(-1)
        crow = smol.tokenizer(" Crow", add_special_tokens=False)["input_ids"]
        table.append([float(right), float(said[crow[0]])])
    show_numbers(
        torch.tensor(table),
        ["nothing", "four induction heads", "four others"],
        ["copied right", "P(Crow)"],
        title="ablated, of 270 heads",
        digits=2,
    )
    assert table[1][0] < 0.05
    assert table[2][0] > 0.5 * table[0][0]
    assert table[1][1] < 0.5 * min(table[0][1], table[2][1])
else:
    print(left_out("smollm2"))

# %% [markdown]
# Without four heads of 270, SmolLM2 copies none of the random tokens. Without four other heads of the same layers, it
# still copies most of those that it copied before. In an ordinary sentence, the name becomes much less probable too.
#
# You have finished the course. Do the same with your own model: [which heads copy?](../questions/copy.md) has this
# experiment in a few lines, and [Learn](../learn.md) leads on to the guides.

# %% [markdown]
# ## Exercises
#
# The cells below don't need the cells above. Replace `...` by your answer and run the cell, or run `regard lesson 12
# --exercises`.

# %%
import torch

from drawings.exercise import Exercise
from regard import textbook

SIZE = 6  # tokens are numbers from 0 to 5
OWN = torch.eye(SIZE)

# %% [markdown]
# **1. Be the head.** A text has the tokens `[3, 1, 4, 1, 5, 2, 0, 4]`. To which position does an ideal induction head
# attend from the last token? Count from 0.

# %%
answer = ...  # a position


def check(position):
    ids = [3, 1, 4, 1, 5, 2, 0, 4]
    copy = ids.index(ids[-1])
    if not isinstance(position, int) or not 0 <= position < len(ids):
        return False, "a position is a whole number from 0 to 7"
    told = f"at {position} is token {ids[position]}, which followed "
    told += f"{ids[position - 1]}" if position else "nothing"
    return position == copy + 1, told


Exercise(check, answer)

# %% [markdown]
# **2. Score a head.** Write the induction score of a head on a row of `n` different tokens that is repeated once. You
# get its `weights`, 2n × 2n, and `n`. Average over the tokens of the second round. `weights.diagonal(-k)` has the
# weights on the token `k` positions back.

# %%
answer = ...  # lambda weights, n: an expression


def check(score):
    torch.manual_seed(0)
    for n in (3, 8):
        weights = torch.randn(2 * n, 2 * n).tril().softmax(-1)
        rows = [float(weights[i, i - n + 1]) for i in range(n, 2 * n)]
        off = abs(float(score(weights, n)) - sum(rows) / n)
        if not off < 1e-6:
            return False, f"for n = {n} it is off by {off:.4f}"
    return True, f"it is off by {off:.0e}"


Exercise(check, answer)

# %% [markdown]
# **3. Build the head.** The previous-token head has done its work: each row of `x` has six numbers for the token
# itself, then six for the token before it. So token 2 after token 4 is `[0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0]`. Write
# a 12 × 12 matrix `w` for the scores `x @ w @ x.T` that makes each repeated token give more than 0.9 of its attention
# to the token after its copy.

# %%
answer = ...  # a 12 × 12 matrix: a list of rows, or made with torch


def check(w):
    w, least = torch.as_tensor(w).float(), 1.0
    torch.manual_seed(0)
    for _ in range(5):
        ids = torch.rand(SIZE).argsort().repeat(2)
        before = torch.cat([torch.zeros(1, SIZE), OWN[ids[:-1]]])
        x = torch.cat([OWN[ids], before], 1)
        mask = torch.ones(len(x), len(x), dtype=torch.bool).tril()
        query = x @ w * w.shape[0] ** 0.5  # attention divides by this root
        weights = textbook.attention(query, x, x, mask)[1]
        follows = weights.diagonal(1 - SIZE)[1:]
        least = min(least, float(follows.min()))
    return least > 0.9, f"the smallest of these weights is {least:.2f}"


Exercise(check, answer)
