# expected: wrong
# -*- coding: no-such-encoding -*-
# include: none.py
