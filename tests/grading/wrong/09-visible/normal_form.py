# misconception: names that look alike are the same
# says: 'café'
from unicodedata import normalize


def visible(log):
    log = [(what, normalize("NFC", name)) for what, name in log]
    found = []
    for offset, (what, name) in enumerate(log):
        if what == "plain":
            found.append(offset)
        if what == "write":
            ends = [each for each, whose in log[offset:] if whose == name and each != "write"]
            if not ends:
                return found
            if ends[0] == "commit":
                found.append(offset)
    return found
