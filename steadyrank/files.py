"""Files: whole or not at all, strict JSON, errors that name file and line.

`atomic_write` writes beside its target and renames, so that a reader never sees half a file; no space left is one sentence.
JSON is strict both ways: NaN and Infinity are refused. `.gz` names are (un)packed on the way.
Half of a surrogate pair ("\\ud83d" alone, an emoji cut in two) is legal in JSON text and breaks every tokenizer: reading replaces it
by U+FFFD, here and nowhere else, and a `RepairedTextWarning` counts the records it touched.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from steadyrank.errors import InputError, MissingDataError, RunError

_LONE = re.compile("[\ud800-\udfff]")
_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")
_FULL = (errno.ENOSPC, errno.EDQUOT)


class RepairedTextWarning(UserWarning):
    """Some records held half a surrogate pair, now U+FFFD."""


def cache_dir() -> Path:
    """Where steadyrank keeps what it fetched or computed: STEADYRANK_CACHE, else ~/.cache/steadyrank."""
    named = os.environ.get("STEADYRANK_CACHE")
    return Path(named).expanduser() if named else Path.home() / ".cache" / "steadyrank"


@contextmanager
def atomic_write(path: str | Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """A file handle whose content appears under `path` only when the block ends well; folders on the way are made."""
    path = Path(path)
    is_stream = path.exists() and not path.is_file() and not path.is_dir()  # /dev/stdout, a pipe: written as it is, never replaced
    scratch = path if is_stream else path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _open_new(scratch, packed=path.suffix == ".gz", binary=binary) as handle:
            yield handle
        if not is_stream:
            os.replace(scratch, path)
    except OSError as error:
        if error.errno in _FULL:
            raise RunError(f"no space left to write {path}; free some space or choose another folder (nothing was half-written)") from error
        if isinstance(error, (PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError)):
            raise InputError(f"cannot be written ({error.strerror}); choose another place", path=path) from error
        raise
    finally:
        if not is_stream:
            _forget(scratch)


@contextmanager
def _open_new(path: Path, *, packed: bool, binary: bool) -> Iterator[IO[Any]]:
    with open(path, "wb") as raw:
        body: Any = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if packed else raw  # no time, no name: equal content, equal bytes
        handle: Any = body if binary else io.TextIOWrapper(body, encoding="utf-8", newline="\n")
        yield handle
        handle.flush()
        if not binary:
            handle.detach()  # else the wrapper closes `raw` before gzip wrote its tail
        if packed:
            body.close()


def _forget(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return


def write_json(path: str | Path, obj: Any) -> None:
    """`obj` as indented strict JSON."""
    text = to_json_text(obj, path=path, indent=2)
    with atomic_write(path) as out:
        out.write(text + "\n")


def write_jsonl(path: str | Path, rows: Iterable[Any]) -> int:
    """One strict JSON text a line; returns the number of lines."""
    count = 0
    with atomic_write(path) as out:
        for row in rows:
            count += 1
            out.write(to_json_text(row, path=path, line=count) + "\n")
    return count


def to_json_text(obj: Any, *, path: str | Path | None = None, line: int | None = None, indent: int | None = None) -> str:
    """Strict JSON of plain values, dataclasses, numpy scalars and paths."""
    try:
        text = json.dumps(obj, ensure_ascii=False, allow_nan=False, default=_plain, indent=indent)
    except ValueError as error:
        raise InputError(f"holds NaN or Infinity, which JSON cannot hold ({error})", path=path, line=line) from error
    if _LONE.search(text):  # escaped, so that the file is still UTF-8
        text = json.dumps(obj, ensure_ascii=True, allow_nan=False, default=_plain, indent=indent)
    return text


def read_json(path: str | Path) -> Any:
    """The value of a JSON file."""
    text = b"".join(line for _, line in read_lines(path))
    value, repaired = _decode(text, path=path, line=None)
    if repaired:
        _warn_repaired(path, 1, None)
    return value


def read_jsonl(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number from 1, object) of every line that is not blank; streams, so a large file costs one line of memory."""
    repaired, first = 0, None
    for number, line in read_lines(path):
        if not line.strip():
            continue
        value, odd = _decode(line, path=path, line=number)
        if not isinstance(value, dict):
            raise InputError(f"is a JSON {type(value).__name__}; every line must be an object {{...}}", path=path, line=number)
        if odd:
            repaired, first = repaired + 1, first or number
        yield number, value
    if repaired:
        _warn_repaired(path, repaired, first)


def read_lines(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """(line number from 1, bytes) of a plain or gzipped file; a byte order mark of UTF-8 is dropped."""
    path = Path(path)
    if path.is_dir():
        raise InputError("is a folder; give a file", path=path)
    if not path.exists():
        raise MissingDataError(f"{path}: no such file")
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as lines:
            for number, line in enumerate(lines, start=1):
                yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
    except (gzip.BadGzipFile, EOFError) as error:
        raise InputError(f"is not a whole gzip file ({error})", path=path) from error
    except PermissionError as error:
        raise InputError("cannot be read; check its permissions", path=path) from error


def read_text_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """(line number from 1, text without its line end) of a UTF-8 file."""
    for number, line in read_lines(path):
        yield number, _utf8(line, path=path, line=number).rstrip("\r\n")


def _utf8(raw: bytes, *, path: str | Path, line: int | None) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8 (byte {error.start + 1}: {raw[error.start]:#04x}); save the file as UTF-8", path=path, line=line
        ) from error


def _decode(raw: bytes, *, path: str | Path, line: int | None) -> tuple[Any, bool]:
    text = _utf8(raw, path=path, line=line)
    try:
        value = json.loads(text, parse_constant=_refuse)
    except _Constant:
        field, constant = _first_constant(json.loads(text))
        named = "NaN" if constant != constant else constant
        message = f"is {named}; give a finite number, or leave the field out"
        raise InputError(message, path=path, line=line, field=field or None) from None
    except json.JSONDecodeError as error:
        at = f"column {error.colno}" if line is not None else f"line {error.lineno} column {error.colno}"
        raise InputError(f"broken JSON at {at} ({error.msg}); fix or remove it", path=path, line=line) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"JSON that cannot be read ({error})", path=path, line=line) from error
    if not _ESCAPED.search(text):
        return value, False
    mended = _mend(value)
    return mended, mended != value


class _Constant(ValueError):
    pass


def _refuse(name: str) -> NoReturn:
    raise _Constant(name)


def _first_constant(value: Any, place: str = "") -> tuple[str, float | None]:
    if isinstance(value, float) and not float("-inf") < value < float("inf"):
        return place, value
    items: Iterable[tuple[str, Any]] = ()
    if isinstance(value, dict):
        items = ((f"{place}.{key}" if place else key, inner) for key, inner in value.items())
    elif isinstance(value, list):
        items = ((f"{place}[{index}]", inner) for index, inner in enumerate(value))
    for where, inner in items:
        found = _first_constant(inner, where)
        if found[1] is not None:
            return found
    return "", None


def _mend(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_mend(inner) for inner in value]
    if isinstance(value, dict):
        return {_mend(key): _mend(inner) for key, inner in value.items()}
    return value


def _warn_repaired(path: str | Path, count: int, first: int | None) -> None:
    where = f" (first on line {first})" if first else ""
    warnings.warn(f"{path}: {count} record(s) held half a surrogate pair{where}; replaced by U+FFFD", RepairedTextWarning, stacklevel=3)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        return value.tolist()
    raise InputError(f"a {type(value).__name__} cannot be written as JSON")


def fingerprint(obj: Any) -> str:
    """16 hex digits of the SHA-256 of the canonical JSON of `obj`: equal values, equal fingerprint, in any process."""
    text = json.dumps(obj, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=_plain)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


def file_digest(path: str | Path) -> str:
    """The SHA-256 of a file's bytes, in hex."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as body:
            while block := body.read(1 << 20):
                digest.update(block)
    except FileNotFoundError as error:
        raise MissingDataError(f"{path}: no such file") from error
    return digest.hexdigest()
