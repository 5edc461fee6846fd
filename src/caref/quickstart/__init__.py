"""What the quickstart runs on: a few dozen sentences of ours and a tiny model with random weights."""
