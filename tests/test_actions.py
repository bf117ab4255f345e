"""Actions in every shape agents write them in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reviewer.actions import Screen, parse_action, words_of
from reviewer.pyautogui_code import parse_code
from reviewer.trajectory import Action, ActionKind, CoordinateSpace

SCREEN = Screen(1920, 1080)


def actions_of(value: Any) -> tuple[Action, ...]:
    return parse_action(value, SCREEN).actions


def only(value: Any) -> Action:
    (action,) = actions_of(value)
    return action


def places(action: Action) -> list[tuple[float, float]]:
    return [(point.x, point.y) for point in action.points]


@pytest.mark.parametrize(
    ("source", "kind", "points"),
    [
        ("import pyautogui\npyautogui.click(100, 200)", ActionKind.CLICK, [(100, 200)]),
        ("pyautogui.click(x=100, y=200)", ActionKind.CLICK, [(100, 200)]),
        ("pyautogui.click((100, 200))", ActionKind.CLICK, [(100, 200)]),
        ("pyautogui.click(1, 2, clicks=2)", ActionKind.DOUBLE_CLICK, [(1, 2)]),
        ("pyautogui.click(1, 2, button='right')", ActionKind.RIGHT_CLICK, [(1, 2)]),
        ("pyautogui.click()", ActionKind.CLICK, []),
        ("pyautogui.doubleClick(1, 2)", ActionKind.DOUBLE_CLICK, [(1, 2)]),
        ("pyautogui.tripleClick(1, 2)", ActionKind.TRIPLE_CLICK, [(1, 2)]),
        ("pyautogui.rightClick(1, 2)", ActionKind.RIGHT_CLICK, [(1, 2)]),
        ("pyautogui.middleClick(1, 2)", ActionKind.MIDDLE_CLICK, [(1, 2)]),
        ("pyautogui.moveTo(1, 2)", ActionKind.MOVE, [(1, 2)]),
        ("pyautogui.moveTo(1, 2); pyautogui.click()", ActionKind.CLICK, [(1, 2)]),
        ("pyautogui.moveTo(1, 2)\npyautogui.dragTo(30, 40, duration=1)", ActionKind.DRAG, [(1, 2), (30, 40)]),
        ("pyautogui.moveTo(1, 2)\npyautogui.dragRel(10, 20)", ActionKind.DRAG, [(1, 2), (11, 22)]),
        ("pyautogui.dragTo(30, 40)", ActionKind.DRAG, [(30, 40)]),
        ("pyautogui.mouseDown(1, 2)\npyautogui.moveTo(3, 4)\npyautogui.mouseUp()", ActionKind.DRAG, [(1, 2), (3, 4)]),
        ("pyautogui.moveTo(1, 2)\npyautogui.mouseDown()\npyautogui.mouseUp()", ActionKind.CLICK, [(1, 2)]),
        ("pyautogui.moveTo(1, 2)\npyautogui.scroll(-3)", ActionKind.SCROLL, [(1, 2)]),
        ("x = 5\npyautogui.click(x, 9)", ActionKind.CLICK, [(5, 9)]),
        ("computer.tripleClick(x=3, y=4)", ActionKind.TRIPLE_CLICK, [(3, 4)]),
        ("```python\npyautogui.click(7, 8)\n```", ActionKind.CLICK, [(7, 8)]),
    ],
)
def test_pointing_source_becomes_one_action_with_its_points(
    source: str, kind: ActionKind, points: list[tuple[float, float]]
) -> None:
    action = only(source)
    assert (action.kind, places(action)) == (kind, points)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("pyautogui.write('héé', interval=0.1)", Action(ActionKind.TYPE, text="héé")),
        ("pyautogui.typewrite(message='a\\nb')", Action(ActionKind.TYPE, text="a\nb")),
        ("pyautogui.press('enter')", Action(ActionKind.KEY, keys=("enter",))),
        ("pyautogui.hotkey('ctrl', 'c')", Action(ActionKind.KEY, keys=("ctrl", "c"))),
        ("pyautogui.hotkey(['ctrl', 'c'])", Action(ActionKind.KEY, keys=("ctrl", "c"))),
        ("pyautogui.keyDown('shift')", Action(ActionKind.HOLD, keys=("shift",))),
        (
            "pyautogui.keyDown('a'); time.sleep(2); pyautogui.keyUp('a')",
            Action(ActionKind.HOLD, keys=("a",), duration_s=2),
        ),
        (
            "pyautogui.keyDown('ctrl'); pyautogui.press('c'); pyautogui.keyUp('ctrl')",
            Action(ActionKind.KEY, keys=("ctrl", "c")),
        ),
        ("time.sleep(1.5)", Action(ActionKind.WAIT, duration_s=1.5)),
        ("pyautogui.scroll(5)", Action(ActionKind.SCROLL, scroll_y=-5)),
        ("pyautogui.hscroll(5)", Action(ActionKind.SCROLL, scroll_x=5)),
        ("pyautogui.screenshot()", Action(ActionKind.SCREENSHOT)),
        ("pyperclip.copy('pasted'); pyautogui.hotkey('ctrl', 'v')", Action(ActionKind.TYPE, text="pasted")),
        ("WAIT", Action(ActionKind.WAIT)),
        ("DONE", Action(ActionKind.FINISH)),
        (" fail ", Action(ActionKind.FAIL)),
        ("computer.terminate(status='failure')", Action(ActionKind.FAIL)),
    ],
)
def test_other_source_becomes_one_action(source: str, expected: Action) -> None:
    action = only(source)
    assert Action(**{**vars(action), "raw": ""}) == expected


def test_a_modifier_that_is_held_belongs_to_the_click() -> None:
    action = only("pyautogui.keyDown('ctrl')\npyautogui.click(1, 2)\npyautogui.keyUp('ctrl')")
    assert (action.kind, action.keys) == (ActionKind.CLICK, ("ctrl",))


def test_repeated_presses_are_all_told() -> None:
    assert [action.keys for action in actions_of("pyautogui.press(['up', 'down'], presses=2)")] == [
        ("up",),
        ("down",),
        ("up",),
        ("down",),
    ]


def test_keys_pressed_while_others_are_held_in_a_block() -> None:
    source = "with pyautogui.hold('shift'):\n    pyautogui.press(['left', 'right'])"
    assert [action.keys for action in actions_of(source)] == [("shift", "left"), ("shift", "right")]


def test_several_statements_are_several_actions_in_order() -> None:
    source = "pyautogui.click(1, 2)\npyautogui.write('x')\npyautogui.press('enter')"
    assert [action.kind for action in actions_of(source)] == [ActionKind.CLICK, ActionKind.TYPE, ActionKind.KEY]


def test_the_thought_in_a_bare_string_is_told_apart_from_the_action() -> None:
    code = parse_code("'''Thought: open the menu'''\npyautogui.click(1, 2)", 100, 100)
    assert code.thought == "Thought: open the menu"
    assert [action.kind for action in code.actions] == [ActionKind.CLICK]


@pytest.mark.parametrize(
    "source",
    [
        "os.system('rm -rf /')",
        "__import__('os').remove('x')",
        "for i in range(3): pyautogui.press('a')",
        "pyautogui.click(‘a’)",
        "pyautogui.click(x(), 1)",
        "import os; pyautogui.write(os.environ)",
        "(" * 5000,
        "-" * 50_000 + "1",
        "x" + ".a" * 50_000,
        "a\0b",
    ],
)
def test_what_is_no_known_call_is_kept_as_code_and_never_run(source: str) -> None:
    action = only(source)
    assert action.kind is ActionKind.CODE
    assert action.raw in source


def test_points_count_pixels_of_the_screen_unless_all_are_fractions() -> None:
    pixel = only("pyautogui.click(960, 540)").points[0]
    assert (pixel.space, pixel.fraction) == (CoordinateSpace.PIXEL, (0.5, 0.5))
    fraction = only("pyautogui.moveTo(0.25, 0.5)\npyautogui.dragTo(0.75, 1.0)").points
    assert [point.fraction for point in fraction] == [(0.25, 0.5), (0.75, 1.0)]
    mixed = only("pyautogui.moveTo(0.5, 0.5)\npyautogui.dragTo(300, 400)").points
    assert all(point.space is CoordinateSpace.PIXEL for point in mixed)
    assert only("pyautogui.click(0, 1)").points[0].space is CoordinateSpace.PIXEL


def claude(action: str, command: str = "", **given: Any) -> dict[str, Any]:
    return {"name": "computer", "input": {"action": action, **given}, "action_type": "tool_use", "command": command}


def test_claude_points_count_pixels_of_a_1280_by_720_picture() -> None:
    action = only(claude("left_click", "pyautogui.click(960, 540)\n", coordinate=[640, 360]))
    assert action.points[0].fraction == (0.5, 0.5)
    assert (action.kind, action.raw) == (ActionKind.CLICK, "pyautogui.click(960, 540)")


def test_claude_points_outside_that_picture_are_read_from_the_command() -> None:
    action = only(claude("left_click", "pyautogui.click(1900, 1000)", coordinate=[1900, 1000]))
    assert action.points[0].fraction == (1900 / 1920, 1000 / 1080)


def test_claude_typing_shows_the_text_rather_than_one_press_per_character() -> None:
    action = only(claude("type", "pyautogui.press('h')\npyautogui.press('i')", text="hi"))
    assert (action.kind, action.text) == (ActionKind.TYPE, "hi")


@pytest.mark.parametrize(
    ("value", "kind", "keys", "scroll"),
    [
        (claude("key", text="ctrl+shift+t"), ActionKind.KEY, ("ctrl", "shift", "t"), (0, 0)),
        (claude("key", text="ctrl++"), ActionKind.KEY, ("ctrl", "+"), (0, 0)),
        (claude("left_click", coordinate=[1, 2], text="shift"), ActionKind.CLICK, ("shift",), (0, 0)),
        (claude("hold_key", text="w", duration=2), ActionKind.HOLD, ("w",), (0, 0)),
        (claude("scroll", scroll_direction="up", scroll_amount=3), ActionKind.SCROLL, (), (0, -3)),
        (claude("scroll", scroll_direction="right", scroll_amount=3), ActionKind.SCROLL, (), (3, 0)),
        (claude("screenshot"), ActionKind.SCREENSHOT, (), (0, 0)),
        (claude("wait", duration=1), ActionKind.WAIT, (), (0, 0)),
        (claude("invented"), ActionKind.OTHER, (), (0, 0)),
        ({"action_type": "DONE", "raw_response": "ok"}, ActionKind.FINISH, (), (0, 0)),
        ({"action_type": "FAIL"}, ActionKind.FAIL, (), (0, 0)),
    ],
)
def test_claude_tool_calls(
    value: dict[str, Any], kind: ActionKind, keys: tuple[str, ...], scroll: tuple[float, float]
) -> None:
    action = only(value)
    assert (action.kind, action.keys, (action.scroll_x, action.scroll_y)) == (kind, keys, scroll)


def test_claude_drags_have_both_ends() -> None:
    action = only(claude("left_click_drag", start_coordinate=[0, 0], coordinate=[1280, 720]))
    assert [point.fraction for point in action.points] == [(0, 0), (1, 1)]


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    ("word", "given", "kind"),
    [
        ("CLICK", {"x": 10, "y": 20}, ActionKind.CLICK),
        ("CLICK", {"x": 10, "y": 20, "num_clicks": 2}, ActionKind.DOUBLE_CLICK),
        ("CLICK", {"x": 10, "y": 20, "button": "right"}, ActionKind.RIGHT_CLICK),
        ("MOVE_TO", {"x": 10, "y": 20}, ActionKind.MOVE),
        ("DRAG_TO", {"x": 10, "y": 20}, ActionKind.DRAG),
        ("SCROLL", {"dx": 0, "dy": -3}, ActionKind.SCROLL),
        ("TYPING", {"text": "hi"}, ActionKind.TYPE),
        ("PRESS", {"key": "enter"}, ActionKind.KEY),
        ("HOTKEY", {"keys": ["ctrl", "c"]}, ActionKind.KEY),
        ("KEY_DOWN", {"key": "ctrl"}, ActionKind.HOLD),
        ("WAIT", {}, ActionKind.WAIT),
    ],
)
def test_computer_13_in_both_its_shapes(word: str, given: dict[str, Any], kind: ActionKind, nested: bool) -> None:
    action = only({"action_type": word, "parameters": given} if nested else {"action_type": word, **given})
    assert action.kind is kind
    assert places(action) == ([(10, 20)] if "x" in given else [])


def test_a_wrapped_source_is_read_as_source() -> None:
    action = only({"action_space": "pyautogui", "action": "import pyautogui\npyautogui.click(3, 4)", "call_id": "c"})
    assert (action.kind, places(action)) == (ActionKind.CLICK, [(3, 4)])


@settings(max_examples=120, deadline=None)
@given(st.text())
def test_any_text_is_read_without_an_exception(text: str) -> None:
    parse_action(text, SCREEN)


NAMES = ["click", "moveTo", "dragTo", "mouseDown", "mouseUp", "scroll", "write", "press", "hotkey", "keyDown", "sleep"]
LITERALS = st.one_of(
    st.integers(), st.floats(), st.text(max_size=5), st.none(), st.lists(st.integers(), max_size=3), st.booleans()
)


@settings(max_examples=120, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(NAMES), st.lists(LITERALS, max_size=4)), max_size=5))
def test_any_calls_are_read_without_an_exception(calls: list[tuple[str, list[Any]]]) -> None:
    source = "\n".join(f"pyautogui.{name}({', '.join(map(repr, values))})" for name, values in calls)
    for action in actions_of(source):
        assert all(abs(point.x) < 1e9 and abs(point.y) < 1e9 for point in action.points)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["action", "input", "name", "action_type", "command", "parameters", "coordinate", "x", "y"])
            | st.text(max_size=4),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=120, deadline=None)
@given(JSON)
def test_any_json_value_is_read_without_an_exception(value: Any) -> None:
    parse_action(value, SCREEN)


@pytest.mark.parametrize(
    ("text", "action", "words"),
    [
        ("I click.\n```python\nimport pyautogui\npyautogui.click(3, 4)\n```\n\nThen I wait.", "pyautogui.click(6, 8)",
         "I click.\n\nThen I wait."),
        ("Done.\r\n```DONE```", "DONE", "Done."),
        ("```\nWAIT\n```", "WAIT", ""),
        ('So:\n```json\n{"action_type": "CLICK", "x": 1, "y": 2}\n```', {"action_type": "CLICK"}, "So:"),
        ("```python\nos.remove('a')\n```\nGone", "os.remove('a')", "Gone"),
        ("Both.\n```python\npyautogui.click(1, 2)\n```\n```python\npyautogui.press('a')\n```", "pyautogui.press('a')",
         "Both."),
        ("Cut off:\n```python\npyautogui.click(1, 2)", "pyautogui.click(1, 2)", "Cut off:"),
        ("It printed\n```bash\nls -la\n```\nso", "pyautogui.click(1, 2)", "It printed\n```bash\nls -la\n```\nso"),
        ("Use `click` here", "pyautogui.click(1, 2)", "Use `click` here"),
        ("a\n\n\nb", "DONE", "a\n\n\nb"),
    ],
)  # fmt: skip
def test_words_are_without_the_blocks_that_hold_actions(text: str, action: Any, words: str) -> None:
    assert words_of(text, action, SCREEN) == words


@given(st.text(alphabet="`a{}\n python", max_size=60), st.text(max_size=20))
def test_words_are_read_from_anything(text: str, action: str) -> None:
    assert len(words_of(text, action, SCREEN)) <= len(text)
