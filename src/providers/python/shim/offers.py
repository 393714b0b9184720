"""What a module offers as tools: definitions with their own schema, and typed functions.

A definition is an object like `HostToolDefinition`, with `name`, `description`, `parameters` and
`handler`, or a tool object with `execute` in place of the handler. It is found as a variable of the
module, in a list, tuple or dict of it, and in a registry with `list_tools`. Where a module has any,
its other functions are helpers unless `__all__` names them.
"""

import enum
import functools
import inspect
import types

# Maximum number of items of one container to inspect.
MOST_ITEMS = 1000
# What a definition may set besides its name, description and schema.
ABOUT = ("title", "category", "speed", "safety", "scope", "version", "timeout", "retries",
         "requires_approval", "output_schema")
SCHEMAS = ("parameters", "input_schema", "parameters_schema", "inputSchema")


def attribute(thing, name):
    try:
        return getattr(thing, name, None)
    except Exception:
        return None


def schema_of(thing):
    """The schema next to a function or a definition, if it is one."""
    for name in SCHEMAS:
        value = attribute(thing, name)
        if isinstance(value, dict):
            return value
    return None


def handler_of(thing):
    for name in ("handler", "execute"):
        handler = attribute(thing, name)
        if callable(handler):
            return handler
    return None


def is_definition(thing):
    """Whether an object declares a tool."""
    if isinstance(thing, (type, types.ModuleType, types.FunctionType, str, int, float)):
        return False
    return isinstance(attribute(thing, "name"), str) and (
        type(thing).__name__ == "HostToolDefinition"
        or (schema_of(thing) is not None and handler_of(thing) is not None))


def fault_of(definition):
    """Why a definition cannot be a tool."""
    if schema_of(definition) is None:
        found = type(attribute(definition, "parameters")).__name__
        return "'parameters' must be a dict that is a JSON Schema, found %s" % found
    if handler_of(definition) is None:
        found = type(attribute(definition, "handler")).__name__
        return "'handler' must be a function of (input, context), found %s" % found
    return None


def definitions(module):
    """All definitions of a module, in the order in which it names them."""
    found, seen = [], set()

    def add(thing):
        if id(thing) not in seen and is_definition(thing):
            seen.add(id(thing))
            found.append(thing)

    for name, value in list(vars(module).items()):
        if name.startswith("__"):
            continue
        add(value)
        if isinstance(value, dict):
            value = list(value.values())
        elif not isinstance(value, (list, tuple)):
            value = registered(module, value)
        for item in value[:MOST_ITEMS]:
            add(item)
    return found


def registered(module, registry):
    """The contents of a registry; for the shared one, only those of this module."""
    if isinstance(registry, (type, types.ModuleType)) or not callable(
            attribute(registry, "list_tools")):
        return []
    try:
        tools = list(registry.list_tools())
    except Exception:
        # Some other object with a method of this name.
        return []
    if registry is load("host_tools").host_tool_registry:
        own = module.__name__
        tools = [tool for tool in tools
                 if (module_of(handler_of(tool)) or own).startswith((own + ".", own))]
    return tools


def module_of(handler):
    while isinstance(handler, functools.partial):
        handler = handler.func
    return attribute(handler, "__module__")


def offered(module):
    """What a module offers: pairs of a name and a definition or function, and what it leaves out."""
    listed = attribute(module, "__all__")
    found, left_out, handlers, names = [], [], set(), set()
    for definition in definitions(module):
        handlers.add(id(attribute(definition, "handler")))
        fault = fault_of(definition)
        if fault is None and definition.name in names:
            fault = "the module defines it twice"
        if fault is None:
            names.add(definition.name)
            found.append((definition.name, definition))
        else:
            left_out.append("%s: %s" % (definition.name, fault))
    is_explicit = bool(found or left_out)
    functions = list(listed) if listed is not None else [
        name for name in vars(module) if not name.startswith("_")]
    for name in functions:
        function = attribute(module, name)
        if not inspect.isfunction(function) or id(function) in handlers or name in names or (
                listed is None and function.__module__ != module.__name__):
            continue
        if schema_of(function) is None:
            if is_explicit and listed is None:
                continue
            bare = load("describe").untyped(function, main.context_name(function))
            if bare is not None:
                left_out.append("%s: no type says what '%s' is" % (name, bare))
                continue
        found.append((name, function))
    return found, left_out


def describe_module(module):
    found, left_out = offered(module)
    return listing([(name, describe_target(thing)) for name, thing in found], left_out)


def listing(described, left_out=()):
    """Pairs of a name and a description as `tools/list` has them. What it has no place for stands in
    `_meta`, and so do the reasons why others are not listed."""
    tools = [{"name": name, "description": one.pop("description"),
              "inputSchema": one.pop("input_schema"), "_meta": {"dev.toolhost/tool": one}}
             for name, one in described]
    return {"tools": tools, "_meta": {"dev.toolhost/leftOut": list(left_out)}}


def describe_target(thing):
    """The description of a function or a definition."""
    describe = load("describe")
    if not callable(thing) or (is_definition(thing) and not inspect.isfunction(thing)):
        text = attribute(thing, "description") or inspect.getdoc(handler_of(thing))
        return {"description": describe.read(text or "")[0] if not attribute(
                    thing, "description") else str(text),
                "file": describe.file_of(handler_of(thing)), "doubts": [],
                "input_schema": schema_of(thing), **about(thing)}
    found = describe.describe(thing, main.context_name(thing))
    own = schema_of(thing)
    if own is not None:
        found.update(input_schema=own, doubts=[], **about(thing))
    return found


def about(thing):
    """What a definition sets besides its name, description and schema."""
    found = {}
    for name in ABOUT:
        value = attribute(thing, name)
        if isinstance(value, enum.Enum):
            value = value.value
        if value is not None and isinstance(value, (str, int, float, bool, dict)):
            found[name] = value
    return found


# How to call the offers of each module, by name; rebuilt if a name is missing.
PLANS = {}


def plan_of_offer(module, name):
    plans = PLANS.get(module.__name__, {})
    if name not in plans:
        plans = {name: plan_of_thing(thing) for name, thing in offered(module)[0]}
        PLANS[module.__name__] = plans
    if name not in plans:
        raise main.Wrong("entry", "'%s' offers no tool '%s'" % (module.__name__, name),
                         "it offers %s" % (", ".join(list(plans)[:20]) or "none"))
    return plans[name]


def plan_of_thing(thing):
    return main.plan_of(thing) if inspect.isfunction(thing) else plan_of_definition(thing)


def plan_of_definition(definition):
    """How to call the handler of a definition: with the arguments as one dict and the context,
    unless its parameters say something else."""
    fault = fault_of(definition)
    if fault is not None:
        raise main.Wrong("entry", "the definition of '%s': %s" % (definition.name, fault))
    return plan_by_schema(handler_of(definition), schema_of(definition))


def plan_by_schema(handler, schema):
    parameters = main.parameters_of(handler)
    if parameters is None or main.takes_a_pair(parameters):
        return lambda args, context: handler(args, context)
    properties = schema.get("properties")
    named = set(properties) if isinstance(properties, dict) else set()
    if any(one.name in named for one in parameters):
        return main.plan_of(handler)
    try:
        inspect.signature(handler).bind(None, None)
    except TypeError:
        try:
            inspect.signature(handler).bind(None)
        except TypeError:
            return main.plan_of(handler)
        return lambda args, context: handler(args)
    return lambda args, context: handler(args, context)
