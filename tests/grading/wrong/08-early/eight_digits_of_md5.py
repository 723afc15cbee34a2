# misconception: eight hexadecimal digits of a hash tell names apart
# says: [[1000, 'buewffzz']], {'rjsrmwzd': 'aborted', 'buewffzz': 'prepared'}) answered False, but
import hashlib


def clean(read, ends):
    def short(name):
        return hashlib.md5(name.encode()).hexdigest()[:8]

    aborted = {short(name) for name, how in ends.items() if how == "aborted"}
    return not any(name and short(name) in aborted for _, name in read)
