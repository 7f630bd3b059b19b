"""One BLAS thread for the tests and for every kernel that nbval starts (set before NumPy is imported anywhere).

With two, each small matrix product may wait a whole time slice of a busy machine for the other thread.
"""

import os

# OpenBLAS, PyTorch's OpenMP, MKL and macOS's Accelerate each read their own name.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(variable, "1")
