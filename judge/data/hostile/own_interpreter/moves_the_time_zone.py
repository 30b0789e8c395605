# expected: wrong
import os, time
os.environ["TZ"] = "Pacific/Kiritimati"
time.tzset()

def add(a, b):
    return time.tzname[0]
