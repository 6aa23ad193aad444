"""The state of callbacks as files beside a checkpoint; knows neither loop."""
