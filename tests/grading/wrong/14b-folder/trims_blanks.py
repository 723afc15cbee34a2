# misconception: blanks at the end of a text mean nothing
# says: -\n\t' instead of
import json


def write_files(folder, query, batch, rows):
    known = json.loads(folder.read("manifest.json")) if "manifest.json" in folder.names() else []
    name = f"{query}-{batch}.jsonl"
    if name not in known:
        folder.write(name, "".join(json.dumps(row | {"item": row["item"].rstrip(" ")}) + "\n" for row in rows))
        folder.write("manifest.new", json.dumps([*known, name]))
        folder.rename("manifest.new", "manifest.json")
