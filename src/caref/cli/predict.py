"""``caref predict``: answer and explain with a trained run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from caref.cli import told_plainly
from caref.errors import CarefError


@told_plainly
def predict(
    run: Annotated[Path, typer.Argument(help="The directory of a complete run.")],
    text: Annotated[
        str | None,
        typer.Argument(help="An input as the run's prompt writes it; - reads lines of standard input."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help='JSON lines: {"input": ...}, or the fields of the task; "choices" and "id" may be there.'
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write JSON lines here instead of printing them.")] = None,
    choices: Annotated[
        str | None, typer.Option(help="The candidate answers of a typed text, separated by |.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The base model, where it has moved since the run.")
    ] = None,
    eval_batch_size: Annotated[int, typer.Option(min=1, help="Examples decoded at once.")] = 64,
    temperature: Annotated[
        float | None,
        typer.Option(
            help="What the candidates' log-probabilities are divided by, in place of the temperature that "
            "the run's evaluation fitted; 1 leaves them as they are."
        ),
    ] = None,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Let code from the model's repository run.")
    ] = False,
) -> None:
    """Give answer, explanation and confidence.

    A text that is typed in goes to the model as it is; the task's labels, or --choices, are the
    candidates for the confidence. Without candidates the confidence is the probability of the
    generated answer's own tokens.

    The candidates' probabilities are scaled by the temperature that the run's evaluation fitted, where it
    has one. It was fitted on the evaluated examples: do not score these with it again. What it gives on
    them, each example scaled by a fit on others, is in the run's result.
    """
    from caref.experiments.predicting import TrainedRun

    if (text is None) == (file is None):
        raise CarefError("give either a text (or - for standard input) or --file")
    if temperature is not None and not 0 < temperature < float("inf"):
        raise CarefError(f"--temperature must be a finite number above 0, got {temperature}")
    for path, needed in ((file, "--file"), (out.parent if out is not None else None, "--out")):
        if path is not None and not path.exists():
            raise CarefError(f"{needed}: {path} does not exist")
    trained = TrainedRun.load(run, base_model=model, trust_remote_code=trust_remote_code)
    listed = tuple(filter(None, map(str.strip, choices.split("|")))) if choices else trained.labels
    if file is not None:
        questions = trained.read_questions(file)
    else:
        typed = [line.strip() for line in sys.stdin] if text == "-" else [str(text).strip()]
        questions = [
            trained.encoder.question(str(number), line, listed)
            for number, line in enumerate(typed, 1)
            if line
        ]
    if not questions:
        raise CarefError("there is nothing to answer: the input is empty")
    answers = [
        answer.model_dump(mode="json")
        for answer in trained.answer(questions, batch_size=eval_batch_size, temperature=temperature)
    ]
    if out is not None:
        from caref.results.files import write_json_lines

        write_json_lines(out, answers)
        typer.echo(f"{len(answers)} answers written to {out}")
        return
    if file is not None or text == "-":
        for answer in answers:
            typer.echo(json.dumps(answer, ensure_ascii=False))
        return
    (answer,) = answers
    broken = "  (broken: no separator was generated)" if answer["broken"] else ""
    typer.echo(f"answer       {answer['label']}{broken}")
    typer.echo(f"explanation  {answer['explanation']}")
    source = answer["confidence_source"]
    if source == "candidates" and answer["temperature"] is not None:
        whose = "from this run's evaluation" if temperature is None else "as given"
        source += f", temperature {answer['temperature']:.3g} {whose}"
    typer.echo(f"confidence   {answer['confidence']:.3f}  ({source})")
