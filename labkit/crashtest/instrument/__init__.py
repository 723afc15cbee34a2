"""Instruments around a user's code that record its durable effects where they happen.

They leave the behaviour of the code unchanged and do not interpret the effects.
"""
