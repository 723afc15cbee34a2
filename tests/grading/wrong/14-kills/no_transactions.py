# misconception: BEGIN and COMMIT change nothing, every request lasts at once
# says: guarantee(['BEGIN', 'LOOK', 'ROW', 'ROW', 'MARK', 'COMMIT']) answered 'at-least-once'
def guarantee(requests):
    rows = [f"row {number}" for number in range(requests.count("ROW"))]

    def call(table, some):
        names = iter(rows)
        for request in some:
            if request == "LOOK" and "MARK" in table:
                return
            if request in ("ROW", "MARK"):
                table.append("MARK" if request == "MARK" else next(names))

    lost = twice = False
    for place in range(len(requests) + 1):
        table = []
        call(table, requests[:place])
        call(table, requests)
        lost = lost or any(row not in table for row in rows)
        twice = twice or any(table.count(row) > 1 for row in rows)
    if lost:
        return "none" if twice else "at-most-once"
    return "at-least-once" if twice else "exactly-once"
