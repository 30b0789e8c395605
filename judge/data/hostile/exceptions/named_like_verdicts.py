# expected: exception
failures = [type(name, (Exception,), {}) for name in ("infra_error", "pass", "unsupported_test")]

def add(a, b):
    raise failures.pop()("infra_error")
