import torch
import triton
import triton.language as tl
from digest import digest


@triton.jit
def add(a, b, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(a + at, at < n) + tl.load(b + at, at < n), at < n)


@triton.jit
def multiply(a, b, out, SIZE: tl.constexpr):
    row, column = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    product = tl.dot(tl.load(a + row * SIZE + column), tl.load(b + row * SIZE + column))
    tl.store(out + row * SIZE + column, product)


torch.manual_seed(12)
a, b = torch.randn(10000, device="cuda"), torch.randn(10000, device="cuda")
out = torch.empty_like(a)
add[(triton.cdiv(10000, 256),)](a, b, out, 10000, BLOCK=256)
print(digest(out), torch.equal(out, a + b))
a, b = (torch.randn(64, 64, device="cuda", dtype=torch.float16) for _ in range(2))
out = torch.empty(64, 64, device="cuda")
multiply[(1,)](a, b, out, SIZE=64)
print(digest(out))
