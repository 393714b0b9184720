"""Classes as tools: one instance for each class and configuration, for as long as the worker lives.

A class with `run`, or that can be called, is one tool; of any other each public method is one.
Describing needs no instance, unless only an instance knows its schema.
"""

import inspect
import json
import sys
import threading
import traceback
import types

# Methods that make a class one tool, in order.
SINGLE = ("run", "__call__", "execute")


def place_of(thing):
    """Where a class or function is written, as `file:line`."""
    try:
        file = inspect.getsourcefile(thing)
        return "%s:%d" % (file, inspect.getsourcelines(thing)[1])
    except (OSError, TypeError):
        return None


def full_name(target):
    return "%s.%s" % (target["module"], target["class"])


def class_of(module, target):
    cls, name = module, target["class"]
    for part in name.split("."):
        owner, cls = cls, getattr(cls, part, None)
        if cls is None:
            import difflib
            known = [key for key, value in vars(owner).items() if inspect.isclass(value)]
            near = difflib.get_close_matches(part, known, 3)
            hint = ("did you mean '%s'?" % near[0] if near
                    else "its classes are %s" % ", ".join(known[:20]) if known
                    else "it has no classes")
            raise main.Wrong("entry", "'%s' has no class '%s'" % (target["module"], name), hint)
    if not inspect.isclass(cls):
        what = "function" if inspect.isfunction(cls) else type(cls).__name__
        raise main.Wrong("entry", "'%s' is not a class but a %s" % (full_name(target), what),
                         "write 'function: %s' for a function" % name)
    if getattr(cls, "_is_protocol", False):
        raise main.Wrong("entry", "'%s' is a protocol, which has no instances" % full_name(target),
                         "name a class that implements it")
    if inspect.isabstract(cls):
        missing = ", ".join(sorted(cls.__abstractmethods__))
        raise main.Wrong("entry", "'%s' is abstract: it leaves %s to its subclasses"
                         % (full_name(target), missing), subclasses(cls), located(cls))
    return cls


def subclasses(target):
    names = sorted({"%s of %s" % (one.__qualname__, one.__module__)
                    for one in target.__subclasses__() if not inspect.isabstract(one)})
    return "name a class that defines them" + (
        ", such as %s" % ", ".join(names[:5]) if names else "")


def located(thing):
    place = place_of(thing)
    return ["defined at %s" % place] if place else []


# --- methods ----------------------------------------------------------------------------------

def single(cls):
    """The method that makes a class one tool."""
    for name in SINGLE:
        owner = owner_of(cls, name)
        if owner is None or (name == "execute" and not has_schema(cls)):
            continue
        if callable(getattr(cls, name, None)):
            return name
    return None


def has_schema(cls):
    return any(hasattr(cls, name) for name in load("offers").SCHEMAS)


def owner_of(cls, name):
    """The class that defines an attribute, unless it is one of Python's or of another package."""
    owner = next((one for one in cls.__mro__ if name in vars(one)), None)
    if owner is None or owner.__module__.split(".")[0] == cls.__module__.split(".")[0]:
        return owner
    file = getattr(sys.modules.get(owner.__module__), "__file__", None) or ""
    return owner if file.startswith(main.setup["root"].rstrip("/") + "/") else None


def public_methods(cls):
    names = []
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            is_method = inspect.isfunction(value) or isinstance(value, (staticmethod, classmethod))
            if is_method and not name.startswith("_") and name not in names and owner_of(cls, name):
                names.append(name)
    return names


def chosen(cls, target):
    """The methods that become tools, each with the last part of its name: None is the entry's."""
    wanted = target.get("methods")
    if wanted is None:
        one = single(cls)
        if one is not None:
            return [(None, one)]
    known = public_methods(cls)
    if wanted is None and not known:
        raise main.Wrong("entry", "'%s' has neither 'run' nor a public method" % full_name(target),
                         "a method that becomes a tool cannot start with '_'", located(cls))
    for name in wanted or ():
        if name not in known:
            import difflib
            near = difflib.get_close_matches(name, known, 1)
            raise main.Wrong("entry", "'%s' has no public method '%s'" % (full_name(target), name),
                             "did you mean '%s'?" % near[0] if near
                             else "its methods are %s" % (", ".join(known[:20]) or "none"))
    return [(name, name) for name in (known if wanted is None else wanted)]


def unbound(cls, name):
    """A method as seen from an instance, without one."""
    value = inspect.getattr_static(cls, name)
    if inspect.isfunction(value):
        return types.MethodType(value, cls)
    return getattr(cls, name)


def doc_of(cls, name):
    """The docstring of a method, or of the one it overrides."""
    for base in cls.__mro__:
        text = getattr(vars(base).get(name), "__doc__", None)
        if text and owner_of(cls, name):
            return inspect.cleandoc(text)
        if base is object:
            break
    return ""


def describe_class(call, module):
    target = call.target
    cls = class_of(module, target)
    bind(cls, target)
    offers, describe = load("offers"), load("describe")
    tools = []
    for last, name in chosen(cls, target):
        method = unbound(cls, name)
        found = describe.describe(method, main.context_name(method), doc_of(cls, name))
        thing = method
        if last is None:
            if found["description"] is None:
                found["description"] = describe.read(inspect.getdoc(cls) or "")[0]
            thing = cls
            if has_schema(cls) and offers.schema_of(cls) is None:
                # A property, which only an instance can tell.
                thing = instance_of(call, cls).value
        own = offers.schema_of(thing)
        if own is not None:
            found.update(input_schema=own, doubts=[])
            said = offers.attribute(thing, "description")
            if last is None and isinstance(said, str):
                found["description"] = said
            found.update(offers.about(thing))
        tools.append((last or "__call__", found))
    return offers.listing(tools)


def plan(call, module):
    """How to call the method of a call."""
    cls = class_of(module, call.target)
    for name, attribute in chosen(cls, call.target):
        if (name or "__call__") == call.name:
            return instance_of(call, cls).plan(attribute, name is None)
    raise main.Wrong("entry", "'%s' has no public method '%s'"
                     % (full_name(call.target), call.name))


# --- instances --------------------------------------------------------------------------------

class Slot:
    """An instance, or its construction."""

    def __init__(self):
        self.ready = threading.Event()
        self.value = None
        self.error = None
        self.thread = threading.get_ident()
        self.plans = {}

    def plan(self, attribute, is_single):
        """How to call a method of the instance."""
        found = self.plans.get(attribute)
        if found is None:
            method, offers = getattr(self.value, attribute), load("offers")
            schema = offers.schema_of(self.value) if is_single else None
            found = (main.make_plan(method) if schema is None
                     else offers.plan_by_schema(method, schema))
            self.plans[attribute] = found
        return found


SLOTS = {}
LOCK = threading.Lock()


def bind(cls, target):
    """The arguments of a constructor, as `config` gives them: positional ones and the others."""
    config = dict(target.get("config") or {})
    try:
        signature = inspect.signature(cls)
    except (TypeError, ValueError):
        return [], config
    parameters = list(signature.parameters.values())
    leading = []
    for one in parameters:
        if one.kind is one.POSITIONAL_ONLY and one.name in config:
            leading.append(config.pop(one.name))
    try:
        signature.bind(*leading, **config)
    except TypeError as error:
        takes = ", ".join(told(one) for one in parameters if one.kind is not one.VAR_POSITIONAL)
        hint = ("'config' gives its arguments by name: %s" % takes if takes
                else "leave 'config' out: it takes no arguments")
        raise main.Wrong("entry", "'config' does not fit the constructor of '%s': %s"
                         % (full_name(target), error), hint, located(cls)) from None
    return leading, config


def told(parameter):
    if parameter.kind is parameter.VAR_KEYWORD:
        return "any others"
    needed = parameter.default is parameter.empty
    return parameter.name + (" (required)" if needed else "=%r" % (parameter.default,))[:60]


def instance_of(call, cls):
    """The instance of a class for a configuration; created if there is none."""
    target = call.target
    key = json.dumps([target["module"], target["class"], target.get("config")], sort_keys=True)
    with LOCK:
        slot = SLOTS.get(key)
        is_mine = slot is None
        if is_mine:
            slot = SLOTS[key] = Slot()
    if is_mine:
        construct(call, cls, key, slot)
    else:
        slot.ready.wait()
    if slot.error is not None:
        raise slot.error
    return slot


def construct(call, cls, key, slot):
    target = call.target
    limit = target.get("start_timeout") or 20
    watch = threading.Timer(limit, give_up, (call, slot, limit))
    watch.daemon = True
    watch.start()
    try:
        leading, named = bind(cls, target)
        changes = load("hints").converters(cls.__init__)
        named = {name: changes[name](value) if name in changes else value
                 for name, value in named.items()}
        slot.value = cls(*leading, **named)
    except main.Refused as error:
        slot.error = error
    except main.Wrong as error:
        slot.error = error
    except main.Stopped as error:
        slot.error = slot.error or main.Wrong(
            "start", "the constructor of '%s' was stopped" % full_name(target))
        raise error
    except BaseException as error:
        lines = main.traceback_of(error)
        place = last_place(traceback.extract_tb(error.__traceback__)) or place_of(cls)
        slot.error = main.Wrong(
            "start", "%sthe constructor of '%s' failed: %s"
            % (place + ": " if place else "", full_name(target), main.one_line(error)),
            "its arguments come from 'config' in the entry; the next call tries again", lines)
    finally:
        watch.cancel()
        with LOCK:
            if slot.error is not None:
                SLOTS.pop(key, None)
            slot.ready.set()


def last_place(stack):
    """The innermost line of the user's code, as `file:line`."""
    root = main.setup["root"].rstrip("/") + "/"
    own = [one for one in stack if not main.is_ours(one)]
    near = [one for one in own if one.filename.startswith(root)] or own
    return "%s:%d" % (near[-1].filename, near[-1].lineno) if near else None


def give_up(call, slot, limit):
    """Answers the calls that wait for a constructor that does not return. Until its thread returns,
    the class answers every call like this: it is not started a second time."""
    frame = sys._current_frames().get(slot.thread)
    stack = traceback.extract_stack(frame) if frame is not None else []
    place = last_place(stack)
    root = main.setup["root"].rstrip("/") + "/"
    while stack and not stack[0].filename.startswith(root):
        stack.pop(0)
    lines = ["%s:%d in %s" % (one.filename, one.lineno, one.name) for one in stack[-10:]]
    error = main.Wrong(
        "start_timeout", "the constructor of '%s' did not return within %g s%s"
        % (full_name(call.target), limit, "; it is at %s" % place if place else ""),
        "let it only store its settings, or allow more time with 'start_timeout'", lines)
    with LOCK:
        if slot.ready.is_set():
            return
        slot.error = error
        slot.ready.set()
        call.answered = True
    answer = main.failed(call, error)
    call.finish()
    answer()
    with call.lock:
        if call.thread is not None and not call.struck:
            call.struck = True
            main.raise_in(call.thread, main.Stopped)
