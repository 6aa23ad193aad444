"""Reference runs: what a training did, step by step, and where a port first differs.

Reading order: `files` (what a recording is), `recorder` (`hb.recorder`) with
`graph_step` and `fit_step`, `replay` (`hb.replay`), `port` (`hb.recording`);
`matching`, `differences`, `suspects`, `comparison`, `pages`.
"""
