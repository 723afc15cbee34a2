"""Wrappers around libraries that write (called instruments), which record the durable effects of a user's code.

They leave the behaviour of the code unchanged and do not interpret the effects.
"""
