from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

import caref.generation.answering as answering
from caref.generation.answering import answer, predict
from caref.generation.decoding import Decoded, decode, greedy_config
from caref.methods import METHODS
from caref.models.encoding import EncodedExample, Encoder
from caref.models.loading import ModelSource, load_model, load_tokenizer
from caref.tasks import get_task
from caref.tasks.parsing import NO_EXPLANATION, parse_answer

TOKENS = 8


def say(monkeypatch: pytest.MonkeyPatch, tiny: Any, *texts: str, log_prob: float = -0.1) -> None:
    """Make the model write these texts, each token with this log-probability."""
    waiting = list(texts)

    def scripted(reading: Any, *_: Any, **__: Any) -> list[Decoded]:
        rows = []
        for _row in range(reading.size):
            tokens = tiny.encoder._label_ids(waiting.pop(0))[:-1]
            rows.append(Decoded(tokens, [log_prob] * (len(tokens) + 1)))
        return rows

    monkeypatch.setattr(answering, "decode", scripted)


def close(one: Any, other: Any) -> bool:
    """Equal but for rounding."""
    a, b = one.model_dump(), other.model_dump()
    flat = ("confidence", "answer_mass")
    maps = ("label_probabilities", "label_log_probs_sum", "label_log_probs_mean")
    near = all(a[k] == pytest.approx(b[k], abs=1e-4, rel=1e-4) for k in (*flat, *maps))
    return near and all(a[k] == b[k] for k in a if k not in (*flat, *maps))


@pytest.mark.parametrize("answer_only", [False, True])
def test_batches_change_nothing(tiny: Any, answer_only: bool) -> None:
    encoder = tiny.answer_only if answer_only else tiny.encoder
    questions = tiny.questions()
    alone = answer(tiny.model, encoder, questions, max_new_tokens=TOKENS, batch_size=1)
    order = list(range(len(questions)))
    random.Random(0).shuffle(order)
    shuffled = answer(tiny.model, encoder, [questions[n] for n in order], max_new_tokens=TOKENS, batch_size=3)
    together = answer(tiny.model, encoder, questions, max_new_tokens=TOKENS, batch_size=64)
    assert [one.id for one in together] == [question.id for question in questions]
    assert [one.id for one in shuffled] == [questions[n].id for n in order]
    for n, one in enumerate(alone):
        assert close(one, together[n])
        assert close(one, shuffled[order.index(n)])
    assert len({one.text for one in alone}) > 1


def test_a_temperature_changes_the_candidates_probabilities_alone(tiny: Any) -> None:
    plain = answer(tiny.model, tiny.encoder, tiny.questions(), max_new_tokens=TOKENS)
    scaled = answer(tiny.model, tiny.encoder, tiny.questions(), max_new_tokens=TOKENS, temperature=3.0)
    for before, after in zip(plain, scaled, strict=True):
        assert (before.temperature, after.temperature) == (None, 3.0)
        sums = list((after.label_log_probs_sum or {}).values())
        weights = [math.exp((value - max(sums)) / 3.0) for value in sums]
        expected = [weight / sum(weights) for weight in weights]
        assert list((after.label_probabilities or {}).values()) == pytest.approx(expected)
        changed = {"label_probabilities", "temperature"}
        changed |= {"confidence"} if after.confidence_source == "candidates" else set()
        assert before.model_dump(exclude=changed) == after.model_dump(exclude=changed)


def test_candidates_are_scored_beside_the_text(tiny: Any) -> None:
    for question, given in zip(
        tiny.questions(), answer(tiny.model, tiny.encoder, tiny.questions()), strict=True
    ):
        assert given.label_probabilities is not None
        assert given.label_log_probs_sum is not None
        assert given.label_log_probs_mean is not None
        assert tuple(given.label_probabilities) == question.candidates
        assert math.fsum(given.label_probabilities.values()) == pytest.approx(1)
        assert given.answer_mass == pytest.approx(
            math.fsum(map(math.exp, given.label_log_probs_sum.values()))
        )
        for candidate, total in given.label_log_probs_sum.items():
            tokens = tiny.encoder.answer_ids(candidate)
            expected = math.fsum(tiny.log_probs(question.input, tokens))
            assert total == pytest.approx(expected, abs=1e-4, rel=1e-5)
            assert given.label_log_probs_mean[candidate] == pytest.approx(total / len(tokens), rel=1e-6)


def test_a_known_answer(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, tiny, "yes because it is a dog")
    (given,) = answer(tiny.model, tiny.encoder, tiny.questions(["the dog"], ["yes", "no"]))
    assert (given.label, given.explanation, given.broken) == ("yes", "it is a dog", False)
    assert given.label_probabilities is not None
    assert (given.confidence, given.confidence_source) == (given.label_probabilities["yes"], "candidates")


def test_an_answer_that_is_no_candidate(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, tiny, "red sky because it is a dog", log_prob=-0.25)
    (given,) = answer(tiny.model, tiny.encoder, tiny.questions(["the dog"], ["yes", "no"]))
    assert (given.label, given.confidence_source) == ("red sky", "generated")
    # Its two tokens and the separator's, none of the explanation's.
    assert given.confidence == pytest.approx(math.exp(-0.25 * (tiny.opening + 3)))
    assert given.label_probabilities is not None


def test_a_broken_answer(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, tiny, "red sky", log_prob=-0.25)
    (given,) = answer(tiny.model, tiny.encoder, tiny.questions(["the dog"], ["yes", "no"]))
    assert (given.label, given.explanation, given.broken) == ("red sky", NO_EXPLANATION, True)
    # All of it, the end token too.
    assert given.confidence == pytest.approx(math.exp(-0.25 * (tiny.opening + 3)))


def test_a_candidate_without_a_separator_is_still_that_candidate(
    tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(monkeypatch, tiny, "yes")
    (given,) = answer(tiny.model, tiny.encoder, tiny.questions(["the dog"], ["yes", "no"]))
    assert (given.label, given.broken, given.confidence_source) == ("yes", True, "candidates")


def test_an_empty_generation(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, tiny, "", log_prob=-0.5)
    (given,) = answer(tiny.model, tiny.encoder, tiny.questions(["the dog"], ["yes", "no"]))
    assert (given.text, given.label, given.explanation, given.broken) == ("", "", NO_EXPLANATION, True)
    assert (given.confidence, given.confidence_source) == (
        pytest.approx(math.exp(-0.5 * (tiny.opening + 1))),
        "generated",
    )


def test_free_form_answers(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, tiny, "red because it is a dog", log_prob=-0.25)
    (given,) = answer(tiny.model, tiny.encoder, tiny.questions(["the dog"], []))
    assert (given.label, given.confidence_source) == ("red", "generated")
    assert given.confidence == pytest.approx(math.exp(-0.25 * (tiny.opening + 2)))
    assert given.label_probabilities is given.label_log_probs_sum is given.answer_mass is None


def test_candidates_of_different_number_in_a_batch(tiny: Any) -> None:
    questions = [
        *tiny.questions(["the dog", "a cat"], ["yes", "no"]),
        *tiny.questions(["the sky"], []),
        *tiny.questions(["who runs"], ["bank", "river", "house"]),
    ]
    given = answer(tiny.model, tiny.encoder, questions, max_new_tokens=4)
    assert [len(one.label_probabilities or {}) for one in given] == [2, 2, 0, 3]


def test_a_candidate_named_twice_counts_once(tiny: Any) -> None:
    (twice,) = answer(
        tiny.model, tiny.encoder, tiny.questions(["the dog"], ["yes", "no", "yes"]), max_new_tokens=4
    )
    (once,) = answer(tiny.model, tiny.encoder, tiny.questions(["the dog"], ["yes", "no"]), max_new_tokens=4)
    assert close(twice, once)


def test_a_candidate_is_read_back_in_its_own_spelling(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """WordPiece writes "friend ' s house", and that is the candidate "friend's house"."""
    say(monkeypatch, tiny, "friend's house because it is a dog")
    (given,) = answer(tiny.model, tiny.encoder, tiny.questions(["the dog"]))
    assert given.label == "friend's house"
    assert given.confidence_source == "candidates"
    assert given.text.startswith(tiny.encoder.round_trip("friend's house"))


def test_case_is_the_candidates_own(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, tiny, "yes because it is", "it because it is")
    (given,) = answer(tiny.model, tiny.encoder, tiny.questions(["the dog"], ["Yes", "No"]))
    assert given.label == "Yes"
    # Two that differ in case alone, and the one that was written as it is.
    (given,) = answer(tiny.model, tiny.encoder, tiny.questions(["the dog"], ["it", "IT"]))
    assert given.label == "it"


def test_without_confidence_nothing_is_scored(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "score_answers", None)
    (given,) = answer(
        tiny.model, tiny.encoder, tiny.questions(["the dog"]), confidence=False, max_new_tokens=4
    )
    assert (
        given.confidence is given.confidence_source is given.label_probabilities is given.answer_mass is None
    )


def test_answer_only_puts_the_separator_and_goes_on(tiny: Any) -> None:
    (plain,) = answer(tiny.model, tiny.encoder, tiny.questions(["the dog"]), max_new_tokens=5)
    (given,) = answer(tiny.model, tiny.answer_only, tiny.questions(["the dog"]), max_new_tokens=5)
    # What follows is what the model itself writes after that beginning.
    config = greedy_config(tiny.model, 5)
    (first,) = decode(tiny.read(["the dog"]), config)
    begun = [*first.tokens, *tiny.encoder.separator_ids()]
    told = tiny.encoder.text(tiny.generated("the dog", config, begun))
    assert given.text == f"{plain.text} because {told}"
    # A random model may well write the separator itself.
    parsed = parse_answer(given.text)
    assert (given.label, given.explanation, given.broken) == parsed
    assert not parsed.broken


def test_answer_only_with_nothing_to_add(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model trained to stop after its answer may stop after the separator too; the answer still counts."""
    say(monkeypatch, tiny, "yes", "")
    (given,) = answer(tiny.model, tiny.answer_only, tiny.questions(["the dog"], ["yes", "no"]))
    assert (given.text, given.label, given.explanation, given.broken) == ("yes", "yes", NO_EXPLANATION, True)
    assert given.confidence_source == "candidates"


def test_answer_only_scores_the_end_of_the_answer(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (given,) = answer(
        tiny.model, tiny.answer_only, tiny.questions(["the dog"], ["yes", "no"]), max_new_tokens=2
    )
    assert given.label_log_probs_sum is not None
    end = tiny.encoder.tokenizer.eos_token_id
    expected = math.fsum(tiny.log_probs("the dog", [*tiny.encoder._label_ids("yes")[:-1], end]))
    assert given.label_log_probs_sum["yes"] == pytest.approx(expected, abs=1e-4)
    # A generated answer's probability is its own, not the explanation's that was forced.
    say(monkeypatch, tiny, "red sky", "it is a dog", log_prob=-0.25)
    (given,) = answer(tiny.model, tiny.answer_only, tiny.questions(["the dog"], ["yes", "no"]))
    assert given.label == "red sky"
    assert given.text == "red sky because it is a dog"
    assert given.confidence == pytest.approx(math.exp(-0.25 * (tiny.opening + 3)))


def test_progress_and_mode(tiny: Any) -> None:
    done: list[int] = []
    tiny.model.train()
    try:
        answer(
            tiny.model, tiny.encoder, tiny.questions(), batch_size=3, max_new_tokens=2, on_batch=done.append
        )
        assert done == [3, 3, 1]
        assert tiny.model.training, "the mode is put back"
    finally:
        tiny.model.eval()
    assert answer(tiny.model, tiny.encoder, []) == []


def test_predictions_hold_what_is_right(tiny: Any) -> None:
    (question,) = tiny.questions(["the dog"])
    example = EncodedExample(question, [1], "bank", ("it is", "so"), input_cut=False, target_cut=False)
    (prediction,) = predict(tiny.model, tiny.encoder, [example], max_new_tokens=3)
    (plain,) = answer(tiny.model, tiny.encoder, [question], max_new_tokens=3)
    assert (prediction.gold_label, prediction.gold_explanations) == ("bank", ("it is", "so"))
    assert {
        k: v for k, v in prediction.model_dump().items() if not k.startswith("gold")
    } == plain.model_dump()


@pytest.mark.parametrize("method", ["aq", "lora"])
def test_a_model_with_an_adapter(tiny: Any, tiny_any: Path, method: str) -> None:
    adapted = METHODS.get(method)().apply(load_model(ModelSource(str(tiny_any)))).eval()
    plain = answer(tiny.model, tiny.encoder, tiny.questions(), max_new_tokens=TOKENS)
    for one, other in zip(
        answer(adapted, tiny.encoder, tiny.questions(), max_new_tokens=TOKENS), plain, strict=True
    ):
        assert close(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nle-mini", "nle-minilm"])
@pytest.mark.parametrize("task", ["esnli", "cos_e"])
def test_real_models(shared: Path, name: str, task: str) -> None:
    source = ModelSource(str(shared / "models" / name))
    model = load_model(source).eval()
    described = get_task(task)
    pool = described.load(shared / "data", "validation", skip_bad_rows=True)
    encoder = Encoder(load_tokenizer(source), described.prompts["feb"], model.config)
    examples = encoder.encode_all(pool.examples[:12])
    one_by_one = predict(model, encoder, examples, batch_size=1, max_new_tokens=20)
    together = predict(model, encoder, examples, batch_size=12, max_new_tokens=20)
    for one, other in zip(one_by_one, together, strict=True):
        assert one.text == other.text
        assert one.label_probabilities == pytest.approx(other.label_probabilities, abs=1e-4)
        assert one.gold_label in (one.label_probabilities or {})
