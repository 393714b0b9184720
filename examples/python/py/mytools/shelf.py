"""A class whose methods are tools, and definitions that say everything themselves."""

from toolhost import HostToolDefinition, ToolContext, ToolResult


class Shelf:
    """Books on a shelf; one instance serves all calls."""

    def __init__(self, books: dict, most: int = 5):
        self.books, self.most, self.questions = books, most, 0

    def find(self, word: str) -> list:
        """Find books by a word of their title.

        Args:
            word: a part of the title, in any case
        """
        self.questions += 1
        found = [title for title in self.books if word.lower() in title.lower()]
        return found[:self.most]

    async def about(self, title: str) -> dict:
        """Tell who wrote a book."""
        return {"title": title, "author": self.books.get(title), "questions": self.questions}


async def lend(input: dict, context: ToolContext) -> ToolResult:
    if input["days"] > 30:
        return ToolResult(success=False, error="nobody keeps a book for longer than 30 days")
    return ToolResult(output="lent to %s" % (context.session_id or "you"),
                      metadata={"days": input["days"]})


TOOLS = [
    HostToolDefinition(
        name="lend",
        description="Lend a book",
        parameters={
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "days": {"type": "integer", "minimum": 1, "default": 14},
            },
            "required": ["title", "days"],
        },
        handler=lend,
        category="library",
        requires_approval=True,
    ),
]
