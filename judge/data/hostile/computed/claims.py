# expected: wrong exception load_error exited died protocol timeout opaque memory unsupported_test
# settings: {"stateful": True, "entry_points": ("f", "Bad")}
# tests: claims.py
# include: wire.py

def play(errors, reply):
    send(frame({"id": "load", "errors": errors}))
    for number, request in enumerate(requests()):
        send(frame({"id": request["id"], **reply(number, request)}))
# === errors_that_end_loops
play({"Bad": ["Bad", "StopIteration", "Exception"]}, lambda *_: {"exc": ["Bad", "StopIteration"], "args": []})
# === errors_that_end_loops_later
play({"Bad": ["Bad", "StopIteration", "Exception"]}, lambda *_: {"exc": ["Bad"], "args": []})
# === errors_that_leave
play({"Bad": ["Bad", "GeneratorExit", "Exception"], "f": ["f", "SystemExit"]}, lambda *_: {"exc": ["Bad"], "args": []})
# === functions_as_errors
play({"f": ["f", "Exception"], "Bad": ["Bad", "f", "Exception"]}, lambda *_: {"exc": ["f"], "args": [15.5]})
# === errors_of_no_shape
play({"f": 3, "Bad": [[], {}, None, "Exception"]}, lambda *_: {"exc": [], "args": []})
# === errors_that_do_not_fit
play({"Bad": ["Bad", "OSError", "ValueError", "ImportError", "Exception"]}, lambda *_: {"exc": ["Bad"], "args": []})
# === errors_with_attributes
has = {"args": [15.5], "__class__": 15.5, "__traceback__": 3, "__str__": 1, "x": {"handle": 0}, "code": 15.5}
play({"Bad": ["Bad", "Exception"]}, lambda *_: {"exc": ["Bad"], "args": [15.5], "text": "15.5", "has": has})
# === names_as_answers
play({}, lambda *_: {"v": {"handle": "Bad"}})
# === names_inside
play({}, lambda *_: {"v": [{"handle": "f"}]})
# === coroutines
play({}, lambda *_: {"v": True, "awaited": True})
# === coroutines_of_objects
play({}, lambda *_: {"v": {"handle": 0}, "awaited": True, "plain": 15.5})
# === coroutines_that_stop
play({}, lambda *_: {"exc": ["StopAsyncIteration"], "args": [], "awaited": True})
# === the_same_object_for_all
play({}, lambda number, request: {"v": {"handle": 0}, "plain": request["a"][0] if request["a"] else 0})
# === methods_that_are_none
play({}, lambda *_: {"method": True})
# === true_for_all
play({}, lambda *_: {"v": True})
# === texts
play({}, lambda number, request: {"v": "15.5" if request.get("m") == "__str__" else {"handle": number % 2}})
