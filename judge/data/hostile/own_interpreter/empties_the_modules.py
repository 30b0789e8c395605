# expected: wrong exception load_error exited died protocol timeout
import sys
sys.modules.clear()

# include: none.py
