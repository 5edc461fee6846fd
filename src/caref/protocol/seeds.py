"""The 60 seeds of FEB, one per split, and naming some of them."""

from __future__ import annotations

import re

from caref.errors import CarefError

# fmt: off
FEB_SEEDS: tuple[int, ...] = (
    7004, 3639, 6290, 9428, 7056, 4864, 4273, 7632, 2689, 8219, 4523, 2175, 7356, 8975, 51,
    4199, 4182, 1331, 2796, 6341, 7009, 1111, 1967, 1319, 741, 7740, 1335, 9933, 6339, 3112,
    1349, 8483, 2348, 834, 6895, 4823, 2913, 9962, 178, 2147, 8160, 1936, 9991, 6924, 6595,
    5358, 2638, 6227, 8384, 2769, 4512, 2051, 4779, 2498, 176, 9599, 1181, 5320, 588, 4791,
)
# fmt: on
"""Split number to seed. Source: Marasovic et al., 2022, arXiv:2111.08284."""


def parse_splits(text: str) -> tuple[int, ...]:
    """Split numbers from a list such as ``"0-4,7"``; ``"all"`` is every one.

    Raises:
        CarefError: If the text is no such list, names a split twice, or one that is not there.

    Example:
        >>> parse_splits("0-2,7")
        (0, 1, 2, 7)
        >>> [FEB_SEEDS[split] for split in parse_splits("0-2")]
        [7004, 3639, 6290]
    """
    if text.strip() == "all":
        return tuple(range(len(FEB_SEEDS)))
    splits: list[int] = []
    for item in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9})\s*)?", item)
        if match is None:
            raise CarefError(f"splits must be numbers and ranges such as 0-4,7 or the word all, got {text!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise CarefError(f"the range {item.strip()!r} runs backwards; write {last}-{first}")
        if last >= len(FEB_SEEDS):
            raise CarefError(f"there is no split {last}; splits are 0 to {len(FEB_SEEDS) - 1}")
        splits += range(first, last + 1)
    twice = sorted({split for split in splits if splits.count(split) > 1})
    if twice:
        raise CarefError(f"split {twice[0]} is named twice in {text!r}")
    return tuple(splits)
