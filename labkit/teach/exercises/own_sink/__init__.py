"""An exercise in which learners write a sink: its requests, the store that executes them, and crashes between them.

`labkit.teach.exercises.steps` runs next to the learner's code and returns the sink's next request. `store` is a
separate program that has the files open and dies by SIGKILL. `trials` runs a sink with kills between its requests and
passes the final rows to the judge of real runs. The store, its files and the kill are real; the engine that repeats a
batch is simulated.
"""
