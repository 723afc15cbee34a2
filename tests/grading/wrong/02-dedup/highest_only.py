# misconception: ids grow, so the largest one is enough
# says: receive(1, [], []) answered ['output and note', 'acknowledge']
def receive(id, table, memory):
    if table and id <= max(table):
        return ["acknowledge"]
    return ["output and note", "acknowledge"]
