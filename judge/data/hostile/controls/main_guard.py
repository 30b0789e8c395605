# expected: pass pass pass
def add(a, b):
    return a + b

if __name__ == "__main__":
    print(add(int(input()), int(input())))
