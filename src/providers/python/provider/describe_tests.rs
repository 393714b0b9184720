//! Tests of signatures and docstrings, with a real interpreter.

use std::fmt::Write as _;

use serde_json::json;

use crate::providers::harness::KindHarness;
use crate::providers::python;

fn harness(text: &str) -> KindHarness {
    let yaml = "tools:\n  - { name: m, kind: python, module: m, functions: typed }\n";
    KindHarness::prepared(&python::kind(), yaml, |dir, _| {
        std::fs::write(dir.join("m.py"), text).unwrap();
    })
}

/// For each typed function of a module its parameters, one a line, and what is doubted.
async fn table(text: &str) -> String {
    let harness = harness(text);
    let listing = harness.providers[0].list().await.unwrap();
    let mut table = String::new();
    for tool in listing.tools {
        let schema = &tool.input_schema;
        let described = tool.description.as_deref().unwrap();
        writeln!(table, "{} ({described}) required {}", tool.name, schema["required"]).unwrap();
        for (name, one) in schema["properties"].as_object().into_iter().flatten() {
            // A snapshot is a raw string that must not end there.
            writeln!(table, "  {name}: {}", one.to_string().replace('#', "")).unwrap();
        }
        for key in ["$defs", "additionalProperties"] {
            if let Some(value) = schema.get(key).filter(|value| **value != json!(false)) {
                writeln!(table, "  + {key}: {value}").unwrap();
            }
        }
        for doubt in &tool.warnings {
            writeln!(table, "  ? {doubt}").unwrap();
        }
    }
    table
}

#[tokio::test]
async fn type_hints_become_schemas() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let text = r##"
import datetime, enum, uuid
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import *

class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"

class Size(enum.IntEnum):
    SMALL = 1

@dataclass
class Point:
    x: int
    y: float = 0.5
    tags: List[str] = field(default_factory=list)

@dataclass
class Tree:
    left: Optional["Tree"] = None
    right: Optional["Tree"] = None

class Movie(TypedDict):
    title: str
    year: int

class Options(TypedDict, total=False):
    deep: bool

class Model:
    """As a model of pydantic looks from outside."""
    @classmethod
    def model_json_schema(cls):
        return {"title": "Model", "type": "object", "properties": {"p": {"$ref": "#/$defs/P"}},
                "$defs": {"P": {"type": "integer"}}}

UserId = NewType("UserId", int)
T = TypeVar("T")

def plain(s: str, i: int, f: float, b: bool, n: None, a: Any, o: object): ...
def lists(a: list, b: List[int], c: Sequence[str], d: Set[int], e: Tuple[int, str], f: Tuple[int, ...], g: Iterable[T]): ...
def maps(a: dict, b: Dict[str, int], c: Mapping[str, Any], d: Movie, e: Options): ...
def unions(a: Optional[int], b: Union[int, str], c: Union[int, List[int]], d: Union[int, Any], e: Optional[Point] = None): ...
def choices(a: Literal["x", "y"], b: Literal[1, "z"], c: Color, d: Size, e: Color = Color.RED): ...
def texts(a: datetime.datetime, b: datetime.date, c: uuid.UUID, d: Path, e: Decimal, f: bytes): ...
def objects(a: Point, b: Model, c: UserId, d: Tree): ...
def defaults(a: int = 1, b: str = "x", c: Optional[int] = None, d: Tuple[int, int] = (1, 2), e: Color = Color.BLUE, f: float = float("nan")): ...
def kinds(a: int, /, b: int, *more: int, c: int, **rest: int): ...
def quoted(a: "int", b: "List[Point]"): ...
def lost(a: "Nowhere"): ...
def odd(a: complex): ...
def with_context(a: int, context): ...
async def pair(input: dict, context: dict): ...
"##;
    insta::assert_snapshot!(table(text).await, @r#"
    plain (Calls m.plain.) required ["s","i","f","b","n","a","o"]
      s: {"type":"string"}
      i: {"type":"integer"}
      f: {"type":"number"}
      b: {"type":"boolean"}
      n: {"type":"null"}
      a: {}
      o: {}
    lists (Calls m.lists.) required ["a","b","c","d","e","f","g"]
      a: {"type":"array"}
      b: {"type":"array","items":{"type":"integer"}}
      c: {"type":"array","items":{"type":"string"}}
      d: {"type":"array","items":{"type":"integer"},"uniqueItems":true}
      e: {"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"minItems":2,"maxItems":2}
      f: {"type":"array","items":{"type":"integer"}}
      g: {"type":"array"}
    maps (Calls m.maps.) required ["a","b","c","d","e"]
      a: {"type":"object"}
      b: {"type":"object","additionalProperties":{"type":"integer"}}
      c: {"type":"object"}
      d: {"type":"object","properties":{"title":{"type":"string"},"year":{"type":"integer"}},"required":["title","year"]}
      e: {"type":"object","properties":{"deep":{"type":"boolean"}}}
    unions (Calls m.unions.) required ["a","b","c","d"]
      a: {"type":["integer","null"]}
      b: {"type":["integer","string"]}
      c: {"anyOf":[{"type":"integer"},{"type":"array","items":{"type":"integer"}}]}
      d: {}
      e: {"anyOf":[{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"number","default":0.5},"tags":{"type":"array","items":{"type":"string"}}},"required":["x"]},{"type":"null"}]}
    choices (Calls m.choices.) required ["a","b","c","d"]
      a: {"type":"string","enum":["x","y"]}
      b: {"enum":[1,"z"]}
      c: {"type":"string","enum":["red","blue"]}
      d: {"type":"integer","enum":[1]}
      e: {"type":"string","enum":["red","blue"],"default":"red"}
    texts (Calls m.texts.) required ["a","b","c","d","e","f"]
      a: {"type":"string","format":"date-time"}
      b: {"type":"string","format":"date"}
      c: {"type":"string","format":"uuid"}
      d: {"type":"string"}
      e: {"type":"string"}
      f: {"type":"string"}
    objects (Calls m.objects.) required ["a","b","c","d"]
      a: {"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"number","default":0.5},"tags":{"type":"array","items":{"type":"string"}}},"required":["x"]}
      b: {"type":"object","properties":{"p":{"$ref":"/$defs/P"}}}
      c: {"type":"integer"}
      d: {"type":"object","properties":{"left":{"type":["object","null"]},"right":{"type":["object","null"]}}}
      + $defs: {"P":{"type":"integer"}}
    defaults (Calls m.defaults.) required null
      a: {"type":"integer","default":1}
      b: {"type":"string","default":"x"}
      c: {"type":["integer","null"]}
      d: {"type":"array","prefixItems":[{"type":"integer"},{"type":"integer"}],"minItems":2,"maxItems":2,"default":[1,2]}
      e: {"type":"string","enum":["red","blue"],"default":"blue"}
      f: {"type":"number"}
    kinds (Calls m.kinds.) required ["a","b","c"]
      a: {"type":"integer"}
      b: {"type":"integer"}
      c: {"type":"integer"}
    quoted (Calls m.quoted.) required ["a","b"]
      a: {"type":"integer"}
      b: {"type":"array","items":{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"number","default":0.5},"tags":{"type":"array","items":{"type":"string"}}},"required":["x"]}}
    lost (Calls m.lost.) required ["a"]
      a: {}
      ? the type 'Nowhere' cannot be looked up
    odd (Calls m.odd.) required ["a"]
      a: {}
      ? the type complex has no schema
    with_context (Calls m.with_context.) required ["a"]
      a: {"type":"integer"}
    pair (Calls m.pair.) required null
      ? the function takes one dict: only 'parameters_schema' can say what is in it
    "#);
}

#[tokio::test]
async fn annotated_types_carry_text_and_bounds() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let text = r#"
import sys
if sys.version_info >= (3, 9):
    from typing import Annotated
else:
    Annotated = None

class Ge:
    def __init__(self, ge): self.ge = ge

class Field:
    description = "how many"
    lt = 9

def f(a: Annotated[int, "the first"], b: Annotated[str, {"minLength": 2}], c: Annotated[float, Ge(0), Field()]): ...
"#;
    insta::assert_snapshot!(table(text).await, @r#"
    f (Calls m.f.) required ["a","b","c"]
      a: {"type":"integer","description":"the first"}
      b: {"type":"string","minLength":2}
      c: {"type":"number","minimum":0,"description":"how many","exclusiveMaximum":9}
    "#);
}

#[tokio::test]
async fn docstrings_of_three_styles_are_read() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let text = r#"
def google(a: int, b: str = "x", *, c: bool = False):
    """Do one thing.
    On two lines.

    More about it.

    Args:
        a (int): The first,
            on two lines.
        b: The second: with a colon.

        c (bool, optional): The third.

    Returns:
        int: nothing
    """

def numpy(a: int, b: int, c: str):
    """Do another thing.

    Parameters
    ----------
    a, b : int
        Two of them.
    c : str, optional
        A text,
        on two lines.

    Returns
    -------
    d : int
        Not a parameter.
    """

def sphinx(a: int, b: str):
    """Do a third thing.

    :param a: the first,
        on two lines
    :param str b: the second
    :returns: nothing
    :raises ValueError: never
    """

def nothing(a: int): ...

def empty(a: int):
    """"""

def odd(a: int):
    """Args:
    a: not indented
    """
"#;
    insta::assert_snapshot!(table(text).await, @r#"
    google (Do one thing. On two lines.) required ["a"]
      a: {"type":"integer","description":"The first, on two lines."}
      b: {"type":"string","default":"x","description":"The second: with a colon."}
      c: {"type":"boolean","default":false,"description":"The third."}
    numpy (Do another thing.) required ["a","b","c"]
      a: {"type":"integer","description":"Two of them."}
      b: {"type":"integer","description":"Two of them."}
      c: {"type":"string","description":"A text, on two lines."}
    sphinx (Do a third thing.) required ["a","b"]
      a: {"type":"integer","description":"the first, on two lines"}
      b: {"type":"string","description":"the second"}
    nothing (Calls m.nothing.) required ["a"]
      a: {"type":"integer"}
    empty (Calls m.empty.) required ["a"]
      a: {"type":"integer"}
    odd (Calls m.odd.) required ["a"]
      a: {"type":"integer"}
    "#);
}

#[tokio::test]
async fn arguments_become_what_the_hints_name() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let text = r#"
import datetime, enum, uuid
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import *

class Color(enum.Enum):
    RED = "red"

@dataclass
class Point:
    x: int
    color: Optional[Color] = None

@dataclass
class Tree:
    left: Optional["Tree"] = None

class Model:
    @classmethod
    def model_json_schema(cls): return {"type": "object"}
    @classmethod
    def model_validate(cls, value): return ("validated", value)

def show(a: Color, b: Point, c: List[Point], d: Dict[str, Path], e: Optional[datetime.date],
         f: Tuple[Color, int], g: Set[int], h: Union[int, Color], i: Decimal, j: bytes, k: Model,
         l: datetime.datetime, m: Tuple[Color, ...], n: Tree) -> str:
    return repr([a, b, c, d, e, f, g, h, i, j, k, l.tzinfo, m, n])
"#;
    let harness = harness(text);
    let provider = &harness.providers[0];
    let name = provider.list().await.unwrap().tools[0].name.clone();
    let call = |color: &str| {
        let arguments = json!({
            "a": color, "b": { "x": 1, "color": "red" }, "c": [{ "x": 2 }], "d": { "k": "/p" },
            "e": "2026-01-02", "f": ["red", 2], "g": [1, 1], "h": "red", "i": 1.10, "j": "by",
            "k": { "z": 1 }, "l": "2026-01-02T03:04:05Z", "m": ["red"],
            "n": { "left": { "left": null } },
        });
        let serde_json::Value::Object(arguments) = arguments else { unreachable!() };
        crate::model::ToolCall { name: name.clone(), arguments }
    };
    let shown = provider.call(&harness.context(), &call("red")).await.unwrap();
    insta::assert_snapshot!(shown.output.as_str().unwrap(), @r"[<Color.RED: 'red'>, Point(x=1, color=<Color.RED: 'red'>), [Point(x=2, color=None)], {'k': PosixPath('/p')}, datetime.date(2026, 1, 2), (<Color.RED: 'red'>, 2), {1}, <Color.RED: 'red'>, Decimal('1.1'), b'by', ('validated', {'z': 1}), datetime.timezone.utc, (<Color.RED: 'red'>,), Tree(left=Tree(left=None))]");
    let wrong = provider.call(&harness.context(), &call("green")).await.unwrap().error.unwrap();
    assert_eq!(wrong.message(), "ValueError: 'green' is not a valid Color");
}
