"""What is computed together: pairs whose embeddings fit in memory, and batches of similar length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Pair = tuple[str, str]
"""A candidate and a reference, stripped, and in lower case where the scorer puts them so."""


def ordered_pairs(groups: Sequence[Sequence[Pair]]) -> list[Pair]:
    """The distinct pairs without a blank side, those of one example beside each other.

    Args:
        groups: For each candidate its pairs, one per reference.

    Returns:
        The pairs in an order that does not depend on that of the groups or within them. References that
        were given together stay together, so that what a block of pairs needs, others need little.

    Example:
        >>> ordered_pairs([[("x", "c"), ("x", "a")], [("x", "b"), ("x", "")], [("y", "a")]])
        [('x', 'a'), ('x', 'c'), ('y', 'a'), ('x', 'b')]
    """
    home: dict[str, str] = {}
    for group in groups:
        first = min((reference for _, reference in group if reference), default="")
        for _, reference in group:
            home[reference] = min(first, home.get(reference, first))
    distinct = {pair for group in groups for pair in group if all(pair)}
    return sorted(distinct, key=lambda pair: (home[pair[1]], *pair))


def blocks(
    pairs: Sequence[Pair], sizes: Mapping[str, int], limit: int
) -> Iterator[tuple[list[Pair], frozenset[str]]]:
    """Consecutive pairs whose distinct texts have at most `limit` tokens together, or one pair.

    Args:
        pairs: In their order.
        sizes: Tokens of every text in `pairs`.
        limit: Of the tokens, those kept from the block before included.

    Yields:
        The pairs of a block, and the texts that are kept for later ones: all that they need, as long as
        these have at most half of `limit`. A text that is not kept is embedded again.
    """
    last = {text: index for index, pair in enumerate(pairs) for text in pair}
    block: list[Pair] = []
    texts: set[str] = set()
    size = 0
    for index, pair in enumerate(pairs):
        added = sum(sizes[text] for text in set(pair) - texts)
        if block and size + added > limit:
            kept = _kept([text for text in texts if last[text] >= index], sizes, limit // 2)
            yield block, kept
            block, texts, size = [], set(kept), sum(sizes[text] for text in kept)
            added = sum(sizes[text] for text in set(pair) - texts)
        block.append(pair)
        texts.update(pair)
        size += added
    if block:
        yield block, frozenset()


def _kept(texts: Sequence[str], sizes: Mapping[str, int], limit: int) -> frozenset[str]:
    kept, size = [], 0
    for text in sorted(texts, key=lambda text: (sizes[text], text)):
        size += sizes[text]
        if size > limit:
            break
        kept.append(text)
    return frozenset(kept)


def batches(items: Sequence[Item], sizes: Sequence[int], limit: int) -> Iterator[list[Item]]:
    """Items of similar size, as many as fit in `limit` when padded to the largest; at least one.

    Example:
        >>> list(batches("abcd", [1, 3, 1, 2], limit=4))
        [['a', 'c'], ['d'], ['b']]
    """
    batch: list[Item] = []
    for index in sorted(range(len(items)), key=sizes.__getitem__):
        if batch and (len(batch) + 1) * sizes[index] > limit:
            yield batch
            batch = []
        batch.append(items[index])
    if batch:
        yield batch
