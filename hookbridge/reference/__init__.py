"""Reference runs: what a training did, step by step, and where a port first differs.

Reading order: the rooms `recordings`, `ports`, `record` and `causes`, then `comparison`
(`hb.compare`) and `pages`.
"""
