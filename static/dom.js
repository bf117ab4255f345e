// Building the page. Text from a trajectory is hostile: it only ever becomes a text node or an attribute value.

/** Make an element. Props: `class`, `on` (event → handler), `data`, `style` (object), any attribute, or any DOM property
 * written with a leading dot. Children: nodes, strings, or null (left out). */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value == null || value === false) continue;
    if (name === "on") for (const [type, handler] of Object.entries(value)) element.addEventListener(type, handler);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name.startsWith(".")) element[name.slice(1)] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  if (tag === "button" && !props.type) element.type = "button";
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** Make an SVG element with attributes and children. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value != null) element.setAttribute(name, value);
  element.append(...children.filter((child) => child != null));
  return element;
}

/** A key cap. */
export const kbd = (label) => h("kbd", {}, label);

export const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/** Whether keys pressed on this event's target are text for a field, not commands. */
export function isTyping(event) {
  const target = event.composedPath()[0];
  if (!(target instanceof Element)) return false;
  const field = target.closest("input, textarea, select, [contenteditable='true']");
  return Boolean(field) && !["checkbox", "radio", "button", "range"].includes(field.type);
}
