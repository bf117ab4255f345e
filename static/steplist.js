// The list of steps beside the video: what the agent did, what judges and the person say of it.

import { h } from "./dom.js";
import { describeStep } from "./format.js";
import { stepState } from "./review.js";

export class StepList {
  /** `on`: seekStep(index), label(index, label|null), reason(index, text). */
  constructor(on) {
    this.on = on;
    this.root = h("ol", { class: "steps", role: "listbox", "aria-label": "steps" });
    this.rows = [];
    this.current = null;
  }

  open(detail, judgeLabels) {
    this.detail = detail;
    this.current = null;
    const weak = detail.alignment?.step_weak ?? [];
    this.rows = detail.trajectory.steps.map((step) => this.row(step, weak[step.index], judgeLabels.get(step.index) ?? []));
    this.root.replaceChildren(...(this.rows.length ? this.rows : [h("li", { class: "empty" }, "This run has no list of steps, only its recording. Mark where it deviates with [ and ] on the timeline.")]));
    this.root.scrollTop = 0;
  }

  row(step, isWeak, judged) {
    const { verb, detail } = describeStep(step);
    const judge = judged[0];
    const button = (label, text, cls) => h("button", { class: cls, data: { label }, tabindex: "-1", "aria-label": `label step ${step.index + 1} ${label}`, title: judge && judge.label === label ? `${judge.judge}: ${judge.reason || label}` : null }, text);
    const plus = button("+", "+", "plus");
    const minus = button("-", "−", "minus");
    for (const item of judged) (item.label === "-" ? minus : plus).classList.add("judged");
    return h("li", { class: "step", role: "option", data: { step: step.index }, on: { click: (event) => this.clicked(event, step.index) } },
      h("span", { class: "n num" }, String(step.index + 1)),
      h("div", { class: "act" },
        h("div", { class: "act-line" }, h("b", {}, verb), " ", h("span", { class: "act-detail", title: detail }, detail), isWeak && h("span", { class: "weak-mark", title: "The picture did not change here, so this step’s time is an estimate" }, "≈")),
        step.thought && h("div", { class: "thought" }, step.thought),
        judged.filter((item) => item.reason).map((item) => h("div", { class: "judge-why" }, `${item.judge}: ${item.reason}`)),
        h("div", { class: "why" })),
      h("div", { class: "lab" }, h("span", { class: "chip plain after", hidden: true }, "after error"), plus, minus));
  }

  clicked(event, index) {
    const label = event.target.closest("button")?.dataset.label;
    if (!label) return this.on.seekStep(index);
    this.on.seekStep(index);
    this.on.label(index, event.target.closest("button").classList.contains("on") ? null : label);
  }

  render(review, current) {
    this.rows.forEach((row, index) => {
      const state = stepState(review, index);
      const [plus, minus] = row.querySelectorAll(".lab button");
      plus.classList.toggle("on", state.label === "+");
      minus.classList.toggle("on", state.label === "-");
      plus.setAttribute("aria-pressed", state.label === "+");
      minus.setAttribute("aria-pressed", state.label === "-");
      row.classList.toggle("after-error", state.afterError);
      row.querySelector(".after").hidden = !(state.afterError || state.label === "unsure");
      row.querySelector(".after").textContent = state.label === "unsure" ? "unsure" : "after error";
      const why = [state.isFirstError && "first error", state.reason, state.note].filter(Boolean).join(" · ");
      row.querySelector(".why").textContent = why;
      row.querySelector(".why").classList.toggle("neg", state.label === "-");
      for (const said of row.querySelectorAll(".judge-why")) said.hidden = Boolean(state.reason) && said.textContent.endsWith(state.reason);
    });
    this.setCurrent(current);
  }

  setCurrent(current) {
    if (current === this.current) return;
    const [before, now] = [this.rows[this.current], this.rows[current]];
    before?.classList.remove("cur");
    before?.setAttribute("aria-selected", "false");
    now?.classList.add("cur");
    now?.setAttribute("aria-selected", "true");
    if (now) this.reveal(now);
    this.current = current;
  }

  reveal(row) {
    const { scrollTop, clientHeight } = this.root;
    if (row.offsetTop < scrollTop + 8) this.root.scrollTop = row.offsetTop - 8;
    else if (row.offsetTop + row.offsetHeight > scrollTop + clientHeight - 8) this.root.scrollTop = row.offsetTop + row.offsetHeight - clientHeight + 8;
  }
}

/** What judges say of each step: step index → [{judge, label, reason}]. */
export function judgeLabelsByStep(judgements) {
  const byStep = new Map();
  for (const judgement of judgements) {
    for (const item of judgement.step_labels ?? []) {
      const list = byStep.get(item.step_index) ?? [];
      list.push({ judge: judgement.judge, label: item.label, reason: item.reason });
      byStep.set(item.step_index, list);
    }
  }
  return byStep;
}
