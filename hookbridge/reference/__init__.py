"""Reference runs: what a training did, step by step, and where a port first differs.

Reading order: `array_norms`, `recording_files` (what a recording is) with
`recording_writer`, `recorder` (`hb.recorder`) with `graph_step`, `graph_gradients` and
`fit_step`, `replay` (`hb.replay`), `port` (`hb.recording`); `variable_matching`,
`measures`, `differences`, `suspects` with `update_suspects`, `comparison`
(`hb.compare`), `pages`.
"""
