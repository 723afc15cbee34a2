# misconception: Python calls itself as often as the table is long
# says: raised RecursionError
def receive(id, table, memory):
    def is_known(ids):
        return bool(ids) and (ids[0] == id or is_known(ids[1:]))

    return ["acknowledge"] if is_known(table) else ["output and note", "acknowledge"]
