"""Whole jobs that end together: session clusters, Estimators, parameter servers."""
