"""The types with which a module declares tools: `from toolhost import HostToolDefinition`.

They are those of the documents about host tools, and so also what
`from amplifier_app_runtime.host_tools import …` finds where that package is not installed. Nothing
here is required: an object with the same attributes works as well.
"""

import dataclasses
import enum
import threading
import typing

__all__ = ["HostTool", "HostToolDefinition", "HostToolRegistry", "ToolContext", "ToolHandler", "ToolResult",
           "ToolScope", "host_tool_registry"]

ToolContext = main.ToolContext


class ToolScope(str, enum.Enum):
    """Whether a tool is one for all sessions, or one for each."""
    GLOBAL = "global"
    SESSION = "session"


@dataclasses.dataclass
class ToolResult:
    """What a handler returns if it has more than a value."""
    success: bool = True
    output: typing.Any = None
    error: typing.Optional[str] = None
    metadata: typing.Dict[str, typing.Any] = dataclasses.field(default_factory=dict)


ToolHandler = typing.Callable[
    [typing.Dict[str, typing.Any], ToolContext], typing.Awaitable[ToolResult]]


@dataclasses.dataclass
class HostToolDefinition:
    """A tool: its name, the JSON Schema of its arguments, and the function that does the work."""
    name: str
    description: str
    parameters: typing.Dict[str, typing.Any]
    handler: ToolHandler
    scope: ToolScope = ToolScope.GLOBAL
    category: typing.Optional[str] = None
    requires_approval: bool = False
    timeout: typing.Optional[float] = None
    title: typing.Optional[str] = None
    speed: typing.Optional[str] = None
    safety: typing.Optional[str] = None
    version: typing.Optional[str] = None
    output_schema: typing.Optional[typing.Dict[str, typing.Any]] = None


class HostTool:
    """A definition bound to the context of one session."""

    def __init__(self, definition, context):
        self._definition = definition
        self._context = context

    @property
    def name(self):
        return self._definition.name

    @property
    def description(self):
        return self._definition.description

    @property
    def parameters(self):
        return self._definition.parameters

    input_schema = parameters

    async def execute(self, input):
        """Calls the handler within the tool's own timeout; a failure is a result."""
        import asyncio
        import inspect

        timeout = self._definition.timeout
        try:
            value = self._definition.handler(input, self._context)
            if inspect.isawaitable(value):
                value = await asyncio.wait_for(value, timeout or None)
            return value
        except asyncio.TimeoutError:
            return ToolResult(success=False, error="Tool execution timed out after %ss" % timeout)
        except Exception as error:
            return ToolResult(success=False, error=str(error))


class HostToolRegistry:
    """Definitions by name. A module with one offers what is registered in it."""

    def __init__(self):
        self._tools = {}
        self._lock = threading.Lock()

    async def register(self, tool):
        """Adds a definition; a name can be taken only once."""
        with self._lock:
            if tool.name in self._tools:
                raise ValueError("Tool '%s' already registered" % tool.name)
            self._tools[tool.name] = tool

    async def unregister(self, name):
        """Removes a definition; returns whether it was there."""
        with self._lock:
            return self._tools.pop(name, None) is not None

    def get(self, name):
        return self._tools.get(name)

    def list_tools(self):
        return list(self._tools.values())

    get_tools = list_tools

    def create_session_tools(self, session_id, context):
        """The tools for one session, which its caller runs itself."""
        return [HostTool(tool, context) for tool in self.list_tools()]


# Shared by all modules of a worker: each offers what its own functions handle.
host_tool_registry = HostToolRegistry()
