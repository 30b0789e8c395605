# expected: wrong exception load_error
# include: kernel.py

# bpf, perf_event_open on this and other processes
attributes = ctypes.create_string_buffer(128)
attributes[0:8] = bytes([1, 0, 0, 0, 128, 0, 0, 0])
broke = syscall(321, 280, 0, ctypes.create_string_buffer(bytes([1, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1]), 128), 72) >= 0
broke = broke or any(syscall(298, 241, attributes, pid, -1, -1, 0) >= 0 for pid in (0, os.getppid(), @PARENT@))

# include: answer.py
