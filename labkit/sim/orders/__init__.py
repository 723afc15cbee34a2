"""The order of writes: which durable writes a processing step makes, in which order, and which of them recovery reads.

`labkit.sim.writes` is the vocabulary, `labkit.sim.models.orders` simulates one design, and these modules search many.
"""
