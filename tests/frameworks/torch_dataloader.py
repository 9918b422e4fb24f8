import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)
data = TensorDataset(torch.randn(512, 16), torch.arange(512))
total = torch.zeros((), device="cuda", dtype=torch.float64)
for x, i in DataLoader(data, batch_size=32, num_workers=3, pin_memory=True):
    total += (x.to("cuda", non_blocking=True).double().sum(1) * i.cuda()).sum()
print(total.item().hex())
