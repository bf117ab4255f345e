// The action drawn on the picture: where it clicked, dragged, scrolled; what it typed or pressed.

import { h, svg } from "./dom.js";
import { describeStep, keyName } from "./format.js";

const MARK_PX = 17;

/** Draw the actions of `step` over a screen of `width` × `height` px. `place` is the part of the screen that the observation
 * fills, as fractions [x, y, w, h]. Returns an SVG element. */
export function drawStep(step, width, height, place = [0, 0, 1, 1]) {
  const root = svg("svg", { class: "overlay", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const toPx = ({ x, y }) => [(place[0] + x * place[2]) * width, (place[1] + y * place[3]) * height];
  for (const action of step?.actions ?? []) {
    const points = (action.points ?? []).filter((p) => Number.isFinite(p.x) && Number.isFinite(p.y)).map(toPx);
    const drawn = drawAction(action, points, width, height);
    if (drawn) root.append(drawn);
  }
  return root;
}

function drawAction(action, points, width, height) {
  switch (action.kind) {
    case "drag": return points.length > 1 ? dragPath(points) : points[0] && ring(points[0]);
    case "scroll": return scrollArrow(action, points[0] ?? [width / 2, height / 2]);
    case "move": return points[0] && cross(points[0]);
    default: return points[0] && mark(action.kind, points[0], width, height);
  }
}

function mark(kind, at, width, height) {
  const outside = at[0] < 0 || at[1] < 0 || at[0] > width || at[1] > height;
  if (outside) return outsideMark(at, width, height);
  if (kind === "double_click") return svg("g", {}, ring(at), ring(at, MARK_PX + 6));
  if (kind === "triple_click") return svg("g", {}, ring(at), ring(at, MARK_PX + 6), ring(at, MARK_PX + 12));
  if (kind === "right_click") return svg("g", {}, ring(at), label(at, "right"));
  if (kind === "middle_click") return svg("g", {}, ring(at), label(at, "middle"));
  return ring(at);
}

const twice = (shape, attributes) => svg("g", {}, svg(shape, { ...attributes, class: "halo" }), svg(shape, { ...attributes, class: "line" }));

const ring = ([x, y], r = MARK_PX) => svg("g", { class: "ring" }, twice("circle", { cx: x, cy: y, r }), svg("circle", { cx: x, cy: y, r: 3.5, class: "dot" }));

const cross = ([x, y]) => twice("path", { d: `M${x - 9} ${y}H${x + 9}M${x} ${y - 9}V${y + 9}` });

const label = ([x, y], text) => svg("text", { x: x + MARK_PX + 5, y: y + 4, class: "mark-text" }, text);

function outsideMark([x, y], width, height) {
  const inside = [Math.min(width - 14, Math.max(14, x)), Math.min(height - 14, Math.max(14, y))];
  const anchor = inside[0] > width / 2 ? "end" : "start";
  return svg("g", { class: "outside" }, twice("circle", { cx: inside[0], cy: inside[1], r: 8 }),
    svg("text", { x: inside[0] + (anchor === "end" ? -14 : 14), y: inside[1] + 4, "text-anchor": anchor, class: "mark-text" }, "outside the screen"));
}

function dragPath(points) {
  const d = points.map(([x, y], index) => `${index ? "L" : "M"}${x} ${y}`).join("");
  const [[x0, y0], [x1, y1]] = points.slice(-2);
  return svg("g", { class: "drag" }, twice("path", { d }), arrowHead(x0, y0, x1, y1), twice("circle", { cx: points[0][0], cy: points[0][1], r: 7 }));
}

function arrowHead(x0, y0, x1, y1, size = 12) {
  const angle = Math.atan2(y1 - y0, x1 - x0);
  const side = (turn) => `${x1 - size * Math.cos(angle + turn)} ${y1 - size * Math.sin(angle + turn)}`;
  return twice("path", { d: `M${side(0.5)}L${x1} ${y1}L${side(-0.5)}` });
}

/** Positive `scroll_y` is down, positive `scroll_x` right: the arrow points where the view goes. */
function scrollArrow(action, [x, y]) {
  const { scroll_x: sx = 0, scroll_y: sy = 0 } = action;
  const vertical = Math.abs(sy) >= Math.abs(sx);
  const sign = (vertical ? sy : sx) < 0 ? -1 : 1;
  const [dx, dy] = vertical ? [0, 34 * sign] : [34 * sign, 0];
  return svg("g", { class: "scroll" }, twice("path", { d: `M${x - dx} ${y - dy}L${x + dx} ${y + dy}` }), arrowHead(x - dx, y - dy, x + dx, y + dy));
}

/** The line at the foot of the picture: which step, and what was typed or pressed, in the reader's own words. */
export function stepCaption(step, index) {
  if (!step) return h("div", { class: "caption" }, "before the first step");
  const { verb, detail } = describeStep(step);
  const keys = step.actions?.find((action) => action.kind === "key" || action.kind === "hold")?.keys ?? [];
  return h("div", { class: "caption num" }, h("b", {}, `step ${index + 1}`), ` · ${verb.toLowerCase()} `,
    keys.length ? keys.map((key) => h("kbd", {}, keyName(key))) : h("span", { class: "caption-detail" }, detail));
}
