# expected: wrong exception load_error exited died protocol timeout
import sys, threading

def tracer(frame, event, argument):
    if event == "line":
        try:
            frame.f_lineno += 1
        except (ValueError, AttributeError):
            pass
    return tracer

sys.settrace(tracer)
threading.settrace(tracer)
frame = sys._getframe()
while frame:
    frame.f_trace = tracer
    frame = frame.f_back

# include: none.py
