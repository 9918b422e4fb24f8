import torch
from digest import digest

a = torch.arange(100000, device="cuda", dtype=torch.float32)
b = a * 2 + 1
for _ in range(50):
    b = torch.add(b, a)
print(digest(b), b.sum().item(), torch.cuda.get_device_capability())
