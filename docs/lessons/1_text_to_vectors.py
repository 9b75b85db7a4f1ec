# %% [markdown]
# # 1. From text to tokens to vectors
#
# If you translate "bank" into French without the other words, you may get it wrong. By a river it is *rive*, and for
# money it is *banque*. A translator has to read the other words, and so does a model. In this course you build a
# model that does.
#
# Every page of this course is a plain Python file that you can run and change. The folder `drawings` next to it has
# the code of the plots. All printed numbers were computed when this page was built. Numbers that others have
# published are asserted, so a wrong number would stop the build.

# %%
import torch

import regard
from drawings import sheet, transformer
from drawings.kept import keep
from drawings.numbers import show_numbers
from drawings.printed import printed
from drawings.token_strip import token_strip
from regard.text import tokenizers
from regard.text.tiktoken import cl100k_base, cl100k_tokens
from regard.textbook import dictionary
from regard.textbook import ids as look_up

# %% [markdown]
# ## The whole process
#
# A model computes with numbers, so your text passes through four steps:
#
# 1. The tokenizer splits it into **tokens**, and each token has a number, its **id**.
# 2. Each id selects a row of a table of vectors, the **token embedding**.
# 3. The position of each token adds another vector. These sums are $X$. In $X$, "bank" is still the same vector in
#    both texts.
# 4. **Attention** mixes the words. In the output $y$, the two vectors of "bank" are different.
#
# The plot shows computed values. The next pages explain each step.

# %%
model = regard.load()
river, money = model.trace(
    [
        "Write a poem about a man fishing on a river bank.",
        "Write a poem about a man withdrawing money from a bank.",
    ]
)
words = river.tokens[1:-2]  # without [CLS], the full stop and [SEP]
embedded = [
    (trace.token_embeddings + trace.position_embeddings)[1:-2]
    for trace in (river, money)
]
# self-attention without parameters: softmax(X Xᵀ) X
mixed = [(x @ x.T).softmax(-1) @ x for x in embedded]
figure = transformer.embedding_process(
    [token.text for token in words],
    [token.id for token in words],
    river.token_embeddings[1:-2],
    30522,
    river.position_embeddings[1:-2],
    mixed[0],
)
assert torch.equal(embedded[0][-1], embedded[1][-1])
assert not torch.allclose(mixed[0][-1], mixed[1][-1], atol=0.01)
shows = (
    "From text to output: tokens, ids, token embeddings plus positions (X), "
    "and the attention output y"
)
keep(figure, "overview.svg", shows)

# %% [markdown]
# ## A dictionary of six words
#
# The simplest tokenizer drops commas, splits at spaces, sorts the words (capitals first) and numbers them. The
# sentence comes from the article "Understanding and Coding the Self-Attention Mechanism of Large Language Models From
# Scratch".

# %%
article = printed("one sentence")  # its figures, as they are printed there
sentence = article["sentence"]
words = dictionary(sentence)
ids = look_up(sentence, words)
for word, number in words.items():
    print(f"{number}  {word}")
print("the sentence:", ids.tolist())

assert words == article["vocabulary"]
assert ids.tolist() == article["ids"]

# %% [markdown]
# A dictionary only knows its own words. A real vocabulary has 30,000 entries or more, and some words are still
# missing:

# %%
try:
    look_up("Life is sweet", words)
    raise AssertionError("a word was found that is not there")
except KeyError as error:
    print(f"the dictionary has no {error}")

# %% [markdown]
# ## Byte pairs: a vocabulary for every word
#
# Start with single characters. Find the pair that occurs most often, make it a token, and repeat. Common words become
# a single token and rare words stay in pieces, but no word is unknown (Sennrich et al. 2016).

# %%
counts = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
pieces = {word: [*word] for word in counts}
for step in range(6):
    pairs = {}
    for word, parts in pieces.items():
        for n in range(len(parts) - 1):
            pair = parts[n], parts[n + 1]
            pairs[pair] = pairs.get(pair, 0) + counts[word]
    best = max(sorted(pairs), key=pairs.get)
    for parts in pieces.values():
        for n in range(len(parts) - 2, -1, -1):
            if (parts[n], parts[n + 1]) == best:
                parts[n : n + 2] = ["".join(best)]
    print(
        f"{step + 1}. {best[0]} + {best[1]}, {pairs[best]} times:  ",
        "   ".join("·".join(p) for p in pieces.values()),
    )
assert pieces["low"] == ["low"]
assert pieces["lower"] == ["low", "e", "r"]
assert pieces["widest"][-1] == "est"

# %% [markdown]
# Several OpenAI models use `cl100k_base`, which was made in this way from bytes and has 100,277 entries. A space
# belongs to the word after it. Its ranks are a file of 1.7 MB. Run `regard fetch cl100k_base` to get this file.
# Without the file, tiktoken tries to download it. If it can't, this page prints a note and continues with the
# published ids.

# %%
formula = printed("formula")
question, published = (
    formula["question"],
    dict(zip(formula["tokens"], formula["token_ids"], strict=True)),
)
try:
    tokens = cl100k_tokens(question, cl100k_base())
    assert [(token.text, token.id) for token in tokens] == list(
        published.items()
    )
except regard.RegardError as error:
    print(
        "cl100k_base: NOT CHECKED HERE, going on from the published ids: "
        f"{error}"
    )
    tokens = [
        regard.text.tokens.Token(number, part, 0, 0, None, False)
        for part, number in published.items()
    ]
print(len(tokens), "tokens:", *(token.id for token in tokens))
assert len(tokens) == 7
figure, axes = sheet.sheet(4.5, 0.8)
token_strip(axes, tokens)
keep(
    figure,
    "cl100k_base.svg",
    "What is the capital of France? in seven tokens; a dot is a blank",
)

# %% [markdown]
# ## The tokenizer of a model, and special tokens
#
# These pages use all-MiniLM-L6-v2, a small BERT. Its 30,522 entries are pieces of words, and `##` marks a piece that
# continues a word. `[CLS]` and `[SEP]` are special tokens without text of the sentence. The model was trained with
# these tokens at both ends. Pages 5 and 8 show how much attention they receive.

# %%
rare = model.trace("Write a poem about microfinance.")
for number, token in enumerate(rare.tokens):
    print(
        f"{number:2}  {token.text:8} {token.id:6}  characters {token.start} "
        f"to {token.end}"
    )
assert [token.text for token in river.tokens][11] == "bank"
assert [token.text for token in rare.tokens][5:8] == [
    "micro",
    "##fin",
    "##ance",
]
assert len(river.tokens) == 14
figure, axes = sheet.sheet(8.5, 0.8)
token_strip(axes, river.tokens)
keep(
    figure,
    "minilm_tokens.svg",
    "The sentence of the river bank in fourteen tokens, between [CLS] and "
    "[SEP]",
)

# %% [markdown]
# ## Padding and context length
#
# Several texts form a table with a row for each text. Short texts are filled up to the length of the longest. A
# **mask** marks the real tokens, and no token may attend to the padding. regard removes the padding again, so a trace
# looks as if you had run its text alone.

# %%
texts = [river.text, "Money from a bank"]
small = tokenizers.words(texts, lower=True)
batch = tokenizers.batch(small, texts)
print(batch.ids.tolist())
print(batch.mask.int().tolist())
assert batch.ids.shape == batch.mask.shape == (2, 12)
assert batch.mask.sum(1).tolist() == [12, 4]

# %% [markdown]
# A model has positions for a fixed number of tokens, its **context length**. Here it is 512. GPT-3 had 2,048 (Brown
# et al. 2020, "Language Models are Few-Shot Learners"), although one article gives 4,096. GPT-4 had 8,192 or 32,768,
# and GPT-4 Turbo had 128,000 (OpenAI's announcements of March and November 2023). Llama 3.1 has 131,072 (Grattafiori
# et al. 2024). Some libraries cut longer texts silently. regard raises an error, and reads the text in windows if you
# ask for it.

# %%
try:
    model.trace("bank " * 600)
    raise AssertionError("a text was cut")
except regard.RegardError as error:
    print(error)

# %% [markdown]
# ## From ids to vectors
#
# The embedding is a table with a row for each entry. Here it is 6 × 16 and random, as in an untrained model. You look
# up an id by taking its row. These 96 numbers equal the published numbers.

# %%
torch.manual_seed(123)
table = torch.nn.Embedding(6, 16)
x = table(ids).detach()  # (6, 16): L tokens, M = 16
names = sentence.replace(",", "").split()
show_numbers(x, names, title="The embedded sentence, 6 × 16", digits=4)

expected = torch.tensor(article["embedding"]["values"])
torch.testing.assert_close(x, expected, atol=5.1e-5, rtol=0)

# %% [markdown]
# The same numbers as a plot, with a cell for each number:

# %%
figure = transformer.embedding_process(names, ids.tolist(), x, vocabulary=6)
keep(
    figure,
    "embedding_process.svg",
    "Six tokens, their ids, and the row of the table that each id takes",
)

# %% [markdown]
# ## A look-up equals a matrix product
#
# In formulas, a look-up is the product of a one-hot vector $o$ (1 at the id and 0 elsewhere) and the table $E$:
# $x = o E$. One article calls `nn.Embedding` a linear layer with the identity as activation, and another article says
# that the tokenizer outputs embeddings. In fact `nn.Embedding` is a look-up that gives the same result as the product,
# and the tokenizer outputs ids.

# %%
learned = model.model.get_input_embeddings().weight.detach()
bank = river.tokens[11].id
one_hot = torch.nn.functional.one_hot(torch.tensor(bank), len(learned)).float()
torch.testing.assert_close(one_hot @ learned, learned[bank])
assert torch.equal(learned[bank], river.token_embeddings[11])
parameters = sum(parameter.numel() for parameter in model.model.parameters())
print(
    f"{tuple(learned.shape)}: {learned.numel():,} of the model's "
    f"{parameters:,} numbers are this table"
)
assert learned.shape == (30522, 384)

# %% [markdown]
# The row of "bank" is the same in every sentence. The next page shows where such rows come from and why "bank" needs
# more than a single row: [2. Words before context](2_words_before_context.py).
