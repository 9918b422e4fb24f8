import sys

import torch
from torch import nn

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10
torch.manual_seed(3)
layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.1)
model = nn.TransformerEncoder(layer, 2).cuda()
head = nn.Linear(128, 50).cuda()
optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-3)
for step in range(steps):
    x = torch.randn(8, 32, 128, device="cuda")
    y = torch.randint(0, 50, (8, 32), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(head(model(x)).flatten(0, 1).float(), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex())
