"""The harness of the crash test of a sink: it runs the job under test, reads the store, and cleans up afterwards."""
