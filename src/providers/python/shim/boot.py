# The first lines a worker runs; everything else comes through its standard input. They are
# simple enough that an interpreter that is too old can still report it.
import sys
if sys.version_info < (3, 8):
    sys.exit("Python 3.8 or newer is required, and this is " + sys.version.split()[0])
# With -c the first place is the working directory: nothing in it may replace a module of ours.
sys.path = [place for place in sys.path if place]
import json, os
requests = os.fdopen(os.dup(0), "rb")
setup = json.loads(requests.readline())
exec(compile(setup["parts"]["main"], "<toolhost main>", "exec"),
     {"__name__": "toolhost_main", "setup": setup, "requests": requests})
