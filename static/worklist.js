// The worklist: which trajectories there are, searched, filtered, in order; opened by id, never by row number.

import { call, url } from "./api.js";
import { chipClass } from "./dialogs.js";
import { h } from "./dom.js";
import { localTime, OUTCOMES, plural, timecode } from "./format.js";

const PAGE = 50;
const POLL_MS = 2000;
const STAY_MS = 800;
const FILTER_KEY = "reviewer.filter";

const COLUMNS = [
  ["", null], ["task", "task"], ["steps", "steps"], ["length", "duration"], ["judge", "judge_outcome"], ["review", "review"], ["problems", "problems"], ["imported", "imported"],
];

const DEFAULTS = { search: "", source: "", agent: "", judge_outcome: "", review: "", problems: "", sort: "imported", order: "asc" };

export class Worklist {
  /** `app`: {open(id), toasts, showImport()}. */
  constructor(app) {
    this.app = app;
    const { filter, offset } = readPlace();
    this.filter = { ...DEFAULTS, ...filter };
    this.offset = offset ?? 0;
    this.ids = [];
    this.items = [];
    this.total = null;
    this.loading = null;
    this.build();
  }

  build() {
    this.search = h("input", { type: "search", placeholder: "Search task, source, agent, id", "aria-label": "search", ".value": this.filter.search, on: { input: () => this.searchChanged(), keydown: (event) => { if (event.key === "Escape" || event.key === "Enter") { event.preventDefault(); this.search.blur(); } } } });
    this.selects = {
      source: this.select("source", "any source", []),
      agent: this.select("agent", "any agent", []),
      judge_outcome: this.select("judge_outcome", "any judge outcome", [["incorrect", "judge: incorrect"], ["correct", "judge: correct"], ["none", "judge: no outcome"]]),
      review: this.select("review", "any review", [["unreviewed", "not reviewed"], ["in_progress", "in progress"], ["submitted", "submitted"], ["correct", "you: correct"], ["incorrect", "you: incorrect"], ["unsure", "you: can’t tell"]]),
      problems: this.select("problems", "any problems", [["yes", "with problems"], ["no", "without problems"]]),
    };
    this.clear = h("button", { class: "quiet", hidden: true, on: { click: () => this.clearFilter() } }, "clear");
    this.count = h("span", { class: "dim num", role: "status" });
    this.head = h("div", { class: "row head-row", role: "row" }, COLUMNS.map(([title, sort]) => h("div", { role: "columnheader", class: `cell c-${sort ?? "thumb"}` },
      sort ? h("button", { class: "sort", data: { sort }, on: { click: () => this.sortBy(sort) } }, title) : "")));
    this.rows = h("div", { class: "rows", role: "rowgroup" });
    this.pager = h("div", { class: "pager" });
    this.table = h("div", { class: "table", role: "table", "aria-label": "trajectories" }, this.head, this.rows);
    this.state = h("div", { class: "list-state", hidden: true });
    this.root = h("div", { class: "worklist" },
      h("div", { class: "filters" }, this.search, ...Object.values(this.selects), this.clear, h("span", { class: "grow" }), this.count),
      h("div", { class: "table-scroll" }, this.table, this.state), this.pager);
  }

  select(name, any, options) {
    return h("select", { "aria-label": any, data: { name }, on: { change: (event) => { event.target.blur(); this.setFilter({ [name]: event.target.value }); } } }, h("option", { value: "" }, any), options.map(([value, text]) => h("option", { value }, text)));
  }

  // ---- data

  get query() {
    return new URLSearchParams(Object.entries(this.filter).filter(([, value]) => value !== ""));
  }

  /** Read the page; with `order` also all ids, so that next and previous keep this order while marks change. */
  async load({ order = true, quiet = false } = {}) {
    const query = this.query;
    query.set("offset", this.offset);
    query.set("limit", PAGE);
    if (order) query.set("ids", "1");
    const mine = {};
    this.loading = mine;
    if (!quiet && this.total === null) this.showSkeleton();
    clearTimeout(this.timer);
    try {
      const [answer, choices] = await Promise.all([call(`api/trajectories?${query}`), order ? call("api/choices") : this.choices]);
      if (this.loading !== mine) return;
      this.total = answer.total;
      this.items = answer.items;
      if (answer.ids) this.ids = answer.ids;
      this.choices = choices;
      this.render();
      this.app.onLoaded();
    } catch (error) {
      if (this.loading === mine) this.showError(error);
    }
    this.schedule();
  }

  /** Ask again once the person stays: the rows know the marks made here, and opening the next run comes first. */
  refreshSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { if (!this.root.hidden) this.load({ quiet: true, order: false }); }, STAY_MS);
  }

  /** Ask again while judges or imports are under way, or while there is nothing and something may be loading. */
  schedule() {
    const busy = this.choices?.importing || this.items.some((item) => ["queued", "running"].includes(item.judge?.state)) || this.failed;
    if (busy && !this.root.hidden) this.timer = setTimeout(() => (document.hidden ? this.schedule() : this.load({ order: true, quiet: true })), POLL_MS);
  }

  /** A review changed here: show it in its row without asking the server. */
  reviewChanged(id, { status, outcome }) {
    const item = this.items.find((other) => other.id === id);
    if (!item) return;
    item.review = { status, outcome };
    if (!this.root.hidden) this.render();
  }

  neighbour(id, direction) {
    const place = this.ids.indexOf(id);
    return place < 0 ? this.ids[0] : this.ids[place + direction];
  }

  placeOf(id) {
    return { place: this.ids.indexOf(id) + 1, total: this.ids.length };
  }

  // ---- filters

  searchChanged() {
    clearTimeout(this.searchTimer);
    this.searchTimer = setTimeout(() => this.setFilter({ search: this.search.value.trim() }), 150);
  }

  setFilter(part) {
    this.filter = { ...this.filter, ...part };
    this.offset = 0;
    this.rememberPlace();
    this.load();
  }

  rememberPlace() {
    sessionStorage.setItem(FILTER_KEY, JSON.stringify({ filter: this.filter, offset: this.offset }));
  }

  clearFilter() {
    this.search.value = "";
    this.setFilter({ ...DEFAULTS, sort: this.filter.sort, order: this.filter.order });
  }

  sortBy(sort) {
    const flip = this.filter.sort === sort && this.filter.order === "asc";
    this.setFilter({ sort, order: flip ? "desc" : "asc" });
  }

  get isFiltered() {
    return Object.keys(DEFAULTS).some((name) => !["sort", "order"].includes(name) && this.filter[name] !== "");
  }

  // ---- showing

  render() {
    this.failed = false;
    this.state.hidden = true;
    this.showFilters();
    this.count.textContent = this.total === null ? "" : plural(this.total, "trajectory").replace("trajectorys", "trajectories");
    if (!this.items.length) return this.showEmpty();
    if (!this.items.some((item) => item.id === this.cursor)) this.cursor = this.items[0].id;
    this.table.hidden = false;
    this.rows.replaceChildren(...this.items.map((item) => this.row(item)));
    this.showPager();
    return undefined;
  }

  showFilters() {
    fillChoices(this.selects.source, this.choices?.formats);
    fillChoices(this.selects.agent, this.choices?.agents);
    for (const [name, select] of Object.entries(this.selects)) {
      select.value = this.filter[name];
      select.classList.toggle("set", this.filter[name] !== "");
    }
    this.clear.hidden = !this.isFiltered;
    for (const button of this.head.querySelectorAll(".sort")) {
      const on = button.dataset.sort === this.filter.sort;
      button.classList.toggle("on", on);
      button.dataset.order = on ? this.filter.order : "";
      button.parentElement.setAttribute("aria-sort", on ? (this.filter.order === "asc" ? "ascending" : "descending") : "none");
    }
  }

  row(item) {
    const thumb = item.thumbnail_url ? h("img", { src: url(item.thumbnail_url), alt: "", loading: "lazy" }) : h("span", { class: "no-thumb" }, "no picture");
    const judge = judgeChip(item.judge);
    const problems = item.problem_count ? h("span", { class: "chip amb", title: item.problems.map((problem) => `${problem.file}${problem.line ? `:${problem.line}` : ""} ${problem.message}`).join("\n") }, plural(item.problem_count, "problem")) : h("span", { class: "dim" }, "–");
    return h("a", {
      class: `row${item.id === this.cursor ? " cur" : ""}`, role: "row", href: `?id=${item.id}`, data: { id: item.id }, tabindex: "-1",
      on: { click: (event) => { if (event.ctrlKey || event.metaKey || event.shiftKey) return; event.preventDefault(); this.cursor = item.id; this.app.open(item.id); } },
    },
    h("div", { class: "cell c-thumb", role: "cell" }, thumb),
    h("div", { class: "cell c-task", role: "cell" }, h("b", {}, item.task || "(no task text)"), h("small", {}, [item.agent, item.format, shortSource(item.source)].filter(Boolean).join(" · "))),
    h("div", { class: "cell c-steps num", role: "cell" }, String(item.steps)),
    h("div", { class: "cell c-duration num", role: "cell" }, item.duration_s == null ? "–" : timecode(item.duration_s, 0)),
    h("div", { class: "cell c-judge_outcome", role: "cell" }, judge),
    h("div", { class: "cell c-review", role: "cell" }, reviewChip(item.review)),
    h("div", { class: "cell c-problems", role: "cell" }, problems),
    h("div", { class: "cell c-imported dim", role: "cell", title: localTime(item.imported_utc) }, localTime(item.imported_utc, { short: true })));
  }

  showPager() {
    const pages = Math.ceil(this.total / PAGE);
    const page = Math.floor(this.offset / PAGE);
    this.pager.hidden = pages <= 1;
    this.pager.replaceChildren(
      h("button", { class: "quiet", ".disabled": page === 0, on: { click: () => this.turn(-1) } }, "‹ previous"),
      h("span", { class: "num" }, `page ${page + 1} of ${pages}`),
      h("button", { class: "quiet", ".disabled": page >= pages - 1, on: { click: () => this.turn(1) } }, "next ›"));
  }

  turn(direction) {
    const offset = this.offset + direction * PAGE;
    if (offset < 0 || offset >= (this.total ?? 0)) return;
    this.offset = offset;
    this.rememberPlace();
    this.root.querySelector(".table-scroll").scrollTop = 0;
    this.load({ order: false });
  }

  showSkeleton() {
    this.table.hidden = false;
    this.rows.replaceChildren(...Array.from({ length: 8 }, () => h("div", { class: "row skeleton" }, COLUMNS.map(([, sort]) => h("div", { class: `cell c-${sort ?? "thumb"}` }, h("span", {}))))));
  }

  showEmpty() {
    this.table.hidden = true;
    this.pager.hidden = true;
    this.state.hidden = false;
    if (this.isFiltered) this.state.replaceChildren(h("h2", {}, "Nothing matches"), h("p", {}, "No trajectory fits this search and these filters."), h("button", { class: "primary", on: { click: () => this.clearFilter() } }, "Clear the filters"));
    else if (this.choices?.importing) this.state.replaceChildren(h("h2", {}, "Loading the example runs…"), h("p", {}, "They appear here as they are ready: videos are checked, steps are placed, and the embedded judge has its say."), h("div", { class: "bar" }));
    else this.state.replaceChildren(h("h2", {}, "No trajectories yet"), h("p", {}, "Bring a folder of OSWorld results, a recording with its task text, a folder of screenshots, or an export of this tool."), h("button", { class: "primary", on: { click: () => this.app.showImport() } }, "Import trajectories"), h("p", { class: "dim" }, "On the server’s own machine: ", h("code", {}, "reviewer import PATH")));
  }

  showError(error) {
    this.failed = true;
    if (this.items.length) {
      this.render();
      this.failed = true;
      this.count.textContent = "not up to date: the server can’t be reached";
      return;
    }
    this.table.hidden = true;
    this.state.hidden = false;
    this.state.replaceChildren(h("h2", {}, "The worklist can’t be read"), h("p", {}, `${error.message}. Trying again every few seconds.`), h("button", { class: "primary", on: { click: () => this.load() } }, "Try now"));
  }

  // ---- keys

  async move(direction) {
    const place = this.items.findIndex((item) => item.id === this.cursor) + direction;
    if (place >= this.items.length && this.offset + PAGE < this.total) return this.turn(1);
    if (place < 0 && this.offset > 0) return this.turn(-1);
    const item = this.items[Math.min(this.items.length - 1, Math.max(0, place))];
    if (!item) return undefined;
    this.rows.querySelector(".cur")?.classList.remove("cur");
    this.cursor = item.id;
    const row = this.rows.querySelector(`[data-id="${item.id}"]`);
    row.classList.add("cur");
    row.scrollIntoView({ block: "nearest" });
    return undefined;
  }

  openCursor() {
    if (this.cursor) this.app.open(this.cursor);
  }
}

function fillChoices(select, values) {
  if (!values || select.dataset.filled === values.join("\n")) return;
  select.replaceChildren(select.options[0], ...values.map((value) => h("option", { value }, value)));
  select.dataset.filled = values.join("\n");
  select.hidden = values.length < 2;
}

function judgeChip(judge) {
  if (!judge || judge.state === "none") return h("span", { class: "dim" }, "–");
  if (judge.state === "queued" || judge.state === "running") return h("span", { class: "chip plain busy" }, judge.state === "queued" ? "waiting" : "judging…");
  if (judge.state === "failed") return h("span", { class: "chip amb" }, "failed");
  const steps = judge.minus_steps ? ` · ${judge.minus_steps} −` : "";
  return h("span", { class: `chip ${chipClass(judge.outcome)}`, title: judge.name }, `${judge.outcome ?? "abstains"}${steps}`);
}

export function reviewChip(review) {
  if (!review || review.status === "unreviewed") return h("span", { class: "dim" }, "not reviewed");
  const outcome = review.outcome ? OUTCOMES[review.outcome] : "begun";
  return h("span", { class: `chip ${review.status === "submitted" ? chipClass(review.outcome) : "plain outline"}` }, review.status === "submitted" ? `✓ ${outcome}` : `… ${outcome}`);
}

function shortSource(source) {
  const parts = source.split(/[\\/]/).filter(Boolean);
  return parts.slice(-3).join("/");
}

function readPlace() {
  try {
    return JSON.parse(sessionStorage.getItem(FILTER_KEY)) ?? {};
  } catch {
    return {};
  }
}
