// What lies over the page for a moment: toasts, dialogs, and the drawer with raw replies and the history.

import { call, runPath, url } from "./api.js";
import { h } from "./dom.js";
import { localTime, OUTCOMES, plural, timecode, zoneName } from "./format.js";

export class Toasts {
  constructor() {
    this.root = h("div", { class: "toasts", role: "status", "aria-live": "polite" });
  }

  /** Tell something for a few seconds; the same words are not told twice at a time. */
  show(text, { kind = "plain", stay_ms = 4000 } = {}) {
    for (const other of this.root.children) if (other.textContent === text) other.remove();
    const toast = h("div", { class: `toast ${kind}` }, text);
    this.root.append(toast);
    while (this.root.childElementCount > 4) this.root.firstChild.remove();
    setTimeout(() => toast.remove(), stay_ms);
  }
}

/** A question that has to be answered by one of its buttons, none of which has the focus: a habitual Enter answers nothing. */
export function ask(host, { title, body, buttons }) {
  return new Promise((resolve) => {
    const done = (value) => { dialog.close(); dialog.remove(); resolve(value); };
    const dialog = h("dialog", { class: "dialog", on: { cancel: (event) => event.preventDefault() } },
      h("h2", { tabindex: "-1", autofocus: true }, title), body,
      h("div", { class: "dialog-buttons" }, buttons.map(({ text, value, primary }) => h("button", { class: primary ? "primary" : "quiet", on: { click: () => done(value) } }, text))));
    host.append(dialog);
    dialog.showModal();
  });
}

/** A one-line question. Resolves to the text, or null when cancelled. */
export function askText(host, { title, value = "", placeholder = "", hint = "" }) {
  return new Promise((resolve) => {
    const done = (answer) => { dialog.close(); dialog.remove(); resolve(answer); };
    const input = h("input", { type: "text", ".value": value, placeholder, maxlength: "2000", "aria-label": title });
    const dialog = h("dialog", { class: "dialog", on: { cancel: (event) => { event.preventDefault(); done(null); } } },
      h("form", { on: { submit: (event) => { event.preventDefault(); done(input.value.trim()); } } },
        h("h2", {}, title), input, hint && h("p", { class: "dim" }, hint),
        h("div", { class: "dialog-buttons" }, h("button", { class: "quiet", on: { click: () => done(null) } }, "Cancel"), h("button", { class: "primary", type: "submit" }, "Keep"))));
    host.append(dialog);
    dialog.showModal();
    input.select();
  });
}

/** The drawer at the right edge: one kind of content at a time. */
export class Drawer {
  constructor() {
    this.title = h("h2", {});
    this.body = h("div", { class: "drawer-body" });
    this.root = h("aside", { class: "drawer", hidden: true }, h("header", {}, this.title, h("button", { class: "quiet", "aria-label": "close", on: { click: () => this.close() } }, "✕")), this.body);
    this.kind = null;
  }

  open(kind, title, ...content) {
    this.kind = kind;
    this.title.textContent = title;
    this.body.replaceChildren(...content);
    this.root.hidden = false;
    this.body.scrollTop = 0;
  }

  close() {
    this.root.hidden = true;
    this.kind = null;
  }
}

/** The raw reply of each judge, and the frames it was given. `onSeek(at_s)` is called when a frame is chosen. */
export function rawReplies(detail, onSeek) {
  if (!detail.judgements.length) return h("p", { class: "dim" }, "No judge has looked at this run yet.");
  return h("div", {}, detail.judgements.map((judgement) => h("section", { class: "raw" },
    h("h3", {}, judgement.judge, " ", h("span", { class: `chip ${chipClass(judgement.outcome)}` }, judgement.outcome ?? (judgement.error ? "failed" : "no outcome"))),
    h("p", { class: "dim" }, `${localTime(judgement.created_utc)} · ${judgement.fingerprint.slice(0, 12)}`),
    judgement.error && h("p", { class: "neg-text" }, judgement.error),
    h("pre", {}, judgement.raw || "(no text)"),
    framesGiven(detail, judgement, onSeek))));
}

function framesGiven(detail, judgement, onSeek) {
  const frames = judgement.frame_plan?.frames ?? [];
  if (!frames.length || !detail.media) return h("p", { class: "dim" }, "It compared the pictures before and after each step; it was given no sampled frames.");
  return h("div", {}, h("p", { class: "dim" }, `The ${plural(frames.length, "frame")} it was given:`),
    h("div", { class: "frames" }, frames.map((frame, index) => h("button", { class: "frame", title: timecode(frame.at_s), on: { click: () => onSeek(frame.at_s) } },
      h("img", { loading: "lazy", alt: `frame ${index + 1}`, src: url(`media/${detail.media.media_id}/picture?at_s=${frame.at_s.toFixed(4)}&width_px=160`) }), h("span", { class: "num" }, timecode(frame.at_s, 1))))));
}

export const chipClass = (outcome) => ({ correct: "pos", incorrect: "neg", unsure: "amb" })[outcome] ?? "plain";

/** The history of a trajectory: who, when, what from, what to, why. */
export async function historyList(id) {
  const { ops } = await call(`${runPath(id)}/history?limit=300`);
  if (!ops.length) return h("p", { class: "dim" }, "Nothing has been marked on this run yet.");
  return h("div", {}, h("p", { class: "dim" }, `Newest first. Times are local (${zoneName()}).`), h("ol", { class: "history" }, ops.map((op) => h("li", {},
    h("div", { class: "history-head" }, h("b", {}, op.reviewer), op.verified ? null : h("span", { class: "dim", title: "the name was typed, not logged in" }, " (unverified)"), h("time", { datetime: op.created_utc, class: "dim" }, localTime(op.created_utc))),
    op.changes.length ? op.changes.map(changeLine) : h("div", { class: "dim" }, op.type.replaceAll("_", " ")),
    op.type === "undo" && h("div", { class: "dim" }, "undo"),
    op.reason && h("div", { class: "history-why" }, op.reason)))));
}

/** A field and the value it is set to, in words. */
export function settingLine({ field, to }) {
  return h("div", { class: "change" }, h("span", {}, fieldName(field)), " ", h("ins", {}, valueText(field, to)));
}

/** One change as "field: from → to", in words. */
export function changeLine({ field, from, to }) {
  return h("div", { class: "change" }, h("span", {}, fieldName(field)), " ", h("del", {}, valueText(field, from)), " → ", h("ins", {}, valueText(field, to)));
}

function fieldName(field) {
  const [group, key] = field.split(/\/(.*)/);
  const step = /^\d+$/.test(key ?? "") ? `step ${Number(key) + 1}` : "";
  return { outcome: "outcome", first_error: "first error", status: "review", spans: "span", step_labels: step, notes: step ? `note, ${step}` : "note", better_actions: `better action, ${step}` }[group] ?? field;
}

function valueText(field, value) {
  if (value === null || value === undefined) return "none";
  if (field === "outcome") return OUTCOMES[value] ?? value;
  if (field === "status") return { in_progress: "in progress", submitted: "submitted", unreviewed: "not begun" }[value] ?? value;
  if (field.startsWith("spans/")) return `${timecode(value.start_s, 2)}–${timecode(value.end_s, 2)}${value.reason ? ` “${value.reason}”` : ""}`;
  if (field === "first_error") return `step ${value.step_index + 1}${value.reason ? ` “${value.reason}”` : ""}`;
  if (field.startsWith("step_labels/")) return `${value.label}${value.reason ? ` “${value.reason}”` : ""}`;
  return typeof value === "string" ? `“${value}”` : JSON.stringify(value);
}
