"""Type hints: as JSON Schema, and for turning JSON into what they name.

A function that is called with keywords and declares `when: datetime` or `point: Point` gets a
datetime or a Point, not text or a dict. Hints that mean nothing here change nothing.
"""

import collections.abc
import contextvars
import dataclasses
import datetime
import decimal
import enum
import inspect
import pathlib
import typing
import uuid

# Maximum nesting of types.
DEEPEST = 12

ARRAYS = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection,
          collections.abc.MutableSequence, collections.abc.Iterator)
SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)
MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
TEXTS = {datetime.datetime: "date-time", datetime.date: "date", datetime.time: "time",
         uuid.UUID: "uuid", pathlib.Path: None, pathlib.PurePath: None, decimal.Decimal: None,
         bytes: None}
SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def hints_of(thing):
    """The hints of a function or class, with names in quotes looked up where that is possible."""
    target = thing
    if not (inspect.isfunction(thing) or inspect.isclass(thing) or inspect.ismethod(thing)):
        target = getattr(thing, "__wrapped__", None) or getattr(type(thing), "__call__", thing)
    try:
        if hasattr(typing, "Annotated"):
            return typing.get_type_hints(target, include_extras=True)
        return typing.get_type_hints(target)
    except Exception:
        return dict(getattr(target, "__annotations__", {}))


def parts(hint):
    origin = typing.get_origin(hint)
    return origin, typing.get_args(hint)


def is_union(origin):
    import types
    return origin is typing.Union or origin is getattr(types, "UnionType", typing.Union)


def is_annotated(hint):
    return hasattr(hint, "__metadata__") and hasattr(hint, "__origin__")


def is_model(hint):
    return inspect.isclass(hint) and callable(getattr(hint, "model_json_schema", None))


def is_typed_dict(hint):
    return inspect.isclass(hint) and issubclass(hint, dict) and hasattr(hint, "__total__")


# Classes whose schema is being built, to end the recursion of self-referential ones.
OPEN = contextvars.ContextVar("toolhost_open", default=())


# --- hints as schemas -------------------------------------------------------------------------

def schema(hint, doubts, depth=0):
    """The schema of a hint; `{}`, which allows everything, if it cannot be expressed."""
    if depth > DEEPEST or hint is inspect.Parameter.empty:
        return {}
    if hint is None:
        return {"type": "null"}
    if isinstance(hint, str):
        doubts.append("the type '%s' cannot be looked up" % hint)
        return {}
    if is_annotated(hint):
        return annotated(hint, doubts, depth)
    if hint in (typing.Any, object):
        return {}
    origin, inner = parts(hint)
    if origin is None and inspect.isclass(hint):
        return of_class(hint, doubts, depth)
    if is_union(origin):
        return union(inner, doubts, depth)
    if origin is typing.Literal:
        return of_values(list(inner))
    if origin is tuple:
        return of_tuple(inner, doubts, depth)
    if origin in ARRAYS or origin in SETS:
        found = {"type": "array"}
        if inner and not isinstance(inner[0], typing.TypeVar):
            items = schema(inner[0], doubts, depth + 1)
            if items:
                found["items"] = items
        if origin in SETS:
            found["uniqueItems"] = True
        return found
    if origin in MAPPINGS:
        found = {"type": "object"}
        if len(inner) == 2:
            values = schema(inner[1], doubts, depth + 1)
            if values:
                found["additionalProperties"] = values
        return found
    if isinstance(hint, typing.TypeVar):
        return schema(hint.__bound__, doubts, depth + 1) if hint.__bound__ else {}
    inside = getattr(hint, "__supertype__", None)
    if inside is not None:
        return schema(inside, doubts, depth + 1)
    if origin is not None and inner and getattr(origin, "_name", None) in ("Required", "NotRequired"):
        return schema(inner[0], doubts, depth + 1)
    if origin is not None and inspect.isclass(origin):
        return of_class(origin, doubts, depth)
    doubts.append("the type %s has no schema" % name_of(hint))
    return {}


def name_of(hint):
    return getattr(hint, "__qualname__", None) or str(hint)


def annotated(hint, doubts, depth):
    found = schema(hint.__origin__, doubts, depth + 1)
    for extra in hint.__metadata__:
        text = extra if isinstance(extra, str) else getattr(extra, "description", None)
        if isinstance(text, str):
            found["description"] = text
        if isinstance(extra, dict):
            found.update(extra)
        # The bounds that annotated-types and pydantic's Field carry.
        for name, word in (("ge", "minimum"), ("gt", "exclusiveMinimum"), ("le", "maximum"),
                           ("lt", "exclusiveMaximum"), ("multiple_of", "multipleOf")):
            bound = getattr(extra, name, None)
            if isinstance(bound, (int, float)) and not isinstance(bound, bool):
                found[word] = bound
    return found


def union(inner, doubts, depth):
    any_of = []
    for one in inner:
        found = schema(one, doubts, depth + 1)
        if found not in any_of:
            any_of.append(found)
    if len(any_of) == 1:
        return any_of[0]
    if {} in any_of:
        return {}
    if all(list(one) == ["type"] for one in any_of):
        return {"type": [one["type"] for one in any_of]}
    return {"anyOf": any_of}


def of_values(values):
    values = [one.value if isinstance(one, enum.Enum) else one for one in values]
    found = {"enum": values}
    kinds = {SIMPLE.get(type(one)) for one in values}
    if len(kinds) == 1 and None not in kinds:
        found = {"type": kinds.pop(), "enum": values}
    return found


def of_tuple(inner, doubts, depth):
    if not inner:
        return {"type": "array"}
    if len(inner) == 2 and inner[1] is Ellipsis:
        items = schema(inner[0], doubts, depth + 1)
        return {"type": "array", "items": items} if items else {"type": "array"}
    items = [schema(one, doubts, depth + 1) for one in inner]
    return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}


def of_class(hint, doubts, depth):
    if hint in SIMPLE:
        return {"type": SIMPLE[hint]}
    if hint in TEXTS:
        form = TEXTS[hint]
        return {"type": "string", "format": form} if form else {"type": "string"}
    if is_model(hint):
        found = hint.model_json_schema()
        found.pop("title", None)
        return found
    if issubclass(hint, enum.Enum):
        return of_values(list(hint))
    if hint in OPEN.get():
        return {"type": "object"}
    before = OPEN.set(OPEN.get() + (hint,))
    try:
        return of_structure(hint, doubts, depth)
    finally:
        OPEN.reset(before)


def of_structure(hint, doubts, depth):
    if is_typed_dict(hint):
        hints = hints_of(hint)
        required = [name for name in hints if name in getattr(hint, "__required_keys__", hints)]
        return of_fields(hints, required, {}, doubts, depth)
    if dataclasses.is_dataclass(hint):
        hints, required, defaults = hints_of(hint), [], {}
        fields = [field for field in dataclasses.fields(hint) if field.init]
        for field in fields:
            if field.default is not dataclasses.MISSING:
                defaults[field.name] = field.default
            elif field.default_factory is dataclasses.MISSING:
                required.append(field.name)
        known = {field.name: hints.get(field.name, field.type) for field in fields}
        return of_fields(known, required, defaults, doubts, depth)
    if hint in ARRAYS or hint is tuple:
        return {"type": "array"}
    if hint in SETS:
        return {"type": "array", "uniqueItems": True}
    if hint in MAPPINGS or issubclass(hint, dict):
        return {"type": "object"}
    for base, word in SIMPLE.items():
        if issubclass(hint, base):
            return {"type": word}
    doubts.append("the type %s has no schema" % name_of(hint))
    return {}


def of_fields(hints, required, defaults, doubts, depth):
    properties = {}
    for name, hint in hints.items():
        properties[name] = schema(hint, doubts, depth + 1)
        if name in defaults:
            add_default(properties[name], defaults[name])
    found = {"type": "object", "properties": properties}
    if required:
        found["required"] = required
    return found


def add_default(found, value):
    """Notes a default, if JSON can express it. A default of None only makes it optional."""
    import json
    if value is None:
        return
    if isinstance(value, enum.Enum):
        value = value.value
    try:
        found["default"] = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        pass


# --- JSON to what hints name ------------------------------------------------------------------

def converters(function):
    """For each parameter whose hint is not a JSON type: its conversion from JSON."""
    found = {}
    for name, hint in hints_of(function).items():
        change = converter(hint) if name != "return" else None
        if change is not None:
            found[name] = change
    return found


def converter(hint, depth=0):
    """A function of a value, or None if the value needs no conversion."""
    if depth > DEEPEST or isinstance(hint, str):
        return None
    if is_annotated(hint):
        return converter(hint.__origin__, depth + 1)
    origin, inner = parts(hint)
    if origin is None and inspect.isclass(hint):
        return class_converter(hint, depth)
    if is_union(origin):
        return union_converter(inner, depth)
    if origin is tuple:
        return tuple_converter(inner, depth)
    if origin in ARRAYS or origin in SETS:
        change = converter(inner[0], depth + 1) if inner else None
        make = set if origin in SETS else list
        if change is None and make is list:
            return None
        return when(list, lambda value: make(change(one) if change else one for one in value))
    if origin in MAPPINGS and len(inner) == 2:
        change = converter(inner[1], depth + 1)
        if change is not None:
            return when(dict, lambda value: {key: change(one) for key, one in value.items()})
    return None


def when(kind, change):
    """The conversion for values of one type; others are kept, and the function may reject them."""
    return lambda value: change(value) if isinstance(value, kind) else value


def class_converter(hint, depth):
    if is_model(hint):
        return when(dict, hint.model_validate)
    if dataclasses.is_dataclass(hint):
        return when(dict, lambda value: make(hint, value))
    if issubclass(hint, enum.Enum):
        return hint
    if hint in (datetime.datetime, datetime.date, datetime.time):
        return when(str, lambda value: hint.fromisoformat(z_as_offset(value)))
    if hint in (pathlib.Path, pathlib.PurePath, uuid.UUID):
        return when(str, hint)
    if hint is decimal.Decimal:
        return lambda value: value if isinstance(value, bool) else decimal.Decimal(str(value))
    if hint is bytes:
        return when(str, str.encode)
    if hint in SETS or hint is tuple:
        return when(list, hint)
    return None


# The conversions for each dataclass's fields; computed at first use, as it may contain itself.
FIELDS = {}


def make(dataclass, value):
    changes = FIELDS.get(dataclass)
    if changes is None:
        hints = hints_of(dataclass)
        found = {field.name: converter(hints.get(field.name, field.type))
                 for field in dataclasses.fields(dataclass)}
        changes = {name: change for name, change in found.items() if change is not None}
        FIELDS[dataclass] = changes
    return dataclass(**{
        key: changes[key](one) if key in changes else one for key, one in value.items()})


def z_as_offset(text):
    # Before 3.11 a Z is not supported.
    return text[:-1] + "+00:00" if text.endswith("Z") else text


def union_converter(inner, depth):
    changes = [(one, converter(one, depth + 1)) for one in inner]
    if all(change is None for _, change in changes):
        return None
    plain = tuple(one for one, change in changes if change is None and inspect.isclass(one))

    def change_first_that_fits(value):
        if value is None or (plain and isinstance(value, plain)):
            return value
        error = None
        for _, change in changes:
            if change is None:
                continue
            try:
                return change(value)
            except Exception as why:
                error = why
        if error is not None and not plain:
            raise error
        return value

    return change_first_that_fits


def tuple_converter(inner, depth):
    if len(inner) == 2 and inner[1] is Ellipsis:
        change = converter(inner[0], depth + 1)
        return when(list, lambda value: tuple(change(one) if change else one for one in value))
    changes = [converter(one, depth + 1) for one in inner]
    changed = lambda value: tuple(
        changes[at](one) if at < len(changes) and changes[at] else one
        for at, one in enumerate(value))
    return when(list, changed)
