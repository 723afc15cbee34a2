# misconception: the last hundred files show which step is next
# says: ) answered 532; spark continues with 1057.
def next_step(engine, left):
    left = left[-100:]
    folder = "offsets/" if engine == "spark" else "ha/"
    names = [name.removeprefix(folder) for name in left if name.startswith(folder)]
    numbers = [int(name) for name in names if name.isdigit()]
    if engine == "flink":
        return max(numbers, default=0) + 1
    return max(numbers) + (f"commits/{max(numbers)}" in left) if numbers else 0
