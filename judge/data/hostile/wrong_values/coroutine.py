# expected: opaque wrong exception
async def add(a, b):
    return None
