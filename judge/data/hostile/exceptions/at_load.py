# expected: exited died exception load_error memory
class Failure(BaseException):
    def __str__(self):
        return "x" * 50_000_000

raise Failure
