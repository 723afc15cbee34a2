"""Parquet: the files of a batch count once its manifest, named by query and batch, appears by one rename.

It demands a file system whose rename is atomic, and readers that open only the files that manifests name.
"""

import json
import os
import shutil
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

FOLDER = Path("output")
SCHEMA = pa.schema([("id", pa.int64()), ("key", pa.string()), ("amount", pa.int64())])


def write_batch(rows, query, batch):
    manifest = FOLDER / f"{query}-{batch:06}.json"
    if manifest.exists():
        return
    files = []
    ds.write_dataset(
        pa.Table.from_pylist(rows, SCHEMA),
        FOLDER,
        format="parquet",
        partitioning=["key"],
        partitioning_flavor="hive",
        # Names that no earlier attempt has used; files of a crashed attempt stay, and nobody reads them.
        basename_template=f"{uuid.uuid4()}-{{i}}.parquet",
        existing_data_behavior="overwrite_or_ignore",
        file_visitor=lambda written: files.append(written.path),
    )
    draft = manifest.with_suffix(".draft")
    draft.write_text(json.dumps(files))
    for path in [*files, draft, *{Path(file).parent for file in files}]:
        sync(path)
    draft.replace(manifest)
    sync(FOLDER)


def sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def read():
    files = [file for manifest in sorted(FOLDER.glob("*.json")) for file in json.loads(manifest.read_text())]
    return ds.dataset(files, SCHEMA, partitioning="hive").to_table().to_pylist() if files else []


def reset():
    shutil.rmtree(FOLDER, ignore_errors=True)
