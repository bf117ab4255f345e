"""Tasks and runs on the settings page."""

from __future__ import annotations

from ..actions import DONE, At, Drag, Write, click, hotkey, scroll
from ..script import Script, Step, Task, dead

OLD_NAME, NEW_NAME = "Front desk 3", "Studio laptop"
SLIDE_TO_76 = Drag(At("#brightness b"), At("#brightness", dx_px=78))


def tab(name: str) -> str:
    """A section in the side bar."""
    return f'[data-tab="{name}"]'


def switch(name: str) -> str:
    """A switch in the open section."""
    return f'[data-switch="{name}"]'


QUIET = Task(
    "settings-quiet-hours",
    "settings",
    "Turn on quiet hours, turn off the sound for mentions, and save the changes.",
    {
        "quiet hours are on and saved": lambda s: s["saved"]["quiet"],
        "the sound for mentions is off and saved": lambda s: not s["saved"]["mention_sound"],
    },
    partial_credit=True,
)
RENAME = Task(
    "settings-rename-device",
    "settings",
    f"Change the device name to '{NEW_NAME}' and save the changes.",
    {"the new name is saved": lambda s: s["saved"]["name"] == NEW_NAME},
)
DISPLAY = Task(
    "settings-display-comfort",
    "settings",
    "In Display, set the brightness to between 70 and 80 percent, choose large text, turn on Night colours, "
    "and save with Ctrl+S.",
    {
        "brightness between 70 and 80 is saved": lambda s: 70 <= s["saved"]["brightness"] <= 80,
        "large text is saved": lambda s: s["saved"]["text_size"] == "Large",
        "Night colours are on and saved": lambda s: s["saved"]["night"],
    },
)
ERASE = Task(
    "settings-erase-history",
    "settings",
    "Erase the activity history of this computer.",
    {"the history is empty": lambda s: s["history"] == 0},
)
TASKS = [QUIET, RENAME, DISPLAY, ERASE]

SCRIPTS = [
    Script(
        "demo-agent-a",
        QUIET,
        "correct",
        [
            Step("Quiet hours belong to notifications. I open that section.", click(tab("notifications"))),
            Step(
                "I turn on quiet hours.",
                click(switch("quiet")),
                check=("quiet hours are on", lambda b, a: a["draft"]["quiet"]),
            ),
            Step(
                "Now the sound for mentions has to be off.",
                click(switch("mention_sound")),
                check=("the sound is off", lambda b, a: not a["draft"]["mention_sound"]),
            ),
            Step("Both switches are right. I save the changes.", click("#save")),
            Step("The page confirms that the changes are saved.", DONE),
        ],
    ),
    Script(
        "demo-agent-c",
        QUIET,
        "no_effect_click",
        [
            Step("I open the notifications.", click(tab("notifications"))),
            dead(
                "I click the switch of quiet hours.",
                click(switch("quiet"), dx_px=-96),
                wrong="clicks beside the switch of quiet hours, it stays off",
            ),
            Step(
                "Quiet hours are on. Next I turn off the sound for mentions.",
                click(switch("mention_sound")),
                check=("the sound is off", lambda b, a: not a["draft"]["mention_sound"]),
            ),
            Step("I save the changes.", click("#save")),
            Step("Quiet hours are on, the sound is off and the changes are saved.", DONE),
        ],
    ),
    Script(
        "demo-agent-c",
        RENAME,
        "recovered",
        [
            Step(
                "The device name is on this page. I click into the field.",
                click("#name", dx_px=90),
                check=("the name field is active", lambda b, a: a["focus"] == "name"),
            ),
            Step(
                "I type the new name.",
                Write(NEW_NAME),
                wrong="types behind the old name without removing it",
                check=("both names stand in the field", lambda b, a: a["draft"]["name"] == OLD_NAME + NEW_NAME),
            ),
            Step("The old name is still in front of the new one. I select the whole field.", hotkey("ctrl", "a")),
            Step(
                "I type the name again over the selected text.",
                Write(NEW_NAME),
                recovers=True,
                check=("only the new name is left", lambda b, a: a["draft"]["name"] == NEW_NAME),
            ),
            Step("The name is right now. I save it.", click("#save")),
            Step("The new device name is saved.", DONE),
        ],
        off_track=lambda s: s["draft"]["name"] not in (OLD_NAME, NEW_NAME),
    ),
    Script(
        "demo-agent-b",
        DISPLAY,
        "correct",
        [
            Step("I open the display settings.", click(tab("display"))),
            Step(
                "Brightness is at 40 percent. I drag the handle to about three quarters.",
                SLIDE_TO_76,
                check=("brightness is right", lambda b, a: 70 <= a["draft"]["brightness"] <= 80),
            ),
            Step(
                "76 percent is within the range. I choose large text.",
                click('[data-value="Large"]'),
                check=("large text is chosen", lambda b, a: a["draft"]["text_size"] == "Large"),
            ),
            Step(
                "Night colours must be further down. I scroll the page.",
                scroll("#content", -8),
                check=("the page scrolled", lambda b, a: a["scroll_px"] > b["scroll_px"]),
            ),
            Step(
                "I turn on Night colours.",
                click(switch("night")),
                check=("Night colours are on", lambda b, a: a["draft"]["night"]),
            ),
            Step("Everything is set. I save with Ctrl+S.", hotkey("ctrl", "s")),
            Step("All three settings are saved.", DONE),
        ],
    ),
    Script(
        "demo-agent-a",
        DISPLAY,
        "loop",
        [
            Step("I go to Display.", click(tab("display"))),
            Step(
                "I drag the brightness handle to the right.",
                SLIDE_TO_76,
                check=("brightness is right", lambda b, a: 70 <= a["draft"]["brightness"] <= 80),
            ),
            Step("Now the text size.", click('[data-value="Large"]')),
            dead("Night colours are not on the screen yet. I scroll down.", scroll(tab("storage"), -5)),
            dead("I still do not see Night colours. I scroll further down.", scroll(tab("storage"), -5)),
            dead("The option must be further below. I scroll down again.", scroll(tab("storage"), -5)),
            dead("I scroll down once more.", scroll(tab("storage"), -5)),
            Step("There is no such option, so it is already active. I save with Ctrl+S.", hotkey("ctrl", "s")),
            Step("The display settings are saved.", DONE),
        ],
    ),
    Script(
        "demo-agent-a",
        ERASE,
        "loop",
        [
            Step("The activity history belongs to privacy.", click(tab("privacy"))),
            Step(
                "There are 1,284 entries. I click Erase history.",
                click("#erase-open"),
                check=("the dialog is open", lambda b, a: a["dialog"]),
            ),
            dead("A dialog asks for confirmation. I click Erase.", click("#erase")),
            dead("The dialog is still open. I click Erase.", click("#erase")),
            dead("The click may not have registered. I click Erase again.", click("#erase")),
            Step(
                "The dialog does not react. I close it and start over.",
                click("#erase-cancel"),
                check=("the dialog is closed", lambda b, a: not a["dialog"]),
            ),
            Step(
                "I click Erase history once more.",
                click("#erase-open"),
                check=("the dialog is open again", lambda b, a: a["dialog"]),
            ),
            dead("The same dialog is back. I click Erase.", click("#erase")),
            dead("It is still open. I click Erase again.", click("#erase")),
            dead("I try Erase one last time.", click("#erase")),
            Step("I have confirmed the dialog, so the history is erased.", DONE),
        ],
    ),
]
