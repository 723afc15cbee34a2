# misconception: a reader may know a file before it is there
# says: A reader could not read: there is no
import json


def write_files(folder, query, batch, rows):
    name = f"{query.encode().hex()}-{batch}.jsonl"
    names = json.loads(folder.read("manifest.json")) if "manifest.json" in folder.names() else []
    if name not in names:
        folder.write("manifest.new", json.dumps([*names, name]))
        folder.rename("manifest.new", "manifest.json")
        folder.write(name, "".join(json.dumps(row) + "\n" for row in rows))
