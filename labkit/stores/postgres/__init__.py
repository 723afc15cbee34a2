"""PostgreSQL as a store: tables, prepared transactions, and the connections to the server."""
