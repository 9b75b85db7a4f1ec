# %% [markdown]
# # Self-attention step by step
#
# This page reproduces the article "Understanding and Coding the Self-Attention Mechanism of Large Language Models
# From Scratch" section by section, under the article's headings. You compute self-attention for one sentence, from
# its words to the new vector of a word, and then several heads and two sentences. The numbers that the article prints
# are next to the numbers computed here. A difference would stop the page.

# %%
import torch

import regard
from drawings import attention as schematic
from drawings import transformer
from drawings.command import run
from drawings.kept import keep
from drawings.numbers import beside, show_numbers
from drawings.printed import printed
from regard.explain.weights.head_steps import steps
from regard.textbook import dictionary
from regard.textbook import ids as look_up

article = printed("one sentence")
sizes = article["shapes"]

# %% [markdown]
# ## Self-attention
#
# You can't translate a text word by word. The noun that decides between "le" and "la" comes later, and adjectives
# change places. Attention was added to recurrent translators so that each output word can look back at all input
# words (Bahdanau et al. 2015). The transformer of 2017 drops the recurrence and keeps the attention. It has six
# layers in the encoder and six in the decoder, width 512 and eight heads.

# %%
config = regard.TransformerConfig.translator(
    37000,
    start=0,
    layers=6,
    d_model=512,
    heads=8,
    d_hidden=2048,
    norm_first=False,
)
keep(
    transformer.blocks(config),
    "original.svg",
    "The transformer of 2017: six blocks that read, six that write",
)

# %%
with torch.device("meta"):  # sizes alone, nothing is drawn at random
    original = regard.Transformer(config)
numbers = {
    name: weights.numel() for name, weights in original.named_parameters()
}
blocks = sum(
    count
    for name, count in numbers.items()
    if name[:8] in ("encoder.", "decoder.")
)
print(f"{blocks:,} numbers in its twelve blocks")
assert blocks == 6 * (3_152_384 + 4_204_032)

# %% [markdown]
# You don't need to understand this picture yet. The two blue boxes and the orange box are attention. In lesson 7 you
# build [a transformer that writes](../lessons/7_a_transformer_that_writes.py), and in lesson 8 [a
# translator](../lessons/8_across.py).
#
# ## Embedding an input sentence
#
# A model computes with vectors, so each word needs one. You make a dictionary of the sentence's words, look up their
# ids, and take their rows of a random 6 × 16 table (seed 123).

# %%
run('regard tokens "Life is short, eat dessert first" --tokenizer words')

# %%
sentence = article["sentence"]
numbers = dictionary(sentence)
ids = look_up(sentence, numbers)
assert numbers == article["vocabulary"]
assert ids.tolist() == article["ids"]
torch.manual_seed(123)
x = torch.nn.Embedding(6, 16)(ids).detach()
words = sentence.replace(",", "").split()
beside(
    x,
    article["embedding"]["values"],
    words,
    title="the embedded sentence",
    shown=2,
)

# %% [markdown]
# A real vocabulary has 30,000 entries or more. Lesson 1 shows [byte pairs, special tokens and
# padding](../lessons/1_text_to_vectors.py), and [`regard tokens`](../commands/tokens.md) works with any tokenizer.
#
# ## Defining the weight matrices
#
# Each word plays three roles: it asks (query), it is found (key), and it passes something on (value). Each role has a
# matrix:
#
# $$ q_i = W_Q x_i, \qquad k_i = W_K x_i, \qquad v_i = W_V x_i $$
#
# The three matrices come from the same seed. Queries and keys have width $d_q = d_k = 24$, because they meet in a dot
# product. You are free to choose the width of the values, here $d_v = 28$. The article computes `W @ x`, and PyTorch's
# layers compute `x @ W.T`, so regard asks you for the convention.

# %%
torch.manual_seed(123)
weights = torch.rand(24, 16), torch.rand(24, 16), torch.rand(28, 16)
layer = regard.SelfAttention.from_weights(*weights, convention="W @ x")
query, key, value = layer.query(x), layer.key(x), layer.value(x)


def hold(**found):
    """Show sizes beside the article's."""
    for name, tensor in found.items():
        ours, theirs = tuple(tensor.shape), tuple(sizes[name])
        print(f"{name:34} {ours}   printed {theirs}")
        assert ours == theirs


hold(keys=key, values=value)
one = [tuple(part[1].shape) for part in (query, key, value)]
print("of “is”: query", one[0], "key", one[1], "value", one[2])

# %% [markdown]
# ## Computing the unnormalised attention weights
#
# How well does each word fit what "is", the second word, looks for? First project it:

# %%
figure = schematic.projections(x, *weights, words, at=1)
keep(
    figure,
    "projections.svg",
    "The second word times three matrices: its query, key and value, with "
    "the sizes of all tensors",
)

# %% [markdown]
# Then take the dot product of its query with every key. The article calls these products unnormalised attention
# weights. Divided by a root, as in the next section, they are the **scores** of the lessons:
#
# $$ \omega_{ij} = q_i \cdot k_j $$

# %%
context, maps = layer(x, return_attention=True)
way = steps(maps, value, query=1)
keep(
    schematic.head_step(way, "is", words, "scores"),
    "omega.svg",
    "The query of the second word times six keys gives six products",
)

# %%
beside(
    way.products[4:5],
    [article["unnormalised_weight_query1_key4"]],
    ["“is” · “dessert”"],
)
scores = article["unnormalised_weights"]
beside(way.products, scores, words, title="ω of “is”")

# %% [markdown]
# The product with "dessert" is the largest. The matrices are random, so this means nothing yet. [`regard
# steps`](../commands/steps.md) computes these numbers for any word, layer and head of a pretrained model.
#
# ## Computing the attention scores
#
# This section turns the products into **weights**, which the article calls scores. The products can be any numbers,
# but weights have to be positive and add up to 1. Divide by $\sqrt{d_k}$, so that wide vectors don't give extreme
# weights, and take the softmax:
#
# $$ α_{i} = \mathrm{softmax}\left(\frac{\omega_{i}}{\sqrt{d_k}}\right) $$
#
# $$ \mathrm{softmax}(s)_j = \frac{\exp(s_j)}{\sum_k \exp(s_k)} $$
#
# The exponential makes every number positive, and the division makes their sum 1.

# %%
keep(
    schematic.head_step(way, "is", words, "weights"),
    "alpha.svg",
    "Six products, divided by the root of 24, become scores, then weights",
)

# %%
beside(way.weights, article["weights"], words, title="α of “is”")
softmax = way.scores.exp() / way.scores.exp().sum()
torch.testing.assert_close(softmax, way.weights)
print(f"the six weights add up to {way.weights.sum():.4f}")

# %% [markdown]
# Then mix the values with these weights. The result is the context vector of "is":
#
# $$ z_i = \sum_j α_{ij} v_j $$

# %%
keep(
    schematic.head_step(way, "is", words, "output"),
    "z.svg",
    "Six values times six weights, added up: the context vector",
)

# %%
beside(context[1], article["context"], title="z of “is”, 28 numbers")

# %% [markdown]
# Lesson 5 shows [the reason for the root](../lessons/5_queries_keys_values.py), with the gradients that vanish without
# it.
#
# ## Multi-head attention
#
# The sections above compute a single head. Here it is for all six words at once:

# %%
figure = schematic.head_block(
    x, (query, key, value), maps.dense(), context, words
)
keep(
    figure,
    "single_head.svg",
    "A single head: the input, queries, keys and values, the weights, the "
    "output",
)

# %% [markdown]
# A single head mixes the words in one way. Several heads work in parallel, each with three matrices, and
# their results are joined:

# %%
figure = schematic.multi_head(
    tokens=6, d_model=16, heads=3, d_k=24, d_v=28, output=False
)
keep(
    figure,
    "multi_head.svg",
    "Three heads on six words: each gives 6 × 28, together 6 × 84",
)

# %% [markdown]
# Draw three sets of matrices, which continue the stream of random numbers. Each word now has three queries, and the
# input is copied for each head.

# %%
head_query, head_key, head_value = (
    torch.rand(3, wide, 16) for wide in (24, 24, 28)
)
stacked = x.T.repeat(3, 1, 1)
keys, values = torch.bmm(head_key, stacked), torch.bmm(head_value, stacked)
hold(
    multi_head_query_of_one_token=head_query @ x[1],
    stacked_inputs=stacked,
    multi_head_keys_before_permute=keys,
    multi_head_values_before_permute=values,
    multi_head_keys=keys.permute(0, 2, 1),
    multi_head_values=values.permute(0, 2, 1),
)
queries = torch.bmm(head_query, stacked).mT
heads = regard.attend(queries, keys.mT, values.mT)
names = [f"head {n}" for n in range(sizes["multi_head_heads"])]
title = "attention from “is”"
show_numbers(heads.weights[:, 1, :], names, words, title=title, digits=4)
assert heads.output[:, 1].shape == (3, 28)

# %% [markdown]
# Each head mixes the words differently. In PyTorch's `nn.MultiheadAttention`, $d_v$ is tied to $d_k$: both are
# $d_{model}$ divided by the number of heads. `regard.MultiHeadAttention` lets you choose both.
#
# The article compares heads with the kernels of a convolution: several of them work in parallel, and each can find
# something different. But a kernel's weights stay the same after training, while a head computes its weights for each
# text. Lesson 6 is about [heads](../lessons/6_heads.py), and [`regard heads`](../commands/heads.md) shows where each
# head of a pretrained model attends.
#
# ## Cross-attention
#
# A translator has to look from one text into another. In cross-attention, queries come from one sequence, and keys and
# values come from another, which can have a different length. Here its length is eight:
#
# $$ q_i = W_Q x_i, \qquad k_j = W_K c_j, \qquad v_j = W_V c_j $$

# %%
other = torch.rand(8, 16)
cross = regard.CrossAttention.from_weights(*weights, convention="W @ x")
output, maps = cross(x, other, return_attention=True)
figure = schematic.cross_attention(x, other, maps.dense(), output)
keep(
    figure,
    "cross_attention.svg",
    "Six queries of one sequence, eight keys and values of another",
)

# %%
hold(
    cross_second_sequence=other,
    cross_keys=cross.key(other),
    cross_values=cross.value(other),
)
assert maps.shape == (6, 8)
assert torch.equal(cross(x, x), layer(x))  # both the same: self-attention

# %% [markdown]
# The article requires embeddings of equal width on both sides. But each side has separate matrices, so the widths can
# differ:

# %%
wider = regard.CrossAttention(d_query=16, d_context=20, d_k=24, d_v=28)
print(tuple(wider(x, torch.rand(8, 20)).shape))

# %% [markdown]
# The article names translation and Stable Diffusion as applications. [Lesson 8 on
# cross-attention](../lessons/8_across.py) has both. [`regard translate`](../commands/translate.md) aligns the words of
# a translation, and lesson 10 trains [a painter of digits](../lessons/10_words_that_paint.py).
#
# ## Conclusion
#
# The article leaves the training of these matrices to a later article. Here you find the training in [your own
# transformer](../transformer.md) and [`regard train`](../commands/train.md). For efficient attention, use
# [`regard.attend`](../attention.md). It builds no n × n matrix, as FlashAttention does (Dao et al. 2022), and you can
# still read every weight. Approximations are surveyed in "Efficient Transformers" (Tay et al. 2020).
#
# If you read the article next to this page, you will find four small errors in it:
#
# - It speaks of the third element, index 2, but the code takes the second, `[1]`.
# - A printed line ends in `shape:)`, which isn't valid Python.
# - One printed size begins with `tensor(torch.Size`, which PyTorch never prints.
# - The names `query` and `queries` are mixed up in one place.
