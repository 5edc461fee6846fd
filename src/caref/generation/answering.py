"""Answers to a set of questions: each is read once, then text decoded and candidates scored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from caref.generation.confidence import candidate_fields, confidence_fields
from caref.generation.decoding import decode, greedy_config
from caref.generation.prediction import Answer, Prediction
from caref.generation.reading import Reading, needs_equal_lengths, read
from caref.generation.scoring import score_answers
from caref.models.encoding import EncodedExample, EncodedQuestion, Encoder
from caref.tasks.parsing import ParsedAnswer, parse_answer

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import GenerationConfig, PreTrainedModel


def answer(
    model: PreTrainedModel | PeftModel,
    encoder: Encoder,
    questions: Sequence[EncodedQuestion],
    *,
    max_new_tokens: int = 100,
    batch_size: int = 64,
    confidence: bool = True,
    temperature: float | None = None,
    on_batch: Callable[[int], None] | None = None,
) -> list[Answer]:
    """Answer and explain every question.

    Args:
        model: With its adapter if it has one.
        encoder: What encoded the questions.
        questions: In any order; batches are made by input length.
        max_new_tokens: Greedy decoding ends here at the latest.
        batch_size: Questions per batch; changes the speed, not the answers (beyond rounding).
        confidence: Score the candidate answers too.
        temperature: As in `candidate_fields`; it does not touch a confidence that is the generated answer's.
        on_batch: Called with the number of questions just done.

    Returns:
        One answer per question, in the order given.
    """
    was_training = model.training
    model.eval()
    config = greedy_config(model, max_new_tokens, ends=[encoder.end_id])
    answers: dict[int, Answer] = {}
    try:
        for batch in _by_length(questions, batch_size, equal=needs_equal_lengths(model)):
            asked = [questions[index] for index in batch]
            made = _answer_batch(model, encoder, asked, config, confidence, temperature)
            answers.update(zip(batch, made, strict=True))
            if on_batch:
                on_batch(len(batch))
    finally:
        model.train(was_training)
    return [answers[index] for index in range(len(questions))]


def predict(
    model: PreTrainedModel | PeftModel, encoder: Encoder, examples: Sequence[EncodedExample], **options: Any
) -> list[Prediction]:
    """Answer every example, and put what is right beside it; `options` are those of `answer`."""
    answers = answer(model, encoder, [example.question for example in examples], **options)
    return [
        Prediction(**dict(given), gold_label=example.answer, gold_explanations=example.explanations)
        for given, example in zip(answers, examples, strict=True)
    ]


@torch.inference_mode()
def _answer_batch(
    model: PreTrainedModel | PeftModel,
    encoder: Encoder,
    questions: list[EncodedQuestion],
    config: GenerationConfig,
    confidence: bool,
    temperature: float | None,
) -> list[Answer]:
    reading = read(model, [question.input_ids for question in questions])
    generated = _generate(reading, encoder, config)
    fields: list[dict[str, Any]] = [{} for _ in questions]
    if confidence:
        candidates = [[encoder.answer_ids(text) for text in question.candidates] for question in questions]
        scores = score_answers(reading, candidates)
        fields = [
            candidate_fields(dict(zip(question.candidates, row_scores, strict=True)), temperature)
            for question, row_scores in zip(questions, scores, strict=True)
        ]
    answers = []
    for question, generation, extra in zip(questions, generated, fields, strict=True):
        parsed = _read(encoder, question, generation.text)
        if confidence:
            extra |= confidence_fields(parsed.answer, extra, generation.answer_log_probs)
        answers.append(
            Answer(
                id=question.id,
                input=question.input,
                text=generation.text,
                label=parsed.answer,
                explanation=parsed.explanation,
                broken=parsed.broken,
                **extra,
            )
        )
    return answers


@dataclass(frozen=True, slots=True)
class _Generation:
    """A generation's text, and the log-probabilities of its answer's tokens, separator included."""

    text: str
    answer_log_probs: list[float]


def _generate(reading: Reading, encoder: Encoder, config: GenerationConfig) -> list[_Generation]:
    decoded = decode(reading, config)
    separator = encoder.separator_ids()
    if not encoder.answer_only:
        return [
            _Generation(encoder.text(one.tokens), one.log_probs[: _end_of(one.tokens, separator)])
            for one in decoded
        ]
    # Trained to stop after the answer: the separator is put there, and the model goes on.
    prefixes = [[*one.tokens, *separator] for one in decoded]
    continued = decode(reading, config, prefixes=prefixes)
    generations = []
    for one, more in zip(decoded, continued, strict=True):
        answered, told = encoder.text(one.tokens), encoder.text(more.tokens)
        # A model that has nothing to add leaves its answer as it is, unexplained.
        text = f"{answered}{encoder.separator}{told}" if told else answered
        generations.append(_Generation(text, one.log_probs))
    return generations


def _read(encoder: Encoder, question: EncodedQuestion, text: str) -> ParsedAnswer:
    """Parse a generation; a candidate in the tokenizer's spelling gets its own spelling back.

    Some tokenizers cannot write "friend's house" without blanks around the apostrophe.
    """
    parsed = parse_answer(text, encoder.separator)
    if parsed.answer in question.candidates:
        return parsed
    spelling = {_folded(encoder.round_trip(candidate)): candidate for candidate in question.candidates}
    return parsed._replace(answer=spelling.get(_folded(parsed.answer), parsed.answer))


def _end_of(tokens: list[int], separator: list[int]) -> int | None:
    """The position after the first separator; None (all of it) where there is none."""
    for start in range(len(tokens) - len(separator) + 1):
        if tokens[start : start + len(separator)] == separator:
            return start + len(separator)
    return None


def _by_length(questions: Sequence[EncodedQuestion], batch_size: int, *, equal: bool) -> Iterator[list[int]]:
    """Indices in batches of similar input length, longest first: the worst memory comes first.

    With `equal` the inputs of a batch have the same length.
    """
    lengths = [len(question.input_ids) for question in questions]
    batch: list[int] = []
    for index in sorted(range(len(questions)), key=lambda index: -lengths[index]):
        if len(batch) == batch_size or (equal and batch and lengths[batch[0]] != lengths[index]):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _folded(text: str) -> str:
    return " ".join(text.lower().split())
