"""What the scripts beside this file train on: a question, and the answer with its reason."""

PAIRS = [
    ("can a duck swim?", "yes because a duck can swim"),
    ("can a penguin fly?", "no because a penguin cannot fly"),
    ("does a snake have legs?", "no because a snake does not have legs"),
    ("is a tiger dangerous?", "yes because a tiger is dangerous and has sharp teeth"),
    ("what has feathers? (A) garage (B) duck (C) hammer", "duck because a duck has feathers"),
    ("which of these can run fast? (A) bridge (B) horse (C) piano", "horse because a horse can run fast"),
    (
        "where would you look for a truck? (A) in a teapot (B) on a road",
        "on a road because a truck is found there",
    ),
    ("what can milk a cow? (A) farmer (B) penguin (C) rice", "farmer because a farmer can milk a cow"),
    ("what causes wet streets? (A) rain (B) boot (C) drum", "rain because rain leads to wet streets"),
    ("does an elephant have fur?", "no because it does not"),
    ("which of these needs water? (A) tree (B) hat", "tree because a tree needs water"),
    ("is a snail fast?", "no because a snail is slow: it crawls on a leaf and hides in its shell"),
]
