# misconception: a sink that returns at its look commits what is open
# says: guarantee(['BEGIN', 'ROW', 'LOOK', 'MARK', 'COMMIT']) answered 'at-least-once'
def guarantee(requests):
    rows = [f"row {number}" for number in range(requests.count("ROW"))]

    def call(table, some):
        names, held, is_open = iter(rows), [], False
        for request in some:
            if request == "LOOK" and "MARK" in table:
                table += held
                return
            if request == "BEGIN":
                is_open = True
            elif request == "COMMIT":
                table += held
                held, is_open = [], False
            elif request != "LOOK":
                (held if is_open else table).append("MARK" if request == "MARK" else next(names))

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
