"""Tasks and runs on the table page."""

from __future__ import annotations

from ..actions import DONE, FAIL, Press, Write, click, double_click, drag, hotkey, right_click, scroll
from ..script import Script, State, Step, Task, dead

ROWS_BEFORE = 29
HEADINGS = ["A1", "B1", "C1", "D1", "E1"]
NEW_ROW = ["Pine stool", "North", "12", "35", "420"]


def cell(state: State, row: int, column: int) -> str:
    """Text of a cell, counted from 0; empty below the last row."""
    return state["cells"][row][column] if row < len(state["cells"]) else ""


def revenues(state: State) -> list[int]:
    """The revenue column from top to bottom."""
    return [int(row[4]) for row in state["cells"][1:]]


def writes(text: str, place: str) -> tuple:
    """Check that a text is being typed into a cell."""
    return f"{text!r} stands in {place}", lambda b, a: a["editing"] == place and a["text"] == text


FIX = Task(
    "table-fix-units",
    "table",
    "The order of 18 units of 'Oak shelf, small' in row 7 should be 48 units. Correct it.",
    {
        "row 7 has 48 units": lambda s: cell(s, 6, 2) == "48",
        "the rows beside it are as before": lambda s: (cell(s, 5, 2), cell(s, 7, 2)) == ("41", "16"),
    },
)
SORT = Task(
    "table-sort-revenue",
    "table",
    "Sort the orders by revenue, with the largest first.",
    {"revenue falls from top to bottom": lambda s: revenues(s) == sorted(revenues(s), reverse=True)},
)
ADD = Task(
    "table-add-order",
    "table",
    "Add an order below the last one: Pine stool, North, 12 units, price 35. Then make the headings A1 to E1 bold.",
    {
        "the order is in the row below the last one": lambda s: (
            len(s["cells"]) == ROWS_BEFORE + 1 and s["cells"][-1][:5] == NEW_ROW
        ),
        "exactly A1 to E1 are bold": lambda s: s["bold"] == HEADINGS,
    },
)
DELETE = Task(
    "table-delete-cancelled",
    "table",
    "Delete the three orders that are cancelled.",
    {
        "no cancelled order is left": lambda s: all(row[5] != "Cancelled" for row in s["cells"]),
        "all other orders are left": lambda s: len(s["cells"]) == ROWS_BEFORE - 3,
    },
)
TASKS = [FIX, SORT, ADD, DELETE]

BOLD_HEADINGS = [
    Step("The order is complete. I scroll back to the headings.", scroll("#C25", 12)),
    Step(
        "I select the headings from A1 to E1.",
        drag("#A1", "#E1"),
        check=("A1 to E1 are selected", lambda b, a: a["selection"] == "A1:E1"),
    ),
    Step(
        "I make them bold.",
        hotkey("ctrl", "b"),
        check=("the headings are bold", lambda b, a: a["bold"] == HEADINGS),
    ),
]

SCRIPTS = [
    Script(
        "demo-agent-b",
        FIX,
        "correct",
        [
            Step(
                "Row 7 is Oak shelf, small with 18 units. I open the cell C7 for editing.",
                double_click("#C7"),
                check=("C7 is being edited", lambda b, a: a["editing"] == "C7"),
            ),
            Step("I select the old number.", hotkey("ctrl", "a")),
            Step("I type the new number.", Write("48"), check=writes("48", "C7")),
            Step(
                "I confirm with Enter.",
                Press("enter"),
                check=("C7 holds 48", lambda b, a: cell(a, 6, 2) == "48"),
            ),
            Step("Row 7 now shows 48 units and a new revenue. The task is complete.", DONE),
        ],
    ),
    Script(
        "demo-agent-c",
        FIX,
        "wrong_element",
        [
            Step(
                "I see the oak shelf for the East. I open its units for editing.",
                double_click("#C8"),
                wrong="opens C8 of the large shelf instead of C7 of the small one",
                check=("C8 is being edited", lambda b, a: a["editing"] == "C8"),
            ),
            Step("I select the old number.", hotkey("ctrl", "a")),
            Step(
                "I type 48.",
                Write("48"),
                wrong="types the number into C8",
                check=writes("48", "C8"),
            ),
            Step(
                "I press Enter.",
                Press("enter"),
                check=("C8 changed and C7 did not", lambda b, a: (cell(a, 6, 2), cell(a, 7, 2)) == ("18", "48")),
            ),
            Step("The units of the oak shelf are 48 now.", DONE),
        ],
        off_track=lambda s: s["editing"] == "C8" or cell(s, 7, 2) != "16",
    ),
    Script(
        "demo-agent-a",
        SORT,
        "no_effect_click",
        [
            Step(
                "Revenue is column E. I select the column.",
                click('th[data-col="4"]'),
                check=("column E is selected", lambda b, a: a["selection"] == "E1:E40"),
            ),
            dead(
                "Now I click Largest first in the tool bar.",
                click("#sort-down", dx_px=84),
                wrong="clicks beside the button, the rows stay unsorted",
            ),
            Step("I look at the end of the list.", scroll("#E12", -6)),
            Step("The orders are sorted by revenue, largest first.", DONE),
        ],
    ),
    Script(
        "demo-agent-a",
        ADD,
        "correct",
        [
            Step("I need the first empty row. I scroll down.", scroll("#C12", -12)),
            Step(
                "Row 30 is the first empty one. I click A30.",
                click("#A30"),
                check=("A30 is selected", lambda b, a: a["selection"] == "A30"),
            ),
            Step("I type the product and go to the region.", Write("Pine stool"), check=writes("Pine stool", "A30")),
            Step("I type the product and go to the region.", Press("tab"), same_reply=True),
            Step("I type the region and go to the units.", Write("North"), check=writes("North", "B30")),
            Step("I type the region and go to the units.", Press("tab"), same_reply=True),
            Step("12 units.", Write("12"), check=writes("12", "C30")),
            Step("12 units.", Press("tab"), same_reply=True),
            Step("The price is 35.", Write("35"), check=writes("35", "D30")),
            Step(
                "The price is 35.",
                Press("enter"),
                same_reply=True,
                check=("the row is complete", lambda b, a: a["cells"][-1][:5] == NEW_ROW),
            ),
            *BOLD_HEADINGS,
            Step("The order is added and the headings are bold.", DONE),
        ],
    ),
    Script(
        "demo-agent-c",
        ADD,
        "wrong_field",
        [
            Step("I scroll to the end of the list.", scroll("#C12", -12)),
            Step("I click the first empty cell of column A.", click("#A30")),
            Step("I type the product.", Write("Pine stool"), check=writes("Pine stool", "A30")),
            Step("I type the product.", Press("tab"), same_reply=True),
            Step("I type the region.", Write("North"), check=writes("North", "B30")),
            Step("I type the region.", Press("tab"), same_reply=True),
            Step(
                "Next is the price, 35.",
                Write("35"),
                wrong="types the price into the column of the units",
                check=writes("35", "C30"),
            ),
            Step("Next is the price, 35.", Press("tab"), same_reply=True),
            Step(
                "And the units, 12.",
                Write("12"),
                wrong="types the units into the column of the price",
                check=writes("12", "D30"),
            ),
            Step(
                "And the units, 12.",
                Press("enter"),
                same_reply=True,
                check=("units and price are swapped", lambda b, a: a["cells"][-1][2:4] == ["35", "12"]),
            ),
            *BOLD_HEADINGS,
            Step("The new order is in the last row and the headings are bold.", DONE),
        ],
        off_track=lambda s: cell(s, 29, 2) == "35" or (s["editing"], s["text"]) == ("C30", "35"),
    ),
    Script(
        "demo-agent-b",
        DELETE,
        "stopped_early",
        [
            Step(
                "Row 6 is cancelled. I open its menu.",
                right_click("#A6"),
                check=("row 6 is cancelled", lambda b, a: a["menu"] and cell(a, 5, 5) == "Cancelled"),
            ),
            Step(
                "I choose Delete row.",
                click('#menu [data-do="delete"]'),
                check=("one row less", lambda b, a: len(a["cells"]) == ROWS_BEFORE - 1),
            ),
            Step(
                "The next cancelled order is in row 12 now.",
                right_click("#A12"),
                check=("row 12 is cancelled", lambda b, a: a["menu"] and cell(a, 11, 5) == "Cancelled"),
            ),
            Step(
                "I delete this row as well.",
                click('#menu [data-do="delete"]'),
                check=("two rows less", lambda b, a: len(a["cells"]) == ROWS_BEFORE - 2),
            ),
            Step("I look for the third one further down.", scroll("#C12", -4)),
            Step(
                "I cannot find a third cancelled order, so the task cannot be completed.",
                FAIL,
                wrong="gives up although the third cancelled order is on the screen",
                check=("row 20 is cancelled", lambda b, a: cell(a, 19, 5) == "Cancelled"),
            ),
        ],
    ),
]
