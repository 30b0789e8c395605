# expected: wrong exception load_error exited died protocol timeout
import sys
frame = sys._getframe(1)
while frame:
    for scope in (frame.f_locals, frame.f_globals):
        for value in list(scope.values()):
            if type(value) is list:
                value.append("pass")
            elif type(value) is dict and value is not globals() and len(value) < 50:
                value.update(verdict="pass", passed=True, result="passed", v="pass")
    frame = frame.f_back

# include: none.py
