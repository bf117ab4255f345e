"""Read pyautogui source as primitive actions. The source is parsed with ``ast`` and never run.

Statements that are no known call become ``code`` actions that keep their text. ``computer.`` verbs, as AgentNet writes
them, are read the same way.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from reviewer.trajectory import Action, ActionKind, CoordinateSpace, Point

MAX_SOURCE_CHARACTERS = 100_000

_CLICK_BY_BUTTON = {
    "left": ActionKind.CLICK,
    "primary": ActionKind.CLICK,
    "right": ActionKind.RIGHT_CLICK,
    "secondary": ActionKind.RIGHT_CLICK,
    "middle": ActionKind.MIDDLE_CLICK,
}
_CLICK_BY_COUNT = {2: ActionKind.DOUBLE_CLICK, 3: ActionKind.TRIPLE_CLICK}
_PASTE_KEYS = (("ctrl", "v"), ("command", "v"), ("cmd", "v"))
_MODULES = frozenset({"pyautogui", "computer", "pyperclip", "time", "pg", "gui"})


class Code(NamedTuple):
    """What a source holds: its actions in order, and the agent's thought where it stands in a bare string."""

    actions: tuple[Action, ...]
    thought: str = ""


def parse_code(source: str, width: float, height: float) -> Code:
    """Read a source whose pixels are those of a ``width`` by ``height`` screen. Any string in, never an exception."""
    if len(source) > MAX_SOURCE_CHARACTERS:
        return Code((Action(ActionKind.CODE, raw=source[:MAX_SOURCE_CHARACTERS]),))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
        reader = _Reader(source, width, height, _all_fractions(tree))
        reader.read(tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Code((Action(ActionKind.CODE, raw=source.strip()),))
    return Code(tuple(reader.finished()), "\n".join(reader.thoughts))


@dataclass
class _Call:
    """One call with literal arguments, as far as they are literal."""

    name: str
    positional: list[Any]
    named: dict[str, Any]
    raw: str

    def argument(self, index: int, *names: str) -> Any:
        for name in names:
            if name in self.named:
                return self.named[name]
        return self.positional[index] if index < len(self.positional) else None


class _UnknownCall(Exception):
    """A call whose arguments can't be read; it is kept as code."""


@dataclass
class _Reader:
    """Walks statements in order, keeping where the pointer is and what is held down."""

    source: str
    width: float
    height: float
    fractions: bool
    actions: list[Action] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    variables: dict[str, Any] = field(default_factory=dict)
    pointer: Point | None = None
    press: list[Point] | None = None
    press_raw: str = ""
    press_button: str = "left"
    press_waited_s: float = 0.0
    held: dict[str, Action | None] = field(default_factory=dict)
    clipboard: str | None = None

    def read(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def finished(self) -> list[Action]:
        """The actions, with what was never released told as held."""
        if self.press is not None:
            self._emit(ActionKind.HOLD, self.press_raw, points=tuple(self.press[:1]), keys=tuple(self.held))
        for key, hold in self.held.items():
            if hold is not None:
                self._emit(ActionKind.HOLD, hold.raw, keys=(key,))
        return self.actions

    def _statement(self, statement: ast.stmt) -> None:
        raw = ast.get_source_segment(self.source, statement) or ast.unparse(statement)
        match statement:
            case ast.Import() | ast.ImportFrom() | ast.Pass():
                return
            case ast.Expr(value=ast.Constant(value=str(text))):
                self.thoughts.append(text.strip())
            case ast.Expr(value=ast.Name(id="WAIT" | "DONE" | "FAIL" as word)):
                self._emit(WORDS[word], raw)
            case ast.Expr(value=ast.Call() as node):
                self._call(node, raw)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, value, raw)
            case ast.With(items=[ast.withitem(context_expr=ast.Call() as node)], body=body) if (
                _dotted(node.func).rpartition(".")[2] == "hold"
            ):
                self._with_hold(node, body, raw)
            case _:
                self._emit(ActionKind.CODE, raw)

    def _assign(self, name: str, value: ast.expr, raw: str) -> None:
        try:
            self.variables[name] = self._literal(value)
        except _UnknownCall:
            self._emit(ActionKind.CODE, raw)

    def _with_hold(self, node: ast.Call, body: list[ast.stmt], raw: str) -> None:
        try:
            keys = _keys(self._literal(node.args[0]) if node.args else None)
        except _UnknownCall:
            self._emit(ActionKind.CODE, raw)
            return
        for key in keys:
            self._key_down(key, raw)
        self.read(body)
        for key in keys:
            self._key_up(key)

    def _call(self, node: ast.Call, raw: str) -> None:
        module, _, name = _dotted(node.func).rpartition(".")
        handler = _HANDLERS.get(name)
        if handler is None or (module and module not in _MODULES):
            self._emit(ActionKind.CODE, raw)
            return
        try:
            positional = [self._literal(argument) for argument in node.args]
            named = {keyword.arg: self._literal(keyword.value) for keyword in node.keywords if keyword.arg}
            handler(self, _Call(name, positional, named, raw))
        except _UnknownCall:
            self._emit(ActionKind.CODE, raw)

    def _literal(self, node: ast.expr) -> Any:
        match node:
            case ast.Name(id=name) if name in self.variables:
                return self.variables[name]
            case ast.Starred(value=inner):
                return self._literal(inner)
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            raise _UnknownCall from None

    def _emit(self, kind: ActionKind, raw: str, **fields: Any) -> None:
        self.actions.append(Action(kind, raw=raw, **fields))

    def _point(self, x: Any, y: Any) -> Point | None:
        if isinstance(x, list | tuple) and len(x) == 2 and y is None:
            x, y = x
        x, y = number(x), number(y)
        if x is None or y is None:
            return None
        if self.fractions:
            return Point(x, y, CoordinateSpace.FRACTION, 1, 1)
        return Point(x, y, CoordinateSpace.PIXEL, self.width, self.height)

    def _target(self, call: _Call, index: int = 0) -> tuple[Point, ...]:
        """Where a call acts: at its own point, else where the pointer was moved to in this source."""
        x = call.argument(index, "x")
        pair = isinstance(x, list | tuple)
        point = self._point(x, None if pair else call.argument(index + 1, "y"))
        if point is not None:
            self.pointer = point
        else:
            self._take_back_move()
        return (self.pointer,) if self.pointer else ()

    def _take_back_move(self) -> None:
        """Drop the move that only led to the next action, looking past pauses."""
        for index in range(len(self.actions) - 1, -1, -1):
            if self.actions[index].kind is ActionKind.MOVE:
                del self.actions[index]
                return
            if self.actions[index].kind is not ActionKind.WAIT:
                return

    def _use_held(self) -> tuple[str, ...]:
        """The keys held down, marked as used: they belong to the action that asks."""
        for key in self.held:
            self.held[key] = None
        return tuple(self.held)

    def click(self, call: _Call) -> None:
        default = {"rightClick": "right", "middleClick": "middle"}.get(call.name, "left")
        button = str(call.argument(4, "button") or default) if call.name == "click" else default
        count = {"doubleClick": 2, "tripleClick": 3}.get(call.name) or _whole(call.argument(2, "clicks"), 1)
        kind = _CLICK_BY_BUTTON.get(button.lower(), ActionKind.CLICK)
        if kind is ActionKind.CLICK:
            kind = _CLICK_BY_COUNT.get(count, kind)
        self._emit(kind, call.raw, points=self._target(call), keys=self._use_held())

    def move_to(self, call: _Call) -> None:
        self._moved(self._point(call.argument(0, "x"), call.argument(1, "y")), call.raw)

    def move_by(self, call: _Call) -> None:
        self._moved(self._offset(call), call.raw)

    def _offset(self, call: _Call) -> Point | None:
        dx = number(call.argument(0, "xOffset", "x"))
        dy = number(call.argument(1, "yOffset", "y"))
        if self.pointer is None:
            return None
        return replace(self.pointer, x=self.pointer.x + (dx or 0), y=self.pointer.y + (dy or 0))

    def _moved(self, point: Point | None, raw: str) -> None:
        self.pointer = point or self.pointer
        if self.press is not None:
            self.press_raw += f"\n{raw}"
            self.press.extend((point,) if point else ())
        else:
            self._take_back_move()
            self._emit(ActionKind.MOVE, raw, points=(point,) if point else ())

    def drag_to(self, call: _Call) -> None:
        self._dragged(self._point(call.argument(0, "x"), call.argument(1, "y")), call.raw)

    def drag_by(self, call: _Call) -> None:
        self._dragged(self._offset(call), call.raw)

    def _dragged(self, end: Point | None, raw: str) -> None:
        start = self.pointer
        self._take_back_move()
        points = tuple(point for point in (start, end) if point is not None)
        self.pointer = end or start
        self._emit(ActionKind.DRAG, raw, points=points, keys=self._use_held())

    def mouse_down(self, call: _Call) -> None:
        self.press = list(self._target(call))
        self.press_raw, self.press_waited_s = call.raw, 0.0
        self.press_button = str(call.argument(2, "button") or "left").lower()

    def mouse_up(self, call: _Call) -> None:
        if self.press is None:
            self._emit(ActionKind.OTHER, call.raw, points=self._target(call), text="mouse up")
            return
        path = self.press
        end = self._point(call.argument(0, "x"), call.argument(1, "y"))
        if end is not None:
            path, self.pointer = [*path, end], end
        raw, keys = f"{self.press_raw}\n{call.raw}", self._use_held()
        if len(set(path)) > 1:
            self._emit(ActionKind.DRAG, raw, points=tuple(path), keys=keys)
        elif self.press_waited_s >= 0.5:
            self._emit(ActionKind.HOLD, raw, points=tuple(path[:1]), keys=keys, duration_s=self.press_waited_s)
        else:
            kind = _CLICK_BY_BUTTON.get(self.press_button, ActionKind.CLICK)
            self._emit(kind, raw, points=tuple(path[:1]), keys=keys)
        self.press = None

    def scroll(self, call: _Call) -> None:
        amount = number(call.argument(0, "clicks", "amount", "scroll_amount")) or 0.0
        points = self._target(call, 1)
        if call.name == "hscroll":
            self._emit(ActionKind.SCROLL, call.raw, points=points, scroll_x=amount, keys=self._use_held())
        else:
            self._emit(ActionKind.SCROLL, call.raw, points=points, scroll_y=0.0 - amount, keys=self._use_held())

    def type_text(self, call: _Call) -> None:
        value = call.argument(0, "message", "text", "typewrite")
        if isinstance(value, list | tuple) and any(len(str(key)) > 1 for key in value):
            for key in value:
                self._emit(ActionKind.KEY, call.raw, keys=(str(key),))
            return
        text = "".join(map(str, value)) if isinstance(value, list | tuple) else _text(value)
        self._emit(ActionKind.TYPE, call.raw, text=text)

    def press_key(self, call: _Call) -> None:
        presses = min(max(_whole(call.argument(1, "presses"), 1), 0), 100)
        keys = _keys(call.argument(0, "keys", "key"))
        held = self._use_held()
        for key in keys * presses:
            self._emit(ActionKind.KEY, call.raw, keys=(*held, key))

    def hotkey(self, call: _Call) -> None:
        given = call.positional or [call.named.get("keys", call.named.get("args"))]
        keys = tuple(key for value in given for key in _keys(value))
        if self.clipboard is not None and tuple(key.lower() for key in keys) in _PASTE_KEYS:
            self._emit(ActionKind.TYPE, call.raw, text=self.clipboard)
        else:
            self._emit(ActionKind.KEY, call.raw, keys=(*self._use_held(), *keys))

    def key_down(self, call: _Call) -> None:
        for key in _keys(call.argument(0, "key")):
            self._key_down(key, call.raw)

    def key_up(self, call: _Call) -> None:
        for key in _keys(call.argument(0, "key")):
            self._key_up(key)

    def _key_down(self, key: str, raw: str) -> None:
        self.held[key] = Action(ActionKind.HOLD, keys=(key,), raw=raw)

    def _key_up(self, key: str) -> None:
        hold = self.held.pop(key, None)
        if hold is not None:
            self.actions.append(hold)

    def wait(self, call: _Call) -> None:
        seconds = number(call.argument(0, "seconds", "secs", "duration", "time"))
        if self.press is not None:
            self.press_raw += f"\n{call.raw}"
            self.press_waited_s += seconds or 0.0
            return
        unused = {key: hold for key, hold in self.held.items() if hold is not None}
        if unused:
            for key, hold in unused.items():
                self.held[key] = replace(hold, duration_s=(hold.duration_s or 0.0) + (seconds or 0.0))
            return
        self._emit(ActionKind.WAIT, call.raw, duration_s=seconds)

    def copy(self, call: _Call) -> None:
        self.clipboard = _text(call.argument(0, "text"))

    def screenshot(self, call: _Call) -> None:
        self._emit(ActionKind.SCREENSHOT, call.raw)

    def terminate(self, call: _Call) -> None:
        failed = str(call.argument(0, "status") or "success").lower() in ("failure", "fail", "failed")
        self._emit(ActionKind.FAIL if failed else ActionKind.FINISH, call.raw)

    def answer(self, call: _Call) -> None:
        self._emit(ActionKind.ANSWER, call.raw, text=_text(call.argument(0, "text", "answer")))


WORDS = {"WAIT": ActionKind.WAIT, "DONE": ActionKind.FINISH, "FAIL": ActionKind.FAIL}

_HANDLERS: dict[str, Callable[[_Reader, _Call], None]] = {
    **dict.fromkeys(("click", "leftClick", "doubleClick", "tripleClick", "rightClick", "middleClick"), _Reader.click),
    "moveTo": _Reader.move_to,
    **dict.fromkeys(("move", "moveRel"), _Reader.move_by),
    "dragTo": _Reader.drag_to,
    **dict.fromkeys(("drag", "dragRel"), _Reader.drag_by),
    "mouseDown": _Reader.mouse_down,
    "mouseUp": _Reader.mouse_up,
    **dict.fromkeys(("scroll", "vscroll", "hscroll"), _Reader.scroll),
    **dict.fromkeys(("write", "typewrite"), _Reader.type_text),
    "press": _Reader.press_key,
    "hotkey": _Reader.hotkey,
    "keyDown": _Reader.key_down,
    "keyUp": _Reader.key_up,
    **dict.fromkeys(("sleep", "wait"), _Reader.wait),
    "copy": _Reader.copy,
    "screenshot": _Reader.screenshot,
    "terminate": _Reader.terminate,
    "answer": _Reader.answer,
}


def _dotted(node: ast.expr) -> str:
    """``pyautogui.click`` of the node that names a function, or "" when it is something else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return f"{module}.{name}"
    return "?."


def _all_fractions(tree: ast.Module) -> bool:
    """Whether every coordinate in the source lies in 0…1 and at least one is written as a float."""
    numbers = [
        value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _dotted(node.func).rpartition(".")[2] in _POINTED
        for value in _coordinates(node)
    ]
    return any(isinstance(number, float) for number in numbers) and all(0 <= number <= 1 for number in numbers)


_POINTED = frozenset(
    {"click", "leftClick", "doubleClick", "tripleClick", "rightClick", "middleClick", "moveTo", "dragTo"}
    | {"mouseDown", "mouseUp", "scroll", "vscroll", "hscroll"}
)


def _coordinates(node: ast.Call) -> list[float]:
    name = _dotted(node.func).rpartition(".")[2]
    first = 1 if name.endswith("scroll") else 0
    given = [*node.args[first : first + 2], *(word.value for word in node.keywords if word.arg in ("x", "y"))]
    flat = [item for value in given for item in (value.elts if isinstance(value, ast.Tuple | ast.List) else [value])]
    return [
        item.value
        for item in flat
        if isinstance(item, ast.Constant) and isinstance(item.value, int | float) and not isinstance(item.value, bool)
    ]


def number(value: Any) -> float | None:
    """A finite number that a screen could hold, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < 1e9 else None


def _whole(value: Any, default: int) -> int:
    given = number(value)
    return default if given is None else int(given)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _keys(value: Any) -> tuple[str, ...]:
    if isinstance(value, list | tuple):
        return tuple(str(key) for key in value)
    return () if value is None else (str(value),)
