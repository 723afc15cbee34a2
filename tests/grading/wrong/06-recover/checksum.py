# misconception: names with the same checksum are the same
# says: 'q0-b6054944040-p3-i3'
from zlib import crc32


def recover_and_commit(decided, stored, found):
    due = {crc32(handle.encode()) for vote in stored if vote["batch"] <= decided for handle in vote["handles"]}
    return [["commit" if crc32(handle.encode()) in due else "abort", handle] for handle in found]
