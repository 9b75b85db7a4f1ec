# %% [markdown]
# # Self-attention step by step
#
# "Understanding and Coding the Self-Attention Mechanism of Large Language Models From Scratch", in its own order, under
# its own headings. Every figure that it prints stands beside what was computed while this page was made. A figure that
# differed would stop the making.

# %%
import torch

import regard
from drawings import attention as schematic
from drawings.command import run
from drawings.kept import keep
from drawings.numbers import beside, show_numbers
from regard.textbook import dictionary, look_up, printed, steps

article = printed("one sentence")
sizes = article["shapes"]

# %% [markdown]
# ## Self-attention
#
# Why it came: a text is not translated word by word. The noun that decides whether an article is "le" or "la" comes
# later, and adjectives change places. Attention lets every word look at all others, and the transformer of 2017 is made
# of it: six layers for each side, 512 wide, eight heads.

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
# Further: [a translator that is trained and looked at](../lessons/7_across.py), and
# [a transformer that writes](../lessons/6_a_transformer_that_writes.py), both drawn.
#
# ## Embedding an input sentence
#
# A dictionary of the sentence's own words, ids, and a table of 6 × 16 drawn at random from seed 123.

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
# A real vocabulary has 30,000 entries and more. Further: [byte pairs, special tokens,
# padding](../lessons/1_text_to_vectors.py), and [`regard tokens`](../commands/tokens.md).
#
# ## Defining the weight matrices
#
# Three matrices from the same seed. Queries and keys are 24 wide, for they meet in a dot product; values are 28 wide,
# for their width is free. The article multiplies `W @ x`, PyTorch's layers `x @ W.T`: `regard` asks which is meant.

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
# Two slips that cost a reader time, nothing else: the text speaks of the third element, index 2, where the code takes
# `[1]`, the second; and one printed line ends in `shape:)`, which Python does not take.
#
# ## Computing the unnormalised attention weights
#
# $\omega_{ij} = q_i \cdot k_j$ for the second word, "is"; first one of them, then all six.

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
# Further: [`regard steps`](../commands/steps.md) does this for any word, layer and head of a pretrained model.
#
# ## Computing the attention scores
#
# Divided by $\sqrt{24}$, made to weights by a softmax, and the values mixed by them: the context vector $z$.

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
# Further: [why the root](../lessons/4_self_attention.py), with the gradients that get lost without it.
#
# ## Multi-head attention
#
# Three sets of matrices, drawn where the stream of random numbers goes on. One query becomes three, and the input is
# laid out once a head.

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
    heads.weights[:, 1, :], names, words, title="what “is” looks at", digits=4
)
assert heads.output[:, 1].shape == (3, 28)

# %% [markdown]
# The article likens heads to the kernels of a convolution: several of a kind side by side, each free to find another
# thing. The likeness ends there: a kernel's weights are learned and then stay, a head's are computed anew for each
# text. Further: [heads](../lessons/5_heads.py), and [`regard heads`](../commands/heads.md), which says what each head
# of a pretrained model does.
#
# ## Cross-attention
#
# Queries of one sequence, keys and values of another, which may be of another length: here eight.

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
# The article asks for embeddings of equal width on both sides. Each side has matrices of its own, so widths may differ:

# %%
wider = regard.CrossAttention(d_query=16, d_context=20, d_k=24, d_v=28)
print(tuple(wider(x, torch.rand(8, 20)).shape))

# %% [markdown]
# It names translation and Stable Diffusion as places where this is done. Further: [both](../lessons/7_across.py),
# [`regard translate`](../commands/translate.md), and [a painter of digits](../lessons/9_words_that_paint.py) that is
# trained, looked at, and asked whether its heat is what paints.
#
# ## Conclusion
#
# What the article leaves to a later one is training the matrices: [a transformer of your own](../transformer.md) and
# [`regard train`](../commands/train.md). Attention computed efficiently is [`regard.attend`](../attention.md): no n × n
# matrix is built, and every weight can still be read.
