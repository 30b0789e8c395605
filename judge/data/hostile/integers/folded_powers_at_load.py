# expected: TOO_MUCH
LARGE = 7**7**7**7

# include: none.py
