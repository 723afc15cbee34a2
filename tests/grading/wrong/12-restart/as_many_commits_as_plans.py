# misconception: every plan that is left has its commit
# says: ) answered 1; spark continues with 2.
def next_step(engine, left):
    folder = "offsets/" if engine == "spark" else "ha/"
    names = [name.removeprefix(folder) for name in left if name.startswith(folder)]
    numbers = [int(name) for name in names if name.isdigit()]
    if engine == "flink":
        return max(numbers, default=0) + 1
    if not numbers:
        return 0
    commits = [name for name in left if name.startswith("commits/") and name[8:].isdigit()]
    return max(numbers) + (len(commits) >= len(numbers))
