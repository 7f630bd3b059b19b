"""What holds for all tests and for every kernel that nbval starts.

One BLAS thread, set before NumPy is imported anywhere: with two, each small matrix product may wait a whole time slice
of a busy machine for the other thread. And Ctrl-C as in a terminal: what a shell script starts in the background
ignores it, which tests of interruptions would take for a fault.
"""

import os
import signal

from src.course.notebooks import ONE_THREAD  # imports no NumPy

for variable, count in ONE_THREAD.items():
    os.environ.setdefault(variable, count)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
