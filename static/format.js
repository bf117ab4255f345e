// How times and actions read on screen.

/** Seconds of the video clock as m:ss.mmm (or h:mm:ss.mmm). */
export function timecode(seconds, digits = 3) {
  if (seconds == null || !Number.isFinite(seconds)) return "–";
  const scale = 10 ** digits;
  const total = Math.round(Math.max(0, seconds) * scale);
  const whole = Math.floor(total / scale);
  const fraction = digits ? `.${String(total % scale).padStart(digits, "0")}` : "";
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const tail = `${String(rest).padStart(2, "0")}${fraction}`;
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${tail}` : `${minutes}:${tail}`;
}

/** A UTC time as the reader's local time, to the second or, `short`, to the minute. */
export function localTime(utc, { short = false } = {}) {
  const date = new Date(utc);
  if (Number.isNaN(date.getTime())) return utc ?? "";
  return date.toLocaleString(undefined, short ? { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" } : { dateStyle: "medium", timeStyle: "medium" });
}

/** The reader's time zone, named once where local times are listed. */
export const zoneName = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

const VERBS = {
  click: "Click", double_click: "Double-click", triple_click: "Triple-click", right_click: "Right-click",
  middle_click: "Middle-click", drag: "Drag", move: "Move", scroll: "Scroll", type: "Type", key: "Press", hold: "Hold",
  wait: "Wait", open_app: "Open", system_button: "Press", screenshot: "Screenshot", answer: "Answer", finish: "Finish",
  fail: "Give up", code: "Run", other: "Do",
};

const point = (p) => (p.px ? `(${Math.round(p.px[0])}, ${Math.round(p.px[1])})` : `(${(p.x * 100).toFixed(0)} %, ${(p.y * 100).toFixed(0)} %)`);

function scrollText(action) {
  const { scroll_x: x = 0, scroll_y: y = 0 } = action;
  if (!x && !y) return "";
  return Math.abs(y) >= Math.abs(x) ? (y > 0 ? "down" : "up") : x > 0 ? "right" : "left";
}

/** One primitive action as {verb, detail}. */
export function describeAction(action) {
  const verb = VERBS[action.kind] ?? "Do";
  const points = (action.points ?? []).map(point);
  if (action.kind === "type" || action.kind === "answer" || action.kind === "open_app") return { verb, detail: action.text ? `“${action.text}”` : "" };
  if (action.kind === "key" || action.kind === "hold" || action.kind === "system_button") return { verb, detail: (action.keys ?? []).map(keyName).join("+") || action.text || "" };
  if (action.kind === "drag") return { verb, detail: points.length > 1 ? `${points[0]} → ${points.at(-1)}` : points.join("") };
  if (action.kind === "scroll") return { verb, detail: [scrollText(action), points[0] && `at ${points[0]}`].filter(Boolean).join(" ") };
  if (action.kind === "wait") return { verb, detail: action.duration_s ? `${action.duration_s} s` : "" };
  if (action.kind === "code" || action.kind === "other") return { verb, detail: action.text || action.raw || "" };
  return { verb, detail: points[0] ?? action.text ?? "" };
}

/** A step as {verb, detail}: its first action that is more than moving the pointer, and how many more there are. */
export function describeStep(step) {
  const actions = step.actions ?? [];
  if (!actions.length) return { verb: "No action", detail: "" };
  const main = actions.find((action) => action.kind !== "move") ?? actions[0];
  const { verb, detail } = describeAction(main);
  return { verb, detail: actions.length > 1 ? `${detail} · and ${actions.length - 1} more` : detail };
}

export function keyName(key) {
  const names = { ctrl: "Ctrl", control: "Ctrl", alt: "Alt", shift: "Shift", cmd: "⌘", command: "⌘", win: "Win", meta: "Meta", enter: "Enter", return: "Enter", esc: "Esc", escape: "Esc", backspace: "⌫", delete: "Del", tab: "Tab", space: "Space", up: "↑", down: "↓", left: "←", right: "→" };
  return names[key.toLowerCase()] ?? (key.length === 1 ? key.toUpperCase() : key);
}

export const OUTCOMES = { correct: "correct", incorrect: "incorrect", unsure: "can’t tell" };

export const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
