# misconception: a name that is found in the list is in the list
# says: 1 of 60 rows got lost, the first is number 991
import json


def write_files(folder, query, batch, rows):
    known = json.loads(folder.read("manifest.json")) if "manifest.json" in folder.names() else []
    name = f"{query}-{batch}.jsonl"
    if name not in "".join(known):
        folder.write(name, "".join(json.dumps(row) + "\n" for row in rows))
        folder.write("manifest.new", json.dumps([*known, name]))
        folder.rename("manifest.new", "manifest.json")
