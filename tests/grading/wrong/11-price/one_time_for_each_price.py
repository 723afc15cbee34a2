# misconception: no price comes again
# says: price({'at': 36028797018963973}, [[4294967292, 0], [36028797018963973, 98765432101], [3602879
def price(order, versions):
    begins = {cost: begin for begin, cost in versions if begin <= order["at"]}
    return max(begins, key=begins.get)
