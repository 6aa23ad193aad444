"""A port of old_program.py to PyTorch, which trains on what the old program trained on.

hookbridge record --steps=20 --to=reference examples/old_program.py
python examples/port_to_pytorch.py reference port
hookbridge compare reference port
"""

import sys

import hookbridge as hb

try:
    import torch
except ImportError:
    sys.exit("This example needs PyTorch: pip install torch")

reference = hb.replay(sys.argv[1])
model = torch.nn.Linear(4, 1, bias=False)
reference.restore(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

with hb.recording(sys.argv[2], model) as r:
    for batch in reference.batches:
        x, y = (torch.from_numpy(batch[n]) for n in ("Placeholder", "Placeholder_1"))
        loss = torch.nn.functional.mse_loss(model(x), y)
        with r.torch_step(optimizer, loss, batch):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
print("loss in the last step:", round(loss.item(), 3))
