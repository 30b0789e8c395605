# expected: wrong exception load_error
import os
broke = "@SECRET@" in os.environ or os.getenv("@SECRET@") is not None

# include: answer.py
