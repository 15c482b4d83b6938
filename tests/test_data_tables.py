"""ARFF and CSV that are written and read again: whatever stands in them comes back as it was."""

import csv
import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoreloss import data

NAMES = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], include_characters="\t\n'\"%{},\\ "),
    min_size=1,
    max_size=8,
).filter(str.strip)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=32)
HEADER = '<labels xmlns="http://mulan.sourceforge.net/labels">{}</labels>'


def quoted(name):
    """As Weka writes a name or a value."""
    if re.fullmatch(r"[A-Za-z0-9_.+-]+", name):
        return name
    for plain, escaped in (
        ("\\", "\\\\"),
        ("'", "\\'"),
        ('"', '\\"'),
        ("%", "\\%"),
        ("\n", "\\n"),
        ("\t", "\\t"),
        ("\r", "\\r"),
    ):
        name = name.replace(plain, escaped)
    return f"'{name}'"


def arff(attributes, rows, *, relation="r", sparse=False):
    """Attributes are (name, None or values); a sparse row leaves out 0, and the first of values."""
    lines = ["% a comment", f"@RELATION {quoted(relation)}", ""]
    for name, values in attributes:
        kind = "numeric" if values is None else "{" + ",".join(map(quoted, values)) + "}"
        lines.append(f"@attribute {quoted(name)} {kind}")
    lines += ["@data", "% another"]
    for row in rows:
        cells = [repr(v) if isinstance(v, float) else quoted(v) for v in row]
        if sparse:
            default = [0.0 if values is None else values[0] for _, values in attributes]
            kept = [f"{k} {cell}" for k, cell in enumerate(cells) if row[k] != default[k]]
            lines.append("{" + ",".join(kept) + "}")
        else:
            lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


@st.composite
def tables(draw):
    """Attributes (numbers, two values, three values, labels) in any order, and rows."""
    names = draw(st.lists(NAMES.map(str.strip), min_size=2, max_size=7, unique=True))
    kinds = draw(
        st.lists(
            st.sampled_from(["number", "two", "three", "label"]), min_size=len(names), max_size=len(names)
        )
    )
    kinds[0] = "label"
    attributes = []
    for name, kind in zip(names, kinds, strict=True):
        size = {"two": 2, "three": 3}.get(kind, 0)
        words = draw(st.lists(NAMES.map(str.strip), min_size=size, max_size=size, unique=True))
        values = {"number": None, "label": ("0", "1")}.get(kind, tuple(f"v{word}" for word in words))
        attributes.append((name, values))
    cell = st.tuples(*(NUMBERS if values is None else st.sampled_from(values) for _, values in attributes))
    rows = draw(st.lists(cell, min_size=1, max_size=6))
    order = draw(st.permutations(range(len(names))))
    return (
        [attributes[k] for k in order],
        [kinds[k] for k in order],
        [[row[k] for k in order] for row in rows],
    )


def expected_features(attributes, kinds, rows):
    """Numbers as they are, two values as 0 and 1, three as a column each."""
    found = []
    for row in rows:
        line = []
        for (_, values), kind, value in zip(attributes, kinds, row, strict=True):
            if kind == "number":
                line.append(value)
            elif kind == "two":
                line.append(values.index(value))
            elif kind == "three":
                line += [v == value for v in values]
        found.append(line)
    return np.array(found, float).reshape(len(rows), -1)


@given(table=tables(), sparse=st.booleans())
def test_arff_comes_back_from_mulan(tmp_path_factory, table, sparse):
    from xml.sax.saxutils import quoteattr

    attributes, kinds, rows = table
    folder = tmp_path_factory.mktemp("mulan")
    (folder / "d.arff").write_text(arff(attributes, rows, sparse=sparse), encoding="utf-8", newline="")
    labels = [name for (name, _), kind in zip(attributes, kinds, strict=True) if kind == "label"][::-1]
    escapes = {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"}
    marks = "".join(f"<label name={quoteattr(name, escapes)}></label>" for name in labels)
    (folder / "d.xml").write_text(HEADER.format(marks), encoding="utf-8")
    dataset = data.load(f"mulan:{folder}")
    place = {name: k for k, (name, _) in enumerate(attributes)}
    assert dataset.problems == ()
    assert dataset.labels == tuple(labels)
    assert dataset.targets.tolist() == [[row[place[name]] == "1" for name in labels] for row in rows]
    assert np.array_equal(dataset.inputs, expected_features(attributes, kinds, rows))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("count", "labels"), [(2, ("a b", "c")), (-1, ("f",))])
def test_meka_labels_are_the_first_or_the_last(tmp_path, sparse, count, labels):
    zero_one = ("0", "1")
    attributes = [("a b", zero_one), ("c", zero_one), ("d", None), ("e", ("no", "yes")), ("f", zero_one)]
    rows = [["1", "0", 2.5, "yes", "1"], ["0", "0", 0.0, "no", "0"], ["1", "1", -1.0, "no", "1"]]
    (tmp_path / "m.arff").write_text(
        arff(attributes, rows, relation=f"Some: -C {count} -split-number 9", sparse=sparse)
    )
    dataset = data.load(f"meka:{tmp_path / 'm.arff'}")
    names = [name for name, _ in attributes]
    assert (dataset.name, dataset.labels) == ("m", labels)
    assert dataset.targets.tolist() == [[row[names.index(label)] == "1" for label in labels] for row in rows]
    numbers = np.array([[1, 0, 2.5, 1, 1], [0, 0, 0, 0, 0], [1, 1, -1, 0, 1]])
    assert np.array_equal(
        dataset.inputs, numbers[:, [k for k, name in enumerate(names) if name not in labels]]
    )


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ("1,2", "a broken row, skipped (2 values where 3 are due)"),
        ("1,2,x", "a broken row, skipped"),
        ("1,nan,1", "a broken row, skipped (a value is not finite)"),
        ("?,2,1", "a row with a value missing, skipped"),
        ("{0 1, 7 3}", "a broken row, skipped"),
        ("{0 1", "a broken row, skipped (the closing brace is missing)"),
        ("'1,2,1", "a broken row, skipped"),
        ("{0 1, }", "a broken row, skipped"),
    ],
)
def test_a_broken_row_of_arff_costs_itself_alone(tmp_path, row, kind):
    path = tmp_path / "m.arff"
    path.write_text(
        f"@relation '-C -1'\n@attribute a numeric\n@attribute b real\n@attribute c {{0,1}}\n@data\n1,2,1\n{row}\n3,4,0\n"
    )
    dataset = data.load(f"meka:{path}")
    assert dataset.inputs.tolist() == [[1, 2], [3, 4]]
    assert dataset.problems[0].startswith(f"{path}:7: {kind}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has no @data"),
        ("@relation r\n@data\n1\n", "has no attribute"),
        ("@relation r\n@attribute a numeric\n@attribute a numeric\n@data\n", "has two attributes 'a'"),
        ("@relation r\n@attribute a string\n@data\n", ":2: a is of type 'string': it may be numeric or"),
        ("@relation r\n@attribute a\n@data\n", ":2: a is of type ''"),
        (
            "@relation r\nattribute a numeric\n@data\n",
            ":2 is 'attribute a numeric': @relation, @attribute or @data",
        ),
        ("@relation r\n@attribute a {0,1}\n@data\n", "has no row"),
        (
            "@relation r\n@attribute a {0,1}\n@data\n1\n",
            "the relation is 'r': it must have -C n for its 1 columns",
        ),
        ("@relation '-C 2'\n@attribute a {0,1}\n@data\n1\n", "the relation is '-C 2'"),
        ("@relation '-C 1'\n@attribute a numeric\n@data\n3\n", r"targets\[0, 0\] is 3"),
    ],
)
def test_arff_that_cannot_be_read_is_one_line(tmp_path, content, message):
    (tmp_path / "m.arff").write_text(content)
    with pytest.raises(ValueError, match=rf"^[^\n]*{message}[^\n]*$"):
        data.load(f"meka:{tmp_path / 'm.arff'}")


def test_mulan_that_does_not_fit_together_is_one_line(tmp_path):
    (tmp_path / "d.arff").write_text("@relation r\n@attribute a {0,1}\n@attribute b numeric\n@data\n1,2\n")
    with pytest.raises(ValueError, match="has no XML file with the names of the labels"):
        data.load(f"mulan:{tmp_path}")
    for content, message in (
        (HEADER.format('<label name="z"/>'), r"d\.arff has no attribute 'z'"),
        (HEADER.format(""), r"d\.arff: no label"),
        (f"<!DOCTYPE labels>{HEADER.format('')}", r"d\.xml:1: XML with a document type, refused"),
    ):
        (tmp_path / "d.xml").write_text(content)
        with pytest.raises(ValueError, match=message):
            data.load(f"mulan:{tmp_path}")
    (tmp_path / "d.xml").write_text(HEADER.format('<label name="a"><label name="b"/></label>'))
    with pytest.raises(ValueError, match=r"d\.arff: targets\[0, 1\] is 2"):
        data.load(f"mulan:{tmp_path}")
    for part, values in (("train", "{u,v}"), ("test", "{v,u}")):
        header = f"@relation r\n@attribute a {{0,1}}\n@attribute b {values}\n@data\n1,u\n"
        (tmp_path / f"d-{part}.arff").write_text(header)
    with pytest.raises(ValueError, match=r"d-train\.arff has other attributes than d-test\.arff"):
        data.load(f"mulan:{tmp_path}")


def test_what_weka_writes_with_a_backslash(tmp_path):
    names = "@attribute 'it\\'s\\n\\t\\\\ 100\\%' {0,1}\n@attribute \"double \\\" 'q'\" {0, 1}\n@ATTRIBUTE plain{'0', '1'}\n"
    (tmp_path / "m.arff").write_text(f"@relation 'a: -C 3'\n{names}@DATA\n1,'0',\"1\"\n\n{{2 '1', 0 1}}\n")
    dataset = data.load(f"meka:{tmp_path / 'm.arff'}")
    assert dataset.labels == ("it's\n\t\\ 100%", "double \" 'q'", "plain")
    assert dataset.targets.tolist() == [[True, False, True]] * 2


def test_what_a_sparse_row_leaves_out_is_0_or_the_first_value(tmp_path):
    attributes = "@attribute a numeric\n@attribute b {3,5}\n@attribute c {1,0}\n"
    (tmp_path / "m.arff").write_text(f"@relation '-C -1'\n{attributes}@data\n{{}}\n{{0 2,1 5,2 0}}\n")
    dataset = data.load(f"meka:{tmp_path / 'm.arff'}")
    assert dataset.inputs.tolist() == [[0, 3], [2, 5]]
    assert dataset.targets.tolist() == [[True], [False]]


CELLS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\ufeff"), min_size=1, max_size=12
).filter(str.strip)
LABELS = st.text("abcé '\"", min_size=1, max_size=4).map(str.strip).filter(bool)


@given(
    rows=st.lists(st.tuples(CELLS, st.lists(LABELS, max_size=3, unique=True)), min_size=1, max_size=6).filter(
        lambda rows: any(labels for _, labels in rows)
    ),
    tabs=st.booleans(),
    everything_quoted=st.booleans(),
)
def test_csv_comes_back(tmp_path_factory, rows, tabs, everything_quoted):
    """Written by Python's own writer, texts with quotes, separators and line ends and all."""
    out = io.StringIO()
    writer = csv.writer(
        out,
        delimiter="\t" if tabs else ",",
        quoting=csv.QUOTE_ALL if everything_quoted else csv.QUOTE_MINIMAL,
    )
    writer.writerow(["text", "labels"])
    writer.writerows((text, "|".join(labels)) for text, labels in rows)
    path = tmp_path_factory.mktemp("csv") / f"t.{'tsv' if tabs else 'csv'}"
    path.write_bytes(out.getvalue().encode())
    dataset = data.load(path)
    assert dataset.problems == ()
    assert list(dataset.inputs) == [text for text, _ in rows]
    for (_, labels), found in zip(rows, dataset.targets, strict=True):
        assert {label for label, there in zip(dataset.labels, found, strict=True) if there} == set(labels)
