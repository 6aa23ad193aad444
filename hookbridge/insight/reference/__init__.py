"""Reference runs: what a training did, step by step, and where a port first differs.

Reading order: `recording_files` (what a recording is), `recorder` (`hb.recorder`) with
`graph_step`, `graph_gradients` and `fit_step`, `replay` (`hb.replay`), `port`
(`hb.recording`); `variable_matching`, `differences`, `suspects`, `comparison`
(`hb.compare`), `pages`.
"""
