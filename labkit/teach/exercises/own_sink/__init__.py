"""A learner's own sink as an exercise: its requests, the store that answers them, and every crash between two of them.

`labkit.teach.exercises.steps` stands beside the learner's code and only says what it wants next. `store` is a program
of its own, the one that has the files open and dies by SIGKILL. `trials` puts both together and lets the one judge say
what is left. The store, its files and the kill are real; the engine that repeats a batch is simulated. This package
must not judge by itself, and must not run a learner's code outside of `Answer.step`.
"""
