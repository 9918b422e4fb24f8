import cupy
from digest import digest

kernel = cupy.RawKernel("extern \"C\" __global__ void triple(float* x, int n) {"
                        " int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 3; }", "triple")
x = cupy.arange(10000, dtype=cupy.float32)
for _ in range(5):
    kernel((40,), (256,), (x, cupy.int32(10000)))
print(digest(cupy.asnumpy(x)), float((x.reshape(100, 100) @ x.reshape(100, 100)).sum()))
print(digest(cupy.asnumpy(cupy.fft.fft(x))), digest(cupy.asnumpy(cupy.sort(-x))))
