# expected: memory timeout died exception wrong load_error
text = "x"
while True:
    text += text
