"""PostgreSQL as a store: prepared transactions, numbers that give the order of visibility, and fenced writers."""
