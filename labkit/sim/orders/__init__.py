"""Search designs of a processing step: which durable writes it makes, in which order, and which recovery reads.

`labkit.sim.writes` defines a design, `labkit.sim.models.orders` simulates one, and these modules compare many.
"""
