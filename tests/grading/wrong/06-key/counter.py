# misconception: the database gives every row a number
# says: The row of offset 1 is in the table 2 times, under the keys 0 and 3
numbers = iter(range(1_000_000))


def key(row):
    return next(numbers)
