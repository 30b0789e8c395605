# expected: wrong exception load_error exited died protocol timeout
import json
real = json.loads

def loads(text, *arguments, **keywords):
    request = real(text, *arguments, **keywords)
    return {**request, "f": "__eq__", "a": [], "verdict": "pass"} if isinstance(request, dict) else request

json.loads = json.JSONDecoder.decode = loads

# include: none.py
