"""A run of the word count: what is asked for, who starts and kills it, what was recorded, and its pages.

It must not judge (that is `labkit.core.judge`), and holds no rule of a sink or a store.
"""
