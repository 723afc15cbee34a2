"""Questions that a learner answers before a run: their data (`NN.toml`), asking them, and showing what came.

A question about notebook NN is a table of the file `NN.toml`. This package must not know what a run is.
"""
