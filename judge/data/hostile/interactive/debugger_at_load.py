# expected: exception load_error exited
import pdb
pdb.set_trace()
add = None
