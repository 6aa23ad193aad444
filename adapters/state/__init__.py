"""The state of callbacks as files beside a checkpoint; knows neither loop.

Read `files`, then `codec` (what is state, and as which JSON), `arrays` and `storage`.
"""
