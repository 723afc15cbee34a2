# misconception: names that differ in their case alone are one name
# says: 2 of 60 rows got lost, the first is number 997
import json


def write_files(folder, query, batch, rows):
    own = f"{batch}-of-{query.lower()}"
    listed = json.loads(folder.read("manifest.json")) if "manifest.json" in folder.names() else []
    if own not in listed:
        folder.write(own, "\n".join(map(json.dumps, rows)))
        folder.write("manifest.part", json.dumps([*listed, own]))
        folder.rename("manifest.part", "manifest.json")
