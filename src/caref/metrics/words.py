"""The words of an explanation, as the metrics over text count them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

WORDS = "lower-case runs of letters and digits"
"""What `words` takes for a word; a part of fingerprints."""

_STOP_WORDS = """
    a an the this that these those
    i me my mine myself we us our ours ourselves you your yours yourself he him his himself she her hers
    herself it its itself they them their theirs themselves one ones who whom whose which what
    someone somebody something anyone anybody anything everyone everybody everything nobody nothing none
    am is are was were be been being do does did doing done have has had having
    can could may might must shall should will would cannot
    no not nor neither never
    s t m d re ll ve n don doesn didn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn mustn ain
    dont doesnt didnt isnt arent wasnt werent cant wont wouldnt couldnt shouldnt
    and or but if then else so because since as while although though than unless until whether either both
    therefore thus hence
    of at by for with about against between into through during before after above below to from up down in
    out on off over under upon within without per via
    here there when where why how
    all any each every few more most much many other others some such only own same too very just also even
    still again once lot lots always ever
    answer answers choice choices option options correct
    mean means meaning imply implies implied infer inferred assume assumed rephrasing sentence sentences
"""

STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Function words of English, negations, the pieces of contractions, and the words of frames that say
nothing of their own: "the answer is", "just because it is ... does not mean", "is a rephrasing of"."""

STOP_WORDS_SHA256 = hashlib.sha256(" ".join(sorted(STOP_WORDS)).encode()).hexdigest()

_WORD = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """The words of a text: runs of letters and digits of any script, in lower case and in order.

    Apostrophes and hyphens part words, so that ``isn't`` and a tokenizer's ``isn ' t`` are the same.

    Example:
        >>> words("A dog's well-known BARK.")
        ['a', 'dog', 's', 'well', 'known', 'bark']
    """
    return _WORD.findall(text.lower())


def content_words(text: str) -> set[str]:
    """The distinct words of a text that are not in `STOP_WORDS`; inflections are words of their own.

    Example:
        >>> sorted(content_words("The answer is a bank, because it isn't a boat."))
        ['bank', 'boat']
    """
    return set(words(text)) - STOP_WORDS


def ngrams(tokens: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """The runs of `n` words, in order; none of a shorter text.

    Example:
        >>> ngrams(["a", "dog", "barks"], 2)
        [('a', 'dog'), ('dog', 'barks')]
    """
    return list(zip(*(tokens[start:] for start in range(n)), strict=False))
