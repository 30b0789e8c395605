# expected: NOT_DATA
async def add(a, b):
    return None
