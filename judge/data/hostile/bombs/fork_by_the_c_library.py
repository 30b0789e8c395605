# expected: wrong exception load_error timeout died
# include: kernel.py

# fork handlers and all; stops after 64 children
children, tries = 0, 0
while children < 64 and tries < 200_000:
    pid = libc.fork()
    if pid == 0:
        libc.sleep(3)
        libc._exit(0)
    children += pid > 0
    tries += 1
broke = children > 0

# include: answer.py
