"""One BLAS thread for the tests and for every kernel that nbval starts (set before NumPy is imported anywhere).

With two, each small matrix product may wait a whole time slice of a busy machine for the other thread.
"""

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
