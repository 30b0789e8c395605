# expected: exception
def add(a, b):
    return int(input()) + int(input())
