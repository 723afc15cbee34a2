"""The harness runs a job under test: its driver, the reader outside it, and cleaning up after it."""
