"""PyArrow: a Parquet file, a folder of them, and a stream. A pool of native threads writes some of them."""

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

table = pa.table({"id": [1, 2, 3]})
pq.write_table(table, "one.parquet")  # effect: one.parquet
ds.write_dataset(table, "folder", format="parquet")  # effect: folder folder/*
with pa.OSFile("stream", "wb") as file:  # effect: stream
    file.write(b"1")  # effect: stream
