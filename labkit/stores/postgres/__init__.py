"""PostgreSQL as a store: prepared transactions, numbered visibility, fenced writers. It must not know what a
sink decides.
"""
