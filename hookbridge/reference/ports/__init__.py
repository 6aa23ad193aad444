"""What a port calls: it trains on the recorded batches, and is recorded in turn.

Reading order: `keras_steps`, `torch_modules`, `replay` (`hb.replay`), `port`
(`hb.recording`) with `port_arguments`.
"""
