# expected: opaque wrong exception
def add(a, b):
    answer = {"list": []}
    answer["list"].append(answer)
    answer["self"] = answer
    return answer
