"""The state of callbacks as files beside a checkpoint, for both loops.

Read `files`, then `attributes` (what is state), `codec` (its form in JSON), `arrays`
and `storage`.
"""
