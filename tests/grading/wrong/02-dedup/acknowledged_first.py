# misconception: the sender should not wait, so it is told first
# says: On the way receive(0, [], []) answered ['acknowledge', 'output and note']
def receive(id, table, memory):
    if id in table:
        return ["acknowledge"]
    return ["acknowledge", "output and note"]
