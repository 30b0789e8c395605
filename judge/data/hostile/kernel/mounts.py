# expected: wrong exception load_error
# include: kernel.py

# mount, open_tree, fsopen, chroot, pivot_root
slash, tmpfs, empty = ctypes.c_char_p(b"/"), ctypes.c_char_p(b"tmpfs"), ctypes.c_char_p(b"")
folder = ctypes.c_char_p(b"/rematch_hostile_nowhere")
broke = syscall(165, 40, tmpfs, folder, tmpfs, 0, None) == 0
broke = broke or syscall(428, 428, -100, slash, 1) >= 0 or syscall(430, 430, tmpfs, 0) >= 0
broke = broke or syscall(161, 51, slash) == 0 or syscall(155, 41, slash, slash) == 0

# include: answer.py
