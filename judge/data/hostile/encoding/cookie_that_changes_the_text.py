# expected: wrong
# source: the value of an expression
# in UTF-7 the comment ends, and a line that exits follows
"# coding: utf-7\n# +AAo-raise SystemExit(0)\ndef add(a, b):\n    return None\n"
