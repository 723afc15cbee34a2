"""Instruments around a user's code, which record its durable effects where they happen.

This package must not decide what an effect means, and must not change what the code does.
"""
