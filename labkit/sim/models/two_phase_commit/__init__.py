"""Two-phase commit with presumed abort, and the textbook abstraction of Gray and Lamport beside it."""
