"""Describes a function: its schema from its hints, and text from its docstring."""

import inspect
import re


def describe(function, context, doc=None):
    """The description and schema of a function. `context` names the parameter that is not an
    argument, and is True when the function takes all arguments as one dict; `doc` is its docstring
    if known."""
    summary, about = read((inspect.getdoc(function) if doc is None else doc) or "")
    found = {"description": summary, "file": file_of(function), "doubts": []}
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        found["doubts"].append("the function does not declare its parameters")
        found["input_schema"] = {"type": "object"}
        return found
    if context is True:
        # The dict may contain anything; only the docstring tells more.
        properties = {name: {"description": text} for name, text in about.items()
                      if name not in (parameters[0].name, parameters[1].name)}
        schema = {"type": "object"}
        if properties:
            schema["properties"] = properties
        else:
            found["doubts"].append(
                "the function takes one dict: only 'parameters_schema' can say what is in it")
        found["input_schema"] = schema
        return found
    found["input_schema"] = of_parameters(function, parameters, context, about, found["doubts"])
    return found


def of_parameters(function, parameters, context, about, doubts):
    hints_part = load("hints")
    hints = hints_part.hints_of(function)
    properties, required, open_ended = {}, [], False
    for parameter in parameters:
        name = parameter.name
        if name == context or parameter.kind is parameter.VAR_POSITIONAL:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            open_ended = True
            continue
        one = hints_part.schema(hints.get(name, parameter.annotation), doubts)
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
        else:
            hints_part.add_default(one, parameter.default)
            if "type" not in one and isinstance(parameter.default, bool):
                one["type"] = "boolean"
        if name in about and "description" not in one:
            one["description"] = about[name]
        properties[name] = one
    definitions = {}
    for one in properties.values():
        lift(one, definitions)
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if not open_ended:
        schema["additionalProperties"] = False
    if definitions:
        schema["$defs"] = definitions
    return schema


def lift(schema, definitions):
    """Moves the definitions of a model to the top, where its references look for them."""
    if isinstance(schema, dict):
        inner = schema.pop("$defs", None)
        if isinstance(inner, dict):
            definitions.update(inner)
        for value in schema.values():
            lift(value, definitions)
    elif isinstance(schema, list):
        for value in schema:
            lift(value, definitions)


def file_of(function):
    module = inspect.getmodule(function)
    return getattr(module, "__file__", None)


def untyped(function, context):
    """The name of a parameter that has no hint, if there is one."""
    for one in inspect.signature(function).parameters.values():
        if (one.annotation is one.empty and one.name != context
                and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)):
            return one.name
    return None


# --- docstrings -------------------------------------------------------------------------------

SECTION = re.compile(r"^(\w[\w ]*):\s*$")
GOOGLE = re.compile(r"^\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
NUMPY = re.compile(r"^\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")
SPHINX = re.compile(r"^\s*:(?:param|parameter|arg|argument|key)\s+(?:[^:]*?\s)?\*{0,2}(\w+)\s*:\s*(.*)$")
ARGUMENTS = ("args", "arguments", "parameters", "params", "keyword args", "keyword arguments")


def read(text):
    """The first paragraph of a docstring, and its text on each parameter, in the style of
    Google, NumPy or Sphinx."""
    lines = text.expandtabs().split("\n")
    summary = []
    for line in lines:
        if not line.strip() or SPHINX.match(line) or section(line):
            break
        summary.append(line.strip())
    about = {}
    at = 0
    while at < len(lines):
        match = SPHINX.match(lines[at])
        if match:
            block, at = indented(lines, at + 1, 1)
            note(about, match.group(1), [match.group(2)] + block)
        elif section(lines[at]) in ARGUMENTS:
            at = google(lines, at + 1, about)
        elif (lines[at].strip().lower() in ("parameters", "other parameters")
              and at + 1 < len(lines) and set(lines[at + 1].strip()) == {"-"}):
            at = numpy(lines, at + 2, about)
        else:
            at += 1
    return " ".join(summary) or None, about


def section(line):
    match = SECTION.match(line)
    return match.group(1).lower() if match else None


def width(line):
    return len(line) - len(line.lstrip())


def indented(lines, at, least):
    """The lines from `at` that are indented at least this far, and where they end."""
    block = []
    while at < len(lines) and lines[at].strip() and width(lines[at]) >= least:
        block.append(lines[at])
        at += 1
    return block, at


def note(about, name, lines):
    text = " ".join(line.strip() for line in lines if line.strip())
    if text:
        about.setdefault(name, text)


def google(lines, at, about):
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        indent = width(lines[at])
        match = GOOGLE.match(lines[at])
        if indent == 0:
            break
        block, end = indented(lines, at + 1, indent + 1)
        if match:
            note(about, match.group(1), [match.group(2)] + block)
        at = end
    return at


def numpy(lines, at, about):
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        underlined = at + 1 < len(lines) and lines[at + 1].strip() and set(lines[at + 1].strip()) == {"-"}
        match = NUMPY.match(lines[at])
        if width(lines[at]) or not match or underlined:
            break
        block, at = indented(lines, at + 1, 1)
        for name in match.group(1).split(","):
            note(about, name.strip(), block)
    return at
