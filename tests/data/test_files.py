"""Files: whole or not at all, strict JSON, errors with file and line, odd Unicode repaired in one place and counted."""

import builtins
import errno
import gzip
import math
import os
import subprocess
import sys

import pytest

from steadyrank import files
from steadyrank.errors import InputError, MissingDataError, RunError
from steadyrank.files import (
    RepairedTextWarning,
    atomic_write,
    cache_dir,
    fingerprint,
    read_json,
    read_jsonl,
    read_text_lines,
    write_json,
    write_jsonl,
)  # fmt: skip


def put(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, name):
    path = tmp_path / name
    write_jsonl(path, [{"old": 1}])

    def rows():
        yield {"new": 1}
        raise KeyError("stop")

    with pytest.raises(KeyError):
        write_jsonl(path, rows())
    assert [row for _, row in read_jsonl(path)] == [{"old": 1}]
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


class FullDisk:
    """An open file whose device has no space left."""

    def __init__(self, body):
        self.body = body

    def __getattr__(self, name):
        return getattr(self.body, name)

    def __enter__(self):
        return self

    def __exit__(self, *told):
        self.body.close()

    def write(self, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("name", ["x.json", "x.json.gz"])
def test_no_space_left_is_one_sentence_and_nothing_is_half_written(tmp_path, monkeypatch, name):
    path = tmp_path / name
    write_json(path, {"old": 1})
    plain = builtins.open
    monkeypatch.setattr(files, "open", lambda *args, **kw: FullDisk(plain(*args, **kw)), raising=False)
    with pytest.raises(RunError, match=f"no space left to write .*{name}"):
        write_json(path, {"new": "x" * 100_000})
    monkeypatch.undo()
    assert read_json(path) == {"old": 1} and len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_a_real_full_device(tmp_path):
    with pytest.raises(RunError, match="no space left"):
        write_jsonl("/dev/full", [{"x": "y" * 10_000}] * 100)


def test_packed_files_have_equal_bytes_for_equal_content(tmp_path):
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        write_jsonl(tmp_path / name, [{"x": 1}])
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1}\n{"a": \n', ":2: broken JSON at column"),
        ('{"a": 1}\n[1]\n', ":2: is a JSON list"),
        ('\n{"a": [1, {"b": NaN}]}\n', r":2: a\[1\]\.b: is NaN"),
        ('{"a": -Infinity}', ":1: a: is -inf"),
        (b'{"a": 1}\n{"a": "\xff"}\n', ":2: is not UTF-8"),
        ('{"a": ' + "[" * 100_000, ":1: "),
        ('{"a": ' + "9" * 5000 + "}", ":1: JSON that cannot be read"),
    ],
)
def test_bad_lines_are_named(tmp_path, text, told):
    with pytest.raises(InputError, match=told) as caught:
        list(read_jsonl(put(tmp_path / "x.jsonl", text)))
    assert "x.jsonl" in str(caught.value) and "\n" not in str(caught.value)


def test_missing_folder_and_cut_gzip(tmp_path):
    with pytest.raises(MissingDataError, match="no such file"):
        list(read_jsonl(tmp_path / "none.jsonl"))
    with pytest.raises(InputError, match="is a folder"):
        list(read_jsonl(tmp_path))
    packed = gzip.compress(b'{"a": 1}\n' * 1000)
    with pytest.raises(InputError, match="not a whole gzip file"):
        list(read_jsonl(put(tmp_path / "cut.jsonl.gz", packed[:-10])))


def test_byte_order_mark_windows_lines_and_line_separators(tmp_path):
    path = put(tmp_path / "x.jsonl", b"\xef\xbb\xbf" + '{"a": "one\u2028line"}\r\n\r\n{"a": 2}\r\n'.encode())
    assert list(read_jsonl(path)) == [(1, {"a": "one\u2028line"}), (3, {"a": 2})]
    assert list(read_text_lines(put(tmp_path / "t", b"a\r\nb")))[1] == (2, "b")


def test_half_a_surrogate_pair_is_replaced_and_counted(tmp_path):
    whole = r'{"a": "fine \ud83d\ude00", "b": ["cut \ud83d", {"k\udc00": 1}]}'
    path = put(tmp_path / "x.jsonl", whole + "\n" + r'{"a": "fine \ud83d\ude00"}' + "\n")
    with pytest.warns(RepairedTextWarning, match=r"x\.jsonl: 1 record.*line 1"):
        (_, first), (_, second) = read_jsonl(path)
    assert first == {"a": "fine 😀", "b": ["cut \ufffd", {"k\ufffd": 1}]} and second == {"a": "fine 😀"}
    str(first).encode("utf-8")


def test_text_that_is_no_utf8_is_written_escaped(tmp_path):
    write_jsonl(tmp_path / "x.jsonl", [{"a": "cut \ud83d"}, {"a": "狐"}])
    assert (tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines() == ['{"a": "cut \\ud83d"}', '{"a": "狐"}']


def test_nan_is_not_written(tmp_path):
    with pytest.raises(InputError, match="x.jsonl:2: holds NaN"):
        write_jsonl(tmp_path / "x.jsonl", [{"a": 1}, {"a": math.nan}])
    assert not list(tmp_path.iterdir())


def test_fingerprint_sees_values_and_not_their_order_or_the_hash_seed():
    assert fingerprint({"a": 1, "b": [1, 2]}) == fingerprint({"b": (1, 2), "a": 1}) != fingerprint({"a": 1, "b": [2, 1]})
    code = "from steadyrank.files import fingerprint; print(fingerprint({'s': {'x', 'y', 'z'}, 't': 'ü'}))"
    told = {
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in "12"
    }
    assert len(told) == 1


def test_cache_dir_is_named_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("STEADYRANK_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path


def test_a_folder_as_target_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be written"), atomic_write(tmp_path) as out:
        out.write("x")
