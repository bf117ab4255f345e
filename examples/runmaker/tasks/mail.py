"""Tasks and runs on the mail page."""

from __future__ import annotations

from ..actions import DONE, Press, Write, click, drag, right_click, scroll
from ..script import Script, State, Step, Task, dead

TO, SUBJECT, BODY = "finance@example.org", "Q2 budget", "The numbers are in the shared folder."
REPLY = "Thursday at 15:00 works for me."


def row(mail: str) -> str:
    """A message in the list."""
    return f'[data-mail="{mail}"]'


def folder(name: str) -> str:
    """A folder in the side bar."""
    return f'[data-folder="{name}"]'


def sent(state: State, **wanted: str) -> bool:
    """Whether a message with these exact fields was sent."""
    return any(all(mail[key] == value for key, value in wanted.items()) for mail in state["sent"])


def only_moved(state: State, to: str, mails: set[str]) -> bool:
    """Whether exactly these messages left the inbox, all to one folder."""
    return {m: f for m, f in state["folders"].items() if f != "inbox"} == dict.fromkeys(mails, to)


ARCHIVE = Task(
    "mail-archive-invoice",
    "mail",
    "Archive the message about invoice 2207. Leave all other messages where they are.",
    {"invoice 2207 and nothing else is in the archive": lambda s: only_moved(s, "archive", {"inv2207"})},
)
ANSWER = Task(
    "mail-answer-review",
    "mail",
    f"Answer the message about the Friday review with this text and send it: {REPLY}",
    {"the reply was sent with the exact text": lambda s: sent(s, subject="Re: Friday review", body=REPLY)},
)
COMPOSE = Task(
    "mail-send-budget",
    "mail",
    f"Send a new message to {TO} with the subject '{SUBJECT}' and the text '{BODY}'",
    {"the message was sent with all fields right": lambda s: sent(s, to=TO, cc="", subject=SUBJECT, body=BODY)},
)
TRAVEL = Task(
    "mail-sort-travel",
    "mail",
    "Move both messages from Railway Booking to the Travel folder, then open that folder.",
    {
        "both tickets and nothing else are in Travel": lambda s: only_moved(s, "travel", {"rail-out", "rail-back"}),
        "the Travel folder is open": lambda s: s["folder"] == "travel",
    },
)
TASKS = [ARCHIVE, ANSWER, COMPOSE, TRAVEL]


def text_in_cc(state: State) -> bool:
    """Whether the subject's text stands in the Cc field of the draft or of a sent message."""
    drafts = [state["compose"]] if state["compose"] else []
    return any(SUBJECT in mail["cc"] for mail in drafts + state["sent"])


SCRIPTS = [
    Script(
        "demo-agent-a",
        ARCHIVE,
        "correct",
        [
            Step(
                "The inbox shows two invoices. The one about invoice 2207 is the fourth message. I open its menu.",
                right_click(row("inv2207")),
                check=("its menu is open", lambda b, a: a["menu"] == "inv2207"),
            ),
            Step(
                "The menu is open. I choose Archive.",
                click('#menu [data-do="archive"]'),
                check=("invoice 2207 moved", lambda b, a: a["folders"]["inv2207"] == "archive"),
            ),
            Step("I open the Archive folder to make sure the right message is there.", click(folder("archive"))),
            Step("Invoice 2207 for March is the only message in the archive. The task is complete.", DONE),
        ],
    ),
    Script(
        "demo-agent-b",
        ARCHIVE,
        "wrong_element",
        [
            Step("I will search for the invoice.", click("#search")),
            Step(
                "The search field is active. I type the word invoice.",
                Write("invoice"),
                check=("the list is searched", lambda b, a: a["query"] == "invoice"),
            ),
            Step(
                "Two results. I open the invoice message at the top of the list.",
                click(row("inv2270")),
                wrong="opens invoice 2270 instead of invoice 2207",
                check=("invoice 2270 is open", lambda b, a: a["open"] == "inv2270"),
            ),
            Step(
                "The invoice is open. I click Archive in the bar above it.",
                click('#right [data-do="archive"]'),
                wrong="archives invoice 2270 instead of invoice 2207",
                check=(
                    "invoice 2270 moved and 2207 did not",
                    lambda b, a: a["folders"]["inv2270"] == "archive" and a["folders"]["inv2207"] == "inbox",
                ),
            ),
            Step("The page says that the message was archived. The task is done.", DONE),
        ],
        off_track=lambda s: s["open"] == "inv2270" or s["folders"]["inv2270"] != "inbox",
    ),
    Script(
        "demo-agent-c",
        ANSWER,
        "no_effect_click",
        [
            Step("The Friday review message is the first one. I open it.", click(row("review"))),
            Step(
                "I read that they offer Thursday at 15:00 or Monday. I click Reply.",
                click('#right [data-do="reply"]'),
                check=("the reply field is active", lambda b, a: a["focus"] == "reply-text"),
            ),
            Step(
                "The reply field is active. I type the text.",
                Write(REPLY),
                check=("the text is in the reply", lambda b, a: a["reply"] == REPLY),
            ),
            dead(
                "The text is complete. I click Send reply.",
                click("#reply-send", dx_px=118),
                wrong="clicks beside the Send button, nothing is sent",
            ),
            Step("The reply with the requested text has been sent.", DONE),
        ],
    ),
    Script(
        "demo-agent-a",
        COMPOSE,
        "wrong_field",
        [
            Step(
                "I start a new message.",
                click("#compose-open"),
                check=("the To field is active", lambda b, a: a["focus"] == "to"),
            ),
            Step("The To field is active. I type the address and go to the next field.", Write(TO)),
            Step(
                "The To field is active. I type the address and go to the next field.",
                Press("tab"),
                same_reply=True,
                check=("the Cc field is active", lambda b, a: a["focus"] == "cc"),
            ),
            Step(
                "Now I type the subject.",
                Write(SUBJECT),
                wrong="types the subject into the Cc field",
                check=(
                    "the text is in Cc, Subject is empty",
                    lambda b, a: a["compose"]["cc"] == SUBJECT and a["compose"]["subject"] == "",
                ),
            ),
            Step("Next is the text of the message. I click into the large field.", click("#body")),
            Step("I type the text.", Write(BODY)),
            Step(
                "Everything is filled in. I click Send.",
                click("#send"),
                check=("a message without subject is sent", lambda b, a: sent(a, to=TO, cc=SUBJECT, subject="")),
            ),
            Step("The message was sent.", DONE),
        ],
        off_track=text_in_cc,
    ),
    Script(
        "demo-agent-b",
        COMPOSE,
        "stopped_early",
        [
            Step("I need a new message.", click("#compose-open")),
            Step("I type the address.", Write(TO)),
            Step("The subject is two fields further. I press Tab twice.", Press("tab")),
            Step(
                "The subject is two fields further. I press Tab twice.",
                Press("tab"),
                same_reply=True,
                check=("the Subject field is active", lambda b, a: a["focus"] == "subject"),
            ),
            Step(
                "I type the subject.",
                Write(SUBJECT),
                check=("the subject is right", lambda b, a: a["compose"]["subject"] == SUBJECT),
            ),
            Step("Next is the text of the message.", click("#body")),
        ],
    ),
    Script(
        "demo-agent-b",
        TRAVEL,
        "correct",
        [
            Step(
                "The first ticket is the third message. I drag it onto Travel.",
                drag(row("rail-out"), folder("travel")),
                check=("the first ticket moved", lambda b, a: a["folders"]["rail-out"] == "travel"),
            ),
            Step(
                "There must be another one further down. I scroll the list.",
                scroll("#list", -5),
                check=("the list scrolled", lambda b, a: a["scroll_px"] > b["scroll_px"]),
            ),
            Step(
                "I see the return ticket. I drag it onto Travel as well.",
                drag(row("rail-back"), folder("travel")),
                check=("the second ticket moved", lambda b, a: a["folders"]["rail-back"] == "travel"),
            ),
            Step("Both are moved. Now I open the Travel folder.", click(folder("travel"))),
            Step("I open the return ticket to be sure that it is the right one.", click(row("rail-back"))),
            Step("Both messages from Railway Booking are in Travel and the folder is open.", DONE),
        ],
    ),
]
