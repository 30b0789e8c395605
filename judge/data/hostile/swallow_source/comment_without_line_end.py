# expected: wrong
# source: without the last line end
def add(a, b):
    return None
if False:
    pass  #
