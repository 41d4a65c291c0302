"""Usage: check_h5py.py EVERY PLAIN MANUAL. Compare traces with the manual's tree: every column
that it lists is in EVERY, with that type and unit, and nothing else is."""
import re
import sys

import h5py
import numpy as np

every, plain, manual = sys.argv[1:]

# "    kind: enum int8 [1]" below "/arms/<arm>/timeline" in the manual
documented = {}
for line in open(manual, encoding="utf-8"):
    line = line.replace("\\-", "-").replace("\\e", "\\").rstrip("\n")
    group = re.fullmatch(r"(/\S*)", line)
    column = re.fullmatch(r"\s+(\w+): (int64|float64|enum int8|text)(?: \[(\S+)\])?.*", line)
    if group:
        table = documented.setdefault(group.group(1), {})
    elif column and documented:
        table[column.group(1)] = (column.group(2), column.group(3))
documented = {name: table for name, table in documented.items() if table}
assert len(documented) >= 13, sorted(documented)


def pattern_of(path):
    path = re.sub(r"^/arms/[^/]+", "/arms/<arm>", path)
    return re.sub(r"/seeds/[^/]+", "/seeds/<seed>", path)


def kind_of(dataset):
    kinds = h5py.check_enum_dtype(dataset.dtype)
    if kinds is not None:
        assert kinds == {"F": 0, "B": 1, "W": 2, "BW": 3, "U": 4}, kinds
        assert dataset.dtype == np.int8
        return "enum int8"
    text = h5py.check_string_dtype(dataset.dtype)
    if text is not None:
        assert text.encoding == "utf-8" and text.length is not None
        return "text"
    assert dataset.dtype.str[0] in "<|", dataset.dtype
    return str(dataset.dtype)


def text_of(attribute):
    return None if attribute is None else attribute.decode("utf-8")


seen = {}


def visit(name, item):
    if not isinstance(item, h5py.Dataset) or name == "config_resolved":
        return
    group, column = ("/" + name).rsplit("/", 1)
    table = documented[pattern_of(group)]
    if group == "/sweep" and (column in ("baseline", "segments") or "." in column):
        # any configuration key, in the manual by one rule
        kind = kind_of(item)
        assert kind in ("int64", "float64", "text"), (name, kind)
        assert (text_of(item.attrs.get("units")) is None) == (kind == "text"), name
        return
    assert column in table, name + " is not in the manual"
    kind, units = table[column]
    assert kind_of(item) == kind, (name, kind_of(item), kind)
    assert text_of(item.attrs.get("units")) == units, name
    assert item.attrs["long_name"], name
    assert item.ndim == 1 and item.fletcher32 and item.shuffle and item.chunks, name
    assert item.compression == "gzip" and item.compression_opts == 4, name
    seen.setdefault(pattern_of(group), set()).add(column)


with h5py.File(every, "r") as f:
    assert text_of(f.attrs["Conventions"]) == "pipelag-trace 1"
    assert list(f.attrs["schema_version"]) == [1, 0]
    assert len(f["config_resolved"][0]) == 200000
    f.visititems(visit)
    assert seen == {name: set(table) for name, table in documented.items()}
    rows = f["/arms/zeta+2bw/seeds/1/rows"]
    assert text_of(rows.attrs["signal"]) == "loss" and text_of(rows.attrs["axes"]) == "update"
    for group in (f[name] for name in ("/claims", "/table", "/arms/a b/timeline")):
        assert len({len(column) for column in group.values()}) == 1
    assert set(f["/claims/word"].asstr()[:]) <= {"", 'a, "b"\nc', "été", "x"}

with h5py.File(plain, "r") as f:
    timeline = f["/arms/adamw+gpipe/timeline"]
    assert list(timeline) == ["kind", "device", "chunk", "micro", "start", "end"]
    work = timeline["end"][:] - timeline["start"][:]
    assert work[timeline["kind"][:] == 3].sum() == 2 * 4 * 8 * 2 * 10**9
    assert f["/arms/adamw+gpipe"].attrs["P"] == 4
    assert list(f["/arms"]) == ["adamw+gpipe", "muon+gpipe"]
