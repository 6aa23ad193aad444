"""Hooks under `ParameterServerStrategy`: events come late and in order."""
