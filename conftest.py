"""One BLAS thread for the tests and for every kernel that nbval starts (set before NumPy is imported anywhere).

With two, each small matrix product may wait a whole time slice of a busy machine for the other thread.
"""

import os

from src.course.notebooks import ONE_THREAD  # imports no NumPy

for variable, count in ONE_THREAD.items():
    os.environ.setdefault(variable, count)
