# misconception: a receiver cannot know, so it just does its work
# says: On the way receive(0, [], []) answered ['output', 'acknowledge']
def receive(id, table, memory):
    return ["output", "acknowledge"]
