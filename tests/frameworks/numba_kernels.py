import numpy

if not hasattr(numpy, "row_stack"):
    numpy.row_stack = numpy.vstack  # NumPy 2.5 dropped it, and Numba still looks for it
from digest import digest
from numba import cuda


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


x = cuda.to_device(numpy.arange(5000, dtype=numpy.float32))
y = cuda.to_device(numpy.ones(5000, dtype=numpy.float32))
for _ in range(3):
    saxpy[40, 128](2.0, x, y)
print(digest(y.copy_to_host()))
