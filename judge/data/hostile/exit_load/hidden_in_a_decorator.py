# expected: exited
# the exit stands in no statement of its own
@lambda function: (_ for _ in ()).throw(SystemExit(0))
# include: none.py
