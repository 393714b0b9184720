"""A handler in the form (input, context): the arguments as one dict, and what surrounds the call."""

import asyncio
import sqlite3


async def query_handler(input, context):
    """Answers a query over a small table of planets."""
    context.log("opening the database", level="debug")
    with sqlite3.connect(":memory:") as database:
        database.execute("create table planets (name text, moons integer)")
        rows = [("Earth", 1), ("Mars", 2), ("Jupiter", 95)]
        for done, row in enumerate(rows, start=1):
            database.execute("insert into planets values (?, ?)", row)
            context.progress(done, len(rows), f"{row[0]} is in")
            await asyncio.sleep(0)
        try:
            found = database.execute(input["sql"]).fetchall()
        except sqlite3.Error as error:
            return {"success": False, "error": str(error)}
    return {
        "success": True,
        "output": [list(row) for row in found],
        "metadata": {"rows": len(found), "session": context.session_id},
    }
