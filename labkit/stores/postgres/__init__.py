"""PostgreSQL as a store: prepared transactions, numbered visibility, fenced writers."""
