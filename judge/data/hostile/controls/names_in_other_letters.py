# expected: pass pass pass
def add(ä, β):
    '''Größe 😀'''
    return ä + β
