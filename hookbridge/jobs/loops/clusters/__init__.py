"""Whole jobs that end together: session clusters, Estimators, parameter servers.

Reading order: `session_cluster`, `serve`, `train_and_evaluate`, `parameter_server`.
"""
