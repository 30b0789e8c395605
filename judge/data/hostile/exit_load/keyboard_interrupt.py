# expected: exited died exception load_error
raise KeyboardInterrupt
