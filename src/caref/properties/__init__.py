"""The paper's table of regularizers, measured: one file a property, and the table of them."""
