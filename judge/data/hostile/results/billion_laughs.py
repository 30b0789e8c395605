# expected: opaque wrong exception timeout memory
# ten references to ten references to ...
def add(a, b):
    answer = ["ha"]
    for _ in range(12):
        answer = [answer] * 10
    return answer
