"""The exercise in which learners write a sink: it is killed between its requests to a store, and the judge decides.

`labkit.teach.exercises.steps` runs next to the learner's code and returns the sink's next request. `store` is a
separate program that has the files open and dies by SIGKILL. `trials` runs a sink with kills between its requests and
passes the rows to the judge of real runs. The store, its files and the kill are real; the engine that repeats a batch
is simulated.
"""
