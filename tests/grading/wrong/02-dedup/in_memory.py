# misconception: remembering an id is enough, it need not be on disk
# says: On the way receive(0, [], []) answered ['output', 'remember', 'acknowledge']
def receive(id, table, memory):
    if id in memory:
        return ["acknowledge"]
    return ["output", "remember", "acknowledge"]
