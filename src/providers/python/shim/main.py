"""The worker: an MCP server (of revision 2025-11-25) that calls functions of the user, many at a time,
until its input ends.

Messages arrive on the original standard input and leave on the original standard output; before any
user code runs both descriptors are moved away, so that anything printed, in Python, in C or in a child
process, ends up on standard error and cannot be taken for a message.

A request says in its `_meta`, as "dev.toolhost/target", what it is about: a "module" (and the "file"
it must come from) and a "function" of it, or a "class" with its "config", "methods" and
"start_timeout", or neither, which is all that the module offers. `tools/list` describes that, and
`tools/call` names one tool of that list. The answer to a call that was cancelled says that it stopped.

Threads: one reads requests; functions run on their own pool; coroutines all run on one event
loop in the main thread. No call waits for another one, unless a coroutine blocks the loop.
"""

import contextvars
import faulthandler
import importlib
import inspect
import io
import json
import math
import os
import queue
import sys
import threading
import types
from collections import deque

# Maximum size of a response, in bytes; toolhost kills a worker that writes a longer line.
LONGEST = 16 << 20
# Maximum length of a log line, in characters; longer ones are truncated.
LONGEST_TEXT = 4096
# Maximum number of functions that run at the same time; others wait.
MOST_THREADS = 32
# Maximum number of lines of a traceback to report.
MOST_TRACEBACK = 40

INPUTS = ("input", "args", "arguments", "params", "input_data")
CONTEXTS = ("context", "ctx")

ABOUT = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "logging": {}},
         "serverInfo": {"name": "python", "version": sys.version.split()[0]}}
CURRENT = contextvars.ContextVar("toolhost_call", default=None)
CALLS = {}


# --- the line to toolhost ---------------------------------------------------------------------

def move_away():
    """Moves the protocol's descriptors out of reach; see above."""
    answers = os.dup(1)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdin = open(0, "r", closefd=False)
    return answers


class Line:
    """The output for messages. Each line is written whole, by one thread at a time."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.lock = threading.Lock()

    def write(self, data):
        with self.lock:
            view = memoryview(data)
            while view and self.descriptor is not None:
                view = view[os.write(self.descriptor, view):]

    def send(self, **message):
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def log(self, call, level, text):
        text = text[:LONGEST_TEXT].encode("utf-8", "replace").decode()
        self.send(method="notifications/message", params={
            "level": level, "data": text, "_meta": {"progressToken": call.id}})

    def result(self, number, text):
        """Answers with a result that is already JSON text."""
        self.write(b'{"jsonrpc":"2.0","id":%d,"result":%s}\n' % (number, text))

    def error(self, number, told):
        error = {"code": -32000, "message": told["message"], "data": told}
        self.send(id=number, error=error)

    def forget(self):
        """In a forked child, which must neither answer nor keep the line open."""
        os.close(self.descriptor)
        self.descriptor = None
        requests.raw.close()
        self.lock = threading.Lock()


class Printed(io.TextIOBase):
    """What `print` writes to. Inside a call each line becomes a log line of it; from a thread
    of the user's own, outside any call, it goes to standard error unchanged."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.buffer = open(2, "wb", buffering=0, closefd=False)

    def writable(self):
        return True

    def fileno(self):
        return self.descriptor

    def reconfigure(self, **_):
        """Other code may set another encoding; lines are text until toolhost shows them."""

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not " + type(text).__name__)
        call = CURRENT.get()
        if call is None or call.over or LINE.descriptor is None:
            self.buffer.write(text.encode("utf-8", "replace"))
        else:
            call.print(text)
        return len(text)


class ToolContext:
    """What a function may know about its call; see `host_tools.py`."""

    def __init__(self, session_id="", cwd="", environment=None, metadata=None, user_id=None):
        self.session_id = session_id
        self.user_id = user_id
        self.cwd = cwd
        self.environment = environment or {}
        self.metadata = metadata or {}


class Context(ToolContext):
    """The context of a call, which also reports while the call runs."""

    def __init__(self, call):
        meta = call.meta
        own = {key[13:]: value for key, value in meta.items() if key.startswith("dev.toolhost/")}
        metadata = {key: value for key, value in meta.items()
                    if "/" in key and not key.startswith("dev.toolhost/")}
        metadata.update(own.get("metadata", {}))
        super().__init__(own.get("sessionId", ""), own.get("cwd", ""), own.get("environment"),
                         metadata, own.get("userId"))
        self._call = call
        self.call_id = own.get("callId", "")
        self.traceparent = meta.get("traceparent")

    @property
    def cancelled(self):
        """Whether the call should stop; for functions that check now and then."""
        return self._call.cancelled

    def progress(self, done, total=None, message=None):
        """Reports how far the call is, in units of the function's own."""
        params = {"progressToken": self._call.id, "progress": float(done)}
        if total is not None:
            params["total"] = float(total)
        if message is not None:
            params["message"] = str(message)[:LONGEST_TEXT]
        if all(math.isfinite(params.get(name, 0)) for name in ("progress", "total")):
            LINE.send(method="notifications/progress", params=params)

    def log(self, text, level="info"):
        """Writes a line of the log."""
        LINE.log(self._call, str(level), str(text))

    def __repr__(self):
        return "<toolhost context of call %s>" % self.call_id


# --- one call ---------------------------------------------------------------------------------

class Stopped(BaseException):
    """Raised inside a function that toolhost no longer waits for."""


class Wrong(Exception):
    """A problem with the entry, its module or its result, not raised by the function."""

    # The kind that toolhost gives each, and the step of the call.
    KINDS = {"entry": ("Config", "Start"), "import": ("Unreachable", "Start"),
             "start": ("Unreachable", "Start"), "start_timeout": ("Timeout", "Start"),
             "too_large": ("Protocol", "Call"), "usage": ("Usage", None)}

    def __init__(self, kind, message, hint=None, details=()):
        super().__init__(message)
        kind, phase = self.KINDS[kind]
        self.told = {"kind": kind, "phase": phase, "message": message, "hint": hint,
                     "details": list(details)}


class Refused(BaseException):
    """Raised where code would be loaded that is not the code that was trusted. It is no Exception,
    so that `except Exception` around an import does not turn it into a fallback."""

    def __init__(self, message, hint):
        super().__init__(message)
        self.told = {"kind": "Denied", "phase": "Start", "message": message, "hint": hint}


def refuse(message, hint):
    """Ends the current call, even if its code goes on after the exception."""
    error = Refused(message, hint)
    call = CURRENT.get()
    if call is not None and call.refused is None:
        call.refused = error
    raise error


class Call:
    """A call in progress."""

    def __init__(self, message):
        params = message.get("params") or {}
        self.id = message["id"]
        self.is_list = message["method"] == "tools/list"
        self.name = params.get("name")
        self.arguments = params.get("arguments") or {}
        self.meta = params.get("_meta") or {}
        self.target = self.meta.get("dev.toolhost/target") or {}
        self.cancelled = False
        self.over = False
        # Whether it was answered while its thread was still working.
        self.answered = False
        self.task = None
        self.printed = ""
        self.lock = threading.RLock()
        # The thread that runs user code now, and whether it was told to stop.
        self.thread = None
        self.struck = False
        # Why its code was not loaded, if so.
        self.refused = None

    def print(self, text):
        with self.lock:
            *lines, self.printed = (self.printed + text).split("\n")
            if len(self.printed) > LONGEST_TEXT:
                lines.append(self.printed)
                self.printed = ""
        for line in lines:
            LINE.log(self, "info", line)

    def finish(self):
        """Writes what was printed without an end of line."""
        with self.lock:
            rest, self.printed, self.over = self.printed, "", True
        if rest:
            LINE.log(self, "info", rest)
        CALLS.pop(self.id, None)

    def __enter__(self):
        with self.lock:
            self.thread = threading.get_ident()

    def __exit__(self, *_):
        with self.lock:
            self.thread = None

    def cancel(self):
        """Asks a coroutine to end, and raises `Stopped` in a function. A function that waits in C
        notices that too late; toolhost ends the whole worker then."""
        self.cancelled = True
        with self.lock:
            task, thread = self.task, self.thread
            if task is None and thread is not None and not self.struck:
                self.struck = True
                raise_in(thread, Stopped)
        if task is not None:
            LOOP.loop.call_soon_threadsafe(task.cancel)


def raise_in(thread, exception):
    """Raises an exception in another thread; with None takes it back."""
    import ctypes
    told = ctypes.py_object(exception) if exception is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), told)


def run(call):
    """Runs a call on a thread of the pool. Returns a function that answers, or None if the event
    loop has the call now."""
    try:
        answer = attempt(call)
    except Stopped:
        answer = stopped(call)
    if call.struck:
        # It may not have been raised yet, and must not strike what this thread does next.
        try:
            raise_in(threading.get_ident(), None)
        except Stopped:
            pass
    return answer


def attempt(call):
    try:
        if call.cancelled:
            return stopped(call)
        with call:
            module = find_module(call.target)
            if call.is_list:
                value = describe(call, module)
            else:
                value = plan_for(call, module)(call.arguments, Context(call))
                if inspect.isawaitable(value):
                    LOOP.start(call, value)
                    return None
            return succeeded(call, value)
    except Stopped:
        raise
    except BaseException as error:
        return failed(call, error)


def succeeded(call, value):
    if call.refused is not None:
        raise call.refused
    text, warnings = VALUES.to_json(value)
    if len(text) > LONGEST - 65536:
        size = "%.1f MiB" % (len(text) / (1 << 20))
        raise Wrong("too_large", "the result is %s of JSON; the limit is 16 MiB" % size,
                    "return less, or write a file and return its path")
    if not call.is_list:
        meta = json.dumps({"dev.toolhost/warnings": warnings[:20]} if warnings else {}).encode()
        text = b'{"content":[],"structuredContent":%s,"_meta":%s}' % (text, meta)
    return lambda: LINE.result(call.id, text)


def stopped(call):
    told = {"kind": {"Interrupted": "Interrupt"}, "message": "it was stopped"}
    return lambda: LINE.error(call.id, told)


def failed(call, error):
    error = call.refused or error
    if isinstance(error, (Wrong, Refused)):
        told = error.told
    else:
        try:
            told = {"kind": "Tool", "phase": "Call", "exception": type(error).__qualname__,
                    "message": one_line(error), "details": traceback_of(error)}
        except Refused as refused:
            # A module in the root has the name of one that is needed to report the error.
            told = refused.told
    if "exception" not in told or call.is_list:
        return lambda: LINE.error(call.id, told)
    text = {"type": "text", "text": told["message"]}
    return lambda: LINE.send(id=call.id, result={
        "content": [text], "isError": True, "_meta": {"dev.toolhost/error": told}})


def one_line(error):
    """An exception as its type and message, even if its own methods fail."""
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be read)"
    name = type(error).__qualname__
    text = text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"
    text = text.encode("utf-8", "replace").decode()
    return name + ": " + text if text else name


def is_ours(frame):
    return frame.filename.startswith(("<toolhost", "<frozen importlib"))


def traceback_of(error):
    """The lines of a traceback that are about user code."""
    import traceback
    try:
        told = traceback.TracebackException.from_exception(error, limit=-MOST_TRACEBACK)
        left, seen, any_frames = [told], set(), False
        while left:
            one = left.pop()
            if one is None or id(one) in seen:
                continue
            seen.add(id(one))
            one.stack[:] = [frame for frame in one.stack if not is_ours(frame)]
            any_frames = any_frames or bool(one.stack)
            left += [one.__cause__, one.__context__]
        if not any_frames:
            return []
        text = "".join(told.format()).encode("utf-8", "replace").decode()
        lines = [line[:LONGEST_TEXT] for line in text.rstrip("\n").split("\n")]
    except Exception:
        return []
    if len(lines) > MOST_TRACEBACK:
        cut = len(lines) - MOST_TRACEBACK
        lines = lines[:10] + ["  … %d lines" % cut] + lines[10 + cut:]
    return lines


# --- finding functions ------------------------------------------------------------------------

def watch_root(root):
    """Puts the root on the path, and has its modules compiled from their source each time: what a
    person allowed is the source, and bytecode beside it may be something else. It also keeps a
    project free of `__pycache__`."""
    from importlib.machinery import (EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ExtensionFileLoader,
                                     FileFinder, SourceFileLoader)

    class FromSource(SourceFileLoader):
        def get_code(self, fullname):
            path = self.get_filename(fullname)
            return self.source_to_code(self.get_data(path), path)

    real = os.path.realpath(root)
    installed = [os.path.realpath(place) for place in (sys.prefix, sys.base_prefix)]

    def below(path, directory):
        return path == directory or path.startswith(directory.rstrip("/") + "/")

    def finder(path):
        place = os.path.realpath(path)
        parts = place.split("/")
        if (not below(place, real) or "site-packages" in parts or "dist-packages" in parts
                or any(below(place, there) and there != real for there in installed)):
            raise ImportError("not below the root")
        return FileFinder(path, (ExtensionFileLoader, EXTENSION_SUFFIXES),
                          (FromSource, SOURCE_SUFFIXES))

    sys.path_hooks.insert(0, finder)
    sys.path_importer_cache.clear()
    sys.path.insert(0, root)


def find_module(target):
    name, file = target["module"], target.get("file")
    # Also finds a file that was created after the last lookup.
    if name not in sys.modules:
        importlib.invalidate_caches()
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        own = name == missing or name.startswith(missing + ".")
        details = ["looked in %s" % setup["root"], "asked %s" % sys.executable]
        if own:
            raise Wrong("entry", "there is no module '%s'" % name,
                        "write the module below 'root', or install it for this interpreter: "
                        "%s -m pip install …" % sys.executable, details) from None
        raise Wrong("import", "'%s' needs the module '%s', which is not installed" % (name, missing),
                    "install it for this interpreter: %s -m pip install %s"
                    % (sys.executable, missing.split(".")[0]),
                    details + traceback_of(error)) from None
    except SyntaxError as error:
        raise Wrong("import", "%s:%s: %s" % (error.filename, error.lineno, error.msg), None,
                    traceback_of(error)) from None
    except (Stopped, Refused):
        raise
    except BaseException as error:
        raise Wrong("import", "importing '%s' failed: %s" % (name, one_line(error)), None,
                    traceback_of(error)) from None
    found = getattr(module, "__file__", None)
    if file and (not found or os.path.realpath(found) != os.path.realpath(file)):
        raise Wrong("entry", "'%s' is not %s but %s" % (name, file, found or "built in"),
                    "another module of this name was found first: rename yours")
    return module


def find(module, name):
    """A function of a module; its name may be a path through a class."""
    found = module
    for part in name.split("."):
        owner = found
        found = getattr(owner, part, None)
        if found is None:
            import difflib
            known = [key for key in dir(owner)
                     if not key.startswith("_") and callable(getattr(owner, key, None))]
            near = difflib.get_close_matches(part, known, 3)
            named = ", ".join("'%s'" % key for key in near) if near else ", ".join(known[:20])
            hint = "did you mean %s?" % named if near else "it has %s" % (named or "no functions")
            raise Wrong("entry", "'%s' has no function '%s'" % (module.__name__, name), hint)
    if not callable(found) and not load("offers").is_definition(found):
        raise Wrong("entry", "'%s' in '%s' is not a function but %s"
                    % (name, module.__name__, type(found).__name__))
    return found


def describe(call, module):
    """The tools of a target, as `tools/list` has them."""
    if "class" in call.target:
        return load("classes").describe_class(call, module)
    offers = load("offers")
    if "function" in call.target:
        name = call.target["function"]
        return offers.listing([(name, offers.describe_target(find(module, name)))])
    return offers.describe_module(module)


def plan_for(call, module):
    """How to call the tool of a call."""
    if "class" in call.target:
        return load("classes").plan(call, module)
    offers = load("offers")
    if "function" not in call.target:
        return offers.plan_of_offer(module, call.name)
    function = find(module, call.target["function"])
    return plan_of(function) if callable(function) else offers.plan_of_definition(function)


# --- calling ----------------------------------------------------------------------------------

PLANS = {}
PLAIN = (str, int, float, bool, dict, list, object, None, inspect.Parameter.empty,
         "str", "int", "float", "bool", "dict", "list", "object", "Any", "None")


def is_context(parameter):
    annotation = parameter.annotation
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return name.split(".")[-1].strip("'\"") == "ToolContext"


def parameters_of(function):
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def takes_a_pair(parameters):
    """Whether a function takes its arguments as one dict, and the context."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if len(parameters) < 2 or any(one.kind not in kinds for one in parameters[:2]):
        return False
    first, second = parameters[:2]
    if not (second.name in CONTEXTS or is_context(second)):
        return False
    needed = [one for one in parameters[2:] if one.default is inspect.Parameter.empty
              and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    return first.name in INPUTS and not needed


def context_name(function):
    """The parameter that takes the context, True for a function that takes a pair."""
    parameters = parameters_of(function) or []
    if takes_a_pair(parameters):
        return True
    for parameter in parameters:
        if parameter.name == "context" or is_context(parameter):
            return parameter.name
    return None


def plan_of(function):
    """How to call a function, computed once: a function of its arguments and the context."""
    known = PLANS.get(id(function))
    if known is not None and known[0] is function:
        return known[1]
    plan = make_plan(function)
    if len(PLANS) > 4096:
        PLANS.clear()
    PLANS[id(function)] = (function, plan)
    return plan


def make_plan(function):
    parameters = parameters_of(function)
    if parameters is None:
        return lambda args, context: function(**args)
    if takes_a_pair(parameters):
        return lambda args, context: function(args, context)
    wanted = context_name(function)
    first = [one.name for one in parameters if one.kind is one.POSITIONAL_ONLY]
    convert = {}
    if any(not is_plain(one.annotation) for one in parameters):
        convert = load("hints").converters(function)

    def call(args, context):
        args = dict(args)
        if wanted is not None and wanted not in args:
            args[wanted] = context
        for name, change in convert.items():
            if name in args and name != wanted:
                args[name] = change(args[name])
        leading = []
        for name in first:
            if name not in args:
                break
            leading.append(args.pop(name))
        return function(*leading, **args)

    return call


def is_plain(annotation):
    try:
        return annotation in PLAIN
    except TypeError:
        return False


# --- threads and the loop ---------------------------------------------------------------------

class Pool:
    """Threads for functions. The one that was busy last comes first, so that calls one after the
    other all run on the same thread: much code keeps things that belong to a thread."""

    def __init__(self):
        self.lock = threading.Lock()
        self.idle = []
        self.threads = 0
        self.waiting = deque()

    def submit(self, call):
        with self.lock:
            if self.idle:
                self.idle.pop().put(call)
            elif self.threads < MOST_THREADS:
                self.threads += 1
                threading.Thread(target=self.work, args=(call,), daemon=True).start()
            else:
                self.waiting.append(call)

    def work(self, call):
        own = queue.SimpleQueue()
        while True:
            try:
                answer = BASE.copy().run(self.run, call)
            except Stopped:
                # It struck between the last line of the function and its end.
                answer = stopped(call)
            with self.lock:
                # Free before the answer is out: the next request may follow at once.
                if self.waiting:
                    own.put(self.waiting.popleft())
                else:
                    self.idle.append(own)
            if answer is not None and not call.answered:
                call.finish()
                answer()
            call = answer = None
            call = own.get()

    @staticmethod
    def run(call):
        CURRENT.set(call)
        return run(call)


class Loop:
    """The event loop, created for the first coroutine."""

    def __init__(self):
        self.loop = None
        self.lock = threading.Lock()
        self.wanted = threading.Event()

    def start(self, call, awaitable):
        with self.lock:
            if self.loop is None:
                import asyncio
                self.loop = asyncio.new_event_loop()
                self.wanted.set()
        self.loop.call_soon_threadsafe(self.adopt, call, awaitable)

    def adopt(self, call, awaitable):
        task = self.loop.create_task(self.watch(call, awaitable))
        with call.lock:
            call.task = task
        if call.cancelled:
            task.cancel()

    async def watch(self, call, awaitable):
        CURRENT.set(call)
        import asyncio
        try:
            answer = succeeded(call, await awaitable)
        except asyncio.CancelledError as error:
            answer = stopped(call) if call.cancelled else failed(call, error)
        except BaseException as error:
            answer = failed(call, error)
        call.finish()
        answer()

    def run(self):
        """Runs for ever, on the main thread. An interrupt that the user's code sends to its own
        process arrives here, where it affects no call."""
        while True:
            try:
                self.wanted.wait()
                import asyncio
                asyncio.set_event_loop(self.loop)
                self.loop.run_forever()
            except (KeyboardInterrupt, SystemExit):
                continue


def read_requests():
    """Takes messages until toolhost closes the line, which ends the worker."""
    try:
        for line in requests:
            message = json.loads(line)
            method, number = message.get("method"), message.get("id")
            if method == "notifications/cancelled":
                call = CALLS.get(message["params"]["requestId"])
                if call is not None:
                    call.cancel()
            elif method in ("tools/call", "tools/list"):
                call = Call(message)
                if len(line) > LONGEST:
                    failed(call, Wrong("usage", "the arguments are more than 16 MiB of JSON"))()
                    continue
                CALLS[call.id] = call
                POOL.submit(call)
            elif method == "initialize":
                LINE.send(id=number, result=ABOUT)
            elif number is not None:
                LINE.send(id=number, error={"code": -32601, "message": "no method %s" % method})
    except BaseException as error:
        print("toolhost: the worker cannot read its requests: %s" % one_line(error),
              file=sys.__stderr__, flush=True)
    # Exit handlers of user code still run; calls in progress are abandoned.
    import atexit
    try:
        atexit._run_exitfuncs()
    finally:
        os._exit(0)


class OwnModules:
    """Gives modules of the user the types they declare tools with, where no package of that name is
    installed: it comes last on the path."""

    NAMES = {"toolhost": True, "amplifier_app_runtime": True,
             "amplifier_app_runtime.host_tools": False}

    def find_spec(self, name, path=None, target=None):
        if name not in self.NAMES:
            return None
        from importlib.machinery import ModuleSpec
        return ModuleSpec(name, self, is_package=self.NAMES[name])

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        part = load("host_tools")
        module.__dict__.update((name, getattr(part, name)) for name in part.__all__)


def load(name):
    """A part of this program that only some calls need."""
    full = "toolhost_" + name
    module = sys.modules.get(full)
    if module is None:
        module = types.ModuleType(full)
        module.__dict__.update(load=load, main=types.SimpleNamespace(**globals()))
        code = compile(setup["parts"][name], "<toolhost %s>" % name, "exec")
        exec(code, module.__dict__)
        sys.modules[full] = module
    return module


LINE = Line(move_away())
os.register_at_fork(after_in_child=LINE.forget)
faulthandler.enable(open(2, "wb", buffering=0, closefd=False), all_threads=False)
sys.stdout, sys.stderr = Printed(1), Printed(2)
sys.argv = [""]
VALUES = load("values")
sys.meta_path.append(OwnModules())
BASE = contextvars.copy_context()
POOL, LOOP = Pool(), Loop()
try:
    if setup.get("guard") is None:
        watch_root(setup["root"])
    else:
        load("guard").install(setup["guard"], setup["root"], refuse)
except Refused as error:
    LINE.error(json.loads(requests.readline())["id"], error.told)
    # Ended by toolhost, which must read the response first.
    requests.read()
    os._exit(1)
threading.Thread(target=read_requests, daemon=True).start()
LOOP.run()
