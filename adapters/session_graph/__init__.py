"""What a graph says: its steps, loss, metrics, learning rate and variables."""
