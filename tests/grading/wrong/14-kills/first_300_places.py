# misconception: three hundred places of a kill are enough
# says: guarantee(['LOOK', 'LOOK', 'BEGIN', 'COMMIT', 'BEGIN', 'COMMIT', 'BEGIN', 'CO
def guarantee(requests):
    def call(stored, some):
        row, held = 0, None
        for request in some:
            if request == "LOOK" and "MARK" in stored:
                return
            if request == "BEGIN":
                held = []
            elif request == "COMMIT":
                stored += held
                held = None
            elif request != "LOOK":
                row += request == "ROW"
                (stored if held is None else held).append("MARK" if request == "MARK" else row)

    lost = twice = False
    for place in range(min(300, len(requests)) + 1):
        stored = []
        call(stored, requests[:place])
        call(stored, requests)
        counts = [stored.count(row + 1) for row in range(requests.count("ROW"))]
        lost, twice = lost or 0 in counts, twice or max(counts, default=0) > 1
    if lost:
        return "none" if twice else "at-most-once"
    return "at-least-once" if twice else "exactly-once"
