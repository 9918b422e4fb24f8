import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"
import torch
from digest import digest

torch.manual_seed(8)
kept = [torch.randn(1 << (10 + i % 8), device="cuda") for i in range(30)]
print(torch.cuda.get_allocator_backend(), digest(*kept))
del kept
torch.cuda.empty_cache()
