"""What a function returned, as JSON.

JSON types are written unchanged. Other types take the least surprising form, with a warning where
something is lost.
"""

import json
import math

# Maximum nesting of a value; toolhost reads no deeper.
DEEPEST = 100
# Maximum number of items from an iterator.
MOST_ITEMS = 1000000


def to_json(value):
    """The JSON text of a value as bytes, and what was lost."""
    warnings = []
    try:
        text = encode(value, lambda other: known_form(other, warnings))
        if depth_is_fine(text):
            return text, unique(warnings)
    except (TypeError, ValueError, RecursionError, UnicodeError, OverflowError):
        # NaN, odd keys, invalid text, cycles: handled piece by piece.
        pass
    warnings = []
    plain = simplify(value, warnings, 0, set())
    return encode(plain, str), unique(warnings)


def encode(value, default):
    text = json.dumps(value, default=default, allow_nan=False, ensure_ascii=False,
                      separators=(",", ":"))
    return text.encode("utf-8")


def depth_is_fine(text):
    # Nesting takes a bracket per level, so few brackets cannot nest deeply.
    return text.count(b"[") + text.count(b"{") <= DEEPEST or nesting(json.loads(text)) <= DEEPEST


def nesting(value):
    deepest, left = 0, [(value, 1)]
    while left:
        one, depth = left.pop()
        if isinstance(one, dict):
            one = one.values()
        elif not isinstance(one, list):
            continue
        deepest = max(deepest, depth)
        if deepest > DEEPEST:
            break
        left.extend((item, depth + 1) for item in one if isinstance(item, (dict, list)))
    return deepest


def unique(warnings):
    return list(dict.fromkeys(warnings))


def simplify(value, warnings, depth, above):
    """The value as JSON types."""
    if depth > DEEPEST:
        warnings.append("values nested deeper than %d levels were left out" % DEEPEST)
        return None
    if value is None or value is True or value is False:
        return value
    if isinstance(value, float):
        value = float(value)
        if math.isfinite(value):
            return value
        warnings.append("%r became null: JSON has no such number" % value)
        return None
    if isinstance(value, str):
        return text_of(value, warnings)
    if isinstance(value, int):
        return int(value)
    if id(value) in above:
        warnings.append("a value that contains itself was left out there")
        return None
    above = above | {id(value)}
    if isinstance(value, dict):
        return {key_of(key, warnings): simplify(item, warnings, depth + 1, above)
                for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [simplify(item, warnings, depth + 1, above) for item in value]
    return simplify(known_form(value, warnings), warnings, depth, above)


def text_of(value, warnings):
    try:
        value.encode("utf-8")
        return str(value)
    except UnicodeError:
        warnings.append("text with invalid characters was repaired")
        return value.encode("utf-8", "replace").decode("utf-8")


def key_of(key, warnings):
    if isinstance(key, str):
        return text_of(key, warnings)
    if key is None or isinstance(key, bool):
        return json.dumps(key)
    if not isinstance(key, (int, float)):
        warnings.append("keys of the type %s became text" % type(key).__name__)
    return text_of(str(key), warnings)


def known_form(value, warnings):
    """One level of a value that is not a JSON type, converted to something closer to one."""
    import base64, collections.abc, dataclasses, datetime, decimal, enum, fractions, pathlib, uuid

    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json")
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, (pathlib.PurePath, decimal.Decimal, uuid.UUID, fractions.Fraction)):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        raw = bytes(value)
        try:
            return raw.decode("utf-8")
        except UnicodeError:
            warnings.append("bytes that are not text were written in base64")
            return base64.b64encode(raw).decode()
    if isinstance(value, (set, frozenset)):
        try:
            return sorted(value)
        except TypeError:
            return list(value)
    # NumPy's scalars and arrays, without importing it.
    if hasattr(value, "dtype"):
        for name in ("tolist", "item"):
            if callable(getattr(value, name, None)):
                return getattr(value, name)()
    if isinstance(value, collections.abc.Mapping):
        return dict(value)
    if isinstance(value, (collections.abc.Iterator, collections.abc.Set, collections.abc.Sequence,
                          collections.abc.ValuesView)):
        items = []
        for item in value:
            if len(items) == MOST_ITEMS:
                warnings.append("an iterator was cut off after %d items" % MOST_ITEMS)
                break
            items.append(item)
        return items
    if hasattr(value, "success") and (hasattr(value, "output") or hasattr(value, "error")):
        names = ("success", "output", "error", "metadata")
        return {name: getattr(value, name) for name in names if hasattr(value, name)}
    warnings.append("a value of the type %s was written as text" % type(value).__name__)
    return str(value)
