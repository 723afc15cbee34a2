# misconception: eight digits put minutes in order as texts
# says: price({'at': 36028797018963973}, [[0, 98765432101], [4294967292, 0], [36028797018963973, 9876
def price(order, versions):
    begun = [version for version in versions if version[0] <= order["at"]]
    return max(begun, key=lambda version: str(version[0]).zfill(8))[1]
