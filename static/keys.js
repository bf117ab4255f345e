// Every key, once: the handlers, the `?` sheet and the badges on buttons all come from this registry.

import { h, isTyping, kbd } from "./dom.js";

/** `keys` are event.key values ("Shift+N" style for letters with Shift); `code` is an extra physical key with Alt. `scope` is "review", "worklist"
 * or "any"; `repeats` lets a held key repeat. */
export const BINDINGS = [
  { id: "play", keys: [" "], label: "space", text: "play or pause", group: "Moving", scope: "review" },
  { id: "nextStep", keys: ["j", "ArrowDown"], label: "j", text: "next step", group: "Moving", scope: "review", repeats: true },
  { id: "prevStep", keys: ["k", "ArrowUp"], label: "k", text: "previous step", group: "Moving", scope: "review", repeats: true },
  { id: "nextFrame", keys: [".", "ArrowRight"], label: ".", text: "next picture", group: "Moving", scope: "review", repeats: true },
  { id: "prevFrame", keys: [",", "ArrowLeft"], label: ",", text: "previous picture", group: "Moving", scope: "review", repeats: true },
  { id: "firstStep", keys: ["Home"], label: "Home", text: "first step", group: "Moving", scope: "review" },
  { id: "lastStep", keys: ["End"], label: "End", text: "last step", group: "Moving", scope: "review" },
  { id: "slower", keys: ["<"], label: "<", text: "slower", group: "Moving", scope: "review" },
  { id: "faster", keys: [">"], label: ">", text: "faster", group: "Moving", scope: "review" },
  { id: "skipIdle", keys: ["s"], label: "s", text: "skip stretches where nothing moves", group: "Moving", scope: "review" },
  { id: "blink", keys: ["b"], label: "b", text: "blink before and after", group: "Looking", scope: "review" },
  { id: "raw", keys: ["r"], label: "r", text: "raw reply of the judge", group: "Looking", scope: "review" },
  { id: "history", keys: ["h"], label: "h", text: "history of marks", group: "Looking", scope: "review" },
  { id: "spanIn", keys: ["[", "i"], code: "BracketLeft", label: "[", text: "span begins here (Alt: no snapping)", group: "Spans", scope: "review" },
  { id: "spanOut", keys: ["]", "o"], code: "BracketRight", label: "]", text: "span ends here (Alt: no snapping)", group: "Spans", scope: "review" },
  { id: "nextSpan", keys: ["v"], label: "v", text: "select the next span", group: "Spans", scope: "review" },
  { id: "loopSpan", keys: ["l"], label: "l", text: "loop the selected span", group: "Spans", scope: "review" },
  { id: "deleteSpan", keys: ["Delete", "Backspace"], label: "Del", text: "delete the selected span", group: "Spans", scope: "review" },
  { id: "why", keys: ["w"], label: "w", text: "say why: the selected span, else the step", group: "Spans", scope: "review" },
  { id: "labelPlus", keys: ["+", "="], label: "+", text: "step is right", group: "Marks", scope: "review" },
  { id: "labelMinus", keys: ["-", "−"], label: "−", text: "step is wrong", group: "Marks", scope: "review" },
  { id: "labelUnsure", keys: ["u"], label: "u", text: "step: unsure", group: "Marks", scope: "review" },
  { id: "labelClear", keys: ["0"], label: "0", text: "clear the step’s label", group: "Marks", scope: "review" },
  { id: "firstError", keys: ["e"], label: "e", text: "first error is this step", group: "Marks", scope: "review" },
  { id: "correct", keys: ["c"], label: "c", text: "outcome: correct", group: "Marks", scope: "review" },
  { id: "incorrect", keys: ["x"], label: "x", text: "outcome: incorrect", group: "Marks", scope: "review" },
  { id: "cantTell", keys: ["Shift+U"], label: "U", text: "outcome: can’t tell", group: "Marks", scope: "review" },
  { id: "accept", keys: ["a"], label: "a", text: "accept the judge’s answer", group: "Marks", scope: "review" },
  { id: "note", keys: ["n"], label: "n", text: "note on the run", group: "Marks", scope: "review" },
  { id: "undo", keys: ["z"], label: "z", text: "undo", group: "Marks", scope: "review" },
  { id: "submit", keys: ["Enter"], label: "↵", text: "submit and open the next", group: "Marks", scope: "review" },
  { id: "fixTimes", keys: ["t"], label: "t", text: "correct the times of steps", group: "Alignment", scope: "review" },
  { id: "pinStep", keys: ["p"], label: "p", text: "while correcting: this step is at the playhead", group: "Alignment", scope: "review" },
  { id: "shiftSteps", keys: ["Shift+P"], label: "P", text: "while correcting: move all steps along", group: "Alignment", scope: "review" },
  { id: "nextRun", keys: ["Shift+J"], label: "J", text: "next trajectory", group: "Worklist", scope: "review" },
  { id: "prevRun", keys: ["Shift+K"], label: "K", text: "previous trajectory", group: "Worklist", scope: "review" },
  { id: "nextRow", keys: ["j", "ArrowDown"], label: "j", text: "next row", group: "Worklist", scope: "worklist", repeats: true },
  { id: "prevRow", keys: ["k", "ArrowUp"], label: "k", text: "previous row", group: "Worklist", scope: "worklist", repeats: true },
  { id: "openRow", keys: ["Enter", "o"], label: "↵", text: "open the row", group: "Worklist", scope: "worklist" },
  { id: "nextPage", keys: ["."], label: ".", text: "next page", group: "Worklist", scope: "worklist" },
  { id: "prevPage", keys: [","], label: ",", text: "previous page", group: "Worklist", scope: "worklist" },
  { id: "search", keys: ["/"], label: "/", text: "search", group: "Worklist", scope: "worklist" },
  { id: "worklist", keys: ["g"], label: "g", text: "worklist, and back", group: "Everywhere", scope: "any" },
  { id: "help", keys: ["?"], label: "?", text: "this sheet", group: "Everywhere", scope: "any" },
  { id: "close", keys: ["Escape"], label: "Esc", text: "close, deselect", group: "Everywhere", scope: "any" },
];

/** The key's name as the registry writes it: Shift counts only for letters, so that layouts with shifted signs work. */
function keyOf(event) {
  return event.shiftKey && /^[A-Za-z]$/.test(event.key) ? `Shift+${event.key.toUpperCase()}` : event.key.length === 1 ? event.key.toLowerCase() : event.key;
}

/** The binding for a key event in a scope, or null. Ctrl and Meta belong to the browser; AltGr makes signs, Alt frees span edges. */
export function bindingFor(event, scope) {
  if (event.ctrlKey && !event.getModifierState?.("AltGraph")) return null;
  if (event.metaKey) return null;
  const altOnly = event.altKey && !event.getModifierState?.("AltGraph");
  const key = keyOf(event);
  return BINDINGS.find((binding) => (binding.scope === scope || binding.scope === "any")
    && (altOnly ? binding.code === event.code || (binding.code && binding.keys.includes(key)) : binding.keys.includes(key))) ?? null;
}

/** Listen on the document. `actions` maps binding ids to functions of the event; `scope()` names the screen in front, or null
 * while a dialog has the keys. */
export function listen(actions, scope) {
  document.addEventListener("keydown", (event) => {
    const front = scope();
    if (!front || event.defaultPrevented || event.isComposing || isTyping(event)) return;
    const target = event.composedPath()[0];
    if ((event.key === "Enter" || event.key === " ") && target instanceof Element && target.closest("button, a, summary, [role='slider']")) return;
    const binding = bindingFor(event, front);
    if (!binding || !actions[binding.id]) return;
    event.preventDefault();
    if (event.repeat && !binding.repeats) return;
    actions[binding.id](event);
  });
}

/** The badge of a binding, for a button. */
export const badge = (id) => kbd(BINDINGS.find((binding) => binding.id === id).label);

/** The `?` sheet. */
export function keySheet() {
  const groups = Map.groupBy ? Map.groupBy(BINDINGS, (binding) => binding.group) : groupBy(BINDINGS);
  return h("div", { class: "sheet-groups" }, [...groups].map(([group, bindings]) => h("section", {}, h("h3", {}, group),
    h("dl", {}, bindings.flatMap((binding) => [h("dt", {}, shownKeys(binding).map(kbd)), h("dd", {}, binding.text)])))));
}

function groupBy(bindings) {
  const groups = new Map();
  for (const binding of bindings) groups.set(binding.group, [...(groups.get(binding.group) ?? []), binding]);
  return groups;
}

const KEY_NAMES = { " ": "space", ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", Enter: "↵", Escape: "Esc", Delete: "Del", Backspace: "⌫", "−": null };
const shownKeys = (binding) => binding.keys.map((key) => (key in KEY_NAMES ? KEY_NAMES[key] : key.replace(/^Shift\+/, ""))).filter(Boolean);
