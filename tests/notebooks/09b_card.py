# ---
# jupyter:
#   labkit:
#     needs: [01_verdict]
# ---

# %% [markdown]
# # What does a card say?
#
# {head}

# %% tags=["parameters"]
count = 3


# %%
class Card:
    def _repr_mimebundle_(self, **_):
        return {"text/plain": f"rows: {count}\nguarantee: at-least-once", "text/html": "<b>a card</b>"}


# %% tags=["nbval-check-output"]
print("printed before")
Card()

# %% [raw] tags=["expected"]
# printed before
# rows: 3
# guarantee: at-least-once

# %% tags=["checked"]
assert count == 3

# %% tags=["exercise"]
# exercise 09b-timeout
number = ...

# %% tags=["solution"]
# exercise 09b-timeout
number = 3

# %% tags=["check"]
number
