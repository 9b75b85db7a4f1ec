# %% [markdown]
# # Five lines
#
# A trace records how a text passes through a model. You can show a word of it, an attention map or a ranking with a
# line of code each. A notebook shows the same output as this page.

# %%
import regard

# a small pretrained encoder; or a folder, a GGUF file, a name on the model hub
model = regard.load()
trace = model.trace("Write a poem about a man fishing on a river bank.")
regard.see(trace, "bank")

# %% [markdown]
# `see` shades each token by its attention and adds a summary of up to three sentences. Without a word, it shows the
# most distinctive links of the text. You can also pass two texts and words to compare with:

# %%
seen = regard.see(
    ["A man fishing on a river bank.", "A man withdrawing money from a bank."],
    "bank",
    references=["river", "money"],
    model=model,
)
seen

# %% [markdown]
# You can index an attention map by words. These are the weights from “bank” to “river” in layer 0, one number per
# head. If a word has several tokens, you get the mean over the query's tokens and the sum over the key's. `plot`
# draws a head with matplotlib:

# %%
weights = trace.attention[0]["bank", "river"]  # (H,)
head = int(weights.argmax())
print(
    f"head {head} has the largest weight, {weights[head]:.3f} (mean of the "
    f"heads: {weights.mean():.3f})"
)
assert abs(float(weights.mean()) - 0.252) < 5e-4

axes = trace.attention[0].plot(head=head)

# %% [markdown]
# Next, you get the word's vector, and the tokens and heads that changed this vector most. `why` ablates each of them
# in turn:

# %%
vector = trace["bank"]  # (M,) the word's contextual embedding
print(f"the word's vector has {len(vector)} numbers")

why = regard.why(model, trace, "bank")
why

# %% [markdown]
# You can read every number as data: `seen.summary`, `seen.findings()`, `why.tokens`, and `why.to_frame()` if pandas is
# installed. The course begins with [From text to vectors](lessons/1_text_to_vectors.py).

# %%
for sentence in seen.findings():
    print(sentence)
assert seen.summary.pairs[0].token_embeddings_equal
assert why.tokens[0].effect == max(cause.effect for cause in why.tokens)
