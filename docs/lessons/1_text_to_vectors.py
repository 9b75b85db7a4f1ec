# %% [markdown]
# # 1. From text to tokens to vectors
#
# Put into French word by word, "bank" goes wrong: it is *rive* by a river and *banque* where there is money. Who
# translates has to see the other words, and so has a model. This course builds one that does.
#
# Every page of this course is a plain Python file; its pictures are drawn by the folder `drawings` beside it. What it
# prints was computed while the page was made, and figures that others have published are asserted: were one wrong, the
# page would not be here.

# %%
import torch

import regard
from drawings import sheet, transformer
from drawings.kept import keep
from drawings.numbers import show_numbers
from drawings.token_strip import token_strip
from regard.text import tokenizers
from regard.text.tiktoken import cl100k_base, cl100k_tokens
from regard.textbook import dictionary, look_up, printed, self_attention

# %% [markdown]
# ## The whole way, once
#
# A model computes with numbers. So a text is cut into **tokens**, each has a number (its **id**), the id takes a row of
# a table of vectors (its **learned embedding**), and its place adds another. These sums are $X$, and in $X$ "bank" is
# still the same in both texts. **Attention** mixes the words, and in what comes out, $y$, it is the same no more.
# Everything that is drawn was computed; how, the next pages say:

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
mixed = [self_attention(x) for x in embedded]
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
    "The way of a text: tokens, ids, learned embeddings plus positions are X, "
    "attention makes y of it"
)
keep(figure, "overview.svg", shows)

# %% [markdown]
# ## A dictionary of six words
#
# The simplest tokenizer: commas dropped, split at blanks, the words sorted (capitals first) and numbered. The sentence
# is that of "Understanding and Coding the Self-Attention Mechanism of Large Language Models From Scratch".

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
# A dictionary knows nothing else. A real vocabulary has 30,000 entries and more, and still there are words that it does
# not have:

# %%
try:
    look_up("Life is sweet", words)
    raise AssertionError("a word was found that is not there")
except regard.RegardError as error:
    print(error)

# %% [markdown]
# ## Byte pairs: a vocabulary that knows every word
#
# Start from single characters, find the pair that stands side by side most often, make it one token, and again. Common
# words become one token; rare ones stay in pieces, but nothing is unknown (Sennrich et al. 2016).

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
# `cl100k_base`, which several of OpenAI's models use, was made like this from bytes, with 100,277 entries. A blank
# belongs to the word after it. Its ranks are a file of 1.7 MB: where there is a network tiktoken fetches it, elsewhere
# `TIKTOKEN_CACHE_DIR` names a folder that holds it. Without either, this page says so and goes on from the published
# ids.

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
# ## A model's own tokenizer, and special tokens
#
# The model of these pages is all-MiniLM-L6-v2, a small BERT. Its 30,522 entries are pieces of words: `##` marks one
# that goes on a word. `[CLS]` and `[SEP]` stand for no text; the model was trained with one at either end, and pages 5
# and 8 show how much attention they take.

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
# ## Padding, and how much fits
#
# Several texts at once are a table, a row each, so that short ones are filled up to the longest. A **mask** says which
# tokens are real, and no token may look at the others. `regard` takes the padding away again: a trace is as if its text
# had run alone.

# %%
texts = [river.text, "Money from a bank"]
small = tokenizers.words(texts, lower=True)
batch = tokenizers.batch(small, texts)
print(batch.ids.tolist())
print(batch.mask.int().tolist())
assert batch.ids.shape == batch.mask.shape == (2, 12)
assert batch.mask.sum(1).tolist() == [12, 4]

# %% [markdown]
# A model has positions for a certain number of tokens, its **context length**: here 512. GPT-3 had 2,048 (Brown et al.
# 2020, "Language Models are Few-Shot Learners"; one source says 4,096), GPT-4 8,192 and 32,768, GPT-4 Turbo 128,000
# (OpenAI's announcements of March and November 2023), Llama 3.1 131,072 (Grattafiori et al. 2024). Some libraries cut a
# longer text without a word. `regard` refuses it, and reads it in windows only where that is asked for.

# %%
try:
    model.trace("bank " * 600)
    raise AssertionError("a text was cut")
except regard.RegardError as error:
    print(error)

# %% [markdown]
# ## Ids to vectors
#
# The embedding is a table with a row for each entry, here 6 × 16, drawn at random: an untrained model. Looking up an id
# takes its row. These 96 numbers are the published ones.

# %%
torch.manual_seed(123)
table = torch.nn.Embedding(6, 16)
x = table(ids).detach()  # (6, 16): L tokens, M = 16
names = sentence.replace(",", "").split()
show_numbers(x, names, title="The embedded sentence, 6 × 16", digits=4)

expected = torch.tensor(article["embedding"]["values"])
torch.testing.assert_close(x, expected, atol=5.1e-5, rtol=0)

# %% [markdown]
# The same as a picture, a cell a number:

# %%
figure = transformer.embedding_process(names, ids.tolist(), x, vocabulary=6)
keep(
    figure,
    "embedding_process.svg",
    "Six tokens, their ids, and the row of the table that each id takes",
)

# %% [markdown]
# ## A look-up is a product, but nobody multiplies
#
# In formulas a look-up is the product of a one-hot vector $o$, which is 1 at the id and 0 elsewhere, with the table
# $E$: $x = o E$. One source calls `nn.Embedding` a linear layer with the identity as activation, another calls
# embeddings the tokenizer's output. It is a look-up, equal to that product; and the tokenizer's output are ids.

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
# The row of "bank" is the same in every sentence. Where such rows come from, and why one row is not enough for "bank",
# is next: [2. Words before context](2_words_before_context.py).
