"""Records what TensorFlow 2.15's own Estimator does, for `test_parity.py`.

    python tests/estimator/record_golden.py

With TensorFlow 2.15 this rewrites `golden/observed.json`. With any version it also
writes a checkpoint of that version, `golden/checkpoint_<major>_<minor>`, which the
tests on all versions read.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

import estimator_scenarios as scenarios  # noqa: E402

from hookbridge.ground import compat  # noqa: E402

GOLDEN = HERE / "golden"


def main() -> None:
    """Records on the installed version."""
    target = GOLDEN / f"checkpoint_{'_'.join(map(str, compat.tf_version()))}"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        estimator = scenarios.custom(Path(folder))
        estimator.train(scenarios.input_fn(), steps=scenarios.STEPS)
        latest = Path(estimator.latest_checkpoint()).name
        for path in Path(folder).glob(f"{latest}.*"):
            if path.suffix != ".meta":
                shutil.copy(path, target)
    (target / "checkpoint").write_text(f'model_checkpoint_path: "{latest}"\n')
    if compat.tf_version() > (2, 15):
        return
    observed = {}
    for name in scenarios.SCENARIOS:
        with tempfile.TemporaryDirectory() as folder:
            observed[name] = scenarios.observe(name, Path(folder))
    (GOLDEN / "observed.json").write_text(json.dumps(observed, indent=1) + "\n")


if __name__ == "__main__":
    main()
