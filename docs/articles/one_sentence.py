# %% [markdown]
# # Self-attention step by step
#
# This page reproduces the article "Understanding and Coding the Self-Attention Mechanism of Large Language Models
# From Scratch" section by section, under its own headings. You see each printed number next to the number that was
# computed when this page was built. A difference would stop the build.

# %%
import torch

import regard
from drawings import attention as schematic
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
# change places. Attention lets every word attend to all others. The 2017 transformer is built from attention, with
# six layers on each side, width 512 and eight heads.

# %%
config = regard.TransformerConfig.translator(
    37000, start=0, layers=6, d_model=512, heads=8, d_hidden=2048
)
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
# See also how to [train a translator](../lessons/8_across.py) and [a transformer that
# writes](../lessons/7_a_transformer_that_writes.py), both with plots.
#
# ## Embedding an input sentence
#
# You need a dictionary of the sentence's words, their ids, and a random 6 × 16 table from seed 123.

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
beside(x, article["embedding"]["values"], words, title="the embedded sentence")

# %% [markdown]
# A real vocabulary has 30,000 entries or more. See also [byte pairs, special tokens,
# padding](../lessons/1_text_to_vectors.py) and [`regard tokens`](../commands/tokens.md).
#
# ## Defining the weight matrices
#
# Draw three matrices from the same seed. Queries and keys have width 24, because they meet in a dot product. You are
# free to choose the width of the values, here 28. The article computes `W @ x`, and PyTorch's layers compute
# `x @ W.T`, so regard asks you for the convention.

# %%
torch.manual_seed(123)
weights = torch.rand(24, 16), torch.rand(24, 16), torch.rand(28, 16)
layer = regard.SelfAttention.from_weights(*weights, convention="W @ x")
query, key, value = layer.query(x), layer.key(x), layer.value(x)


def hold(**found):
    """Show sizes beside the article's."""
    for name, tensor in found.items():
        print(f"{name:34} {tuple(tensor.shape)}   printed {tuple(sizes[name])}")
        assert list(tensor.shape) == sizes[name]


hold(keys=key, values=value)

# %% [markdown]
# The article has two small errors. The text speaks of the third element, index 2, but the code takes the second
# element, `[1]`. And a printed line ends in `shape:)`, which isn't valid Python.
#
# ## Computing the unnormalised attention weights
#
# Compute $\omega_{ij} = q_i \cdot k_j$ for the second word, "is": first a single product, then all six.

# %%
context, maps = layer(x, return_attention=True)
way = steps(maps, value, query=1)
beside(
    way.products[4:5],
    [article["unnormalised_weight_query1_key4"]],
    ["“is” · “dessert”"],
)
beside(way.products, article["unnormalised_weights"], words, title="ω of “is”")

# %% [markdown]
# [`regard steps`](../commands/steps.md) does this for any word, layer and head of a pretrained model.
#
# ## Computing the attention scores
#
# Divide the products by $\sqrt{24}$, turn them into weights with a softmax, and mix the values with these weights.
# The result is the context vector $z$.

# %%
beside(way.weights, article["weights"], words, title="α of “is”")
beside(context[1], article["context"], title="z of “is”, 28 numbers")

# %%
figure = schematic.single_head(way, "is", words)
keep(
    figure,
    "single_head.svg",
    "The second word's way through one head, with the numbers of this page",
)

# %% [markdown]
# Lesson 5 shows [the reason for the root](../lessons/5_queries_keys_values.py), with the gradients that vanish without
# it.
#
# ## Multi-head attention
#
# Draw three sets of matrices, which continue the stream of random numbers. A query becomes three queries, and the
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
show_numbers(
    heads.weights[:, 1, :], names, words, title="attention from “is”", digits=4
)
assert heads.output[:, 1].shape == (3, 28)

# %% [markdown]
# The article compares heads with the kernels of a convolution: several of them work in parallel, and each can find
# something different. But a kernel's weights stay the same after training, while a head computes its weights for each
# text. See also [heads](../lessons/6_heads.py) and [`regard heads`](../commands/heads.md), which finds the role of
# each head in a pretrained model.
#
# ## Cross-attention
#
# Queries come from a sequence, and keys and values come from another sequence, which can have a different length.
# Here its length is eight.

# %%
other = torch.rand(8, 16)
cross = regard.CrossAttention.from_weights(*weights, convention="W @ x")
output, maps = cross(x, other, return_attention=True)
hold(
    cross_second_sequence=other,
    cross_keys=cross.key(other),
    cross_values=cross.value(other),
)
assert maps.shape == (6, 8)
assert torch.equal(cross(x, x), layer(x))  # both the same: self-attention

# %% [markdown]
# The article requires embeddings of equal width on both sides. Each side has separate matrices, so the widths can
# differ:

# %%
wider = regard.CrossAttention(d_query=16, d_context=20, d_k=24, d_v=28)
print(tuple(wider(x, torch.rand(8, 20)).shape))

# %% [markdown]
# The article names translation and Stable Diffusion as applications. See also [lesson 8 on
# both](../lessons/8_across.py), [`regard translate`](../commands/translate.md), and [a painter of
# digits](../lessons/10_words_that_paint.py), which tests whether its heat maps show the cause.
#
# ## Conclusion
#
# The article leaves the training of these matrices to a later article. Here you find the training in [your own
# transformer](../transformer.md) and [`regard train`](../commands/train.md). For efficient attention, use
# [`regard.attend`](../attention.md). It builds no n × n matrix, and you can still read every weight.
