// Talking to the server. Relative to the page, so that a proxy's path prefix is kept.

import { keep, kept } from "./store.js";

const BASE = new URL("..", import.meta.url).href;

/** An answer that was not 2xx. `status` is 0 when the server could not be reached; `body` is its JSON, if any. */
export class ApiError extends Error {
  constructor(status, body, message) {
    super(message);
    this.status = status;
    this.body = body;
  }
}

export const url = (path) => new URL(path.replace(/^\/(review\/)?/, ""), BASE).href;

const NAME_KEY = "reviewer.name";
let name = null;

/** The name that goes with every mark. Until someone gives theirs, a guest name kept in this browser. */
export function reviewerName() {
  name ??= kept(NAME_KEY);
  if (!name) setReviewerName(`guest-${Math.random().toString(36).slice(2, 6)}`);
  return name;
}

export function setReviewerName(chosen) {
  name = chosen;
  keep(NAME_KEY, chosen);
}

/** The path of a trajectory's routes. */
export const runPath = (id) => `api/trajectories/${encodeURIComponent(id)}`;

/** Fetch JSON; throws ApiError with the server's own words. */
export async function call(path, { method = "GET", body, reviewer = reviewerName(), keepalive = false, signal } = {}) {
  let response;
  try {
    response = await fetch(url(path), {
      method,
      signal,
      keepalive,
      headers: { "X-Reviewer": encodeURIComponent(reviewer), ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, null, "the server can’t be reached");
  }
  const answer = await response.json().catch(() => null);
  if (!response.ok) throw new ApiError(response.status, answer, detailOf(answer) ?? `the server answered ${response.status}`);
  return answer;
}

function detailOf(answer) {
  const detail = answer?.detail;
  if (typeof detail === "string") return detail;
  if (Array.isArray(detail)) return detail.map((item) => item.msg ?? String(item)).join("; ");
  return null;
}
