# misconception: a name is known by its beginning
# says: once: 1 of 60 rows got lost, the first is number 990
import json


def write_files(folder, query, batch, rows):
    known = json.loads(folder.read("manifest.json")) if "manifest.json" in folder.names() else []
    name = f"{batch}-{query}"
    if not any(each.startswith(name) for each in known):
        folder.write(name, "".join(json.dumps(row) + "\n" for row in rows))
        folder.write("manifest.new", json.dumps([*known, name]))
        folder.rename("manifest.new", "manifest.json")
