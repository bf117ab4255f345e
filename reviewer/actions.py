"""Read an action in any of the shapes agents write it in, as primitive actions of one vocabulary.

Total: anything in, never an exception; what is not understood is kept as ``code`` or ``other`` with its text.
Scrolling down and to the right is positive.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from reviewer.pyautogui_code import WORDS, Code, number, parse_code
from reviewer.tolerant_json import JsonError, parse
from reviewer.trajectory import Action, ActionKind, CoordinateSpace, Point

MAX_RAW_CHARACTERS = 20_000

_CLAUDE_WIDTH, _CLAUDE_HEIGHT = 1280, 720
_CLAUDE_CLICKS = {
    "left_click": ActionKind.CLICK,
    "right_click": ActionKind.RIGHT_CLICK,
    "middle_click": ActionKind.MIDDLE_CLICK,
    "double_click": ActionKind.DOUBLE_CLICK,
    "triple_click": ActionKind.TRIPLE_CLICK,
    "mouse_move": ActionKind.MOVE,
    "left_click_drag": ActionKind.DRAG,
    "left_mouse_down": ActionKind.HOLD,
    "left_mouse_up": ActionKind.OTHER,
}
_COMPUTER_13_CLICKS = {
    "CLICK": ActionKind.CLICK,
    "RIGHT_CLICK": ActionKind.RIGHT_CLICK,
    "DOUBLE_CLICK": ActionKind.DOUBLE_CLICK,
    "MOVE_TO": ActionKind.MOVE,
    "DRAG_TO": ActionKind.DRAG,
    "MOUSE_DOWN": ActionKind.HOLD,
    "MOUSE_UP": ActionKind.OTHER,
}
_CLICK_BY_BUTTON = {"right": ActionKind.RIGHT_CLICK, "middle": ActionKind.MIDDLE_CLICK}
_CLICK_BY_COUNT = {2: ActionKind.DOUBLE_CLICK, 3: ActionKind.TRIPLE_CLICK}
_FENCE = re.compile(r"\A\s*```[a-z]*[ \t]*\n(.*?)\n?```\s*\Z", re.DOTALL)

_BLOCK = re.compile(r"(`{3,})(?:[\w+.-]*[ \t]*\r?\n)?(.*?)(?:\1|\Z)", re.DOTALL)
_UNSPOKEN = frozenset({ActionKind.CODE, ActionKind.OTHER})


class Screen(NamedTuple):
    """The size in pixels that absolute coordinates are counted in."""

    width: float
    height: float


def parse_action(value: Any, screen: Screen) -> Code:
    """Read an action: pyautogui source, the words WAIT, DONE and FAIL, or a dict as OSWorld's agents write."""
    if isinstance(value, str):
        return _from_text(value, screen)
    if isinstance(value, dict):
        return _from_dict(value, screen)
    if isinstance(value, list):
        parts = [parse_action(item, screen) for item in value if isinstance(item, str | dict)]
        return Code(tuple(action for part in parts for action in part.actions))
    return Code(() if value is None else (Action(ActionKind.OTHER, raw=raw_text(value)),))


def raw_text(value: Any) -> str:
    """The source's own text of an action; a dict as JSON, the command it carries first; cut at 20,000 characters."""
    if isinstance(value, dict):
        for key in ("command", "action"):
            if isinstance(value.get(key), str) and value[key].strip():
                return str(value[key]).strip()[:MAX_RAW_CHARACTERS]
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    return text.strip()[:MAX_RAW_CHARACTERS]


def words_of(text: str, action: Any, screen: Screen) -> str:
    """What a model said, without the fenced blocks that hold an action; other code blocks stay."""
    taken = _squeezed(raw_text(action))

    def said(block: re.Match[str]) -> str:
        return "" if _holds_action(block.group(2), taken, screen) else block.group()

    words = _BLOCK.sub(said, text)
    return text.strip() if words == text else re.sub(r"\n\s*\n", "\n\n", words).strip()


def _holds_action(code: str, taken: str, screen: Screen) -> bool:
    """Whether a block is the action taken, or reads as one such as a sibling's or one in other coordinates."""
    squeezed = _squeezed(code)
    if not squeezed or (taken and taken in squeezed):
        return True
    try:
        value = parse(code).value if code.lstrip().startswith("{") else code
    except JsonError:
        value = code
    return any(action.kind not in _UNSPOKEN for action in parse_action(value, screen).actions)


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _from_text(text: str, screen: Screen) -> Code:
    fenced = _FENCE.match(text)
    source = fenced.group(1) if fenced else text
    word = source.strip().strip("`'\"").upper()
    if word in WORDS:
        return Code((Action(WORDS[word], raw=text.strip()),))
    if not source.strip():
        return Code(())
    return parse_code(source, screen.width, screen.height)


def _from_dict(value: dict[str, Any], screen: Screen) -> Code:
    word = str(value.get("action_type", "")).upper()
    if isinstance(value.get("input"), dict):
        return _from_claude(value, value["input"], screen)
    if word in WORDS:
        return Code((Action(WORDS[word], raw=raw_text(value) or word),))
    if "action" in value and isinstance(value["action"], str | dict | list):
        return parse_action(value["action"], screen)
    if isinstance(value.get("command"), str):
        return _from_text(value["command"], screen)
    if word:
        parameters = value.get("parameters")
        return Code((_computer_13(word, parameters if isinstance(parameters, dict) else value, value, screen),))
    return Code((Action(ActionKind.OTHER, raw=raw_text(value)),))


def _from_claude(value: dict[str, Any], given: dict[str, Any], screen: Screen) -> Code:
    """A Claude tool call. ``input`` counts pixels of a 1280 by 720 picture, ``command`` those of the screen."""
    raw, command = raw_text(value), value.get("command")
    if value.get("name", "computer") != "computer":
        return Code((Action(ActionKind.CODE, text=_text(given.get("command")) or None, raw=raw),))
    name = _text(given.get("action")).lower()
    points = [_claude_point(given[key]) for key in ("start_coordinate", "coordinate") if given.get(key) is not None]
    if isinstance(command, str) and command.strip() and (None in points or _outside(points)):
        return _from_text(command, screen)
    known = tuple(point for point in points if point is not None)
    return Code((_claude_action(name, given, known, raw),))


def _claude_action(name: str, given: dict[str, Any], points: tuple[Point, ...], raw: str) -> Action:
    text, duration_s = _text(given.get("text")), number(given.get("duration"))
    match name:
        case "type":
            return Action(ActionKind.TYPE, text=text, raw=raw)
        case "key":
            return Action(ActionKind.KEY, keys=_chord(text), raw=raw)
        case "hold_key":
            return Action(ActionKind.HOLD, keys=_chord(text), duration_s=duration_s, raw=raw)
        case "wait":
            return Action(ActionKind.WAIT, duration_s=duration_s, raw=raw)
        case "screenshot" | "cursor_position" | "zoom":
            return Action(ActionKind.SCREENSHOT, raw=raw)
        case "scroll":
            return _claude_scroll(given, points, raw)
    kind = _CLAUDE_CLICKS.get(name)
    if kind is None:
        return Action(ActionKind.OTHER, points, text=text or None, raw=raw)
    return Action(kind, points, keys=_chord(text), raw=raw)


def _claude_scroll(given: dict[str, Any], points: tuple[Point, ...], raw: str) -> Action:
    amount = number(given.get("scroll_amount")) or 0.0
    direction = _text(given.get("scroll_direction")).lower()
    scroll_x = {"left": -amount, "right": amount}.get(direction, 0.0)
    scroll_y = {"up": -amount, "down": amount}.get(direction, 0.0)
    keys = _chord(_text(given.get("text")))
    return Action(ActionKind.SCROLL, points, keys=keys, scroll_x=scroll_x, scroll_y=scroll_y, raw=raw)


def _claude_point(value: Any) -> Point | None:
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    return point_of(value[0], value[1], Screen(_CLAUDE_WIDTH, _CLAUDE_HEIGHT))


def _outside(points: list[Point | None]) -> bool:
    return any(point is not None and max(point.fraction) > 1 for point in points)


def _computer_13(word: str, given: dict[str, Any], value: dict[str, Any], screen: Screen) -> Action:
    raw = raw_text(value)
    point = point_of(given.get("x"), given.get("y"), screen)
    points = (point,) if point else ()
    match word:
        case "TYPING":
            return Action(ActionKind.TYPE, text=_text(given.get("text")), raw=raw)
        case "PRESS":
            return Action(ActionKind.KEY, keys=_keys(given.get("key")), raw=raw)
        case "HOTKEY":
            return Action(ActionKind.KEY, keys=_keys(given.get("keys")), raw=raw)
        case "KEY_DOWN":
            return Action(ActionKind.HOLD, keys=_keys(given.get("key")), raw=raw)
        case "SCROLL":
            scroll_x, scroll_y = number(given.get("dx")) or 0.0, number(given.get("dy")) or 0.0
            return Action(ActionKind.SCROLL, points, scroll_x=scroll_x, scroll_y=0.0 - scroll_y, raw=raw)
    kind = _COMPUTER_13_CLICKS.get(word, ActionKind.OTHER)
    if word == "CLICK":
        kind = _CLICK_BY_COUNT.get(int(number(given.get("num_clicks")) or 1), kind)
        kind = _CLICK_BY_BUTTON.get(_text(given.get("button")).lower(), kind)
    return Action(kind, points, raw=raw)


def point_of(x: Any, y: Any, screen: Screen) -> Point | None:
    """A point as written: fractions where both numbers are floats in 0…1, else pixels; None where it is no point."""
    x, y = number(x), number(y)
    if x is None or y is None:
        return None
    if isinstance(x, float) and isinstance(y, float) and 0 <= x <= 1 and 0 <= y <= 1:
        return Point(x, y, CoordinateSpace.FRACTION, 1, 1)
    return Point(x, y, CoordinateSpace.PIXEL, screen.width, screen.height)


def _chord(text: str) -> tuple[str, ...]:
    """``ctrl+a`` as its keys; a lone ``+`` is the plus key."""
    parts = re.split(r"(?<=[^+])\+|\s+", text.strip())
    return tuple(part for part in parts if part)


def _keys(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(_text(key) for key in value)
    return (_text(value),) if value is not None else ()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
