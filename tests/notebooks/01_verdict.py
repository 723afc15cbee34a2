# %% [markdown]
# # Did a reader see a value jump back?

# %%
from labkit.sim.scenarios import facts, find
from labkit.sim.trace import replay

# %% tags=["parameters"]
name = "pipeline.jump_back"  # the scenario

# %%
verdict = facts(replay(find(name).trace))["verdict"]

# %% tags=["nbval-check-output"]
print("visible rows:", verdict.rows, "| seen to go back:", list(verdict.regression))
print(verdict.because.rpartition("; ")[2])

# %% [raw] tags=["expected"]
# visible rows: 2 | seen to go back: [0]
# meanwhile a reader saw 'hello' jump back from 2 to 1

# %%
assert verdict.regression
