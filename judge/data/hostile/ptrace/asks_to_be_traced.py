# expected: wrong exception load_error
# include: kernel.py

# 0 is traceme: the parent would have to handle every signal of this process
broke = syscall(101, 117, 0, 0, 0, 0) == 0

# include: answer.py
