# misconception: a sum of powers of two says which transfers there are
# says: 'sent': [9]
def consistent(parts):
    def bits(field):
        return sum(1 << t for p in parts for t in p[field])

    return bits("sent") == bits("received") + bits("channels")
