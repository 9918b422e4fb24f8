import torch
from digest import digest

torch.manual_seed(6)
streams = [torch.cuda.Stream() for _ in range(3)]
outs = []
for i in range(12):
    host = torch.randn(1 << 18).pin_memory()
    with torch.cuda.stream(streams[i % 3]):
        device = host.to("cuda", non_blocking=True)
        back = torch.empty(1 << 18, pin_memory=True)
        back.copy_((device * 3).sqrt().nan_to_num(), non_blocking=True)
        outs.append(back)
torch.cuda.synchronize()
big = torch.randn(3 << 20)
print(digest(*outs), torch.equal(big.cuda().cpu(), big), host.is_pinned())
