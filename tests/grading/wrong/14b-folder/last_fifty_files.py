# misconception: a manifest has a few names
# says: 10 of 60 rows got lost, the first is number 990
import json


def write_files(folder, query, batch, rows):
    known = json.loads(folder.read("manifest.json")) if "manifest.json" in folder.names() else []
    name = f"{query}-{batch}.jsonl"
    if name not in known:
        folder.write(name, "".join(json.dumps(row) + "\n" for row in rows))
        folder.write("manifest.new", json.dumps([*known, name][-50:]))
        folder.rename("manifest.new", "manifest.json")
