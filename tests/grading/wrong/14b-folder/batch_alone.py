# misconception: the number of a batch is enough to name its file
# says: A second query after the first, with batches from 0 on: at-most-once
import json


def write_files(folder, query, batch, rows):
    name = f"{batch}.jsonl"
    names = json.loads(folder.read("manifest.json")) if "manifest.json" in folder.names() else []
    if name not in names:
        folder.write(name, "".join(json.dumps(row) + "\n" for row in rows))
        folder.write("manifest.new", json.dumps([*names, name]))
        folder.rename("manifest.new", "manifest.json")
