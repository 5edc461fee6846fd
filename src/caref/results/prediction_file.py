"""A file of predictions from anywhere, checked line by line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from caref.errors import DataError
from caref.generation.prediction import Prediction, each_prediction, fault_of_probabilities


def read_checked_predictions(path: Path) -> list[Prediction]:
    """Read predictions that caref may not have made.

    Beyond being a `Prediction`, every line needs an id that no other line has, at least one reference
    explanation that is not blank, and candidate probabilities, where given, that add up to 1.

    Raises:
        DataError: If the file cannot be read or is empty, or on the first line that does not fit, named with
            file and line.
    """
    predictions: dict[str, Prediction] = {}
    try:
        for number, prediction in enumerate(each_prediction(path), start=1):
            for wrong in _faults(prediction):
                raise DataError(f"{path}:{number}: {wrong}")
            if prediction.id in predictions:
                before = list(predictions).index(prediction.id) + 1
                raise DataError(
                    f"{path}:{number}: the id {prediction.id!r} is also on line {before}; "
                    "the predictions of several splits go into a file each"
                )
            predictions[prediction.id] = prediction
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    if not predictions:
        raise DataError(f"{path} is empty; expected one prediction per line")
    return list(predictions.values())


def _faults(prediction: Prediction) -> Iterator[str]:
    if not prediction.id.strip():
        yield "the id is blank"
    if not any(text.strip() for text in prediction.gold_explanations):
        yield "gold_explanations holds no text; without a reference an explanation cannot be scored"
    p, sums = prediction.label_probabilities, prediction.label_log_probs_sum
    if p is not None and (fault := fault_of_probabilities(p)):
        yield fault
    if p is not None and sums is not None and p.keys() != sums.keys():
        yield "label_probabilities and label_log_probs_sum are not of the same candidates"
