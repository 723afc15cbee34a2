# misconception: the first eight letters tell names apart
# says: 13 of 60 rows got lost, the first is number 980
import json


def write_files(folder, query, batch, rows):
    own = f"{batch}-of-{query[:8]}"
    listed = json.loads(folder.read("manifest.json")) if "manifest.json" in folder.names() else []
    if own not in listed:
        folder.write(own, "\n".join(map(json.dumps, rows)))
        folder.write("manifest.part", json.dumps([*listed, own]))
        folder.rename("manifest.part", "manifest.json")
