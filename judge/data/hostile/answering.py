send(frame({"id": "load"}))
for request in requests():
    send(answer(request["id"], request))
