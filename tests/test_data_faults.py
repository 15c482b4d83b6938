"""Damaged, hostile and careless files: each fault is said with file and line and counted, and nothing else is lost."""

import gzip
import io
import json
import lzma
import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoreloss import data
from scoreloss.cli import main
from scoreloss.data import inert
from scoreloss.data.reading import SHOWN, Problems, inside
from tests.test_data import arxiv_line, chemical_folder, coco_folder, voc_folder

BOMB = (
    '<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
    '<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>'
)


def own(path, content, **options):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return data.load(path, **options)


def read(dataset):
    return dict(
        zip(dataset.inputs, ["".join(_labels(dataset, k)) for k in range(len(dataset.ids))], strict=True)
    )


def _labels(dataset, row):
    return [label for label, there in zip(dataset.labels, dataset.targets[row], strict=True) if there]


# --- tables ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "detail"),
    [
        ("only one field\n", "1 fields where 2 are due"),
        ("a,b,c\n", "3 fields where 2 are due"),
        ('"an open quote,x\n', ""),
        ('"closed" too early,x\n', ""),
        ('a,"x\n', ""),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_broken_row_costs_itself_alone(tmp_path, broken, detail, end):
    rows = [
        "text,labels\n",
        "one,x\n",
        '"two\nlines",y\n',
        broken,
        "three,x|y\n",
        '"four, quoted",y\n',
        "five,x\n",
    ]
    dataset = own(tmp_path / "t.csv", "".join(rows).replace("\n", end))
    assert read(dataset) == {
        "one": "x", f"two{end}lines": "y", "three": "xy", "four, quoted": "y", "five": "x",
    }  # fmt: skip
    assert dataset.problems[0].startswith(f"{tmp_path / 't.csv'}:5: a broken row, skipped (")
    assert detail in dataset.problems[0]
    assert dataset.problems[1:] == ("1 in all: a broken row, skipped",)


def test_many_broken_rows_are_all_counted_and_some_told(tmp_path):
    dataset = own(tmp_path / "t.csv", "text,labels\n" + 'a,"b\n' * 250 + "good,x\n")
    assert read(dataset) == {"good": "x"}
    assert len(dataset.problems) == SHOWN + 1
    assert dataset.problems[-1] == "250 in all: a broken row, skipped"


def test_quotes_in_a_file_of_tabs_may_be_mere_quotes(tmp_path):
    dataset = own(
        tmp_path / "t.tsv", 'text\tlabels\n"Stop" she said\tx\n"Go on\ty\n"in\tquotes"\tx\nlast\ty\n'
    )
    assert read(dataset) == {'"Stop" she said': "x", '"Go on': "y", "in\tquotes": "x", "last": "y"}
    assert dataset.problems == ()


def test_latin_1_is_read_and_said(tmp_path):
    dataset = own(
        tmp_path / "t.csv", "text,labels\ncafé,x\nnaïve,y\n".encode("latin-1") + "später,x\n".encode()
    )
    assert read(dataset) == {"café": "x", "naïve": "y", "später": "x"}
    path = tmp_path / "t.csv"
    assert dataset.problems == (
        f"{path}:2: not UTF-8, read as Latin-1",
        f"{path}:3: not UTF-8, read as Latin-1",
        "2 in all: not UTF-8, read as Latin-1",
    )


def test_a_byte_order_mark_and_bare_line_ends_change_nothing(tmp_path):
    plain = own(tmp_path / "a.csv", "text,labels\na,x\nb,y\n")
    marked = own(tmp_path / "b.csv", b"\xef\xbb\xbftext,labels\r\na,x\r\nb,y")
    assert (marked.content_hash, marked.problems) == (plain.content_hash, ())
    with pytest.raises(ValueError, match=r"c\.csv is in UTF-16: save it as UTF-8"):
        own(tmp_path / "c.csv", "text,labels\na,x\n".encode("utf-16"))


def test_nul_bytes_are_left_out_and_said(tmp_path):
    dataset = own(tmp_path / "t.csv", b"text,labels\na\0b,x\nc,y\n")
    assert read(dataset) == {"ab": "x", "c": "y"}
    assert dataset.problems[0] == f"{tmp_path / 't.csv'}:2: NUL bytes, left out"


@pytest.mark.parametrize(
    "name", ["t.csv", "t.tsv", "t.jsonl", "t.parquet", "t.npz", "t.csv.gz", "t.jsonl.xz"]
)
@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02" * 40])
def test_empty_files_and_noise_are_one_line(tmp_path, name, content):
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        own(tmp_path / name, content)
    assert str(tmp_path / name) in str(caught.value)


def test_a_table_with_a_header_alone_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"t\.csv gives no example"):
        own(tmp_path / "t.csv", "text,labels\n")
    with pytest.raises(ValueError, match=r"t\.csv gives no label"):
        own(tmp_path / "t.csv", "text,labels\na,\n")
    with pytest.raises(ValueError, match=r"t\.csv:1: columns have the same name: 'text'"):
        own(tmp_path / "t.csv", "text,text,labels\na,b,x\n")


def test_duplicated_ids_keep_the_first(tmp_path):
    dataset = own(tmp_path / "t.csv", "id,text,labels\n1,a,x\n2,b,y\n1,c,y\n", ids="id")
    assert read(dataset) == {"a": "x", "b": "y"}
    assert dataset.problems[0] == f"{tmp_path / 't.csv'}:4: an id that was there before, skipped (1)"


def test_cells_that_cannot_be_read_cost_their_row(tmp_path):
    dataset = own(
        tmp_path / "t.csv",
        'text,labels,part\na,x,train\nb,"[\'x\', ""y""]",test\nc,"[x",train\nd,"[open]",train\n ,x,train\nf,x,later\n',
        split="part",
    )
    assert read(dataset) == {"a": "x", "b": "xy", "c": "[x"}
    assert [re.sub(".*csv:", "", line) for line in dataset.problems[:3]] == [
        "5: labels or a split that cannot be read, skipped (a list that does not end as it should)",
        "6: nothing in column text, skipped",
        "7: labels or a split that cannot be read, skipped (split is 'later': it must be train, validation or test)",
    ]
    dataset = own(tmp_path / "m.csv", "text,a,b\nr,1,0\ns,2,1\nt,0,1\n", labels="a,b")
    assert read(dataset) == {"r": "a", "t": "b"}
    assert (
        "m.csv:3: labels or a split that cannot be read, skipped (a is 2: it must be 0 or 1)"
        in dataset.problems[0]
    )


def test_what_is_missing_is_no_label_and_no_text(tmp_path):
    rows = [
        ("a", '["x", null, " ", NaN]'),
        ("b", "NaN"),
        ("c", "7"),
        ("d", "true"),
        ("e", '"y | y|"'),
        (None, '"x"'),
    ]
    lines = [f'{{"text": {json.dumps(text)}, "labels": {labels}}}' for text, labels in rows]
    dataset = own(tmp_path / "t.jsonl", "\n".join([*lines, '{"text": NaN, "labels": "x"}']))
    assert read(dataset) == {"a": "x", "b": "", "c": "7", "d": "True", "e": "y"}
    assert dataset.problems[-1] == "2 in all: nothing in column text, skipped"


def test_another_separator_is_suggested(tmp_path):
    dataset = own(tmp_path / "t.csv", "text,labels\na,x;y\nb,x\nc,y;z\n")
    assert "most labels hold ; or , or | but no '|': is sep another one?" in dataset.problems[0]


# --- JSON, compression, binary files -----------------------------------------------------------------------------


def test_a_line_of_json_cut_in_the_middle(tmp_path):
    lines = ['{"text": "a", "labels": ["x"]}', '{"text": "b", "lab', "[1]", '{"text": "c", "labels": {"x": 1}}', "[" * 99999,
             '{"text": "d", "labels": "y"}', '{"labels": "y"}', "", '{"text": "e", "labels": null}']  # fmt: skip
    dataset = own(tmp_path / "t.jsonl", "\n".join(lines))
    assert read(dataset) == {"a": "x", "d": "y", "e": ""}
    told = "\n".join(dataset.problems)
    for number, what in (
        (2, "not a whole line of JSON"),
        (3, "JSON without names"),
        (4, "labels or a split that cannot be read"),
        (5, "not a whole line of JSON"),
        (7, "nothing in column text"),
    ):
        assert f"{tmp_path / 't.jsonl'}:{number}: {what}" in told
    assert "2 in all: not a whole line of JSON, skipped" in told


def test_a_snapshot_with_damaged_lines(tmp_path):
    path = tmp_path / "s.json"
    path.write_text("\n".join([arxiv_line(1), arxiv_line(2)[:50], '{"id": 3}', arxiv_line(1), arxiv_line(4)]))
    dataset = data.load(f"arxiv:{path}", years=2020)
    assert dataset.ids == ("2001.00001", "2001.00004")
    assert [line.split(": ")[0] for line in dataset.problems[:3]] == [f"{path}:{k}" for k in (2, 3, 4)]


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_damaged_compressed_file_gives_what_can_be_had(tmp_path, ending, pack, damage):
    rng = np.random.default_rng(0)
    lines = [json.dumps({"text": f"{k} {rng.bytes(60).hex()}", "labels": "x"}) for k in range(2000)]
    packed = bytearray(pack("\n".join(lines).encode()))
    place = len(packed) * 3 // 4
    if damage == "cut":
        del packed[place:]
    else:
        packed[place : place + 40] = bytes(40)
    path = tmp_path / f"t.jsonl{ending}"
    dataset = own(path, bytes(packed))
    assert 1000 < len(dataset.ids) < 1800
    assert list(dataset.inputs) == [json.loads(line)["text"] for line in lines[: len(dataset.ids)]]
    told = [line for line in dataset.problems if "damaged or cut short here, the rest is lost" in line]
    number = int(re.match(rf"{re.escape(str(path))}:(\d+): ", told[0])[1])
    skipped = sum(int(line.split()[0]) for line in dataset.problems if " in all: not a whole line" in line)
    assert number == len(dataset.ids) + skipped + 1


def test_nothing_is_unpickled(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (sys.exit, ("unpickled",))

    np.savez(tmp_path / "a.npz", features=np.zeros((2, 1)), targets=np.array([Bomb(), Bomb()], dtype=object))
    (tmp_path / "b.npz").write_bytes(pickle.dumps(Bomb()))
    for name in ("a.npz", "b.npz"):
        with pytest.raises(
            ValueError, match=rf"^[^\n]*{name} holds pickled objects, which are never opened[^\n]*$"
        ):
            data.load(tmp_path / name)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((2, 1))}, "has no array features: it has x"),
        ({"features": np.zeros((2, 1))}, "has no array targets"),
        ({"features": np.zeros((2, 1)), "targets": np.full((2, 1), 2)}, r"targets\[0, 0\] is 2"),
        ({"features": np.full((2, 1), np.nan), "targets": np.ones((2, 1))}, r"inputs\[0, 0\] is nan"),
        ({"features": np.zeros((3, 1)), "targets": np.ones((2, 1))}, "inputs have 3 examples"),
        (
            {"features": np.zeros((2, 1)), "targets": np.ones((2, 1)), "train": [0], "test": [5]},
            "must hold indices",
        ),
        (
            {"features": np.zeros((2, 1)), "targets": np.ones((2, 1)), "labels": ["a", "b"]},
            "labels are 2 names",
        ),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        data.load(tmp_path / "a.npz")


def test_a_cut_archive_of_arrays_is_refused(tmp_path):
    buffer = io.BytesIO()
    np.savez(buffer, features=np.zeros((50, 9)), targets=np.ones((50, 2)))
    whole = buffer.getvalue()
    for size in range(0, len(whole), 97):
        with pytest.raises(ValueError, match=r"^[^\n]*cannot be read as \.npz[^\n]*$"):
            own(tmp_path / "a.npz", whole[:size])


def test_a_pickle_read_as_data_calls_nothing():
    class Bomb:
        def __reduce__(self):
            return (sys.exit, ("unpickled",))

    content = pickle.dumps([Bomb(), ("a", 1.5, {"b": None, "c": True})], protocol=5)
    bomb, rest = inert.read(content)
    assert bomb == inert.Record(inert.Record("sys", "exit"), ("unpickled",))
    assert rest == ("a", 1.5, {"b": None, "c": True})
    for size in range(len(content)):
        with pytest.raises((ValueError, LookupError)):
            inert.read(content[:size])
    with pytest.raises(ValueError, match="the opcode EMPTY_SET is not known"):
        inert.read(pickle.dumps({1, 2}, protocol=5))


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch, capsys):
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["data", "check", str(tmp_path / "t.parquet")]) == 2
    assert (
        capsys.readouterr().err == "scoreloss: a Parquet file needs pyarrow: pip install 'scoreloss[bench]'\n"
    )


# --- folders -----------------------------------------------------------------------------------------------------


def test_a_label_file_without_its_text_and_the_reverse(tmp_path):
    chemical_folder(tmp_path)
    (tmp_path / "text/10361024.txt").unlink()
    (tmp_path / "labels/11372882.txt").unlink()
    (tmp_path / "text/12000000.txt").write_text("\n")
    dataset = data.load(f"chemical_exposure:{tmp_path}")
    assert dataset.ids == ("10022290",)
    assert dataset.problems[:3] == (
        f"{tmp_path / 'labels/10361024.txt'}: labels without their text, skipped",
        f"{tmp_path / 'text/11372882.txt'}: a text without its labels, skipped",
        f"{tmp_path / 'text/12000000.txt'}: an empty text, skipped",
    )
    (tmp_path / "text/10022290.txt").write_text("One sentence .\n")
    assert "not as many labelled sentences as the text has (3 of 1)" in "\n".join(
        data.load(f"chemical_exposure:{tmp_path}").problems
    )


@pytest.mark.parametrize(
    "name", ["../secret.jpg", "a/../../secret.jpg", "/etc/passwd", "..", "a/../..", "x\0y"]
)
def test_a_path_that_climbs_out_is_refused(tmp_path, name):
    (tmp_path / "secret.jpg").write_bytes(b"1")
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "good.jpg").write_bytes(b"1")
    row = json.dumps({"image": name, "labels": "x"})
    dataset = own(folder / "t.jsonl", f'{{"image": "good.jpg", "labels": "x"}}\n{row}\n')
    assert dataset.inputs == (folder / "good.jpg",)
    assert (
        dataset.problems[0]
        == f"{folder / 't.jsonl'}:2: a path that leads out of its folder, refused ({name})"
    )


@given(st.lists(st.sampled_from(["..", ".", "a", "base", ""]), min_size=1, max_size=8))
def test_inside_by_walking(steps):
    """From top/base, one step at a time, as a shell does; a name that starts with / is out."""
    at = ["top", "base"]
    for step in steps:
        at = at[:-1] if step == ".." else [*at, step] if step not in (".", "") else at
        if not at:
            return
    expected = at[:2] == ["top", "base"] and len(at) > 2 and steps[0] != ""
    assert (inside(Path("/top/base"), "/".join(steps)) is not None) == expected


def test_images_that_are_missing_or_empty(tmp_path):
    coco_folder(tmp_path)
    (tmp_path / "train2017/000000000009.jpg").unlink()
    (tmp_path / "val2017/000000000139.jpg").write_bytes(b"")
    dataset = data.load(f"coco:{_with_label(tmp_path)}")
    assert dataset.ids == ("25",)
    where = tmp_path / "annotations"
    assert dataset.problems[0].startswith(
        f"{where / 'instances_train2017.json'}: annotations[3]: an object of nothing"
    )
    assert dataset.problems[1].startswith(
        f"{where / 'instances_train2017.json'}: images[0]: no such image, skipped"
    )
    assert dataset.problems[2].startswith(
        f"{where / 'instances_val2017.json'}: images[0]: an empty image file, skipped"
    )


def _with_label(folder):
    """Image 25 gets an object of category 1, and one of a category that is not there."""
    path = folder / "annotations/instances_train2017.json"
    record = json.loads(path.read_text())
    record["annotations"][2:] = [{"image_id": 25, "category_id": c} for c in (1, 77)]
    path.write_text(json.dumps(record))
    return folder


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"images": [', '{"images": 1, "annotations": 2, "categories": 3}',
                                     '{"images": [{"id": 1}], "annotations": [], "categories": []}'])  # fmt: skip
def test_coco_that_is_none(tmp_path, content):
    coco_folder(tmp_path)
    path = tmp_path / "annotations/instances_train2017.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=rf"^{path}[^\n]*(not whole JSON|as COCO has them)[^\n]*$"):
        data.load(f"coco:{tmp_path}")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (
            f"<?xml version='1.0'?>\n{BOMB}<annotation><object><name>&c;</name></object></annotation>",
            "refused",
        ),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><annotation/>', "refused"),
        (f'<?xml version="1.0" encoding="utf-16"?>{BOMB}<annotation/>'.encode("utf-16"), "refused"),
        ("<annotation><object>", "not XML"),
        ("", "not XML"),
        (b"\x00\xff", "not XML"),
        ('<?xml version="1.0" encoding="no-such"?><a/>', "not XML"),
    ],
)
def test_xml_that_is_hostile_or_broken_costs_its_image(tmp_path, content, what):
    root = voc_folder(tmp_path)
    path = root / "Annotations/000001.xml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    dataset = data.load(f"voc:{root}")
    assert dataset.ids == ("000000", "000002")
    where = f"{root / 'ImageSets/Main/val.txt'}:1"
    assert dataset.problems[0].startswith(f"{where}: an annotation that cannot be read, skipped ({path}:")
    assert what in dataset.problems[0]
    path.unlink()
    assert data.load(f"voc:{root}").problems[0] == (
        f"{where}: an image without its annotation, skipped ({path})"
    )


def test_voc_lists_cannot_climb_out(tmp_path):
    root = voc_folder(tmp_path)
    (root / "ImageSets/Main/val.txt").write_text("../../../secret\n000001\n")
    dataset = data.load(f"voc:{root}")
    assert dataset.ids == ("000000", "000001", "000002")
    assert "val.txt:1: a path that leads out of its folder, refused" in dataset.problems[0]


def test_posters_without_a_film_and_films_without_a_poster(tmp_path):
    (tmp_path / "posters").mkdir()
    for name in ("1", "3", "4"):
        (tmp_path / f"posters/{name}.jpg").write_bytes(b"1")
    (tmp_path / "MovieGenre.csv").write_bytes(
        "imdbId,Imdb Link,Title,IMDB Score,Genre,Poster\n1,,Amélie,,Comedy|Romance,\n2,,b,,Drama,\n3,,c,,,\n1,,d,,War,\n".encode(
            "latin-1"
        )
    )
    dataset = data.load(f"movie_posters:{tmp_path}")
    assert (dataset.ids, dataset.labels) == (("1",), ("Comedy", "Romance"))
    kinds = [line.partition(" in all: ")[2] for line in dataset.problems[-5:]]
    assert kinds == [
        "not UTF-8, read as Latin-1",
        "no such image, skipped",
        "a film without a genre, skipped",
        "an id that was there before, skipped",
        "a poster without a line in MovieGenre.csv, skipped",
    ]


def test_goemotions_with_broken_lines(tmp_path):
    (tmp_path / "emotions.txt").write_text("joy\ngrief")
    for part, lines in (
        ("train", "a\t0\tx\nbroken\nb\t7\ty\nc\t-1\tz\nd\t0,1\tw\n"),
        ("dev", "e\t1\tu\n"),
        ("test", "f\t0\tv\n"),
    ):
        (tmp_path / f"{part}.tsv").write_text(lines)
    dataset = data.load(f"goemotions:{tmp_path}")
    assert dataset.ids == ("x", "w", "u", "v")
    assert [line.split(": ")[0] for line in dataset.problems[:3]] == [
        f"{tmp_path / 'train.tsv'}:{k}" for k in (2, 3, 4)
    ]
    (tmp_path / "train.tsv").unlink()
    with pytest.raises(ValueError, match=r"has no train\.tsv"):
        data.load(f"goemotions:{tmp_path}")


@pytest.mark.parametrize(
    "spec", ["arxiv:no", "voc:no", "coco:no", "cancer_hallmarks:no", "mulan:no", "mulan:no.arff", "meka:no", "goemotions:no",
             "movie_posters:no", "no.csv", "no.jsonl.gz", "no.npz", "no.parquet"],
)  # fmt: skip
def test_what_is_not_there_is_one_line(tmp_path, monkeypatch, capsys, spec):
    monkeypatch.chdir(tmp_path)
    assert main(["data", "check", spec]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"scoreloss: \S*no\b[^\n]*\n", err), err


def test_problems_are_counted_by_kind():
    problems = Problems()
    for number in range(3):
        problems.add(f"f:{number}", "bad")
    problems.add("g", "worse", "why")
    assert problems.lines() == (
        "f:0: bad",
        "f:1: bad",
        "f:2: bad",
        "g: worse (why)",
        "3 in all: bad",
        "1 in all: worse",
    )
