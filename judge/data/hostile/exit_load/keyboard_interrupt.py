# expected: ENDED exception load_error
raise KeyboardInterrupt
