# misconception: as many rows as the batch has are its rows
# says: guarantee(['ROW', 'LOOK', 'MARK', 'ROW']) answered 'at-least-once'
def guarantee(requests):
    rows = [f"row {number}" for number in range(requests.count("ROW"))]

    def call(table, some):
        names, held, is_open = iter(rows), [], False
        for request in some:
            if request == "LOOK" and "MARK" in table:
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
        count = len(table) - table.count("MARK")
        lost = lost or count < len(rows)
        twice = twice or count > len(rows)
    if lost:
        return "none" if twice else "at-most-once"
    return "at-least-once" if twice else "exactly-once"
