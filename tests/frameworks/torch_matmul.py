import torch
from digest import digest

torch.manual_seed(1)
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    for size in (64, 1000, 2048):
        a = torch.randn(size, size, device="cuda").to(dtype)
        b = torch.randn(size, size, device="cuda").to(dtype)
        print(dtype, size, digest(a @ b))
