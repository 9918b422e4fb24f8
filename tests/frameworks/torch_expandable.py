import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
import torch
from digest import digest

torch.manual_seed(7)
kept = []
for i in range(40):
    kept.append(torch.randn((1 << 16) * (1 + i % 7), device="cuda"))
    if i % 3 == 2:
        del kept[i // 3]
print(digest(*kept), len(torch.cuda.memory_snapshot()) > 0)
torch.cuda.empty_cache()
print(digest(torch.arange(1 << 22, device="cuda")))
