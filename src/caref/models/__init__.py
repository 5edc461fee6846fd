"""What a base model is: loading it safely, and the names its weights have in each architecture."""
