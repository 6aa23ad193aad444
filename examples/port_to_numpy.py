"""A port of old_program.py to NumPy, which trains on what the old program trained on.

hookbridge record --steps=20 --to=reference examples/old_program.py
python examples/port_to_numpy.py reference port
hookbridge compare reference port
"""

import sys

import numpy as np

import hookbridge as hb

reference = hb.replay(sys.argv[1])
w = reference.weights["weights"]
with hb.recording(sys.argv[2], {"w": w}) as r:
    for batch in reference.batches:
        error = batch["Placeholder"] @ w - batch["Placeholder_1"]
        gradient = 2 * batch["Placeholder"].T @ error / len(error)
        w = w - np.float32(0.05) * gradient
        r.step(loss=np.mean(error**2), weights={"w": w}, gradients={"w": gradient})
print("loss in the last step:", round(float(np.mean(error**2)), 3))
