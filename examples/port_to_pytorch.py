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
# A kernel is [in, out] in TensorFlow and [out, in] in PyTorch.
with torch.no_grad():
    model.weight.copy_(torch.from_numpy(reference.weights["weights"].T))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)


def weights():
    return {"weight": model.weight.detach().numpy().T}


with hb.recording(sys.argv[2], weights()) as r:
    for batch in reference.batches:
        x, y = (torch.from_numpy(batch[n]) for n in ("Placeholder", "Placeholder_1"))
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        gradients = {"weight": model.weight.grad.numpy().T}
        optimizer.step()
        r.step(loss=loss.item(), weights=weights(), gradients=gradients, batch=batch)
print("loss in the last step:", round(loss.item(), 3))
