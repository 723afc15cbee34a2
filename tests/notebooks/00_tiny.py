# %% [markdown]
# # What does a replay do to a count?

# %% tags=["parameters"]
words = ["hello", "world", "hello"]  # the log

# %% [markdown]
# Predict first: how often does `hello` come out when the whole log is replayed once?

# %% tags=["nbval-check-output"]
for word in sorted(set(words)):
    print(word, 2 * words.count(word))

# %% [raw] tags=["expected"]
# hello 4
# world 2

# %%
assert len(words) == 3
