# expected: pass pass pass
import threading

def add(a, b):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(a + b))
    thread.start()
    thread.join()
    return answers[0]
