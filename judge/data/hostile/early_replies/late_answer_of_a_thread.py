# expected: protocol wrong died timeout
# include: wire.py

# answers call n + 1 with the id of call n, once that call is over
values = [0, 1000001, 1000001]

def late(number, value):
    time.sleep(0.05)
    send(frame({"id": number, "v": value}))

def add(a, b):
    threading.Thread(target=late, args=(call_id(), values.pop(0))).start()
    if len(values) < 2:
        time.sleep(0.2)
    return None
