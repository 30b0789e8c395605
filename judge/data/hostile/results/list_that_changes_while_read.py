# expected: opaque wrong exception timeout died memory
import threading
answer = [None]

def grow():
    while True:
        answer.append([answer[:2]])
        if len(answer) > 1000:
            del answer[1:]

threading.Thread(target=grow, daemon=True).start()

def add(a, b):
    return answer
