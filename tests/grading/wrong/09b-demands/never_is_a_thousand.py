# misconception: a number that is large enough stands for never
# says: 'interval': 2000000, 'checkpoint': 500000, 'downtime': 1000000}) answered [2, 3]
def broken(store, job):
    never = 1000
    open_ = never if store["open"] is None else store["open"]
    sealed = never if store["sealed"] is None else store["sealed"]
    return [
        number
        for number, bad in enumerate(
            [
                store["shows"] != "committed",
                open_ <= job["interval"],
                sealed <= job["checkpoint"] + job["downtime"],
                store["ends"] != "anybody",
                store["again"] != "nothing",
            ],
            1,
        )
        if bad
    ]
