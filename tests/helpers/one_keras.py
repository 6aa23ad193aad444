"""For tests that go through a long table with each Keras.

TF 2.15 has one Keras. Later TF has Keras 3 and tf_keras, which has the source of Keras
2.15: with it, only `make test-all` runs these tests.
"""

from __future__ import annotations

import pytest

from hookbridge.ground.compat import LAST_WITH_KERAS2, installed_tf_version

_HAS_TWO = installed_tf_version() > LAST_WITH_KERAS2
_SECOND = pytest.param("tf_keras", marks=pytest.mark.exhaustive)
one_keras = pytest.mark.parametrize(
    "keras", ["keras", *[_SECOND] * _HAS_TWO], indirect=True
)
