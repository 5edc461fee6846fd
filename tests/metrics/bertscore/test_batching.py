from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from caref.metrics.bertscore.batching import batches, blocks, ordered_pairs

TEXTS = st.text(alphabet="abc", max_size=2)
GROUPS = st.lists(st.lists(st.tuples(TEXTS, TEXTS), max_size=3), max_size=8)


@given(groups=GROUPS, seed=st.integers(0, 99))
def test_pairs_are_distinct_and_in_an_order_of_their_own(
    groups: list[list[tuple[str, str]]], seed: int
) -> None:
    pairs = ordered_pairs(groups)
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == {pair for group in groups for pair in group if all(pair)}
    shuffled = [random.Random(seed).sample(group, len(group)) for group in groups]
    random.Random(seed).shuffle(shuffled)
    assert ordered_pairs(shuffled) == pairs


def test_pairs_of_one_example_are_beside_each_other() -> None:
    """Whatever else a candidate is said of: a text that fits every example keeps no examples apart."""
    examples = [(f"z{i}", f"a{i}") for i in range(5)]
    groups = [
        [(candidate, reference) for reference in references]
        for references in examples
        for candidate in ("b", "unk")
    ]
    order = [reference[1] for _, reference in ordered_pairs(groups)]
    assert order == sorted(order)


@given(
    groups=GROUPS,
    limit=st.integers(0, 12),
    sizes=st.dictionaries(TEXTS, st.integers(1, 5)),
)
def test_blocks_hold_all_pairs_within_the_limit(
    groups: list[list[tuple[str, str]]], limit: int, sizes: dict[str, int]
) -> None:
    pairs = ordered_pairs(groups)
    of = {text: sizes.get(text, 1) for pair in pairs for text in pair}
    kept: frozenset[str] = frozenset()
    found = []
    for block, kept_after in blocks(pairs, of, limit):
        texts = {text for pair in block for text in pair}
        assert sum(of[text] for text in texts | kept) <= limit or len(block) == 1
        assert kept_after <= texts | kept
        assert sum(of[text] for text in kept_after) <= limit // 2
        found += block
        kept = kept_after
    assert found == pairs
    assert not kept


def test_batches_are_of_similar_size_and_keep_the_order_of_equal_ones() -> None:
    assert list(batches("abcdef", [2, 9, 1, 2, 1, 2], limit=4)) == [["c", "e"], ["a", "d"], ["f"], ["b"]]
    assert list(batches("", [], limit=4)) == []
