"""One run: draw a split, train on it, answer and explain, measure, write down."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from caref.experiments.assembly import check_positions, drawn_split, make_encoder, make_objective
from caref.experiments.evaluating import metric_record
from caref.experiments.processes import is_first_process, wait_for_all
from caref.experiments.progress import Progress, Silent
from caref.experiments.resources import Resources
from caref.experiments.saved import card_facts
from caref.experiments.spec import RunSpec
from caref.experiments.stages import StageRecorder, describe_environment
from caref.protocol.split import Split
from caref.results.model_card import Form, model_card
from caref.results.result import RunResult
from caref.results.run_directory import RunDirectory
from caref.training.reporters import check_reporters, reporters_write_to

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedModel

    from caref.losses import Objective
    from caref.methods import Method
    from caref.methods.counting import ParameterCount
    from caref.models.encoding import EncodedExample, Encoder


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What changes how a run is carried out and not what it gives.

    Attributes:
        eval_batch_size: Examples decoded at once.
        report_to: The Trainer's reporters: ``tensorboard``, ``wandb``, ``mlflow``.
        save_adapter: Keep the trained weights.
        fused: How the objective is computed: ``auto`` or ``off``, or the kernel to use. It changes rounding,
            as another processor does, which a training may amplify.
    """

    eval_batch_size: int = 64
    report_to: tuple[str, ...] = ()
    save_adapter: bool = True
    fused: str = "auto"


def execute(
    spec: RunSpec,
    root: Path,
    *,
    options: RunOptions | None = None,
    resources: Resources | None = None,
    progress: Progress | None = None,
) -> RunResult:
    """Carry out one run, or read its result where it is complete already.

    Args:
        spec: What to do.
        root: The folder in which the run's own folder lies.
        options: How to do it.
        resources: Data and encoders shared with other runs.
        progress: Told how far the run is.

    Raises:
        CarefError: If the spec cannot be carried out, or another process is at the same run.
    """
    options, resources, progress = options or RunOptions(), resources or Resources(), progress or Silent()
    directory = RunDirectory(root / spec.directory_name)
    if directory.is_complete:
        return directory.read_result()
    if not is_first_process():
        return _train_along(spec, directory, options, resources)
    stages = StageRecorder()
    with directory.claimed():
        if directory.is_complete:  # another process has just done it
            return directory.read_result()
        check_reporters(options.report_to)
        with stages.stage("load"):
            prepared = _prepare(spec, options, resources)
        # From here on something is written: whatever is wrong with the spec has shown by now.
        directory.start(spec.model_dump(mode="json"))
        directory.keep_files(task=spec.task, prompt=spec.prompt)
        result = _execute(spec, prepared, directory, options, resources, progress, stages)
    wait_for_all()
    return result


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What a run needs before it writes anything."""

    split: Split
    method: Method
    model: PreTrainedModel | PeftModel
    parameters: ParameterCount
    encoder: Encoder
    objective: Objective
    shots: list[EncodedExample]
    evaluated: list[EncodedExample]


def _prepare(spec: RunSpec, options: RunOptions, resources: Resources) -> _Prepared:
    from caref.methods import METHODS
    from caref.methods.counting import count_parameters
    from caref.models.loading import ModelSource, load_model
    from caref.training.train import check_trainable

    split = drawn_split(spec, resources)
    base = load_model(ModelSource(spec.model, spec.trust_remote_code))
    encoder = make_encoder(spec, resources, base.config)
    method = METHODS.get(spec.method)(**spec.method_settings)
    model = method.apply(base, seed=spec.seed)
    objective = make_objective(spec, encoder, fused=options.fused)
    check_positions(spec, encoder, model)
    check_trainable(model, spec.training, objective)
    return _Prepared(
        split=split,
        method=method,
        model=model,
        parameters=count_parameters(model),
        encoder=encoder,
        objective=objective,
        shots=encoder.encode_all(split.train),
        evaluated=encoder.encode_all(split.validation),
    )


def _train_along(
    spec: RunSpec, directory: RunDirectory, options: RunOptions, resources: Resources
) -> RunResult:
    """Take part in a training whose first process writes, answers and measures."""
    from caref.training.train import train

    prepared = _prepare(spec, options, resources)
    train(
        prepared.model,
        prepared.encoder.tokenizer,
        prepared.shots,
        prepared.objective,
        spec.training,
        seed=spec.seed,
        work_dir=directory.checkpoints_path,
        hooks=prepared.method,
    )
    wait_for_all()
    return directory.read_result()


def _execute(
    spec: RunSpec,
    prepared: _Prepared,
    directory: RunDirectory,
    options: RunOptions,
    resources: Resources,
    progress: Progress,
    stages: StageRecorder,
) -> RunResult:
    from caref.generation.answering import predict
    from caref.metrics import evaluate
    from caref.models.loading import ModelSource
    from caref.training.train import train

    split, model, encoder = prepared.split, prepared.model, prepared.encoder
    shots, evaluated = prepared.shots, prepared.evaluated
    with stages.stage("training"), reporters_write_to(directory.logs_path):
        training = train(
            model,
            encoder.tokenizer,
            shots,
            prepared.objective,
            spec.training,
            seed=spec.seed,
            work_dir=directory.checkpoints_path,
            hooks=prepared.method,
            report_to=options.report_to,
            run_name=directory.path.name,
            on_step=lambda done, total: progress.advance("training", done, total),
        )
    directory.write_history(training.history)
    if options.save_adapter:
        _save(model, directory)
    with stages.stage("decoding"):
        done = _Counter(len(evaluated), progress)
        predictions = predict(
            model,
            encoder,
            evaluated,
            max_new_tokens=spec.max_new_tokens,
            batch_size=options.eval_batch_size,
            confidence=spec.confidence,
            on_batch=done.add,
        )
    directory.write_predictions(predictions)
    progress.advance("scoring", 0, 1)
    with stages.stage("scoring"):
        measured = evaluate(predictions, resources.metrics(spec))
    directory.write_scores(
        predictions, {k: list(v) for m in measured.values() for k, v in m.per_example.items()}
    )
    pools = (resources.pool(spec, "train"), resources.pool(spec, "validation"))
    result = RunResult(
        run_id=spec.run_id,
        task=split.task,
        model=ModelSource(spec.model).short_name,
        method=spec.method,
        objective=spec.objective,
        supervision=spec.supervision,
        prompt=encoder.prompt_format.name,
        seed=spec.seed,
        data_format=" + ".join(dict.fromkeys(pool.data_format for pool in pools)),
        problems_skipped=sum(len(pool.problems) for pool in pools),
        split_checksum=split.checksum,
        train_examples=len(shots),
        evaluated_examples=len(evaluated),
        inputs_cut=sum(example.input_cut for example in [*shots, *evaluated]),
        targets_cut=sum(example.target_cut for example in shots),
        trainable_parameters=prepared.parameters.trainable,
        total_parameters=prepared.parameters.total,
        metrics={name: metric_record(m) for name, m in measured.items()},
    )
    if options.save_adapter:
        directory.write_card(_card(spec, prepared, directory, result, predictions[0].input))
    environment = {**describe_environment(), "objective_computed_by": training.computed_by}
    directory.finish(result, {**environment, **stages.as_json()})
    return result


def _save(model: PreTrainedModel | PeftModel, directory: RunDirectory) -> None:
    """Save the trained weights alone where they are an adapter, else the whole model; safetensors."""
    from peft import PeftModel

    from caref.models.loading import quiet_peft, quiet_transformers

    path = directory.adapter_path if isinstance(model, PeftModel) else directory.model_path
    with quiet_peft(), quiet_transformers():
        model.save_pretrained(str(path))


def _card(
    spec: RunSpec, prepared: _Prepared, directory: RunDirectory, result: RunResult, example: str
) -> str:
    from caref.models.loading import ModelSource

    form: Form = "adapter" if directory.adapter_path.is_dir() else "model"
    place = (directory.adapter_path if form == "adapter" else directory.model_path).name
    facts = card_facts(ModelSource(spec.model), prepared.model.config, prepared.encoder, example)
    return model_card(result, spec.model_dump(mode="json"), facts, form=form, place=place)


class _Counter:
    """Turns batches done into progress."""

    def __init__(self, total: int, progress: Progress) -> None:
        self.done, self.total, self.progress = 0, total, progress

    def add(self, count: int) -> None:
        self.done += count
        self.progress.advance("decoding", self.done, self.total)
