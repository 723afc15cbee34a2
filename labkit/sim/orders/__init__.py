"""The order of writes: which durable writes a step makes, in which order, and what recovery reads of them afterwards.

`writes` is the vocabulary, `labkit.sim.models.orders` the simulator of one design, the other modules search many.
"""
