# expected: STARVED
text = "x"
while True:
    text += text
