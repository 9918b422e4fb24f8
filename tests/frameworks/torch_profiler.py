import torch
from torch.profiler import ProfilerActivity, profile

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as taken:
    x = torch.randn(512, 512, device="cuda")
    for _ in range(3):
        x = x @ x / 20
    torch.cuda.synchronize()
print("aten::matmul" in {each.key for each in taken.key_averages()})
