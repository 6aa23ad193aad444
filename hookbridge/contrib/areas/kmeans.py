"""`tf.contrib.factorization.KMeansClustering`, with the old name of its seed."""

from __future__ import annotations

from hookbridge.estimator import restored_package


class KMeansClustering(restored_package.namespaces().v1.experimental.KMeans):  # type: ignore[misc]
    """The estimator of Estimator's package, whose seed was called `random_seed`."""

    def __init__(
        self,
        num_clusters: int,
        model_dir: str | None = None,
        initial_clusters: object = "random",
        distance_metric: str = "squared_euclidean",
        random_seed: int = 0,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None,
        config: object = None,
        feature_columns: object = None,
    ) -> None:
        super().__init__(
            num_clusters,
            model_dir,
            initial_clusters,
            distance_metric,
            random_seed,
            use_mini_batch,
            mini_batch_steps_per_iteration,
            kmeans_plus_plus_num_retries,
            relative_tolerance,
            config,
            feature_columns,
        )
