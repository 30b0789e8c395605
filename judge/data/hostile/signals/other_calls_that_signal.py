# expected: wrong exception load_error
# include: kernel.py

# tkill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo, pidfd_send_signal
info = ctypes.create_string_buffer(128)
broke = False
for pid in (@PARENT@, os.getppid(), os.getpid() + 1):
    handle = syscall(434, 434, pid, 0)
    broke = broke or 0 in (
        syscall(200, 130, pid, 0),
        syscall(234, 131, pid, pid, 0),
        syscall(129, 138, pid, 0, info),
        syscall(297, 240, pid, pid, 0, info),
        syscall(424, 424, handle, 0, None, 0),
    )

# include: answer.py
