"""What people say of explanations: reading their ratings, and holding metrics against them."""
