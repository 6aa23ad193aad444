"""A port in PyTorch is recorded by one line, in TensorFlow's layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hookbridge as hb
from hookbridge import errors

ONE_TENSORFLOW = True


def test_a_recording_of_arrays_has_no_torch_step(tmp_path: Path) -> None:
    recording = hb.recording(tmp_path / "run", {"w": np.ones(2)})
    with (
        recording as r,
        pytest.raises(errors.InvalidArgumentError, match="of a module"),
    ):
        r.torch_step(None, 1.0).__enter__()


def network(torch: Any) -> Any:
    """Two convolutions, a normalization and a matrix."""
    layers = torch.nn
    return layers.Sequential(
        layers.Conv2d(2, 3, 3, padding=1),
        layers.BatchNorm2d(3),
        layers.ReLU(),
        layers.ConvTranspose2d(3, 2, 2, stride=2),
        layers.Flatten(),
        layers.Linear(128, 4),
    )


def test_a_step_of_pytorch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    model = network(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model[5].weight.detach().numpy().T.copy()
    x = torch.randn(5, 2, 4, 4)
    with hb.recording(tmp_path / "run", model) as r:
        for _ in range(2):
            loss = model(x).pow(2).mean()
            with r.torch_step(optimizer, loss, {"x": x.numpy()}):
                optimizer.zero_grad()
                loss.backward()
                raw = model[5].weight.grad.numpy().T.copy()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
                optimizer.step()
    replay = hb.replay(tmp_path / "run")
    shapes = {name: value.shape for name, value in replay.weights.items()}
    assert shapes == {
        "0/kernel": (3, 3, 2, 3),
        "0/bias": (3,),
        "1/gamma": (3,),
        "1/beta": (3,),
        "1/moving_mean": (3,),
        "1/moving_variance": (3,),
        "3/kernel": (2, 2, 2, 3),
        "3/bias": (2,),
        "5/kernel": (128, 4),
        "5/bias": (4,),
    }
    np.testing.assert_array_equal(replay.weights["5/kernel"], before)
    last = replay.recording.steps[1]
    np.testing.assert_array_equal(last.arrays("gradients")["5/kernel"], raw)
    assert last.learning_rate == pytest.approx(0.1)
    other = network(torch)
    assert not replay.restore(other).unmatched_port
    np.testing.assert_array_equal(other[5].weight.detach().numpy().T, before)
    with pytest.raises(errors.CheckpointMismatchError, match="names="):
        replay.restore(torch.nn.Linear(7, 3))
