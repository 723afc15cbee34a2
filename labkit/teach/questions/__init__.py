"""Questions that a learner answers before a run: their texts, the form, and the comparison with the run's result.

The file `NN.toml` has one table for each question of notebook NN.
"""
