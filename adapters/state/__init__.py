"""The state of callbacks as files beside a checkpoint; knows neither loop.

Read `files`, then `attributes` (what is state), `codec` (as which JSON), `arrays` and
`storage`.
"""
