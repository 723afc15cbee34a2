# misconception: words that look the same are the same
# says: steady([['cafe\u0301', 1], ['cafe\u0301', 2], ['café', 1]])
import unicodedata


def steady(seen):
    last = {}
    for word, count in seen:
        same = unicodedata.normalize("NFC", word)
        if count < last.get(same, count):
            return False
        last[same] = count
    return True
