# expected: protocol wrong died load_error
# include: wire.py

import pickle

class Answer:
    def __reduce__(self):
        return open, ("@HOME@/rematch_hostile_unpickled", "w")

send(frame(pickle.dumps(Answer())))
send(pickle.dumps(Answer()))

# include: none.py
