"""One training as a launcher starts it, once in each process: saves the trained weights of every rank."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

_spec = importlib.util.spec_from_file_location("training_conftest", Path(__file__).with_name("conftest.py"))
assert _spec is not None
assert _spec.loader is not None
helpers = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(helpers)


def main(model_dir: str, method: str, batch_size: str, out: str) -> None:
    from caref.losses import CarefLoss
    from caref.methods import METHODS
    from caref.models.encoding import Encoder
    from caref.models.loading import ModelSource, load_model, load_tokenizer
    from caref.training.settings import TrainingSettings
    from caref.training.train import train

    torch.set_num_threads(1)
    source = ModelSource(model_dir)
    base, tokenizer = load_model(source), load_tokenizer(source)
    encoder = Encoder(tokenizer, helpers.FORMAT, base.config)
    model = METHODS.get(method)().apply(base)
    helpers.switch_dropout_off(model)
    result = train(
        model,
        tokenizer,
        encoder.encode_all(helpers.examples(16)),
        CarefLoss(sced_warmup=0.5),
        TrainingSettings(
            epochs=2, learning_rate=1e-3, batch_size=int(batch_size), warmup_fraction=0.3, checkpoint_epochs=1
        ),
        seed=1,
        work_dir=Path(out) / "work",
    )
    rank = os.environ.get("RANK", "0")
    weights = {name: weight.detach() for name, weight in model.named_parameters() if weight.requires_grad}
    save_file(weights, Path(out) / f"rank{rank}.safetensors")
    (Path(out) / f"rank{rank}.json").write_text(json.dumps([result.steps, result.history]))


if __name__ == "__main__":
    main(*sys.argv[1:])
