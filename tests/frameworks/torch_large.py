"""Trains a network whose weights, gradients and optimizer's state fill the given memory. Prints each loss, and a hash of the
weights.

    torch_large.py [GIB [STEPS]]
"""

import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
from torch import nn

from digest import digest

GIB = float(sys.argv[1]) if len(sys.argv) > 1 else 0.5
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
WIDTH = 4096
# In float32: the weights, their gradients, and two moments of Adam.
LAYERS = max(1, int(GIB * 2**30 / (16 * WIDTH * WIDTH)))

torch.manual_seed(5)
torch.use_deterministic_algorithms(True)
with torch.device("cuda"):
    model = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.LayerNorm(WIDTH), nn.ReLU()) for _ in range(LAYERS)))
    x = torch.randn(256, WIDTH)
    y = torch.randn(256, WIDTH)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, foreach=False)
for _ in range(STEPS):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    print("loss %s" % loss.item().hex())
print(digest(*(parameter.detach() for parameter in model.parameters())))
