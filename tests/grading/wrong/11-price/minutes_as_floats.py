# misconception: a minute is exact as a floating-point number
# says: price({'at': 36028797018963974}, [[0, 98765432101], [4294967292, 0], [36028797018963973, 9876
def price(order, versions):
    begun = [version for version in versions if float(version[0]) <= float(order["at"])]
    return max(begun, key=lambda version: float(version[0]))[1]
