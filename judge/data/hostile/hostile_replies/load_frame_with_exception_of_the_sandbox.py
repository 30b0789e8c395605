# expected: exception load_error protocol
# include: wire.py

send(frame({"id": "load", "exc": ["infra_error", "PermissionError", "OSError"], "args": "infra_error"}))
time.sleep(30)
