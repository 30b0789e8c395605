# expected: load_error
from __future__ import braces
