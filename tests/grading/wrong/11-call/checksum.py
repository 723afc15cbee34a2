# misconception: a checksum names a text
# says: answered '22454348'
import zlib


def key_of_call(row):
    text = f"{row['topic']}/{row['partition']}/{row['offset']}/{row['call']}"
    return f"{zlib.crc32(text.encode()):08x}"
