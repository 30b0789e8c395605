# expected: load_error memory died timeout
LARGE = 7**7**7**7

# include: none.py
