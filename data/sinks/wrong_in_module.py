"""A foreachBatch function whose work is done in the project's own package, as most jobs are written."""

from warehouse.orders import read, reset, write_orders

__all__ = ["read", "reset", "write_batch"]


def write_batch(df, batch_id):
    """A foreachBatch function."""
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    write_orders(query, batch_id, [(row.id, row.key, row.amount) for row in df.collect()])
