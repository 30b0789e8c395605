# expected: wrong exception load_error
# files that C libraries open on their own
import ctypes
broke = False
try:
    import sqlite3
    sqlite3.connect("file:@CANARY@?mode=ro&immutable=1", uri=True).execute("select * from sqlite_master")
except (ImportError, sqlite3.OperationalError):
    pass
except sqlite3.DatabaseError:
    broke = True  # "file is not a database" has read it
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
broke = broke or libc.fopen(b"@CANARY@", b"r") is not None

# include: answer.py
