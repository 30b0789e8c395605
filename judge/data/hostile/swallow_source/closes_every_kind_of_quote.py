# expected: wrong
def add(a, b):
    return None

quotes = "'''" + '"' * 3 + "'''"
# ''' + chr(34) * 3 + ''' ) ] } EOF END $( `
