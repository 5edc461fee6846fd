"""A trained run as a folder that others load without caref: an adapter, or a plain model."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from caref.errors import CarefError
from caref.experiments.assembly import make_encoder
from caref.experiments.resources import Resources
from caref.experiments.saved import SavedRun, card_facts
from caref.results.files import write_json
from caref.results.model_card import Form, model_card

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedModel


def export(
    run: SavedRun,
    out: Path,
    *,
    merge: bool = False,
    base_id: str | None = None,
    place: str | None = None,
) -> Form:
    """Write a run's weights, the tokenizer and a model card into a new folder.

    Args:
        run: A complete run.
        out: The folder to make; one that is there already has to be empty. It is there whole or not at all.
        merge: Put the adapter's weights into the base model and write a plain model.
        base_id: The hub id of the base model, for an adapter of one that lies in a folder here.
        place: Where others will find the folder, as the card says it; its name, if not given.

    Returns:
        What was written: ``"adapter"`` or ``"model"``.

    Raises:
        CarefError: If `out` is not empty or cannot be written, or there is nothing to merge.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CarefError(f"{out} is there already; name a new folder")
    form: Form = "adapter" if run.is_adapter and not merge else "model"
    resources = Resources()
    tokenizer = resources.tokenizer(run.spec)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as temporary:
        folder = Path(temporary) / out.name
        if form == "adapter":
            shutil.copytree(run.directory.adapter_path, folder)
            if base_id is not None:
                _name_base(folder, base_id)
        else:
            plain = merged(run.load()) if run.is_adapter else run.load()
            _save(plain, folder)
        tokenizer.save_pretrained(str(folder))
        card = _card(run, form, base_id, place or out.name, resources)
        (folder / "README.md").write_text(card, encoding="utf-8")
        if out.exists():
            out.rmdir()
        folder.rename(out)
    return form


def merged(model: PreTrainedModel | PeftModel) -> PreTrainedModel:
    """The plain model with an adapter's weights put into it.

    Raises:
        CarefError: If the adapter leaves the weights as they are.
    """
    from caref.models.loading import quiet_peft

    if model.active_peft_config.is_prompt_learning:
        raise CarefError(
            "virtual tokens are no weights of the model: there is nothing to merge; export without --merge"
        )
    with quiet_peft():
        return model.merge_and_unload()


def push(run: SavedRun, repository: str, *, merge: bool, base_id: str | None, private: bool) -> str:
    """Send a run to the hub.

    Args:
        run: A complete run.
        repository: ``owner/name``; made if it is not there.
        merge: As for `export`.
        base_id: As for `export`; needed for an adapter of a model that lies in a folder here.
        private: Whether a repository that is made is private.

    Returns:
        The address of the commit.

    Raises:
        CarefError: If others could not load the base model, or the hub refuses.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError

    if run.is_adapter and not merge and base_id is None and run.base.kind != "hub":
        raise CarefError(
            f"the adapter's base model {run.base.name!r} is not on the hub: nobody else could load it; "
            "name it there with --base-id, or send a plain model with --merge"
        )
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "export"
        export(run, folder, merge=merge, base_id=base_id, place=repository)
        try:
            api = HfApi()
            api.create_repo(repository, private=private, exist_ok=True)
            commit = api.upload_folder(
                repo_id=repository,
                folder_path=folder,
                commit_message=f"{run.directory.read_result().run_id}, trained with caref",
            )
        except (HfHubHTTPError, HFValidationError, LocalTokenNotFoundError, OSError) as error:
            told = " ".join(str(error).split())[:300]
            raise CarefError(f"the hub did not take {repository}: {told}") from error
    return str(commit)


def _card(run: SavedRun, form: Form, base_id: str | None, place: str, resources: Resources) -> str:
    from caref.models.loading import load_config

    config = load_config(run.base)
    facts = card_facts(
        run.base,
        config,
        make_encoder(run.spec, resources, config),
        run.directory.read_predictions()[0].input,
    )
    if base_id is not None:
        facts = replace(facts, base=base_id, base_kind="hub")
    result, spec = run.directory.read_result(), run.directory.read_spec()
    return model_card(result, spec, facts, form=form, place=place, with_tokenizer=True)


def _name_base(folder: Path, base_id: str) -> None:
    """Write the base model's id into an adapter's configuration."""
    path = folder / "adapter_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    write_json(path, {**settings, "base_model_name_or_path": base_id})


def _save(model: PreTrainedModel, folder: Path) -> None:
    from caref.models.loading import quiet_transformers

    with quiet_transformers():
        model.save_pretrained(str(folder))
