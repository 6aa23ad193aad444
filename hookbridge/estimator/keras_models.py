from typing import Any


def model_to_estimator(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError
