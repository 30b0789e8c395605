# expected: OWN_GOAL
import sys
sys.modules.clear()

# include: none.py
