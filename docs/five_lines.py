# %% [markdown]
# # Five lines
#
# A trace is one text's way through a model, and it shows itself: a word in it, a map, a ranking, each in one line. What
# this page prints is what the same lines show in a notebook of your own.

# %%
import regard

# a small pretrained encoder; or a folder, a GGUF file, a name on the model hub
model = regard.load()
trace = model.trace("Write a poem about a man fishing on a river bank.")
trace.see("bank")

# %% [markdown]
# `see` says what was found, in sentences, and then in a table. Without a word it says what is most worth a look in the
# text. Two texts and words to compare with are one line as well:

# %%
seen = regard.see(
    ["A man fishing on a river bank.", "A man withdrawing money from a bank."],
    "bank",
    references=["river", "money"],
    model=model,
)
seen

# %% [markdown]
# A map is asked by words, and draws itself into matplotlib's axes. What “bank” gives “river” in layer 0, one number a
# head; the mean over the query's tokens, the sum over the key's:

# %%
weights = trace.attention[0]["bank", "river"]  # (H,)
head = int(weights.argmax())
print(
    f"head {head} gives most: {weights[head]:.3f}; the mean of the heads is "
    f"{weights.mean():.3f}"
)
assert abs(float(weights.mean()) - 0.252) < 5e-4

axes = trace.attention[0].plot(head=head)

# %% [markdown]
# What the word became, and what is behind it, measured by ablating one token or head after the other:

# %%
vector = trace["bank"]  # (M,) the word's contextual embedding
# pooled and normalised as the model's own folder says
sentence = trace.embedding()
print(
    f"{len(vector)} numbers of the word, {len(sentence)} of the sentence, of "
    f"length {sentence.norm():.3f}"
)

why = model.why(trace, "bank")
why

# %% [markdown]
# Every number is there as data: `seen.summary`, `seen.findings()`, `why.tokens`, `why.to_frame()` where pandas is
# installed. [From text to vectors](lessons/1_text_to_vectors.py) is where the course begins.

# %%
for sentence in seen.findings():
    print(sentence)
assert seen.summary.pairs[0].token_embeddings_equal
assert why.tokens[0].effect == max(cause.effect for cause in why.tokens)
