# expected: wrong exception load_error exited died protocol timeout
import sys

def profile(frame, event, argument):
    if event == "c_return" or frame.f_code.co_name not in ("add", "<module>"):
        raise SystemExit(0)

def add(a, b):
    sys.setprofile(profile)
    return None
