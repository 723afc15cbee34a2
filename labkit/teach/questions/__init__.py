"""Questions that a learner answers before a run: their data, the form, and the comparison with the result.

The file `NN.toml` has one table for each question of notebook NN.
"""
