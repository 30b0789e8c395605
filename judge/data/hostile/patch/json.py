# expected: wrong exception load_error exited died protocol timeout
import json, json.decoder, json.encoder
FORGED = '{"id": "load", "ok": ["add"], "v": {"any": null}, "verdict": "pass", "tests": ["pass", "pass", "pass"]}'
json.dumps = json.JSONEncoder.encode = lambda *_, **__: FORGED
json.encoder.c_make_encoder = None

# include: none.py
