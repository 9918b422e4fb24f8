"""An illegal access is torch's own exception."""
import torch

index = torch.full((4,), 1 << 40, device="cuda", dtype=torch.int64)
try:
    torch.cuda.synchronize()
    x = torch.arange(4, device="cuda")
    print(x[index].sum().item())
except RuntimeError as error:
    print(type(error).__name__, "device-side assert" in str(error))
