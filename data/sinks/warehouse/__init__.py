"""A package of a user: data/sinks/wrong_in_module.py imports it, and its `write_batch` is a sink, too."""
