// Before and after a step, alternating in place with what changed outlined: most wrong clicks show in half a second.

import { url } from "./api.js";
import { h, svg } from "./dom.js";

const PERIOD_MS = 650;
const GRID = { columns: 64, rows: 36 };
const CHANGED = 14;

export class Blink {
  constructor(screen) {
    this.screen = screen;
    this.root = h("div", { class: "blink", hidden: true });
    this.timer = null;
    this.loadId = 0;
  }

  get isOn() {
    return !this.root.hidden;
  }

  /** Show step `index` of `detail`; resolves when the first picture is there. */
  async show(detail, index) {
    this.loadId += 1;
    const mine = this.loadId;
    clearInterval(this.timer);
    this.screen.append(this.root);
    this.root.hidden = false;
    const [before, after] = sources(detail, index);
    this.root.replaceChildren(h("div", { class: "blink-tag" }, "loading…"));
    const pictures = await Promise.allSettled([load(before), load(after)]);
    if (mine !== this.loadId || !this.isOn) return;
    if (pictures.some((picture) => picture.status === "rejected")) {
      const which = pictures[0].status === "rejected" ? "before" : "after";
      this.root.replaceChildren(h("div", { class: "blink-tag" }, `there is no picture ${which} this step`));
      return;
    }
    const [first, second] = pictures.map((picture) => picture.value);
    const place = (observation) => placement(detail, observation);
    const regions = changedRegions(grey(first), grey(second), GRID);
    this.suffix = regions.length ? "" : " · nothing changed";
    this.root.replaceChildren(placed(first, place(index), "before"), placed(second, place(index + 1), "after"), outline(regions, place(index + 1)), h("div", { class: "blink-tag" }));
    this.phase = "before";
    this.flip();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!still) this.timer = setInterval(() => this.flip(), PERIOD_MS);
  }

  flip() {
    this.phase = this.phase === "after" ? "before" : "after";
    this.root.dataset.phase = this.phase;
    this.root.querySelector(".blink-tag").textContent = this.phase + this.suffix;
  }

  hide() {
    clearInterval(this.timer);
    this.loadId += 1;
    this.root.hidden = true;
  }
}

/** Addresses of the pictures before and after a step: its screenshots, else the video just before it and just before the next. */
function sources(detail, index) {
  const { observations } = detail.trajectory;
  const { alignment, media } = detail;
  const times = alignment?.step_at_s ?? [];
  const fromVideo = (at_s) => (media && at_s != null ? url(`media/${media.media_id}/picture?at_s=${Math.max(0, at_s).toFixed(4)}`) : null);
  const of = (k) => (observations[k]?.url ? url(observations[k].url) : null);
  const end_s = times[index + 1] ?? Math.min(media?.duration_s ?? 0, (times[index] ?? 0) + 3);
  return [of(index) ?? fromVideo(times[index]), of(index + 1) ?? fromVideo(end_s)];
}

/** Where observation `k` lies in the picture, as fractions [x, y, w, h]. */
export function placement(detail, k) {
  return detail.alignment?.placements?.[k] ?? [0, 0, 1, 1];
}

function placed(image, [x, y, w, height], phase) {
  Object.assign(image.style, { left: `${100 * x}%`, top: `${100 * y}%`, width: `${100 * w}%`, height: `${100 * height}%` });
  image.className = `blink-picture ${phase}`;
  return image;
}

function load(address) {
  if (!address) return Promise.reject(new Error("no picture"));
  const image = new Image();
  image.src = address;
  image.alt = "";
  return image.decode().then(() => image);
}

/** Outlines around the regions that differ, over the part of the screen that the pictures fill. */
function outline(regions, [x, y, w, height]) {
  return svg("svg", { class: "blink-regions", viewBox: "0 0 100 100", preserveAspectRatio: "none" },
    ...regions.map((region) => svg("rect", {
      x: 100 * (x + (w * region.left) / GRID.columns), y: 100 * (y + (height * region.top) / GRID.rows),
      width: (100 * w * (region.right - region.left + 1)) / GRID.columns, height: (100 * height * (region.bottom - region.top + 1)) / GRID.rows,
      "vector-effect": "non-scaling-stroke",
    })));
}

function grey(image) {
  const scale = 4;
  const canvas = new OffscreenCanvas(GRID.columns * scale, GRID.rows * scale);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
  const values = new Float32Array(canvas.width * canvas.height);
  for (let k = 0; k < values.length; k += 1) values[k] = 0.299 * data[4 * k] + 0.587 * data[4 * k + 1] + 0.114 * data[4 * k + 2];
  return { values, width: canvas.width, scale };
}

/** Bounding boxes, in grid cells, of connected cells in which some pixel differs. */
export function changedRegions(a, b, { columns, rows }) {
  const changed = new Uint8Array(columns * rows);
  for (let k = 0; k < a.values.length; k += 1) {
    if (Math.abs(a.values[k] - b.values[k]) < CHANGED) continue;
    const column = Math.floor((k % a.width) / a.scale);
    const row = Math.floor(Math.floor(k / a.width) / a.scale);
    changed[row * columns + column] = 1;
  }
  const regions = [];
  for (let start = 0; start < changed.length; start += 1) {
    if (changed[start] !== 1) continue;
    const region = { left: columns, right: 0, top: rows, bottom: 0 };
    const queue = [start];
    changed[start] = 2;
    while (queue.length) {
      const cell = queue.pop();
      const [row, column] = [Math.floor(cell / columns), cell % columns];
      Object.assign(region, { left: Math.min(region.left, column), right: Math.max(region.right, column), top: Math.min(region.top, row), bottom: Math.max(region.bottom, row) });
      for (let r = Math.max(0, row - 1); r <= Math.min(rows - 1, row + 1); r += 1) {
        for (let c = Math.max(0, column - 1); c <= Math.min(columns - 1, column + 1); c += 1) {
          if (changed[r * columns + c] === 1) {
            changed[r * columns + c] = 2;
            queue.push(r * columns + c);
          }
        }
      }
    }
    regions.push(region);
  }
  return regions;
}
