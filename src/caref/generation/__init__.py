"""From a trained model to predictions: batched decoding, and how sure the model is of its answer."""
