"""A small network with dropout, Adam and a schedule, in torch: slow until a file appears.

Without the state of any of them, or of the random generators, the curve after a resume is another one.
"""

import random
import sys
import time
from pathlib import Path

import torch

from runtime_client import training
from runtime_client.training.for_torch import BatchOrder, PreemptibleLoop

n_steps, hurry = int(sys.argv[1]), Path(sys.argv[2])
random.seed(7)
torch.manual_seed(7)
x = torch.randn(96, 4)
y = x.sum(1, keepdim=True)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_steps)

loop = PreemptibleLoop(model=model, optimizer=optimizer, scheduler=scheduler, every=20)
batches = BatchOrder(96, batch_size=16, seed=7)
for step in loop.steps(n_steps):
    if not hurry.exists():
        time.sleep(0.02)
    batch = batches[step]
    loss = torch.nn.functional.mse_loss(model(x[batch]), y[batch] + random.gauss(0.0, 0.1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    training.log_metrics({"loss": loss.item()}, step=step)
