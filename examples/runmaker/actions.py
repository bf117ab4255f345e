"""Actions an agent can take: each one knows its pyautogui source and how to perform itself in a browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from playwright.sync_api import Page

SCROLL_NOTCH_PX = 60
TYPE_INTERVAL_S = 0.03
DRAG_S = 0.5
DRAG_MOVES = 14
WAIT_S = 1.5
KEYS = {
    "enter": "Enter",
    "tab": "Tab",
    "esc": "Escape",
    "delete": "Delete",
    "down": "ArrowDown",
    "up": "ArrowUp",
    "ctrl": "Control",
    "shift": "Shift",
    "right": "ArrowRight",
    "left": "ArrowLeft",
}


@dataclass(frozen=True)
class At:
    """A place on the screen: the centre of an element, moved by some pixels."""

    selector: str
    dx_px: int = 0
    dy_px: int = 0

    def resolve(self, page: Page) -> tuple[int, int]:
        """The place's screen coordinates now; raises when the element is missing or outside the screen."""
        box = page.locator(self.selector).first.bounding_box(timeout=2000)
        if box is None:
            raise ValueError(f"{self.selector!r} is not visible")
        x, y = round(box["x"] + box["width"] / 2) + self.dx_px, round(box["y"] + box["height"] / 2) + self.dy_px
        size = page.viewport_size or {"width": 0, "height": 0}
        if not (0 <= x < size["width"] and 0 <= y < size["height"]):
            raise ValueError(f"{self.selector!r} is outside the screen at ({x}, {y})")
        return x, y


@dataclass(frozen=True)
class Planned:
    """An action with its coordinates fixed: `source` is what the run's file says, `perform` does it."""

    source: str
    perform: Callable[[], None]


class Action(Protocol):
    """Anything an agent's step can do."""

    def plan(self, page: Page) -> Planned:
        """Fix the action's coordinates on the page as it is now."""
        ...


@dataclass(frozen=True)
class Click:
    """A click with the left or right button, or a double click."""

    at: At
    button: str = "left"
    count: int = 1

    def plan(self, page: Page) -> Planned:
        """See Action."""
        x, y = self.at.resolve(page)
        name = "rightClick" if self.button == "right" else "doubleClick" if self.count == 2 else "click"
        right = self.button == "right"
        return Planned(
            f"pyautogui.{name}(x={x}, y={y})",
            lambda: page.mouse.click(x, y, button="right" if right else "left", click_count=self.count, delay=40),
        )


@dataclass(frozen=True)
class Drag:
    """Press at one place, move over half a second, release at another."""

    start: At
    end: At

    def plan(self, page: Page) -> Planned:
        """See Action."""
        (x, y), (x2, y2) = self.start.resolve(page), self.end.resolve(page)

        def perform() -> None:
            page.mouse.move(x, y)
            page.mouse.down()
            for i in range(1, DRAG_MOVES + 1):
                page.mouse.move(x + (x2 - x) * i / DRAG_MOVES, y + (y2 - y) * i / DRAG_MOVES)
                page.wait_for_timeout(1000 * DRAG_S / DRAG_MOVES)
            page.mouse.up()

        source = f"pyautogui.moveTo({x}, {y})\npyautogui.dragTo({x2}, {y2}, {DRAG_S}, button='left')"
        return Planned(source, perform)


@dataclass(frozen=True)
class Scroll:
    """Turn the wheel by some notches at a place; below zero is downwards."""

    at: At
    notches: int

    def plan(self, page: Page) -> Planned:
        """See Action."""
        x, y = self.at.resolve(page)

        def perform() -> None:
            page.mouse.move(x, y)
            for _ in range(abs(self.notches)):
                page.mouse.wheel(0, SCROLL_NOTCH_PX if self.notches < 0 else -SCROLL_NOTCH_PX)
                page.wait_for_timeout(40)

        return Planned(f"pyautogui.scroll({self.notches}, x={x}, y={y})", perform)


@dataclass(frozen=True)
class Write:
    """Type a text."""

    text: str

    def plan(self, page: Page) -> Planned:
        """See Action."""
        return Planned(
            f"pyautogui.write({self.text!r}, interval={TYPE_INTERVAL_S})",
            lambda: page.keyboard.type(self.text, delay=1000 * TYPE_INTERVAL_S),
        )


@dataclass(frozen=True)
class Press:
    """Press one key."""

    key: str

    def plan(self, page: Page) -> Planned:
        """See Action."""
        return Planned(f"pyautogui.press({self.key!r})", lambda: page.keyboard.press(KEYS.get(self.key, self.key)))


@dataclass(frozen=True)
class Hotkey:
    """Press keys together, such as Ctrl and S."""

    keys: tuple[str, ...]

    def plan(self, page: Page) -> Planned:
        """See Action."""
        chord = "+".join(KEYS.get(key, key) for key in self.keys)
        return Planned(f"pyautogui.hotkey({', '.join(map(repr, self.keys))})", lambda: page.keyboard.press(chord))


@dataclass(frozen=True)
class Word:
    """WAIT, DONE or FAIL."""

    word: str

    def plan(self, page: Page) -> Planned:
        """See Action."""
        return Planned(self.word, lambda: page.wait_for_timeout(1000 * WAIT_S if self.word == "WAIT" else 0))


WAIT, DONE, FAIL = Word("WAIT"), Word("DONE"), Word("FAIL")


def click(selector: str, dx_px: int = 0, dy_px: int = 0) -> Click:
    """A left click on an element."""
    return Click(At(selector, dx_px, dy_px))


def right_click(selector: str) -> Click:
    """A right click on an element."""
    return Click(At(selector), button="right")


def double_click(selector: str) -> Click:
    """A double click on an element."""
    return Click(At(selector), count=2)


def drag(start: str, end: str) -> Drag:
    """A drag from one element to another."""
    return Drag(At(start), At(end))


def scroll(selector: str, notches: int) -> Scroll:
    """Turn the wheel over an element."""
    return Scroll(At(selector), notches)


def hotkey(*keys: str) -> Hotkey:
    """Keys pressed together."""
    return Hotkey(keys)
