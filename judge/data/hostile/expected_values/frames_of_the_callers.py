# expected: wrong exception load_error
import re, sys
PATTERN = re.compile("add[(]-?[0-9]+, -?[0-9]+[)] == -?[0-9]+")
text, frame = [], sys._getframe(1)
while frame:
    text += [repr(frame.f_locals), repr(frame.f_globals), repr(frame.f_code.co_consts), repr(frame.f_code.co_names)]
    frame = frame.f_back
broke = bool(PATTERN.search(" ".join(text)))

# include: answer.py
