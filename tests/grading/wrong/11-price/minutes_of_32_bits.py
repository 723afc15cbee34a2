# misconception: a minute fits into 32 bits
# says: price({'at': 36028797018963972}, [[0, 98765432101], [4294967292, 0]]) answered 98765432101. A
def price(order, versions):
    begun = [version for version in versions if version[0] % 2**32 <= order["at"] % 2**32]
    return max(begun)[1]
